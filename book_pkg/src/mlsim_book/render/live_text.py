"""The text of a cell without the statements that don't stay."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mlsim_book.render.code_names import blocks, gives_nothing

_COMMENT = re.compile(r"\s*#")
_WIDTH = 88  # of an import that is written again, unless the author's was wider


def written(
    source: str, tree: ast.Module, kept: set[ast.stmt], imports: Mapping[ast.stmt, list[ast.alias]]
) -> str | None:
    """Return a cell's text without the statements that don't stay."""
    if not any(each in kept for each in tree.body):
        return None
    lines: list[str | None] = [*source.splitlines()]
    _without(tree.body, kept, lines)
    staying = [each for each in tree.body if each in kept]
    last = staying[-1]
    if isinstance(last, ast.Expr) and last is not tree.body[-1] and not gives_nothing(last.value):
        _mute(last, lines)
    for statement in reversed(staying):  # the lines above keep their numbers
        _fewer(statement, imports.get(statement, []), lines)
    return "\n".join(_joined(lines))


def _without(body: Sequence[ast.stmt], kept: set[ast.stmt], lines: list[str | None]) -> None:
    """Take out the statements that don't stay, each with the comment directly above it."""
    for statement in body:
        if statement in kept:
            for inner in blocks(statement):
                _without(inner, kept, lines)
            continue
        decorators = getattr(statement, "decorator_list", [])
        start = min(each.lineno for each in (statement, *decorators)) - 1
        lines[start : statement.end_lineno] = [None] * ((statement.end_lineno or 0) - start)
        while start and _COMMENT.match(lines[start - 1] or ""):
            start -= 1
            lines[start] = None


def _joined(lines: Iterable[str | None]) -> Iterator[str]:
    """Yield the lines that stay; where some are gone, as many blank ones as stood on one side."""
    blanks = longest = 0
    started = False
    for line in lines:
        if line is None:
            longest, blanks = max(longest, blanks), 0
        elif not line.strip():
            blanks += 1
        else:
            yield from [""] * (max(longest, blanks) if started else 0)
            yield line
            blanks, longest, started = 0, 0, True


def _fewer(statement: ast.stmt, staying: Sequence[ast.alias], lines: list[str | None]) -> None:
    """Write an import again without the names that nothing uses."""
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return
    start, end = statement.lineno - 1, statement.end_lineno or statement.lineno
    before = [line or "" for line in lines[start:end]]
    if len(staying) == len(statement.names) or any("#" in line for line in before):
        return
    names = [ast.unparse(each) for each in staying]
    opening = "import "
    if isinstance(statement, ast.ImportFrom):
        opening = f"from {'.' * statement.level}{statement.module or ''} import "
    after = [opening + ", ".join(names)]
    width = max(_WIDTH, *map(len, before))
    if len(after[0]) > width and isinstance(statement, ast.ImportFrom):
        wrapped = textwrap.wrap(
            ", ".join(names) + ",", width, initial_indent="    ", subsequent_indent="    "
        )
        after = [f"{opening}(", *wrapped, ")"]
    lines[start:end] = [*after, *[None] * (end - start - len(after))]


def _mute(statement: ast.Expr, lines: list[str | None]) -> None:
    """Keep a cell from showing a value that was not its last: `x.pop()` becomes `x.pop();`."""
    at, end = (statement.end_lineno or 0) - 1, statement.end_col_offset or 0
    raw = (lines[at] or "").encode()
    lines[at] = f"{raw[:end].decode()};{raw[end:].decode()}"
