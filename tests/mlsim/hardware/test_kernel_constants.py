"""The constants of the atlas: plausible, whole, and as good as they say on the shelf's rows."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import median

import pytest

from mlsim import Hardware
from mlsim.errors import DataFileError, NotMeasuredError, UnknownNameError
from mlsim.hardware.kernel_constants import (
    FOLDER,
    all_series,
    kernel_series,
    measured_devices,
    read,
)
from mlsim.hardware.kernel_times import PATHS, Rates, product_time
from mlsim.measured.shelf import shelf
from mlsim.quantities import VOCABULARY

SERIES = tuple(all_series().values())
DEVICES = tuple(dict.fromkeys(each.device for each in SERIES))
# What a constant can be at all: a share, a start, a number that has its own meaning.
PLAUSIBLE = {
    "compute_fraction": (0.01, 1),
    "expert_tile": (1, 512),
    "elsewhere_share": (1e-3, 1),
    "scan_step_time": (1e-8, 2e-5),
    "memory_fraction": (0.2, 1),
    "kernel_overhead": (5e-7, 1.1e-4),
    "link_fraction": (0.01, 2),
    "link_latency": (1e-6, 1e-4),
    "peer_start": (1e-8, 3e-5),
    "own_steps": (0.01, 10),
    "ramp_start": (1e-7, 3e-4),
    "ramp_bytes": (1e3, 1e8),
    "direct_fraction": (0.01, 2),
    "exponential_time": (1e-16, 1e-11),
    "cache_passes": (1e-2, 100),
    "edge_tokens": (1, 512),
    "walked_share": (1e-4, 1),
    "longest_filling": (1e-8, 1e-4),
    "filling_bytes": (1e5, 1e9),
    "query_time": (1e-11, 1e-6),
    "converted_passes": (1e-3, 30),
    "imbalance": (1e-3, 1),
    "spread": (0.02, 1),
}


def test_nine_devices_have_nearly_all_kinds() -> None:
    assert len(SERIES) > 400
    assert len(DEVICES) == 9
    for kind in ("product", "prefill", "decode", "experts", "exchange", "graph_all_reduce"):
        assert set(measured_devices(kind)) == set(DEVICES)


def test_constants_are_plausible_and_known_words() -> None:
    known, odd = {*VOCABULARY, "small_tile_fraction"}, []
    for each in SERIES:
        assert Hardware.get(each.device).key == each.device
        for name, found in each.constants.items():
            # A kernel for one query a KV head has the same constants, with other values.
            plain = name.removeprefix("lone_")
            low, high = PLAUSIBLE.get(plain, (0, math.inf))
            inside = low * 0.999 <= found.low <= found.value <= found.high <= high * 1.001
            odd += [] if inside and plain in known else [(each.words, name)]
    assert odd == []


def test_errors_have_a_band_around_them() -> None:
    odd = [
        (each.words, level)
        for each in SERIES
        for level, error in each.errors.items()
        if not (
            0 < error.median <= error.p80
            and 0 < error.low < error.high
            and (error.of == (each.device,)) == (each.device in error.of) == (level == "own")
        )
    ]
    assert odd == []


def test_goals_of_the_kernels_hold_where_they_held() -> None:
    """Median errors on shapes that were not fitted, of data-centre devices over NVLink."""
    goals = {
        ("product", "bf16", "trtllm"): 0.072,
        ("product", "fp8", "trtllm"): 0.06,
        ("prefill", "bf16", "vllm"): 0.08,
        ("prefill", "bf16_fp8", "vllm"): 0.10,
        ("prefill", "bf16_fp8", "sglang"): 0.125,
        ("decode", "bf16", "vllm"): 0.09,
        ("decode", "bf16_fp8", "trtllm"): 0.125,
        ("latent_decode", "bf16_fp8", "sglang"): 0.08,
        ("experts", "bf16", "vllm"): 0.18,
        ("latent_prefill", "bf16", "trtllm"): 0.06,
        ("exchange", "all_reduce", "nccl"): 0.065,
        ("exchange", "all_gather", "nccl"): 0.06,
        ("exchange", "reduce_scatter", "nccl"): 0.055,
    }
    for rest, goal in goals.items():
        keys = [
            f"Cloud.{key}" for key in ("A100", "H100", "H200", "B200", "B300", "GB200", "GB300")
        ]
        found = [all_series()[key, *rest] for key in keys if (key, *rest) in all_series()]
        errors = [each.errors["own"].median for each in found]
        # At least three devices have it, and the worst is not far below its goal.
        assert len(errors) >= 3, rest
        assert 0.7 * goal < max(errors) <= goal, (rest, max(errors))


@pytest.mark.parametrize("device", DEVICES)
def test_the_shelf_is_predicted_as_well_as_is_said(device: str) -> None:
    """Products in 16 bits on the shelf that were not fitted: near the error on record."""
    series = kernel_series(device, "product", "bf16")
    record = Hardware.get(device)
    rates = Rates(record.compute.figure("bf16").si, record.bandwidth_si, series.cores)
    errors = [
        abs(
            product_time(*map(float, row.shape), path=PATHS["bf16"], rates=rates, c=series.values)
            / row.seconds
            - 1
        )
        for row in shelf(device)
        if (row.kind, row.path, row.engine) == ("product", "bf16", series.engine) and not row.fitted
    ]
    assert len(errors) > 300
    # Powers of two fill tiles and caches in their own way.
    assert median(errors) < 2 * series.errors["own"].median


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(NotMeasuredError, match=r"Measured are: Cloud\.A100"):
        kernel_series("Cloud.TPUv4", "product", "bf16")
    with pytest.raises(NotMeasuredError, match=r"in fp8 are on record\. It has: bf16 of"):
        kernel_series("Cloud.A100", "product", "fp8")
    with pytest.raises(UnknownNameError, match="Did you mean 'product'"):
        kernel_series("Cloud.A100", "products", "bf16")
    with pytest.raises(NotMeasuredError, match=r"There are: Cloud\.A100"):
        shelf("Cloud.TPUv4")


@pytest.mark.parametrize(
    ("table", "old", "new", "words"),
    [
        ("constants", "device,kind", "device,sort", "the columns must be device, kind"),
        ("constants", "0.8926,0.8751", "0.8926,0.9951", "out of order"),
        ("errors", "Cloud.A100,product,bf16,vllm", "Cloud.A100,product,bf16,none", "no errors"),
        ("errors", "own,Cloud.A100,7467,0.0706", "own,Cloud.A100,7467", "not as many cells"),
    ],
)
def test_a_broken_table_is_refused(
    tmp_path: Path, table: str, old: str, new: str, words: str
) -> None:
    for name in ("constants", "errors"):
        text = (FOLDER / f"{name}.csv").read_text("utf-8")
        if name == table:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / f"{name}.csv").write_text(text, "utf-8")
    with pytest.raises(DataFileError, match=words):
        read(tmp_path)
