"""The command `mlsim predict`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mlsim.cli.command import main

HEAD = "case_id,kind,metric_kind,device,a_dtype,extra,measured\n"
ROWS = (
    'a,gemm,kernel_time_s,A100-80,fp16,"{""M"": 4096, ""N"": 4096, ""K"": 4096}",1\n'
    "b,gemm,kernel_time_s,A100-80,fp16,,1\n"
)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.csv"
    path.write_text(HEAD + ROWS)
    return path


def test_to_a_file(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = cases.with_name("out.csv")
    assert main(["predict", str(cases), "--out", str(out)]) == 0
    assert "1 of 2 cases" in capsys.readouterr().out
    with out.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first["from"] == "calibrated"
    assert second["predicted"] == ""
    assert "M is empty" in second["note"]


def test_as_json(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(cases), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["case_id"] for each in found] == ["a", "b"]


def test_models_beside_the_cases_are_read(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases.with_name("models.csv").write_text("model,layers\nx,1\nx,2\n")
    assert main(["predict", str(cases)]) == 1
    assert "twice" in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "", "x,y\n1,2\n", "case_id\n\x00\xff"])
def test_no_table_is_refused_or_empty(
    tmp_path: Path, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.csv"
    if text is not None:
        path.write_text(text, encoding="latin-1")
    assert main(["predict", str(path)]) == 1
    assert "mlsim: " in capsys.readouterr().err


def test_a_folder_that_is_not_there(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(cases), "--out", str(cases.parent / "no" / "out.csv")]) == 1
    assert "can't be written" in capsys.readouterr().err
