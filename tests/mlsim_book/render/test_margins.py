"""Notes, asides, captions and citations in the margin, in HTML by hand; pages are in `to_html`."""

from __future__ import annotations

from kept import cases

from mlsim_book.render.margins import place_margins

ENTRY = '<div id="ref-a" class="csl-entry">A. 1984.</div>'
WORDS = {
    "BOX": '<div class="no-row-height column-margin column-container">',
    "CITED": '<a href="refs.html#ref-a" role="doc-biblioref">A</a>',
    "ENTRY": ENTRY,
    "FULL": 'class="page-columns page-full"',
    "KEPT": '<span class="margin-aside">N</span>',
    "NOTE": '<span class="column-margin margin-aside">N</span>',
}


def spelt(html: str) -> str:
    for word, meaning in WORDS.items():
        html = html.replace(word, meaning)
    return html


def test_what_goes_to_the_margin_and_where() -> None:
    for html, wanted in cases("margins.toml"):
        made = place_margins(spelt(html), notes=True, references={"ref-a": ENTRY})
        assert made == spelt(wanted), html


def test_a_caption_has_room_beside_what_leaves_the_right_margin_free() -> None:
    figure = '<div class="quarto-figure margin-caption"><figure><p>x</p><figcaption>C</figcaption></figure></div>'
    columns = {
        "column-page-left": 1, "column-screen-inset-left": 1, "column-page": 0,
        "column-page-right": 0, "column-body-outset": 0, "column-margin": 0,
    }  # fmt: skip
    for column, beside in columns.items():
        html = place_margins(f'<div class="{column}">{figure}</div>')
        assert html.count("margin-caption") == beside, column
        assert html.count('<figcaption class="margin-caption">') == beside, column
