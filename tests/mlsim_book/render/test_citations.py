"""Citations of a book: in its words, by page and place, and the list that they lead to, in parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kept import FIXTURES, cases
from site_pages import built

from mlsim_book.caches import TextCache
from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.read.lines import Reporter
from mlsim_book.render import citations
from mlsim_book.render.citations import (
    Citations,
    entries,
    format_citations,
    parts_of,
    place_citations,
    place_references,
)
from mlsim_book.render.to_html import RenderedPage, render_pages

BIB = """@book{ab2020, author={Adams, Ann and Bell, Bo}, title={On Tea}, year={2020}}
@book{cy2021, author={Cy, Di}, title={On Cups}, year={2021}}
@book{no1999, author={Nobody}, title={Unread}, year={1999}}
"""
LIST = "# References {.unnumbered}\n\n::: {#refs}\n:::\n"


class Book:
    """A book in which something is cited, rendered and with its citations formatted."""

    def __init__(self, folder: Path, lang: str = "en", bib: str = BIB, **texts: str) -> None:
        named = {name.replace("__", "/"): text for name, text in texts.items()}
        chapters = tuple(
            Chapter(f"{name}.qmd", f"{name}.html", "T", at) for at, name in enumerate(named, 1)
        )
        (folder / "r.bib").write_text(bib, encoding="utf-8")
        files = ("r.bib",) if bib else ()
        project = Project(folder, "B", chapters, bibliography=files, lang=lang)
        pages = [
            ExecutedPage(chapter, text, {}, {}, text)
            for chapter, text in zip(chapters, named.values(), strict=True)
        ]
        for name, text in named.items():
            (folder / f"{name}.qmd").parent.mkdir(exist_ok=True)
            (folder / f"{name}.qmd").write_text(text, encoding="utf-8")
        keep, problems = TextCache(folder / "keep"), Problems()
        self.pages: dict[str, RenderedPage] = dict(
            zip(named, render_pages(project, pages, keep=keep), strict=True)
        )
        reporter = Reporter(problems, folder)
        self.found: Citations = format_citations(project, list(self.pages.values()), reporter, keep)
        self.told = [(each.file, each.line, each.message, each.hint) for each in problems.found]

    def text(self, name: str) -> str:
        """The words of a page with its citations in it."""
        return " ".join(re.sub(r"<[^>]*>", "", self.html(name)).split())

    def html(self, name: str) -> str:
        """A page with its citations and its list."""
        page = self.pages[name]
        html = place_citations(page.body, page, self.found)
        return place_citations(place_references(html, page, self.found), page, self.found)


def test_citations_stand_where_they_were_written(tmp_path: Path) -> None:
    book = Book(
        tmp_path,
        a="# A\n\nAs [@ab2020, p. 3] say, and @cy2021.\n",
        sub__b="# B\n\nSee [@cy2021; @ab2020].\n",
        refs=LIST,
    )
    assert book.text("a") == "As (Adams and Bell 2020, 3) say, and Cy (2021)."
    assert book.text("sub/b") == "See (Cy 2021; Adams and Bell 2020)."
    assert book.found.keys == {
        "a.html": ["ab2020", "cy2021"], "sub/b.html": ["cy2021", "ab2020"], "refs.html": [],
    }  # fmt: skip
    assert book.found.home == "refs.html"
    assert 'href="refs.html#ref-cy2021"' in book.html("a")
    assert 'href="../refs.html#ref-cy2021"' in book.html("sub/b")
    listed = entries(book.found)
    assert list(listed) == ["ref-ab2020", "ref-cy2021"]  # none that nobody cites
    assert re.fullmatch(
        r'(?s)<div id="ref-cy2021" class="csl-entry".*On Cups.*</div>', listed["ref-cy2021"]
    )
    assert book.html("refs").count("csl-entry") == 2
    assert "x-refs" not in book.html("refs")
    assert book.told == []


def test_without_a_page_of_references_each_page_lists_its_own(tmp_path: Path) -> None:
    book = Book(tmp_path, a="# A\n\n[@ab2020]\n", b="# B\n\n[@cy2021]\n", c="# C\n\nNone.\n")
    assert book.found.home is None
    for name, key in {"a": "ab2020", "b": "cy2021"}.items():
        assert re.findall(r'id="ref-(\w+)"', book.html(name)) == [key]
        assert f'href="#ref-{key}"' in book.html(name)
        assert '<section id="bibliography" class="level2 unnumbered"><h2>References</h2>' in (
            book.html(name)
        )
    assert "bibliography" not in book.html("c")
    page = book.pages["a"]
    assert place_references("x", page, book.found, beside=True) == "x"  # it stands in the margin


def test_words_are_those_of_the_books_language(tmp_path: Path) -> None:
    text = Book(tmp_path, lang="de", a="# A\n\n[@ab2020]\n").text("a")
    assert text.startswith("(Adams und Bell 2020) Literatur Adams, Ann, und Bo Bell. 2020.")


def test_a_key_that_is_not_there(tmp_path: Path) -> None:
    book = Book(tmp_path, a="# A\n\nSee @ab2002,\nor [@zzz].\n", refs=LIST)
    missing = "citation @{} not found in the bibliography"
    assert book.told == [
        ("a.qmd", 3, missing.format("ab2002"), "Did you mean @ab2020?"),
        ("a.qmd", 4, missing.format("zzz"), "Add it to r.bib."),
    ]


def test_a_book_without_a_bibliography_keeps_what_was_written(tmp_path: Path) -> None:
    book = Book(tmp_path, bib="", a="# A\n\nSee [@ab2020, p. 3 <b>].\n", b="# B\n\n@cy2021\n")
    assert "[@ab2020, p." in book.text("a")
    assert "@cy2021" in book.text("b")
    assert "&lt;" in book.html("a")
    assert [line[0] for line in book.told] == ["a.qmd", "b.qmd"]
    assert book.told[0][3] == "Add it to a file under `bibliography:` in _quarto.yml."


def test_citations_are_formatted_once_and_nothing_is_where_nothing_is_cited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Book(tmp_path, a="# A\n\n[@ab2020]\n").found
    with monkeypatch.context() as patch:
        patch.delattr(citations, "run_pandoc")
        assert Book(tmp_path, a="# A\n\n[@ab2020]\n").found == first
    other = Book(tmp_path, bib=BIB.replace("On Tea", "On Milk"), a="# A\n\n[@ab2020]\n").found
    assert "On Milk" in other.bibliography
    none = Book(tmp_path, a="# A\n\nText.\n", refs=LIST).found
    assert none == Citations({}, {"a.html": [], "refs.html": []}, "", "refs.html")


def test_each_entry_stands_in_its_part(tmp_path: Path) -> None:
    book = {each.name: each.read_text("utf-8") for each in (FIXTURES / "books/sheds").iterdir()}
    site = built(tmp_path / "all", book)
    page = site["references.html"]
    assert page.texts("#refs h2") == ["Papers & books", "Data"]
    for where, words in {"#papers-books": ["Beam", "Rail"], "#data": ["A"]}.items():
        texts = page.texts(f"{where} .csl-entry")
        assert [each.replace(",", " ").split()[0] for each in texts] == words
    keys = ("shop2026", "rail2019", "beam2001")
    links = {target for _, target in site["index.html"].links("main p a")}
    assert links == {f"references.html#ref-{key}" for key in keys}
    assert all(page.one(f"#ref-{key}") for key in keys)
    papers = built(tmp_path / "papers", {**book, "index.qmd": "# Sheds\n\nAs in @beam2001.\n"})
    assert papers["references.html"].texts("#refs h2") == ["Papers & books"]  # no empty part


def test_a_wrong_setting_of_parts_is_refused() -> None:
    assert parts_of({}) == ()
    for given, said in cases("references_in_parts.toml"):
        with pytest.raises(SourceError, match=said) as error:
            parts_of({"mlsim-book": {"references-in-parts": given}})
        assert error.value.file == "_quarto.yml"
