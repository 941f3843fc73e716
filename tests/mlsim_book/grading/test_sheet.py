"""A grading sheet for work that people read."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept import text

from mlsim_book.cli import main
from mlsim_book.errors import SourceError
from mlsim_book.grading.sheet import load_rubric, read_sheet

RUBRIC = text("rubric.toml")
PROJECT = Path(__file__).parents[3] / "projects/roofline_project.rubric.toml"


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


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("ada,11,0,", r"Design: '11' is no number from 0 to 10 \(.*line 2\)|Design: '11'"),
        ("ada,5,,", "Roofline: '' is no number"),
        ("ada,-1,0,", "Design"),
        ("ada,nan,0,", "Design"),
        (",5,5,", "names no student"),
        ("ada,1,1,\nada,2,2,", "stands twice"),
    ],
)
def test_a_wrong_cell_is_refused(rubric: Path, tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(f"student,Design (10),Roofline (40),comment\n{row}\n")
    with pytest.raises(SourceError, match=said):
        read_sheet(load_rubric(rubric), path)


def test_a_sheet_of_another_rubric_is_refused(rubric: Path, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("student,Design (12),comment\nada,1,\n")
    with pytest.raises(SourceError, match=r"lacks Design \(10\), Roofline \(40\)"):
        read_sheet(load_rubric(rubric), path)


@pytest.mark.parametrize(
    "text",
    ["", "title = 3", 'title = "x"', RUBRIC.replace("points = 40", "points = 0"), "title = ["],
)
def test_a_wrong_rubric_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rubric.toml"
    path.write_text(text)
    with pytest.raises(SourceError):
        load_rubric(path)
    with pytest.raises(SourceError, match="no rubric"):
        load_rubric(tmp_path / "none.toml")


def test_the_project_s_weights_are_those_of_the_course() -> None:
    rubric = load_rubric(PROJECT)
    assert [each.points for each in rubric.criteria] == [10, 10, 20, 40, 20]
    assert rubric.points == 100
