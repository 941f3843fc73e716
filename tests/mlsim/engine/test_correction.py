"""The correction: applied, refused and written out."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError

SERVE = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8, "prompt_tokens": 512}


def corrected(ratio: float, kind: str, name: str) -> tuple[Any, Any]:
    """Return a service, and one of its results corrected by a row so much above its time."""
    serving = Engine.serve(**SERVE, estimate="calibrated")
    time = {"serve-prefill": "time_to_first_token", "serve-decode": "time_per_output_token"}[kind]
    row = {**SERVE, "kind": kind, "measured": f"{ratio * serving.value(time)} s"}
    return serving, Engine.calibrate([row]).apply(serving, name)


def test_a_time_and_a_rate_are_corrected_the_same_way() -> None:
    serving, time = corrected(1.3, "serve-decode", "time_per_output_token")
    _, rate = corrected(1.3, "serve-decode", "decode_throughput")
    assert time.value == pytest.approx(1.3 * serving.value("time_per_output_token"))
    assert rate.value == pytest.approx(serving.value("decode_throughput") / 1.3)
    for found in (time, rate):
        assert found.low < found.value < found.high
        assert "your own rows on NVIDIA H100" in str(found)


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
