"""The constants of the atlas: plausible, whole, and as good as they say on the shelf's rows."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from statistics import median

import pytest
from kept import FIXTURES
from sampled import sampled

from mlsim import Hardware
from mlsim.errors import DataFileError, NotMeasuredError, UnknownNameError
from mlsim.hardware.device_calibration import state_constants
from mlsim.hardware.kernel_constants import (
    ATLAS,
    all_series,
    kernel_series,
    measured_devices,
    read_series,
)
from mlsim.hardware.kernel_times import PATHS, Rates, product_time
from mlsim.measured.surfaces import shelf
from mlsim.quantities import VOCABULARY

SERIES = tuple(all_series().values())
DEVICES = tuple(dict.fromkeys(each.device for each in SERIES))
# What a constant can be at all: a share, a start, a number that has its own meaning.
TABLES = tomllib.loads((FIXTURES / "cases" / "kernel_constants.toml").read_text("utf-8"))


def test_constants_are_plausible_and_known_words() -> None:
    assert len(SERIES) > 400
    assert len(DEVICES) == 9
    for kind in ("product", "prefill", "decode", "experts", "exchange", "graph_all_reduce"):
        assert set(measured_devices(kind)) == set(DEVICES)
    known, odd = {*VOCABULARY, "small_tile_fraction"}, []
    for each in SERIES:
        assert Hardware.get(each.device).key == each.device
        for name, found in each.constants.items():
            # A kernel for one query a KV head has the same constants, with other values.
            plain = name.removeprefix("lone_")
            low, high = TABLES["plausible"].get(plain, (0, math.inf))
            inside = low * 0.999 <= found.low <= found.value <= found.high <= high * 1.001
            odd += [] if inside and plain in known else [(each.words, name)]
        for level, error in each.errors.items():
            own = (error.of == (each.device,)) == (each.device in error.of) == (level == "own")
            around = 0 < error.median <= error.p80 and 0 < error.low < error.high
            odd += [] if own and around else [(each.words, level)]
    assert odd == []


def test_goals_of_the_kernels_hold_where_they_held() -> None:
    """At least three devices have it, and the worst is not far below its goal."""
    keys = [f"Cloud.{key}" for key in ("A100", "H100", "H200", "B200", "B300", "GB200", "GB300")]
    for *rest, goal in TABLES["goals"]:
        found = [all_series()[key, *rest] for key in keys if (key, *rest) in all_series()]
        errors = [each.errors["own"].median for each in found]
        assert len(errors) >= 3, rest
        assert 0.7 * goal < max(errors) <= goal, (rest, max(errors))


@pytest.mark.parametrize("device", sampled(DEVICES, 3))
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


def test_a_broken_table_is_refused(tmp_path: Path) -> None:
    for table, old, new, words in TABLES["faults"]:
        for name in ("constants", "errors"):
            text = (ATLAS / f"{name}.csv").read_text("utf-8")
            assert name != table or old in text
            changed = text.replace(old, new) if name == table else text
            (tmp_path / f"{name}.csv").write_text(changed, "utf-8")
        with pytest.raises(DataFileError, match=words):
            read_series(tmp_path)


def test_states_are_those_of_the_chip_or_nobodys() -> None:
    """An RTX 4090 has the chip of an L40S; of no relative of an A100 were states measured."""
    found = state_constants("Workstation.RTX4090", "vllm")
    assert found is not None
    assert (found[2].keys, found[2].level) == (("Cloud.L40S",), "sibling")
    assert state_constants("Cloud.A100", "vllm") is None
