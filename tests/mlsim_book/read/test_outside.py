"""Chapters outside the book's folder are refused, and nothing is written for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim_book.build import build
from mlsim_book.cli import main
from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.project import load_project

HEAD = "project: {type: book}\nbook:\n  title: T\n"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A folder for a book, with pages in it, beside it and below it."""
    root = tmp_path / "shelf" / "book"
    for name in ("index.qmd", "page.qmd", "sub/deep.qmd", "../outside.qmd", "../other/page.qmd"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# A page\n", encoding="utf-8")
    return root


def write(book: Path, text: str) -> None:
    (book / "_quarto.yml").write_text(HEAD + text, encoding="utf-8")


def files(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in folder.rglob("*")
    }


def refused(book: Path, text: str) -> SourceError:
    write(book, text)
    with pytest.raises(SourceError) as caught:
        load_project(book, Problems())
    assert caught.value.file == "_quarto.yml"
    return caught.value


@pytest.mark.parametrize(
    ("name", "words", "hint"),
    [
        ("/page.qmd", "absolute path", "Write 'page.qmd'"),
        ("/sub/../page.qmd", "absolute path", "Write 'page.qmd'"),
        ("/nowhere/x.qmd", "absolute path", "Move the file"),
        ("//server/page.md", "absolute path", "Move the file"),
        ("C:\\pages\\x.qmd", "absolute path", "Move the file"),
        ("c:/pages/x.qmd", "absolute path", "Move the file"),
        ("\\\\server\\x.qmd", "absolute path", "Move the file"),
        ("../outside.qmd", "outside the book's folder", "{{< include ../outside.qmd >}}"),
        ("./sub/../../outside.qmd", "outside", "{{< include ../outside.qmd >}}"),
        ("a/../../outside.qmd", "outside", "{{< include ../outside.qmd >}}"),
        ("..\\outside.qmd", "outside", "{{< include ../outside.qmd >}}"),
        ("../page.qmd", "outside", "Write 'page.qmd'"),
        ("../book/sub/deep.qmd", "outside", "Write 'sub/deep.qmd'"),
        ("../ghost.qmd", "outside", "Move the file"),
    ],
)
def test_a_path_that_leads_out(book: Path, name: str, words: str, hint: str) -> None:
    error = refused(book, f"  chapters:\n    - index.qmd\n    - '{name}'\n")
    assert error.line == 6
    assert f"the chapter '{name}'" in error.message
    assert words in error.message
    assert hint in (error.hint or "")


def test_the_real_path_of_a_chapter_is_refused_with_its_short_name(book: Path) -> None:
    error = refused(book, f"  chapters: [index.qmd, '{book / 'sub' / 'deep.qmd'}']\n")
    assert "Write 'sub/deep.qmd'" in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("  chapters:\n    - index.qmd\n    - file: /page.qmd\n", 6, "chapter"),
        ("  chapters:\n    - index.qmd\n    - href: ../outside.qmd\n      text: x\n", 6, "chapter"),
        ("  chapters:\n    - index.qmd\n    - part: ../outside.qmd\n", 6, "part"),
        ("  chapters:\n    - index.qmd\n    - part: /page.qmd\n      chapters: []\n", 6, "part"),
        ("  chapters:\n    - index.qmd\n    - part: P\n      chapters:\n        - /page.qmd\n", 8,
         "chapter"),
        ("  chapters: [index.qmd]\n  appendices:\n    - ../outside.qmd\n", 6, "chapter"),
        ("  chapters: [index.qmd]\n  references: ../outside.qmd\n", 5, "page of references"),
        ("  chapters: [index.qmd]\n  references: /page.qmd\n", 5, "page of references"),
    ],
)  # fmt: skip
def test_wherever_a_file_is_named(book: Path, text: str, line: int, what: str) -> None:
    error = refused(book, text)
    assert error.line == line
    assert error.message.startswith(f"the {what} '")


@pytest.mark.usefixtures("with_assets")
@pytest.mark.parametrize("name", ["/page.qmd", "../outside.qmd", "{real}", "a/../../outside.qmd"])
@pytest.mark.parametrize("lenient", [[], ["--lenient"]])
def test_nothing_is_written(
    book: Path, name: str, lenient: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    real = book.parent / "other" / "page.qmd"
    name = name.format(real=real)
    write(book, f"  chapters:\n    - index.qmd\n    - {name}\n")
    before = files(book.parent)
    for command in (["build", *lenient], ["check"], ["notebooks"]):
        assert main([command[0], str(book), *command[1:]]) == 1
        said = "".join(capsys.readouterr())
        assert f"_quarto.yml:6: the chapter '{name}'" in said
        assert "Traceback" not in said
    assert files(book.parent) == before


@pytest.mark.usefixtures("with_assets")
def test_detours_within_the_book_are_shortened(book: Path) -> None:
    write(book, "  chapters:\n    - ./index.qmd\n    - sub/../page.qmd\n    - sub//./deep.qmd\n")
    before = files(book.parent)
    project = load_project(book, Problems())
    assert [each.source for each in project.chapters] == ["index.qmd", "page.qmd", "sub/deep.qmd"]
    site = build(book, progress=str)
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {"index.html", "page.html", "sub/deep.html"} <= pages
    outside = {name for name in files(book.parent) if not name.startswith("book/_book")}
    assert {name for name in outside if not name.startswith("book/.")} == set(before)


def test_one_page_by_two_paths_is_listed_twice(book: Path) -> None:
    assert "twice" in refused(book, "  chapters: [index.qmd, page.qmd, sub/../page.qmd]\n").message
