"""`Engine.calibrate`: a reader's own rows in, a correction out, and nothing changed behind it."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import median
from typing import Any

import pandas
import pytest
from refusals import answered

from mlsim import Engine
from mlsim.engine.accuracy import shelf
from mlsim.engine.calibrate import (
    SHELVES,
    Factor,
    OwnRow,
    asked,
    factor_of,
    read,
    t_quantile,
    within_series,
)
from mlsim.errors import InvalidValueError, NotMeasuredError, UnknownNameError, WrongKindError
from mlsim.values import quantity

SOLVE: dict[str, Any] = {"kind": "solve", "model": "ResNet50", "hardware": "A100"}
SOLVE |= {"batch_size": 8, "measured": "2 ms"}
SERVED = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8, "prompt_tokens": 512}
DECODE = {"kind": "serve-decode", **SERVED, "measured": "9 ms"}
TRAINED = {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 64}
TRAINED |= {"shard": "zero3", "recompute": "full"}


def one(row: dict[str, Any], **other: Any) -> OwnRow:
    """Return one row, some of it in other words, beside its prediction."""
    return next(asked(read([{**row, **other}]), "calibrated"))


def test_a_rate_is_the_time_that_it_stands_for() -> None:
    for row, measured, seconds in (
        (SOLVE, "2 ms", 0.002),
        # Eight images in 2 ms are 4,000 images a second.
        *(
            (SOLVE, f"{each}", 0.002)
            for each in ("4000 images/s", "4,000 samples/s", "4 ksample/s")
        ),
        # Prompts of 512 tokens, eight of them, at 40,960 tokens a second: a tenth of a second.
        ({**DECODE, "kind": "serve-prefill"}, "40960 tokens/s", 0.1),
        # Eight sequences, one token of each: 800 tokens a second are 10 ms for a token.
        (DECODE, "800 tokens/s", 0.01),
        # 64 sequences of 4,096 tokens in 10 s.
        ({**TRAINED, "kind": "train", "sequence_tokens": 4096}, f"{64 * 409.6} tokens/s", 10),
    ):
        assert one(row, measured=measured).measured == pytest.approx(seconds), measured


def test_rows_are_read_from_lists_tables_and_frames(tmp_path: Path) -> None:
    """Each beside the prediction of its door."""
    latency = Engine.solve("ResNet50", "A100", batch_size=8, estimate="calibrated").value("latency")
    assert one(SOLVE).predicted == latency
    assert one(SOLVE, measured=quantity(2.0, "ms")).ratio == pytest.approx(0.002 / latency)
    path = tmp_path / "own.csv"
    head = "kind,model,hardware,batch_size,precision,measured,unit\n"
    path.write_text(f"{head}solve,ResNet50,A100, 8 ,,2,ms\n")
    assert next(asked(read(path), "calibrated")).predicted == latency
    first, second = asked(read(pandas.DataFrame([SOLVE, DECODE])), "calibrated")
    assert (first.predicted, second.predicted) == (latency, one(DECODE).predicted)


def test_what_is_wrong_is_told_with_its_row(tmp_path: Path) -> None:
    def ask(**other: Any) -> Any:
        return list(asked(read([SOLVE, {**SOLVE, **other}]), "calibrated"))

    assert answered(ask, "own_rows") == []
    with pytest.raises(WrongKindError, match=r"^row 2: .*called by text"):
        list(asked(read([SOLVE, {**SOLVE, 3: 4}]), "calibrated"))  # type: ignore[dict-item]
    for rows in (SOLVE, 3, [1, 2], None):
        with pytest.raises(WrongKindError, match="list of rows"):
            read(rows)
    path = tmp_path / "own.csv"
    for text in (None, "", "kind,model\n", "kind,model\nsolve,x,y\n", 'a\n"x'):
        if text is not None:
            path.write_text(text)
        with pytest.raises(InvalidValueError):
            list(asked(read(path), "calibrated"))


def slower(factor: float, batches: tuple[int, ...], hardware: str = "A100") -> list[dict[str, Any]]:
    """Return rows whose times are a factor above the calibrated predictions."""
    pair = {"model": "ResNet50", "hardware": hardware}
    times = {
        each: Engine.solve(**pair, batch_size=each, estimate="calibrated").value("latency")
        for each in batches
    }
    row = {"kind": "solve", **pair, "unit": "s"}
    return [{**row, "batch_size": each, "measured": factor * times[each]} for each in batches]


def test_rows_three_tenths_slower_are_a_factor_of_1_3() -> None:
    """No constant of the package changes."""
    before = slower(1, (8,))
    found = Engine.calibrate(slower(1.3, (1, 8, 32))).factors["solve"]
    assert found.factor == pytest.approx(1.3)
    assert found.low < 1.3 < found.high
    assert (found.before, found.after) == pytest.approx((0.3, 0), abs=1e-9)
    assert found.rows == 3
    assert slower(1, (8,)) == before


def test_what_does_not_calibrate() -> None:
    bare = {"kind": "solve", "model": "ResNet50", "hardware": "P100", "measured": "9 ms"}
    two = slower(1.3, (1,)) + slower(1.3, (1,), hardware="H100")
    for rows, more, error, words in (
        (two, {}, InvalidValueError, "2 devices: NVIDIA A100.*NVIDIA H100"),
        ([{**SOLVE, "batch": 8}], {}, UnknownNameError, "row 1: solve takes batch_size"),
        ([], {}, InvalidValueError, "no rows"),
        ([SOLVE], {"estimate": "bound"}, UnknownNameError, "calibrated, roofline"),
        ([bare], {}, NotMeasuredError, "^row 1: "),
    ):
        with pytest.raises(error, match=words):
            Engine.calibrate(rows, **more)
    assert Engine.calibrate([bare], estimate="roofline").factors["solve"].rows == 1


def corrected(ratio: float, kind: str, name: str) -> tuple[Any, Any]:
    """Return a service, and one of its results corrected by a row so much above its time."""
    serving = Engine.serve(**SERVED, estimate="calibrated")
    time = {"serve-prefill": "time_to_first_token", "serve-decode": "time_per_output_token"}[kind]
    row = {**SERVED, "kind": kind, "measured": f"{ratio * serving.value(time)} s"}
    return serving, Engine.calibrate([row]).apply(serving, name)


def test_a_time_and_a_rate_are_corrected_the_same_way() -> None:
    serving, time = corrected(1.3, "serve-decode", "time_per_output_token")
    _, rate = corrected(1.3, "serve-decode", "decode_throughput")
    assert time.value == pytest.approx(1.3 * serving.value("time_per_output_token"))
    assert rate.value == pytest.approx(serving.value("decode_throughput") / 1.3)
    for found in (time, rate):
        assert found.low < found.value < found.high
        assert "your own rows on NVIDIA H100" in str(found)
    # Nothing is beyond the bound.
    bound = Engine.serve(**SERVED, estimate="bound")
    _, time = corrected(0.97, "serve-decode", "time_per_output_token")
    _, rate = corrected(0.97, "serve-decode", "decode_throughput")
    assert time.low == pytest.approx(bound.value("time_per_output_token"))
    assert rate.high == pytest.approx(bound.value("decode_throughput"))
    training = Engine.train(**TRAINED, estimate="calibrated")
    step = Engine.calibrate([{**TRAINED, "kind": "train", "measured": "6 s"}]).apply(training)
    assert (step.name, step.value) == ("step_time", pytest.approx(6))


def test_what_a_correction_does_not_correct_and_how_it_is_written() -> None:
    found = Engine.calibrate([DECODE])
    best: dict[str, Any] = {**SERVED, "estimate": "calibrated"}
    serving, many = Engine.serve(**best), Engine.serve(**{**best, "batch_size": [1, 8]})
    network = Engine.solve(model="ResNet50", hardware="H100", estimate="calibrated")
    for asked_of, error, words in (
        ((serving, "time_to_first_token"), InvalidValueError, "no rows of serve-prefill"),
        ((serving, "memory_required"), UnknownNameError, "memory_required"),
        ((Engine.serve(**SERVED),), InvalidValueError, "ask for estimate='calibrated'"),
        (
            (Engine.serve(**{**best, "hardware": "A100"}),),
            InvalidValueError,
            "measured on NVIDIA H",
        ),
        ((many,), InvalidValueError, "many points"),
        ((network,), InvalidValueError, "no rows of solve"),
        ((3.0,), WrongKindError, "float"),
    ):
        with pytest.raises(error, match=words):
            found.apply(*asked_of)
    made = found.to_dict()
    assert made["factors"][0]["factor"] == pytest.approx(made["rows"][0]["ratio"])
    assert "1 row" in str(found)
    assert "measured 9 ms" in found.explain()
    assert "No constant of the package has changed" in found.explain()
    with pytest.raises(TypeError):
        found.factors["solve"] = None  # type: ignore[index]


def of(*ratios: float, kind: str = "solve") -> Factor:
    """Return the factor of rows with these ratios of measured over predicted time."""
    rows = [
        OwnRow(kind, "words", "Cloud.A100", "A100", (("batch_size", str(n)),), ratio, 1.0)
        for n, ratio in enumerate(ratios)
    ]
    return factor_of(kind, rows)


def test_factors_by_hand() -> None:
    # Published tables of Student, 80% between the two: freedom 1, 2, 3, 5, 10, 30.
    published = {1: 3.078, 2: 1.886, 3: 1.638, 5: 1.476, 10: 1.372, 30: 1.310}
    for freedom, value in published.items():
        assert t_quantile(freedom) == pytest.approx(value, abs=5e-4)
    assert t_quantile(4, 0.95) == pytest.approx(2.776, abs=5e-4)
    # Logarithms -0.2, -0.1, 0, 0.1, 0.2: mean 0, variance 0.1 / 4.
    five = of(*(math.exp(each) for each in (-0.2, -0.1, 0, 0.1, 0.2)))
    width = 1.533 * math.sqrt(0.025) * math.sqrt(1 + 1 / 5)
    assert five.factor == pytest.approx(1)
    assert (math.log(five.low), math.log(five.high)) == pytest.approx((-width, width), rel=1e-3)
    assert "these 5 rows" in five.spread
    # By the other row, 2 is corrected to 2 / 8 and 8 to 8 / 2: errors of 0.75 and 3.
    two = of(2.0, 8.0)
    assert two.factor == pytest.approx(4)
    assert (two.before, two.after) == pytest.approx((median((1, 7)), median((0.75, 3))))
    # One row has the spread of the shelf, and so have a few that agree, or one told six times.
    single = of(1.5)
    scatter, freedom, _ = within_series("networks")
    width = t_quantile(freedom) * scatter * math.sqrt(2)
    assert math.log(single.high / single.factor) == pytest.approx(width)
    assert single.after is None
    row = OwnRow("solve", "words", "Cloud.A100", "A100", (("batch_size", "1"),), 2.0, 1.0)
    again = factor_of("solve", [row] * 6)
    assert again.rows == 1
    assert "networks" in single.spread == again.spread
    assert of(1.3, 1.3, 1.3).high > 1.4
    # Rows that don't agree are wider than the shelf.
    assert "these 2 rows" in of(1.0, 9.0).spread


def test_bands_of_two_rows_hold_the_rest_of_a_series() -> None:
    for kind in SHELVES:
        inside: list[bool] = []
        series: dict[str, list[float]] = {}
        for row in shelf(SHELVES[kind]):
            series.setdefault(row.series, []).append(row.ratio())
        for ratios in series.values():
            for first in range(len(ratios) - 3):
                found = of(*ratios[first : first + 2], kind=kind)
                rest = ratios[:first] + ratios[first + 2 :]
                inside += [found.low <= each <= found.high for each in rest]
        assert sum(inside) / len(inside) > 0.7, kind
