"""One linear layer by the roofline: worked by hand, what must hold, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mlsim import Device, Engine, Hardware
from mlsim.errors import (
    DoesNotFitError,
    InvalidValueError,
    NotMeasuredError,
    UnknownNameError,
    UnreachableError,
    UnsupportedPrecisionError,
)
from mlsim.workloads.recipes import recipes

CHIP = Device(
    "Chip",
    peak_flops={"bf16": "100 TFLOP/s", "fp8": "200 TFLOP/s", "fp4": "400 TFLOP/s"},
    memory_bandwidth="1 TB/s",
    memory_capacity="64 GB",
)
SIDES = st.integers(1, 4096)


def test_a_product_worked_by_hand() -> None:
    found = Engine.gemm(1000, 2000, 500, hardware=CHIP)
    assert found.value("total_flops") == 2 * 1000 * 2000 * 500
    moved = 2 * (1000 * 500 + 500 * 2000 + 1000 * 2000)
    assert found.value("total_bytes") == moved
    assert found.value("latency") == pytest.approx(max(2e9 / 1e14, moved / 1e12))
    assert found.bottleneck == "Compute Bound"


def test_fp8_reads_half_and_writes_as_much() -> None:
    (kernel,) = Engine.gemm(1000, 2000, 500, hardware=CHIP, precision="fp8").kernels
    assert kernel["input_bytes"] == 1000 * 500
    assert kernel["layer_weight_bytes"] == 500 * 2000
    assert kernel["output_bytes"] == 2 * 1000 * 2000
    assert kernel["scale_bytes"] == 0


def test_scales_of_blocks_are_counted() -> None:
    (kernel,) = Engine.gemm(64, 128, 256, hardware=CHIP, precision="nvfp4").kernels
    assert kernel["scale_bytes"] == (64 * 256 + 256 * 128) / 16
    rowwise = Engine.gemm(64, 128, 256, hardware=CHIP, recipe="fp8_rowwise").kernels
    assert [each["scale_bytes"] for each in rowwise] == [4 * (64 + 128), 4 * 64]


@given(SIDES, SIDES, SIDES)
def test_training_is_three_products_of_one_work(m: int, n: int, k: int) -> None:
    forward, all_three = (
        Engine.gemm(m, n, k, hardware=CHIP, training=each) for each in (False, True)
    )
    assert all_three.value("total_flops") == pytest.approx(3 * forward.value("total_flops"))
    # In one format the three move the same bytes, each another matrix as the result.
    assert all_three.value("latency") == pytest.approx(3 * forward.value("latency"))


@given(SIDES, SIDES, SIDES)
def test_the_bound_is_below_the_roofline(m: int, n: int, k: int) -> None:
    for asked in ({"precision": "fp8"}, {"recipe": "fp8_rowwise", "training": True}):
        roofline, bound = (
            Engine.gemm(m, n, k, hardware="H100", estimate=each, **asked).value("latency")
            for each in ("roofline", "bound")
        )
        assert bound <= roofline * (1 + 1e-12)


def test_arrays_equal_points_and_broadcast() -> None:
    m, n, k = [64, 512, 8192], [128, 4096], 256
    for estimate in ("roofline", "calibrated", "bound"):
        asked: dict[str, Any] = {"hardware": "H100", "precision": "fp8", "estimate": estimate}
        found = Engine.gemm(np.array(m)[:, None], n, k, **asked)
        assert found.shape == (3, 2)
        for row, column in np.ndindex(3, 2):
            alone = Engine.gemm(m[row], n[column], k, **asked)
            for name in ("latency", "format_speedup"):
                value = found.value(name)[row, column]
                assert value == pytest.approx(alone.value(name), rel=1e-12), estimate
            assert found[row, column].value("latency") == alone.value("latency")


def test_a_batch_is_as_many_products_each_with_its_weights() -> None:
    one, many = (Engine.gemm(256, 512, 128, hardware=CHIP, batch=each) for each in (1, 8))
    for name in ("total_flops", "total_bytes", "latency"):
        assert many.value(name) == pytest.approx(8 * one.value(name))
    large = Engine.gemm(8 * 256, 512, 128, hardware=CHIP)
    assert many.value("total_bytes") - large.value("total_bytes") == 7 * 2 * 512 * 128


def test_groups_read_the_weights_of_those_that_have_rows() -> None:
    grouped = Engine.gemm(None, 512, 128, hardware=CHIP, groups=[100, 0, 28])
    assert grouped.value("total_flops") == 2 * 128 * 512 * 128
    assert grouped.value("total_bytes") == 2 * (128 * 128 + 2 * 128 * 512 + 128 * 512)


def test_a_cache_keeps_activations_that_fit() -> None:
    asked: dict[str, Any] = {"hardware": "H100"}
    moved = [
        Engine.gemm(512, 1024, 1024, activations=where, **asked).value("total_bytes")
        for where in ("memory", "on-chip")
    ]
    assert moved == [2 * (512 * 1024 * 2 + 1024**2), 2 * 1024**2]
    large = [
        Engine.gemm(65536, 1024, 1024, activations=where, **asked).value("total_bytes")
        for where in ("memory", "on-chip")
    ]
    assert large[0] == large[1]


def test_what_is_given_takes_the_place_of_data() -> None:
    slow = Engine.gemm(4096, 4096, 4096, hardware="H100", precision="fp8",
                       peak_flops="1 PFLOP/s")  # fmt: skip
    assert slow.value("latency") == pytest.approx(2 * 4096**3 / 1e15)
    # The baseline keeps its own peak.
    assert slow.value("baseline_time") == Engine.gemm(4096, 4096, 4096, hardware="H100").value(
        "latency"
    )


def test_shares_and_a_start_may_be_given_to_the_roofline() -> None:
    """Half of the peak, half of the bandwidth; and a start that is longer than both."""
    asked: dict[str, Any] = {"M": 64, "N": 4096, "K": 4096, "hardware": "H100"}
    whole = Engine.gemm(**asked).value("latency")
    assert Engine.gemm(**asked, memory_fraction=0.5).value("latency") == pytest.approx(2 * whole)
    assert Engine.gemm(**asked, compute_fraction=0.5).value("latency") == pytest.approx(whole)
    assert Engine.gemm(**asked, kernel_overhead="1 ms").value("latency") == pytest.approx(1e-3)
    with pytest.raises(InvalidValueError, match="so it has no memory_fraction"):
        Engine.gemm(**asked, estimate="bound", memory_fraction=0.5)


def test_the_baseline_is_the_layer_in_sixteen_bits() -> None:
    found = Engine.gemm(512, 1024, 2048, hardware="H100", recipe="fp8_rowwise", training=True)
    alone = Engine.gemm(512, 1024, 2048, hardware="H100", training=True)
    assert found.baseline.value("latency") == alone.value("latency")
    assert found.value("baseline_time") == pytest.approx(alone.value("latency"))
    assert found.baseline.value("memory_required") == alone.value("memory_required")


def test_a_device_without_sixteen_bits_has_no_speedup() -> None:
    chip = Device("Eight", peak_flops={"fp8": "1 TFLOP/s"}, memory_bandwidth="1 TB/s",
                  memory_capacity="1 GB")  # fmt: skip
    found = Engine.gemm(64, 64, 64, hardware=chip, precision="fp8")
    assert "format_speedup" not in found.names
    assert "latency" in found.to_dict()
    assert "fp8" in str(found)
    with pytest.raises(UnknownNameError, match="format_speedup"):
        _ = found.format_speedup


def test_the_explanation_has_every_step_and_no_baseline() -> None:
    found = Engine.gemm(4096, 4096, 4096, hardware="H100", precision="fp8").explain().to_dict()
    assert found["value"] == pytest.approx(2 * 4096**3 / 1979e12)
    assert [each["name"] for each in found["operators"]] == ["forward"]
    names = {each["quantity"] for each in found["steps"]}
    assert {"flops", "compute_time", "memory_time", "operator_time"} <= names
    speedup = Engine.gemm(64, 64, 64, hardware="H100", precision="fp8").explain("format_speedup")
    assert len(speedup.to_dict()["operators"]) == 2


def test_json_is_whole() -> None:
    found = Engine.gemm(512, 1024, 2048, hardware="B200", recipe="nvfp4").to_dict()
    assert json.loads(json.dumps(found)) == found
    assert [each["name"] for each in found["kernels"]][:1] == ["forward"]
    many = Engine.gemm([512, 64], 1024, 2048, hardware="B200", recipe="nvfp4")
    assert len(many.to_dict()["latency"]["value"]) == 2
    assert "512" in str(many)


@pytest.mark.parametrize("bad", [0, -1, 2.5, float("nan"), float("inf"), "8", None, [], [4, 0]])
@pytest.mark.parametrize("side", ["M", "N", "K"])
def test_a_side_that_can_not_be_is_refused(side: str, bad: Any) -> None:
    sides: dict[str, Any] = {"M": 64, "N": 64, "K": 64, side: bad}
    with pytest.raises(InvalidValueError, match=rf"\b{side}\b|entry 1 of 2"):
        Engine.gemm(**sides, hardware="H100")


def test_a_side_beyond_every_library_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="at most 2,147,483,647, not 1,000,000,000,000"):
        Engine.gemm(10**12, 64, 64, hardware="H100", constants="torchao-0.18.0")
    large = Engine.gemm(2 * 10**6, 2 * 10**6, 10**6, hardware="H100")
    assert not large.feasible
    with pytest.raises(DoesNotFitError, match=r"the operands of M=2,000,000.*14.55 TiB"):
        _ = large.latency
    assert "14.55 TiB" in str(large)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"K": 100, "recipe": "mxfp8"}, r"K = 100 is no multiple of 32.*96 or 128"),
        ({"K": 16, "recipe": "mxfp8"}, r"the nearest is 32\."),
        ({"K": [64, 65], "precision": "nvfp4"}, r"K = 65 is no multiple of 16"),
        ({"N": 100, "recipe": "fp8_block128", "training": True}, "N = 100 is no multiple of 128"),
        ({"M": 7, "recipe": "mxfp8", "training": True}, "M = 7 is no multiple of 32"),
        ({"recipe": "int8", "training": True}, "for inference, not for training"),
        ({"precision": "fp8", "fused": True}, "no pass that can be fused"),
        (
            {"recipe": "tensorwise", "fused": True, "constants": "torchao-0.18.0"},
            "'tensorwise' in inference has no pass that can be fused",
        ),
        ({"recipe": "int8", "fused": True, "training": True}, "for inference, not for training"),
        ({"precision": "fp8", "recipe": "mxfp8"}, "says the formats"),
        ({"constants": "torchao-0.18.0", "estimate": "bound"}, "those of a roofline"),
        ({"backend": "vllm"}, "chooses measured kernels"),
        ({"activations": "on-chip", "estimate": "bound"}, "for the plain roofline"),
        ({"groups": [1, 2]}, "M=None"),
        ({"M": None, "groups": [0]}, "at least one product"),
        ({"M": None, "groups": [1, 2], "batch": 2}, "not both"),
        ({"M": None, "groups": [1], "estimate": "calibrated"}, "no grouped product was measured"),
        ({"N": [64, 128, 192], "K": [64, 128]}, r"don't broadcast.*N \(3,\), K \(2,\)"),
        ({"training": "yes"}, "True or False"),
    ],
)
def test_what_can_not_be_asked_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        _ = Engine.gemm(**{"M": 64, "N": 64, "K": 64, "hardware": "B200", **asked}).shape


def test_rows_of_inference_need_no_whole_blocks() -> None:
    assert Engine.gemm(7, 4096, 4096, hardware="B200", recipe="mxfp8").value("latency") > 0


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({"recipe": "mxfp8", "hardware": "H100"}, UnsupportedPrecisionError, "Hopper.*no units"),
        ({"recipe": "fp8_rowwise", "hardware": "A100"}, UnsupportedPrecisionError,
         "'fp8_rowwise' multiplies in fp8: .*has no fp8 peak"),
        ({"precision": "fp8", "hardware": "V100"}, UnsupportedPrecisionError, "no fp8"),
        ({"recipe": "mxfp9"}, UnknownNameError, "Did you mean 'mxfp8'"),
        ({"recipe": "rowwise"}, UnknownNameError, "with constants="),
        ({"recipe": "fp8_rowwise", "constants": "torchao-0.18.0"}, UnknownNameError,
         "without constants="),
        ({"precision": "mxfp8"}, UnknownNameError, "It is a recipe"),
        ({"constants": "torchao"}, UnknownNameError, "torchao-0.18.0"),
        ({"constants": "torchao-0.18.0", "hardware": "T4"}, NotMeasuredError, "there is no"),
        ({"recipe": "mxfp8", "estimate": "calibrated"}, NotMeasuredError, "no kernels of this"),
        ({"hardware": "MI300X", "estimate": "calibrated"}, NotMeasuredError, "no product kernels"),
        ({"estimate": "calibrated", "backend": "triton"}, UnknownNameError, "trtllm"),
        ({"activations": "cache"}, UnknownNameError, "on-chip"),
        ({"weight_bytes": "1 GB"}, UnknownNameError, "weight_bytes"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(asked: dict[str, Any], kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        Engine.gemm(**{"M": 64, "N": 64, "K": 64, "hardware": "B200", **asked})


def test_a_missing_side_is_named() -> None:
    with pytest.raises(InvalidValueError, match="K is missing"):
        Engine.gemm(64, 64, hardware="H100")


@pytest.mark.parametrize("key", recipes())
def test_every_recipe_runs_where_its_units_are(key: str) -> None:
    for phase in recipes()[key].phases:
        for fused in {False, recipes()[key].fuses(phase)}:
            found = Engine.gemm(
                1024, 1024, 1024, hardware="B200", recipe=key, training=phase == "training",
                fused=fused,
            )  # fmt: skip
            assert 0 < found.value("latency") < 1e-3
            assert found.value("latency") == pytest.approx(
                sum(each["operator_time"] for each in found.kernels)
            )


def test_fusing_never_costs() -> None:
    for key, each in recipes().items():
        for phase in (name for name in each.phases if each.fuses(name)):
            asked: dict[str, Any] = {"recipe": key, "training": phase == "training"}
            apart, fused = (
                Engine.gemm(2048, 1024, 4096, hardware="B200", fused=on, **asked).value("latency")
                for on in (False, True)
            )
            assert fused < apart, key


def test_from_which_size_on() -> None:
    """Where arithmetic limits: outputs above 3 bytes over the bandwidth, by the saving a point."""
    layer = Engine.gemm(8192, 4096, 4096, hardware="H100", recipe="fp8_rowwise")
    saving = 2 * (1 / 989e12 - 1 / 1979e12)
    expected = 3 / (3.35e12 * saving)
    value = layer.break_even().value
    assert value == pytest.approx(expected)
    assert (value.name, value.text) == ("break even outputs", "885")
    assert "[@pytorch2026roofline]" in value.origin.how
    assert value.origin.note[0].startswith("break_even_outputs = 885.2 — a linear layer")
    # Scales of rows move a little too.
    assert layer.find("N") == pytest.approx(expected, abs=2)
    at = layer.find("N")
    around = Engine.gemm(
        8192, [at - 1, at], 4096, hardware="H100", recipe="fp8_rowwise"
    ).format_speedup
    assert around[0] < 1 <= around[1]


def test_a_cube_in_training_has_a_break_even_too() -> None:
    layer = Engine.gemm(4096, 4096, 4096, hardware="H100", recipe="fp8_rowwise", training=True)
    saving = 3 * 2 * (1 / 989e12 - 1 / 1979e12)
    assert layer.break_even().value == pytest.approx((8 + 10 + 8) / (3.35e12 * saving))
    assert layer.find("size") == pytest.approx(float(layer.break_even().value), rel=2e-3)
    rows = layer.break_even().rows
    around = Engine.gemm([int(rows * 0.99), int(rows * 1.01)], 4096, 4096, hardware="H100",
                         recipe="fp8_rowwise", training=True).format_speedup  # fmt: skip
    assert around[0] < 1 < around[1]


def test_what_never_pays_says_so() -> None:
    small = Engine.gemm(8192, 256, 4096, hardware="H100", recipe="fp8_rowwise", training=True)
    with pytest.raises(UnreachableError, match=r"format_speedup is .* at M = 65,536, below 1"):
        small.find("M")
    assert small.break_even().rows < 0
    with pytest.raises(UnreachableError, match="no faster peak"):
        Engine.gemm(64, 64, 128, hardware="B200", recipe="int4_weights").break_even()
    with pytest.raises(UnreachableError, match="no pass to pay for"):
        Engine.gemm(64, 64, 64, hardware="B200", precision="fp8").break_even()
    with pytest.raises(UnreachableError, match="formula is one of the roofline"):
        Engine.gemm(64, 64, 64, hardware="B200", recipe="nvfp4", estimate="bound").break_even()
    with pytest.raises(UnknownNameError, match="side to vary"):
        small.find("batch")


def test_symbols_numbers_and_arrays_are_one() -> None:
    sympy = pytest.importorskip("sympy")
    m, n, k = sympy.symbols("M N K", positive=True)
    for asked in (
        {"recipe": "rowwise", "training": True, "constants": "torchao-0.18.0"},
        {"recipe": "mxfp8_cublas", "constants": "torchao-0.18.0"},
        {"recipe": "fp8_tensorwise", "training": True, "fused": True},
        {"precision": "fp8", "estimate": "bound"},
    ):
        found = Engine.gemm(1023, 511, 257, hardware="H100", **asked)
        drawn = found.expression()
        assert drawn.free_symbols == {m, n, k}
        value = float(drawn.subs({m: 1023, n: 511, k: 257}))
        assert value == pytest.approx(found.value("latency"), rel=1e-12)
    with pytest.raises(InvalidValueError, match="no formula"):
        Engine.gemm(64, 64, 64, hardware="H100", estimate="calibrated").expression()


def test_sensitivity_of_a_product_that_arithmetic_limits() -> None:
    table = Engine.gemm(8192, 8192, 8192, hardware="H100").sensitivity().set_index("input")
    assert table.elasticity["peak_flops"] == pytest.approx(-1)
    assert table.elasticity["layer_rows"] == pytest.approx(1)
    assert table.elasticity["memory_bandwidth"] == 0


def test_formats_side_by_side_are_those_asked_one_by_one() -> None:
    for asked in (
        {},
        {"training": True, "fused": True},
        {"estimate": "calibrated"},
        {"training": True, "constants": "torchao-0.18.0"},
    ):
        several = Engine.compare_formats([512, 8192], 1024, 4096, hardware="B200", **asked)
        shelf = "torchao" if "constants" in asked else ""
        for row, name in enumerate(several.formats):
            there = recipes(shelf).get(name)
            alone = Engine.gemm(
                [512, 8192], 1024, 4096, hardware="B200",
                **{"precision": name} if there is None else {"recipe": name},
                **{**asked, "fused": asked.get("fused", False) and bool(
                    there and there.fuses("training" if asked.get("training") else "inference"))},
            )  # fmt: skip
            assert several.latency[row] == pytest.approx(alone.value("latency"))
            assert several.speedup[row] == pytest.approx(alone.format_speedup)
    assert set(several.best) <= set(several.formats)


def test_formats_that_can_not_run_are_left_out_with_the_reason() -> None:
    found = Engine.compare_formats(512, 1024, 4096, hardware="H100")
    assert "no units" in found.left_out["mxfp8"]
    assert list(found.table().latency) == sorted(found.table().latency)
    with pytest.raises(UnsupportedPrecisionError, match="no units"):
        Engine.compare_formats(512, 1024, 4096, hardware="H100", formats=["bf16", "mxfp8"])
    with pytest.raises(InvalidValueError, match="table is of one layer"):
        Engine.compare_formats([1, 2], 1024, 4096, hardware="H100").table()


def test_no_measured_product_beats_the_bound() -> None:
    """A last cache may hold operands from the run before, which the bound allows for."""
    from mlsim.measured.shelf import shelf

    for name in ("A100", "H100", "B200", "L40S"):
        device = getattr(Hardware.Cloud, name)
        for path in ("bf16", "fp8", "fp4"):
            rows = [
                each for each in shelf(device.key) if each.kind == "product" and each.path == path
            ]
            if not rows:
                continue
            sides = zip(*(each.shape for each in rows), strict=True)
            bound = Engine.gemm(
                *map(list, sides), hardware=device, precision=path, estimate="bound",
                check_memory=False,
            ).value("latency")  # fmt: skip
            measured = np.array([each.seconds for each in rows])
            assert (bound <= measured * 1.02).all(), (name, path)
