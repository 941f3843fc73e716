"""Named sets of constants: read strictly, held to physics, and one mistake that they had."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim.errors import DataFileError, UnsupportedPrecisionError
from mlsim.hardware.device_files import device_with
from mlsim.hardware.named_constants import FOLDER, all_constants, constants, load_constants

TEXT = (FOLDER / "torchao_0_18_0.toml").read_text(encoding="utf-8")
# Of torchao 0.18.0, for the GeForce RTX 5090: 1.792e15 B/s, where the data sheet has 1,792 GB/s.
PRINTED, RIGHT = 1.792e15, 1.792e12


def test_every_ridge_is_possible() -> None:
    for each in all_constants().values():
        for device in each.devices.values():
            for peak in device.peaks.values():
                assert 1 < peak / device.memory_bandwidth < 5000
            # A variant of a device may be slower; none is a thousand times as fast.
            ratio = device.memory_bandwidth / device_with(device.device).bandwidth_si
            assert 0.5 < ratio < 1.1


def test_what_torchao_has_of_one_card_is_no_ridge() -> None:
    """The same figure in a device's file is an error: see test_file_report."""
    card = device_with("Workstation.RTX5090")
    assert card.bandwidth_si == RIGHT
    assert card.compute.figure("bf16").si / PRINTED < 1 < card.compute.figure("bf16").si / RIGHT


def test_a_peak_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnsupportedPrecisionError, match=r"no fp4 peak of NVIDIA H100. There are"):
        constants("torchao-0.18.0").of("Cloud.H100").peak("fp4")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('key = "torchao-0.18.0"', 'keys = "torchao-0.18.0"', "Did you mean 'key'"),
        ('source = "pytorch2026torchao"', 'source = "hearsay"', "not in the bibliography"),
        ('kernel_overhead = "2 us"', 'kernel_overhead = "2 GB"', "GB"),
        ("compute_fraction = 0.78", "compute_fraction = 1.78", "must be a share"),
        ('memory_bandwidth = "2.4 TB/s"', 'memory_bandwidth = "-1 TB/s"', "must be positive"),
        ('bf16 = "989 TFLOP/s"', 'bf61 = "989 TFLOP/s"', "Did you mean 'bf16'"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert before in TEXT
    path = tmp_path / "wrong.toml"
    path.write_text(TEXT.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(DataFileError) as error:
        load_constants(path)
    assert words in str(error.value)
