"""Numbers that open: what the filter makes of them, and where they stay plain."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from mlsim_book.build import StrictError, build
from mlsim_book.caches import TextCache
from mlsim_book.check.built_site import read_page
from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.read.project import load_project
from mlsim_book.render.notebooks import make_notebooks
from mlsim_book.render.postprocess import Opened
from mlsim_book.render.to_html import RenderedPage, render_pages
from mlsim_book.run.inline import plain_numbers
from mlsim_book.site.shared_files import cards_place, cards_script, with_cards

MakeBook = Callable[..., Path]
TEA = Path(__file__).parents[1] / "books" / "tea"
CHAPTER = Chapter("page.qmd", "page.html", "Title", 1)


def number(text: str, behind: str = "Because.") -> str:
    """Return a number that opens, as an inline expression gives it."""
    return f'[{text}]{{.opens opens="{quote(behind)}"}}'


def render(tmp_path: Path, markdown: str) -> RenderedPage:
    page = ExecutedPage(CHAPTER, markdown, {}, {}, markdown)
    return render_pages(Project(tmp_path, "B", (CHAPTER,)), [page], keep=TextCache(tmp_path / "k"))[
        0
    ]


def test_a_number_and_what_it_opens_to(tmp_path: Path) -> None:
    page = render(tmp_path, f"# T\n\nIt takes {number('5 s', 'By $t$, *so*.')} in all.\n")
    (opened,) = page.opens
    assert f'takes <span class="opens" data-opens="{opened.id}">5 s</span> in all' in page.body
    assert "%24" not in page.body
    assert opened.text == "5 s"
    assert opened.html.strip() == '<p>By <span class="math inline">t</span>, <em>so</em>.</p>'
    assert opened.id not in page.body.replace(f'data-opens="{opened.id}"', "")
    # equal content is kept once, and a span without content stays
    equal = f"{number('5 s')} {number('5.0 s')} {number('6 s', 'Else.')} [7 s]{{.opens}}\n"
    page = render(tmp_path, equal)
    assert len(page.opens) == 2
    assert page.body.count(page.opens[0].id) == 2
    assert '<span class="opens">7 s</span>' in page.body
    title = render(tmp_path, f"# In {number('5 s')}\n\nText.\n").title
    assert title
    assert (title.html, title.text) == ("In 5 s", "In 5 s")
    ((message, _),) = render(tmp_path, '[5 s]{.opens opens="%FF"}\n').notes
    assert "urllib.parse.quote" in message
    assert plain_numbers(f"# In {number('5 s', 'a [b](c)')} {{#sec-x}}") == "# In 5 s {#sec-x}"


CLOSED = """# T

## After {0}

[it takes {0}](b.html)

::: {{.callout-note}}
## What {0} means
Text.
:::

::: {{.panel-tabset}}
## {0}

one

## B

two
:::
"""
OPEN = """- a list: {0}

| a | b |
|---|---|
| {0} | 1 |

: Caption {0} {{#tbl-x}}

::: {{.callout-tip collapse='true'}}
In {0}.
:::

**{0}** and *more*[^1]

[^1]: Note {0}.

> {0}

![A picture of {0}](a.svg)
"""


def test_it_opens_wherever_a_button_can_stand(tmp_path: Path) -> None:
    page = render(tmp_path, CLOSED.format(number("5 s")))
    plain = render(tmp_path, CLOSED.format("5 s"))
    assert page.body == plain.body
    assert [each.html for each in page.headings] == [each.html for each in plain.headings]
    page = render(tmp_path, OPEN.format(number("5 s")))
    assert page.body.count('<span class="opens" data-opens="opens-') == 8
    assert 'alt="A picture of 5 s"' in page.body  # the caption opens, the alternative text does not


def test_hidden_content_does_not_stretch_a_table(tmp_path: Path) -> None:
    rows = f"| a | b |\n|---|---|\n| {number('5 s', 'x' * 90)} | 1 |\n"
    assert "<col" not in render(tmp_path, rows).body
    wide = rows.replace("| 1 |", f"| {'word ' * 20} |")
    assert "<col" in render(tmp_path, wide).body


def test_content_leaves_nothing_on_the_page(tmp_path: Path) -> None:
    behind = "# Head {#h}\n\nText[^1] [x]{#id} [nested]{.opens opens='a'}.\n\n[^1]: Note.\n\n```python\n1\n```\n"
    page = render(tmp_path, number("5 s", behind) + "\n\n## Own\n")
    (opened,) = page.opens
    assert " id=" not in opened.html
    assert "<strong>Head</strong>" in opened.html
    assert "(Note.)" in opened.html
    assert "data-opens" not in opened.html
    assert "footnotes" not in page.body
    assert [each.id for each in page.headings] == ["own"]


def test_check_passes_over_ids_in_cards_but_not_links(tmp_path: Path) -> None:
    script = cards_script([Opened("o", "5", '<p id="a"><a href="gone.html">x</a></p>')])
    assert "</p>" not in script  # nor "</script>"
    path, place = cards_place("one two/page.html", script)
    assert path == "site_libs/cards/one two/page.js"
    assert 'data-from="../site_libs/cards/one%20two/page.js?v=' in place
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / "one two").mkdir()
    (tmp_path / path).write_text(script, "utf-8")
    page = read_page(with_cards(f'<p id="a"></p>{place}', tmp_path / "one two" / "page.html"))
    assert page.ids == ["a", "o"]
    assert page.links == ["gone.html"]
    # a page whose cards are gone is checked without them
    _, place = cards_place("page.html", "x")
    assert with_cards(f"<p>5{place}", tmp_path / "page.html") == f"<p>5{place}"


# ------------------------------------------------------------- whole books
@pytest.mark.usefixtures("with_assets")
def test_a_book_with_numbers_that_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tea, searched = Path(shutil.copytree(TEA, tmp_path / "book")), {}
    searches = "mlsim_book.site.assemble.write_search"
    monkeypatch.setattr(searches, lambda pages, *_: searched.update(pages))
    site = build(tea, progress=str)
    page = (site / "steep.html").read_text("utf-8")
    # what numbers open to is no part of the page's weight
    assert page.count("<template") == 1
    assert "Twelve parts" not in page
    main, rest = with_cards(page, site / "steep.html").split("<template", 1)
    assert rest.count("<template") == 1
    assert rest.index("</template>") < rest.index("</main>")
    assert "<title>1 How long to steep: 3 min – The Tea Book</title>" in page
    assert 'class="chapter-title">How long to steep: 3 min</span>' in page
    # formulas, citations, references and links are made as on the page
    assert 'class="katex"' in rest
    assert 'href="references.html#ref-leaf1999"' in rest
    assert '<a href="#eq-steep" class="quarto-xref">Equation&nbsp;<span>1.1</span></a>' in rest
    assert '<a href="index.html">the plan</a>' in rest
    assert "x-ref" not in page
    assert "x-cite" not in page
    # inline takes the card's Markdown, an output takes HTML
    assert main.count('data-opens="opens-') == 11
    assert main.count("<span class='as-html'>3 min</span>") == 1
    # the search does not see what opens
    assert "3 min" in searched["steep.html"]
    assert "Twelve parts" not in searched["steep.html"]
    assert "First used" not in searched["glossary.html"]
    text = make_notebooks(load_project(tea, Problems()), Problems())["steep.ipynb"]
    assert "An infusion takes 3 min, or 179 s by the clock" in text
    assert "<summary>Why 3 min?</summary>" in text
    assert "| Pot 3 kg | 179 s | 12 % |" in text
    assert "data-opens" not in text
    assert "%24" not in text


@pytest.mark.usefixtures("with_assets")
def test_a_broken_formula_behind_a_number_is_an_error(make_book: MakeBook) -> None:
    text = f"# A\n\nIt takes {number('5 s', '$$ frac{ $$')}.\n"
    lines: list[str] = []
    with pytest.raises(StrictError):
        build(make_book(index_qmd=text), progress=lines.append)
    assert any("KaTeX can't typeset" in line and "in what '5 s' opens to" in line for line in lines)


@pytest.mark.usefixtures("with_assets")
def test_a_book_without_a_page_of_references_lists_them_once(make_book: MakeBook) -> None:
    book = make_book(
        "bibliography: refs.bib\n",
        index_qmd=f"# A [@a]\n\nIt takes {number('5 s', 'So [@a].')}.\n",
        **{"refs.bib": "@book{a,\n title = {T}, author = {A, B}, year = {1999}\n}\n"},
    )
    path = build(book, progress=str) / "index.html"
    page = with_cards(path.read_text("utf-8"), path)
    assert page.count('class="csl-entry"') == 1
    assert re.search(r"<template[^>]*>\s*<p>So <span", page)
