"""Published results: complete, and never faster than the bound."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mlsim import Engine, Hardware, measurements
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.measured.networks import FOLDER, Measurement, load
from mlsim.records.references import references

ROWS = measurements()

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


@each_row
def test_no_measurement_beats_the_bound(row: Measurement) -> None:
    """A row that did would show an error in the row, or in the bound."""
    bound = Engine.solve(
        model=row.model,
        hardware=row.device,
        batch_size=row.batch_size,
        precision=row.precision,
        estimate="bound",
    )
    assert row.unit == "sample/s"
    assert row.metric == "throughput"
    assert row.value < bound.throughput


@each_row
def test_a_row_has_its_source(row: Measurement) -> None:
    assert row.source in references()
    assert row.quote
    assert row.software
    assert 2015 <= row.year <= 2030
    assert f"{row.value:.10g}" in row.quote.replace(",", "")


def test_the_devices_of_the_chapter_were_measured() -> None:
    measured = {row.hardware for row in ROWS}
    assert {"Cloud.V100", "Cloud.A100", "Cloud.A100_40GB", "Cloud.T4"} <= measured


def test_rows_are_selected() -> None:
    some = measurements(model="ResNet50", hardware=Hardware.Cloud.T4, precision="fp32")
    assert some
    assert {(row.hardware, row.precision) for row in some} == {("Cloud.T4", "fp32")}
    assert all(row.software.startswith("PyTorch") for row in measurements(software="PyTorch"))
    assert measurements(software="nothing") == []
    with pytest.raises(UnknownNameError):
        measurements(hardware="H1000")
    with pytest.raises(UnknownNameError):
        measurements(precision="fp7")


def test_rows_are_those_of_the_reference(reference: Path) -> None:
    with (reference / "data" / "measurements-open.csv").open(encoding="utf-8", newline="") as file:
        published = {row["id"]: row for row in csv.DictReader(file)}
    cards = {
        "Cloud.V100": "V100-SXM2-16GB",
        "Cloud.T4": "T4",
        "Cloud.A100": "A100",
        "Cloud.A100_40GB": "A100",
    }
    for row in ROWS:
        theirs = published[row.id]
        assert row.value == pytest.approx(float(theirs["value"]))
        assert row.batch_size == int(theirs["batch"])
        # "FP16 AMP" is mixed precision: its products are computed in fp16.
        assert row.precision == theirs["precision"].lower().partition(" ")[0]
        assert row.year == int(theirs["year"])
        assert cards[row.hardware] in theirs["hardware"]


FILE = min(FOLDER.glob("*.csv"))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("batch_size", "batch", 1, "the columns must be id, series, model, hardware, batch_size,"),
        ("Cloud.V100", "Cloud.V1000", 2, "no device is called 'Cloud.V1000'. Did you mean"),
        ("ResNet50", "ResNet5", 2, "no model is called 'ResNet5'. Did you mean 'ResNet50'"),
        ("fp32", "fp31", 2, "no precision is called 'fp31'. Did you mean 'fp32'"),
        (",96.0,", ",-96.0,", 2, "value and batch_size must be positive, not -96.0 and 1."),
        (",96.0,", ",nan,", 2, "value and batch_size must be positive, not nan and 1."),
        (",96.0,", ",fast,", 2, "could not convert string to float: 'fast'"),
        ("nvidia2023resnet50v15", "nobody", 2, "source 'nobody' is not in references.bib."),
    ],
)
def test_a_fault_in_a_row_is_named(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    content = FILE.read_text(encoding="utf-8")
    assert old in content
    path = tmp_path / "rows.csv"
    path.write_text(content.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataFileError) as e:
        load(path)
    assert str(e.value).startswith(f"{path}:{line}: ")
    assert words in str(e.value)


def test_two_rows_of_one_id_are_refused(tmp_path: Path) -> None:
    header, first, *_ = FILE.read_text(encoding="utf-8").splitlines()
    path = tmp_path / "rows.csv"
    path.write_text(f"{header}\n{first}\n{first}\n", encoding="utf-8")
    with pytest.raises(DataFileError, match="two rows have the same id"):
        load(path)
