"""The texts of exercises that readers see, for whoever checks how a book is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_exercises.data import read_toml


@dataclass(frozen=True)
class ShownText:
    """A text of a file that readers see: Markdown, with `{...}` fields if computed."""

    text: str
    line: int  # of its key
    computed: bool = False


def read_texts(path: str | Path) -> tuple[ShownText, ...]:
    """Return the texts of a file that readers see, but for the choices, in order."""
    data, where = read_toml(path)
    found: list[ShownText] = []

    def take(
        item: Mapping[str, Any], table: tuple[str | int, ...], *keys: str, computed: bool = False
    ) -> None:
        for key in keys:
            given = item.get(key, [])
            found.extend(
                ShownText(text, where.line(*table, key) or 1, computed=computed)
                for text in (given if isinstance(given, list) else [given])
                if isinstance(text, str)
            )

    for index, item in enumerate(data.get("exercise", [])):
        table = ("exercise", index)
        take(item, table, "title")
        take(item, table, "prompt", "hints", "solution", computed=True)
        for number, each in enumerate(item.get("wrong", [])):
            take(each, (*table, "wrong", number), "because", computed=True)
        for number, each in enumerate(item.get("rubric", [])):
            take(each, (*table, "rubric", number), "name", "full", "half")
    for index, item in enumerate(data.get("selfcheck", [])):
        take(item, ("selfcheck", index), "question", "because")
    return tuple(found)
