"""_quarto.yml: chapters, numbers, titles, settings, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.project import folder_metadata, load_project

MakeBook = Callable[..., Path]


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_qmd", ".qmd").replace(
            "QUARTO", "_quarto.yml"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_parts_appendices_and_numbers(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        QUARTO="""\
project: {type: book, output-dir: out}
book:
  title: "A *book*"
  author: [Ada, {name: Bo}]
  repo-url: https://example.org/r
  chapters:
    - index.qmd
    - part: Ground
      chapters: [a.qmd, {file: b.qmd}]
    - part: fire.qmd
      chapters:
        - c.qmd
    - text: Elsewhere
      href: https://example.org
  appendices: [d.qmd]
bibliography: refs.bib
lang: de
""",
        index_qmd="# Preface {.unnumbered}\n",
        a_qmd="---\ntitle: From *YAML*\n---\n\n# Not the title\n",
        b_qmd="Text first.\n\n```\n# no heading\n```\n\n# Water {#sec-water}\n",
        fire_qmd="# Fire\n",
        c_qmd="Kiln\n====\n",
        d_qmd="# Tools {-}\n",
    )
    (root / "refs.bib").write_text("")
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


def test_unknown_keys_are_noted_with_the_nearest(make_book: MakeBook) -> None:
    root = make_book("  auhtor: Ada\nbibliograpy: x.bib\nanything: 1\n", index_qmd="# A\n")
    problems = Problems()
    load_project(root, problems)
    texts = [problem.text() for problem in problems.found]
    assert len(texts) == 2
    assert texts[0].startswith("_quarto.yml:7: unknown key 'book: auhtor'")
    assert "'author'" in texts[0]
    assert "'bibliography'" in texts[1]


@pytest.mark.parametrize(
    ("yaml", "line", "words"),
    [
        ("project: {type: website}\nbook: {}\n", 1, "'website'"),
        ("project: {type: book}\n", 1, "`book:`"),
        ("project: {type: book}\nbook:\n  chapters: []\n", 2, "no chapters"),
        ("project: {type: book}\nbook:\n  chapters: [index.qmd, indx.qmd]\n", 3, "index.qmd"),
        ("project: {type: book}\nbook:\n  chapters: [index.qmd, index.qmd]\n", 3, "twice"),
        ("project: {type: book}\nbook:\n  chapters: [a.rst]\n", 3, ".qmd, .md or .ipynb"),
        ("project: {type: book}\nbook:\n  chapters: index.qmd\n", 3, "list"),
        ("project: {type: book}\nbook:\n  chapters: [[a]]\n", 3, "a chapter must be"),
        ("project: {type: book}\nbook: {chapters: [index.qmd]}\nbibliography: r.bib\n", 3, "r.bib"),
        ("project: {type: book}\nbook:\n  chapters: [index.qmd]\n  favicon: a.png\n", 4, "a.png"),
        ("project: {type: book}\nbook: {chapters: [index.qmd]}\nexecute: {echo: no}\n", 3, "'no'"),
        ("project: {type: book}\nbook: {chapters: [index.qmd]}\nmetadata-files: [m]\n", 3, "'m'"),
        (
            "project: {type: book}\nbook: {chapters: [index.qmd]}\nformat: {html: {toc: 2}}\n",
            3,
            "toc",
        ),
        ("project: {type: book}\nbook:\n  chapters: [index.qmd]\n title: A\n", 4, "invalid YAML"),
    ],
)
def test_what_is_refused(tmp_path: Path, yaml: str, line: int, words: str) -> None:
    root = write(tmp_path, QUARTO=yaml, index_qmd="# A\n")
    with pytest.raises(SourceError) as caught:
        load_project(root, Problems())
    assert (caught.value.file, caught.value.line) == ("_quarto.yml", line)
    assert words in str(caught.value)


def test_no_book_here(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no _quarto\.yml"):
        load_project(tmp_path, Problems())


def test_a_chapter_without_a_title(make_book: MakeBook) -> None:
    problems = Problems()
    project = load_project(make_book(index_qmd="Text.\n"), problems)
    assert project.chapters[0].title == "index"
    assert "no title" in problems.found[0].message


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
        "`filters`",
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
