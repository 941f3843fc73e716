"""Results of pages, kept on disk under a key of everything that made them.

The key covers the code, the options that change what running it gives, the
Python and library versions, and the files beside the chapter that its code names in
quotes, or imports. What only changes how a page looks (`echo`, captions, prose) isn't
in it. Beside the key stands which of the files that pages depend on (see `depends`) the
page opened when it ran; its results hold as long as these are the same.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_book.caches import content_hash
from mlsim_book.read.qmd import Cell, Defaults, Document
from mlsim_book.run.depends import Depends
from mlsim_book.run.inline import find_inline
from mlsim_book.run.results import Results

_FORMAT = 5  # raise it when Results or the way pages are run changes
_SETS = 8  # sets of used files that are remembered for a page
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
    """A folder of results: one JSON file for each page and state of the files it uses.

    A second file lists, newest first, the sets of files that runs of the page used. A few
    are kept, since two branches, or two copies of a book, may use different ones.
    """

    folder: Path

    def load(self, key: str, depends: Depends) -> Results | None:
        """Return a page's results; None if none are stored that still hold."""
        for uses in self._uses(key):
            data = self._read(_with(key, depends, uses))
            try:
                cells = tuple(tuple(dict(each) for each in outputs) for outputs in data["cells"])
                return Results(cells, tuple(dict(each) for each in data["values"]))
            except (ValueError, KeyError, TypeError):
                continue  # absent, or spoilt: it is run and written again
        return None

    def store(self, key: str, depends: Depends, results: Results) -> None:
        """Store results, whole or not at all; a cache that can't be written is no error."""
        uses = depends.uses(results.opened)
        before = [each for each in self._uses(key) if each != uses]
        name = _with(key, depends, uses)
        self._write(name, {"cells": results.cells, "values": results.values})
        self._write(key, {"uses": [uses, *before][:_SETS]})

    def _uses(self, key: str) -> list[tuple[str, ...]]:
        try:
            return [tuple(str(each) for each in uses) for uses in self._read(key)["uses"]]
        except (KeyError, TypeError):
            return []

    def _read(self, key: str) -> dict[str, Any]:
        try:
            data = json.loads(self._file(key).read_text(encoding="utf-8"))
            return data if isinstance(data, dict) and data["key"] == key else {}
        except (OSError, ValueError, KeyError):
            return {}

    def _write(self, key: str, data: Mapping[str, Any]) -> None:
        target = self._file(key)
        part: Path | None = None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=target.parent, suffix=".part", delete=False
            ) as file:
                part = Path(file.name)
                json.dump({"key": key, **data}, file)
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
) -> str:
    """Return the key of a page's results, less the files that it opens.

    `environment` comes from `environment_key`; `name` is the chapter's path, since
    code may look at where it runs, and `folder` the one it runs in.
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


def _with(key: str, depends: Depends, uses: Iterable[str]) -> str:
    return content_hash(key, depends.key(uses))


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
