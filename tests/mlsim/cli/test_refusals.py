"""What each command line ends with: its status, and the words in which it is answered or refused."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlsim.cli.command import main

FILE = Path(__file__).parents[2] / "fixtures" / "command_line.csv"
# A wrong name is answered with few others.
LONGEST = 280


def faults(status: int, words: str, found: tuple[int, str, str]) -> Iterator[str]:
    """Yield what is wrong of a status, and of what is printed on either side."""
    code, out, err = found
    if code != status:
        yield f"status {code}"
    if words not in out + err:
        yield f"says {err or out}"
    if code == 1 and (out or not err.startswith("mlsim: ") or err.count("\n") != 1):
        yield "no line on the standard error alone"
    if code in (1, 3) and ("Engine" in err or re.search(r"\w+_\w+=", err)):
        yield f"speaks of Python: {err}"
    if code == 1 and not words and len(err) >= LONGEST:
        yield f"is long: {err}"


def test_each_command_line_ends_as_it_should(capsys: pytest.CaptureFixture[str]) -> None:
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["status"] for row in rows} == set("01234")
    wrong = []
    for row in rows:
        try:
            code = main(shlex.split(row["command"]))
        except SystemExit as stopped:
            code = int(str(stopped.code))
        found = (code, *capsys.readouterr())
        wrong += [
            (row["command"], each) for each in faults(int(row["status"]), row["words"], found)
        ]
    assert wrong == []
