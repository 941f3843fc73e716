"""The ground that Quarto's own renderings cover, on a book of ours: cells and what they give.

What is shown (echo, eval, output, include, warning), folds, other options, magics, kinds
of results, figures with and without captions, inline values, defaults of book and page.
"""

from __future__ import annotations

import pytest
from site_pages import Page, Site, built


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site, built once."""
    return built(tmp_path_factory.mktemp("cells"), "cells")


@pytest.fixture(scope="module")
def page(site: Site) -> Page:
    """The page with most of the cells."""
    return site["index.html"]


def cells(page: Page, section: str) -> list[tuple[str, list[str]]]:
    """Return the code and the outputs of a section's cells."""
    return [
        (
            "".join(each.text() for each in cell.css(".cell-code code")),
            [each.text().strip() for each in cell.css(".cell-output")],
        )
        for cell in page.all(f"{section} .cell")
        if "quarto-float" not in (cell.attributes["class"] or "")
    ]


def test_what_is_shown(page: Page) -> None:
    assert cells(page, "#sec-shown")[:5] == [
        ('print("plain")', ["plain"]),
        ("", ["no source"]),
        ('print("not run")', []),
        ('print("no output")', []),
        ('```{python}\n#| label: fenced-one\nprint("fence shown")\n```', ["fence shown"]),
    ]
    assert page.one("#plain.cell")
    assert page.one("#fenced-one pre.markdown")
    assert "hidden = 6" not in page.html
    assert page.text("#sec-shown > p em") == "from"  # asis, without a cell around it
    assert page.texts(".cell-output-stderr")[0].startswith("/tmp/")
    assert "mind the gap" in page.text(".cell-output-stderr")
    assert page.html.count("never shown") == 1  # its source alone
    assert "to stderr" not in "".join(page.texts(".cell-output"))


def test_no_machine_is_told_of(page: Page, site: Site) -> None:
    assert "ipykernel_0/" in page.text(".cell-output-stderr")
    assert str(site.folder.parent) not in page.html


def test_folds(page: Page) -> None:
    folds = page.all("#sec-folded details.code-fold")
    assert ["open" in each.attributes for each in folds] == [False, True]
    assert page.texts("#sec-folded summary") == ["Code", "My words"]
    assert page.text("#sec-folded summary em") == "words"
    assert page.text("#sec-folded pre.number-lines.code-overflow-wrap") == "lined = 3"


def test_options_become_classes_and_attributes(page: Page) -> None:
    cell = page.one('#sec-options .cell.special.loud[data-flavour="mint"]')
    assert cell.css_first(".code-with-filename-file").text().strip() == "tool.py"
    assert page.text("#own-id.cell") == "with id"  # `#|echo:` counts without the space
    code = [each.text() for each in page.all("#sec-options > .code-copy-outer-scaffold code")]
    assert code == ["not_run = True", '```{python}\nprint("a cell, shown")\n```']


def test_magics_and_state(page: Page) -> None:
    found = cells(page, "#sec-magics")
    assert [outputs for _, outputs in found] == [[], ["2"], ["bold"], ["20"]]
    assert found[0][0].startswith("%%capture\n")
    assert found[3][0] == "# first a comment\n\nvalue = counter * 10\n\nvalue"
    assert page.one(".cell-output-display b.magic")


def test_kinds_of_results(page: Page) -> None:
    outputs = [each for _, each in cells(page, "#sec-results")]
    assert outputs[0] == ["[1, 'two', None]"]
    assert page.text(".cell-output-display p.raw-result") == "Raw"
    assert page.text(".cell-output-markdown em") == "Markdown"
    assert len(page.all(".cell-output-markdown span.math")) == 2
    assert outputs[5] == ["before", "cup", "after", "7"]
    assert outputs[6:8] == [[], []]
    assert page.one(".cell-output-display em.cup")
    assert page.all(".cell-output-stdout") != page.all(".cell-output-display")
    assert "ZeroDivisionError" in page.text(".cell-output-error")


def test_data_frames(page: Page) -> None:
    table = page.one("table.dataframe")
    assert [each.text() for each in table.css("tbody th")] == ["x", "y"]
    assert [each.text() for each in table.css("tbody td")] == ["1", "a", "2", "b<c"]
    assert [each.text() for each in table.css("thead th")] == ["cups", "name"]
    assert "<style scoped" not in page.html


def test_figures_of_cells(page: Page, site: Site) -> None:
    image = page.one("#fig-line img")
    assert image.attributes["alt"] == "It rises"
    assert (site.folder / (image.attributes["src"] or "")).read_text().startswith("<svg")
    assert page.text("#fig-line figcaption") == "Figure 1.1: A line, as in Section 1.1"
    assert page.one("#fig-line.quarto-figure-left")
    assert page.text("#fig-bare figcaption") == "Figure 1.2"
    assert page.text("#tbl-cups figcaption") == "Table 1.1: Cups"
    assert page.text("#tbl-cups td") == "3"
    assert page.links("#sec-figures > p a") == [
        ("Figure 1.1", "#fig-line"), ("Figure 1.2", "#fig-bare"), ("Table 1.1", "#tbl-cups"),
    ]  # fmt: skip


def test_inline_values(page: Page) -> None:
    text = page.texts("#sec-inline > p")[0]
    assert text.startswith("Six is 6, ten **10**, a list [1, ‘a’], emphatic;")
    assert page.text("#sec-inline > p > em") == "emphatic"
    assert page.text("#sec-inline > p > code") == "`{{python}} hidden`"
    assert page.texts(".callout-tip .callout-body p") == ["In a box: 7."]
    assert page.text(".callout-tip .cell-output-stdout") == "in a box"


def test_defaults_of_a_page_beat_the_book_and_a_cell_beats_both(site: Site) -> None:
    page = site["quiet.html"]
    assert cells(page, "main") == [
        ("", ["output alone"]),
        ("named = __name__", []),
        ('print("only source")', []),
    ]
