"""A grading sheet for work that people read."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept import text

from mlsim_book.cli import main
from mlsim_book.errors import SourceError
from mlsim_grading.decisions import load_rubric, read_sheet

RUBRIC = text("rubric.toml")
PROJECT = Path(__file__).parents[2] / "projects/roofline_project.rubric.toml"


@pytest.fixture
def rubric(tmp_path: Path) -> Path:
    path = tmp_path / "rubric.toml"
    path.write_text(RUBRIC)
    return path


def test_from_a_list_to_feedback(rubric: Path, tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text("student\nada\nalan\n")
    out = tmp_path / "out"
    command = ["sheet", str(rubric), "--out", str(out)]
    assert main([*command, "--students", str(tmp_path / "class.csv")]) == 0
    sheet = out / "sheet.csv"
    assert sheet.read_text() == "student,Design (10),Roofline (40),comment\nada,,,\nalan,,,\n"
    # A sheet that may be filled in is not written over.
    assert main([*command, "--students", str(tmp_path / "class.csv")]) == 1
    sheet.write_text(sheet.read_text().replace("ada,,,", 'ada,10,"32,5",Good.'))
    assert main([*command, "--filled", str(sheet)]) == 0
    assert (out / "totals.csv").read_text() == "student,points,of\nada,42.5,50\n"
    page = (out / "feedback/ada.md").read_text()
    assert "42.5 of 50 points" in page
    assert "- **Design**: 10 of 10\n- **Roofline**: 32.5 of 40\n  All points: A roof." in page
    assert page.endswith("\nGood.\n")


def test_a_wrong_sheet_is_refused(rubric: Path, tmp_path: Path) -> None:
    path, head = tmp_path / "sheet.csv", "student,Design (10),Roofline (40),comment\n"
    for table, said in {
        f"{head}ada,11,0,": "Design: '11'", f"{head}ada,5,,": "Roofline: '' is no number",
        f"{head}ada,-1,0,": "Design", f"{head}ada,nan,0,": "Design",
        f"{head},5,5,": "names no student", f"{head}ada,1,1,\nada,2,2,": "stands twice",
        "student,Design (12),comment\nada,1,\n": r"no column Design \(10\), Roofline \(40\)",
    }.items():  # fmt: skip
        path.write_text(f"{table}\n")
        with pytest.raises(SourceError, match=said):
            read_sheet(load_rubric(rubric), path)


def test_a_wrong_rubric_is_refused(tmp_path: Path) -> None:
    path, free = tmp_path / "rubric.toml", RUBRIC.replace("points = 40", "points = 0")
    for wrong in ("", "title = 3", 'title = "x"', free, "title = ["):
        path.write_text(wrong)
        with pytest.raises(SourceError):
            load_rubric(path)
    with pytest.raises(SourceError, match="no rubric"):
        load_rubric(tmp_path / "none.toml")


def test_the_project_s_weights_are_those_of_the_course() -> None:
    rubric = load_rubric(PROJECT)
    assert [each.points for each in rubric.criteria] == [10, 10, 20, 40, 20]
    assert rubric.points == 100


def test_the_sample_report_has_full_marks_by_its_own_rubric() -> None:
    rubric = load_rubric(PROJECT)
    sheet = read_sheet(rubric, PROJECT.with_name("roofline_report.sheet.csv"))
    assert sheet["sample"][0] == tuple(each.points for each in rubric.criteria)
