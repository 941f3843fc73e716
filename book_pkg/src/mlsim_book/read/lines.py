"""Lines that remember where they were written, and what surrounds them.

Includes mix the lines of several files, so each carries its own file and line.
`Fences` follows code fences and HTML comments from line to line: whatever reads
.qmd text asks it whether a line is text at all.

Expand `{{< include file >}}`, keeping for each line the file it came from.

Find `:::` fences that do not pair up, before pandoc prints them on the page. Pandoc's rule: an
opening fence has three or more colons and attributes (a word or braces); a closing fence has
colons only and closes the innermost div, however many colons either has. A div can't begin in the
middle of a paragraph; an item of a list can begin with one.

Write pandoc attributes, `{#id .class key="value"}`, always in the same order.

Where in its sources something stands: file and line of a label, a key, a formula.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import ExecutedPage


@dataclass(frozen=True)
class SourceLine:
    """A line of text (without its end) with its file and line number."""

    text: str
    file: str
    line: int

    def error(self, message: str, hint: str | None = None) -> SourceError:
        """Return an error at this line."""
        return SourceError(message, file=self.file, line=self.line, hint=hint)


def read_lines(path: Path, *, name: str) -> tuple[SourceLine, ...]:
    """Return the lines of a UTF-8 file; `name` is what errors call it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"not UTF-8 text ({error.reason} at byte {error.start})",
            file=name,
            hint="Save the file as UTF-8.",
        ) from None
    return split_lines(text, file=name)


def split_lines(text: str, *, file: str) -> tuple[SourceLine, ...]:
    r"""Return the lines of a text.

    >>> split_lines("a\nb", file="x.qmd")[1]
    SourceLine(text='b', file='x.qmd', line=2)
    """
    parts = text.replace("\r\n", "\n").split("\n")
    if parts and not parts[-1]:
        parts.pop()
    return tuple(SourceLine(part, file, number) for number, part in enumerate(parts, start=1))


CELL_FENCE = re.compile(r"^(\s*)(`{3,})\s*\{([A-Za-z][\w-]*)( *[ ,].*)?\}\s*$")
_FENCE = re.compile(r"^\s*(`{3,}(?=[^`]*$)|~{3,})")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


class Fences:
    """Follow code fences and HTML comments through lines fed one by one.

    `feed` says what a line is: "text", "open" (a fence), "code", "close", or
    "comment" for a line that begins inside an HTML comment. `cell` says
    whether the block just opened, or open now, is one to execute.

    >>> fences = Fences()
    >>> [fences.feed(line) for line in ["a", "```{python}", "b", "```", "c"]]
    ['text', 'open', 'code', 'close', 'text']
    """

    def __init__(self) -> None:
        self.cell: re.Match[str] | None = None
        self.in_comment = False
        self._closing: re.Pattern[str] | None = None

    @property
    def in_code(self) -> bool:
        """Whether a fence is open."""
        return self._closing is not None

    def feed(self, text: str) -> str:
        """Take the next line and say what it is."""
        if self._closing is not None:
            if self._closing.match(text):
                self._closing = None
                return "close"
            return "code"
        if self.in_comment:
            end = text.find("-->")
            if end >= 0:
                self.in_comment = _opens_comment(text[end + 3 :])
            return "comment"
        fence = _FENCE.match(text)
        if fence is None:
            self.in_comment = _opens_comment(text)
            return "text"
        mark = fence.group(1)
        self.cell = CELL_FENCE.match(text)
        if self.cell is not None:  # as Quarto: the same indent, the same number of ticks
            self._closing = re.compile(rf"^{self.cell.group(1)}{mark}\s*$")
        else:
            self._closing = re.compile(rf"^\s*{re.escape(mark[0])}{{{len(mark)},}}\s*$")
        return "open"


def _opens_comment(text: str) -> bool:
    """Say whether a line leaves an HTML comment open (code spans don't count)."""
    bare = _CODE_SPAN.sub("", text)
    return bare.rfind("<!--") > bare.rfind("-->")


_INCLUDE = re.compile(r"^\s*\{\{<\s+include\s+(.+?)\s+>\}\}\s*$")


def expand_includes(
    lines: Sequence[SourceLine], *, path: Path, root: Path
) -> tuple[tuple[SourceLine, ...], tuple[Path, ...]]:
    """Return the lines with every include replaced by what it names.

    Parameters
    ----------
    lines
        The lines of the file at `path`.
    path
        The page; a relative name starts from its folder, in an included file, too: so does
        Quarto.
    root
        The book's folder; a name that begins with `/` starts from there.

    Returns
    -------
    The lines, and the files they came from beside `path`, in order of first use.
    """
    used: list[Path] = []
    expanded = _expand(lines, (path.resolve(),), root.resolve(), used)
    return tuple(expanded), tuple(dict.fromkeys(used))


def _expand(
    lines: Sequence[SourceLine], stack: tuple[Path, ...], root: Path, used: list[Path]
) -> list[SourceLine]:
    expanded: list[SourceLine] = []
    for line in lines:
        match = _INCLUDE.match(line.text)
        if match is None:
            expanded.append(line)
            continue
        target = _find(match.group(1).strip("\"'"), line, stack, root)
        used.append(target)
        included = _without_front_matter(read_lines(target, name=_name(target, root)))
        expanded.extend(_expand(included, (*stack, target), root, used))
    return expanded


def _find(name: str, line: SourceLine, stack: tuple[Path, ...], root: Path) -> Path:
    """Return the file an include names, or say which name was probably meant."""
    base = root if name.startswith("/") else stack[0].parent
    target = (base / name.lstrip("/")).resolve()
    if target in stack:
        chain = " -> ".join(_name(path, root) for path in (*stack, target))
        raise line.error(
            f"the include goes in a circle: {chain}",
            hint="Take one of these includes out.",
        )
    if not target.is_file():
        beside = (stack[-1].parent / name).resolve()
        hint = nearest_file(target, root) or f"Looked for {_name(target, root)}."
        if beside.is_file():
            hint = (
                "An include within an included file starts from the page's folder, as in Quarto: "
                f"write '/{_name(beside, root)}'."
            )
        raise line.error(f"the included file '{name}' does not exist", hint)
    return target


def nearest_file(target: Path, root: Path) -> str | None:
    """Return a hint naming the existing file most like a missing one, if any."""
    if not target.parent.is_dir():
        return f"The folder {_name(target.parent, root)} does not exist."
    names = sorted(path.name for path in target.parent.iterdir() if path.is_file())
    near = difflib.get_close_matches(target.name, names, n=1, cutoff=0.6)
    if not near:
        return None
    return f"Did you mean '{_name(target.parent / near[0], root)}'?"


def _name(path: Path, root: Path) -> str:
    """Return a path as the author knows it: from the book's folder."""
    resolved = path.resolve()
    if resolved.is_relative_to(root):
        return resolved.relative_to(root).as_posix()
    return str(path)


def _without_front_matter(lines: Sequence[SourceLine]) -> Sequence[SourceLine]:
    """Drop an included file's own YAML block: it describes that file, not the page."""
    if lines and lines[0].text.rstrip() == "---":
        for index, line in enumerate(lines[1:], start=1):
            if line.text.rstrip() in {"---", "..."}:
                return lines[index + 1 :]
    return lines


_MARK = r"(?:[-+*]|\(?[0-9#a-zA-Z]{1,3}[.)])\s"
_OPEN = re.compile(rf"^\s*(?:{_MARK}\s*)*:{{3,}}\s*(\{{.*|[^\s:{{}}]+)\s*:*\s*$")
_CLOSE = re.compile(r"^\s*:{3,}\s*$")
_LIST_ITEM = re.compile(rf"^\s*{_MARK}")
_NOT_A_PARAGRAPH = re.compile(r"^\s*(:{3,}|#{1,6}\s|<|`{3,}|~{3,}|-->|(\*\s*|-\s*|_\s*){3,}$)")


def check_divs(lines: Sequence[SourceLine], problems: Problems) -> None:
    r"""Refuse unclosed divs and stray closers; note openers that pandoc won't see.

    >>> from mlsim_book.read.lines import split_lines
    >>> check_divs(split_lines("::: {.note}\nText", file="a.qmd"), Problems())
    Traceback (most recent call last):
    mlsim_book.errors.SourceError: a.qmd:1: the div '::: {.note}' is not closed
      End it with a line ':::'.
    """
    fences = Fences()
    open_divs: list[SourceLine] = []
    before: SourceLine | None = None  # the line above, if it belongs to a paragraph
    in_list = False
    for line in lines:
        kind = fences.feed(line.text)
        if kind != "text":
            before = None
            continue
        in_list = _still_in_list(line.text, before, in_list)
        if re.match(r"^( {4}|\t)", line.text) and not in_list:
            before = line if before else None  # indented code, or a paragraph going on
            continue
        if _CLOSE.match(line.text):
            if not open_divs:
                raise line.error(
                    f"'{line.text.strip()}' closes no div",
                    "Take it out, or open a div above it, such as '::: {.callout-note}'.",
                )
            open_divs.pop()
        elif _OPEN.match(line.text):
            open_divs.append(line)
            if before is not None and not _LIST_ITEM.match(line.text):
                said = "follows a paragraph, so it is printed instead of opening a div"
                problems.add(
                    f"'{line.text.strip()}' {said}", file=line.file, line=line.line,
                    hint="Put a blank line above it.",
                )  # fmt: skip
        ends = not line.text.strip() or _NOT_A_PARAGRAPH.match(line.text)
        before = None if ends else line
    if open_divs:
        last = open_divs[-1]
        raise last.error(
            f"the div '{last.text.strip()}' is not closed", "End it with a line ':::'."
        )


def _still_in_list(text: str, before: SourceLine | None, in_list: bool) -> bool:
    if _LIST_ITEM.match(text):
        return True
    unindented = bool(text.strip()) and not text[0].isspace()
    return in_list and not (unindented and before is None)


def attributes(
    *,
    label: str | None = None,
    classes: Iterable[str] = (),
    pairs: Mapping[str, Any] | None = None,
) -> str:
    r"""Return attributes in braces; pairs whose value is None are left out.

    >>> attributes(label="fig-a", classes=["cell"], pairs={"n": 2, "t": 'a "b"', "no": None})
    '{#fig-a .cell n="2" t="a \\"b\\""}'
    """
    parts = [f"#{label}"] if label else []
    parts += [f".{name.lstrip('.')}" for name in classes]
    parts += [
        f'{key}="{value_text(value)}"' for key, value in (pairs or {}).items() if value is not None
    ]
    return "{" + " ".join(parts) + "}"


def value_text(value: Any) -> str:
    r"""Return a value as it stands between the quotes of an attribute.

    >>> value_text(True), value_text(["a"])
    ('true', '[\\"a\\"]')
    """
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return " ".join(text.replace("\\", "\\\\").replace('"', '\\"').split("\n"))


def fence_for(text: str, *, least: int = 3) -> str:
    """Return a run of backticks longer than any in a text.

    >>> fence_for("a ``` b")
    '````'
    """
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return "`" * max(least, longest + 1)


_INCLUDES = re.compile(r"\{\{<\s+include\s+(\S+?)\s+>\}\}")


def sources_of(page: ExecutedPage, root: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of a chapter and of the files it includes."""
    yield page.chapter.source, page.source
    seen: set[Path] = set()
    queue = [(root / page.chapter.source, page.source)]
    while queue:
        path, text = queue.pop(0)
        for given in _INCLUDES.findall(text):
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
