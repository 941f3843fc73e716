"""Groups that hand in one notebook: known by a column of the class list, counted for each member."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import zips
from boiling import LID, QUESTIONS, write_book
from handed_in import RIGHT, notebook, rows
from made_up_class import handed, made

from mlsim_book.cli import main
from mlsim_book.grading.alike import find_alike
from mlsim_book.grading.gradebook import Rules, make_gradebook
from mlsim_book.grading.overrides import PENALTY, Override
from mlsim_book.grading.roster import Student

CLASS = (
    "Student,ID,SIS Login ID,Section,Team\n"
    "Ada Lovelace,17,ada,1,Tea Pots\nAlan Turing,18,alan,1,Tea Pots\n"
    "Grace Hopper,19,grace,1,Cups\nAnn Lee,20,ann,1,\n"
)
NOTEBOOK = notebook(RIGHT).encode()
LONG = "Steam carries the heat away, and a lid keeps the steam, so less power is lost to the room."


def grade(week: Path, files: dict[str, bytes], *options: str) -> dict[str, tuple[str, str]]:
    """Grade a zip; return points and notes of the gradebook by student."""
    place = zips.write(week.parent / "all.zip", files)
    command = ["grade", str(week), "--submissions", str(place), "--groups", "team", *options]
    assert main(command) == 0
    found = rows(week / "results" / "gradebook.csv")
    return {name: (row["points"], row["notes"]) for name, row in found.items()}


def assigned(tmp_path: Path, *options: str) -> Path:
    (tmp_path / "class.csv").write_text(CLASS)
    book, out = write_book(tmp_path, QUESTIONS + LID), tmp_path / "week"
    assert main(["assign", "index", "--out", str(out), "--root", str(book), *options]) == 0
    return out


def test_one_notebook_counts_for_all_members(tmp_path: Path) -> None:
    week = assigned(tmp_path)
    listed = ("--students", str(tmp_path / "class.csv"))
    for file in [
        "Tea Pots_17_assignsubmission_file_/hw.ipynb",  # Moodle; 17 is the number of the group
        "Tea Pots - hw1.ipynb", "Tea Pots/hw.ipynb",  # by hand
        "teapots_18_900_hw1.ipynb",  # Canvas; 18 is a member's
        "turingalan_18_900_hw1.ipynb",
        "Alan Turing.ipynb",
    ]:  # fmt: skip
        other = "leeann_20_901_hw1.ipynb" if "_900_" in file else "Ann Lee.ipynb"
        found = grade(week, {file: NOTEBOOK, other: NOTEBOOK}, *listed)
        assert {name: points for name, (points, _) in found.items()} == {
            "Ada Lovelace": "3", "Alan Turing": "3", "Grace Hopper": "0", "Ann Lee": "3",
        }, file  # fmt: skip
        (copied,) = [name for name, (_, notes) in found.items() if "handed in by" in notes]
        assert "for Tea Pots" in found[copied][1]
        # a page for each of them
        assert len(list((week / "results" / "feedback").iterdir())) == 3
    # each file was run once, in one place each
    assert len(list((week / "results" / "kept").iterdir())) == 8


def test_a_groups_notebook_is_judged_by_the_numbers_it_was_made_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    week = assigned(tmp_path, "--variant-by", str(tmp_path / "class.csv"))
    solved = {path.stem: path.read_bytes() for path in (week / "solutions").iterdir()}
    name = "Tea Pots_17_assignsubmission_file_/hw.ipynb"
    for maker in ("Ada_Lovelace", "Alan_Turing"):
        found = grade(week, {name: solved[maker]})
        assert found["Ada Lovelace"][0] == found["Alan Turing"][0] == "4"
    # a member's own name says the same, whoever's numbers they took
    found = grade(week, {"Alan Turing.ipynb": solved["Ada_Lovelace"]})
    assert found["Ada Lovelace"][0] == found["Alan Turing"][0] == "4"
    capsys.readouterr()
    # whose numbers these are must be known, and be a member's
    for data, words in [
        (NOTEBOOK, "it is of Tea Pots, and the notebook doesn't say whose numbers it has"),
        (solved["Ann_Lee"], "it is of Tea Pots, and the notebook was made for Ann Lee"),
    ]:
        found = grade(week, {name: data})
        assert found["Ada Lovelace"] == found["Alan Turing"]
        assert found["Ada Lovelace"][0] == "0"
        assert words in capsys.readouterr().out


def test_without_the_option_the_column_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column may mean the hour of a tutorial: nobody's work counts for others unasked."""
    week = assigned(tmp_path)
    place = zips.write(
        tmp_path / "all.zip", {"Tea Pots_7_assignsubmission_file_/hw.ipynb": NOTEBOOK}
    )
    command = ["grade", str(week), "--submissions", str(place), "--students"]
    command.append(str(tmp_path / "class.csv"))
    assert main(command) == 0
    advice = "if that is a group of the column 'Team', add --groups 'Team'"
    assert advice in capsys.readouterr().out
    place = zips.write(
        tmp_path / "all.zip",
        {"teapots_18_900_hw1.ipynb": NOTEBOOK, "leeann_20_901_hw1.ipynb": NOTEBOOK},
    )
    assert main(command) == 0  # the number is a member's, the others would lose
    assert f"Canvas calls it teapots; {advice}" in (week / "results/gradebook.csv").read_text()
    assert main([*command, "--groups", "Teams"]) == 1
    assert "no column 'Teams'" in capsys.readouterr().err


def test_each_member_has_a_row_of_their_own() -> None:
    """Points by hand are the group's; overrides are one student's; nobody is alike for it."""
    task = made([Student(name) for name in ("Ada", "Alan", "Grace")])
    groups = {"Pots": ("Ada", "Alan")}
    one = replace(handed(task, "Alan", 1.0, 2.0, LONG), sources="same")
    overrides = {("Ada", PENALTY): Override(1, "late"), ("Alan", "boil"): Override(3, "why")}
    book = make_gradebook([one], task, Rules(overrides=overrides, groups=groups))
    ada, alan, grace = book.entries
    assert (ada.attempts, alan.attempts, grace.attempts) == (1, 1, 0)
    assert ada.notes == ("handed in by Alan, for Pots",)
    assert (ada.taken_off, alan.taken_off) == (1, 0)
    assert [each.points for each in ada.marks] != [each.points for each in alan.marks]
    assert find_alike(book, task) == []
    # of two members' notebooks, the latest is everybody's
    two = replace(handed(task, "Ada"), handed_at="2026-11-02T10:00")
    book = make_gradebook(
        [replace(one, handed_at="2026-11-01T10:00"), two], task, Rules(groups=groups)
    )
    assert [each.result and each.result.file for each in book.entries] == ["Ada.ipynb"] * 2 + [None]
    assert [each.attempts for each in book.entries] == [2, 2, 0]
