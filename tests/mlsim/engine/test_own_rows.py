"""A reader's own rows: what is read, and what is refused with the row that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlsim import Engine
from mlsim.engine.own_rows import OwnRow, asked, read
from mlsim.errors import InvalidValueError, MlsimError, UnitError, WrongKindError
from mlsim.values import quantity

SOLVE = {
    "kind": "solve",
    "model": "ResNet50",
    "hardware": "A100",
    "batch_size": 8,
    "measured": "2 ms",
}
SERVE = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8, "prompt_tokens": 512}


def one(row: dict[str, Any], **other: Any) -> OwnRow:
    """Return one row, some of it in other words, beside its prediction."""
    return next(asked(read([{**row, **other}]), "calibrated"))


def test_a_rate_is_the_time_that_it_stands_for() -> None:
    # Eight images in 2 ms are 4,000 images a second.
    assert one(SOLVE).measured == pytest.approx(0.002)
    for rate in ("4000 images/s", "4,000 samples/s", "4 ksample/s"):
        assert one(SOLVE, measured=rate).measured == pytest.approx(0.002)
    # Prompts of 512 tokens, eight of them, at 40,960 tokens a second: a tenth of a second.
    prefill = one({"kind": "serve-prefill", **SERVE, "measured": "40960 tokens/s"})
    assert prefill.measured == pytest.approx(0.1)
    # Eight sequences, one token of each: 800 tokens a second are 10 ms for a token.
    decode = one({"kind": "serve-decode", **SERVE, "measured": "800 tokens/s"})
    assert decode.measured == pytest.approx(0.01)
    train = {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 64}
    layout = {"shard": "zero3", "recompute": "full", "sequence_tokens": 4096}
    # 64 sequences of 4,096 tokens in 10 s.
    step = one({"kind": "train", **train, **layout, "measured": f"{64 * 409.6} tokens/s"})
    assert step.measured == pytest.approx(10)


def test_the_prediction_is_that_of_the_door() -> None:
    profile = Engine.solve(model="ResNet50", hardware="A100", batch_size=8, estimate="calibrated")
    assert one(SOLVE).predicted == profile.value("latency")
    assert one(SOLVE, measured=quantity(2.0, "ms")).ratio == pytest.approx(
        0.002 / profile.value("latency")
    )


def test_text_of_a_table_is_read_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        "kind,model,hardware,batch_size,precision,measured,unit\nsolve,ResNet50,A100, 8 ,,2,ms\n"
    )
    assert next(asked(read(path), "calibrated")).predicted == one(SOLVE).predicted


def test_a_data_frame_has_gaps() -> None:
    pandas = pytest.importorskip("pandas")
    decode = {"kind": "serve-decode", **SERVE, "measured": "8 ms"}
    first, second = asked(read(pandas.DataFrame([SOLVE, decode])), "calibrated")
    assert first.predicted == one(SOLVE).predicted
    assert second.predicted == one(decode).predicted


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"kind": "solv"}, "Did you mean 'solve'"),
        ({"kind": None}, "serve-decode"),
        ({"model": "ResNet5O"}, "Did you mean 'ResNet50'"),
        ({"hardware": "H1000"}, "Did you mean 'H100'"),
        ({"hardware": ""}, "hardware is empty"),
        ({"batch": 8}, "batch_size"),
        ({"batch_size": [1, 2]}, "many points"),
        ({"batch_size": 0}, "batch_size"),
        ({"estimate": "bound"}, "can't choose estimate"),
        ({"measured": None}, "measured is empty"),
        ({"measured": " "}, "measured is empty"),
        ({"measured": True}, "must be a number"),
        ({"measured": "-2 ms"}, "positive"),
        ({"measured": "0 ms"}, "positive"),
        ({"measured": "nan ms"}, "positive"),
        ({"measured": "inf ms"}, "positive"),
        ({"measured": float("nan"), "unit": "ms"}, "positive"),
        ({"measured": "fast ms"}, "must be a number"),
        ({"measured": 2}, "needs a unit"),
        ({"measured": "2 GB"}, "where s is expected"),
        ({"measured": "2 tokens/s"}, "where sample/s is expected"),
        ({"measured": 2, "unit": 3}, "unit must be text"),
        ({"kind": ["solve"]}, "no kind of measurement"),
        ({3: 4}, "called by text"),
        ({"kind": "train"}, "global_batch is empty"),
        # Seconds where milliseconds were meant.
        ({"measured": "2 s"}, "over 1,000 times"),
        # Microseconds where milliseconds were meant.
        ({"measured": "2 us"}, "the bound. Look at the unit"),
    ],
)
def test_what_is_wrong_is_told_with_its_row(other: dict[str, Any], told: str) -> None:
    with pytest.raises(MlsimError) as e:
        list(asked(read([SOLVE, {**SOLVE, **other}]), "calibrated"))
    assert str(e.value).startswith("row 2: ")
    assert told in str(e.value)


def test_an_error_stays_of_its_kind() -> None:
    with pytest.raises(UnitError):
        one(SOLVE, measured="2 GB")
    with pytest.raises(AttributeError):
        one(SOLVE, model="ResNet5O")


@pytest.mark.parametrize("measured", [SOLVE, 3, [1, 2], None])
def test_what_holds_no_rows(measured: Any) -> None:
    with pytest.raises(WrongKindError, match="list of rows"):
        read(measured)


@pytest.mark.parametrize("text", [None, "", "kind,model\n", "kind,model\nsolve,x,y\n", 'a\n"x'])
def test_files_that_hold_no_rows(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "own.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidValueError):
        list(asked(read(path), "calibrated"))
