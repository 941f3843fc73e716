"""A layer by measured kernels, and by the constants of PyTorch, whose answers all come out."""

from __future__ import annotations

import csv
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlsim import Engine, Hardware
from mlsim.hardware.kernel_constants import kernel_series
from mlsim.hardware.kernel_times import PATHS, Rates, product_time
from mlsim.hardware.lone_kernels import fastest, series_of
from mlsim.hardware.named_constants import constants
from mlsim.measured import measured_formats
from mlsim.measured.surfaces import shelf

SHAPES = ((1, 64, 129, 4096, 37), (4096, 28672, 51200, 4096, 256), (4096, 8192, 8192, 4096, 512))


def times(*sides: Any, hardware: Any = "H100", **asked: Any) -> Any:
    found = Engine.gemm(*sides, hardware=hardware, estimate="calibrated", **asked)
    return found.value("latency")


def test_times_are_those_of_the_atlas_and_the_fastest_is_the_least_of_all_backends() -> None:
    device = Hardware.Cloud.H100
    for path in ("bf16", "fp8"):
        each = []
        for engine in ("trtllm", "vllm", "sglang"):
            series = kernel_series(device.key, "product", path, engine)
            rates = Rates(device.compute.figure(path).si, device.bandwidth_si, series.cores)
            each.append(times(*SHAPES, precision=path, backend=engine))
            atlas = [
                product_time(*map(float, sides), path=PATHS[path], rates=rates, c=series.values)
                for sides in zip(*SHAPES, strict=True)
            ]
            assert each[-1] == pytest.approx(atlas, rel=1e-12), (path, engine)
        least = np.min(each, axis=0)
        assert times(*SHAPES, precision=path) == pytest.approx(least, rel=1e-12)
        alone = [times(*sides, precision=path) for sides in zip(*SHAPES, strict=True)]
        assert alone == pytest.approx(least, rel=1e-12)


def test_a_backend_counts_only_on_sides_that_it_was_timed_with() -> None:
    """Of three backends with FP4, one alone ran products of fewer than 128 outputs."""
    device = Hardware.Cloud.B200
    assert len(series_of(device, "fp4")) == 3
    assert "vllm" in fastest(device, "fp4", 4096.0, 64.0, 4096.0, products=1.0).words
    asked: dict[str, Any] = {"hardware": device, "precision": "nvfp4"}
    narrow, own = (times(4096, 64, 4096, **asked, **each) for each in ({}, {"backend": "vllm"}))
    assert narrow == own
    found = Engine.gemm(64, 64, 64, estimate="calibrated", backend="vllm", **asked)
    assert "calibrated vllm" in str(found)
    assert "fp4" in found.explain("latency").to_json()


def test_it_is_near_what_was_measured() -> None:
    """Rows of kernels that were not fitted."""
    held = [
        row
        for row in shelf("Cloud.H100")
        if (row.kind, row.path, row.engine) == ("product", "fp8", "trtllm") and not row.fitted
    ]
    sides = map(list, zip(*(row.shape for row in held), strict=True))
    said = times(*sides, backend="trtllm", precision="fp8", check_memory=False)
    seen = np.array([row.seconds for row in held])
    assert np.median(np.abs(said / seen - 1)) < 0.05


def test_no_measured_product_beats_the_bound() -> None:
    """A last cache may hold operands from the run before, which the bound allows for."""
    for name, path in product(("H100", "B200"), ("bf16", "fp8", "fp4")):
        key = f"Cloud.{name}"
        rows = [each for each in shelf(key) if (each.kind, each.path) == ("product", path)]
        if rows:
            sides = map(list, zip(*(each.shape for each in rows), strict=True))
            asked: dict[str, Any] = {"precision": path, "estimate": "bound", "check_memory": False}
            bound = Engine.gemm(*sides, hardware=key, **asked).value("latency")
            assert (bound <= 1.02 * np.array([each.seconds for each in rows])).all(), (key, path)


def test_it_names_the_fastest_format() -> None:
    """Where the fastest leads by a tenth; "always the lowest" is right on less than half."""
    for key, names, least in (
        ("Cloud.H100", ("bf16", "fp8"), 0.94),
        ("Cloud.B200", ("bf16", "fp8", "fp4"), 0.96),
    ):
        rows = measured_formats(key)
        sides = ([getattr(row, side) for row in rows] for side in ("rows", "outputs", "depth"))
        said = Engine.compare_formats(*sides, hardware=key, formats=names, estimate="calibrated")
        seen = np.array([[row.seconds[name] for row in rows] for name in names])
        first, second = np.sort(seen, axis=0)[:2]
        leads, best = second / first >= 1.1, seen.argmin(axis=0)
        assert (said.latency.argmin(axis=0) == best)[leads].mean() >= least
        assert (best == len(names) - 1)[leads].mean() < 0.5


def test_training_prices_passes_apart_and_inference_has_them_in_the_product() -> None:
    """FP8 with a scale for each row: three products and seven passes, all started as in 16 bits.

    A pass is a start and its bytes at the rate of streams. A product has the start of one that
    casts nothing, since its casts stand apart: 2.528 us in place of 4.845 us.
    """
    asked: dict[str, Any] = {"hardware": "H100", "recipe": "fp8_rowwise", "backend": "trtllm"}
    layer = Engine.gemm(8192, 4096, 4096, training=True, estimate="calibrated", **asked)
    stream = kernel_series("Cloud.H100", "product", "bf16", "trtllm").values
    start, rate = stream["kernel_overhead"], 3.35e12 * stream["memory_fraction"]
    assert start == 2.528e-6
    products, passes = layer.kernels[:3], layer.kernels[3:]
    assert len(passes) == 7
    moved = [each["bytes_moved"] for each in passes]
    rows, columns = 8192 * 4096, 4096 * 4096
    scales = [4 * 8192, 4 * 4096]
    assert moved == [
        *(5 * rows + scales[0], 3 * rows + scales[1]),
        *(3 * columns + scales[1], 4 * columns, 3 * columns + scales[1]),
        *(5 * rows + scales[0], 3 * rows + scales[1]),
    ]
    for each in passes:
        assert each["operator_time"] == pytest.approx(start + each["bytes_moved"] / rate)
    for each in products:
        both = (each["compute_time"] ** 4 + each["memory_time"] ** 4) ** 0.25
        assert each["operator_time"] == pytest.approx(start + both)
    assert layer.value("casts_time") == pytest.approx(7 * start + sum(moved) / rate)
    # What means nothing of a pass is neutral in its columns: no part lost, saved or added.
    columns_of = layer.question.table.columns
    neutral = {"last_round_share": 1, "depth_start": 0, "split_start": 0, "resident_bytes": 1}
    neutral |= {"cache_speedup": 1, "compute_fraction": 1, "quantized_element_bytes": 0}
    assert {name: columns_of[name][3] for name in neutral} == neutral
    # Where nobody timed a start, there is none.
    served = Engine.gemm(8192, 4096, 4096, estimate="calibrated", **asked)
    assert served.value("casts_time") == 0
    own = kernel_series("Cloud.H100", "product", "fp8", "trtllm").values["kernel_overhead"]
    assert served.question.table.columns["kernel_overhead"] == [own, start]
    origins = {each["quantity"]: each["origin"] for each in served.explain().to_dict()["inputs"]}
    assert "off by" in origins["compute_fraction"]
    assert origins["kernel_overhead"] == "of the kernels that compute_fraction names"


ROWS = Path(__file__).parents[3] / "fixtures" / "torchao_rows.csv"
NAMES = ("torchao-0.18.0", "torchao-early")
DEVICES = {each.called: each.device for name in NAMES for each in constants(name).devices.values()}
COLUMNS = ("baseline_time", "products_time", "casts_time", "format_speedup")
FORMATS = {"bfloat16": "bf16", "float8_e4m3fn": "fp8", "float4_e2m1fn_x2": "fp4"}
BYTES_A_SECOND, FLOPS_A_SECOND = 2.4e12 * 0.92, 1979e12 * 0.78


def test_every_answer_of_pytorch_comes_out() -> None:
    """Two shapes of each device, recipe and pass, to nine digits, in every column there is."""
    groups = defaultdict(list)
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            groups[tuple(row.values())[:6]].append(row)
    assert len(groups) > 170
    for (name, gpu, recipe, dtype, fused, phase), rows in groups.items():
        found = Engine.gemm(
            *([int(row[side]) for row in rows] for side in "MNK"),
            hardware=DEVICES[gpu],
            recipe=recipe or None,
            precision=None if recipe else FORMATS[dtype],
            training=phase == "training",
            fused=fused == "1",
            constants=name,
        )
        for column in COLUMNS:
            if rows[0][column]:
                expected = [float(row[column]) for row in rows]
                said = found.value(column)
                assert said == pytest.approx(expected, rel=1e-9), (gpu, recipe, column)


def test_a_copied_constant_of_pytorch_says_so() -> None:
    share = constants(NAMES[0]).of("Cloud.MI300X").by_name("compute_fraction")
    assert share == 0.78
    assert "copied from the H100, not measured" in share.origin.brief
