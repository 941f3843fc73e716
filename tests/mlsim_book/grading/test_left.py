"""What is said of those of whom there is no notebook, and of what is late without a rule."""

from __future__ import annotations

from pathlib import Path

import pytest
import zips
from boiling import write_book
from handed_in import RIGHT, notebook, rows

from mlsim_book.cli import main

NOTEBOOK = notebook(RIGHT).encode()


@pytest.fixture
def week(tmp_path: Path) -> Path:
    out = tmp_path / "week"
    assert main(["assign", "index", "--out", str(out), "--root", str(write_book(tmp_path))]) == 0
    return out


def grade(week: Path, files: dict[str, bytes], listed: str, *options: str) -> dict[str, str]:
    """Grade the zip of a platform; return the notes of the gradebook by student."""
    place = zips.write(week.parent / "all.zip", files)
    students = week.parent / "class.csv"
    students.write_text(listed)
    command = ["grade", str(week), "--submissions", str(place), "--students", str(students)]
    assert main([*command, *options]) == 0
    return {name: row["notes"] for name, row in rows(week / "results" / "gradebook.csv").items()}


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
    notes = grade(week, files, listed)
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
    notes = grade(week, files, listed)
    assert notes["Ada Lovelace"].startswith("late, says the course system: nothing was taken off")
    assert notes["Alan Turing"] == ""
    said = capsys.readouterr().out
    assert "WARN: 1 late, says the course system, and nothing was taken off: give --due" in said
    page = (week / "results" / "overview.html").read_text()
    assert "Late, says the course system, and nothing was taken off: Ada Lovelace." in page
    # with a rule, Canvas's word has no time: the instructor decides
    notes = grade(week, files, listed, "--due", "2026-11-30T23:59Z")
    assert "not by how much" in notes["Ada Lovelace"]
    assert "WARN: 1 late, says the course system, and nothing was taken off: write 'late pen" in (
        capsys.readouterr().out
    )
    (week / "overrides.csv").write_text(
        "student,question,points,why\nAda Lovelace,late penalty,1,A day late\n"
    )
    notes = grade(week, files, listed)
    assert notes["Ada Lovelace"] == "late penalty: 1, A day late"
    assert "WARN" not in capsys.readouterr().out
