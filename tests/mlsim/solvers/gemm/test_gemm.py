"""One linear layer by the roofline: worked by hand, what must hold, and what is refused."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import kept
import numpy as np
import pytest
from own_chips import chip
from refusals import answered

from mlsim import Engine, Hardware
from mlsim.errors import (
    DoesNotFitError,
    InvalidValueError,
    UnknownNameError,
    UnsupportedPrecisionError,
)
from mlsim.solvers import arrays
from mlsim.solvers.gemm.gemm import Gemm
from mlsim.workloads.recipes import recipes

PEAKS = {"bf16": "100 TFLOP/s", "fp8": "200 TFLOP/s", "fp4": "400 TFLOP/s"}
CHIP = chip("Chip", capacity="64 GB", **PEAKS)
PRINTED = kept.blocks("gemms.txt")
PYTORCH = "torchao-0.18.0"


def gemm(*sides: Any, hardware: Any = CHIP, **asked: Any) -> Gemm:
    found: Gemm = Engine.gemm(*sides, hardware=hardware, **asked)
    return found


def values(found: Gemm, *names: str) -> list[Any]:
    return [found.value(name) for name in names]


def written(found: Gemm) -> list[str]:
    """Return the lines of an answer, words with one space between them."""
    return [" ".join(line.split()) for line in str(found).splitlines()]


def test_a_product_worked_by_hand() -> None:
    """2 x 1000 x 2000 x 500 operations; 2 bytes of 0.5, 1 and 2 million numbers."""
    found = gemm(1000, 2000, 500)
    assert values(found, "total_flops", "total_bytes", "memory_required") == [2e9, 7e6, 7e6]
    assert values(found, "compute_time", "memory_time") == [[2e-5], [7e-6]]
    assert found.value("memory_free") == 64e9 - 7e6
    assert found.value("network_intensity") == pytest.approx(2e9 / 7e6)
    assert values(found, "latency", "baseline_time", "format_speedup") == [2e-5, 2e-5, 1]
    assert values(found, *(f"{each}_limited_share" for each in ("compute", "memory", "start"))) == [
        *(1, 0, 0)
    ]
    assert found.value("achieved_flops") == pytest.approx(1e14)
    (kernel,) = found.kernels
    assert (kernel["name"], kernel["operator_time"]) == ("forward", 2e-5)
    assert str(found).splitlines() == PRINTED["one"]


def test_a_step_of_training_worked_by_hand() -> None:
    """FP8 with a scale for each row, fused: three products, and seven passes between formats.

    A product is 2 x 700 x 2000 x 512 operations at 200 TFLOP/s, 7.168 us. A pass is its bytes:
    where the operator before writes the number, a pass reads nothing.
    """
    found = gemm(700, 2000, 512, recipe="fp8_rowwise", training=True, fused=True)
    assert found.value("products_time") == pytest.approx(3 * 7.168e-6)
    # Inputs: 3 + 3 bytes; weights: 3 + 4 + 3; gradients: 3 + 3. Scales: 4 bytes for a row.
    numbers = 6 * 700 * 512 + 10 * 2000 * 512 + 6 * 700 * 2000
    scales = 4 * (2 * (700 + 512 + 2000))
    assert found.value("casts_time") == pytest.approx((numbers + scales) / 1e12)
    assert found.value("latency") == pytest.approx(21.504e-6 + 20.816096e-6)
    assert found.value("format_speedup") == pytest.approx(43.008 / 42.320096)
    assert str(found).splitlines()[0].endswith("a scale for each row, training, fused, roofline")
    assert "  of which    21.5 µs products, 20.82 µs passes between formats" in str(found)
    assert "  in bf16     43.01 µs: 1.02 times as long" in str(found)
    assert "Compute Bound (time limited by arithmetic 51%, memory 49%)" in str(found)
    # In 16 bits it has no pass, so that none is fused; three products move the same bytes each.
    base = found.baseline
    assert (base.layer.fused, base.layer.precision, base.layer.recipe) == (False, "bf16", None)
    for name in ("total_flops", "total_bytes", "latency"):
        assert base.value(name) == pytest.approx(3 * gemm(700, 2000, 512).value(name))
    assert base.value("memory_required") == 2 * (700 * 512 + 512 * 2000 + 700 * 2000)


def test_numbers_of_eight_bits_and_scales_of_blocks_are_counted() -> None:
    """FP8 reads half and writes as much; blocks have a byte for each 16 numbers that are read."""
    (kernel,) = gemm(1000, 2000, 500, precision="fp8").kernels
    names = ("input_bytes", "layer_weight_bytes", "output_bytes", "scale_bytes")
    assert [kernel[each] for each in names] == [500_000, 1_000_000, 4_000_000, 0]
    (kernel,) = gemm(64, 128, 256, precision="nvfp4").kernels
    assert kernel["scale_bytes"] == (64 * 256 + 256 * 128) / 16
    rowwise = gemm(64, 128, 256, recipe="fp8_rowwise").kernels
    assert [each["scale_bytes"] for each in rowwise] == [4 * (64 + 128), 4 * 64]


def test_a_bound_has_the_bytes_beyond_a_cache_and_none_of_a_device_whose_cache_is_unknown() -> None:
    """On an H100 6 x 8192**2 bytes less 50 MiB at 3.35 TB/s; a cache nobody counted keeps all."""
    layer = gemm(8192, 8192, 8192, hardware="H100", estimate="bound", peak_flops="1e9 TFLOP/s")
    assert layer.value("latency") == pytest.approx((6 * 8192**2 - 50 * 2**20) / 3.35e12)
    unknown = gemm(1, 1000, 1000, estimate="bound")
    assert values(unknown, "memory_time", "latency") == [[0.0], pytest.approx(2e6 / 1e14)]
    assert "unknown, so nothing is sure to move" in str(unknown.explain())


def test_arrays_equal_points_and_broadcast_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    m, n, k = [64, 512, 8192], [128, 4096], 256
    for estimate in ("roofline", "calibrated", "bound"):
        asked: dict[str, Any] = {"hardware": "H100", "precision": "fp8", "estimate": estimate}
        whole = gemm(np.array(m)[:, None], n, k, **asked)
        with monkeypatch.context() as patch:
            patch.setattr(arrays, "BLOCK", 4)  # four points, and then the last two
            parts = gemm(np.array(m)[:, None], n, k, **asked)
            parts.value("latency")
        assert whole.shape == (3, 2)
        for row, column in np.ndindex(3, 2):
            alone = gemm(m[row], n[column], k, **asked)
            for name, found in product(
                ("latency", "format_speedup", "memory_time"), (whole, parts)
            ):
                said = found.value(name)[..., row, column]
                assert said == pytest.approx(alone.value(name), rel=1e-12)
            assert whole[row, column].value("latency") == alone.value("latency")
            assert whole.bottleneck[row, column] == alone.bottleneck


def test_a_batch_is_as_many_products_each_with_its_weights() -> None:
    one, many = (gemm(256, 512, 128, batch=each) for each in (1, 8))
    for name in ("total_flops", "total_bytes", "latency"):
        assert many.value(name) == pytest.approx(8 * one.value(name))
    assert "K=128, 8 sets of weights" in str(many)
    large = gemm(8 * 256, 512, 128)
    assert many.value("total_bytes") - large.value("total_bytes") == 7 * 2 * 512 * 128
    # Of groups, those with rows read their weights.
    grouped = gemm(None, 512, 128, groups=[100, 0, 28])
    assert grouped.value("total_flops") == 2 * 128 * 512 * 128
    assert grouped.value("total_bytes") == 2 * (128 * 128 + 2 * 128 * 512 + 128 * 512)


def test_a_cache_keeps_activations_that_fit() -> None:
    small, large = (
        [
            gemm(rows, 1024, 1024, hardware="H100", activations=where).value("total_bytes")
            for where in ("memory", "on-chip")
        ]
        for rows in (512, 65536)
    )
    assert small == [2 * (512 * 1024 * 2 + 1024**2), 2 * 1024**2]
    assert large[0] == large[1]


def test_what_is_given_takes_the_place_of_data() -> None:
    """Half of the peak, half of the bandwidth; and a start that is longer than both."""
    slow = gemm(4096, 4096, 4096, hardware="H100", precision="fp8", peak_flops="1 PFLOP/s")
    assert slow.value("latency") == pytest.approx(2 * 4096**3 / 1e15)
    # The baseline keeps its own peak.
    assert slow.value("baseline_time") == pytest.approx(2 * 4096**3 / 989e12)
    asked: dict[str, Any] = {"M": 64, "N": 4096, "K": 4096, "hardware": "H100"}
    whole = gemm(**asked).value("latency")
    assert gemm(**asked, memory_fraction=0.5).value("latency") == pytest.approx(2 * whole)
    assert gemm(**asked, compute_fraction=0.5).value("latency") == pytest.approx(whole)
    assert gemm(**asked, kernel_overhead="1 ms").value("latency") == pytest.approx(1e-3)


def test_a_device_without_sixteen_bits_has_no_speedup() -> None:
    eight = chip(capacity="1 GB", fp8="1 TFLOP/s")
    found = gemm(64, 64, 64, hardware=eight, precision="fp8")
    assert not {"format_speedup", "baseline_time"} & set(found.names)
    assert "  in " not in str(found)
    rows = written(gemm([64, 2**16], 64, 2**16, hardware=eight, precision="fp8"))
    assert rows[2:] == [
        "64 64 65,536 536.9 µs - Compute Bound",
        "65,536 64 65,536 - - Does Not Fit",
    ]
    with pytest.raises(UnknownNameError, match="format_speedup"):
        _ = found.format_speedup
    with pytest.raises(UnsupportedPrecisionError, match="no peak in 16 bits on record"):
        _ = found.baseline


def test_the_explanation_has_every_step_and_no_baseline() -> None:
    found = gemm(4096, 4096, 4096, hardware="H100", precision="fp8").explain().to_dict()
    assert found["value"] == pytest.approx(2 * 4096**3 / 1979e12)
    assert [each["name"] for each in found["operators"]] == ["forward"]
    origins = {each["quantity"]: each["origin"] for each in found["inputs"]}
    assert origins["kernel_overhead"] == "not counted: a roofline has no launches"
    assert origins["scale_bytes"] == "no number of this layer has a scale that counts"
    speedup = gemm(64, 64, 64, hardware="H100", precision="fp8").explain("format_speedup")
    assert len(speedup.to_dict()["operators"]) == 2


def test_json_is_whole_and_many_layers_are_a_table() -> None:
    """On a B200 at 8 TB/s: N x K in half a byte and scales, and the rest by rows."""
    found = gemm(512, 1024, 2048, hardware="B200", recipe="nvfp4").to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["kernels"][0]["name"] == "forward"
    assert found["bottleneck"] == "Memory Bound"
    assert (found["recipe"], found["fused"]) == ("nvfp4", False)
    sides = ([512, 64, 2 * 10**6], [1024, 1024, 10**6], 2048)
    many = gemm(*sides, hardware="B200", recipe="nvfp4")
    data = many.to_dict()
    assert data["latency"]["value"][2] is None
    assert "kernels" not in data
    assert written(many)[1:] == PRINTED["several"]
    assert (many.value("format_speedup")[:2].round(2)).tolist() == [0.97, 2.31]


def test_sides_are_whole_numbers() -> None:
    bad = (0, -1, 2.5, float("nan"), float("inf"), "8", None, [], [4, 0])
    for side in ("M", "N", "K"):
        for value in bad:
            with pytest.raises(InvalidValueError, match=rf"\b{side}\b|entry 1 of 2"):
                gemm(**{"M": 64, "N": 64, "K": 64, side: value})
    assert gemm(2**31 - 1, 1, 1).layer.rows == 2**31 - 1


def test_a_layer_too_large_says_by_how_much() -> None:
    large = gemm(2 * 10**6, 2 * 10**6, 10**6, hardware="H100", batch=2)
    assert not large.feasible
    # 2 x (2 x 2e12 in and out each, 2e12 weights twice): 16 + 8 + 8 TB.
    words = r"of M=4,000,000, N=2,000,000, K=1,000,000, 2 sets of weights take 29.1 TiB"
    with pytest.raises(DoesNotFitError, match=words):
        _ = large.latency
    data = large.to_dict()
    assert (data["bottleneck"], data["latency"]["value"], "kernels" in data) == (None, None, False)
    assert "time " not in str(large)


def test_what_can_not_be_asked_is_refused() -> None:
    def ask(**asked: Any) -> Any:
        return Engine.gemm(**{"M": 64, "N": 64, "K": 64, "hardware": "B200", **asked}).shape

    assert answered(ask, "gemm") == []
    # Rows of inference need no whole blocks: 2 x 7 x 4096 x 4096 take less than their bytes.
    seven = gemm(7, 4096, 4096, hardware="B200", recipe="mxfp8").value("products_time")
    moved = 33 / 32 * (7 * 4096 + 4096**2) + 2 * 7 * 4096
    assert seven == pytest.approx(moved / Hardware.Cloud.B200.bandwidth_si)


def test_every_recipe_runs_and_fusing_never_costs() -> None:
    """Not below its products without a cache's bytes; twice as long as in 16 bits never, at 1024."""
    sides = (1024, 1024, 1024)
    for key, recipe in recipes().items():
        for phase in recipe.phases:
            asked = {"hardware": "B200", "recipe": key, "training": phase == "training"}
            apart = gemm(*sides, **asked)
            least = gemm(*sides, **asked, estimate="bound", check_memory=False).value("latency")
            base = apart.value("baseline_time")
            assert least <= apart.value("latency") < 2 * base, key
            assert apart.value("latency") == pytest.approx(
                sum(each["operator_time"] for each in apart.kernels)
            )
            if recipe.fuses(phase):
                fused = gemm(*sides, **asked, fused=True).value("latency")
                assert least < fused < apart.value("latency"), key


def test_from_which_size_on() -> None:
    """Where arithmetic limits: outputs above 3 bytes over the bandwidth, by the saving a point."""
    layer = gemm(8192, 4096, 4096, hardware="H100", recipe="fp8_rowwise")
    saving = 2 * (1 / 989e12 - 1 / 1979e12)
    expected = 3 / (3.35e12 * saving)
    value = layer.break_even().value
    assert value == pytest.approx(expected)
    assert (value.name, value.text) == ("break even outputs", "885")
    assert "[@pytorch2026roofline]" in value.origin.how
    assert value.origin.note[0].startswith("break_even_outputs = 885.2 — a linear layer")
    # Scales of rows move a little too.
    at = layer.find("N")
    assert at == pytest.approx(expected, abs=2)
    around = gemm(8192, [at - 1, at], 4096, hardware="H100", recipe="fp8_rowwise").format_speedup
    assert around[0] < 1 <= around[1]
    # With PyTorch's parts of both rates, 0.92 and 0.78: as many times as large.
    named = gemm(700, 2000, 512, hardware="H100", recipe="rowwise", constants=PYTORCH).break_even()
    peaks = 2 / 0.78 * (1 / 989e12 - 1 / 1979e12)
    assert named.value == pytest.approx(3 / (2.4e12 * 0.92 * peaks))
    assert repr(named).startswith("<BreakEven break_even_outputs = 1,048: FP8 with a scale")
    # Blocks of 32: only their multiples are tried. And what holds at once holds from the first.
    blocks = gemm(8192, 4096, 4096, hardware="B200", recipe="mxfp8", training=True)
    assert blocks.find("size") % 32 == 0 < blocks.find("size")
    assert blocks.find("K", "total_flops", "1 FLOP") == 32
    assert layer.find("N", "total_flops", "1 FLOP") == 1
    assert layer.find("N", "total_flops", f"{2 * 8192 * 4096 * 5} FLOP") == 5


def test_a_cube_in_training_has_a_break_even_too() -> None:
    layer = gemm(4096, 4096, 4096, hardware="H100", recipe="fp8_rowwise", training=True)
    saving = 3 * 2 * (1 / 989e12 - 1 / 1979e12)
    assert layer.break_even().value == pytest.approx((8 + 10 + 8) / (3.35e12 * saving))
    assert layer.find("size") == pytest.approx(float(layer.break_even().value), rel=2e-3)
    small = gemm(8192, 256, 4096, hardware="H100", recipe="fp8_rowwise", training=True)
    assert small.break_even().rows < 0


def test_what_never_pays_says_so() -> None:
    def ask(
        vary: str = "", target: str = "format_speedup", rows: bool = False, **asked: Any
    ) -> Any:
        layer = gemm(**{"M": 64, "N": 64, "K": 64, "hardware": "B200", **asked})
        if vary:
            return layer.find(vary, target)
        return layer.break_even().rows if rows else layer.break_even()

    assert answered(ask, "gemm", "never") == []


def test_symbols_numbers_and_arrays_are_one() -> None:
    sympy = pytest.importorskip("sympy")
    m, n, k = sympy.symbols("M N K", positive=True)
    for asked in (
        {"recipe": "rowwise", "training": True, "constants": PYTORCH},
        {"precision": "fp8", "estimate": "bound"},
    ):
        found = gemm(1023, 511, 257, hardware="H100", **asked)
        drawn = found.expression()
        assert drawn.free_symbols == {m, n, k}
        value = float(drawn.subs({m: 1023, n: 511, k: 257}))
        assert value == pytest.approx(found.value("latency"), rel=1e-12)
    with pytest.raises(InvalidValueError, match="no formula"):
        gemm(64, 64, 64, hardware="H100", estimate="calibrated").expression()


def test_sensitivity_of_a_product() -> None:
    """Where arithmetic limits: as work over its rate, and in no way as memory. And of starts."""
    table = gemm(8192, 8192, 8192, hardware="H100").sensitivity().set_index("input").elasticity
    ones = dict.fromkeys(("layer_rows", "layer_outputs", "layer_inputs"), pytest.approx(1))
    less = dict.fromkeys(("peak_flops", "compute_fraction"), pytest.approx(-1))
    memory = ("memory_bandwidth", "memory_capacity", "memory_fraction", "last_level_cache")
    assert dict(table) == {**ones, **less, **dict.fromkeys(memory, 0)}
    started = gemm(64, 64, 64, hardware="H100", kernel_overhead="1 ms").sensitivity()
    assert dict(started.set_index("input").elasticity)["kernel_overhead"] == pytest.approx(1)


def test_formats_side_by_side_are_those_asked_one_by_one() -> None:
    for more in (
        {"training": True, "fused": True},
        {"estimate": "calibrated", "training": True, "hardware": "H100"},
        {"constants": PYTORCH},
    ):
        asked: dict[str, Any] = {"hardware": "B200", **more}
        several = Engine.compare_formats([512, 8192], 1024, 4096, **asked)
        shelf, phase = ("torchao" if "constants" in asked else ""), several.layers
        for row, name in enumerate(several.formats):
            there = recipes(shelf).get(name)
            fuses = bool(there and there.fuses(phase[name].phase)) and asked.get("fused", False)
            what = {"precision": name} if there is None else {"recipe": name}
            alone = gemm([512, 8192], 1024, 4096, **{**asked, "fused": fuses, **what})
            assert several.latency[row] == pytest.approx(alone.value("latency"))
            assert several.casts[row] == pytest.approx(alone.value("casts_time"))
            assert several.speedup[row] == pytest.approx(alone.format_speedup)
        fastest = several.latency.argmin(axis=0)
        assert list(several.best) == [several.formats[each] for each in fastest]


def test_formats_that_can_not_run_are_left_out_with_the_reason() -> None:
    found = Engine.compare_formats(512, 1024, 4096, hardware="H100")
    eight = ("fp8_block128", "fp8_rowwise", "fp8_tensorwise")
    assert found.formats == ("bf16", *eight, "int4_weights", "int8", "int8_weights")
    assert "no units" in found.left_out["mxfp8"]
    table = found.table()
    assert list(table.latency) == sorted(table.latency)
    assert list(table) == ["format", "latency", "casts_time", "format_speedup"]
    with pytest.raises(UnsupportedPrecisionError, match="no units"):
        Engine.compare_formats(512, 1024, 4096, hardware="H100", formats=["bf16", "mxfp8"])
    with pytest.raises(InvalidValueError, match="table is of one layer"):
        Engine.compare_formats([1, 2], 1024, 4096, hardware="H100").table()
