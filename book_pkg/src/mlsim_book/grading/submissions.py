"""What students handed in: notebooks, who they are from, and what is wrong with them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.grading.assignment import file_name

LARGEST = 500_000_000  # bytes of a notebook that is still read


@dataclass(frozen=True)
class Submission:
    """A notebook that was handed in.

    `cells` are the sources of its code cells; `trouble` says why there are none.
    `student` is "" where nothing says whose it is.
    """

    path: Path
    student: str
    cells: tuple[str, ...]
    trouble: str = ""
    notes: tuple[str, ...] = ()


def find_submissions(folder: Path) -> list[Path]:
    """Return the notebooks of a folder and its subfolders, in order of their names.

    Raises
    ------
    SourceError
        There is no such folder, or no notebook in it.
    """
    if not folder.is_dir():
        raise SourceError(
            "there is no such folder of submissions",
            file=folder,
            hint="Put the notebooks that students handed in there, or name it: --submissions DIR.",
        )
    found = sorted(
        path
        for path in folder.rglob("*.ipynb")
        if path.is_file() and not any(part.startswith(".") for part in path.parts[-3:])
    )
    if not found:
        raise SourceError("there is no notebook (.ipynb) in it", file=folder)
    return found


def read_submission(path: Path, students: Iterable[str]) -> Submission:
    """Read one notebook; what is wrong with it stands in the result and is not raised.

    Parameters
    ----------
    students
        Names that the assignment knows; with none, the file's name is the student.
    """
    trouble, data = "", {}
    try:
        if path.stat().st_size > LARGEST:
            trouble = f"the file is larger than {LARGEST // 1_000_000} MB"
        else:
            data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        trouble = f"the file is no notebook that can be read ({type(error).__name__})"
    cells: tuple[str, ...] = ()
    if not trouble:
        try:
            cells = tuple(_code(data))
        except (TypeError, KeyError, AttributeError):
            trouble = "the file is JSON, but no notebook"
    student, notes = _whose(path, data, list(students))
    return Submission(path, student, cells, trouble, notes)


def _code(data: dict[str, Any]) -> Iterable[str]:
    """Yield the sources of the code cells, of the older format, too."""
    if "cells" not in data and "worksheets" not in data:
        raise KeyError("cells")
    sheets = [data] if "cells" in data else data["worksheets"]
    for cell in (cell for sheet in sheets for cell in sheet["cells"]):
        if cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            yield source if isinstance(source, str) else "".join(source)


def _whose(path: Path, data: Any, students: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the student, by the file's name before the notebook's own word."""
    inside = ""
    with contextlib.suppress(KeyError, TypeError):
        inside = str(data["metadata"]["assignment"]["student"])
    if not students:
        return path.stem, ()
    # course systems put words before and after a name: the longest that fits is meant
    whole = "_" + file_name(path.stem).casefold() + "_"
    known = {file_name(each).casefold(): each for each in students}
    by_file = [
        known[key]
        for key in sorted(known, key=len, reverse=True)
        if any(f"{left}{key}{right}" in whole for left in "_-." for right in "_-.")
    ]
    if path.parent.name and file_name(path.parent.name).casefold() in known:
        by_file.append(known[file_name(path.parent.name).casefold()])
    if by_file:
        if inside and inside != by_file[0]:
            return by_file[0], (f"the notebook was made for {inside}",)
        return by_file[0], ()
    if inside in students:
        return inside, ("known by the notebook alone, not by the file's name",)
    return "", ("no student of the list is named by the file or in it",)
