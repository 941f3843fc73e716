"""What is inside machines, as published: against the zoo's peaks, and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlsim import Hardware
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.measured.inside_machines import (
    INSIDE,
    ExecutionUnits,
    execution_units,
    memory_spaces,
    published_rate,
    published_rates,
)

each_kind = pytest.mark.parametrize("row", execution_units(), ids=lambda row: row.id)


@each_kind
def test_counts_and_clock_give_the_printed_peak(row: ExecutionUnits) -> None:
    assert row.peak / 1e12 == pytest.approx(row.printed, rel=0.006)


@each_kind
def test_the_printed_peak_is_the_zoos(row: ExecutionUnits) -> None:
    if row.device and row.precision != "fp64":
        device = Hardware.find(row.device)
        assert device.cores == row.cores
        assert device.compute.figure(row.precision).si == row.printed * 1e12


def test_every_row_quotes_few_words_of_a_document_and_says_where() -> None:
    rows: list[Any] = [*execution_units(), *memory_spaces(), *published_rates()]
    for row in rows:
        words = [word for word in row.quote.split() if word != "|"]
        assert 0 < len(words) <= 15, row.id
        assert row.where, row.id


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


@pytest.mark.parametrize(("stage", "product"), [("storge", ""), ("storage", "floppy")])
def test_an_unknown_rate_is_refused(stage: str, product: str) -> None:
    with pytest.raises(UnknownNameError):
        published_rate(stage, product)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("execution_units.csv", "1480,10.6", "0,10.6", "clock_mhz must be a positive number"),
        ("execution_units.csv", "Cloud.P100", "Cloud.P1000", "P1000"),
        ("execution_units.csv", "fp32", "fp33", "fp33"),
        ("memory_spaces.csv", ",255,", ",many,", "amount must be a positive number"),
        ("input_rates.csv", "2026-11-22", "22 November", "22 November"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(
    file: str, old: str, new: str, words: str, tmp_path: Path
) -> None:
    text = (INSIDE / file).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / file
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    reader = {
        "execution_units.csv": execution_units,
        "memory_spaces.csv": memory_spaces,
        "input_rates.csv": published_rates,
    }[file]
    with pytest.raises(DataFileError, match=words) as refused:
        reader(path)
    assert f"{path}:2" in str(refused.value)


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
