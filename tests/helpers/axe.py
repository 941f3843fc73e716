"""axe-core, the accessibility checker: fetched from npm once, pinned by a lock file."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from exercise_book import PHONE, WIDE
from kept import script

from mlsim_book.caches import cache_folder, content_hash
from mlsim_book.errors import ToolError
from mlsim_book.render.assets import _npm_ci, find_node

FOLDER = Path(__file__).parents[1] / "site" / "node"

# A window of a new size is told to the page with its next frame: boxes that then scroll
# get their tab stop there, so what looks at a page waits until that frame is over.
NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@functools.cache
def axe_script() -> str:
    """Return axe-core's source; skips the test where it isn't there and can't be fetched.

    `$AXE` may name the file. Else it comes from the user's cache, where the first
    run puts it, as builds do with the site's own packages.
    """
    given = os.environ.get("AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    lock = (FOLDER / "package-lock.json").read_bytes()
    folder = cache_folder() / "test-tools" / content_hash(lock)[:16]
    if not folder.is_dir():
        try:
            _fetch(folder)
        except (ToolError, OSError) as error:
            pytest.skip(f"axe-core is not there and can't be fetched from npm: {error}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Any) -> list[str]:
    """Return what axe-core finds on a page, wide and light and on a phone in the dark."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_script())
    found = []
    for scheme, size in (("light", WIDE), ("dark", PHONE)):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"document.documentElement.dataset.bsTheme === '{scheme}'")
        page.evaluate(NEXT_FRAME)
        page.evaluate("scrollTo(0, 0)")  # what lies under the bar at the top isn't pressed there
        found += [f"{scheme}: {each}" for each in page.evaluate(script("axe_violations.js"))]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"wider than {size['width']} px")
    return found


def _fetch(folder: Path) -> None:
    """Install into a folder beside, then rename: runs at the same time don't see half of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".installing-"))
    try:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(FOLDER / name, scratch / name)
        _npm_ci(find_node(), scratch)
        if not folder.is_dir():
            scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
