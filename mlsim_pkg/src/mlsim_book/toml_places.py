"""Where the tables and keys of a TOML file stand: Python's reader doesn't tell the lines."""

from __future__ import annotations

import re

from mlsim_book.errors import SourceError


class Places:
    r"""The lines of the tables and keys of a TOML file.

    >>> places = Places('[[tea]]\nheat = 80\n\n[tea.given]\ncup = 1\n', "tea.toml")
    >>> places.line("tea", 0, "heat"), places.line("tea", 0, "given", "cup")
    (2, 5)
    """

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._lines: dict[tuple[str | int, ...], int] = {}
        counts: dict[tuple[str | int, ...], int] = {}
        table: tuple[str | int, ...] = ()
        quote: str | None = None
        for number, line in enumerate(text.splitlines(), start=1):
            if quote is None and (header := re.match(r"\s*\[\[([\w.]+)\]\]", line)):
                name = tuple(header.group(1).split("."))
                base: tuple[str | int, ...] = table[:2] if len(name) > 1 else ()
                place = (*base, name[-1])
                table = (*place, counts.get(place, 0))
                counts[place] = counts.get(place, 0) + 1
                self._lines[table] = number
            elif quote is None and (single := re.match(r"\s*\[([\w.]+)\]", line)):
                name = tuple(single.group(1).split("."))
                table = (*(table[:2] if len(name) > 1 else ()), name[-1])
                self._lines[table] = number
            elif quote is None and (key := re.match(r"\s*([\w-]+)\s*=", line)):
                self._lines.setdefault((*table, key.group(1)), number)
            for mark in re.findall(r'"""|\'\'\'', line):
                quote = None if quote == mark else quote or mark

    def line(self, *path: str | int) -> int | None:
        """Return the line of a table or key, or of the nearest thing around it."""
        for end in range(len(path), 0, -1):
            if path[:end] in self._lines:
                return self._lines[path[:end]]
        return None

    def error(
        self, message: str, *table: str | int, key: str | None = None, hint: str | None = None
    ) -> SourceError:
        """Return an error that names the line of a key in a table."""
        place = (*table, key) if key else table
        return SourceError(message, file=self.file, line=self.line(*place), hint=hint)
