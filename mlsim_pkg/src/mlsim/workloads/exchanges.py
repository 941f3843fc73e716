"""What the devices of one stage send to one another while they train."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlsim.workloads.kernels import Kernel
from mlsim.workloads.language import Transformer
from mlsim.workloads.parallelism import Parallelism


def exchanges(model: Transformer, parallelism: Parallelism, *, again: bool) -> Iterator[Kernel]:
    """Yield what is sent in one layer; `again`: whether whole layers are computed again."""
    repeated = float(again)
    if parallelism.tensor > 1:
        yield from _tensor_exchanges(model.hidden, parallelism, repeated)
    if parallelism.context > 1:
        hops = parallelism.context - 1
        cached = model.attention.cached_elements / min(parallelism.tensor, model.attention.kv_heads)
        ring = Kernel(
            name="keys and values round the ring",
            kind="network",
            link_elements=hops * cached,
            link_hops=hops,
            link_span=parallelism.context,
            link_stride=parallelism.tensor,
        )
        # On the way back, their gradients go round as well.
        yield replace(ring, forward_repeats=1.0, recompute_repeats=repeated, backward_repeats=2.0)
    if model.experts and parallelism.expert > parallelism.tensor:
        groups = parallelism.expert // parallelism.tensor
        away = model.experts.exchanged_elements(model.hidden, parallelism)
        share = (model.layers - model.dense_layers) / model.layers
        yield Kernel(
            name="tokens to their experts, or back",
            kind="network",
            link_elements=away,
            link_hops=groups - 1,
            link_span=groups,
            link_stride=parallelism.tensor,
            forward_repeats=2.0 * share,
            recompute_repeats=2.0 * repeated * share,
            backward_repeats=2.0 * share,
        )


def _tensor_exchanges(hidden: int, parallelism: Parallelism, again: float) -> Iterator[Kernel]:
    """Yield what tensor parallelism sends: after attention, and after the feed-forward."""
    group = parallelism.tensor
    one_way = Kernel(
        name="reduce and scatter, or gather",
        kind="network",
        link_elements=hidden * (group - 1) / group,
        link_hops=group - 1,
        link_span=group,
        collective=True,
    )
    if parallelism.sequence:
        # Each all-reduce is done in two halves; on the way back the inputs, of
        # which each device kept a part, are gathered once more.
        yield replace(
            one_way, forward_repeats=4.0, recompute_repeats=4.0 * again, backward_repeats=6.0
        )
        return
    yield replace(
        one_way,
        name="all-reduce",
        link_elements=2 * one_way.link_elements,
        link_hops=2 * one_way.link_hops,
        forward_repeats=2.0,
        recompute_repeats=2.0 * again,
        backward_repeats=2.0,
    )
