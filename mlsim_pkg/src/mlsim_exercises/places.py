"""The lines of a data file on which its keys stand, which Python's readers don't give.

A reader of a format says which line each key is on; errors then name the line of a key,
or of the nearest thing around it. The TOML of exercises is read here, the YAML of a book
in `mlsim_book.read.yamlfile`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Key = tuple[str | int, ...]  # names of tables and keys, and numbers of items in lists


@dataclass(frozen=True)
class Places:
    """A file's name, and the line on which each of its keys stands.

    >>> places = Places("tea.toml", {("tea",): 3, ("tea", "heat"): 4})
    >>> places.line("tea", "heat"), places.line("tea", "cup"), places.line("pot")
    (4, 3, None)
    """

    file: str
    lines: Mapping[Key, int]

    def line(self, *path: str | int) -> int | None:
        """Return the line of a key, or of the nearest thing around it."""
        around = (path[:end] for end in range(len(path), -1, -1))
        return next((self.lines[each] for each in around if each in self.lines), None)


def toml_lines(text: str) -> dict[Key, int]:
    r"""Return the line of each table and key of a TOML text.

    >>> toml_lines('[[tea]]\nheat = 80\n\n[tea.given]\ncup = 1\n')
    {('tea', 0): 1, ('tea', 0, 'heat'): 2, ('tea', 0, 'given'): 4, ('tea', 0, 'given', 'cup'): 5}
    """
    lines: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    quote: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if quote is None and (header := re.match(r"\s*(\[\[?)([\w.]+)\]", line)):
            *above, name = header[2].split(".")
            table = (*(table[:2] if above else ()), name)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            lines[table] = number
        elif quote is None and (key := re.match(r"\s*([\w-]+)\s*=", line)):
            lines.setdefault((*table, key.group(1)), number)
        for mark in re.findall(r'"""|\'\'\'', line):
            quote = None if quote == mark else quote or mark
    return lines
