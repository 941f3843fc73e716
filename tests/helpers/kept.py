"""Texts and small books that tests work on, kept as the files that they are."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

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


def cases(name: str) -> list[tuple[Any, ...]]:
    """Return the table of cases of a file of `tests/fixtures/cases`."""
    read = tomllib.loads((FIXTURES / "cases" / name).read_text(encoding="utf-8"))
    return [tuple(each) for each in read["cases"]]
