"""Assignments: what students get, and what is made of whatever they hand in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from boiling import QUESTIONS, write_book
from handed_in import notebook
from kept import cases

from mlsim_book.cli import main
from mlsim_book.errors import SourceError
from mlsim_exercises.data import load
from mlsim_grading.assignment import choose, make_assignment, read_key
from mlsim_grading.grade import Folders, Result, grade
from mlsim_grading.overview import page
from mlsim_grading.walls.bubblewrap import environment
from mlsim_grading.walls.supervise import Limits

RIGHT = {
    "answer_boil": "334.88",
    "answer_unit_of_power": "'J/s'",
    "answer_sort_them": "['cup', 'kettle', 'bath']",
}
# Inside, /tmp is the notebook's own, unless packages that it sees lie there.
GONE = "WallError" if any(each.startswith("/tmp/") for each in environment().shown) else (
    "FileNotFoundError"
)  # fmt: skip
QUICK = Limits(cell_seconds=3, seconds=20, memory=2**30, file_size=10**6)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book with a chapter of questions."""
    return write_book(tmp_path)


@pytest.fixture
def homework(book: Path) -> Path:
    """The same questions for all, made by the command."""
    out = book.parent / "homework"
    assert main(["assign", "index", "--out", str(out), "--root", str(book)]) == 0
    return out


def answers(**other: str) -> str:
    """Code that gives the answers, the right ones where nothing else is given."""
    return "\n".join(f"{name} = {value}" for name, value in {**RIGHT, **other}.items())


def graded(homework: Path, limits: Limits = QUICK, **files: str) -> dict[str, Result]:
    """Grade these notebooks, by name."""
    for name, text in files.items():
        (homework / "submissions" / f"{name}.ipynb").write_text(text)
    folders = Folders.of(homework, key=None, submissions=None, out=None)
    results = grade(folders, limits=limits, progress=lambda _: None)
    return {result.file.removesuffix(".ipynb"): result for result in results}


def points(result: Result) -> list[float]:
    """The points of each question."""
    return [mark.points for mark in result.marks]


# ------------------------------------------------------------------ handing out
def test_students_get_no_answer(homework: Path) -> None:
    (handed,) = (homework / "students").iterdir()
    text = handed.read_text()
    for answer in ("334.88", "334880", "167", "'J/s'\"", "largest first", "Energy over"):
        assert answer not in text
    assert "How long for 2 l at 2 kW? See *the kettle*." in text
    assert "answer_boil = ...  # a number in s" in text
    assert "## 1. Boil (2 points)" in text
    assert "## 2. The unit (1 point)" in text
    assert text.count("*Answer in s") == text.count("*Answer ") == 1  # of a number alone
    assert "4 points in all" in text
    assert "for one litre" in (homework / "rubric.md").read_text()
    assert [each.name for each in (homework / "submissions").iterdir()] == []


def test_solutions_score_full_and_blank_scores_nothing(homework: Path) -> None:
    (solution,) = (homework / "solutions").iterdir()
    (blank,) = (homework / "students").iterdir()
    found = graded(homework, full=solution.read_text(), blank=blank.read_text())
    assert points(found["full"]) == [2, 1, 1]
    assert points(found["blank"]) == [0, 0, 0]
    assert {mark.kind for mark in found["blank"].marks} == {"not attempted"}


def test_variants(book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"s{number}" for number in range(12)]
    students = tmp_path / "class.csv"
    students.write_text("\ufeffmail,Student\n" + "".join(f"x,{name}\n" for name in names))
    out = tmp_path / "week"
    command = ["assign", "index.qmd", "--out", str(out), "--root", str(book)]
    assert main([*command, "--variant-by", str(students)]) == 0
    assert "the same for all" in capsys.readouterr().out
    key = read_key(out / "key.json")
    assert sorted(key.students) == sorted(names)
    assert len({numbers[0] for numbers in key.students.values()}) > 1
    texts = {name: (out / "solutions" / f"{name}.ipynb").read_text() for name in names}
    first, other = (
        next(name for name in names if key.students[name][0] == version) for version in (0, 1)
    )
    assert "litres = 2" in texts[first]
    assert "litres = 3" in texts[other]
    # the same command makes the same files; a student more changes nobody's numbers
    before = (out / "key.json").read_text()
    assert main([*command, "--variant-by", str(students)]) == 0
    students.write_text("student\nnew\n" + "".join(f"{name}\n" for name in names))
    assert main([*command, "--variant-by", str(students)]) == 1
    assert "there is another assignment in this folder" in capsys.readouterr().err
    assert (out / "key.json").read_text() == before
    assert main([*command, "--variant-by", str(students), "--replace"]) == 0
    assert (out / "solutions" / f"{other}.ipynb").read_text() == texts[other]
    # another student's numbers are told from one's own, by the file's name
    found = graded(
        out, **{f"week_{first}_17": texts[other], other: texts[other], "x": texts[other]}
    )
    assert points(found[other]) == [2, 1, 1]
    # a name and a notebook that differ are nobody's, until the instructor says whose
    odd = found[f"week_{first}_17"]
    assert (odd.student, points(odd), odd.candidates) == (
        "",
        [0, 0, 0],
        tuple(sorted([first, other])),
    )
    assert odd.undecided == f"the file's name says {first}, the notebook was made for {other}"
    # nor does a notebook's own word make it one more file of somebody who handed in another
    assert (found["x"].student, found["x"].candidates) == ("", (other,))
    (out / "submissions" / f"{other}.ipynb").unlink()
    found = graded(out)
    assert found["x"].student == other
    assert "known by the notebook alone" in found["x"].notes[0]
    (out / "matches.csv").write_text(f"file;student\nweek_{first}_17.ipynb;{first}\n")
    found = graded(out)
    assert points(found[f"week_{first}_17"]) == [0, 1, 1]
    assert found[f"week_{first}_17"].student == first


def test_an_unknown_student_is_not_graded(book: Path, tmp_path: Path) -> None:
    students = tmp_path / "class.csv"
    students.write_text("student\nada\n\n")
    out = tmp_path / "week"
    main(["assign", "boil", "--out", str(out), "--root", str(book), "--variant-by", str(students)])
    found = graded(out, someone=notebook(answers()))
    assert points(found["someone"]) == [0]
    assert "isn't known" in found["someone"].marks[0].message


def test_wrong_names_and_folders(book: Path, homework: Path, tmp_path: Path) -> None:
    files = [book / "index.exercises.toml"]
    with pytest.raises(SourceError, match=r"Did you mean 'boil'.*exercises: index"):
        choose(["boyl"], files)
    assert choose(["sort-them", "index"], files)[0].id == "sort-them"
    assert len(choose([str(files[0])], [])) == 3
    command = ["assign", "boil", "--root", str(book), "--out"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    assert main([*command, str(tmp_path / "full")]) == 1
    assert (tmp_path / "full" / "thesis.tex").read_text() == "mine"
    (homework / "submissions" / "ada.ipynb").write_text(notebook(""))
    assert main([*command, str(homework)]) == 1
    assert main(["grade", str(tmp_path)]) == 1
    assert main(["grade", str(homework), "--submissions", str(tmp_path / "no")]) == 1
    (homework / "key.json").write_text('{"version": 1}')
    assert main(["grade", str(homework)]) == 1
    (homework / "key.json").write_text('{"version": 9}')
    with pytest.raises(SourceError, match="version 9"):
        read_key(homework / "key.json")


def decided(homework: Path) -> dict[Path, str]:
    """What only an instructor can have written into an assignment."""
    texts = {
        homework / "overrides.csv": "student,question,points,why\nada,boil,1,asked\n",
        homework / "matches.csv": "file,student\nx.ipynb,ada\n",
        homework / "hand" / "boil.csv": "student,points\nada,2\n",
    }
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return texts


def test_another_assignment_keeps_what_was_decided(
    book: Path, homework: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = decided(homework)
    command = ["assign", "--out", str(homework), "--root", str(book)]
    assert main([*command, "index"]) == 0
    assert {path: path.read_text() for path in texts} == texts
    before = sorted(homework.rglob("*"))
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    with monkeypatch.context() as patch:  # one that fails leaves the old one
        patch.setattr(Path, "rename", refuse)
        assert main([*command, "boil", "--replace"]) == 1
    assert sorted(homework.rglob("*")) == before
    assert "sort-them" in (homework / "key.json").read_text()
    assert main([*command, "boil", "--replace"]) == 0
    assert "sort-them" not in (homework / "key.json").read_text()
    assert {path: path.read_text() for path in texts} == texts
    assert not list(homework.parent.glob(".homework*"))


def test_numbers_that_make_mistakes_look_alike_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.exercises.toml"
    path.write_text(
        QUESTIONS.replace("given]\nlitres = [2, 3, 5, 7]", "given]\nlitres = [2, 1, 3]")
    )
    made = make_assignment("A", load(path)[:1], ["a"])
    assert [each.given["litres"] for each in made.questions[0].versions] == [2, 3]


# -------------------------------------------------------------------- coming back
def test_feedback_names_the_mistake_and_no_answer(homework: Path) -> None:
    text = notebook(answers(answer_boil="167.44", answer_sort_them="['bath', 'kettle', 'cup']"))
    result = graded(homework, ada=text)["ada"]
    assert points(result) == [0, 1, 0]
    shown = page(result, "Week <1>")
    assert "That is for one litre." in shown
    assert "That is largest first." in shown
    assert "Week &lt;1&gt;" in shown
    assert "334.88" not in shown
    assert "cup, kettle, bath" not in shown


CASES: list[tuple[list[str], list[float], str]] = cases("what_students_do.toml")  # type: ignore[assignment]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Result]]:
    """All cases handed in together, and what each got."""
    folder = tmp_path_factory.mktemp("class")
    (folder / "x.exercises.toml").write_text(QUESTIONS)
    (folder / "_quarto.yml").write_text("project: {type: book}\nbook: {chapters: [index.qmd]}\n")
    (folder / "index.qmd").write_text("# A\n")
    out = folder / "homework"
    assert main(["assign", "x", "--out", str(out), "--root", str(folder)]) == 0
    places = {"'KEY'": out / "key.json", "'SUBMISSIONS'": out / "submissions"}
    for number, (cells, _, _) in enumerate(CASES):
        text = notebook(*(each.replace("ANSWERS", answers()) for each in cells))
        for name, path in places.items():
            text = text.replace(name, repr(str(path)))
        (out / "submissions" / f"{number}.ipynb").write_text(text)
    folders = Folders.of(out, key=None, submissions=None, out=None)
    results = grade(folders, limits=QUICK, progress=lambda _: None)
    return out, {result.file.removesuffix(".ipynb"): result for result in results}


def test_what_students_do_and_nothing_is_lost(judged: tuple[Path, dict[str, Result]]) -> None:
    out, results = judged
    for number, (cells, wanted, note) in enumerate(CASES):
        result = results[str(number)]
        noted = note.replace("GONE", GONE) in "; ".join(result.notes)
        assert (points(result), noted) == (wanted, True), (cells, result)
    assert len(results) == len(CASES)
    assert len(list((out / "submissions").iterdir())) == len(CASES)
    assert read_key(out / "key.json").points == 4


def test_odd_notebooks_and_odd_answers(homework: Path) -> None:
    """All handed in together: what is no notebook, an old one, quantities, what is forged."""
    none = {
        "": "the file is empty", "<<<<<<< HEAD\n{}": "no notebook that can be read",
        "[]": "JSON, but no notebook", "{}": "JSON, but no notebook",
        '{"cells": 3}': "JSON, but no notebook", "[" * 100_000: "no notebook that can be read",
    }  # fmt: skip
    cells = [{"cell_type": "code", "input": [answers()]}, {"cell_type": "markdown", "source": "x"}]
    quantity = "import pint; Q = pint.UnitRegistry().Quantity\nanswer_boil = Q({})"
    # a notebook that writes into the channel changes its own answers at most
    forged = """
        import os
        line = '{"ends": 0, "values": {"answer_boil": {"number": "x"}, "points": 9, "a": []}}'
        for fd in range(3, 20):
            try:
                os.write(fd, b'\\n[3]\\nnot json\\n' + line.encode() + b'\\n')
            except OSError:
                pass
        """
    found = graded(
        homework,
        Limits(seconds=30),
        **{f"none{number}": text for number, text in enumerate(none)},
        old=json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}),
        fits=notebook(quantity.format("334.88 / 60, 'minute'")),
        other=notebook(quantity.format("3, 'metre'")),
        forged=notebook(forged),
    )
    for number, note in enumerate(none.values()):
        assert points(found[f"none{number}"]) == [0, 0, 0]
        assert note in "; ".join(found[f"none{number}"].notes)
    assert points(found["old"]) == [2, 1, 1]
    assert points(found["fits"])[0] == 2
    assert found["other"].marks[0].message == "That is in meter: the answer is a number in s."
    assert points(found["forged"]) == [0, 0, 0]
