"""Texts and small books that tests work on, kept as the files that they are."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError

FIXTURES = Path(__file__).parents[1] / "fixtures"


def text(name: str) -> str:
    """Return a text of `tests/fixtures/texts`."""
    return (FIXTURES / "texts" / name).read_text(encoding="utf-8")


def blocks(name: str) -> dict[str, list[str]]:
    """Return the lines of each block of a text, under the name that stands above it in brackets."""
    found = [block.splitlines() for block in text(name).strip().split("\n\n")]
    return {first.strip("[]"): lines for first, *lines in found}


def book(name: str, folder: Path) -> Path:
    """Copy a small book of `tests/fixtures/books` into a folder; return its root."""
    return Path(shutil.copytree(FIXTURES / "books" / name, folder, dirs_exist_ok=True))


def script(name: str) -> str:
    """Return JavaScript of `tests/fixtures/scripts`, for a page to run."""
    return (FIXTURES / "scripts" / name).read_text(encoding="utf-8").strip()


def cases(name: str, part: str = "cases") -> list[tuple[Any, ...]]:
    """Return the table of cases of a file of `tests/fixtures/cases`, or a part of it."""
    read = tomllib.loads((FIXTURES / "cases" / name).read_text(encoding="utf-8"))
    return [tuple(each) for each in read[part]]


def untold(ask: Callable[..., object], name: str) -> list[str]:
    """Return which cases of a table are not refused as they say.

    A case is what is asked, the line that the error names, and parts of its words, with " … " between.
    """
    wrong = []
    for *given, line, words in cases(name):
        try:
            ask(*given)
        except SourceError as error:
            if error.line != line or not all(each in str(error) for each in words.split(" … ")):
                wrong.append(f"{given}: not {words!r} at {line}, but {error}")
        else:
            wrong.append(f"{given} is taken")
    return wrong
