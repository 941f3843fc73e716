"""Notes, asides, captions and citations in the margin; columns wider than the text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.caches import TextCache
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.render.margins import place_margins
from mlsim_book.render.to_html import render_pages

CONTAINER = '<div class="no-row-height column-margin column-container">'


def placed(folder: Path, markdown: str, *, notes: bool = False, **metadata: Any) -> str:
    """Return a page's body with its margin content in place."""
    chapter = Chapter("a.qmd", "a.html", "T", 1)
    project = Project(folder, "Book", (chapter,), metadata=metadata)
    text = f"# T\n\n{markdown}"
    page = ExecutedPage(chapter, text, {}, {}, text)
    (done,) = render_pages(project, [page], keep=TextCache(folder / "keep"))
    return re.sub(r"\s*\n\s*", "", place_margins(done.body, notes=notes))


def test_a_page_without_margins_stays_byte_for_byte() -> None:
    html = "<p>It's <br/> as <b>it is</p>"
    assert place_margins(html, notes=True, references={"ref-a": "x"}) is html


def test_an_aside_leaves_its_paragraph(tmp_path: Path) -> None:
    html = placed(tmp_path, "Text [so]{.aside} on.\n")
    inner = f'{CONTAINER}<span class="margin-aside">so</span></div>'
    assert html == f'<div class="page-columns page-full"><p>Text on.</p>{inner}</div>'.replace(
        "Text on", "Text  on"
    )


def test_footnotes(tmp_path: Path) -> None:
    html = placed(
        tmp_path, "One[^a] and *two^[Second.]*.\n\n[^a]: First.\n\n    More.\n", notes=True
    )
    assert '<div id="fn1"><p><sup>1</sup>&nbsp;First.</p><p>More.</p></div>' in html
    assert '<div id="fn2"><p><sup>2</sup>&nbsp;Second.</p></div>' in html
    assert html.count("column-container") == 1
    assert "footnote-back" not in html
    assert 'class="footnotes' not in html


@pytest.mark.parametrize(
    ("where", "found"),
    [("section", "footnotes-end-of-section"), ("block", "footnotes-end-of-block")],
)
def test_footnotes_at_the_end_of_blocks_and_sections(
    tmp_path: Path, where: str, found: str
) -> None:
    html = placed(tmp_path, "## A\n\nOne^[x].\n\n## B\n\nTwo.\n", **{"reference-location": where})
    assert html.index(found) < html.index('id="b"')


def test_a_footnote_of_a_table_stands_behind_the_box_that_scrolls() -> None:
    html = place_margins(
        '<div class="table-scroll"><table><tbody><tr><td>1<a href="#fn1" class="footnote-ref">'
        "<sup>1</sup></a></td></tr></tbody></table></div>"
        '<section class="footnotes"><ol><li id="fn1"><p>A.</p>B</li></ol></section>',
        notes=True,
    )
    note = '<div id="fn1"><p><sup>1</sup>&nbsp;A.</p>B</div>'
    assert f"</table></div>{CONTAINER}{note}</div>" in html


def test_citations() -> None:
    cited = '<a href="refs.html#ref-a" role="doc-biblioref">A</a>'
    html = place_margins(
        f"<p>See {cited}, <em>{cited}</em>.</p><p>{cited}</p>",
        references={"ref-a": '<div id="ref-a" class="csl-entry">A. 1984.</div>'},
    )
    assert html.count('id="ref-a"') == 1
    assert html.index('id="ref-a"') < html.rindex("<p>")


def test_figures_and_captions(tmp_path: Path) -> None:
    html = placed(
        tmp_path,
        "![In](a.svg){#fig-a .column-margin}\n\n"
        '![Beside](a.svg){#fig-b fig-cap-location="margin"}\n\n'
        "![Wide](a.svg){#fig-c .column-page}\n\n![Plain](a.svg){.column-margin}\n",
    )
    assert html.startswith(f'{CONTAINER}<div id="fig-a"')
    assert re.search(r'<figcaption class="[^"]* margin-caption" id="caption-fig-b">', html)
    assert re.search(r'<div id="fig-c" class="[^"]* page-columns page-full">', html)
    assert '<img src="a.svg" class="img-fluid figure-img column-page"' in html
    assert f'{CONTAINER}<div class="quarto-figure quarto-figure-center">' in html


def test_the_margin_has_no_margin(tmp_path: Path) -> None:
    html = placed(
        tmp_path,
        "::: {.column-margin}\n![A](a.svg){#fig-a cap-location=margin}\n\nText [so]{.aside}.\n:::\n",
    )
    assert "margin-caption" not in re.sub(r"caption-margin", "", html)
    assert html.count("column-container") == 1


def test_tables_of_the_whole_book_beside_their_captions(tmp_path: Path) -> None:
    table = "| a |\n|---|\n| 1 |\n\n: Cups {#tbl-a}\n"
    html = placed(tmp_path, table, **{"tbl-cap-location": "margin"})
    assert re.search(r"</table>.*<figcaption class=\"[^\"]* margin-caption\"", html)


@pytest.mark.parametrize(
    ("classes", "metadata", "found"),
    [
        (".column-margin", {}, f'{CONTAINER}<div class="cell-output cell-output-display">'),
        (".fig-column-page", {}, '<div class="cell-output cell-output-display column-page">'),
        ("", {"fig-column": "page"}, '<div class="cell-output cell-output-display column-page">'),
        (".column-page layout-ncol=1", {}, '<div class="cell column-page quarto-layout-panel">'),
    ],
)
def test_columns_of_cells(
    tmp_path: Path, classes: str, metadata: dict[str, str], found: str
) -> None:
    html = placed(
        tmp_path,
        f"::: {{.cell {classes}}}\n```{{.python .cell-code}}\nx\n```\n\n"
        "::: {.cell-output .cell-output-display}\nText\n:::\n:::\n",
        **metadata,
    )
    assert found in html
    assert html.index("cell-code") < html.index(found)
    assert "fig-column" not in html


def test_out_of_callouts_and_tabs(tmp_path: Path) -> None:
    html = placed(
        tmp_path,
        "::: {.callout-note collapse=true}\nText [so]{.aside}.\n:::\n\n"
        "::: {.panel-tabset}\n### A\n\nx\n\n### B\n\n[there]{.aside}\n:::\n",
    )
    note = '<span class="margin-aside callout-1-contents callout-collapse collapse'
    assert f'</div>{CONTAINER}{note} callout-margin-content">so</span>' in html
    assert (
        'class="margin-aside tabset-margin-content tabset-1-2-tab-margin-content collapse"' in html
    )
    assert html.index('<div class="tabset-margin-container') < html.index("panel-tabset")


@pytest.mark.parametrize(
    ("column", "beside"),
    [
        ("column-page-left", True), ("column-screen-inset-left", True), ("column-page", False),
        ("column-page-right", False), ("column-body-outset", False), ("column-margin", False),
    ],
)  # fmt: skip
def test_a_caption_has_room_beside_what_leaves_the_right_margin_free(
    column: str, beside: bool
) -> None:
    figure = '<div class="quarto-figure margin-caption"><figure><p>x</p><figcaption>C</figcaption></figure></div>'
    html = place_margins(f'<div class="{column}">{figure}</div>')
    assert ('<figcaption class="margin-caption">' in html) == beside
    assert html.count("margin-caption") == beside


def test_blocks_that_hold_no_container_by_hand() -> None:
    note = '<span class="column-margin margin-aside">N</span>'
    kept = '<span class="margin-aside">N</span>'
    full = 'class="page-columns page-full"'
    for html, placed_ in [
        # a description, a list in a list, a quotation, a heading, a row of a layout
        (f"<dl><dt>a</dt><dd>b{note}</dd></dl>",
         f"<dl {full}><dt>a</dt><dd>b</dd>{CONTAINER}<div>{kept}</div></div></dl>"),
        (f"<ul><li><ol><li>a{note}</li></ol></li></ul>",
         f"<ul><li><ol><li>a</li></ol></li></ul>{CONTAINER}{kept}</div>"),
        (f"<blockquote>{note}</blockquote>",
         f"<div {full}><blockquote></blockquote>{CONTAINER}{kept}</div></div>"),
        (f"<h2>a</h2>{note}", f"<h2>a</h2>{CONTAINER}{kept}</div>"),
        # two of one paragraph share a container, one before a container joins it
        (f"<p>a{note}b{note}</p>",
         f"<div {full}><p>ab</p>{CONTAINER}{kept}{kept}</div></div>"),
        # a box that scrolls
        (f'<div class="table-scroll"><table><tbody><tr><td>a{note}</td></tr></tbody></table></div>',
         f'<div class="table-scroll"><table><tbody><tr><td>a</td></tr></tbody></table></div>{CONTAINER}{kept}</div>'),
        # within a wide block, the wide one holds
        (f'<div class="column-page"><p>a{note}</p></div>', f'<div class="column-page"><p>a{kept}</p></div>'),
        (f'<div class="column-screen"><p>{note}</p></div>',
         f'<div class="column-screen page-columns page-full"><div {full}><p></p>{CONTAINER}{kept}</div></div></div>'),
    ]:  # fmt: skip
        assert place_margins(html) == placed_, html


def test_a_caption_of_a_table_stands_behind_it() -> None:
    html = place_margins(
        '<div class="quarto-figure margin-caption"><table><caption>C <b>d</b></caption>'
        "<tbody><tr><td>1</td></tr></tbody></table></div>"
    )
    assert "<caption" not in html
    assert '</table><div class="quarto-table-caption margin-caption">C <b>d</b></div>' in html


def test_a_citation_of_a_caption_in_the_margin_stays_in_it() -> None:
    link = '<a href="refs.html#ref-a" role="doc-biblioref">x</a>'
    entry = '<div id="ref-a" class="csl-entry">A.</div>'
    html = place_margins(
        f'<figure class="quarto-figure margin-caption"><figcaption>{link}</figcaption></figure>',
        references={"ref-a": entry},
    )
    assert f"{link}{entry}</figcaption>" in html


def test_a_simple_callout_says_so_of_what_left_it() -> None:
    for style, more in [("simple", " callout-margin-content-simple"), ("default", "")]:
        html = place_margins(
            f'<div class="callout callout-style-{style}"><div class="callout-body-container">'
            '<p>a<span class="column-margin aside">N</span></p></div></div>'
        )
        noted = f'<span class="aside callout-margin-content{more}">N</span>'
        assert f"<p>a</p></div></div>{CONTAINER}{noted}</div>" in html
