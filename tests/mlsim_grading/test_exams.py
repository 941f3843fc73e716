"""Private questions and private numbers: where they may lie, and what is pinned."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from kept import text
from pots import write_book

from mlsim_book.cli import main
from mlsim_exercises.data import Exercise
from mlsim_grading import assignment
from mlsim_grading.assignment import other_version, private_versions, read_key
from mlsim_grading.walls.bubblewrap import environment

EXAM = text("exam.exercises.toml")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    root = tmp_path / "book"
    root.mkdir()
    (root / "index.qmd").write_text("# A\n")
    (root / "_quarto.yml").write_text(
        "project: {type: book}\n"
        "book: {chapters: [index.qmd], repo-url: 'https://example.org/tea'}\n"
        "mlsim-book: {package: mlsim}\n"
    )
    return root


def assign(book: Path, *options: str) -> int:
    return main(["assign", "--root", str(book), "--out", str(book.parent / "exam"), *options])


def first_cell(book: Path) -> str:
    (path,) = (book.parent / "exam" / "students").iterdir()
    return "".join(json.loads(path.read_text())["cells"][0]["source"])


def test_an_exam_from_elsewhere(book: Path) -> None:
    path = book.parent / "private" / "exam.exercises.toml"
    path.parent.mkdir()
    path.write_text(EXAM)
    # a private file named like a chapter is an exam without --exam, too
    for given in (["--exam", str(path)], [str(path), "--replace"]):
        assert assign(book, *given) == 0
        key = read_key(book.parent / "exam" / "key.json")
        assert key.private == (str(path),)
        version = importlib.metadata.version("mlsim")
        assert key.made_with == ("mlsim", version, "")
        assert f'importlib.metadata.version("mlsim") != "{version}"' in first_cell(book)
        assert "tea@main" in first_cell(book)
    public = book / "of-a-chapter.exercises.toml"
    public.write_text(EXAM)
    assert assign(book, str(public), "--replace") == 0
    assert read_key(book.parent / "exam" / "key.json").private == ()


def test_answers_are_their_owners_alone_from_the_start(book: Path) -> None:
    """On a server that students use, too: by `assign`, and by `--add` to an older folder."""
    public = book / "of-a-chapter.exercises.toml"
    public.write_text(EXAM)
    names = book.parent / "class.csv"
    names.write_text("student\nAda\n")
    out = book.parent / "exam"
    before = os.umask(0o022)
    assert assign(book, str(public), "--variant-by", str(names)) == 0
    wanted = {
        "key.json": 0o600, "rubric.md": 0o600, "solutions": 0o700, "submissions": 0o700,
        "solutions/Ada.ipynb": 0o600, "students": 0o755, "students/Ada.ipynb": 0o644,
    }  # fmt: skip
    modes = {name: (out / name).stat().st_mode & 0o777 for name in wanted}
    assert modes == wanted
    (out / "solutions").chmod(0o755)
    names.write_text("student\nAda\nBo\n")
    assert assign(book, str(public), "--variant-by", str(names), "--add") == 0
    os.umask(before)
    assert (out / "solutions").stat().st_mode & 0o777 == 0o700
    assert (out / "solutions" / "Bo.ipynb").stat().st_mode & 0o777 == 0o600
    assert (out / "students" / "Bo.ipynb").stat().st_mode & 0o777 == 0o644


def test_a_clean_checkout_pins_its_commit(book: Path) -> None:
    path = book.parent / "exam.exercises.toml"
    path.write_text(EXAM)
    git = ["git", "-C", str(book), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert assign(book, "--exam", str(path)) == 0
    assert f"tea@{head.stdout.strip()}" in first_cell(book)
    (book / "index.qmd").write_text("# B\n")  # what no commit has can't be pinned
    assert assign(book, "--exam", str(path), "--replace") == 0
    assert "tea@main" in first_cell(book)


def test_students_get_the_wheel_where_no_address_has_it(tmp_path: Path) -> None:
    book = write_book(tmp_path / "book")
    path = tmp_path / "exam.exercises.toml"
    path.write_text(EXAM)
    assert assign(book, "--exam", str(path)) == 0
    (wheel,) = (tmp_path / "exam" / "students").glob("*.whl")
    assert wheel.name == "pots-1.0-py3-none-any.whl"
    config = book / "_quarto.yml"
    config.write_text(config.read_text().replace("book:", "book:\n  site-url: https://a.org/b", 1))
    assert assign(book, "--exam", str(path), "--replace") == 0
    assert [each.suffix for each in (tmp_path / "exam" / "students").iterdir()] == [".ipynb"]


def test_where_an_exam_may_not_lie(
    book: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = (str(book.parent / "environment"),)
    monkeypatch.setattr(assignment, "environment", lambda: replace(environment(), shown=shown))
    for place, words in {
        "book/sub": "the book's folder, which is published",
        "exam": "the folder of the assignment", "environment": "which submissions see",
    }.items():  # fmt: skip
        path = book.parent / place / "an-exam-of-a-test.exercises.toml"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(EXAM)
        assert assign(book, "--exam", str(path)) == 1
        if place != "book/sub":  # there, a chapter's file may be meant
            assert assign(book, str(path)) == 1
        assert assign(book, "--exam", str(path), "--private-seed", str(path)) == 1
        path.unlink()
        said = capsys.readouterr().err
        assert words in said
        assert "Put it into a folder of yours" in said


def test_what_is_missing(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert assign(book) == 1
    assert assign(book, "--exam", "no-such-file") == 1
    empty = book.parent / "empty.txt"
    empty.write_text("\n")
    exam = book.parent / "exam.exercises.toml"
    exam.write_text(EXAM)
    assert assign(book, "--exam", str(exam), "--private-seed", str(empty)) == 1
    said = capsys.readouterr().err
    for words in ("nothing says what to ask", "there is no such file", "this seed is empty"):
        assert words in said


def test_numbers_of_a_private_seed() -> None:
    task = Exercise(
        "e", "T", "number", "?", "n * share + len(name)", "",
        given={"n": (8, 1024), "share": (0.5, 0.75), "name": ("ab", "abcd"), "k": (600,)},
    )  # fmt: skip
    found = [each.given for each in private_versions(task, "one")]
    assert len(found) == 8
    assert found == [each.given for each in private_versions(task, "one")]
    assert found != [each.given for each in private_versions(task, "two")]
    for given in found:
        assert given["n"] in {2**power for power in range(3, 11)}
        assert given["share"] in {0.5, 0.75}
        assert given["name"] in {"ab", "abcd"}
        assert given["k"] == 600


def test_students_get_private_numbers(book: Path) -> None:
    exam, seed, names = (
        book.parent / name for name in ("e.exercises.toml", "seed.txt", "class.csv")
    )
    exam.write_text(EXAM.replace("[2, 10]", "[2, 10000]"))
    seed.write_text("a seed\n")
    names.write_text("student\n" + "".join(f"s{n}\n" for n in range(20)))
    given = ["--exam", str(exam), "--private-seed", str(seed), "--variant-by", str(names)]
    assert assign(book, *given) == 0
    key = read_key(book.parent / "exam" / "key.json")
    assert len({key.questions[0].versions[n].given["litres"] for (n,) in key.students.values()}) > 4
    assert not {2, 10000} & {each.given["litres"] for each in key.questions[0].versions}


def test_another_version_is_told(book: Path) -> None:
    version = importlib.metadata.version("mlsim")
    assert other_version(("mlsim", version, "")) == ""
    assert other_version(None) == ""
    assert "made with mlsim 9.9; here it is" in other_version(("mlsim", "9.9", ""))
    assert "not installed" in other_version(("no-such-package", "1", ""))
