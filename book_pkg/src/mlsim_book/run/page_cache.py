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
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.caches import content_hash
from mlsim_book.errors import SourceError
from mlsim_book.read.qmd import Cell, Defaults, Document
from mlsim_book.run.inline import find_inline
from mlsim_book.run.opened_files import EVERYTHING
from mlsim_book.run.results import Results

_FORMAT = 6  # raise it when Results or the way pages are run changes
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


_PACKAGE = "/__init__.py"


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


@dataclass(frozen=True)
class Depends:
    """The files at one moment: a hash for each, by its path from the book's folder.

    Attributes
    ----------
    folders
        The named folders: their real paths, with the paths from the book's folder.
    always
        Files that count for every page.
    """

    files: Mapping[str, str]
    folders: Mapping[str, str]
    always: tuple[str, ...] = ()

    def uses(self, opened: Iterable[str]) -> tuple[str, ...]:
        """Return which of these files and folders (with a slash) a page's results come from.

        `opened` are absolute paths as a kernel notes them. A file that was looked for
        but isn't there counts: it may come.
        """
        uses = set(self.always)
        for path in opened:
            if path == EVERYTHING:
                return (EVERYTHING,)
            for name in self._names(path):
                above = [each.as_posix() + "/" for each in PurePosixPath(name).parents]
                inside = tuple(f"{each}/" for each in self.folders.values())
                uses |= {name, *(each for each in above if each.startswith(inside))}
        return tuple(sorted(uses))

    def stranger(self, opened: Iterable[str]) -> str:
        """Return a package that a page took from elsewhere, though a named folder has it; or "".

        Its results would be those of other code, and no edit here would change them.
        """
        own = {
            parts[-2]
            for parts in (name.split("/") for name in self.files if name.endswith(_PACKAGE))
            if "/".join(parts[:-2]) in self.folders.values()
        }
        for path in opened:
            home = Path(path).parent
            top = path.endswith(_PACKAGE) and home.name in own
            if top and not self._names(path) and not (home.parent / "__init__.py").exists():
                return home.as_posix()
        return ""

    def key(self, uses: Iterable[str]) -> str:
        """Return a hash of these files' contents, and of the names in these folders."""
        return content_hash(*(text for each in uses for text in (each, self._state(each))))

    def _state(self, use: str) -> str:
        if use == EVERYTHING:
            return self.key(self.files)
        if not use.endswith("/"):
            return self.files.get(use, "absent")
        inside = (name[len(use) :] for name in self.files if name.startswith(use))
        return content_hash(*sorted({name.split("/")[0] for name in inside}))

    def _names(self, path: str) -> set[str]:
        """Return a path as seen from the book's folder; nothing where it is elsewhere."""
        slash = "/" if path.endswith("/") else ""
        names = set()
        for each in {os.path.normpath(path), os.path.realpath(path)}:
            for real, folder in self.folders.items():
                if each == real or each.startswith(real + os.sep):
                    names.add(folder + Path(each).as_posix()[len(Path(real).as_posix()) :] + slash)
        return {name for name in names if "__pycache__" not in name.split("/")}


def read_depends(root: Path, names: tuple[str, ...]) -> Depends:
    """Read the files that names, folders and patterns stand for.

    Raises
    ------
    SourceError
        A name stands for nothing.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    always: set[str] = set()
    for name in names:
        found = sorted(root.glob(name.rstrip("/")))
        if not found:
            raise SourceError(
                f"`mlsim-book: depends:` names '{name}', which does not exist",
                file="_quarto.yml",
                hint="Give a file, a folder or a pattern, from the book's folder.",
            )
        if set(name) & set("*?["):  # what comes to match it later is noticed, too
            files[name] = content_hash(*(path.relative_to(root).as_posix() for path in found))
            always.add(name)
        for path in found:
            short = path.relative_to(root).as_posix()
            if path.is_dir():
                folders |= {os.path.realpath(path): short, str(path): short}
            else:
                always.add(short)
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file() and "__pycache__" not in file.parts:
                    files[file.relative_to(root).as_posix()] = content_hash(file.read_bytes())
    return Depends(files, folders, tuple(sorted(always)))
