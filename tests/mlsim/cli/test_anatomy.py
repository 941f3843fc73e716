"""`mlsim anatomy` prints what the function answers, writes files, and refuses in its own words."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mlsim import anatomy
from mlsim.cli import main


def test_it_prints_each_view(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anatomy", "LeNet5_Variant", "--view", "ops", "--count", "seed003"]) == 0
    assert "295,700" in capsys.readouterr().out
    for view in ("layers", "operators", "layer-mem", "mem", "summary", "counts", "moments"):
        assert main(["anatomy", "LeNet5_Variant", "--training", "--view", view]) == 0
        assert len(capsys.readouterr().out.splitlines()) > 3


def test_json_has_the_numbers_of_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anatomy", "AlexNet", "A100", "--training", "--batch", "8", "--json"]) == 0
    found = anatomy("AlexNet", hardware="A100", training=True, batch_size=8)
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_dict()))


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, page = tmp_path / "layers.csv", tmp_path / "map.html"
    assert main(["anatomy", "ResNet18", "--csv", str(table), "--treemap", str(page)]) == 0
    with table.open(encoding="utf-8") as file:
        assert sum(int(row["parameters"]) for row in csv.DictReader(file)) == 11_689_512
    assert "<details" in page.read_text(encoding="utf-8")
    assert main(["anatomy", "ResNet18", "--csv", str(tmp_path / "no" / "x.csv")]) == 1
    assert "no folder" in capsys.readouterr().err


def test_the_largest_batch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anatomy", "AlexNet", "GTX580", "--training", "--largest-batch"]) == 0
    assert "largest batch" in capsys.readouterr().out
    assert main(["anatomy", "AlexNet", "--largest-batch"]) == 1
    assert "needs a device" in capsys.readouterr().err
    assert main(["anatomy", "T5_11B", "GTX580", "--largest-batch"]) == 3


def test_refusals_are_in_the_words_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anatomy", "no.such.module:net"]) == 1
    assert "torchvision.models:resnet18" in capsys.readouterr().err
    assert main(["anatomy", "LeNet5_Variant", "--batch", "0"]) == 1
    assert "--batch" in capsys.readouterr().err
    assert main(["anatomy", "LeNet5_Variant", "--count", "mca"]) == 1
    assert "mac" in capsys.readouterr().err
