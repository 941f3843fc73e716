"""The last changes to a page's HTML."""

from __future__ import annotations

from mlsim_book.render.postprocess import _tables


def test_a_heading_without_words_becomes_a_plain_cell() -> None:
    made = _tables("<table><tr><th></th><th style='x'>\n</th><th>power</th></tr></table>")
    assert made == (
        "<div class=\"table-scroll\"><table><tr><td></td><td style='x'></td>"
        "<th>power</th></tr></table></div>"
    )


def test_an_empty_heading_outside_a_table_is_left_alone() -> None:
    assert _tables("<p>&lt;th&gt;</p><th></th>") == "<p>&lt;th&gt;</p><th></th>"


def test_a_heading_of_an_image_keeps_its_place() -> None:
    image = '<table><tr><th><img src="a.png" alt="a"></th></tr></table>'
    assert image in _tables(image)
