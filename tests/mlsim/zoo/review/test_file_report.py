"""`mlsim zoo check`: what a file is, and every mistake in it with its line."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from mlsim.cli.command import main
from mlsim.records import DATA
from mlsim.zoo.review.file_report import Remark, validate_file

CONFIGS = Path(__file__).parents[3] / "fixtures" / "configs"
RTX5090 = (DATA / "hardware" / "rtx_5090.toml").read_text(encoding="utf-8")


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def line_of(text: str, start: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), start=1) if line.startswith(start))


def bandwidth_of(text: str, value: str, unit: str) -> str:
    """Return a device's file with another bandwidth."""
    head, table, rest = text.partition("[memory.bandwidth]")
    lines = rest.splitlines()
    assert lines[1].startswith("value")
    assert lines[2].startswith("unit")
    lines[1:3] = [f"value = {value}", f'unit = "{unit}"']
    return head + table + "\n".join(lines) + "\n"


def test_files_of_the_zoo_pass() -> None:
    """Their records follow the rules (`test_spaces`); here a share of them is read again."""
    kinds = ("hardware", "systems", "clusters", "workloads")
    files = [path for kind in kinds for path in sorted((DATA / kind).glob("*.toml"))]
    if not os.environ.get("MLSIM_JUDGE"):
        files = random.Random(17).sample(files, 25)
    assert [str(report) for path in files if (report := validate_file(path)).errors] == []


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("hardware/t4.toml", "device NVIDIA T4 (Cloud.T4), NVIDIA, board; "),
        ("systems/hgx_h100.toml", "system NVIDIA HGX H100, 8 GPUs (HGX_H100), 8 x NVIDIA H100 SXM"),
        (
            "workloads/vgg16.toml",
            "model VGG-16 (VGG16), 138,357,544 parameters, 30.94 GFLOP/sample; 2 f",
        ),
        ("workloads/gpt2.toml", "model GPT-2 (124M) (GPT2), 124,439,808 parameters; "),
    ],
)
def test_it_says_what_a_file_is(path: str, title: str) -> None:
    assert validate_file(DATA / path).title.startswith(title)


def test_torchaos_bandwidth_is_caught_with_its_line(tmp_path, capsys) -> None:
    """1.792e15 B/s, a thousand times too much."""
    text = bandwidth_of(RTX5090, "1.792e15", "B/s")
    path = write(tmp_path, text)
    line = line_of(text, "[memory.bandwidth]")
    report = validate_file(path)
    assert report.errors >= 2
    errors = [each for each in report.remarks if each.level == "error"]
    assert {each.line for each in errors} == {line}
    assert any("ridge point" in each.message for each in errors)
    assert any("times the most of Workstation" in each.message for each in errors)
    assert main(["zoo", "check", str(path)]) == 1
    printed = capsys.readouterr().out
    assert f"  error {path}:{line}: memory.bandwidth: " in printed
    assert printed.splitlines()[-1] == f"  {report.errors} errors"


def test_a_wrong_prefix_of_the_unit_is_caught(tmp_path) -> None:
    assert validate_file(write(tmp_path, bandwidth_of(RTX5090, "1792", "TB/s"))).errors
    assert validate_file(write(tmp_path, bandwidth_of(RTX5090, "1792", "GB/s"))).errors == 0
    assert validate_file(write(tmp_path, bandwidth_of(RTX5090, "1792", "MB/s"))).errors


def test_a_file_that_is_not_there_has_no_line(tmp_path) -> None:
    report = validate_file(tmp_path / "nowhere.toml")
    (remark,) = report.remarks
    assert (report.title, remark.level, remark.line) == ("can't be read", "error", None)
    assert "can't be read" in remark.message


def test_a_wrong_count_is_named_with_the_line_of_its_figure(tmp_path) -> None:
    text = (DATA / "workloads" / "vgg16.toml").read_text(encoding="utf-8")
    assert "value = 138357544" in text
    text = text.replace("value = 138357544", "value = 138357545")
    errors = [
        each for each in validate_file(write(tmp_path, text)).remarks if each.level == "error"
    ]
    line = line_of(text, "[figures.published_parameters]")
    assert {each.line for each in errors} == {line}
    assert any("138,357,544 follow from the architecture" in each.message for each in errors)


def test_a_config_is_checked_and_its_unknown_keys_are_errors(tmp_path) -> None:
    report = validate_file(CONFIGS / "gpt2.json")
    assert report.errors == 0
    assert "124,439,808 parameters" in report.title
    config = json.loads((CONFIGS / "gpt2.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, "moon_phase": 3}), encoding="utf-8")
    (error,) = validate_file(tmp_path).remarks
    assert error.level == "error"
    assert "not understood: moon_phase." in error.message
    (tmp_path / "config.json").write_text('{"model_type": "moon"}', encoding="utf-8")
    assert validate_file(tmp_path / "config.json").errors == 1


def test_several_files_and_json(tmp_path, capsys) -> None:
    good, bad = str(DATA / "hardware" / "t4.toml"), str(write(tmp_path, "key = 3"))
    assert main(["zoo", "check", good]) == 0
    assert capsys.readouterr().out.endswith("\n  no error\n")
    assert main(["zoo", "check", good, bad, "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert (first["errors"], second["errors"]) == (0, 1)
    assert first["file"] == good
    assert second["remarks"][0]["line"] == 1
    assert main(["zoo", "check", bad]) == 1
    assert capsys.readouterr().out.endswith("\n  1 error\n")
    assert main(["zoo", "check"]) == 1
    assert "zoo check needs a file" in capsys.readouterr().err


def test_rules_that_hold_are_told() -> None:
    remarks = validate_file(DATA / "hardware" / "t4.toml").remarks
    assert Remark("ok", "A link is slower than main memory.") in remarks


@pytest.mark.parametrize("name", ["aa_new.toml", "zz_new.toml"])
def test_of_two_files_with_one_key_the_one_that_was_given_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A copy is the mistake, whichever of the two names comes first."""
    text = (DATA / "hardware" / "t4.toml").read_text(encoding="utf-8")
    for each in ("t4.toml", name):
        (tmp_path / each).write_text(text, encoding="utf-8")
    assert validate_file(tmp_path / name).errors == 0  # a folder of one's own has no keys to keep
    monkeypatch.setattr("mlsim.records.DATA", tmp_path)
    (remark,) = validate_file(tmp_path / name).remarks
    said = "key: 'Cloud.T4' is the key of t4.toml, too. Give this one its own."
    assert remark == Remark("error", said, line_of(text, "key"))
