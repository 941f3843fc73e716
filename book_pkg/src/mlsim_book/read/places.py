"""Where in its sources something stands: file and line of a label, a key, a formula."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlsim_book.errors import Problems
from mlsim_book.model import ExecutedPage

_INCLUDE = re.compile(r"\{\{<\s+include\s+(\S+?)\s+>\}\}")


def sources_of(page: ExecutedPage, root: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of a chapter and of the files it includes."""
    yield page.chapter.source, page.source
    seen: set[Path] = set()
    queue = [(root / page.chapter.source, page.source)]
    while queue:
        path, text = queue.pop(0)
        for given in _INCLUDE.findall(text):
            name = given.strip("\"'")
            target = root / name[1:] if name.startswith("/") else path.parent / name
            if target in seen or not target.is_file():
                continue
            seen.add(target)
            included = target.read_text(encoding="utf-8", errors="replace")
            queue.append((target, included))
            where = target.resolve()
            inside = where.is_relative_to(root)
            yield (where.relative_to(root).as_posix() if inside else str(where)), included


def find_lines(page: ExecutedPage, root: Path, *patterns: str) -> list[tuple[str, int]]:
    r"""Return the places that match the first pattern (a regular expression) that any does.

    >>> from mlsim_book.model import Chapter
    >>> page = ExecutedPage(Chapter("a.qmd", "a.html", "A", 1), "", {}, {}, "# A\n\nSee @fig-x.")
    >>> find_lines(page, Path("."), r"@fig-y", r"@fig-x")
    [('a.qmd', 3)]
    """
    for pattern in patterns:
        expression = re.compile(pattern)
        found = [
            (name, number)
            for name, text in sources_of(page, root)
            for number, line in enumerate(text.splitlines(), start=1)
            if expression.search(line)
        ]
        if found:
            return found
    return []


def place(page: ExecutedPage, root: Path, *patterns: str) -> tuple[str, int | None]:
    """Return the first such place; the chapter without a line if there is none."""
    found = find_lines(page, root, *patterns)
    return found[0] if found else (page.chapter.source, None)


def label_patterns(label: str) -> tuple[str, str]:
    """Return patterns for where a label is given: `{#fig-x}` or `#| label: fig-x`."""
    name = re.escape(label)
    return (rf"\{{[^}}]*#{name}[\s}}]|#\|\s*(lst-)?label:\s*[\"']?{name}\b", rf"#{name}\b")


def reference_patterns(key: str) -> tuple[str, ...]:
    """Return patterns for where a label or citation key is used."""
    name = re.escape(key)
    return (rf"@{name}(?![\w-])", rf"(?i)@{name}(?![\w-])", rf"(?i)@{name}")


def text_pattern(text: str) -> str:
    """Return a pattern for the first line of a text, whatever its spaces."""
    first = next((line for line in text.splitlines() if line.strip()), text)
    first = re.sub(r"\s*\\tag\{[\d.A-Z]+\}\s*$", "", first).strip()
    return r"\s*".join(re.escape(word) for word in first.split())


@dataclass(frozen=True)
class Reporter:
    """Notes problems at the places in the sources that they come from."""

    problems: Problems
    root: Path

    def note(
        self, page: ExecutedPage, message: str, *patterns: str, hint: str | None = None
    ) -> None:
        """Note a problem of a page, where the first of the patterns stands."""
        file, line = place(page, self.root, *patterns)
        self.problems.add(message, file=file, line=line, hint=hint)
