"""Tables of faults in a data file: which lines of a good file are changed, and what is said of it.

They lie in `fixtures/faults`, a case on a line: `change` says what stands on a line instead (nothing
takes it out), `without` names the first and the last line of a part that is left out, `at` is the line
that the error names, and `says` is a part of its message.
"""

from __future__ import annotations

import re
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, MlsimError

FOLDER = Path(__file__).parents[1] / "fixtures" / "faults"


def good(name: str) -> str:
    """Return the text of a good file."""
    return (FOLDER / name).read_text("utf-8")


def changed(lines: Sequence[str], case: Mapping[str, Any]) -> str:
    """Return the text of a good file with the fault of a case."""
    found = dict(enumerate(lines, 1))
    first, last = case.get("without", (1, 0))
    for line in range(first, last + 1):
        del found[line]
    for number, text in case.get("change", {}).items():
        found[int(number)] = text
        if not text:
            del found[int(number)]
    return "\n".join(found[line] for line in sorted(found)) + "\n"


def unnoticed(load: Callable[[Path], object], name: str) -> list[str]:
    """Return which faults of a good file are not refused as they should be."""
    lines, wrong = good(name).splitlines(), []
    table = (FOLDER / name).with_suffix(".faults.toml")
    cases = tomllib.loads(table.read_text("utf-8"))["cases"]
    assert cases
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        for case in cases:
            path.write_text(changed(lines, case), "utf-8")
            try:
                load(path)
            except DataFileError as error:
                named = str(error).startswith(f"{path}:{case['at']}: ")
                wrong += [] if named and case["says"] in str(error) else [f"{case}: {error}"]
            else:
                wrong.append(f"{case} is read")
    return wrong


def overlooked(
    load: Callable[[Path], object], text: str, table: str, suffix: str = "toml"
) -> list[str]:
    """Return which edits of a good text are not refused as they should be.

    They lie in `fixtures/cases`: what stands there, what is put in its place once, and a pattern of
    what is said. What a DataFileError says begins with the file and the line.
    """
    cases = tomllib.loads((FOLDER.parent / "cases" / f"{table}.toml").read_text("utf-8"))["cases"]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"mine.{suffix}"
        for old, new, says in cases:
            assert text.count(old) >= 1, old
            path.write_text(text.replace(old, new, 1), "utf-8")
            try:
                load(path)
            except MlsimError as error:
                named = re.match(rf"{re.escape(str(path))}:\d+: ", str(error))
                named = named or not isinstance(error, DataFileError)
                wrong += [] if named and re.search(says, str(error)) else [f"{new!r}: {error}"]
            else:
                wrong.append(f"{new!r} is read")
    return wrong
