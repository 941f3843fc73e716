"""The cache: what changes a key, and what happens to spoilt entries."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mlsim_book.caches import cache_folder
from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.options import page_defaults
from mlsim_book.read.qmd import read_document
from mlsim_book.run.page_cache import PageCache, depends_key, environment_key, page_key
from mlsim_book.run.results import Results

CELL = "# A\n\nText `{python} x`.\n\n```{python}\n#| echo: false\nx = 1\n```\n"
RESULTS = Results(
    (({"output_type": "stream", "name": "stdout", "text": "hi\n"},), ()), ({"a": "b"},)
)


def key(folder: Path, text: str, environment: str = "e", depends: str = "") -> str:
    (folder / "a.qmd").write_text(text, encoding="utf-8")
    document = read_document(folder / "a.qmd", root=folder, problems=Problems())
    defaults = page_defaults(document.front_matter)
    return page_key(
        document, defaults, name="a.qmd", folder=folder, environment=environment, depends=depends
    )


def test_what_changes_the_key(tmp_path: Path) -> None:
    base = key(tmp_path, CELL)
    assert key(tmp_path, CELL) == base
    same = [
        CELL.replace("echo: false", "echo: true"),
        CELL.replace("Text", "Other words"),
        CELL.replace("# A", "# A\n\nA line more."),
    ]
    assert {key(tmp_path, text) for text in same} == {base}
    other = [
        CELL.replace("x = 1", "x = 2"),
        CELL.replace("{python} x", "{python} x + 1"),
        CELL.replace("echo: false", "eval: false"),
        CELL.replace("echo: false", "fig-width: 3"),
        "---\nfig-format: png\n---\n" + CELL,
        CELL.replace("Text `{python} x`.\n\n", "") + "\nText `{python} x`.\n",
    ]
    keys = {key(tmp_path, text) for text in other}
    keys |= {key(tmp_path, CELL, environment="f"), key(tmp_path, CELL, depends="d")}
    assert len(keys | {base}) == len(other) + 3


def test_files_that_the_code_names(tmp_path: Path) -> None:
    text = "# A\n\n```{python}\nimport helper\nopen('data.csv'), 'no file', \"/etc/passwd\"\n```\n"
    keys = [key(tmp_path, text)]
    for name in ("data.csv", "helper.py", "unrelated.txt"):
        (tmp_path / name).write_text("1")
        keys.append(key(tmp_path, text))
    (tmp_path / "data.csv").write_text("2")
    keys.append(key(tmp_path, text))
    assert len(set(keys)) == 4
    assert keys[2] == keys[3]


def test_depends(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a.py").write_text("1")
    (tmp_path / "x.toml").write_text("1")
    names = ("pkg", "*.toml")
    first = depends_key(tmp_path, names)
    (tmp_path / "pkg" / "__pycache__").mkdir()
    (tmp_path / "pkg" / "__pycache__" / "a.pyc").write_text("x")
    (tmp_path / "other.txt").write_text("x")
    assert depends_key(tmp_path, names) == first
    (tmp_path / "pkg" / "a.py").write_text("2")
    second = depends_key(tmp_path, names)
    (tmp_path / "y.toml").write_text("1")
    assert len({first, second, depends_key(tmp_path, names), depends_key(tmp_path, ())}) == 4
    with pytest.raises(SourceError, match="'nowhere', which does not exist"):
        depends_key(tmp_path, ("nowhere",))


def test_store_and_load(tmp_path: Path) -> None:
    cache = PageCache(tmp_path / "c")
    assert cache.load("k") is None
    cache.store("k", RESULTS)
    assert cache.load("k") == RESULTS
    assert [path.name for path in (tmp_path / "c" / "pages").iterdir()] == ["k.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"key": "k"}', '{"key": "k", "cells": 1}', "null"]
)
def test_a_spoilt_entry_counts_as_absent(tmp_path: Path, text: str) -> None:
    cache = PageCache(tmp_path)
    cache.store("k", RESULTS)
    (tmp_path / "pages" / "k.json").write_text(text)
    assert cache.load("k") is None
    cache.store("k", RESULTS)
    assert cache.load("k") == RESULTS


def test_an_entry_under_a_wrong_name(tmp_path: Path) -> None:
    cache = PageCache(tmp_path)
    cache.store("k", RESULTS)
    data = json.loads((tmp_path / "pages" / "k.json").read_text())
    (tmp_path / "pages" / "other.json").write_text(json.dumps(data))
    assert cache.load("other") is None


def test_a_cache_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    PageCache(tmp_path / "file").store("k", RESULTS)  # says nothing


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "mlsim-book"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "mlsim-book"
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / ".cache" / "mlsim-book"


def test_environment_key_is_stable() -> None:
    assert environment_key() == environment_key()
