"""What `mlsim-book check` tells of a built site: headings, markup, requests, terms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.caches import TextCache
from mlsim_book.check.book import check_book
from mlsim_book.check.built_page import read_page
from mlsim_book.check.html_faults import find_faults
from mlsim_book.errors import SourceError

MakeBook = Callable[..., Path]
PAGE = "<!DOCTYPE html>\n<html lang='en'><head><title>T</title>{head}</head><body>\n{body}\n</body></html>\n"


@pytest.fixture
def site(make_book: MakeBook) -> Callable[..., list[str]]:
    """Return a function that writes a book and a site of one page, and checks them."""

    def check(body: str, *, source: str = "", head: str = "", extra: str = "") -> list[str]:
        book = make_book(extra, index_qmd="# T\n\n" + source)
        (book / "_book").mkdir(exist_ok=True)
        page = PAGE.format(head=head, body=f"<main><h1>T</h1>\n{body}</main>")
        (book / "_book" / "index.html").write_text(page, encoding="utf-8")
        return [each.text() for each in check_book(book).found]

    return check


def test_a_page_in_order(site: Callable[..., list[str]]) -> None:
    assert site("<h2>A</h2><h3>B</h3><h2>C</h2><p>Well.</p>") == []


def test_headings_in_order(site: Callable[..., list[str]]) -> None:
    (said,) = site("<h2>A</h2><h4>Too deep</h4>", source="## A\n\n#### Too deep\n")
    assert said.startswith("index.qmd:5: the heading 'Too deep' of level 4 comes after")
    assert "Make it level 3, ###" in said
    assert "has no text" in site("<h2> </h2>")[0]


def test_navigation_and_templates_are_no_part_of_the_outline() -> None:
    html = "<nav><h5>N</h5></nav><main><h1>A</h1><template><h6>T</h6></template></main><h4>F</h4>"
    assert read_page(html).headings == [(1, "A")]


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("<p>a <b>b</p>", "Unexpected end tag"),
        ("<p>a</i></p>", "Unexpected end tag (i)"),
        ("<p>a<div>b</div></p>", "Unexpected end tag (p)"),
        ("<div><td>1</td></div>", "Unexpected start tag td"),
        ('<img src="a" alt="a" alt="b">', "Dropped duplicate attribute"),
        ("<div>a", "Missing closing tags"),
        ("<p>&nosuch; a</p>", "amed entity"),
        ("<span><div>a</div></span>", "a <div> stands in a <span>"),
        ("<h2><p>a</p></h2>", "a <p> stands in a <h2>"),
        ("<button><a href='#x'>a</a></button>", "two controls in one"),
        ("<ul><p>a</p></ul>", "a <p> stands in a <ul>, no item"),
        ("<ol>a<li>b</li></ol>", "text stands in a <ol>"),
    ],
)
def test_faults_of_markup(html: str, said: str) -> None:
    found = find_faults(PAGE.format(head="", body=html))
    assert any(said in each.message and each.line == 3 for each in found) or (
        said == "Missing closing tags" and found
    )


@pytest.mark.parametrize(
    "html",
    [
        "<ul>\n<li><p>a</p>\n<li>b</ul><dl><dt>a<dd>b<div></div></dl>",
        "<a href='#x'><div>a</div></a><table><tr><td>1</table>",
        "<p><svg><title>a</title><a href='#x'><text>b</text></a></svg></p>",
        "<p><math><mrow><mi>x</mi></mrow></math><template><div>a</div></template></p>",
        "<p>a<template><p>b</p><table><tr><td>c</td></tr></table></template></p>",
        "<details><summary><h2>a</h2></summary><p>b</p></details>",
        "<p>3 &lt; 4 &amp; 5</p><br/><hr/>",
    ],
)
def test_what_is_valid(html: str) -> None:
    assert find_faults(PAGE.format(head="", body=html)) == []


def test_known_pages_are_not_read_again(tmp_path: Path) -> None:
    keep, page = TextCache(tmp_path), PAGE.format(head="", body="<p>a</i></p>")
    first = find_faults(page, keep)
    assert first
    assert list(tmp_path.iterdir())
    assert find_faults(page, keep) == first


def test_faults_of_markup_are_told_at_the_source(site: Callable[..., list[str]]) -> None:
    (said,) = site("<div><td>1</div>", source="Raw:\n\n<td>1\n")
    assert said.startswith("index.qmd:5: index.html:4 is no valid HTML, near <td>: Unexpected")


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ('<link rel="stylesheet" href="//cdn.example.org/a.css">', ""),
        ("<style>@font-face { src: url('https://cdn.example.org/a.woff2') }</style>", ""),
        ("<script>import('https://cdn.example.org/a.js')</script>", ""),
        ('<script type="module">import a from "https://cdn.example.org/a.js"</script>', ""),
        ("", '<p style="background: url(https://cdn.example.org/a.png)">a</p>'),
        ("", '<img alt="a" src="a.svg" srcset="a.svg 1x, https://cdn.example.org/a.png 2x">'),
        ("", '<svg><image href="https://cdn.example.org/a.png"></image></svg>'),
        ("", '<iframe title="a" src="https://cdn.example.org/"></iframe>'),
    ],
)
def test_requests_to_others(site: Callable[..., list[str]], head: str, body: str) -> None:
    assert any("somebody else's server (cdn.example.org)" in each for each in site(body, head=head))


def test_links_to_others_are_no_requests(site: Callable[..., list[str]]) -> None:
    body = '<p><a href="https://example.org/a">a</a></p><script>let a = "https://b.org"</script>'
    assert site(body) == []


GLOSSARY = """<section id="g">
<div class="glossary-entry"><p><span id="term-relu" class="term-entry" data-also="rectifier">ReLU</span>
<span class="glossary-definition">Zero below zero.</span></p></div>
<div class="glossary-entry"><p><span id="term-all-reduce" class="term-entry">all-reduce</span>
<span class="glossary-definition">Adds up.</span></p></div>
<div class="glossary-entry"><p><span id="term-optimizer" class="term-entry">batch optimizer</span>
<span class="glossary-definition">Steps.</span></p></div></section>
"""
SET = "mlsim-book:\n  glossary: index.qmd\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A relu is cheap.", "'relu' is a term of the glossary, which spells it 'ReLU'"),
        ("One allreduce.", "'allreduce'"),
        ("An All-Reduce of it, all-Reduce.", "'all-Reduce'"),
        ("Batch optimisers step.", "'Batch optimisers'"),
        ("A batchoptimizer.", "'batchoptimizer'"),
    ],
)
def test_terms_spelled_otherwise(site: Callable[..., list[str]], text: str, said: str) -> None:
    (found,) = site(f"{GLOSSARY}<p>{text}</p>", source=f"Words.\n\n{text}\n", extra=SET)
    assert said in found
    assert found.startswith("index.qmd:5:")


@pytest.mark.parametrize(
    "text",
    [
        "ReLUs, rectifiers, All-reduces and a batch-optimizer step. Batch optimizers.",
        "They all reduce it; the Batch Optimizer of Ada, ALL-REDUCE.",
        "Called “relu”, <code>relu</code>, relu.py, x_relu and a/relu.",
    ],
)
def test_fair_spellings(site: Callable[..., list[str]], text: str) -> None:
    assert site(f"{GLOSSARY}<p>{text}</p>", extra=SET) == []


def test_words_that_are_no_terms(site: Callable[..., list[str]]) -> None:
    body = f"{GLOSSARY}<p>A relu.</p>"
    assert site(body, extra=SET + "  not-terms: [relu]\n") == []
    assert site(body, extra=SET, source="") != []
    with pytest.raises(SourceError, match="not-terms"):
        site(body, extra=SET + "  not-terms: relu\n")
