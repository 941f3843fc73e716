"""Outputs that a machine measured: marked in the source, and other at each run.

A cell with `#| classes: measured` prints what the machine gave. A notebook keeps the form
of that, with a sign for each number, and a comparison of two builds passes over it.
"""

from __future__ import annotations

import re

from mlsim_book.read.document import Cell

MEASURED = "measured"
# A number that stands alone: the 3 of "L3" and the 32 of "FP32" are names. A prefix goes with
# it, since one machine takes 900 us and the next one 1.1 ms.
_NUMBER = re.compile(
    r"(?<![A-Za-z_\d.,])[-−+]?\d(?:[\d,.]*\d)?(?:[eE][-+]?\d+)?"
    r"(?:(?P<gap> ?)[kKMGTPmµun]i?(?=(?:s|B|Hz|W|J|FLOP)(?![A-Za-z])))?"
)
_GAP = re.compile(r"[ \t]+")
_RULE = re.compile(r"[-─=]{3,}")


def is_measured(cell: Cell) -> bool:
    """Say whether a cell is marked as measured."""
    return MEASURED in {name.lstrip(".") for name in str(cell.options.get("classes") or "").split()}


def form_of(text: str) -> str:
    """Return a text with `#` for each number and its prefix, and one space for several.

    >>> form_of("triad   12.1 GB/s  ± 3 %, FP32 in L3"), form_of("900 us") == form_of("1.1 ms")
    ('triad # B/s ± # %, FP32 in L3', True)
    """
    lines = []
    for line in text.split("\n"):
        masked = _NUMBER.sub(lambda found: f"#{found['gap'] or ''}", line)
        lines.append(_GAP.sub(" ", _RULE.sub("---", masked)).strip())
    return "\n".join(lines)
