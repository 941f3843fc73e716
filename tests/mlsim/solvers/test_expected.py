"""What a roofline's report says to expect: the calibrated answer of the same door, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from own_chips import chip

from mlsim import Engine
from mlsim.engine import _banding, bands
from mlsim.engine.accuracy import limits
from mlsim.solvers.answer import Answer
from mlsim.solvers.causes import SHARES, TRAINING_SHARES
from mlsim.solvers.expected import TAKES, line
from mlsim.systems import PrefillPool
from mlsim.workloads import Speculation

LLAMA: dict[str, Any] = {"model": "Llama3_8B", "hardware": "HGX_H100"}
RUN: dict[str, Any] = {**LLAMA, "devices": 8, "global_batch": 64, "recompute": "full"}
QUESTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "network": (Engine.solve, {"model": "ResNet50", "hardware": "A100", "batch_size": 4}),
    "on chip": (
        Engine.solve,
        {"model": "ResNet50", "hardware": "A100", "activations": "on-chip"},
    ),
    "service": (Engine.serve, {**LLAMA, "tensor_parallel": 4, "batch_size": 8}),
    "encoder": (Engine.serve, {"model": "BERT_Large", "hardware": "A100"}),
    "draft": (
        Engine.serve,
        {
            "model": "Llama3_70B",
            "hardware": "H200",
            "precision": "fp8",
            "speculation": Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7),
        },
    ),
    "pools": (Engine.serve, {**LLAMA, "batch_size": 8, "prefill": PrefillPool()}),
    "run": (Engine.train, {**RUN, "shard": "zero3"}),
    "training of a network": (
        Engine.train,
        {"model": "ResNet50", "hardware": "A100", "global_batch": 32},
    ),
    "load": (Engine.load, {"model": "Llama3_8B", "hardware": "H100", "rate": 5, "requests": 50}),
    "load of pools": (
        Engine.load,
        {**LLAMA, "rate": 5, "requests": 50, "prefill": PrefillPool()},
    ),
    **{
        f"layer, {'training' if training else 'inference'}": (
            Engine.gemm,
            {"M": 8192, "N": 4096, "K": 4096, "hardware": "H100", "recipe": "fp8_rowwise",
             "training": training},
        )
        for training in (False, True)
    },
}  # fmt: skip


@pytest.mark.parametrize("asked", QUESTIONS)
def test_it_is_the_calibrated_answer_of_the_same_door(asked: str) -> None:
    """And the last row of the report, and in no number of the answer, nor in its JSON."""
    door, arguments = QUESTIONS[asked]
    roofline, calibrated = door(**arguments), door(**arguments, estimate="calibrated")
    expected = roofline.as_calibrated()
    assert [*expected.main] == [*roofline.main]
    for name in roofline.main:
        assert expected.value(name) == calibrated.value(name) != roofline.value(name)
        assert expected.causes_behind(name) == calibrated.causes_behind(name)
        assert expected.band(name) == calibrated.band(name)
    *rows, (label, words) = roofline.report().rows
    assert (label, words) == ("expect", roofline.expected)
    assert "expect" not in dict(rows)
    assert "expect" not in roofline.to_dict()
    assert calibrated.expected == door(**arguments | {"estimate": "calibrated"}).expected == ""


def test_the_line_says_value_band_and_cause() -> None:
    network = Engine.solve(model="ResNet50", hardware="A100")
    assert network.expected == "517 µs (334 to 888 µs): launches take 67%"
    assert str(network).endswith(f"\n  expect      {network.expected}")
    assert network._repr_markdown_().endswith(f"\n| expect | {network.expected} |")
    served = Engine.serve(model="Llama3_8B", hardware="H100").expected
    first, each = served.split("; ")
    assert (" ms to the first token (" in first, " ms per token (" in each) == (True, True)
    assert each.endswith(": memory takes 78%")
    assert first.endswith(": arithmetic takes 85%")
    # Nobody measured with rates that are given, so there is no band.
    given = Engine.solve(model="ResNet50", hardware="A100", memory_bandwidth="4 TB/s")
    assert given.expected.startswith("511 µs: launches take")
    assert set(TAKES) == {*SHARES, *TRAINING_SHARES}


def test_what_is_borrowed_is_named_where_it_matters() -> None:
    lent = Engine.solve(model="ResNet50", hardware="MI300X", batch_size=256)
    assert lent.expected.endswith("; rates of others of a class: accelerators with HBM")
    # At batch 1 its memory, whose constant is borrowed, takes less than a tenth of the time.
    assert "others" not in Engine.solve(model="ResNet50", hardware="MI300X").expected
    chip_mate = Engine.solve(model="ResNet50", hardware="A100_40GB", batch_size=256)
    assert chip_mate.expected.endswith("; rates of others of the same chip")
    assert "others" not in Engine.solve(model="ResNet50", hardware="A100").expected


def test_nothing_is_said_where_nobody_knows() -> None:
    """Of another estimate, many points, what does not fit, and a device without a relative."""
    unknown = Engine.solve(model="ResNet50", hardware=chip(fp16="100 TFLOP/s"))
    large = Engine.serve(model="Llama3_70B", hardware="H100")
    bound = Engine.solve(model="ResNet50", hardware="A100", estimate="bound")
    many = Engine.solve(model="ResNet50", hardware="A100", batch_size=[1, 8])
    for each in (unknown, large, bound, many):
        assert "expect" not in str(each)
    assert line(unknown) == line(bound) == ""
    assert many[0].expected == Engine.solve(model="ResNet50", hardware="A100").expected


def test_a_wheel_without_measured_rows_has_no_band(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    answer: Answer = Engine.solve(model="ResNet50", hardware="A100", estimate="calibrated")
    monkeypatch.setattr("mlsim.engine.import_module", missing)
    assert _banding(answer, "latency") is None
    roofline = Engine.solve(model="ResNet50", hardware="A100")
    assert roofline.expected == "517 µs: launches take 67%"


def test_the_kept_limits_are_those_of_the_rows() -> None:
    """If not, `python benchmarks/borrowed.py --bands` renews them."""
    anew = {(each.kind, each.estimate): each for each in bands.limits_anew()}
    kept = {(each.kind, each.estimate): each for each in limits()}
    assert kept.keys() == anew.keys()
    for key, each in anew.items():
        assert kept[key].rows == each.rows
        assert (kept[key].least, kept[key].most) == pytest.approx((each.least, each.most))
