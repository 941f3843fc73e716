"""Plans: which equations lead from what is known to what is asked."""

from __future__ import annotations

import pytest

from mlsim.equations import plan
from mlsim.errors import UnreachableError
from mlsim.solvers.forward.configuration import SOLVER

ALL = SOLVER
OPERATOR = ("flops", "weight_bytes", "activation_bytes", "peak_flops", "memory_bandwidth")


def names(found) -> list[str]:
    return [step.name for step in found.steps]


def test_steps_come_after_their_inputs() -> None:
    found = plan(ALL, OPERATOR, ["roofline_time"])
    assert sorted(names(found)) == ["bytes_moved", "compute_time", "memory_time", "roofline_time"]
    ready = set(OPERATOR)
    for step in found.steps:
        assert set(step.inputs) <= ready
        ready.add(step.yields)


def test_only_what_is_needed_and_not_known_is_computed() -> None:
    assert names(plan(ALL, OPERATOR, ["ridge_point"])) == ["ridge_point"]
    assert names(plan(ALL, [*OPERATOR, "latency"], ["latency"])) == []


def test_an_intermediate_that_is_given_overrides_its_equations() -> None:
    found = plan(ALL, ["bytes_moved", "memory_bandwidth", "flops", "peak_flops"], ["roofline_time"])
    assert "bytes_moved" not in names(found)
    values = found.run(
        {"bytes_moved": 10.0, "memory_bandwidth": 5.0, "flops": 3.0, "peak_flops": 3.0}
    )
    assert values["roofline_time"] == 2.0


def test_what_cannot_be_reached_is_named() -> None:
    with pytest.raises(UnreachableError, match="memory_time can't be computed: nothing gives") as e:
        plan(ALL, ["bytes_moved"], ["memory_time"])
    assert "memory_bandwidth. Give it" in str(e.value)


def test_lists_are_mapped_row_by_row() -> None:
    found = plan(ALL, [*OPERATOR, "repeats"], ["latency"])
    values = found.run(
        {
            "flops": [100.0, 10.0],
            "weight_bytes": [1.0, 30.0],
            "activation_bytes": 10.0,
            "peak_flops": 10.0,
            "memory_bandwidth": 4.0,
            "repeats": [2.0, 1.0],
        }
    )
    # Row 1: 100/10 = 10 s against 11/4 s; row 2: 1 s against 40/4 = 10 s.
    assert values["roofline_time"] == [10.0, 10.0]
    assert values["latency"] == 30.0


def test_the_input_of_a_run_is_left_alone() -> None:
    known = {"peak_flops": 6.0, "memory_bandwidth": 2.0}
    found = plan(ALL, known, ["ridge_point"]).run(known)
    assert found["ridge_point"] == 3.0
    assert set(known) == {"peak_flops", "memory_bandwidth"}


def test_a_plan_splits_into_what_changes_and_what_does_not() -> None:
    found = plan(ALL, [*OPERATOR, "repeats"], ["latency"])
    once, each = found.split(["peak_flops"])
    assert set(names(once)) == {"bytes_moved", "memory_time"}
    assert set(names(each)) == {"compute_time", "roofline_time", "latency"}
