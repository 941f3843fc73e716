"""Exports, opened by the rules that Canvas and Moodle publish for their importers.

Canvas: instructure/canvas-lms, lib/gradebook_importer.rb. Moodle: moodle/moodle,
grade/import/csv/classes/load_data.php and mod/assign/feedback/offline/importgradeslib.php, and
docs.moodle.org, "Grade import". What these programs do with each column stands here again, in a few
lines; the programs themselves are not run.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest
from made_up_class import handed, made

from mlsim_book.errors import SourceError
from mlsim_grading.class_lists import Student
from mlsim_grading.decisions import Override
from mlsim_grading.gradebook import CANVAS_OWN, Gradebook, Rules, export, make_gradebook
from mlsim_grading.overview import results_csv

EVIL = '=HYPERLINK("http://x")'


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def people(*columns: str, **rows: tuple[str, ...]) -> list[Student]:
    return [
        Student(name, columns=dict(zip(columns, cells, strict=True)))
        for name, cells in rows.items()
    ]


def a_class(columns: tuple[str, ...], **rows: tuple[str, ...]) -> Gradebook:
    """Ada has all points, Alan half of one question and a decision, Grace handed in nothing."""
    task = made(people(*columns, **rows), columns)
    own = Rules(overrides={("Alan", "cool"): Override(0.335, "why")})
    return make_gradebook([handed(task, "Ada"), handed(task, "Alan", 167.44)], task, own)


# ------------------------------------------------------------------ Canvas
def as_canvas(text: str) -> dict[str, dict[str, str]]:
    """Read a file as Canvas does: who is who, and what each gets in each assignment."""
    head, *rest = table(text)
    # row_has_student_headers?, update_column_count, header?
    assert len(head) > 3
    assert "Student" in head[0]
    assert "ID" in head[1]
    assert re.search(r"SIS\s+User\s+ID", head[2])
    assert re.search(r"SIS\s+Login\s+ID", head[3])
    assert "Section" in head[4]
    # strip_non_assignment_columns
    assignments = [each for each in head[5:] if not re.search("|".join(CANVAS_OWN), each)]
    assert len(assignments) == len(head) - 5
    found = {}
    for row in rest:
        assert len(row) == len(head)
        if "Points Possible" in row[0]:
            found["possible"] = dict(zip(assignments, row[5:], strict=True))
            continue
        # decimal_comma_to_period reads a pure number; a blank one changes nothing
        assert all(re.fullmatch(r"|-?[0-9.]+", each) for each in row[5:])
        # by Canvas's ID, then SIS ID, then login, then name
        who = next(filter(None, (row[1], row[2], row[3], row[0])))
        assert who not in found
        found[who] = dict(zip(assignments, row[5:], strict=True))
    return found


def test_canvas_reads_what_is_exported() -> None:
    # the class list is Canvas's own export
    columns = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Week 1 (11)")
    book = a_class(
        columns,
        Ada=("Lovelace, Ada", "101", "s1", "ada@x.edu", "A", "3"),
        Alan=("Turing, Alan", "102", "s2", "alan@x.edu", "A", ""),
        Grace=(EVIL, "103", "", "", "", ""),
    )
    made_ = export(book, "canvas", "Week 2 (4711)")
    found = as_canvas(made_.files["canvas.csv"])
    # points with two digits, as Canvas shows them; a blank changes nothing there
    assert found == {
        "possible": {"Week 2 (4711)": "9"}, "101": {"Week 2 (4711)": "6"},
        "102": {"Week 2 (4711)": "2.34"}, "103": {"Week 2 (4711)": ""},
    }  # fmt: skip
    assert f"'{EVIL}" in [row[0] for row in table(made_.files["canvas.csv"])]
    told = "; ".join(made_.notes)
    assert "1 student without a grade" in told
    assert "1 student with a cell that a spreadsheet may take for a formula" in told
    assert "2 students with a text that nobody has marked" in told


def test_canvas_from_another_list_and_names_it_keeps() -> None:
    columns = ("Name", "Matrikelnummer", "E-Mail")
    rows = {name: (name, f"00{n}", f"{name}@x") for n, name in enumerate(("Ada", "Alan"))}
    made_ = export(a_class(columns, **rows), "canvas")
    assert list(as_canvas(made_.files["canvas.csv"])) == ["possible", "000", "001"]
    assert table(made_.files["canvas.csv"])[2][:5] == ["Ada", "", "000", "Ada@x", ""]
    rows = {"Ada": ("7", "ada1", "Ada@x"), "Alan": ("8", "alan1", "Alan@x")}
    made_ = export(a_class(("Student ID", "Login", "Mail"), **rows), "canvas")
    assert table(made_.files["canvas.csv"])[2][:4] == ["Ada", "", "7", "ada1"]
    bare = export(a_class((), Ada=()), "canvas")
    assert "will look for students by name" in bare.notes[0]
    for name in ("Final Score", "Week 2 Current Grade"):
        with pytest.raises(SourceError, match="Canvas reads no column whose name holds"):
            export(a_class((), Ada=()), "canvas", name)


# ------------------------------------------------------------------ Moodle
MOODLE = ("First name", "Last name", "ID number", "Email address")


def as_moodle(text: str, known: set[str], mapped_from: str) -> dict[str, float | None]:
    """Read a file as Moodle's grade import does, mapped from a column to its users."""
    head, *rest = table(text)
    place = [each.strip() for each in head].index(mapped_from)
    found = {}
    for row in rest:
        assert len(row) == len(head)
        # check_user_exists: case counts, and one that isn't found ends the import
        assert row[place] in known
        value = row[-1]
        # update_grade_item: blank or "-" is no grade, else a number, 100 at most
        found[row[place]] = None if value in {"", "-"} else float(value)
        assert (found[row[place]] or 0) <= 100
    return found


def test_moodle_reads_what_is_exported() -> None:
    book = a_class(
        MOODLE,
        Ada=("Ada", "Lovelace", "0815", "Ada.L@x.edu"),
        Alan=("Alan", "Turing", "", "alan@x.edu"),
        Grace=("Grace", "Hopper", "", ""),
    )
    made_ = export(book, "moodle")
    text = made_.files["moodle.csv"]
    assert table(text)[0] == [*MOODLE, "Week 2"]
    assert as_moodle(text, {"Ada.L@x.edu", "alan@x.edu"}, "Email address") == {
        "Ada.L@x.edu": 6, "alan@x.edu": 2.34,
    }  # fmt: skip
    told = "; ".join(made_.notes)
    assert "without ID number, so don't map from it: Alan" in told
    assert "1 student left out, as nothing names them to Moodle: Grace" in told
    assert "0815" in text  # its zero is there: the file is text


def test_moodle_takes_a_hundred_points_and_needs_a_column_that_names_people() -> None:
    book = a_class(MOODLE, Ada=("Ada", "L", "1", "a@x"))
    for points, told in [(98, False), (99, True)]:  # with the 2 of another question
        one, other, _ = book.questions
        one = replace(one, exercise=replace(one.exercise, points=points))
        notes = export(replace(book, questions=(one, other)), "moodle").notes
        assert any("takes no grade above 100" in each for each in notes) == told
    with pytest.raises(SourceError, match="'Email address', 'ID number' or 'Username'") as caught:
        export(a_class(("Group",), Ada=("1",)), "moodle")
    assert "There are: Group." in str(caught.value)


def test_a_moodle_worksheet_comes_back_filled() -> None:
    columns = (
        "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
        "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
        "Feedback comments",
    )  # fmt: skip
    row = ("Submitted for grading", "", "100.00", "Yes", "Monday, 30 November 2026", "-", "")
    book = a_class(
        columns,
        Ada=("Participant 41", "Ada Lovelace", "a@x", *row),
        Alan=("Participant 42", "Alan Turing", "t@x", *row),
        Grace=("Participant 43", "Grace Hopper", "g@x", *row),
    )
    made_ = export(book, "moodle")
    head, *rest = table(made_.files["moodle-worksheet.csv"])
    assert tuple(head) == columns
    # init(): these three by name; next(): the number at the end of "Participant 41"
    at = {name: head.index(name) for name in ("Identifier", "Grade", "Last modified (grade)")}
    assert {int(each[at["Identifier"]].removeprefix("Participant ")): each[at["Grade"]] for each in rest} == {
        41: "66.67", 42: "25.94", 43: "",
    }  # fmt: skip
    assert {each[at["Last modified (grade)"]] for each in rest} == {"-"}
    assert "points of 9 were scaled to Moodle's maximum of 100" in made_.notes


# ------------------------------------------------------------------ a plain table, and guards
def test_what_is_of_nobody_is_told() -> None:
    task = made(people("Group", Ada=("1",), Eve=("2",)), ["Group"])
    for count, words in [(0, []), (1, ["1 submission of nobody that is known: not in it"]),
                         (2, ["2 submissions of nobody that is known: not in it"])]:  # fmt: skip
        nobodys = [handed(task, "", file=f"{number}.ipynb") for number in range(count)]
        marked = handed(task, "Ada", 1, 1, "...")
        book = make_gradebook([marked, *nobodys], task)
        assert [each for each in export(book, "canvas").notes if "nobody" in each] == words
        rows = table(results_csv(book.results, task, {"Eve": "ill"}))
        assert [row[:2] for row in rows[1:]] == [
            ["Ada", "Ada.ipynb"], *(["", f"{number}.ipynb"] for number in range(count)), ["Eve", ""],
        ]  # fmt: skip
        assert rows[0][-2:] == ["notes", "Group"]
        assert rows[-1][2:4] == ["0", "9"]
        assert rows[-1][-2] == "ill"


def test_no_cell_begins_a_formula() -> None:
    for sign in ["=", "+", "-", "@", " =", "\t=", "\r@", "＝", "＋"]:
        evil = f"{sign}cmd|' /C calc'!A0"
        task = made([Student(evil, columns={"Email address": evil})], ["Email address"])
        book = make_gradebook([handed(task, evil)], replace(task, title=evil))
        for kind in ("canvas", "moodle"):
            made_ = export(book, kind)
            cells = [each for text in made_.files.values() for row in table(text) for each in row]
            assert not any(each.lstrip()[:1] in set("=+-@＝＋") for each in cells if each), sign
            assert "formula" in "".join(made_.notes)
