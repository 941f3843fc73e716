"""Kernels of one micro-batch in training: forward, again, and backward, on one stage.

Each row counts what one kernel does for one token, or for one pair of tokens, on
one device; how often it runs in each pass; and what it keeps for the way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from mlsim.workloads.steps import UNLIMITED, Parallelism, StepOperator

if TYPE_CHECKING:
    from mlsim.workloads.adapters import LoRA


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel of a micro-batch on one device.

    Attributes
    ----------
    name, kind
        Such as "feed-forward, up: weight gradient"; "product", "attention",
        "elementwise" or "network".
    token_multiply_adds, pair_multiply_adds
        MAC for each token; for each pair of tokens that meet.
    row_tokens, fixed_rows, outputs
        Of a product: rows of its result for each token, or a number that no token
        changes; and its columns.
    parameters_streamed, gradients_accumulated, parameters_dequantized
        Parameters read; parameters to whose gradients it adds; quantized ones that it turns
        into 16 bits.
    token_elements, pair_elements, token_masks, pair_masks
        Elements, and bytes of masks, read and written.
    attention_window
        Most tokens that a token sees.
    link_elements, link_hops, link_span, link_stride, collective
        Elements of each token sent; messages that follow one another; how many
        devices take part, and how far apart they are numbered; whether all of them
        gather or reduce a vector together, which can be done in two levels.
    forward_repeats, recompute_repeats, backward_repeats
        How often it runs in each pass of a stage.
    output_repeats
        How often it runs in the output layer, which only the last stage has.
    saved_elements, saved_pair_elements, saved_masks, saved_pair_masks
        What is kept for the way back; `saved_repeats` times, `live_repeats` of
        them only while a layer is computed again.
    """

    name: str
    kind: str
    token_multiply_adds: float = 0.0
    pair_multiply_adds: float = 0.0
    row_tokens: float = 1.0
    fixed_rows: float = 0.0
    outputs: float = 0.0
    parameters_streamed: float = 0.0
    gradients_accumulated: float = 0.0
    parameters_dequantized: float = 0.0
    token_elements: float = 0.0
    pair_elements: float = 0.0
    token_masks: float = 0.0
    pair_masks: float = 0.0
    attention_window: int = UNLIMITED
    link_elements: float = 0.0
    link_hops: int = 0
    link_span: int = 0
    link_stride: int = 1
    collective: bool = False
    forward_repeats: float = 0.0
    recompute_repeats: float = 0.0
    backward_repeats: float = 0.0
    output_repeats: float = 0.0
    saved_elements: float = 0.0
    saved_pair_elements: float = 0.0
    saved_masks: float = 0.0
    saved_pair_masks: float = 0.0
    saved_repeats: float = 0.0
    live_repeats: float = 0.0

    @property
    def all_repeats(self) -> float:
        """How often it runs for one micro-batch."""
        return self.forward_repeats + self.recompute_repeats + self.backward_repeats

    @property
    def repeats(self) -> float:
        """The same, by the name that all tables have; a whole number if it is one."""
        count = self.all_repeats
        return int(count) if count == int(count) else count

    def times(self, repeats: float) -> Kernel:
        """Return it as it stands in so many layers."""
        return replace(
            self,
            forward_repeats=self.forward_repeats * repeats,
            recompute_repeats=self.recompute_repeats * repeats,
            backward_repeats=self.backward_repeats * repeats,
            output_repeats=self.output_repeats * repeats,
            saved_repeats=self.saved_repeats * repeats,
        )


# What places and names a kernel, and is no quantity of an equation.
_NOT_COLUMNS = ("name", "kind", "link_span", "link_stride", "collective")
KERNEL_COLUMNS = (
    *(each.name for each in fields(Kernel) if each.name not in _NOT_COLUMNS),
    "all_repeats",
)


# A flash backward pass computes the scores again: five products for two.
FLASH_BACKWARD = 2.5


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a program keeps, computes again and drops while it trains.

    `recompute` is "none", "selective" (what lies between the two products of
    attention) or "full" (whole layers); `attention` is "flash" (scores never
    leave the chip, the masked half is skipped) or "standard" (they are written
    and read); `dropout` says whether numbers are dropped at random. With `adapters` all else
    is frozen.
    """

    recompute: str = "selective"
    attention: str = "flash"
    dropout: bool = False
    adapters: LoRA | None = None

    @property
    def standard(self) -> bool:
        """Whether scores of attention go through memory."""
        return self.attention == "standard"

    @property
    def quantized(self) -> bool:
        """Whether frozen matrices are turned into 16 bits to compute with them."""
        return self.adapters is not None and self.adapters.quantized


@dataclass(frozen=True, slots=True)
class Passes:
    """Makes the kernels of a layer, given what is kept and computed again."""

    recipe: Recipe
    parallelism: Parallelism
    hidden: int

    def forward(self, name: str, kind: str, *, core: bool = False, **counts: float) -> Kernel:
        """Return a kernel of the forward pass; `core`: between the products of attention."""
        again = self.recipe.recompute in ("full", "selective" if core else "full")
        return Kernel(
            name=name,
            kind=kind,
            forward_repeats=1.0,
            recompute_repeats=float(again),
            saved_repeats=0.0 if again else 1.0,
            live_repeats=float(again),
            **counts,  # type: ignore[arg-type]
        )

    def backward(self, name: str, kind: str, **counts: float) -> Kernel:
        """Return a kernel of the backward pass."""
        return Kernel(name=name, kind=kind, backward_repeats=1.0, **counts)  # type: ignore[arg-type]

    def product(
        self, operator: StepOperator, copies: int = 1, *, adapted: bool = False
    ) -> Iterator[Kernel]:
        """Yield a product, the gradient of its input, and that of its weights.

        `copies` of each token go through it, as with experts. Of a frozen matrix there is no
        gradient of weights, so its input is kept only where an adapter needs it (`adapted`).
        """
        frozen = self.recipe.adapters is not None
        outputs = float(operator.outputs)
        inputs = operator.token_multiply_adds / (outputs * copies)
        name, work = operator.name, float(operator.token_multiply_adds)
        held = float(operator.parameters_streamed + operator.parameters_routed)
        moved = copies * (inputs + outputs)
        # A kept input is divided among the devices of sequence parallelism; that of matrices that
        # end a block is divided anyway, which is counted as it is.
        ends_block = name.endswith((", down", "attention output"))
        shares = self.parallelism.tensor if self.parallelism.sequence and not ends_block else 1
        yield self.forward(
            name,
            "product",
            token_multiply_adds=work,
            outputs=outputs,
            parameters_streamed=held,
            token_elements=moved,
            saved_elements=0.0 if frozen and not adapted else copies * inputs / shares,
        )
        yield self.backward(
            f"{name}: input gradient",
            "product",
            token_multiply_adds=work,
            outputs=inputs,
            parameters_streamed=held,
            token_elements=moved,
        )
        if frozen:
            return
        yield self.backward(
            f"{name}: weight gradient",
            "product",
            token_multiply_adds=work,
            row_tokens=0.0,
            fixed_rows=inputs,
            outputs=outputs,
            gradients_accumulated=held,
            token_elements=moved,
        )

    @property
    def narrow(self) -> float:
        """Width of what lies between matrices, on one device."""
        return self.hidden / (self.parallelism.tensor if self.parallelism.sequence else 1)

    def norm(self) -> Iterator[Kernel]:
        """Yield a norm: it reads and writes; on the way back it reads two gradients more."""
        wide = self.narrow
        yield self.forward("norm", "elementwise", token_elements=2 * wide, saved_elements=wide)
        yield self.backward("norm: gradient", "elementwise", token_elements=4 * wide)

    def residual(self) -> Iterator[Kernel]:
        """Yield the sum of a block's output and its input, with dropout if there is some."""
        wide, drop = self.narrow, self.recipe.dropout
        yield self.forward(
            "residual",
            "elementwise",
            token_elements=3 * wide,
            token_masks=drop * wide,
            saved_masks=drop * wide,
        )
        if drop:
            yield self.backward(
                "residual: gradient", "elementwise", token_elements=2 * wide, token_masks=wide
            )

    def activation(self, size: float, branches: int) -> Iterator[Kernel]:
        """Yield the function between two matrices, with its gate."""
        yield self.forward(
            "activation function",
            "elementwise",
            token_elements=(branches + 1) * size,
            saved_elements=branches * size,
        )
        yield self.backward(
            "activation function: gradient",
            "elementwise",
            token_elements=(2 * branches + 1) * size,
        )

    def attention(self, operator: StepOperator, heads: int, width: float) -> Iterator[Kernel]:
        """Yield attention: its products, and what lies between them."""
        window = operator.attention_window
        passed = float(operator.token_elements + operator.cached_elements)
        work = float(operator.pair_multiply_adds)
        if not self.recipe.standard:
            yield replace(
                self.forward(
                    operator.name,
                    "attention",
                    pair_multiply_adds=work,
                    token_elements=passed,
                    saved_elements=width,
                ),
                attention_window=window,
            )
            yield replace(
                self.backward(
                    f"{operator.name}: gradient",
                    "attention",
                    pair_multiply_adds=FLASH_BACKWARD * work,
                    token_elements=2 * passed,
                ),
                attention_window=window,
            )
            return
        for kernel in self._standard(operator.name, work, passed, heads, width):
            yield replace(kernel, attention_window=window)

    def _standard(
        self, name: str, work: float, passed: float, heads: int, width: float
    ) -> Iterator[Kernel]:
        """Yield attention whose scores go through memory."""
        drop = self.recipe.dropout
        # Scores are written by one product, and read by the other.
        yield self.forward(
            f"{name}, products",
            "attention",
            core=True,
            pair_multiply_adds=work,
            token_elements=passed,
            pair_elements=2.0 * heads,
        )
        yield self.forward(
            f"{name}, softmax",
            "elementwise",
            core=True,
            pair_elements=2.0 * heads,
            saved_pair_elements=float(heads),
        )
        if drop:
            yield self.forward(
                f"{name}, dropout",
                "elementwise",
                core=True,
                pair_elements=2.0 * heads,
                pair_masks=float(heads),
                saved_pair_elements=float(heads),
                saved_pair_masks=float(heads),
            )
            yield self.backward(
                f"{name}, dropout: gradient",
                "elementwise",
                pair_elements=2.0 * heads,
                pair_masks=float(heads),
            )
        yield self.backward(f"{name}, softmax: gradient", "elementwise", pair_elements=3.0 * heads)
        yield self.backward(
            f"{name}, products: gradient",
            "attention",
            pair_multiply_adds=2 * work,
            token_elements=2 * passed,
            pair_elements=4.0 * heads,
        )
        # Queries, keys and values are kept even if scores are computed again.
        full = self.recipe.recompute == "full"
        yield Kernel(
            name=f"{name}, inputs",
            kind="kept",
            saved_elements=width,
            saved_repeats=float(not full),
            live_repeats=float(full),
        )
