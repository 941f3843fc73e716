"""The Content-Security-Policy: only on request, of one origin, and true to the pages."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.build import StrictError, build
from mlsim_book.errors import SourceError
from mlsim_book.site.policy import policy, refused

MakeBook = Callable[..., Path]
SETTING = "mlsim-book:\n  content-security-policy: true\n"
pytestmark = pytest.mark.usefixtures("with_assets")


def test_none_unless_asked_for(make_book: MakeBook) -> None:
    book = make_book(index_qmd='# A\n\n```{=html}\n<script>alert("mine")</script>\n```\n')
    page = (build(book, progress=str) / "index.html").read_text("utf-8")
    assert "Content-Security-Policy" not in page


def test_every_page_has_it_with_its_script_allowed(make_book: MakeBook) -> None:
    book = make_book(SETTING, index_qmd="# A\n", sub__b_qmd="# B\n\n$x^2$\n")
    site = build(book, progress=str)
    for name in ("index.html", "sub/b.html"):
        page = (site / name).read_text("utf-8")
        given = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
        (inline,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        assert given == [policy(inline)]
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in given[0]
        assert page.index("Content-Security-Policy") < page.index("<script")


def test_it_allows_the_own_origin_only() -> None:
    rules = dict(rule.split(" ", 1) for rule in policy("x").split("; "))
    assert rules["default-src"] == rules["frame-src"] == "'none'"
    assert rules["connect-src"] == "'self'"
    assert rules["script-src"].startswith("'self' 'sha256-")
    assert "unsafe-" not in rules["script-src"]
    assert not re.search(r"https?:|\*", policy("x"))


@pytest.mark.parametrize(
    "html",
    ["<script>x()</script>", '<p class="a" onclick="x()">', "<a href='javascript:x()'>a</a>"],
)
def test_what_it_would_silence_is_told(make_book: MakeBook, html: str) -> None:
    assert refused(html)
    book = make_book(SETTING, index_qmd=f"# A\n\n```{{=html}}\n{html}\n```\n")
    lines: list[str] = []
    with pytest.raises(StrictError):
        build(book, progress=lines.append)
    assert any("index.qmd:4: the book's content-security-policy" in line for line in lines)


@pytest.mark.parametrize(
    "html",
    [
        '<script src="a.js"></script>', '<script type="application/json">{}</script>',
        "<!-- <script>x()</script> -->", "<p>an onclick=x in text</p>", '<p title="online = x">',
    ],
)  # fmt: skip
def test_what_it_lets_pass(html: str) -> None:
    assert refused(html) is None


def test_another_value_is_refused(make_book: MakeBook) -> None:
    book = make_book("mlsim-book:\n  content-security-policy: strict\n", index_qmd="# A\n")
    with pytest.raises(SourceError, match=r"_quarto.yml: .*'strict', which must be `true`"):
        build(book, progress=str)
