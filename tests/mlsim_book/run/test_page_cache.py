"""The cache: what changes a key, and what happens to spoilt entries."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mlsim_book.caches import cache_folder
from mlsim_book.errors import Problems
from mlsim_book.read.qmd import page_defaults, read_document
from mlsim_book.run.page_cache import Depends, PageCache, environment_key, named_files, page_key
from mlsim_book.run.results import Results

CELL = "# A\n\nText `{python} x`.\n\n```{python}\n#| echo: false\nx = 1\n```\n"
RESULTS = Results(
    (({"output_type": "stream", "name": "stdout", "text": "hi\n"},), ()), ({"a": "b"},)
)


NOTHING = Depends({}, {})


def key(folder: Path, text: str, environment: str = "e", name: str = "a.qmd") -> str:
    (folder / "a.qmd").write_text(text, encoding="utf-8")
    document = read_document(folder / "a.qmd", root=folder, problems=Problems())
    defaults = page_defaults(document.front_matter)
    return page_key(document, defaults, name=name, folder=folder, environment=environment)


def test_what_changes_the_key(tmp_path: Path) -> None:
    """All that changes what running the page gives does, and each in its own way."""
    base = key(tmp_path, CELL)
    assert environment_key() == environment_key()
    same = [
        CELL,
        CELL.replace("echo: false", "echo: true"),
        CELL.replace("Text", "Other words"),
        CELL.replace("# A", "# A\n\nA line more."),
        f"---\ncode-fold: true\n---\n{CELL}",
    ]
    assert {key(tmp_path, text) for text in same} == {base}
    options = (
        "eval: false", "error: true", "fig-width: 3", "fig-height: 3", "fig-dpi: 72", "fig-format: png",
    )  # fmt: skip
    other = [CELL.replace("echo: false", each) for each in options]
    of_the_page = (*options, "mlsim-book: {figure-theme: true}", "mlsim-book: {figure-data: true}")
    other += [f"---\n{each}\n---\n{CELL}" for each in of_the_page]
    other += [
        CELL.replace("x = 1", "x = 2"),
        CELL.replace("{python} x", "{python} x + 1"),
        CELL.replace("Text `{python} x`.\n\n", "") + "\nText `{python} x`.\n",
    ]
    keys = [key(tmp_path, text) for text in other]
    keys += [key(tmp_path, CELL, environment="f"), key(tmp_path, CELL, name="b.qmd"), base]
    assert len(set(keys)) == len(keys) == 20


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
    (tmp_path / "sub").mkdir()  # what lies outside of the page's folder is no file of it
    for place, names in ((tmp_path, 2), (tmp_path / "sub", 0)):
        (place / "a.qmd").write_text(
            text.replace("data.csv", "../data.csv" if not names else "data.csv")
        )
        document = read_document(place / "a.qmd", root=place, problems=Problems())
        assert len(named_files(document, place)) == names


def test_results_hold_while_the_files_they_use_are_the_same(tmp_path: Path) -> None:
    cache = PageCache(tmp_path)
    before = Depends({"p/a.py": "1", "p/b.py": "1"}, {"/p": "p"})
    cache.store("k", before, replace(RESULTS, opened=("/p/a.py",)))
    assert cache.load("k", replace(before, files={"p/a.py": "1", "p/b.py": "2"})) == RESULTS
    edited = replace(before, files={"p/a.py": "2", "p/b.py": "1"})
    assert cache.load("k", edited) is None
    other = Results(((), ()), ({"a": "c"},), opened=("/p/a.py", "/p/b.py"))
    cache.store("k", edited, other)
    assert cache.load("k", edited) == other
    assert cache.load("k", before) == RESULTS  # as on going back to the branch before


def test_eight_sets_of_files_are_remembered(tmp_path: Path) -> None:
    """Ten runs used other files each; the results of the last eight are found, of the first two not."""
    cache = PageCache(tmp_path)
    everything = Depends({f"p/{n}.py": "1" for n in range(10)}, {"/p": "p"})
    for number in range(10):
        cache.store("k", everything, replace(RESULTS, opened=(f"/p/{number}.py",)))
    kept = []
    for number in range(10):  # all others are edited
        files = {name: "1" if name == f"p/{number}.py" else "2" for name in everything.files}
        kept.append(cache.load("k", replace(everything, files=files)) == RESULTS)
    assert kept == [False] * 2 + [True] * 8


def test_what_is_stored_is_loaded_and_a_spoilt_entry_counts_as_absent(tmp_path: Path) -> None:
    cache = PageCache(tmp_path / "c")
    assert cache.load("k", NOTHING) is None
    cache.store("k", NOTHING, RESULTS)
    assert cache.load("k", NOTHING) == RESULTS
    assert cache.load("other", NOTHING) is None
    files = sorted((tmp_path / "c" / "pages").iterdir())
    assert len(files) == 2
    spoilt = ("", "{", "[]", '{"key": "k"}', '{"key": "k", "uses": 1}', '{"cells": 1}', "null")
    for text in spoilt:
        for file in files:
            whole = file.read_text()
            file.write_text(text)
            assert cache.load("k", NOTHING) is None, text
            file.write_text(whole)
            assert cache.load("k", NOTHING) == RESULTS
        for file in files:
            file.write_text(text)
        cache.store("k", NOTHING, RESULTS)
        assert cache.load("k", NOTHING) == RESULTS, text
    # under a wrong name
    pages = tmp_path / "c" / "pages"
    (pages / "other.json").write_text((pages / "k.json").read_text())
    assert cache.load("other", NOTHING) is None
    (tmp_path / "file").write_text("")
    PageCache(tmp_path / "file").store("k", NOTHING, RESULTS)  # can't be written: says nothing


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "mlsim-book"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "mlsim-book"
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / ".cache" / "mlsim-book"
