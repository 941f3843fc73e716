"""Lets nbval compare the form of measured outputs: words and units, not numbers.

A notebook keeps `#` for each number of such an output. Plain nbval passes over these cells.
"""

from __future__ import annotations

import inspect
from typing import Any

from mlsim_book.read import qmd

_HOOK = '''

def _said(outputs):
    """What outputs say in plain text; a figure says nothing."""
    for each in outputs:
        data = each.get("data", {})
        if not any(kind.startswith("image/") for kind in data):
            yield form_of(each.get("text") or data.get("text/plain", ""))


def pytest_collection_modifyitems(items):
    for item in items:
        if "measured" in getattr(getattr(item, "cell", None), "metadata", {}).get("tags", []):
            item.options["check"] = True
            item.compare_outputs = lambda test, ref, item=item: _compare(item, test, ref)


def _compare(item, test, ref):
    found, kept = ("".join(_said(each)) for each in (test, ref))
    item.comparison_traceback = [f"another form: {found!r}, and in the notebook {kept!r}"]
    return found == kept
'''


def as_conftest() -> str:
    """Return a conftest that needs neither the builder nor this file."""
    source = inspect.getsource(qmd)
    constants = source[source.index("_NUMBER = ") : source.index("def is_measured")]
    parts: list[Any] = ["import re\n\n", constants, inspect.getsource(qmd.form_of), _HOOK]
    return "".join(parts)
