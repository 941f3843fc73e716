"""Layers that keep a state instead of a cache: state-space models and linear attention.

The state of a sequence is a matrix for each head, and the last inputs of a short
convolution. It has the same size however long the sequence is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlsim.equations import recurrent as count, transformer
from mlsim.precision import precision
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.projections import matrix
from mlsim.workloads.steps import StepOperator

# What waits for the convolution is kept as the activations are.
_WAITING = precision("bf16").bytes


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Widths of a layer on one device.

    `columns` come out of the first matrix, of which `channels` go through the
    convolution; `inner` go into the last one. `learned` numbers are in no matrix, the
    convolution's among them; the state has `elements`, and `multiply_adds` for a token.
    """

    columns: int
    channels: int
    inner: int
    learned: int
    elements: int
    multiply_adds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent:
    """A layer with a state: its first and last matrix, and what is between them.

    `kernel` is the width of the convolution, in tokens; the state is kept in
    `state_format`.
    """

    kernel: int = 4
    state_format: str = "fp32"
    # It has no cache, so that no token is too far away.
    window = 0
    full_every = 0
    chosen = 0
    cached_elements = 0

    def _sizes(self, tensor: int) -> _Sizes:
        raise NotImplementedError

    def parts(self) -> dict[str, int]:
        """Return what a group of devices must divide, by the name of its parts."""
        raise NotImplementedError

    def parameters(self, hidden: int) -> int:
        """Learned numbers in one layer."""
        sizes = self._sizes(1)
        return hidden * (sizes.columns + sizes.inner) + sizes.learned

    def state_bytes(self, tensor: int = 1) -> float:
        """Memory of the state of one sequence in one layer, on one of so many devices."""
        sizes = self._sizes(tensor)
        waiting = count.waiting_elements(sizes.channels, self.kernel)
        kept = precision(self.state_format).bytes
        return float(count.sequence_state(kept, sizes.elements, _WAITING, waiting))

    def operators(self, hidden: int, parallelism: Parallelism) -> Iterator[StepOperator]:
        """Yield the operators of one layer for one device."""
        sizes = self._sizes(parallelism.tensor)
        columns, inner = sizes.columns, sizes.inner
        yield matrix(
            "state inputs",
            hidden,
            columns,
            elements=hidden + columns,
            live=2 * hidden + columns,
        )
        convolution = transformer.token_multiply_adds(sizes.channels * self.kernel)
        yield StepOperator(
            name="state",
            kind="state",
            token_multiply_adds=int(convolution) + sizes.multiply_adds,
            parameters=sizes.learned,
            parameters_streamed=sizes.learned,
            wide_parameters=sizes.learned,
            unquantised=True,
            token_elements=columns + inner,
            live_elements=hidden + columns + inner,
            sequence_state=self.state_bytes(parallelism.tensor),
        )
        yield matrix(
            "state output",
            inner,
            hidden,
            elements=inner + 2 * hidden,
            live=inner + 2 * hidden,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace(Recurrent):
    """A state-space layer of Mamba-2 (dao2024mamba2).

    Heads of a group share the two vectors that lead into the state and out of it.

    >>> nano = StateSpace(heads=64, head_size=64, state_size=128, groups=8)
    >>> nano.parameters(2688), nano.state_bytes()
    (38742208, 2134016.0)
    """

    heads: int
    head_size: int
    state_size: int
    groups: int
    convolution_bias: bool = True

    def parts(self) -> dict[str, int]:
        """Return what a group of devices must divide, by the name of its parts."""
        return {"state heads": self.heads}

    def _sizes(self, tensor: int) -> _Sizes:
        heads, groups = self.heads // tensor, max(self.groups // tensor, 1)
        inner = heads * self.head_size
        channels = inner + 2 * groups * self.state_size
        elements = int(count.state_elements(heads, self.head_size, self.state_size))
        return _Sizes(
            # What multiplies the output, what is convolved, and a step for each head.
            columns=inner + channels + heads,
            channels=channels,
            inner=inner,
            # A decay, a skip and the bias of a step for each head, and the norm.
            learned=channels * (self.kernel + self.convolution_bias) + 3 * heads + inner,
            elements=elements,
            multiply_adds=int(count.state_space_multiply_adds(elements)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRule(Recurrent):
    """Linear attention with the gated delta rule (yang2024gated).

    A key may serve several values, each of which has a head of its own.

    >>> layer = DeltaRule(key_heads=16, heads=32, key_size=128, value_size=128)
    >>> layer.parameters(2048), layer.state_bytes()
    (33718464, 2146304.0)
    """

    key_heads: int
    heads: int
    key_size: int
    value_size: int

    def parts(self) -> dict[str, int]:
        """Return what a group of devices must divide, by the name of its parts."""
        return {"linear key heads": self.key_heads, "linear value heads": self.heads}

    def _sizes(self, tensor: int) -> _Sizes:
        heads = self.heads // tensor
        inner = heads * self.value_size
        channels = 2 * (self.key_heads // tensor) * self.key_size + inner
        elements = int(count.state_elements(heads, self.key_size, self.value_size))
        return _Sizes(
            # What is convolved, what multiplies the output, and two gates for each head.
            columns=channels + inner + 2 * heads,
            channels=channels,
            inner=inner,
            # Two numbers for each head, and one norm for all.
            learned=channels * self.kernel + 2 * heads + self.value_size,
            elements=elements,
            multiply_adds=int(count.delta_rule_multiply_adds(elements)),
        )
