"""Glossary hints: entries, first occurrences in running text, first uses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kept import cases

from mlsim_book.build import StrictError, build
from mlsim_book.errors import SourceError
from mlsim_book.render import to_html
from mlsim_book.render.glossary import Entry, Terms
from mlsim_book.render.postprocess import edited

MakeBook = Callable[..., Path]
TERMS = Terms([
    Entry("term-bw", 'Bytes "per" second.', ("memory bandwidth", "bandwidth")),
    Entry("term-memory", "Where bytes lie.", ("memory",), other=("memory lane",)),
    Entry("term-bus", "It carries.", ("bus", "school bus"), only=("school bus",)),
    Entry("term-flop", "An operation.", ("FLOP",)),
    Entry("term-amp", "A unit.", ("amp",)),
    Entry("term-bound", "Said of work.", ("memory-bound", "memory bound")),
])  # fmt: skip


def test_where_hints_go_and_what_they_tell() -> None:
    for html, words in cases("hints.toml"):
        text, _ = TERMS.hint(html, "g.html")
        links = text.split('<a class="term"')[1:]
        assert [link.split(">", 1)[1].split("</a>")[0] for link in links] == words, html
        assert edited(text, []) == text
    html, used = TERMS.hint("<p>The memory bandwidth is high.</p>", "../g.html")
    assert html == (
        '<p>The <a class="term" href="../g.html#term-bw"'
        ' data-definition="Bytes &quot;per&quot; second." data-term="memory bandwidth">'
        "memory bandwidth</a> is high.</p>"
    )
    assert used == ["term-bw"]
    told = Terms([Entry("term-lid", "It covers.", ("lid",), "Chapter 2", "part/lids.html#sec-a")])
    for glossary, at in (
        ("g.html", "part/lids.html#sec-a"),
        ("../g.html", "../part/lids.html#sec-a"),
    ):
        html, _ = told.hint("<p>A lid.</p>", glossary)
        assert f' data-term="lid" data-place="Chapter 2" data-at="{at}">lid</a>' in html


# ------------------------------------------------------------- whole books
GLOSSARY = (
    "# Glossary {.unnumbered}\n\n::: {.glossary-entry}\n"
    '[pot]{.term-entry #term-pot also="kettle; big kettle"} [A *vessel*, $2^{3}$ l.]{.glossary-definition}\n'
    ":::\n\n::: {.glossary-entry}\n[lid]{.term-entry #term-lid} [It covers.]{.glossary-definition}\n:::\n"
)
SETTING = "mlsim-book:\n  glossary: glossary.qmd\n"


@pytest.mark.usefixtures("with_assets")
def test_hints_and_first_uses_over_a_book(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new definition changes the hints without a page being rendered again."""
    book = make_book(
        SETTING,
        index_qmd="# One\n\nNothing.\n",
        off_qmd="---\nmlsim-book:\n  terms: false\n---\n\n# Off\n\nA pot.\n",
        part__two_qmd="# Two\n\nBig kettles, then a pot.\n",
        three_qmd="# Three\n\nA pot.\n",
        glossary_qmd=GLOSSARY,
    )
    site = build(book, progress=str)
    two, three, off, glossary = (
        (site / name).read_text("utf-8")
        for name in ("part/two.html", "three.html", "off.html", "glossary.html")
    )
    assert (
        '<a class="term" href="../glossary.html#term-pot" data-definition="A vessel, 2^3 l."'
        ' data-term="pot">Big kettles</a>, then a pot.'
    ) in two
    assert three.count('class="term"') == 1
    assert 'class="term"' not in off
    assert 'class="term"' not in glossary
    assert glossary.count("term-first-used") == 1
    assert 'First used in: <a href="part/two.html">3 Two</a></div>' in glossary
    (book / "glossary.qmd").write_text(GLOSSARY.replace("$2^{3}$ l", "$3^{2}$ l"))
    runs: list[str] = []
    real = to_html._pandoc

    def noted(text: str, config: str, name: str, opened: Path) -> str:
        runs.append(name)
        return real(text, config, name, opened)

    monkeypatch.setattr(to_html, "_pandoc", noted)
    build(book, progress=str)
    assert runs == ["glossary.qmd"]
    assert 'data-definition="A vessel, 3^2 l."' in (site / "three.html").read_text("utf-8")


ENTRY = "::: {{.glossary-entry}}\n[pot]{{.term-entry{}}}{}\n:::\n"
UNUSABLE = {
    ENTRY.format(" #term-pot", ""): "'pot' has no definition",
    ENTRY.format("", " [A]{.glossary-definition}"): "has no id",
    "Nothing.\n": "the glossary has no entries",
    GLOSSARY.replace("#term-lid}", '#term-lid also="kettle"}'):
        "'kettle' is given by two glossary entries, 'pot' and 'lid'",
}  # fmt: skip


@pytest.mark.usefixtures("with_assets")
def test_glossaries_that_can_not_be_used(make_book: MakeBook) -> None:
    for text, said in UNUSABLE.items():
        lines: list[str] = []
        body = text if text.startswith("# ") else f"# Glossary\n\n{text}"
        with pytest.raises(StrictError):
            build(
                make_book(SETTING, index_qmd="# One\n\nText.\n", glossary_qmd=body),
                progress=lines.append,
            )
        assert any(said in line and "glossary.qmd:" in line for line in lines), lines
    book = make_book(SETTING, index_qmd="# One\n", glosary_qmd=GLOSSARY)
    with pytest.raises(SourceError, match=r"Did you mean 'glosary\.qmd'"):
        build(book, progress=str)
