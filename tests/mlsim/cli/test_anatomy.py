"""`mlsim anatomy` prints what the function answers, writes files, and refuses in its own words."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mlsim.cli import main


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, page = tmp_path / "layers.csv", tmp_path / "map.html"
    assert main(["anatomy", "ResNet18", "--csv", str(table), "--treemap", str(page)]) == 0
    with table.open(encoding="utf-8") as file:
        assert sum(int(row["parameters"]) for row in csv.DictReader(file)) == 11_689_512
    assert "<details" in page.read_text(encoding="utf-8")
    assert main(["anatomy", "ResNet18", "--csv", str(tmp_path / "no" / "x.csv")]) == 1
    assert "no folder" in capsys.readouterr().err
