"""Groups that hand in one notebook, those of whom there is none, and what is late without a rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import zips
from boiling import LID, QUESTIONS, write_book
from handed_in import RIGHT, notebook, rows
from made_up_class import handed, made

from mlsim_book.cli import main
from mlsim_grading.class_lists import Student
from mlsim_grading.decisions import PENALTY, Override
from mlsim_grading.gradebook import Rules, make_gradebook
from mlsim_grading.overview import find_alike

CLASS = (
    "Student,ID,SIS Login ID,Section,Team\n"
    "Ada Lovelace,17,ada,1,Tea Pots\nAlan Turing,18,alan,1,Tea Pots\n"
    "Grace Hopper,19,grace,1,Cups\nAnn Lee,20,ann,1,\n"
)
NOTEBOOK = notebook(RIGHT).encode()
TEAMS = ("--groups", "team")
LONG = "Steam carries the heat away, and a lid keeps the steam, so less power is lost to the room."


def grade(
    week: Path, files: dict[str, bytes], *options: str, listed: str = ""
) -> dict[str, tuple[str, str]]:
    """Grade the zip of a platform; return points and notes of the gradebook by student."""
    command = ["grade", str(week), "--submissions", str(zips.write(week.parent / "all.zip", files))]
    if listed:
        (week.parent / "class.csv").write_text(listed)
        command += ["--students", str(week.parent / "class.csv")]
    assert main([*command, *options]) == 0
    found = rows(week / "results" / "gradebook.csv")
    return {name: (row["points"], row["notes"]) for name, row in found.items()}


@pytest.fixture
def week(tmp_path: Path) -> Path:
    """An assignment with the same numbers for all."""
    return assigned(tmp_path)


def assigned(tmp_path: Path, *options: str) -> Path:
    (tmp_path / "class.csv").write_text(CLASS)
    book, out = write_book(tmp_path, QUESTIONS + LID), tmp_path / "week"
    assert main(["assign", "index", "--out", str(out), "--root", str(book), *options]) == 0
    return out


def test_one_notebook_counts_for_all_members(week: Path) -> None:
    for file in [
        "Tea Pots_17_assignsubmission_file_/hw.ipynb",  # Moodle; 17 is the number of the group
        "Tea Pots - hw1.ipynb", "Tea Pots/hw.ipynb",  # by hand
        "teapots_18_900_hw1.ipynb",  # Canvas; 18 is a member's
        "turingalan_18_900_hw1.ipynb",
        "Alan Turing.ipynb",
    ]:  # fmt: skip
        other = "leeann_20_901_hw1.ipynb" if "_900_" in file else "Ann Lee.ipynb"
        found = grade(week, {file: NOTEBOOK, other: NOTEBOOK}, *TEAMS, listed=CLASS)
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
        found = grade(week, {name: solved[maker]}, *TEAMS)
        assert found["Ada Lovelace"][0] == found["Alan Turing"][0] == "4"
    # a member's own name says the same, whoever's numbers they took
    found = grade(week, {"Alan Turing.ipynb": solved["Ada_Lovelace"]}, *TEAMS)
    assert found["Ada Lovelace"][0] == found["Alan Turing"][0] == "4"
    capsys.readouterr()
    # whose numbers these are must be known, and be a member's
    for data, words in [
        (NOTEBOOK, "it is of Tea Pots, and the notebook doesn't say whose numbers it has"),
        (solved["Ann_Lee"], "it is of Tea Pots, and the notebook was made for Ann Lee"),
    ]:
        found = grade(week, {name: data}, *TEAMS)
        assert found["Ada Lovelace"] == found["Alan Turing"]
        assert found["Ada Lovelace"][0] == "0"
        assert words in capsys.readouterr().out


def test_without_the_option_the_column_is_named(
    week: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column may mean the hour of a tutorial: nobody's work counts for others unasked."""
    advice = "if that is a group of the column 'Team', add --groups 'Team'"
    grade(week, {"Tea Pots_7_assignsubmission_file_/hw.ipynb": NOTEBOOK}, listed=CLASS)
    assert advice in capsys.readouterr().out
    files = dict.fromkeys(("teapots_18_900_hw1.ipynb", "leeann_20_901_hw1.ipynb"), NOTEBOOK)
    found = grade(week, files, listed=CLASS)  # the number is a member's, the others would lose
    assert any(f"Canvas calls it teapots; {advice}" in notes for _, notes in found.values())
    command = ["grade", str(week), "--submissions", str(week.parent / "all.zip")]
    command += ["--students", str(week.parent / "class.csv"), "--groups", "Teams"]
    assert main(command) == 1
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


# ------------------------------------------------------------------ who is left, what is late
def test_who_handed_in_something_else_is_not_said_to_have_handed_in_nothing(
    week: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "Ada Lovelace_1_assignsubmission_file_/hw.ipynb": NOTEBOOK,
        "Alan Turing_2_assignsubmission_file_/hw1.pdf": b"%PDF",
        "Alan Turing_2_assignsubmission_file_/.DS_Store": b"",
        "Ada Lovelace_1_assignsubmission_file_/plot.png": b"",
        "Ann Lee_3_assignsubmission_file_/hw.ipynb": NOTEBOOK,
    }
    listed = "Student,ID\nAda Lovelace,a\nAlan Turing,b\nAnn Lee,c\nLee Ann,d\nGrace Hopper,e\n"
    notes = {name: each for name, (_, each) in grade(week, files, listed=listed).items()}
    pdf = "Alan Turing_2_assignsubmission_file_/hw1.pdf"
    theirs = "Ann Lee_3_assignsubmission_file_/hw.ipynb may be theirs: see not_graded.csv"
    assert notes == {
        "Ada Lovelace": "",
        "Alan Turing": f"no notebook was handed in, but {pdf} (no notebook (.ipynb))",
        "Ann Lee": theirs, "Lee Ann": theirs,
        "Grace Hopper": "nothing was handed in",
    }  # fmt: skip
    # the other tables and the terminal say the same
    told = rows(week / "results" / "not_graded.csv")
    assert told[pdf]["student"] == "Alan Turing"
    table = (week / "results" / "results.csv").read_text()
    assert all(each in table for each in notes.values())
    page = (week / "results" / "overview.html").read_text()
    assert f"Alan Turing: {notes['Alan Turing']}" in page
    said = capsys.readouterr().out
    assert f"WARN: {pdf} was not graded: no notebook (.ipynb)" in said
    assert "plot.png was not graded" not in said
    assert "2 other files are no notebooks" in said


def test_what_canvas_calls_late_is_told_where_no_rule_takes_anything_off(
    week: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "lovelaceada_LATE_4711_815_hw1.ipynb": NOTEBOOK,
        "turingalan_4712_816_hw1.ipynb": NOTEBOOK,
    }
    listed = "Student,ID,SIS Login ID,Section\nAda Lovelace,4711,a,1\nAlan Turing,4712,b,1\n"
    found = grade(week, files, listed=listed)
    assert found["Ada Lovelace"][1].startswith(
        "late, says the course system: nothing was taken off"
    )
    assert found["Alan Turing"][1] == ""
    said = capsys.readouterr().out
    assert "WARN: 1 late, says the course system, and nothing was taken off: give --due" in said
    page = (week / "results" / "overview.html").read_text()
    assert "Late, says the course system, and nothing was taken off: Ada Lovelace." in page
    # with a rule, Canvas's word has no time: the instructor decides
    found = grade(week, files, "--due", "2026-11-30T23:59Z", listed=listed)
    assert "not by how much" in found["Ada Lovelace"][1]
    assert "WARN: 1 late, says the course system, and nothing was taken off: write 'late pen" in (
        capsys.readouterr().out
    )
    (week / "overrides.csv").write_text(
        "student,question,points,why\nAda Lovelace,late penalty,1,A day late\n"
    )
    found = grade(week, files, listed=listed)
    assert found["Ada Lovelace"][1] == "late penalty: 1, A day late"
    assert "WARN" not in capsys.readouterr().out
