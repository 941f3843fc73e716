"""Read a notebook that a stranger wrote: its cells, and for whom it says that it was made.

Runs inside the walls, where a file that swells when it is read harms nobody.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MOST_CELLS = 5000
LONGEST_NAME = 200  # characters
_MOST_NESTED = 1_000_000  # lists and objects; many more take memory and time, and hold nothing


@dataclass(frozen=True)
class Notebook:
    """The sources of a notebook's code cells; `trouble` says why there are none.

    `student` is what its metadata say, which its owner can change.
    """

    cells: tuple[str, ...] = ()
    student: str = ""
    trouble: str = ""


def read_notebook(data: bytes) -> Notebook:
    r"""Read a notebook; what is wrong with it stands in the result and is not raised.

    >>> read_notebook(b'{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "x"]}]}').cells
    ('x = 1\nx',)
    >>> read_notebook(b"<html>").trouble
    'the file is no notebook that can be read'
    """
    if data.count(b"[") + data.count(b"{") > _MOST_NESTED:
        return Notebook(trouble="the file is no notebook that can be read: too many brackets")
    try:
        read = json.loads(data)
    except (ValueError, RecursionError, MemoryError):
        return Notebook(trouble="the file is no notebook that can be read")
    try:
        cells = tuple(_code(read))
    except (TypeError, KeyError, AttributeError, RecursionError, MemoryError):
        return Notebook(trouble="the file is JSON, but no notebook")
    if len(cells) > MOST_CELLS:
        return Notebook(trouble=f"the notebook has more than {MOST_CELLS:,} code cells")
    student = ""
    with contextlib.suppress(KeyError, TypeError, AttributeError):
        told = read["metadata"]["assignment"]["student"]
        student = told if isinstance(told, str) and len(told) <= LONGEST_NAME else ""
    return Notebook(cells, student)


def _code(data: dict[str, Any]) -> Iterable[str]:
    """Yield the sources of the code cells, of the older format, too."""
    if "cells" not in data and "worksheets" not in data:
        raise KeyError("cells")
    sheets = [data] if "cells" in data else data["worksheets"]
    for cell in (cell for sheet in sheets for cell in sheet["cells"]):
        if cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            text = source if isinstance(source, str) else "".join(source)
            # half of a pair of UTF-16, which no program can compile or write
            yield text.encode("utf-8", "replace").decode()
