"""The tool that puts errors into code: what it changes, which tests it asks, whom it believes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import Room
from mutations import mutations

TOOL = Path(__file__).parent / "helpers" / "mutants.py"

CHANGES = {
    "a + b": {"a  -  b", "(a)", "(b)"},
    "a * (b - 1)": {"a  /  (b - 1)", "(a)", "(b - 1)", "a * (b  +  1)", "a * ((b))", "a * ((1))", "a * (b - 2)"},
    "a ** 2": {"a  *  2", "(a)", "a ** 3"},
    "a <= b < 2.0": {"a  <  b < 2.0", "a <= b  <=  2.0", "a <= b < 2.5"},
    "a and not b": {"a  or  not b", "a and (b)"},
    "a if b else True": {"a if (not (b)) else True", "a if b else False"},
    "f(a, b, unit='ms')": {"f(b, a, unit='ms')", 'f(a, b, unit="s")'},
    "max(a, b)": {"min(a, b)"},
    "[x for x in range(a)]": {"[x for x in range(a - 1)]"},
    "f'{a + 1} s'": set(),
    "'µ' + a * 0": {"'µ' + a  /  0", "'µ' + (a)", "'µ' + (0)", "'µ' + a * 1"},
}  # fmt: skip


@pytest.mark.parametrize("code", CHANGES)
def test_what_a_line_can_become(code: str, tmp_path: Path) -> None:
    path = tmp_path / "line.py"
    path.write_text(f'"""Text: 1 + 1."""\n\nx: Literal[1] = {code}\n', "utf-8")
    lines = [each.applied().splitlines() for each in mutations(path)]
    assert {line[2].removeprefix("x: Literal[1] = ") for line in lines} == CHANGES[code]
    assert len(lines) == len(CHANGES[code])
    assert all(line[:2] == ['"""Text: 1 + 1."""', ""] for line in lines)


def test_what_changes_no_number_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "quiet.py"
    text = """
    from a import b
    __all__ = ["ms"]
    if TYPE_CHECKING:
        x = 1
    @cache(maxsize=1)
    def f(a: Literal[2]) -> Literal[3]:
        raise ValueError(a + 1)
    """
    path.write_text("\n".join(line[4:] for line in text.splitlines()), "utf-8")
    assert mutations(path) == []


POTS = '''"""Pots."""


def heat(mass, rise):
    """Return what warms it.

    >>> heat(2.0, 3.0)
    25116.0
    """
    return mass * 4186.0 * rise


def boils(warm):
    """Return whether it boils."""
    return warm >= 100.0


def forgotten(mass):
    """No test asks this."""
    return mass + 7.0
'''
TESTS = """import subprocess
import sys

from mlsim.pots import boils


def test_it_boils():
    assert not boils(20.0)
    assert boils(120.0)


def test_a_process_of_its_own_sees_the_change():
    code = "from mlsim.pots import heat; print(heat(1.0, 1.0))"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"4186.0\\n"


def test_what_fails_without_a_mutant_is_asked_nothing():
    assert boils(120.0) == "yes"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with one room, whose tests leave holes."""
    for name, text in {
        "pytest.ini": "[pytest]\naddopts = --doctest-modules --import-mode=importlib\n",
        "mlsim_pkg/src/mlsim/__init__.py": "",
        "mlsim_pkg/src/mlsim/pots.py": POTS,
        "book_pkg/src/mlsim_book/__init__.py": "",
        "tests/mlsim/test_pots.py": TESTS,
        "tests/mlsim/test_pots_of_others.py": "from mlsim.pots import heat\n",
        "tests/mlsim/test_spoons.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_holes_are_found_and_what_is_held_is_not(repository: Path, tmp_path: Path) -> None:
    def asked(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(TOOL), "--root", str(repository), "--jobs", "1", *arguments]
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False, cwd=repository
        )

    # Three lines compute. Seed 1 draws another factor, a comparison with 100 itself, and a term.
    said = asked("pots", "-n", "9", "--seed", "1", "--least", "0.4")
    assert "pots: 1 of 3 noticed; not: 1 comparison, 1 dropped term" in said.stdout, (
        said.stdout + said.stderr
    )
    assert "survived 2 tests: mlsim_pkg/src/mlsim/pots.py:15 (comparison)" in said.stdout
    assert "-    return warm >= 100.0\n+    return warm  >  100.0\n" in said.stdout
    assert "survived 3 tests: mlsim_pkg/src/mlsim/pots.py:20 (dropped term)" in said.stdout, (
        said.stdout
    )
    assert "All: 33% of 3 noticed\nFor each that survived: " in said.stdout
    assert said.returncode == 1
    assert "learning" in said.stdout
    again = asked("pots", "-n", "9", "--seed", "1", "--least", "0.3")
    assert "learning" not in again.stdout
    assert again.returncode == 0
    assert (repository / "mlsim_pkg/src/mlsim/pots.py").read_text("utf-8") == POTS
    wrong = asked("pans")
    assert (wrong.returncode, wrong.stderr) == (
        1,
        "pans is no room of the code. Beside it: pots.\n",
    )


def test_a_room_has_the_tests_of_its_mirror(repository: Path) -> None:
    assert Room("pots", repository).test_files == [
        "mlsim_pkg/src/mlsim/pots.py",
        "tests/mlsim/test_pots.py",
        "tests/mlsim/test_pots_of_others.py",
    ]
    assert "tests/mlsim/test_spoons.py" in Room("mlsim", repository).test_files
