"""What is inside machines, as published: against the zoo's peaks, and by hand."""

from __future__ import annotations

import pytest

from mlsim import Hardware
from mlsim.measured.inside_machines import (
    execution_units,
    memory_spaces,
    published_rate,
)


def test_counts_and_clock_give_the_printed_peak_and_that_of_the_zoo() -> None:
    for row in execution_units():
        assert row.peak / 1e12 == pytest.approx(row.printed, rel=0.006), row.id
        if row.device and row.precision != "fp64":
            device = Hardware.find(row.device)
            assert device.cores == row.cores, row.id
            assert device.compute.figure(row.precision).si == row.printed * 1e12, row.id


def test_an_a100_by_hand() -> None:
    (row,) = (row for row in execution_units() if row.id == "UNIT-005")
    assert row.multiply_adds_per_cycle == 108 * 4 * 256 == 110_592
    assert row.peak == pytest.approx(110_592 * 2 * 1.41e9)


def test_registers_hold_more_than_any_cache_of_an_a100() -> None:
    kinds = {row.name: row for row in memory_spaces()}
    assert kinds["registers"].bytes == 255 * 4
    assert kinds["shared memory"].bytes == 164 * 1024
    assert kinds["global memory"].bytes == Hardware.Cloud.A100.memory.figures["printed"].si
    assert {row.lies for row in memory_spaces()} == {
        "on the chip",
        "in main memory",
        "in main memory, cached",
    }


def test_eight_workers_are_less_than_eight_times_one() -> None:
    for product in ("AMD EPYC 9B14", "AMD EPYC 9B45"):
        one, eight = published_rate("one worker", product), published_rate("eight workers", product)
        assert one.value < eight.value < 8 * one.value


def test_counts_peaks_and_rates_are_values_that_say_where_they_stand() -> None:
    units = next(row for row in execution_units() if row.id == "UNIT-005")
    peak = units.by_name("peak")
    assert peak.si == units.peak
    assert "108 × 4 × 256 MAC × 2 FLOP/MAC × " in peak.origin.how
    assert "[@nvidia2020ampere]" in peak.origin.how
    assert units.by_name("multiply_adds_per_cycle") == units.multiply_adds_per_cycle == 110592
    image = published_rate("stored set").published / published_rate("images").published
    assert image.base == "B/sample"
    assert image.si == pytest.approx(138e9 / 1281167)
    assert (
        "[@keshav2019imagenet]" in image.origin.how or "[@datacomp2024imagenet]" in image.origin.how
    )
    assert published_rate("JPEG engine").published == 7000
