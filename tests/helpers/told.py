"""Tables of what tests try: a line of `tests/fixtures` each, its cells apart by " | "."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"


def rows(name: str) -> list[list[str]]:
    r"""Return the rows of a table, without its remarks; in a cell "\n" is a line's end."""
    lines = (FIXTURES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip().replace("\\n", "\n") for cell in line.split(" | ")]
        for line in lines
        if line.strip() and not line.startswith("#")
    ]
