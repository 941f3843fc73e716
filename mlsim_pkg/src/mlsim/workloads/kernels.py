"""Kernels of one micro-batch in training: forward, again, and backward, on one stage.

Each row counts what one kernel does for one token, or for one pair of tokens, on
one device; how often it runs in each pass; and what it keeps for the way back.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from mlsim.workloads.steps import UNLIMITED


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
