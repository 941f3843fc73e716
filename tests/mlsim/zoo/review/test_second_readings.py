"""Second readings: bound to the exact figure, strict, and counted."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from faults import overlooked
from zoo_rules import records

from mlsim import Clusters, Device, Hardware, Models, System, Systems
from mlsim.errors import DataFileError
from mlsim.records import Figure
from mlsim.workloads.announced_models import announced
from mlsim.zoo.review.rules import checks_of
from mlsim.zoo.review.second_readings import (
    COLUMNS,
    STATES,
    counted,
    idle,
    qualifier,
    reading_of,
    readings,
    reread,
    settled,
    state,
)

ZOO = (*Hardware, *Systems, *Clusters, *Models, *announced())
# Devices and systems of which a second reader has looked up every figure.
LIST = Path(__file__).parent / "read_in_full.txt"
READ_IN_FULL = LIST.read_text(encoding="utf-8").split()
# Figures that came to devices after these had been read in full; most wait for a reader. Beside
# a printed size, "memory.capacity" is what a driver lists.
NEW = {"memory.last_level"}
A100 = Hardware.Cloud.A100
PEAK = A100.figures["compute.fp16"]
ROW = {
    "record": "Cloud.A100", "figure": "compute.fp16", "value": "312", "unit": "TFLOP/s",
    "qualifier": '"dense, tensor cores"', "source": PEAK.source, "found": "same",
    "place": "specification table", "quote": "312 TFLOPS | 624 TFLOPS*", "date": "2026-11-21",
    "note": "",
}  # fmt: skip


def table(folder: Path, *changes: dict[str, str], name: str = "mine.csv") -> Path:
    """Write a table of readings of one figure, each with its changes."""
    rows = [",".join({**ROW, **each}.values()) for each in changes]
    (folder / name).write_text("\n".join([",".join(COLUMNS), *rows]) + "\n", encoding="utf-8")
    return folder


def there(folder: Path, name: str) -> Path:
    """Make a folder in another: tables are read once in a folder."""
    (folder / name).mkdir()
    return folder / name


# The readings of the zoo.


def test_no_reading_of_the_zoo_has_lapsed_or_is_unsettled() -> None:
    """Edit a figure, and its row here must go, or be read again."""
    assert [row.id for row in idle(ZOO)] == []
    assert counted(ZOO)["differs"] == 0
    assert [row.id for row in settled(ZOO) if row.found == "same" or not row.note] == []


def unread_figures(record: Device | System) -> list[str]:
    """Return the names of the figures that no second reader has looked up as they stand."""
    found = ("same", "not found")
    new = NEW | ({"memory.capacity"} if "memory.printed" in record.figures else set())
    return [
        name
        for name, figure in record.figures.items()
        if name not in new and state(record.key, figure) not in found
    ]


def test_what_was_read_in_full_stays_so_and_is_listed() -> None:
    """A new file is asked for a second reading; one that has had it keeps it.

    If figures changed or are new, ask somebody to open the documents and to add rows to
    data/readings/. What has no record any more, or is read in full now, is a line of the list.
    """
    unread = {
        record.key: (file, unread_figures(record)) for file, record in records(Hardware, Systems)
    }
    broken = [
        f"{LIST.name}: {key} is no longer in the zoo" for key in set(READ_IN_FULL) - set(unread)
    ]
    for key, (file, names) in unread.items():
        if key in READ_IN_FULL:
            broken += [f"{file}: {name} has no second reader" for name in names]
        elif not names:
            broken.append(f"{file}: read in full now, so add {key} to {LIST.name}")
    assert broken == []


# One figure.


def test_a_reading_is_bound_to_the_figure_as_it_stood(tmp_path) -> None:
    folder = table(tmp_path, {})
    assert reading_of("Cloud.A100", PEAK, folder).quote == "312 TFLOPS | 624 TFLOPS*"
    assert state("Cloud.A100", PEAK, folder) == "same"
    for change in (
        {"value": 311.0},
        {"unit": "GFLOP/s"},
        {"sparsity": "2:4"},
        {"unit_used": "CUDA cores"},
        {"per": "board"},
        {"source": "nvidia2020ampere"},
    ):
        edited = dataclasses.replace(PEAK, **change)
        said = reading_of("Cloud.A100", edited, folder), state("Cloud.A100", edited, folder)
        assert said == (None, "lapsed"), change
    # What doesn't say how much leaves it as it is.
    assert state("Cloud.A100", dataclasses.replace(PEAK, note="!"), folder) == "same"
    assert state("Cloud.A100_40GB", PEAK, folder) == "unread"
    assert state("Cloud.A100", A100.figures["power.tdp"], folder) == "unread"
    assert state("Cloud.A100", Figure("power.lost", 1, "W", 1, "W")) == "unread"
    assert qualifier(Systems.HGX_H100.figures["link.bandwidth"]) == "both ways, per device"


def test_a_correction_is_kept_as_settled(tmp_path) -> None:
    wrong = {"value": "624", "found": "differs", "note": "The sparse rate; corrected to 312."}
    folder = table(tmp_path, wrong)
    assert state("Cloud.A100", PEAK, folder) == "unread"
    assert [row.value for row in settled([A100], folder)] == [624.0]
    assert idle([A100], folder) == ()
    assert state("Cloud.A100", PEAK, table(there(tmp_path, "again"), wrong, {})) == "same"
    # Nor is what was read of a record that is not asked for, or was found to be the same.
    other = {**wrong, "record": "Cloud.Other"}
    folder = table(there(tmp_path, "others"), other, {"value": "313", "quote": "313"})
    assert settled([A100], folder) == ()
    # A figure that still is what differs is not settled.
    folder = table(there(tmp_path, "open"), {"found": "differs", "note": "It says 311."})
    assert settled([A100], folder) == ()
    assert state("Cloud.A100", PEAK, folder) == "differs"


def test_a_reading_without_its_figure_is_idle_and_states_are_counted(tmp_path) -> None:
    folder = table(tmp_path, {"value": "313", "quote": "313"}, {"record": "Cloud.A1000"})
    without = [("Cloud.A100", 313.0), ("Cloud.A1000", 312.0)]
    assert [(row.record, row.value) for row in idle([A100], folder)] == without
    read = [{}, {"figure": "power.tdp", "value": "1", "quote": "1"}]
    folder = table(there(tmp_path, "two"), *read)
    counts = counted([A100], folder)
    assert tuple(counts) == STATES
    assert counts["same"] == counts["lapsed"] == 1
    assert counts["unread"] == len(A100.figures) - 2


# What `mlsim zoo check` says.


def test_the_check_names_what_nobody_read(tmp_path) -> None:
    assert reread in checks_of(A100)
    folder = table(
        tmp_path,
        {},
        {"figure": "compute.bf16", "value": "311", "quote": "311"},
        {"figure": "compute.int8", "value": "624", "unit": "TOP/s"}
        | {"found": "differs", "note": "It says 625."},
        {"figure": "compute.tf32", "value": "156", "found": "not found", "note": "No page."},
    )
    found = {each.figure: each for each in reread(A100, folder)}
    assert "compute.fp16" not in found
    assert "has lapsed" in found["compute.bf16"].message
    assert found["compute.int8"].message == "second reader: differs. It says 625."
    assert [name for name, each in found.items() if each.error] == ["compute.int8"]
    *_, unread = found.values()
    assert f"{len(A100.figures) - 4} of {len(A100.figures)} figures" in unread.message
    assert "power.tdp" in unread.message


def test_a_bad_row_is_refused_with_its_line_and_a_figure_is_read_once(tmp_path) -> None:
    good = (table(tmp_path, {}) / "mine.csv").read_text("utf-8")
    unread = overlooked(lambda path: readings.__wrapped__(path.parent), good, "bad_readings", "csv")
    assert unread == []
    with pytest.raises(DataFileError, match="two rows have the same id"):
        readings(table(there(tmp_path, "twice"), {}, {}))
    other = table(there(tmp_path, "other"), {}, name="a.csv")
    with pytest.raises(DataFileError, match=r"was read in .*a\.csv too"):
        readings(table(other, {}, name="b.csv"))
