"""Results of pages, kept on disk under a key of everything that made them.

The key covers the code, the options that change what running it gives, the
Python and library versions, and the files that `_quarto.yml` says the pages
depend on (a package under development, data beside a chapter):

    mlsim-book:
      depends: [my_package/src, "chapters/*.toml"]

Files beside the chapter that its code names in quotes, or imports, count by
themselves. What only changes how a page looks (`echo`, captions, prose) isn't in it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.read.document import Cell, Document
from mlsim_book.read.options import Defaults
from mlsim_book.run.inline import find_inline
from mlsim_book.run.results import Results

_FORMAT = 3  # raise it when Results or the way pages are run changes
_LIBRARIES = (
    "ipykernel", "ipython", "matplotlib", "matplotlib-inline", "nbclient", "numpy", "pandas",
    "pint", "sympy",
)  # fmt: skip
_QUOTED = re.compile(r"""(["'])([^"'\n]{1,200})\1""")
_IMPORT = re.compile(r"^\s*(?:import|from)\s+([A-Za-z_][\w.]*)", re.MULTILINE)
_OPTIONS = ("eval", "error", "fig-width", "fig-height", "fig-dpi", "fig-format")
_FIGURES = ("figure-theme", "figure-data")  # settings of the page


@dataclass(frozen=True)
class PageCache:
    """A folder of results, one JSON file a key."""

    folder: Path

    def load(self, key: str) -> Results | None:
        """Return what is kept under a key; None if nothing readable is."""
        try:
            data = json.loads(self._file(key).read_text(encoding="utf-8"))
            if data["key"] != key:
                return None
            cells = tuple(tuple(dict(each) for each in outputs) for outputs in data["cells"])
            return Results(cells, tuple(dict(each) for each in data["values"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # absent, or spoilt: it is run and written again

    def store(self, key: str, results: Results) -> None:
        """Keep results, whole or not at all; a cache that can't be written is no error."""
        data = {"key": key, "cells": results.cells, "values": results.values}
        target = self._file(key)
        part: Path | None = None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=target.parent, suffix=".part", delete=False
            ) as file:
                part = Path(file.name)
                json.dump(data, file)
            part.replace(target)
        except OSError:
            if part is not None:  # on a full disk every byte counts
                part.unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self.folder / "pages" / f"{key}.json"


def page_key(
    document: Document,
    defaults: Defaults,
    *,
    name: str,
    folder: Path,
    environment: str,
    depends: str = "",
) -> str:
    """Return the key of a page's results.

    `environment` and `depends` come from `environment_key` and `depends_key`;
    `name` is the chapter's path, since code may look at where it runs, and
    `folder` the one it runs in.
    """
    blocks: list[Any] = []
    for block in document.blocks:
        if isinstance(block, Cell):
            options = {each: block.options[each] for each in _OPTIONS if each in block.options}
            blocks.append(["cell", block.source, options])
        else:
            blocks += [["inline", each.expression] for each in find_inline(block)]
    page = [
        name,
        environment,
        depends,
        {each: defaults.values.get(each) for each in _OPTIONS + _FIGURES},
    ]
    code = json.dumps([page, blocks], sort_keys=True, default=str).encode()
    return _digest([code, *(path.read_bytes() for path in named_files(document, folder))])


def named_files(document: Document, folder: Path) -> list[Path]:
    """Return the files below a folder that a page's code names in quotes, or imports."""
    found: dict[Path, None] = {}
    for cell in document.cells:
        names = [match.group(2) for match in _QUOTED.finditer(cell.source)]
        names += [f"{name.replace('.', '/')}.py" for name in _IMPORT.findall(cell.source)]
        for name in names:
            path = folder / name
            try:
                if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                    found[path] = None
            except (OSError, ValueError):
                continue  # a text that can't be a file name
    return list(found)


def environment_key() -> str:
    """Return a key of the Python and the libraries that pages run with."""
    versions = {name: _version(name) for name in _LIBRARIES}
    system = [_FORMAT, platform.python_version(), sys.platform, platform.machine()]
    return _digest([json.dumps([system, versions]).encode()])


def depends_names(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what `mlsim-book: depends:` names.

    >>> depends_names({"mlsim-book": {"depends": "src"}}), depends_names({})
    (('src',), ())
    """
    settings = metadata.get("mlsim-book")
    names = settings.get("depends") if isinstance(settings, Mapping) else None
    if isinstance(names, str):
        return (names,)
    return tuple(str(name) for name in names or ())


def depends_key(root: Path, names: tuple[str, ...]) -> str:
    """Return a key of the files that names, folders and patterns stand for."""
    return _digest(_contents(root, names))


def _contents(root: Path, names: Iterable[str]) -> Iterator[bytes]:
    for name in names:
        found = sorted(root.glob(name.rstrip("/")))
        if not found:
            raise SourceError(
                f"`mlsim-book: depends:` names '{name}', which does not exist",
                file="_quarto.yml",
                hint="Give a file, a folder or a pattern, from the book's folder.",
            )
        for path in found:
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file() and "__pycache__" not in file.parts:
                    yield file.relative_to(root).as_posix().encode()
                    yield file.read_bytes()


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
