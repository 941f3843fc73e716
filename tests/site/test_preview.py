"""The preview in a browser: pages follow their sources, stay in place, and show errors."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.preview.session import Preview

YAML = """project: {type: book}
book: {title: T, chapters: [index.qmd]}
format: {html: {include-in-header: head.html}}
"""
POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'self\';'
    " script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'\">"
)
LONG = "\n\n".join(f"Paragraph {number} of the text." for number in range(80))


def write(book: Path, text: str) -> None:
    """Write the chapter with a new time, however coarse the clock of the disk is."""
    path = book / "index.qmd"
    now = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(f"# Title\n\n{text}\n\n## Below {{#below}}\n\n{LONG}\n", encoding="utf-8")
    os.utime(path, ns=(now + 10**9, now + 10**9))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Preview]:
    """A preview of a long page under a strict policy, looking for edits."""
    (tmp_path / "_quarto.yml").write_text(YAML)
    (tmp_path / "head.html").write_text(POLICY)
    write(tmp_path, "First.")
    ended = threading.Event()

    def follow() -> None:
        while not ended.is_set():
            preview.watcher.pause()
            preview.look()

    with Preview(tmp_path, progress=str) as preview:
        preview.build()
        thread = threading.Thread(target=follow)
        thread.start()
        yield preview
        ended.set()
        thread.join()


def test_a_page_follows_its_source_and_stays_in_place(browser: Any, running: Preview) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 600})
    try:
        page.goto(running.server.url)
        page.evaluate("scrollTo({top: 1500, behavior: 'instant'})")
        top = "document.getElementById('below').getBoundingClientRect().top"
        before = page.evaluate(top)
        write(running.root, "Second.\n\n" + "More.\n\n" * 10)
        page.get_by_text("Second.").wait_for(timeout=15000)
        page.wait_for_load_state("load")
        page.wait_for_timeout(200)
        assert abs(page.evaluate(top) - before) < 3
        assert page.evaluate("scrollY") > 1700  # what came above pushed the text down

        write(running.root, "Third, see @fig-none.")
        alert = page.locator("#preview-error")
        alert.wait_for(timeout=15000)
        assert "index.qmd:3" in alert.inner_text()
        assert "Second." in page.locator("main").inner_text()
        assert abs(page.evaluate(top) - before) < 3

        write(running.root, "Fourth.")
        page.get_by_text("Fourth.").wait_for(timeout=15000)
        assert alert.count() == 0
    finally:
        page.close()
