"""Options of books that others publish: numbering, panels, boxes, menus, formats, languages."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.caches import TextCache
from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.paper.formats import paper_groups, rendered_for
from mlsim_book.read.language import words_of
from mlsim_book.read.places import Reporter
from mlsim_book.render.crossref import Words, build_index, resolve
from mlsim_book.render.filler import lipsum, placeholder
from mlsim_book.render.shortcodes import expand_shortcodes
from mlsim_book.render.to_html import RenderedPage, render_pages
from mlsim_book.site import navigation
from mlsim_book.site.code_tools import code_tools, menu, source_box
from mlsim_book.site.template import page_title

CHAPTER = Chapter("a.qmd", "a.html", "T", 1)
FIGURE = "![One](a.svg){#fig-a}\n\n"


def project_of(folder: Path, **metadata: Any) -> Project:
    lang = str(metadata.get("lang", "en"))
    return Project(folder, "Book", (CHAPTER,), metadata=metadata, lang=lang)


def page_of(text: str) -> ExecutedPage:
    return ExecutedPage(CHAPTER, f"# T {{#sec-t}}\n\n{text}", {}, {}, text)


def rendered(folder: Path, text: str, **metadata: Any) -> tuple[str, RenderedPage]:
    """Return a page's HTML with its references filled in, on one line; and the page."""
    project = project_of(folder, **metadata)
    (done,) = render_pages(project, [page_of(text)], keep=TextCache(folder / "keep"))
    reporter = Reporter(Problems(), folder)
    html = resolve(done.body, done, build_index([done], reporter), Words(project), reporter)
    return html.replace("\n", ""), done


@pytest.mark.parametrize(
    ("options", "caption", "reference"),
    [
        ({"labels": "alpha A"}, "Figure&nbsp;1.A: One", "Figure&nbsp;<span>1.A</span></a>"),
        ({"fig-labels": "roman i"}, "Figure&nbsp;1.i: One", "Figure&nbsp;<span>1.i</span></a>"),
        ({"labels": ["x", "y"]}, "Figure&nbsp;1.x: One", "<span>1.x</span>"),
        ({"chapters": False}, "Figure&nbsp;1: One", "<span>1</span>"),
        ({"title-delim": "."}, "Figure&nbsp;1.1. One", "<span>1.1</span>"),
        ({"fig-title": "Bild", "fig-prefix": "B."}, "Bild&nbsp;1.1: One", "B.&nbsp;<span>"),
        ({"ref-hyperlink": False}, "One", '<span class="quarto-xref">Figure&nbsp;<span>'),
    ],
)
def test_numbers_of_ones_own(
    tmp_path: Path, options: dict[str, Any], caption: str, reference: str
) -> None:
    html, _ = rendered(tmp_path, f"{FIGURE}See @fig-a.\n", crossref=options)
    assert caption in html
    assert reference in html


def test_parts_of_a_figure_are_numbered_as_asked(tmp_path: Path) -> None:
    text = "::: {#fig-x layout-ncol=2}\n![A](a.svg){#fig-1}\n\n![B](a.svg){#fig-2}\n\nC\n:::\n"
    html, _ = rendered(tmp_path, f"{text}\n@fig-2\n", crossref={"subref-labels": "roman i"})
    assert "(ii) B</figcaption>" in html
    assert "<span>1.1 (ii)</span>" in html


def test_a_kind_whose_number_follows_its_word(tmp_path: Path) -> None:
    own = {"kind": "float", "key": "dia", "reference-prefix": "D", "space-before-numbering": False}
    text = "::: {#dia-a}\nx\n\nCap\n:::\n\n@dia-a\n"
    html, _ = rendered(tmp_path, text, crossref={"custom": [own]})
    assert "D1.1: Cap" in html
    assert "D<span>1.1</span></a>" in html


def test_a_book_without_numbers(tmp_path: Path) -> None:
    options = {"number-sections": False}
    html, page = rendered(tmp_path, "## S {#sec-s}\n\n@sec-s, @sec-t\n", **options)
    assert '<a href="#sec-s" class="quarto-xref"><span>S</span></a>' in html
    assert 'class="chapter-number"' not in page_title(page)[1]
    assert 'class="chapter-title"' in page_title(page)[1]
    (entry,) = navigation.sidebar(project_of(tmp_path, **options), CHAPTER)
    assert entry.text == "T"


# ------------------------------------------------------------------- panels
def cells(html: str) -> list[str]:
    return re.findall(r'class="([^"]*quarto-layout-cell[^"]*)"', html)


def test_nothing_of_a_panel_is_lost(tmp_path: Path) -> None:
    html, _ = rendered(tmp_path, '::: {layout="[[1,1]]"}\na\n\nb\n\nc\n\nd\n\ne\n:::\n')
    assert len(cells(html)) == 5
    assert html.count("quarto-layout-row") == 3


def test_a_layout_that_is_none_is_told(tmp_path: Path) -> None:
    html, page = rendered(tmp_path, '::: {layout="half"}\na\n:::\n')
    assert len(cells(html)) == 1
    assert "is no list of widths" in page.notes[0][0]


def test_images_ask_for_the_widths_of_their_parts(tmp_path: Path) -> None:
    text = "::: {layout-ncol=2}\n![A](a.svg){width=30%}\n\n![B](a.svg){width=60%}\n:::\n"
    html, _ = rendered(tmp_path, text)
    assert re.findall(r"--share: ([\d.]+)%", html) == ["33.3", "66.7"]
    assert "width:" not in html


def test_code_stands_above_its_panel(tmp_path: Path) -> None:
    cell = "::: {.cell}\n```{.python .cell-code}\nx\n```\n\n::: {.cell-output}\n1\n:::\n:::\n\n"
    html, _ = rendered(tmp_path, f":::: {{layout-ncol=2}}\n{cell}{cell}::::\n")
    assert html.index("cell-code") < html.index("quarto-layout-panel")
    assert html.count("cell-code") == 1
    assert cells(html) == ["cell quarto-layout-cell"] * 2


def test_of_layouts_in_layouts_the_inner_holds(tmp_path: Path) -> None:
    text = "::::: {layout-ncol=2}\n:::: {layout-ncol=2}\na\n\nb\n::::\n\nc\n:::::\n"
    html, _ = rendered(tmp_path, text)
    assert html.count("quarto-layout-panel") == 1
    assert len(cells(html)) == 2


# --------------------------------------------------------------- boxes, tabs
def test_a_box_of_no_kind(tmp_path: Path) -> None:
    html, _ = rendered(tmp_path, '::: {.callout title="So"}\nx\n:::\n\n::: {.callout}\ny\n:::\n')
    assert 'class="callout callout-style-simple callout-none callout-titled no-icon"' in html
    assert 'class="callout callout-style-simple callout-none no-icon"' in html
    assert html.count('class="callout-icon no-icon"') == 2


def test_an_icon_where_the_book_has_none(tmp_path: Path) -> None:
    text = "::: {.callout-tip icon=true}\nx\n:::\n\n::: {.callout-tip}\nx\n:::\n"
    html, _ = rendered(tmp_path, text, **{"callout-icon": False})
    assert html.count("callout-titled no-icon") == 1


def test_a_tab_that_is_open_at_first(tmp_path: Path) -> None:
    html, _ = rendered(tmp_path, "::: {.panel-tabset}\n## A\n\na\n\n## B {.active}\n\nb\n:::\n")
    assert '<div id="tabset-1-2" class="tab-pane active"' in html
    assert '<div id="tabset-1-1" class="tab-pane"' in html


# ---------------------------------------------------------- lightbox, menu
def test_images_that_open_in_full(tmp_path: Path) -> None:
    text = (
        f"{FIGURE}![No](a.svg){{.nolightbox}}\n\nA ![](a.svg) and ![](a.svg){{.lightbox group=g}}"
        " and [![](a.svg)](b.html).\n"
    )
    html, _ = rendered(tmp_path, text, lightbox="auto")
    assert len(re.findall(r'<a href="a.svg" class="lightbox" data-gallery="[^"]*"', html)) == 2
    assert 'data-gallery="g"' in html
    plain, _ = rendered(tmp_path, text)
    assert plain.count('class="lightbox"') == 1


def test_a_cell_says_for_its_images(tmp_path: Path) -> None:
    cell = '::: {{.cell lightbox="{}"}}\n![A](a.svg)\n:::\n\n'
    html, _ = rendered(tmp_path, cell.format('{\\"group\\":\\"g\\"}') + cell.format("false"))
    assert html.count('class="lightbox"') == html.count('data-gallery="g"') == 1


def test_the_menu_for_code() -> None:
    words = words_of("en")
    folded = '<details class="code-fold"><summary>Code</summary></details>'
    tools = code_tools(True, folded, words)
    assert tools is not None
    shown = menu(tools, words, repo_source="")
    assert 'id="quarto-show-all-code"' in shown
    assert 'id="quarto-view-source"' in shown
    assert "&lt;b&gt;" in source_box(tools, words, "<b>")
    linked = code_tools({"source": "repo", "toggle": False, "caption": "none"}, folded, words)
    assert linked is not None
    shown = menu(linked, words, repo_source="https://example.org/a.qmd")
    assert 'href="https://example.org/a.qmd"' in shown
    assert "show-all" not in shown
    assert source_box(linked, words, "x") == ""
    assert code_tools({"source": False}, "", words) is None


# ------------------------------------------------------------- shortcodes
@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("lipsum 2", "Sed ut perspiciatis"),
        ("placeholder 40 30", "![](data:image/svg+xml;base64,"),
        ("version", "1.10.18"),
        ("meta title", "Book"),
        ("kbd Enter mode=plain", '<kbd data-mode="plain" class="kbd">Enter</kbd>'),
    ],
)
def test_shortcodes(tmp_path: Path, call: str, found: str) -> None:
    problems = Problems()
    page = page_of(f"{{{{< {call} >}}}}\n")
    project = project_of(tmp_path, book={"title": "Book"})
    assert found in expand_shortcodes(page, project, Reporter(problems, tmp_path))
    assert not problems.found


def test_filler_in_parts_and_images_of_a_size() -> None:
    first = {"L": 1, "S": 2, "N": 3, "A": 4}  # the letters with which paragraphs begin

    def numbers(call: str) -> list[int]:
        parts = (lipsum(call.split()) or "").split("\n\n")
        return [5 if each.startswith("Nam") else first[each[0]] for each in parts]

    assert numbers("") == [1, 2, 3, 4, 5]
    assert numbers("3") == [1, 2, 3]
    assert numbers("2-4") == [2, 3, 4]
    assert numbers("4-2") == [4, 3, 2]
    assert numbers("5-7") == [5, 1, 2]  # there are five
    for call, width, height, letters in [
        ("70 30", 70, 30, 3),
        ("50", 50, 50, 5),
        ("", 100, 100, 10),
        ("9 7", 9, 7, 1),
    ]:
        image = placeholder(call.split()) or ""
        svg = base64.b64decode(image.partition("base64,")[2].rstrip(")")).decode()
        assert f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"' in svg
        assert f'font-size="{letters}"' in svg
        assert f">{width} x {height}</text>" in svg
    assert lipsum(["many"]) is None
    assert placeholder(["wide"]) is None
    assert placeholder(["40", "high"]) is None


# --------------------------------------------------- formats and languages
CONDITIONS = "".join(
    f'::: {{.content-visible when-format="{name}"}}\nfor-{name}\n:::\n\n'
    for name in ("html", "html:js", "pdf", "latex", "epub")
)


@pytest.mark.parametrize(
    ("form", "shown"), [("html", "html html:js"), ("pdf", "pdf latex"), ("epub", "html epub")]
)
def test_each_format_shows_its_own(tmp_path: Path, form: str, shown: str) -> None:
    pages = [page_of(CONDITIONS)]
    made = rendered_for(form, project_of(tmp_path), pages, TextCache(tmp_path / "keep"))
    assert made is not None
    assert re.findall(r"for-([\w:]+)", made[0].body) == shown.split()
    assert paper_groups(("pdf", "epub", "zip"), pages) == [["pdf"], ["epub"]]


def test_a_book_without_conditions_is_rendered_once(tmp_path: Path) -> None:
    pages = [page_of("Plain.\n")]
    assert rendered_for("pdf", project_of(tmp_path), pages, TextCache(tmp_path / "keep")) is None
    assert paper_groups(("zip",), pages) == []


@pytest.mark.parametrize(
    ("lang", "figure", "author", "appendices"),
    [
        ("sv", "Figur", "Författare", "Bilagor"),
        ("ja-JP", "図", "作者", "付録"),
        ("no", "Figur", "Forfatter", "Bilag"),
        ("xx", "Figure", "Author", "Appendices"),
    ],
)
def test_words_of_languages(lang: str, figure: str, author: str, appendices: str) -> None:
    words = words_of(lang)
    assert words["crossref-fig-title"] == figure
    assert words["title-block-author-single"] == author
    assert words["section-title-appendices"] == appendices


def test_what_a_language_lacks_is_english() -> None:
    assert words_of("sv")["callout-caution-title"] == "Caution"
    assert words_of("pt-BR")["crossref-cnj-title"] == "Conjectura"
    assert words_of("pt-BR")["crossref-fig-title"] == "Figura"
