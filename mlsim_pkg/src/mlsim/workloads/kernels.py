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
        names = ("forward", "recompute", "backward", "output", "saved")
        counts = {f"{each}_repeats": getattr(self, f"{each}_repeats") * repeats for each in names}
        return replace(self, **counts)


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

    def forward(self, name: str, kind: str, **counts: float) -> Kernel:
        """Return a kernel of the forward pass."""
        return self._there(name, kind, self.recipe.recompute == "full", counts)

    def core(self, name: str, kind: str, **counts: float) -> Kernel:
        """Return a kernel between the products of attention, or one of these."""
        return self._there(name, kind, self.recipe.recompute != "none", counts)

    @staticmethod
    def _there(name: str, kind: str, again: bool, counts: dict[str, float]) -> Kernel:
        counts |= {"recompute_repeats": float(again), "live_repeats": float(again)}
        counts |= {"forward_repeats": 1.0, "saved_repeats": float(not again)}
        return Kernel(name=name, kind=kind, **counts)  # type: ignore[arg-type]

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
        kept = 0.0 if frozen and not adapted else copies * inputs / shares
        sides, elements = (inputs, outputs), (moved, moved, moved)
        ways = self.ways(name, sides, elements, work=work, held=held, kept=kept)
        yield from ways[:2] if frozen else ways

    def ways(
        self,
        name: str,
        sides: tuple[float, float],
        moved: tuple[float, float, float],
        *,
        work: float,
        held: float,
        kept: float,
    ) -> tuple[Kernel, Kernel, Kernel]:
        """Return a product, the gradient of its input, and that of its weights.

        `sides` are what it reads and writes of each token, and `moved` the elements that go
        through memory for each of the three. `work` is its MAC, `held` its weights.
        """
        inputs, outputs = sides
        there, back, learned = (
            {"token_multiply_adds": work, "token_elements": each} for each in moved
        )
        read = {"parameters_streamed": held}
        rows = {"row_tokens": 0.0, "fixed_rows": inputs, "gradients_accumulated": held}
        return (
            self.forward(name, "product", outputs=outputs, saved_elements=kept, **read, **there),
            self.backward(f"{name}: input gradient", "product", outputs=inputs, **read, **back),
            self.backward(
                f"{name}: weight gradient", "product", outputs=outputs, **rows, **learned
            ),
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
        masks = {"token_masks": drop * wide, "saved_masks": drop * wide}
        yield self.forward("residual", "elementwise", token_elements=3 * wide, **masks)
        if drop:
            back = {"token_elements": 2 * wide, "token_masks": wide}
            yield self.backward("residual: gradient", "elementwise", **back)

    def activation(self, size: float, branches: int) -> Iterator[Kernel]:
        """Yield the function between two matrices, with its gate."""
        name, wide = "activation function", (branches + 1) * size
        kept = {"saved_elements": branches * size}
        yield self.forward(name, "elementwise", token_elements=wide, **kept)
        back = {"token_elements": wide + branches * size}
        yield self.backward(f"{name}: gradient", "elementwise", **back)

    def attention(self, operator: StepOperator, heads: int, width: float) -> Iterator[Kernel]:
        """Yield attention: its products, and what lies between them."""
        name, window = operator.name, {"attention_window": operator.attention_window}
        passed = float(operator.token_elements + operator.cached_elements)
        work = float(operator.pair_multiply_adds)
        if self.recipe.standard:
            yield from self._standard(name, work, passed, heads, width, **window)
            return
        there = {"pair_multiply_adds": work, "token_elements": passed, "saved_elements": width}
        yield self.forward(name, "attention", **there, **window)
        back = {"pair_multiply_adds": FLASH_BACKWARD * work, "token_elements": 2 * passed}
        yield self.backward(f"{name}: gradient", "attention", **back, **window)

    def _standard(
        self, name: str, work: float, passed: float, heads: int, width: float, **window: int
    ) -> Iterator[Kernel]:
        """Yield attention whose scores go through memory."""
        scores = float(heads)
        # Scores are written by one product, and read by the other.
        there = {"pair_multiply_adds": work, "token_elements": passed, "pair_elements": 2 * scores}
        yield self.core(f"{name}, products", "attention", **there, **window)
        there = {"pair_elements": 2 * scores, "saved_pair_elements": scores}
        yield self.core(f"{name}, softmax", "elementwise", **there, **window)
        if self.recipe.dropout:
            masks = {"pair_elements": 2 * scores, "pair_masks": scores}
            kept = {"saved_pair_elements": scores, "saved_pair_masks": scores}
            yield self.core(f"{name}, dropout", "elementwise", **masks, **kept, **window)
            yield self.backward(f"{name}, dropout: gradient", "elementwise", **masks, **window)
        back = {"pair_elements": 3 * scores}
        yield self.backward(f"{name}, softmax: gradient", "elementwise", **back, **window)
        back = {"pair_multiply_adds": 2 * work, "token_elements": 2 * passed}
        back["pair_elements"] = 4 * scores
        yield self.backward(f"{name}, products: gradient", "attention", **back, **window)
        # Queries, keys and values are kept even if scores are computed again.
        full = float(self.recipe.recompute == "full")
        kept = {"saved_elements": width, "saved_repeats": 1 - full, "live_repeats": full}
        inputs = self.backward(f"{name}, inputs", "kept", **kept, **window)
        yield replace(inputs, backward_repeats=0.0)
