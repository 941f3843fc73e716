"""Expand `{{< include file >}}`, keeping for each line the file it came from."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_book.read.lines import SourceLine, read_lines

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
        raise SourceError(
            f"the include goes in a circle: {chain}",
            file=line.file,
            line=line.line,
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
        raise SourceError(
            f"the included file '{name}' does not exist", file=line.file, line=line.line, hint=hint
        )
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
