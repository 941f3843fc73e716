"""A professor's afternoon, as teaching.qmd tells it: from Moodle's class list to Moodle's gradebook.

And a student who enrols late, whose numbers move nobody else's.
"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import zips
from boiling import LID, QUESTIONS, write_book
from handed_in import notebook, rows

from mlsim_book.cli import main
from mlsim_grading.assignment import read_key

# One of the mistakes earns part of the points, and a person marks the last question.
CREDITED = QUESTIONS.replace('for one litre."\n', 'for one litre."\ncredit = 0.5\n') + LID
# as Moodle saves its list of participants where a comma is the decimal sign, with a formula in it
CLASS = (
    "First name;Last name;ID number;Email address;Groups\n"
    "Ada;Lovelace;0815;ada@uni.example;A\n"
    "Alan;Turing;0816;alan@uni.example;A\n"
    "Grace;Hopper;0817;grace@uni.example;=1+1\n"
    "José;Núñez;0818;jose@uni.example;B\n"
)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of one chapter, with a question that a person marks, and one with part of the points."""
    return write_book(tmp_path, CREDITED)


def solved(path: Path, **answers: Any) -> bytes:
    """A student's notebook with answers in it, as Jupyter saves it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        for name, value in answers.items():
            if cell["cell_type"] == "code" and source.startswith(name):
                cell["source"] = f"{name} = {value!r}"
    return json.dumps(notebook).encode()


def test_a_professors_afternoon(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed, week = tmp_path / "participants.csv", tmp_path / "week2"
    listed.write_bytes(CLASS.encode("cp1252"))
    # the assignment
    assign = ["assign", "index", "--out", str(week), "--root", str(book), "--title", "Week 2"]
    assert main([*assign, "--variant-by", str(listed)]) == 0
    notebooks = {each.stem: each for each in (week / "students").iterdir()}
    assert sorted(notebooks) == ["Ada_Lovelace", "Alan_Turing", "Grace_Hopper", "José_Núñez"]
    key = read_key(week / "key.json")
    ada = {
        f"answer_{question.exercise.id.replace('-', '_')}": question.versions[version].answer
        for question, version in zip(key.questions, key.students["Ada Lovelace"], strict=True)
    }
    # the zip of submissions that Moodle gives: Ada right, Alan on a wrong path, José never
    late = "Grace Hopper_43_assignsubmission_file_/Week_2.ipynb"
    zips.write(
        week / "submissions" / "moodle.zip",
        {
            "Ada Lovelace_41_assignsubmission_file_/Week 2.ipynb": solved(
                notebooks["Ada_Lovelace"], **{**ada, "answer_why_a_lid": "Steam carries\nthe heat."}
            ),
            "Alan Turing_42_assignsubmission_file_/mine (1).ipynb": solved(
                notebooks["Alan_Turing"], answer_boil=167.44, answer_why_a_lid="=It is warm"
            ),
            late: b"\x89PNG no notebook",
        },
    )
    # grades
    grade = ["grade", str(week), "--due", "2026-11-30T23:59+01:00"]
    assert main([*grade, "--export", "moodle"]) == 0
    said = capsys.readouterr().out
    assert "2 texts to be marked" in said
    found = rows(week / "results" / "gradebook.csv")
    assert {name: row["points"] for name, row in found.items()} == {
        "Ada Lovelace": "4", "Alan Turing": "1", "Grace Hopper": "0", "José Núñez": "0",
    }  # fmt: skip
    assert found["José Núñez"]["Email address"] == "jose@uni.example"
    assert "nothing was handed in" in found["José Núñez"]["notes"]
    assert found["Grace Hopper"]["Groups"] == "'=1+1"
    assert "formula" in said
    page = (week / "results" / "overview.html").read_text(encoding="utf-8")
    assert "Texts to be marked, in hand/: 2." in page
    # points by hand, in Excel's way; and a decision
    sheet = week / "hand" / "why-a-lid.csv"
    text = sheet.read_text("utf-8-sig")
    assert text.startswith("row,student,answer,Reason (2),")
    text = text.replace("'=It is warm,,", "'=It is warm,1,Look at the steam.")
    sheet.write_bytes(text.replace('the heat.",,', 'the heat.",2,').encode("utf-8"))
    (week / "overrides.csv").write_text(
        "student,question,points,why\nAlan Turing,sort-them,1,Showed it in class\n"
        "0817,boil,0.5,File was broken; told me in time\n"
    )
    # one regrade: nothing runs again, and what was decided holds
    kept = {each: each.stat().st_mtime_ns for each in (week / "results" / "kept").iterdir()}
    for _ in range(2):
        assert main([*grade, "--export", "moodle", "--export", "canvas"]) == 0
    assert kept == {each: each.stat().st_mtime_ns for each in (week / "results" / "kept").iterdir()}
    said = capsys.readouterr().out
    assert "to be marked" not in said
    found = rows(week / "results" / "gradebook.csv")
    assert {name: row["points"] for name, row in found.items()} == {
        "Ada Lovelace": "6", "Alan Turing": "3", "Grace Hopper": "0.5", "José Núñez": "0",
    }  # fmt: skip
    assert "sort-them: 1, Showed it in class" in found["Alan Turing"]["notes"]
    judged = rows(week / "results" / "results.csv")["Alan Turing"]
    assert (judged["boil: verdict"], judged["of"]) == ("wrong path", "6")
    assert "wrong path" in (week / "results" / "mistakes.csv").read_text("utf-8")
    pages = {each.name: each.read_text("utf-8") for each in (week / "results/feedback").iterdir()}
    (alan,) = [each for name, each in pages.items() if "Alan" in name]
    assert "Look at the steam." in alan
    assert "This earns 50 % of the points." in alan
    assert "Showed it in class" not in alan
    # the export: what Moodle's importer maps from is there for all
    moodle = rows(week / "results" / "moodle.csv")
    by_mail = {row["Email address"]: row["Week 2"] for row in moodle.values()}
    assert by_mail == {
        "ada@uni.example": "6", "alan@uni.example": "3", "grace@uni.example": "0.5",
        "jose@uni.example": "",
    }  # fmt: skip
    assert (week / "results" / "canvas.csv").exists()
    assert re.search(r"export: 1 student without a grade.*José Núñez", said)


def test_who_enrols_late_moves_nobody(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed, week = tmp_path / "class.csv", tmp_path / "week"
    listed.write_text("student,group\n" + "".join(f"s{n},1\n" for n in range(8)))
    assign = ["assign", "index", "--out", str(week), "--root", str(book)]
    assert main([*assign, "--variant-by", str(listed)]) == 0
    before = {each: each.read_bytes() for each in (week / "students").iterdir()}
    (week / "submissions" / "s1.ipynb").write_bytes((week / "solutions" / "s1.ipynb").read_bytes())
    (week / "submissions" / "zoe.ipynb").write_bytes((week / "solutions" / "s1.ipynb").read_bytes())
    (week / "overrides.csv").write_text("student,question,points,why\ns1,boil,1,x\n")
    key = read_key(week / "key.json")
    # s0 has left; two are new, one of them first
    listed.write_text(
        "student,group\nzoe,2\n" + "".join(f"s{n},1\n" for n in range(1, 8)) + "new,3\n"
    )
    capsys.readouterr()
    assert main([*assign, "--variant-by", str(listed)]) == 1
    assert "Add students who came late with --add" in capsys.readouterr().err
    assert main([*assign, "--variant-by", str(listed), "--add"]) == 0
    assert "2 students more" in capsys.readouterr().out
    after = read_key(week / "key.json")
    assert {name: after.students[name] for name in key.students} == key.students
    assert set(after.students) == {*key.students, "zoe", "new"}
    assert before == {each: each.read_bytes() for each in before}
    assert (week / "students" / "zoe.ipynb").exists()
    # the same numbers that the whole list would have given from the start
    other = tmp_path / "other"
    assert main([*assign[:2], "--out", str(other), *assign[4:], "--variant-by", str(listed)]) == 0
    whole = read_key(other / "key.json").students
    assert {name: after.students[name] for name in whole} == whole
    # once more changes nothing; another seed or other questions are refused
    text = (week / "key.json").read_text()
    more = ["--variant-by", str(listed), "--add"]
    assert main([*assign, *more]) == 0
    assert (week / "key.json").read_text() == text
    for wrong, words in [
        ([*assign, *more, "--seed", "z"], "would give other numbers to"),
        (["assign", "boil", *assign[2:], *more], "are not those of this assignment"),
        ([*assign, "--add"], ""),
    ]:
        capsys.readouterr()
        assert main(wrong) == 1
        assert words in capsys.readouterr().err
    assert (week / "key.json").read_text() == text
    # what was handed in before is graded with the numbers that it was given
    assert main(["grade", str(week)]) == 0
    found = rows(week / "results" / "gradebook.csv")
    assert found["s1"]["boil"] == "1"
    assert (found["s0"]["group"], found["zoe"]["group"]) == ("1", "2")
    assert set(found) == set(after.students)


def test_a_wrong_answer_is_corrected_and_nothing_runs_again(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, listed, week = book / "index.exercises.toml", tmp_path / "class.csv", tmp_path / "week"
    asked = file.read_text()
    file.write_text(asked.replace("litres * 334880 / power", "litres * 234880 / power"))
    listed.write_text("student\n" + "".join(f"s{n}\n" for n in range(6)))
    assign = ["assign", "index", "--out", str(week), "--root", str(book)]
    assert main([*assign, "--variant-by", str(listed)]) == 0
    key = read_key(week / "key.json")
    litres = key.questions[0].versions[key.students["s3"][0]].given["litres"]
    right = solved(week / "students" / "s3.ipynb", answer_boil=litres * 334880 / 2000)
    (week / "submissions" / "s3.ipynb").write_bytes(right)
    assert main(["grade", str(week)]) == 0
    assert rows(week / "results" / "gradebook.csv")["s3"]["boil"] == "0"
    (kept,) = (week / "results" / "kept").iterdir()
    before = {each: each.read_bytes() for each in (*(week / "students").iterdir(), kept)}
    stamp = kept.stat().st_mtime_ns
    capsys.readouterr()
    # nothing differs yet; then the answer is mended
    assert main([*assign, "--correct"]) == 0
    assert "corrected: nothing" in capsys.readouterr().out
    file.write_text(asked)
    assert main([*assign, "--correct"]) == 0
    assert "corrected: boil\n" in capsys.readouterr().out
    assert read_key(week / "key.json").students == key.students
    assert str(litres * 334880 / 2000) in (week / "key.json").read_text()
    assert main(["grade", str(week)]) == 0
    assert rows(week / "results" / "gradebook.csv")["s3"]["boil"] == "2"
    assert {each: each.read_bytes() for each in before} == before
    assert kept.stat().st_mtime_ns == stamp
    # what would change more than answers is refused, and changes nothing
    text = (week / "key.json").read_text()
    capsys.readouterr()
    wanted = [*assign[:1], "boil", *assign[2:], "--correct"]
    assert main(wanted) == 1
    assert "Name the same, in the same order: boil, unit-of-power" in capsys.readouterr().err
    file.write_text(asked.replace("litres * 334880", "(litres if litres == 2 else 1) * 334880"))
    assert main([*assign, "--correct"]) == 1
    assert "'boil' can't be corrected for litres = " in capsys.readouterr().err
    assert (week / "key.json").read_text() == text


def test_slips_of_the_instructor_are_told_before_anything_runs(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    week = tmp_path / "week"
    assert main(["assign", "index", "--out", str(week), "--root", str(book)]) == 0
    (week / "submissions" / "ann.ipynb").write_text('{"cells": []}')
    for options, words in [
        (["--due", "tomorrow"], "no date"),
        (["--late-per-day", "5"], "nothing says when it was due"),
        (["--due", "2026-11-30T23:59Z", "--late-per-day", "120"], "must be from 0 to 100"),
        (["--due", "2026-11-30T23:59Z", "--grace", "-1"], "must be from 0"),
        (["--overrides", str(tmp_path / "none.csv")], "no such file of overrides"),
        (["--export", "moodle"], "tells Moodle who is who"),
        (["--export", "canvas", "--export-as", "Final Grade"], "Canvas reads no column"),
    ]:
        capsys.readouterr()
        assert main(["grade", str(week), *options]) == 1
        assert words in capsys.readouterr().err
        assert not (week / "results" / "results.csv").exists()
    (week / "hand").mkdir()
    (week / "hand" / "why-a-lid.csv").write_text("row,student\n")
    assert main(["grade", str(week)]) == 1
    assert "why-a-lid.csv:1: there is no column answer" in capsys.readouterr().err


def test_texts_of_strangers_are_read_whole_and_safely(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    week = tmp_path / "week"
    assert main(["assign", "index", "--out", str(week), "--root", str(book)]) == 0
    odd = {
        "long": "'é\\U0001d54f' * 4000", "lines": "'a\\r\\n\\x1b[31mb\\ud800\\n=1+1'",
        "blank": "'\\n...\\n'", "number": "3", "html": "'<img src=x onerror=alert(1)>'",
    }  # fmt: skip
    for name, code in odd.items():
        (week / "submissions" / f"{name}.ipynb").write_text(notebook(f"answer_why_a_lid = {code}"))
    # without a class list, students are those who handed in
    own = week / "overrides.csv"
    own.write_text("student,question,points,why\nlongg,boil,2,x\n")
    assert main(["grade", str(week)]) == 1
    assert "overrides.csv:2: there is no student 'longg'\n  Did you mean 'long'?" in (
        capsys.readouterr().err
    )
    own.write_text("student,question,points,why\nlong,boil,2,x\n")
    assert main(["grade", str(week)]) == 0
    assert rows(week / "results" / "gradebook.csv")["long"]["points"] == "2"
    sheet = (week / "hand" / "why-a-lid.csv").read_text("utf-8-sig")
    found = {row["student"]: row["answer"] for row in csv.DictReader(io.StringIO(sheet))}
    assert set(found) == {"long", "lines", "html"}
    assert len(found["long"]) == 5000
    assert found["lines"] == "a\n [31mb?\n'=1+1"
    pages = week / "results" / "feedback"
    assert "Only its first 5,000 characters count." in (pages / "long.html").read_text("utf-8")
    assert "<img" not in (pages / "html.html").read_text("utf-8")
    assert "The answer is a text, in quotes." in (pages / "number.html").read_text("utf-8")
