"""A layer by measured kernels: the atlas's times, the fastest backend, and the format that wins."""

from __future__ import annotations

import numpy as np
import pytest

from mlsim import Engine, Hardware
from mlsim.hardware.fastest_kernels import fastest, series_of
from mlsim.hardware.kernel_constants import kernel_series
from mlsim.hardware.kernel_times import PATHS, Rates, product_time
from mlsim.measured import measured_formats, measured_stairs
from mlsim.measured.shelf import shelf

SHAPES = [
    (1, 4096, 4096),
    (64, 28672, 8192),
    (129, 51200, 8192),
    (4096, 4096, 4096),
    (37, 256, 512),
]


@pytest.mark.parametrize("engine", ["trtllm", "vllm", "sglang"])
@pytest.mark.parametrize("path", ["bf16", "fp8"])
def test_times_are_those_of_the_atlas(path: str, engine: str) -> None:
    device = Hardware.Cloud.H100
    series = kernel_series(device.key, "product", path, engine)
    rates = Rates(device.compute.figure(path).si, device.bandwidth_si, series.cores)
    for shape in SHAPES:
        found = Engine.gemm(
            *shape, hardware=device, precision=path, estimate="calibrated", backend=engine
        )
        sides = map(float, shape)
        atlas = product_time(*sides, path=PATHS[path], rates=rates, c=series.values)
        assert found.value("latency") == pytest.approx(atlas, rel=1e-12)


def test_the_fastest_is_the_least_of_all_backends() -> None:
    m, n, k = np.array(SHAPES, dtype=float).T
    each = [
        Engine.gemm(m, n, k, hardware="B200", precision="nvfp4", estimate="calibrated",
                    backend=engine).value("latency")
        for engine in ("trtllm", "vllm", "sglang")
    ]  # fmt: skip
    found = Engine.gemm(m, n, k, hardware="B200", precision="nvfp4", estimate="calibrated")
    assert found.value("latency") == pytest.approx(np.min(each, axis=0), rel=1e-12)


def test_a_backend_counts_only_on_sides_that_it_was_timed_with() -> None:
    """Of three backends with FP4, one alone ran products of fewer than 128 outputs."""
    device = Hardware.Cloud.B200
    assert len(series_of(device, "fp4")) == 3
    assert "vllm" in fastest(device, "fp4", 4096.0, 64.0, 4096.0).words
    narrow = Engine.gemm(4096, 64, 4096, hardware=device, precision="nvfp4", estimate="calibrated")
    own = Engine.gemm(4096, 64, 4096, hardware=device, precision="nvfp4", estimate="calibrated",
                      backend="vllm")  # fmt: skip
    assert narrow.value("latency") == own.value("latency")


def test_it_has_the_measured_stairs() -> None:
    rows = [row for row in measured_stairs() if row.outputs == 51200]
    said = Engine.gemm([row.rows for row in rows], 51200, 8192, hardware="A100",
                       estimate="calibrated").value("latency")  # fmt: skip
    off = np.abs(said / [row.seconds["bf16"] for row in rows] - 1)
    assert np.median(off) < 0.15
    by_rows = dict(zip((row.rows for row in rows), said, strict=True))
    assert by_rows[129] > 1.3 * by_rows[128]


@pytest.mark.parametrize(
    ("key", "names", "least"),
    [("Cloud.H100", ("bf16", "fp8"), 0.94), ("Cloud.B200", ("bf16", "fp8", "fp4"), 0.96)],
)
def test_it_names_the_fastest_format(key: str, names: tuple[str, ...], least: float) -> None:
    """Where the fastest leads by a tenth; "always the lowest" is right on less than half."""
    rows = measured_formats(key)
    sides = ([getattr(row, side) for row in rows] for side in ("rows", "outputs", "depth"))
    said = Engine.compare_formats(*sides, hardware=key, formats=names, estimate="calibrated")
    seen = np.array([[row.seconds[name] for row in rows] for name in names])
    first, second = np.sort(seen, axis=0)[:2]
    leads = second / first >= 1.1
    best = seen.argmin(axis=0)
    assert (said.latency.argmin(axis=0) == best)[leads].mean() >= least
    assert (best == len(names) - 1)[leads].mean() < 0.5


def test_shelf_rows_that_were_not_fitted_are_near() -> None:
    rows = [
        row
        for row in shelf("Cloud.H100")
        if (row.kind, row.path, row.engine) == ("product", "fp8", "trtllm") and not row.fitted
    ]
    said = Engine.gemm(*zip(*(row.shape for row in rows), strict=True), hardware="H100",
                       precision="fp8", estimate="calibrated", backend="trtllm",
                       check_memory=False).value("latency")  # fmt: skip
    assert np.median(np.abs(said / [row.seconds for row in rows] - 1)) < 0.05


def test_a_batch_starts_once_and_fills_all_cores() -> None:
    one, many = (
        Engine.gemm(128, 128, 4096, hardware="H100", estimate="calibrated", batch=batch)
        for batch in (1, 128)
    )
    assert many.value("latency") < 32 * one.value("latency")


def test_training_prices_passes_apart_and_inference_has_them_in_the_product() -> None:
    layer = Engine.gemm(8192, 4096, 4096, hardware="H100", recipe="fp8_rowwise", training=True,
                        estimate="calibrated")  # fmt: skip
    assert layer.value("casts_time") > 0
    assert len(layer.kernels) == 10
    served = Engine.gemm(8192, 4096, 4096, hardware="H100", recipe="fp8_rowwise",
                         estimate="calibrated")  # fmt: skip
    assert served.value("casts_time") == 0
    assert served.explain().to_dict()["steps"]
    origins = {each["quantity"]: each["origin"] for each in served.explain().to_dict()["inputs"]}
    assert "off by" in origins["compute_fraction"]
