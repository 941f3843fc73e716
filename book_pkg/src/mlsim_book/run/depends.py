"""The files that pages depend on, and which of them one page's results come from.

`_quarto.yml` says where these files are:

    mlsim-book:
      depends: [my_package/src, data/wind.parquet]

A file of a named folder counts for a page if the page's code opened it (see
`opened_files`); if the code listed a folder or opened a file in it, the names of all
that is in that folder count as well, so that a new file is noticed. A file that is named
by itself, or by a pattern, counts for every page.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.caches import content_hash
from mlsim_book.errors import SourceError
from mlsim_book.run.opened_files import EVERYTHING

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
