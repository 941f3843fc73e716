"""The table below a figure: where it stands, what it shows of how many rows."""

from __future__ import annotations

import re

from mlsim_book.render.postprocess import place_tables
from mlsim_book.run.figures import SUFFIX

FIGURE = '<figure><img src="../f%20x/a.svg" alt="A"><figcaption>Figure&nbsp;1.2: Pots</figcaption></figure>'
HREF = "sub/page.html"


def placed(html: str, data: str, name: str = "f%20x/a") -> str:
    return place_tables(html, HREF, {name + SUFFIX: data.encode()})


def rows(html: str) -> list[list[str]]:
    body = html[html.index("<tbody>") :]
    return [
        re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)
    ]


def test_it_stands_below_its_figure_or_paragraph_or_image() -> None:
    fold = '\n<details class="figure-data"'
    data = "Day,Pots\n1,2\n"
    assert placed(f"<p>a</p>{FIGURE}<p>b</p>", data).index(fold) == len(f"<p>a</p>{FIGURE}")
    image = '<img src="../f%20x/a.svg">'
    assert placed(f"<p>a {image} b</p>c", data).index(fold) == len(f"<p>a {image} b</p>")
    assert placed(f"<div>{image} b</div>", data).index(fold) == len(f"<div>{image}")
    # two images of one figure have one table; an image without data none
    twice = FIGURE.replace("<figcaption>", f"{image}<figcaption>")
    assert placed(twice, data).count(fold) == 1
    assert placed(FIGURE, data, "other/a") == FIGURE


def test_what_it_shows() -> None:
    shown = placed(FIGURE, 'Day,Name & x,Pots\n1,a<b,2.123456\n,"c, d",-40\n')
    assert "<summary>Data of Figure&nbsp;1.2</summary>" in shown
    assert "<caption>Data of Figure&nbsp;1.2, 2 rows</caption>" in shown
    assert (
        '<tr><th scope="col" class="number">Day</th><th scope="col">Name &amp; x</th>'
        '<th scope="col" class="number">Pots</th></tr>'
    ) in shown
    assert (
        '<tr><th scope="row" class="number">1</th><td>a&lt;b</td><td class="number">2.123</td></tr>'
    ) in shown
    assert '<tr><td class="number"></td><td>c, d</td><td class="number">-40</td></tr>' in shown
    assert f'href="../f%20x/a{SUFFIX}" download' in shown
    assert "<summary>Data of this figure</summary>" in placed(
        '<img src="../f%20x/a.svg">', "a\n1\n"
    )


def test_of_many_rows_fifty_are_shown_evenly() -> None:
    """Of 0 to 200, the row n * 200 / 49, rounded: 0, 4, 8, 12, 16, 20, 24, 29 and on to 200."""
    for count, said in [(200, "200 rows"), (201, "50 of 201 rows")]:
        shown = placed(FIGURE, "n\n" + "".join(f"{number}\n" for number in range(count)))
        assert f", {said}</caption>" in shown
    numbers = [int(row[0]) for row in rows(shown)]
    assert (len(numbers), numbers[:8], numbers[-1]) == (50, [0, 4, 8, 12, 16, 20, 24, 29], 200)
