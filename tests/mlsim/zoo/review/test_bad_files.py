"""Every kind of mistake in a user's file: said with its line, what is allowed, and the nearest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from told import rows

from mlsim.cli.command import main
from mlsim.records import DATA
from mlsim.zoo.review.file_report import validate_file

FILES = {
    "device": "hardware/t4.toml",
    "system": "systems/hgx_h100.toml",
    "cluster": "clusters/selene.toml",
    "network": "workloads/lenet5_variant.toml",
    "language": "workloads/llama3_8b.toml",
}


def field(name: str, value: str) -> tuple[str, str]:
    """Return what finds a field of the bandwidth, and what takes its place."""
    new = f"{name} = {value}\n" if value else ""
    return rf"(?P<keep>\[memory\.bandwidth\]\n.*?^){name} = [^\n]*\n", rf"\g<keep>{new}"


def write(folder: Path, kind: str, old: str, new: str) -> tuple[Path, list[str]]:
    """Write a file of the zoo with one mistake; return its path and lines."""
    text = (DATA / FILES[kind]).read_text(encoding="utf-8")
    text, count = re.subn(old, new, text, count=1, flags=re.MULTILINE | re.DOTALL)
    assert count == 1, f"there is no {old!r} to be replaced"
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path, text.splitlines()


def test_mistakes_are_named_with_their_lines(tmp_path) -> None:
    broken = []
    for kind, old, new, start, words in rows("mistakes_in_records"):
        given = (
            field(old.removeprefix("bandwidth."), new) if "bandwidth." in old[:10] else (old, new)
        )
        path, lines = write(tmp_path, kind, *given)
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


def test_the_command_says_file_and_line_and_fails(tmp_path, capsys) -> None:
    path, lines = write(tmp_path, "device", r"^form = .*?\n", 'form = "bored"\n')
    line = next(n for n, text in enumerate(lines, 1) if text.startswith("form"))
    assert main(["zoo", "check", str(path)]) == 1
    said = f"{path}:{line}: form must be one of chip, module, board, system, not 'bored'."
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"", 1, "this is no device ([compute.fp16], [memory.bandwidth], ...)"),
        (b"\n\n", 1, "this is no device"),
        (b'key = "A\xff"\n', 1, "this is no UTF-8"),
        (b'key = "A"\nname = "\xff"\n', 2, "this is no UTF-8"),
        (b"\x00", 1, ""),
        (b"[[[", 1, ""),
        (b"key = 3", 1, ""),
        (b'key = "Mine"\nkey = "Yours"\n', 2, "Cannot overwrite a value"),
        (b'key = "X"\nname = "X"\nsource = "x"\ndevice = "H1000"\n', 1, "topology is missing"),
    ],
)
def test_what_is_hardly_a_file_is_refused_on_a_line(
    tmp_path, content: bytes, line: int, words: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    (remark,) = validate_file(path).remarks
    assert (remark.level, remark.line) == ("error", line)
    assert words in remark.message
