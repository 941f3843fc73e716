"""The search index, made by Pagefind from a variant of each page.

Section ids stand on `<section>`; Pagefind wants them on headings to lead to
sections. The variant has them there, and neither navigation nor formulas.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mlsim_book.assets import Assets
from mlsim_book.errors import ToolError
from mlsim_book.keep import content_hash

_SECTION = re.compile(r'<section id="([^"]+)"([^>]*)>(\s*)<(h[1-6])\b')
_NOISE = re.compile(
    r'<span class="math (?:inline|display)">.*?</span>|<button\b.*?</button>|<svg\b.*?</svg>'
    r'|<span class="(?:header-section-number|screen-reader-only)">.*?</span>',
    re.DOTALL,
)


def search_page(title: str, body: str, lang: str) -> str:
    r"""Return the variant of a page that is indexed (formulas not yet typeset).

    >>> "<h2 id=\"a\"" in search_page("T", '<section id="a" class="x"><h2>A</h2></section>', "en")
    True
    """
    body = _NOISE.sub(" ", body)
    body = _SECTION.sub(r'<section\2>\3<\4 id="\1"', body)
    body = re.sub(r"<pre\b", "<pre data-pagefind-weight='0.5'", body)
    return (
        f'<!DOCTYPE html><html lang="{lang}"><head><title>{title}</title></head><body>'
        f'<main data-pagefind-body><p data-pagefind-meta="title" data-pagefind-weight="10">{title}'
        f"</p>{body}</main></body></html>"
    )


def write_search(pages: Mapping[str, str], out: Path, assets: Assets, kept: Path) -> None:
    """Write the index of the variants (by page) into the site's `pagefind/`.

    An index of the same pages, made before, is copied from the folder `kept`.
    """
    key = content_hash(assets.key, *(part for pair in sorted(pages.items()) for part in pair))
    ready = kept / key
    if not ready.is_dir():
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="mlsim-book-search-") as scratch:
            site = Path(scratch) / "site"
            for href, html in pages.items():
                path = site / href
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(html, encoding="utf-8")
            _run(assets, site, Path(scratch) / "pagefind")
            staged = Path(tempfile.mkdtemp(dir=kept, prefix=".part-"))
            try:
                shutil.copytree(Path(scratch) / "pagefind", staged, dirs_exist_ok=True)
            except OSError:
                shutil.rmtree(staged, ignore_errors=True)
                raise
        _move(staged, ready)
    shutil.copytree(ready, out / "pagefind", dirs_exist_ok=True)


def _move(staged: Path, ready: Path) -> None:
    """Put a finished index in its place, and drop older ones."""
    try:
        staged.rename(ready)
    except OSError:  # another build was faster
        shutil.rmtree(staged, ignore_errors=True)
    old = sorted(
        (each for each in ready.parent.iterdir() if each.is_dir() and each != ready),
        key=lambda each: each.stat().st_mtime,
    )
    for each in old[:-4]:
        shutil.rmtree(each, ignore_errors=True)


def _run(assets: Assets, site: Path, target: Path) -> None:
    command = [
        assets.node, str(assets.module("pagefind/lib/runner/bin.cjs")),
        "--site", str(site), "--output-path", str(target), "--quiet",
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode or not (target / "pagefind.js").is_file():
        raise ToolError(f"Pagefind could not index the book:\n{(run.stderr or run.stdout).strip()}")
    # its ready-made interfaces aren't used: ours is in the theme
    for pattern in ("pagefind-ui*", "pagefind-modular-ui*", "pagefind-highlight*",
                    "pagefind-component-ui*"):  # fmt: skip
        for path in target.glob(pattern):
            path.unlink()
