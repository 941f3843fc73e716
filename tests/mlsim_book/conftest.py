"""Helpers shared by the tests of the book builder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

MakeBook = Callable[..., Path]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's cache out of the tests, and the tests out of the user's cache."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.fixture
def make_book(tmp_path: Path) -> MakeBook:
    """Return a function that writes a book: its extra YAML, and its files by name."""

    def make(extra: str = "", **files: str) -> Path:
        named = {name.replace("__", "/").replace("_qmd", ".qmd"): t for name, t in files.items()}
        chapters = [name for name in named if name.endswith(".qmd") and "/_" not in f"/{name}"]
        lines = "".join(f"    - {name}\n" for name in chapters)
        yaml = f"project:\n  type: book\nbook:\n  title: T\n  chapters:\n{lines}{extra}"
        for name, text in {"_quarto.yml": yaml, **named}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return make
