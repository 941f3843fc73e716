"""What Quarto documents beyond figures, tables and prose, on hand-written Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.caches import TextCache
from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.read.document import Markdown
from mlsim_book.read.language import known_language, own_words
from mlsim_book.read.lines import split_lines
from mlsim_book.read.places import Reporter
from mlsim_book.read.qmd import parse_blocks
from mlsim_book.render.crossref import Words, build_index, resolve
from mlsim_book.render.media import kbd, video
from mlsim_book.render.to_html import RenderedPage, render_pages

CHAPTER = Chapter("a.qmd", "a.html", "T", 1)


def rendered(folder: Path, markdown: str, **metadata: Any) -> tuple[str, RenderedPage, list[str]]:
    """Return a page's HTML with its references, the page, and the problems told."""
    lang = str(metadata.get("lang", "en"))
    project = Project(folder, "Book", (CHAPTER,), metadata=metadata, lang=lang)
    text = f"# T\n\n{markdown}"
    page = ExecutedPage(CHAPTER, text, {}, {}, text)
    (done,) = render_pages(project, [page], keep=TextCache(folder / "keep"))
    problems = Problems()
    reporter = Reporter(problems, folder)
    html = resolve(done.body, done, build_index([done], reporter), Words(project), reporter)
    return html.replace("\n", ""), done, [each.message for each in problems.found]


def test_listings_have_numbers_and_captions(tmp_path: Path) -> None:
    html, _, problems = rendered(
        tmp_path,
        '```{#lst-a .python lst-cap="A *loop*" filename="a.py"}\nx\n```\n\n'
        "::: {#lst-b}\n```python\ny\n```\n\nIn a div.\n:::\n\nSee @lst-a and @lst-b.\n",
    )
    assert "Listing&nbsp;1.1: A <em>loop</em></figcaption>" in html
    assert "Listing&nbsp;1.2: In a div.</figcaption>" in html
    assert html.count('class="listing quarto-float quarto-figure quarto-figure-left') == 2
    assert '<a href="#lst-b" class="quarto-xref">Listing&nbsp;<span>1.2</span></a>' in html
    assert not problems


PARTS = "![One](a.svg){#fig-one}\n\n![Two](a.svg){#fig-two}\n\n![Three](a.svg){#fig-three}\n\n"


@pytest.mark.parametrize(
    ("layout", "rows", "shares"),
    [
        ("layout-ncol=2", 2, ["50.0%"] * 3),
        ("layout-nrow=1", 1, ["33.3%"] * 3),
        ('layout="[[70,30],[1]]"', 2, ["70.0%", "30.0%", "100.0%"]),
        ('layout="[40,-20,40]"', 2, ["40.0%", "20.0%", "40.0%", "40.0%", "20.0%"]),
    ],
)
def test_subfigures(tmp_path: Path, layout: str, rows: int, shares: list[str]) -> None:
    html, _, _ = rendered(
        tmp_path, f"::: {{#fig-all {layout}}}\n{PARTS}All of *them*.\n:::\n\nSee @fig-two.\n"
    )
    assert '<div id="fig-all" class="quarto-layout-panel">' in html
    assert html.count('class="quarto-layout-row"') == rows
    assert re.findall(r"--share: ([\d.]+%)", html) == shares
    assert "Figure&nbsp;1.1: All of <em>them</em>.</figcaption>" in html
    assert "(b) Two</figcaption>" in html
    assert 'class="quarto-xref">Figure&nbsp;<span>1.1 (b)</span></a>' in html


def test_a_heading_in_a_panel_stays_with_its_part(tmp_path: Path) -> None:
    html, _, _ = rendered(tmp_path, "::: {layout-ncol=2}\n### One\n\n- a\n\n### Two\n\n- b\n:::\n")
    assert html.count("quarto-layout-row") == 1
    assert html.count("quarto-layout-cell") == 2


def test_tables_of_a_cell_are_parts(tmp_path: Path) -> None:
    html, _, problems = rendered(
        tmp_path,
        '::: {#tbl-a .cell tbl-cap="Both" tbl-subcap="[\\"One\\",\\"Two\\"]" layout-ncol="2"}\n'
        "::: {.cell-output .cell-output-display}\n| x |\n|---|\n| 1 |\n:::\n\n"
        "::: {.cell-output .cell-output-display}\n```{=html}\n<table><tr><td>2</td></tr></table>\n"
        "```\n:::\n:::\n\nSee @tbl-a-2.\n",
    )
    assert "Table&nbsp;1.1: Both</figcaption>" in html
    assert html.count("quarto-subfloat-tbl figure") == 2
    assert "Table&nbsp;<span>1.1 (b)</span>" in html
    assert "data-tbl-subcap" not in html
    assert not problems


@pytest.mark.parametrize(
    ("kind", "word", "classes"),
    [
        ("exr", "Exercise", "theorem exercise"),
        ("exm", "Example", "theorem example"),
        ("prp", "Proposition", "theorem proposition"),
        ("cnj", "Conjecture", "theorem conjecture"),
        ("alg", "Algorithm", "theorem algorithm"),
        ("sol", "Solution", "proof solution"),
        ("rem", "Remark", "proof remark"),
    ],
)
def test_environments(tmp_path: Path, kind: str, word: str, classes: str) -> None:
    html, _, problems = rendered(
        tmp_path, f"::: {{#{kind}-a}}\n## Add\nIt is so.\n:::\n\nSee @{kind}-a.\n"
    )
    assert f'<div id="{kind}-a" class="{classes}">' in html
    assert f"{word}\xa01.1 (Add)" in html
    assert f'class="quarto-xref">{word}&nbsp;<span>1.1</span></a>' in html
    assert not problems


@pytest.mark.parametrize(
    ("condition", "shows"),
    [
        ('.content-visible when-meta="draft.notes"', True),
        ('.content-visible unless-meta="draft.notes"', False),
        ('.content-visible when-meta="nothing"', False),
        ('.content-hidden when-meta="draft.notes"', False),
        ('.content-visible when-profile="print"', True),
        ('.content-visible unless-profile="print"', False),
        ('.content-visible when-format="html" unless-meta="draft.notes"', False),
    ],
)
def test_conditions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, shows: bool
) -> None:
    monkeypatch.setenv("QUARTO_PROFILE", "print,draft")
    html, _, _ = rendered(tmp_path, f"::: {{{condition}}}\nSeen.\n:::\n", draft={"notes": True})
    assert ("Seen." in html) is shows


def test_callouts_within_callouts(tmp_path: Path) -> None:
    html, _, _ = rendered(
        tmp_path,
        ":::: {.callout-note collapse=true appearance=simple title=Outer}\nA\n\n"
        "::: {.callout-tip}\nB\n:::\n::::\n",
    )
    assert "callout callout-style-simple callout-note callout-titled" in html
    assert "callout callout-style-default callout-tip callout-titled" in html
    assert html.index("callout-collapse collapse") < html.index("callout-tip")


def test_tabs_within_tabs(tmp_path: Path) -> None:
    html, _, _ = rendered(
        tmp_path,
        ":::: {.panel-tabset}\n## A\n\n::: {.panel-tabset}\n### A1\n\nx\n\n### A2\n\ny\n:::\n\n"
        "## B\n\nz\n::::\n",
    )
    assert html.count('role="tablist"') == 2
    assert html.count('role="tabpanel"') == 4


def test_words_of_a_language(tmp_path: Path) -> None:
    html, page, _ = rendered(
        tmp_path,
        "![Bild](a.svg){#fig-a}\n\n::: {.callout-note}\nSo.\n:::\n\n::: {.proof}\nKlar.\n:::\n\n"
        "Siehe @fig-a.\n",
        lang="de-CH",
        language={"callout-note-title": "Merke"},
        crossref={"fig-title": "Abb."},
    )
    assert "Abb.&nbsp;1.1: Bild" in html
    assert "Abbildung&nbsp;<span>1.1</span>" in html
    assert "<em>Beweis</em>" in html
    assert "Merke" in html
    assert page.words["crossref-apx-prefix"] == "Anhang"


def test_a_book_brings_words_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "_language.yml").write_text("code-summary: Kod\n")
    assert own_words({}, tmp_path) == {"code-summary": "Kod"}
    assert known_language("sv")
    assert not known_language("xx")


def test_a_kind_of_ones_own(tmp_path: Path) -> None:
    own = {"kind": "float", "key": "vid", "reference-prefix": "Video"}
    html, _, problems = rendered(
        tmp_path,
        "::: {#vid-a}\nFrames.\n\nA film.\n:::\n\nSee @vid-a.\n",
        crossref={"custom": [own]},
    )
    assert "Video&nbsp;1.1: A film.</figcaption>" in html
    assert "Video&nbsp;<span>1.1</span></a>" in html
    assert not problems


def test_a_diagram_shows_its_source_and_keeps_its_label(tmp_path: Path) -> None:
    text = "```{mermaid}\n%%| label: fig-d\n%%| fig-cap: Flow\ngraph LR\n```\n"
    (block,) = parse_blocks(split_lines(text, file="a.qmd"))
    assert isinstance(block, Markdown)
    html, page, _ = rendered(tmp_path, block.text + "\nSee @fig-d.\n")
    assert "graph LR" in html
    assert "%%|" not in html
    assert "Figure&nbsp;1.1: Flow" in html
    assert "mermaid diagram" in page.notes[0][0]


WIDE = ' style="aspect-ratio: {}; width: 100%"'


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("https://www.youtube.com/watch?v=ab_c", f'"https://www.youtube.com/embed/ab_c"{WIDE.format("16 / 9")} '),
        ("https://youtu.be/ab start=7", '"https://www.youtube.com/embed/ab?start=7" '),
        ("https://vimeo.com/123 aspect-ratio=4x3", f'"https://player.vimeo.com/video/123"{WIDE.format("4 / 3")} '),
        ("https://players.brightcove.net/1 height=30 width=40", 'net/1" width="40" height="30" title='),
        ("src=film.mp4 width=5", 'preload="metadata" width="5" title="A film"><source src="film.mp4">'),
    ],
)  # fmt: skip
def test_videos(call: str, found: str) -> None:
    html = video([*call.split(), "title=A film"])
    assert html is not None
    assert found in html
    assert 'title="A film"' in html
    assert ("<iframe" in html) == ("http" in call)
    assert video([]) is None
    assert 'title="So"' in (video(["a.mp4", "aria-label=So"]) or "")


def test_keys_of_other_systems() -> None:
    assert kbd(["win=Ctrl-S", "linux=F2", "x=y"]) == (
        '`<kbd title="linux: F2, windows: Ctrl-S" data-linux="F2" data-windows="Ctrl-S">Ctrl-S</kbd>`{=html}'
    )
    assert kbd(["mode=plain"]) is None
    assert kbd([]) is None
