"""Data files are read strictly: each fault is named with its file and its line."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

import pytest
from faults import good, unnoticed

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.hardware.device import load_device
from mlsim.records import Figure, given, tables
from mlsim.records.tables import Published
from mlsim.workloads.model_files import load_model

GOOD, MODEL = good("device.toml"), good("network.toml")


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_good_files_are_read(tmp_path: Path) -> None:
    device = load_device(write(tmp_path, GOOD))
    assert (device.bandwidth_si, device.capacity_si) == (1e12, 16e9)
    assert device.compute.figure("fp16").si == 100e12
    bandwidth = device.figures["memory.bandwidth"]
    assert (bandwidth.text, bandwidth.read) == ("1,000 GB/s", datetime.date(2026, 11, 21))
    assert bandwidth.origin() == (
        'datasheet, williams2009roofline, page 1, "as fast as that", read 2026-11-21'
    )
    half = GOOD.replace("value = 16\n", "value = 0.5\n").replace('"datasheet"', '"secondary"')
    assert load_device(write(tmp_path, half)).capacity_si == 0.5e9
    model = load_model(write(tmp_path, MODEL))
    # 4 * 27 weights; then 6 * 6 * 4 = 144 elements to 10, and 10 biases.
    assert model.parameter_count == 108 + 1440 + 10
    figure = given("memory.bandwidth", 2e12, "B/s")
    assert (figure.text, figure.origin(), figure.source) == ("2 TB/s", "given", "")


def test_a_fault_is_named_with_its_file_and_line() -> None:
    assert unnoticed(load_device, "device.toml") == []
    assert unnoticed(load_model, "network.toml") == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"nowhere\.toml: can't be read: .*No such file"):
        load_device(tmp_path / "nowhere.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"a = 1\nb = 2\n\xff\xfe")
    with pytest.raises(DataFileError, match=r"binary\.toml:3: this is no UTF-8"):
        load_device(binary)
    with pytest.raises(InvalidValueError, match=r"binary\.toml:3: this can't be read, as it is no"):
        tables.given_text(binary)
    with pytest.raises(InvalidValueError, match=r"nowhere\.csv can't be read: No such file"):
        tables.given_text(tmp_path / "nowhere.csv")


# What a figure and a row say of themselves.


def a_figure(**other: object) -> Figure:
    """A rate of 2,039 GB/s, read in a document; with other words where they are given."""
    said = {
        "value": 2039, "unit": "GB/s", "si": 2039e9, "base": "B/s", "kind": "datasheet",
        "source": "williams2009roofline", "where": "page 2", "quote": "2,039 GB/s",
        "read": datetime.date(2026, 11, 21), "direction": "one-way", **other,
    }  # fmt: skip
    return Figure(name="links.pcie", **said)


def test_a_figure_is_a_value_that_knows_its_document() -> None:
    said = a_figure().of("A100")
    assert (said.text, said.to("B/s").magnitude, said.name) == (
        "2,039 GB/s",
        2039e9,
        "A100 links pcie",
    )
    assert said.origin.brief == (
        "A100 links pcie: 2,039 GB/s one-way, datasheet, [@williams2009roofline], "
        "page 2: “2,039 GB/s”, read 2026-11-21"
    )
    assert said.origin.how == said.origin.brief
    noted = a_figure(source="a program", note="Of both ways.").of("A100", "of its bus").origin
    assert noted.name == "A100 of its bus"
    assert noted.how == noted.brief + "\n\nOf both ways."
    assert "[@" not in noted.brief
    assert ", a program, page 2" in noted.brief
    year = a_figure(value=2020, unit="year", si=2020.0, base="year", direction="")
    assert (year.text, year.of("A100").magnitude) == ("2020", 2020)
    assert [a_figure(value=value, unit="1").text for value in (999_999, 1_000_000, 1_234_567.4)] == [
        "999,999", "1,000,000", "1,234,567",
    ]  # fmt: skip


@dataclass(frozen=True)
class Boiled(Published):
    """A published row of the simplest kind."""

    id: str
    value: float
    unit: str
    source: str
    quote: str = "it boiled"
    note: str = "At sea level."

    def said(self) -> tuple[str, str]:
        return "time of the pot", "time of *the pot*"


def test_a_published_row_is_a_value_as_it_was_printed() -> None:
    row = Boiled("pot", 1250.0, "ms", "williams2009roofline")
    assert (row.published.text, row.published.si, row.by_name() == row.published) == (
        "1,250 ms", 1.25, True,
    )  # fmt: skip
    assert row.published.name == "time of the pot"
    assert row.published.origin.how == (
        "time of *the pot*: 1,250 ms [@williams2009roofline], in these words: “it boiled”. At sea level."
    )
    pots = Boiled("pots", 1e6, "token/s", "williams2009roofline", note="").published
    assert float(pots) == 1e6
    assert pots.origin.brief.startswith("time of *the pot*: 1,000,000 token/s [")
    assert pots.origin.how.endswith("“it boiled”.")


ROWS = "id,value,unit,source\n"
POT = "pot,3,ms,williams2009roofline\n"
TABLES = {
    "id,unit,value,source\n": "1: the columns must be id, value, unit, source.",
    f"{ROWS}{POT}{POT}": "3: two rows have the same id, 'pot'.",
    f"{ROWS}{POT}pan,3,ms\n": "3: this row has not as many cells as there are columns.",
    f"{ROWS}pan,3,ms,williams2009roofline,4\n": "2: this row has not as many cells",
    f"{ROWS}pan,3,ms,nobody\n": "2: source 'nobody' is not in references.bib.",
    f"{ROWS}pan,0,ms,williams2009roofline\n": "2: value must be a",
    f"{ROWS}pan,x,ms,williams2009roofline\n": "2: value must be a",
}


def test_a_table_is_read_row_by_row_and_its_faults_are_named(tmp_path: Path) -> None:
    def read(text: str) -> tuple[Boiled, ...]:
        (tmp_path / "pots.csv").write_text(text, "utf-8")
        return tables.read(tmp_path / "pots.csv", ("id", "value", "unit", "source"), made)

    def made(row: dict[str, str]) -> Boiled:
        return Boiled(row["id"], tables.positive(row, "value"), row["unit"], row["source"])

    two = read(f"{ROWS}{POT}pan,4,s,williams2009roofline\n")
    assert [(each.id, each.value, each.unit) for each in two] == [("pot", 3, "ms"), ("pan", 4, "s")]
    for text, words in TABLES.items():
        with pytest.raises(DataFileError) as e:
            read(text)
        assert str(e.value).startswith(f"{tmp_path / 'pots.csv'}:{words}"), text
