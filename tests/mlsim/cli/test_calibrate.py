"""The command `mlsim calibrate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlsim.cli.command import main


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.csv"
    path.write_text(
        "kind,model,hardware,batch_size,measured\n"
        "serve-decode,Llama3_8B,H100,1,6.1 ms\n"
        "serve-decode,Llama3_8B,H100,8,6.9 ms\n"
    )
    return path


def test_as_text_and_explained(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(own), "--explain"]) == 0
    found = capsys.readouterr().out
    assert "NVIDIA H100" in found
    assert "measured 6.1 ms" in found


def test_as_json(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(own), "--json", "--estimate", "roofline"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["estimate"] == "roofline"
    assert found["factors"][0]["rows"] == 2


def test_a_wrong_row_is_told(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own.write_text(own.read_text() + "serve-decode,Llama3_8B,H100,8,6.9\n")
    assert main(["calibrate", str(own)]) == 1
    assert f"{own}:4: measured needs a unit" in capsys.readouterr().err
