"""`mlsim zoo check`: what a file is, and every mistake in it with its line and what is allowed."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest
from told import FIXTURES, rows

from mlsim.cli.command import main
from mlsim.records import DATA
from mlsim.zoo.review.file_report import Remark, validate_file

T4, RTX5090 = DATA / "hardware" / "t4.toml", DATA / "hardware" / "rtx_5090.toml"
FILES = {
    "device": "hardware/t4.toml",
    "system": "systems/hgx_h100.toml",
    "cluster": "clusters/selene.toml",
    "network": "workloads/lenet5_variant.toml",
    "language": "workloads/llama3_8b.toml",
    "vgg16": "workloads/vgg16.toml",
}


def field(name: str, value: str) -> tuple[str, str]:
    """Return what finds a field of the bandwidth, and what takes its place."""
    new = f"{name} = {value}\n" if value else ""
    return rf"(?P<keep>\[memory\.bandwidth\]\n.*?^){name} = [^\n]*\n", rf"\g<keep>{new}"


def write(folder: Path, original: Path, *edits: tuple[str, str]) -> tuple[Path, list[str]]:
    """Write a file of the zoo with mistakes; return its path and lines."""
    text = original.read_text(encoding="utf-8")
    for old, new in edits:
        text, count = re.subn(old, new, text, count=1, flags=re.MULTILINE | re.DOTALL)
        assert count == 1, f"there is no {old!r} to be replaced"
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path, text.splitlines()


def test_files_of_the_zoo_pass() -> None:
    """Their records follow the rules (`test_spaces`); here a share of them is read again."""
    kinds = ("hardware", "systems", "clusters", "workloads")
    files = [path for kind in kinds for path in sorted((DATA / kind).glob("*.toml"))]
    if not os.environ.get("MLSIM_JUDGE"):
        files = random.Random(17).sample(files, 25)
    assert [str(report) for path in files if (report := validate_file(path)).errors] == []


def test_it_says_what_a_file_is_and_which_rules_hold() -> None:
    for path, title, rule in rows("files_as_checked"):
        report = validate_file(DATA / path)
        assert (report.title.startswith(title), report.errors) == (True, 0), report
        assert rule in [each.message for each in report.remarks if each.level == "ok"], report


def test_mistakes_are_named_with_their_lines(tmp_path) -> None:
    broken = []
    for kind, old, new, start, words in rows("mistakes_in_records"):
        edit = (
            field(old.removeprefix("bandwidth."), new) if "bandwidth." in old[:10] else (old, new)
        )
        path, lines = write(tmp_path, DATA / FILES[kind], edit)
        remarks = [each for each in validate_file(path).remarks if each.level == "error"]
        told = [each for each in remarks if words in each.message]
        if not told or told[0].line is None:
            broken.append(f"{kind}: {new}: {[str(each) for each in remarks]}")
            continue
        line, message = told[0].line, told[0].message
        meant = {"LAST": len(lines)}.get(start, int(start) if start.isdigit() else 0)
        if line != meant if meant else not lines[line - 1].startswith(start):
            broken.append(f"{kind}: {new}: line {line}")
        # The path is said once, by the report, and no Python type is named.
        if str(tmp_path) in message or re.search(r"\bmust be (int|str|bool|dict|list)\b", message):
            broken.append(f"{kind}: {new}: {message}")
    assert broken == []


def test_what_is_hardly_a_file_is_refused_on_a_line(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    report = validate_file(path)
    (remark,) = report.remarks
    assert (report.title, remark.level, remark.line) == ("can't be read", "error", None)
    assert "can't be read" in remark.message
    for content, line, words in (
        (b"", 1, "this is no device ([compute.fp16], [memory.bandwidth], ...)"),
        (b'key = "A"\nname = "\xff"\n', 2, "this is no UTF-8"),
        (b"\x00", 1, ""),
        (b"[[[", 1, ""),
        (b"key = 3", 1, ""),
        (b'key = "Mine"\nkey = "Yours"\n', 2, "Cannot overwrite a value"),
        (b'key = "X"\nname = "X"\nsource = "x"\ndevice = "H1000"\n', 1, "topology is missing"),
    ):
        path.write_bytes(content)
        (remark,) = validate_file(path).remarks
        assert (remark.level, remark.line, words in remark.message) == ("error", line, True), (
            content
        )


def test_torchaos_bandwidth_is_caught_with_its_line(tmp_path, capsys) -> None:
    """1.792e15 B/s, a thousand times too much."""
    edits = field("value", "1.792e15"), field("unit", '"B/s"')
    path, lines = write(tmp_path, RTX5090, *edits)
    line = lines.index("[memory.bandwidth]") + 1
    report = validate_file(path)
    errors = [each for each in report.remarks if each.level == "error"]
    assert {each.line for each in errors} == {line}
    for words in ("ridge point", "times the most of Workstation"):
        assert any(words in each.message for each in errors), words
    assert main(["zoo", "check", str(path)]) == 1
    printed = capsys.readouterr().out
    assert f"  error {path}:{line}: memory.bandwidth: " in printed
    assert printed.splitlines()[-1] == f"  {len(errors)} errors"


def test_a_config_is_checked_and_its_unknown_keys_are_errors(tmp_path) -> None:
    gpt2 = FIXTURES / "configs" / "gpt2.json"
    report = validate_file(gpt2)
    assert report.errors == 0
    assert "124,439,808 parameters" in report.title
    config = json.loads(gpt2.read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, "moon_phase": 3}), encoding="utf-8")
    (error,) = validate_file(tmp_path).remarks
    assert error.level == "error"
    assert "not understood: moon_phase." in error.message
    (tmp_path / "config.json").write_text('{"model_type": "moon"}', encoding="utf-8")
    assert validate_file(tmp_path / "config.json").errors == 1


def test_several_files_and_json(tmp_path, capsys) -> None:
    bad = tmp_path / "mine.toml"
    bad.write_text("key = 3", encoding="utf-8")
    for path, ends in {T4: (0, "  no error"), bad: (1, "  1 error")}.items():
        status = main(["zoo", "check", str(path)])
        assert (status, capsys.readouterr().out.splitlines()[-1]) == ends
    assert main(["zoo", "check", str(T4), str(bad), "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert (first["errors"], second["errors"]) == (0, 1)
    assert (first["file"], second["remarks"][0]["line"]) == (str(T4), 1)


@pytest.mark.parametrize("name", ["aa_new.toml", "zz_new.toml"])
def test_of_two_files_with_one_key_the_one_that_was_given_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A copy is the mistake, whichever of the two names comes first."""
    text = T4.read_text(encoding="utf-8")
    for each in ("t4.toml", name):
        (tmp_path / each).write_text(text, encoding="utf-8")
    assert validate_file(tmp_path / name).errors == 0  # a folder of one's own has no keys to keep
    monkeypatch.setattr("mlsim.records.DATA", tmp_path)
    (remark,) = validate_file(tmp_path / name).remarks
    said = "key: 'Cloud.T4' is the key of t4.toml, too. Give this one its own."
    line = next(n for n, each in enumerate(text.splitlines(), 1) if each.startswith("key"))
    assert remark == Remark("error", said, line)
