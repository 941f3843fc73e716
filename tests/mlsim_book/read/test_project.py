"""_quarto.yml: chapters, numbers, titles, settings, and what is refused: files outside, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import kept
import pytest
from kept import untold

from mlsim_book.build import build
from mlsim_book.cli import main
from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.project import folder_metadata, load_project

MakeBook = Callable[..., Path]


def test_parts_appendices_and_numbers(tmp_path: Path) -> None:
    root = kept.book("parts", tmp_path)
    problems = Problems()
    project = load_project(root, problems)
    assert [(c.title, c.number, c.part) for c in project.chapters] == [
        ("Preface", None, None),
        ("From *YAML*", 1, "Ground"),
        ("Water", 2, "Ground"),
        ("Fire", None, "Fire"),
        ("Kiln", 3, "Fire"),
        ("Tools", None, None),
    ]
    water, fire, kiln, tools = project.chapters[2:]
    assert water.label == "sec-water"
    assert fire.href == fire.part_href == kiln.part_href == "fire.html"
    assert tools.appendix
    assert project.author == ("Ada", "Bo")
    assert project.output_dir == "out"
    assert (project.lang, project.repo_branch) == ("de", "main")
    assert project.bibliography == ("refs.bib",)
    assert not problems.found


def test_metadata_files_and_folders(make_book: MakeBook) -> None:
    root = make_book(
        "metadata-files: [extra.yml]\nexecute: {echo: false}\nformat: html\nmy-own-key: {x: 1}\n",
        index_qmd="# A\n",
        sub__deep__page_qmd="# B\n",
    )
    (root / "extra.yml").write_text("flavour: mint\nexecute: {echo: true, warning: false}\n")
    (root / "_metadata.yml").write_text("flavour: lemon\ntaste: sour\n")
    (root / "sub" / "_metadata.yml").write_text("flavour: lime\n")
    problems = Problems()
    project = load_project(root, problems)
    assert project.execute == {"echo": False, "warning": False}
    assert project.metadata["flavour"] == "mint"
    assert project.html == {}
    assert folder_metadata(root, "sub/deep/page.qmd") == {"flavour": "lime", "taste": "sour"}
    assert not problems.found


def test_unknown_keys_and_what_is_missing_are_told_of(make_book: MakeBook) -> None:
    root = make_book("  auhtor: Ada\nbibliograpy: x.bib\nanything: 1\n", index_qmd="# A\n")
    problems = Problems()
    load_project(root, problems)
    texts = [problem.text() for problem in problems.found]
    assert len(texts) == 2
    assert texts[0].startswith("_quarto.yml:7: unknown key 'book: auhtor'")
    assert "'author'" in texts[0]
    assert "'bibliography'" in texts[1]
    problems = Problems()
    project = load_project(make_book(index_qmd="Text.\n"), problems)
    assert project.chapters[0].title == "index"
    assert "no title" in problems.found[0].message

    def load(yaml: str) -> None:
        (root / "_quarto.yml").write_text(yaml, "utf-8")
        load_project(root, Problems())

    assert untold(load, "wrong_books.toml") == []
    with pytest.raises(SourceError, match=r"no _quarto\.yml"):
        load_project(root / "nowhere", Problems())


def test_keys_without_effect_are_told_and_stop_nothing(make_book: MakeBook) -> None:
    root = make_book(
        "  sidebar:\n    logo: own.png\n"
        "filters: [a.lua]\nlightbox: false\njupyter: julia-1.10\nlang: xx\n"
        "format:\n  html:\n    theme: [cosmo, own.scss]\n    grid: {body-width: 900px}\n",
        index_qmd="# A\n",
    )
    problems = Problems()
    load_project(root, problems)
    assert not problems.found
    told = "\n".join(each.text() for each in problems.advice)
    for words in (
        "`filters` has no effect here: Lua filters are not run",
        "`book: sidebar: logo`",
        "`format: html: grid`",
        "'own.scss'",
        "'julia-1.10'",
        "'xx'",
    ):
        assert words in told
    assert len(problems.advice) == 6
    assert all(each.line for each in problems.advice)


FOR_QUARTO = """\
filters: [own/a.lua, own/b.lua]
format:
  html:
    theme: {{light: [cosmo, own/a.scss], dark: [darkly, {dark}]}}
mlsim-book:
  for-quarto: {paths}
"""


def test_what_is_for_quarto_alone_is_no_advice_and_must_be_there(make_book: MakeBook) -> None:
    def told(paths: str = "[own]", dark: str = "own/a.scss") -> tuple[list[str], list[str]]:
        root = make_book(FOR_QUARTO.format(paths=paths, dark=dark), index_qmd="# A\n")
        (root / "own").mkdir(exist_ok=True)
        for name in ("a.lua", "b.lua", "a.scss"):
            (root / "own" / name).write_text("", "utf-8")
        problems = Problems()
        load_project(root, problems)
        return [e.text() for e in problems.found], [e.text() for e in problems.advice]

    assert told() == ([], [])
    assert told(paths="[own/a.lua, own/b.lua, own/a.scss]") == ([], [])
    found, advice = told(dark="own/night.scss")
    assert advice == []
    assert len(found) == 1
    assert found[0].startswith("_quarto.yml:")
    assert "names 'own/night.scss', and there is no such file" in found[0]
    found, advice = told(paths="[own/a.lua]")
    assert found == []
    assert len(advice) == 2
    with pytest.raises(SourceError, match="must be a list of paths"):
        told(paths="own")


# --------------------------------------------------------------- outside of its folder
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
    head = "project: {type: book}\nbook:\n  title: T\n"
    (book / "_quarto.yml").write_text(head + text, encoding="utf-8")


def files(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in folder.rglob("*")
    }


def test_a_path_that_leads_out_is_refused_wherever_it_stands(book: Path) -> None:
    def load(text: str) -> None:
        write(book, text)
        load_project(book, Problems())

    def listed(name: str) -> None:
        load(f"  chapters:\n    - index.qmd\n    - '{name}'\n")

    assert untold(listed, "chapters_outside.toml") == []
    assert untold(load, "files_outside.toml") == []
    with pytest.raises(SourceError, match=r"_quarto\.yml:6: (?s:.*)Write 'sub/deep\.qmd'"):
        listed(str(book / "sub" / "deep.qmd"))  # the real path, refused with its short name
    with pytest.raises(SourceError, match=r"_quarto\.yml:4: .*twice"):
        load("  chapters: [index.qmd, page.qmd, sub/../page.qmd]\n")


@pytest.mark.usefixtures("with_assets")
@pytest.mark.parametrize("name", ["/page.qmd", "../outside.qmd", "{real}", "a/../../outside.qmd"])
def test_nothing_is_written(book: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = name.format(real=book.parent / "other" / "page.qmd")
    write(book, f"  chapters:\n    - index.qmd\n    - {name}\n")
    before = files(book.parent)
    for command, *more in (["build"], ["build", "--lenient"], ["check"], ["notebooks"]):
        assert main([command, str(book), *more]) == 1
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
