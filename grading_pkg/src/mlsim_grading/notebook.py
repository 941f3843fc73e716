"""Read a notebook that a stranger wrote: its cells, and for whom it says that it was made.

Runs inside the walls, where a file that swells when it is read harms nobody.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MOST_CELLS = 5000
LONGEST_NAME = 200  # characters
_LEAST_WORK = 60  # characters of code, without blanks: less may be alike by chance
_MOST_COMPARED = 400_000  # characters of code
_BARE = 5  # words of an answer that is only given: a name, =, a sign, a number
_SPARE = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_NO_WORK = {"import", "from", "%", "!"}  # and what installs the package
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


def fingerprint(cells: Iterable[str], answers: Iterable[str]) -> str:
    r"""Return a text that is the same for notebooks with the same code, "" where there is little.

    Remarks, blanks and the order of cells don't count, nor do bare answers (`answer_x = 3`): what
    is compared is the work, and two students may well come to the same number.

    >>> work = "for n in range(10):\n    total = total + sizes[n] * 2\nfraction = total / 3e9 / 80"
    >>> fingerprint([work], []) == fingerprint(["# mine\n" + work.replace(" * ", "*")], [])
    True
    >>> fingerprint(["answer_a = 3.5"], ["answer_a"])
    ''
    """
    names = set(answers)
    cells = list(cells)
    if sum(map(len, cells)) > _MOST_COMPARED:
        return ""
    work = sorted(filter(None, (_work(cell, names) for cell in cells)))
    if sum(map(len, work)) < _LEAST_WORK:
        return ""
    return hashlib.sha256("\n\n".join(work).encode("utf-8", "replace")).hexdigest()[:32]


def _work(cell: str, answers: set[str]) -> str:
    """Return the code of a cell without remarks, blanks, what it imports and bare answers."""
    lines: list[list[str]] = [[]]
    try:
        for token in tokenize.generate_tokens(io.StringIO(cell).readline):
            if token.type == tokenize.NEWLINE:
                lines.append([])
            elif token.type not in _SPARE and token.string.strip():
                lines[-1].append(token.string)
    except (tokenize.TokenError, SyntaxError, ValueError):
        lines = [line.split("#")[0].split() for line in cell.splitlines()]
    return "\n".join(
        "".join(line)
        for line in lines
        if line and line[0] not in _NO_WORK and not (line[0] in answers and len(line) <= _BARE)
    )


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
