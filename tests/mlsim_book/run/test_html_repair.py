"""HTML in a cell's output: the balanced is left alone, the rest can damage nothing around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.build import build
from mlsim_book.run.html_repair import balanced, repaired
from mlsim_book.run.inline import Inline, render
from mlsim_book.run.outputs import Figure, output_markdown

MakeBook = Callable[..., Path]

SOUND = (
    "plain text, a < b & c",
    "<div class=x><p>a<br>b</p><img src=a.png></div>",
    "<table><thead><tr><th>a</th></tr></thead></table>",
    "<svg viewBox='0 0 1 1'><path d='M0'/></svg><br/>",
    "<script>if (a<b) { c('</div'+'>') }</script>",
    "<style>a > b {}</style><!-- <div> -->",
    "<div><div><a href=x>a</a><a href=y>b</a></div></div>",
)


def test_balanced_html_passes_byte_for_byte() -> None:
    assert [html for html in SOUND if not balanced(html) or repaired(html) is not html] == []


BROKEN = {
    "<div><b>x": "<div><b>x</b></div>",
    "</div></section></main>x": "x",
    "<b>x<i>y</b>z</i>": "<b>x<i>y</i></b><i>z</i>",
    "<!-- open": "<!-- open-->",
    "<script>if (a<b) {": "<script>if (a<b) {</script>",
    "<textarea>x": "<textarea>x</textarea>",
    "<plaintext>x": "<pre>x</pre>",
    "<div/>x": "<div>x</div>",
    "<li>a<li>b": "<li>a</li><li>b</li>",
    '<a href="x>y</a> z': '&lt;a href="x&gt;y&lt;/a&gt; z',
    "<p>a<div>b</div></p>": "<p>a</p><div>b</div><p></p>",
    "<!DOCTYPE html><html><body style='margin:0'><p>x</p></body></html>": "<p>x</p>",
    "<!DOCTYPE html><p>x</p>": "<p>x</p>",
    "<body class=wide><p>x</p></body>": "<p>x</p>",
    "<p>x</p><![CDATA[y]]>": "<p>x</p><!--[CDATA[y]]-->",
    "<a>x<a>y</a></a>": "<a>x</a><a>y</a>",  # no link within a link, though each is closed
    '<p>a</p><b title="x>y': '<p>a</p>&lt;b title="x&gt;y',
    "</div>": "<pre>&lt;/div&gt;</pre>",  # nothing is left: show what was given
}


def test_unbalanced_html_is_repaired() -> None:
    assert {html: repaired(html) for html in BROKEN} == BROKEN
    assert [html for html in BROKEN.values() if not balanced(html)] == []


def test_outputs_and_inline_values_are_repaired() -> None:
    output = {"output_type": "display_data", "data": {"text/html": "<p>a</p></div>"}}
    assert "</div>" not in output_markdown(output, Figure("f"), {}, asis=False)
    assert render({"text/html": "<b>x"}, Inline("x", 0, 1, "a.qmd", 1)) == "`<b>x</b>`{=html}"


@pytest.mark.usefixtures("with_assets")
def test_what_stands_around_an_output_is_as_it_was(make_book: MakeBook) -> None:
    cell = '\n```{{python}}\n#| echo: false\n#| output: true\nfrom IPython.display import HTML\nHTML("{}")\n```\n'
    texts = ("<b>fine</b>", "</div></section></main><table><tr><td><div>", "<!-- <p>", "<script>")
    text = "# A\n\n## Before {#sec-before}\n\nOne.\n"
    text += "".join(cell.format(each) for each in texts)
    text += "\n## After {#sec-after}\n\nSee @sec-before and **bold**.\n"
    page = (build(make_book(index_qmd=text), progress=str) / "index.html").read_text("utf-8")
    assert balanced(page.split("<body", 1)[1].split(">", 1)[1].split("</body>")[0])
    main = page[page.index("<main") : page.index("</main>")]
    assert "<b>fine</b>" in main
    assert "<td><div></div></td>" in main
    assert '<section id="sec-after"' in main
    assert "<strong>bold</strong>" in main
