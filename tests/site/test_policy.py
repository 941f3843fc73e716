"""The browser holds this book to its Content-Security-Policy: nothing but its own origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kept import script

TRY = script("try_strange.js")


def test_nothing_strange_runs_or_is_asked_for(
    built_book: Path, book_url: str, browser: Any
) -> None:
    if "Content-Security-Policy" not in (built_book / "index.html").read_text("utf-8"):
        pytest.skip("this book asks for no policy")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{book_url}/index.html")
        refused, strange = page.evaluate(TRY, "http://127.0.0.1:9")
        assert not strange
        assert refused == ["connect-src", "img-src", "script-src-elem"]
