"""What a page claims at some expense: sweeps, and answers that nothing else on the page needs.

`tests/book/claims/llm_serving.py` holds the claims of `tutorials/llm_serving.qmd`: plain asserts
at top level, with the imports they need. They are run after the page, in its namespace, each
statement on its own, so that all that fail are listed. A claim that costs one line and no time
stays on the page, in a hidden cell before its sentence.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "book" / "claims"


def claims_of(source: str) -> Path:
    """Return the file with the claims of a page; there may be none."""
    return FOLDER / f"{Path(source).stem}.py"


def broken(path: Path, names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the claims of a file that do not hold, each with its place."""
    text = path.read_text(encoding="utf-8")
    known, tree = dict(names), ast.parse(text, path.name)
    if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        yield f"{path.name}: asserts nothing"
    for statement in tree.body:
        try:
            exec(compile(ast.Module([statement], []), path.name, "exec"), known)
        except Exception as error:  # noqa: BLE001 - a claim may raise anything
            frames = traceback.extract_tb(error.__traceback__)
            line = max(each.lineno or 0 for each in frames if each.filename == path.name)
            found = "" if type(error) is AssertionError else f"{type(error).__name__}: "
            yield f"{path.name}:{line}: {found}{str(error) or text.splitlines()[line - 1].strip()}"
