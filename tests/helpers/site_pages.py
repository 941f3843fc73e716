"""Build a small book once for many tests, and look into its pages by selectors."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from mlsim_book.build import build
from mlsim_book.render import assets

BOOKS = Path(__file__).parents[1] / "fixtures" / "ground"


def words(node: LexborNode | None) -> str:
    """Return an element's text with single spaces; "" for none."""
    return " ".join(node.text().split()) if node is not None else ""


class Page:
    """A page of a built site."""

    def __init__(self, path: Path) -> None:
        self.html = path.read_text(encoding="utf-8")
        self.tree = LexborHTMLParser(self.html)

    def all(self, selector: str) -> list[LexborNode]:
        """Return the elements that a selector names, in the order of the page."""
        return list(self.tree.css(selector))

    def one(self, selector: str) -> LexborNode:
        """Return the one element that a selector names."""
        (found,) = self.all(selector)
        return found

    def text(self, selector: str) -> str:
        """Return the text of the one element that a selector names."""
        return words(self.one(selector))

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that a selector names."""
        return [words(each) for each in self.all(selector)]

    def links(self, selector: str = "main a") -> list[tuple[str, str]]:
        """Return text and target of links."""
        return [(words(each), each.attributes.get("href") or "") for each in self.all(selector)]


class Site:
    """A built book: its pages by name, its files, and what the build said."""

    def __init__(self, folder: Path, said: list[str]) -> None:
        self.folder, self.said = folder, said
        self.pages = {
            path.relative_to(folder).as_posix(): Page(path) for path in folder.rglob("*.html")
        }

    def __getitem__(self, name: str) -> Page:
        return self.pages[name]


def built(folder: Path, book: str | Mapping[str, str]) -> Site:
    """Build a book as leniently as Quarto, with a cache of its own.

    It is one of `fixtures/ground` by its name, or given by its files.
    """
    theirs = assets.load_assets().folder
    if isinstance(book, str):
        shutil.copytree(BOOKS / book, folder / "book")
    else:
        for name, text in book.items():
            path = folder / "book" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        link = folder / "cache" / "mlsim-book" / "assets" / theirs.name
        link.parent.mkdir(parents=True)
        link.symlink_to(theirs)
        return Site(build(folder / "book", lenient=True, progress=said.append), said)
