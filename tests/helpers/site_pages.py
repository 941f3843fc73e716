"""Build a small book once for many tests, and look into its pages by selectors."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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


def _cells(page: Page, section: str) -> list[list[object]]:
    """Return the code and the outputs of a section's cells, but for those with figures."""
    return [
        [
            "".join(each.text() for each in cell.css(".cell-code code")),
            [each.text().strip() for each in cell.css(".cell-output")],
        ]
        for cell in page.all(f"{section} .cell")
        if "quarto-float" not in (cell.attributes["class"] or "")
    ]


def _values(page: Page, selector: str) -> list[str]:
    """Return an attribute, as `img @src`, of all elements: "none" where there isn't one."""
    elements, _, name = selector.rpartition(" @")
    return [each.attributes.get(name, "none") or "" for each in page.all(elements)]


def _text(page: Page, selector: str) -> str:
    return page.html if selector == "html" else " ".join(page.texts(selector))


# What a table of `fixtures/ground` may say of a page, by selectors.
SHOWN: dict[str, Callable[[Page, str, Any], object]] = {
    "texts": lambda page, selector, _: page.texts(selector),
    "source": lambda page, selector, _: [each.text() for each in page.all(selector)],
    "links": lambda page, selector, _: [list(each) for each in page.links(selector)],
    "values": lambda page, selector, _: _values(page, selector),
    "cells": lambda page, selector, _: _cells(page, selector),
    "count": lambda page, selector, _: len(page.all(selector)),
    "says": lambda page, selector, all_: [each for each in all_ if each in _text(page, selector)],
    "hides": lambda page, selector, all_: [
        each for each in all_ if each not in _text(page, selector)
    ],
}


def otherwise(site: Site, book: str) -> list[str]:
    """Return what a site shows otherwise than the book's table in `fixtures/ground` says."""
    rules = tomllib.loads((BOOKS / f"{book}.toml").read_text("utf-8"))["rule"]
    wrong = []
    for rule in rules:
        page = site[rule["page"]]
        for kind in rule.keys() & SHOWN.keys():
            for selector, wanted in rule[kind].items():
                found = SHOWN[kind](page, selector, wanted)
                if found != wanted:
                    wrong.append(f"{rule['name']}: {selector}: {found}, not {wanted}")
    return wrong
