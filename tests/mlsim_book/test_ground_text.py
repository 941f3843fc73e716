"""The ground that Quarto's own renderings cover, on a book of ours: text that needs no code.

Headings and ids, lists, notes, links, images, divs and spans, raw HTML, formulas, code,
annotations, tables, margins, conditional content, callouts, tabs, front matter,
shortcodes, included files and styles, metadata of folders.
"""

from __future__ import annotations

import pytest
from site_pages import Site, built, words


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site, built once."""
    return built(tmp_path_factory.mktemp("orchard"), "orchard")


# ------------------------------------------------------------------- headings and ids
def test_headings_are_numbered_named_and_listed(site: Site) -> None:
    page = site["text.html"]
    assert page.text("h1.title") == "1 Trees and fruit"
    assert page.one("h1.title em").text() == "fruit"
    found = [
        (words(each.css_first("h2, h3, h4")), each.attributes["id"], each.attributes.get("data-number"))
        for each in page.all("main section[id]:not(.footnotes)")
    ]  # fmt: skip
    assert found == [
        ("1.1 Apples & pears: 2 kinds!", "apples-pears-2-kinds", "1.1"),
        ("1.1.1 3rd harvest", "rd-harvest", "1.1.1"),
        ("1.1.1.1 Deep down", "deep-down", "1.1.1.1"),
        ("Plain", "plain", None),
        ("1.2 Kept", "my-own", "1.2"),
    ]
    assert page.one("section#my-own.level2.special h2.special")
    # unlisted and level 4 are out of the contents, what has no number is in
    assert [target for _, target in page.links("#TOC a")] == [
        "#apples-pears-2-kinds", "#plain", "#my-own",
    ]  # fmt: skip


def test_an_unnumbered_front_page_keeps_its_heading(site: Site) -> None:
    page = site["index.html"]
    assert page.text("h1.title") == "The Orchard"
    assert page.text("section#preface.unnumbered > h1") == "Preface"
    assert page.tree.css_first("title").text() == "The Orchard"
    assert site["text.html"].tree.css_first("title").text() == "1 Trees and fruit – The Orchard"


def test_the_sidebar_and_the_neighbours_follow_the_book(site: Site) -> None:
    # markup in titles is shown, as in Quarto
    page = site["pieces.html"]
    assert page.texts("#quarto-sidebar .sidebar-item") == [
        "Preface", "1 Trees and fruit", "2 Pieces", "3 Boxes", "4 The front yard",
    ]  # fmt: skip
    assert page.text("#quarto-sidebar .active") == "2 Pieces"
    assert page.links(".nav-page-previous a") == [("1 Trees and fruit", "text.html")]
    assert page.links(".nav-page-next a") == [("3 Boxes", "boxes.html")]


# ------------------------------------------------------------------------------- text
def test_lists(site: Site) -> None:
    page = site["text.html"]
    assert page.texts("dl > dt") == ["Stem", "Leaf"]
    assert page.texts("dl > dd") == ["Holds the fruit.", "Green in spring. A second paragraph."]
    assert page.text('ol[start="4"][type="1"] > li:last-child > ol[type="a"]') == "letter"
    assert page.text('ol[start="3"][type="i"]') == "third roman"
    boxes = page.all("ul.task-list input[type=checkbox]")
    assert ["checked" in each.attributes for each in boxes] == [False, True]
    assert page.texts("ol.example > li") == ["An example.", "Another."]
    assert "As (2) says." in page.texts("main p")
    assert page.text("ul > li > ul > li") == "inner"
    assert page.text("blockquote > blockquote") == "Said within"


def test_footnotes_count_up_and_lead_back(site: Site) -> None:
    page = site["text.html"]
    refs = page.links("a.footnote-ref")
    assert refs == [("1", "#fn1"), ("2", "#fn2"), ("3", "#fn3")]  # one used twice is two
    notes = page.texts("section.footnotes li")
    assert notes[0].startswith("The text with a link.")
    assert notes[1].startswith("Written here.")
    assert ("link", "pieces.html") in page.links("#fn1 a")
    assert [target for _, target in page.links("a.footnote-back")] == [
        "#fnref1", "#fnref2", "#fnref3",
    ]  # fmt: skip


def test_links_lead_to_pages(site: Site) -> None:
    links = dict(site["text.html"].links())
    assert {name: links[name] for name in links if name in {
        "the other", "a place", "same page", "by heading", "as html", "dotted", "up", "data",
        "A raw link", "out", "https://example.org/auto", "https://example.org/bare",
    }} == {
        "the other": "pieces.html", "a place": "pieces.html#cups", "same page": "#my-own",
        "by heading": "#plain", "as html": "pieces.html", "dotted": "pieces.html",
        "up": "yard/front.html", "data": "crop.csv", "A raw link": "pieces.html",
        "out": "https://example.org/?a=1&b=2", "https://example.org/auto": "https://example.org/auto",
    }  # fmt: skip
    assert (
        site["text.html"].one('a[href^="https://example.org/?a"]').attributes["target"] == "_blank"
    )
    assert (site.folder / "crop.csv").read_text() == "a,b\n1,2\n"
    assert ("Home", "../index.html") in site["yard/front.html"].links()


def test_images(site: Site) -> None:
    page = site["pieces.html"]
    images = [(each.attributes["src"], each.attributes["alt"]) for each in page.all("main img")]
    assert images == [
        ("basket.svg", ""), ("basket.svg", "A woven basket"), ("basket.svg", "Linked"),
        ("basket.svg", "small"),
    ]  # fmt: skip
    assert page.text(".quarto-figure-right figcaption") == "A basket"
    assert page.one(".quarto-figure-right img").attributes["width"] == "120"
    assert page.one('a[href="https://example.org"] > img')
    assert (site.folder / "basket.svg").is_file()
    assert site["yard/front.html"].one('img[src="../basket.svg"]')


def test_divs_spans_and_signs(site: Site) -> None:
    page = site["pieces.html"]
    assert page.text('div#hot.warm[data-level="3"]') == "Boxed."
    assert page.text("div.cool") == "Short."
    assert page.text("div.outer > div.inner") == "Nested."
    assert page.text("span#sp.mark-me") == "span"
    assert page.text("span.smallcaps") == "caps"
    assert page.text("main del") == "gone"
    assert page.text("main sub") == "2"
    text = page.text("main")
    assert "dash – and — and … “quoted” and ‘single’." in text
    assert page.one("div.line-block").html.count("<br>") == 1
    assert [
        (words(each), (each.attributes["style"] or "").replace(" ", ""))
        for each in page.all("div.columns > div.column")
    ] == [("Narrow", "width:30%;"), ("Wide", "width:70%;")]


def test_raw_html_passes_and_other_formats_do_not(site: Site) -> None:
    page = site["pieces.html"]
    assert page.text('section.raw[data-x="1"] em') == "block"
    assert page.text("div.own em") == "inside"
    assert page.text("main kbd") == "K"
    assert "only paper" not in page.html
    assert "© and 1 < 2." in page.text("main")


def test_formulas_keep_their_tex(site: Site) -> None:
    page = site["pieces.html"]
    tex = [each.text() for each in page.all('main annotation[encoding="application/x-tex"]')]
    assert [each.strip() for each in tex] == ["a < b", r"\sum_{i=1}^{n} i"]
    assert len(page.all("span.math.inline")) == len(page.all("span.math.display")) == 1


# ------------------------------------------------------------------------------- code
def test_code_blocks(site: Site) -> None:
    page = site["pieces.html"]
    assert (
        page.all("pre.sourceCode.python code")[0].text() == "def pick(n):\n    return n  # <- here"
    )
    assert page.text(".code-with-filename .code-with-filename-file") == "tree.yml"
    assert page.text(".code-with-filename pre.yaml") == "tree: pear"
    assert page.text("pre.numberSource.number-lines") == "row = 1"
    assert page.text("code.sourceCode.r") == "code with [brackets]"
    assert "no language" in page.texts("pre:not([class]) > code")
    assert len(page.all(".code-copy-button")) == 4
    assert "x_y" in page.texts("p > code")


def test_annotations_leave_the_code(site: Site) -> None:
    page = site["pieces.html"]
    assert "<1>" not in page.text("pre.code-annotation-code")
    assert page.texts(".code-annotation-anchor") == ["1", "2"]
    assert page.texts("dl.code-annotation-container-grid dt") == ["1", "2"]
    assert page.texts("dl.code-annotation-container-grid dd") == ["Takes one.", "Gives two."]
    lines = [each.attributes["data-code-lines"] for each in page.all("dd span[data-code-lines]")]
    assert lines == ["1", "2"]


# ----------------------------------------------------------------- tables, margins, formats
def test_tables(site: Site) -> None:
    page = site["pieces.html"]
    table = page.all("main table")[0]
    assert words(table.css_first("caption")) == "Under the table"
    aligned = [
        (each.attributes.get("style") or "") for each in table.css("tbody tr:first-child td")
    ]
    assert [each.replace(" ", "").removesuffix(";") for each in aligned] == [
        "text-align:left", "text-align:right", "text-align:center", "",
    ]  # fmt: skip
    assert [words(each) for each in table.css("tbody tr:last-child td")] == ["bb", "22", "y", "q"]
    assert page.all("main table")[1].css_first("thead") is None
    assert words(page.all("main table")[2].css_first("td ul li")) == "a"


def test_margins_and_widths(site: Site) -> None:
    page = site["pieces.html"]
    assert page.texts(".column-margin") == ["Beside the text.", "in the margin"]
    assert page.all(".column-margin.column-container")
    assert page.text("div.column-page") == "Wider."
    assert page.one("main.page-columns")


def test_what_is_for_other_formats_goes(site: Site) -> None:
    text = site["pieces.html"].text("main")
    for shown in ("On screen.", "Hidden on paper.", "Here too."):
        assert shown in text
    for gone in ("On paper.", "Hidden on screen.", "never"):
        assert gone not in text


# --------------------------------------------------------------------- callouts and tabs
@pytest.mark.parametrize(
    ("kind", "title", "text"),
    [
        ("note.callout-style-default:not(.no-icon)", "Note", "Note text."),
        ("tip", "Tip Own title", "Tip text."),
        ("warning", "Warning Hot steam", "Warning text."),
        ("important", "Important Folded", "Folded text."),
        ("caution", "Caution", "Open text."),
        ("note.no-icon", "Note", "Without icon."),
    ],
)
def test_callouts(site: Site, kind: str, title: str, text: str) -> None:
    page = site["boxes.html"]
    box = f"div.callout.callout-{kind}"
    assert page.text(f"{box} .callout-title-container") == title
    assert page.text(f"{box} .callout-body") == text


def test_callouts_that_fold_and_plain_ones(site: Site) -> None:
    page = site["boxes.html"]
    folded = page.one(".callout-important .callout-header")
    assert folded.attributes["aria-expanded"] == "false"
    assert not page.all(".callout-important .callout-collapse.show")
    assert page.one(".callout-caution .callout-collapse.show")
    assert page.one(".callout-caution .callout-header").attributes["aria-expanded"] == "true"
    simple = page.one(".callout-style-simple")
    assert simple.css_first(".callout-header") is None
    assert words(simple) == "Simple text."
    assert not page.all("main h2")  # their titles are no headings of the page


def test_tabs(site: Site) -> None:
    page = site["boxes.html"]
    assert page.texts("[role=tab]") == ["First tab", "Second", "Alone"]
    assert page.text("[role=tab] em") == "tab"
    assert page.texts(".tab-pane.active") == ["One. x = 1", "Deeper headings."]
    for tab in page.all("[role=tab]"):
        panel = page.one(f"#{tab.attributes['aria-controls']}")
        assert panel.attributes["aria-labelledby"] == tab.attributes["id"]
    assert page.one('.panel-tabset[data-group="tool"]')


# ------------------------------------------------- front matter, shortcodes, files, metadata
def test_front_matter(site: Site) -> None:
    page = site["yard/front.html"]
    assert page.text("h1.title") == "4 The front yard"
    assert page.text("p.subtitle") == "A subtitle"
    assert page.text(".abstract .block-title") == "Abstract"
    assert page.text(".abstract").endswith("What it is about.")
    assert page.texts(".quarto-title-meta-contents p") == [
        "Ada Reed", "Ben Oak", "March 5, 2024",
    ]  # fmt: skip
    assert page.text(".keywords p") == "gate, path"
    assert page.one('meta[name="description"]').attributes["content"] == "Told in short."


def test_shortcodes(site: Site) -> None:
    page = site["yard/front.html"]
    text = page.text("main")
    assert "The tree is a pear, 9 m tall, in spring." in text  # a folder's metadata wins
    assert "An included part, in spring." in text
    assert "Kept: {{< var tree >}} and {{< var tree >}}." in text
    assert "fallback" in text
    assert "In autumn." in site["index.html"].text("main")
    assert any("yard/front.qmd:22" in line and "no.such" in line for line in site.said)


def test_included_files_and_styles(site: Site) -> None:
    for name, up in (("text.html", ""), ("yard/front.html", "../")):
        page = site[name]
        assert page.one('head meta[name="orchard"]').attributes["content"] == "pears"
        assert page.one('head link[rel="author"]')
        assert page.one(f'head link[rel="stylesheet"][href="{up}own.css"]')
        assert page.text("#before") == "Before all."
        assert page.text("#after") == "After all."
        assert (
            page.html.index('id="before"') < page.html.index("<h1") < page.html.index('id="after"')
        )
    assert (site.folder / "own.css").is_file()
