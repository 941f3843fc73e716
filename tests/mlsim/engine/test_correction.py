"""The correction: its factor and band by hand, applied, refused, and tested on the shelf."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import pytest

from mlsim import Engine
from mlsim.engine.accuracy import shelf
from mlsim.engine.correction import SHELVES, Correction, Factor, t_quantile, within_series
from mlsim.engine.own_rows import OwnRow
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError

SERVE = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8, "prompt_tokens": 512}


def of(*ratios: float, kind: str = "solve") -> Factor:
    """Return the factor of rows with these ratios of measured over predicted time."""
    rows = [
        OwnRow(kind, "words", "Cloud.A100", "A100", (("batch_size", str(n)),), ratio, 1.0)
        for n, ratio in enumerate(ratios)
    ]
    return Correction(tuple(rows), "calibrated").factors[kind]


def corrected(ratio: float, kind: str, name: str) -> tuple[Any, Any]:
    """Return a service, and one of its results corrected by a row so much above its time."""
    serving = Engine.serve(**SERVE, estimate="calibrated")
    time = {"serve-prefill": "time_to_first_token", "serve-decode": "time_per_output_token"}[kind]
    row = {**SERVE, "kind": kind, "measured": f"{ratio * serving.value(time)} s"}
    return serving, Engine.calibrate([row]).apply(serving, name)


def test_quantiles_of_student_are_those_of_tables() -> None:
    # Published tables, 80% between the two: freedom 1, 2, 3, 5, 10, 30.
    published = {1: 3.078, 2: 1.886, 3: 1.638, 5: 1.476, 10: 1.372, 30: 1.310}
    for freedom, value in published.items():
        assert t_quantile(freedom) == pytest.approx(value, abs=5e-4)
    assert t_quantile(4, 0.95) == pytest.approx(2.776, abs=5e-4)


def test_five_rows_by_hand() -> None:
    # Logarithms -0.2, -0.1, 0, 0.1, 0.2: mean 0, variance 0.1 / 4.
    found = of(*(math.exp(each) for each in (-0.2, -0.1, 0, 0.1, 0.2)))
    width = 1.533 * math.sqrt(0.025) * math.sqrt(1 + 1 / 5)
    assert found.factor == pytest.approx(1)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((-width, width), rel=1e-3)
    assert "these 5 rows" in found.spread


def test_each_row_is_corrected_by_the_others_alone() -> None:
    # By the other row, 2 is corrected to 2 / 8 and 8 to 8 / 2: errors of 0.75 and 3.
    found = of(2.0, 8.0)
    assert found.factor == pytest.approx(4)
    assert found.before == pytest.approx(median((1, 7)))
    assert found.after == pytest.approx(median((0.75, 3)))


def test_one_row_has_the_spread_of_the_shelf() -> None:
    found = of(1.5)
    scatter, freedom, _ = within_series("networks")
    width = t_quantile(freedom) * scatter * math.sqrt(2)
    assert math.log(found.high / found.factor) == pytest.approx(width)
    assert found.after is None
    assert "networks" in found.spread


def test_few_rows_that_agree_are_no_certainty() -> None:
    assert of(1.3, 1.3, 1.3).high > 1.4
    # Rows that don't agree are wider than the shelf.
    assert "these 2 rows" in of(1.0, 9.0).spread


def test_what_is_measured_twice_counts_once() -> None:
    row = OwnRow("solve", "words", "Cloud.A100", "A100", (("batch_size", "1"),), 2.0, 1.0)
    found = Correction((row,) * 6, "calibrated").factors["solve"]
    assert found.rows == 1
    assert "networks" in found.spread


@pytest.mark.parametrize("kind", list(SHELVES))
def test_bands_of_two_rows_hold_the_rest_of_a_series(kind: str) -> None:
    held = total = 0
    series: dict[str, list[float]] = {}
    for row in shelf(SHELVES[kind]):
        series.setdefault(row.series, []).append(row.ratio())
    for ratios in series.values():
        for first in range(len(ratios) - 3):
            found = of(*ratios[first : first + 2], kind=kind)
            rest = ratios[:first] + ratios[first + 2 :]
            held += sum(found.low <= each <= found.high for each in rest)
            total += len(rest)
    assert held / total > 0.7


def test_a_time_and_a_rate_are_corrected_the_same_way() -> None:
    serving, time = corrected(1.3, "serve-decode", "time_per_output_token")
    _, rate = corrected(1.3, "serve-decode", "decode_throughput")
    assert time.value == pytest.approx(1.3 * serving.value("time_per_output_token"))
    assert rate.value == pytest.approx(serving.value("decode_throughput") / 1.3)
    for found in (time, rate):
        assert found.low < found.value < found.high
        assert "reader's own rows on NVIDIA H100" in str(found)


def test_nothing_is_beyond_the_bound() -> None:
    bound = Engine.serve(**SERVE, estimate="bound")
    _, time = corrected(0.97, "serve-decode", "time_per_output_token")
    _, rate = corrected(0.97, "serve-decode", "decode_throughput")
    assert time.low == pytest.approx(bound.value("time_per_output_token"))
    assert rate.high == pytest.approx(bound.value("decode_throughput"))


def test_a_training_step() -> None:
    asked = {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 64}
    training = Engine.train(**asked, shard="zero3", recompute="full", estimate="calibrated")
    row = {**asked, "shard": "zero3", "recompute": "full", "kind": "train", "measured": "6 s"}
    found = Engine.calibrate([row]).apply(training)
    assert (found.name, found.value) == ("step_time", pytest.approx(6))


def test_what_it_does_not_correct() -> None:
    row = {**SERVE, "kind": "serve-decode", "measured": "9 ms"}
    found = Engine.calibrate([row])
    serving = Engine.serve(**SERVE, estimate="calibrated")
    with pytest.raises(InvalidValueError, match="no rows of serve-prefill"):
        found.apply(serving, "time_to_first_token")
    with pytest.raises(UnknownNameError, match="memory_required"):
        found.apply(serving, "memory_required")
    with pytest.raises(InvalidValueError, match="ask for estimate='calibrated'"):
        found.apply(Engine.serve(**SERVE))
    with pytest.raises(InvalidValueError, match="measured on NVIDIA H100"):
        found.apply(Engine.serve(**{**SERVE, "hardware": "A100"}, estimate="calibrated"))
    many = Engine.serve(**{**SERVE, "batch_size": [1, 8]}, estimate="calibrated")
    with pytest.raises(InvalidValueError, match="many points"):
        found.apply(many)
    with pytest.raises(InvalidValueError, match="no rows of solve"):
        found.apply(Engine.solve(model="ResNet50", hardware="H100", estimate="calibrated"))
    with pytest.raises(WrongKindError, match="float"):
        found.apply(3.0)  # type: ignore[arg-type]


def test_written_out() -> None:
    row = {**SERVE, "kind": "serve-decode", "measured": "9 ms"}
    found = Engine.calibrate([row])
    made = found.to_dict()
    assert made["factors"][0]["factor"] == pytest.approx(made["rows"][0]["ratio"])
    assert "1 row" in str(found)
    assert "measured 9 ms" in found.explain()
    assert "No constant of the package has changed" in found.explain()
    with pytest.raises(TypeError):
        found.factors["solve"] = None  # type: ignore[index]
