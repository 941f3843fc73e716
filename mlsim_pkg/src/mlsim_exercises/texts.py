"""The texts of exercises that readers see, for whoever checks how a book is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlsim_exercises.tables import Table, read_toml


@dataclass(frozen=True)
class ShownText:
    """A text of a file that readers see: Markdown, with `{...}` fields if computed."""

    text: str
    line: int  # of its key
    computed: bool = False


def read_texts(path: str | Path) -> tuple[ShownText, ...]:
    """Return the texts of a file that readers see, but for the choices, in order."""
    top = read_toml(path)
    found: list[ShownText] = []

    def take(table: Table, *keys: str, computed: bool = False) -> None:
        for key in keys:
            given = table.data.get(key, [])
            found.extend(
                ShownText(text, table.line_of(key) or 1, computed=computed)
                for text in (given if isinstance(given, list) else [given])
                if isinstance(text, str)
            )

    for _, exercise in top.items("exercise"):
        take(exercise, "title")
        take(exercise, "prompt", "hints", "solution", computed=True)
        for _, wrong in exercise.items("wrong"):
            take(wrong, "because", computed=True)
        for _, part in exercise.items("rubric"):
            take(part, "name", "full", "half")
    for _, check in top.items("selfcheck"):
        take(check, "question", "because")
    return tuple(found)
