"""Where the groups of a service lie: nothing is torn that fits in a node."""

from __future__ import annotations

import pytest

from mlsim.systems.cluster import Placement
from mlsim.systems.spread import spread
from mlsim.workloads.parallelism import Parallelism


@pytest.mark.parametrize(
    ("layout", "crossings", "nodes"),
    [
        (Parallelism(), 0, 1),
        (Parallelism(tensor=8), 0, 1),
        (Parallelism(tensor=4, pipeline=2), 0, 1),
        (Parallelism(tensor=4, pipeline=4), 1, 2),
        (Parallelism(tensor=8, pipeline=4), 3, 4),
        (Parallelism(tensor=8, pipeline=4, data=3), 3, 12),
        (Parallelism(tensor=2, data=8), 0, 2),
        # Three copies of three devices: two fit in a node, the third is not torn.
        (Parallelism(tensor=3, data=3), 0, 2),
        (Parallelism(tensor=16), 0, 2),
        (Parallelism(tensor=16, pipeline=2), 1, 4),
        (Parallelism(tensor=8, context=4), 0, 4),
        (Parallelism(tensor=4, context=2, pipeline=2), 1, 2),
    ],
    ids=str,
)
def test_a_layout_takes_so_many_nodes(layout: Parallelism, crossings: int, nodes: int) -> None:
    found = spread(layout, 8)
    assert (found.crossings, found.nodes) == (crossings, nodes)


def test_experts_lie_beside_those_of_copies_in_the_same_node() -> None:
    found = spread(Parallelism(data=32, expert=32), 8)
    assert found.copies == Placement(8, 4)
    wide = spread(Parallelism(tensor=8, data=4, expert=32), 8)
    assert wide.copies == Placement(1, 4)
    assert spread(Parallelism(data=64, expert=64), 72).copies.groups == 1
