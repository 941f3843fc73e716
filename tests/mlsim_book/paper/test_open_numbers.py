"""Numbers that open, in the formats that can't open anything."""

from __future__ import annotations

from mlsim_book.paper.open_numbers import with_numbers
from mlsim_book.render.opens import Opened

MATH = '<span class="math display">T = t</span>'
CARDS = [Opened("o1", "5 s", f"<p>time = 5 s</p><p>{MATH}</p><p>More.</p>"), Opened("o2", "1", "")]
NUMBER = '<span class="opens" data-opens="{}">5 s</span>'


def test_a_number_links_to_an_entry_at_the_end() -> None:
    number = NUMBER.format("o1")
    html = with_numbers(f"<p>{number} and {number}</p>", CARDS)
    assert html.count('<a href="#o1-source">5 s</a>') == 2
    assert html.count('id="o1-source"') == 1
    inline = MATH.replace("display", "inline")
    assert html.endswith(f"<p>5 s: time = 5 s {inline}</p></div>\n</section>")


def test_in_tables_links_and_headings_numbers_stay_plain() -> None:
    number = NUMBER.format("o1")
    for around in ("<table><tr><td>{}</td></tr></table>", '<a href="#a">{}</a>', "<h2>{}</h2>"):
        html = around.format(number)
        assert with_numbers(html, CARDS) == html


def test_what_says_nothing_is_no_entry() -> None:
    for name in ("o2", "unknown"):
        html = f"<p>{NUMBER.format(name)}</p>"
        assert with_numbers(html, CARDS) == html
