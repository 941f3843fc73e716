"""The part of a page's code that a notebook needs: what feeds something that it shows.

A notebook's sentences are plain text, so code that only feeds sentences, or makes sure of them,
feeds nothing there. Statements are followed from the last one back to the first. Those of cells
that readers see stay, and those that show something. Of the others, assertions go, and what only
binds names that nothing reads later. What may change an object, print or draw stays.
"""

from __future__ import annotations

import ast
import builtins
import dis
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Literal

_NAME = re.compile(r"[^\W\d]\w*")
_COMMENT = re.compile(r"\s*#")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_AT_ONCE = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}  # run where they are written
_OPAQUE = {"exec", "eval", "globals", "locals", "vars", "get_ipython", "__import__"}
_ACTS = {"next", "setattr", "delattr", "input", "breakpoint"}
_PURE = set(dir(builtins)) - _ACTS - _OPAQUE
_DRAWING = re.compile(r"plot|draw|chart|histogram|figure|render|^display$|^p?print$", re.IGNORECASE)
# What they give changes as one uses it.
_STATEFUL = re.compile(
    r"\.?(iter|map|filter|zip|enumerate|reversed|StringIO|BytesIO|Random|RandomState|default_rng)$"
)
_MODULES = re.compile(r"itertools|(numpy\.)?random|matplotlib|pylab|seaborn|plotly|altair|bokeh")
# Methods that change their object, or may, although one takes what they return.
_CHANGES = re.compile(
    r"(append|extend|pop)(left|item)?$|(insert|add|update|remove|set|delete|push|write|connect"
    r"|execute|register)(_|$)|.*_update$|(setdefault|discard|clear|sort|reverse|rotate|move_to_end"
    r"|subtract|send|put(_nowait)?|get_nowait|(partial_)?fit|step|run|reset|commit|backward|seek"
    r"|advance|feed|random)$"
)


@dataclass(frozen=True)
class Code:
    """The code of one cell, and what of it readers are shown.

    `shows` is "value" if nothing but its last expression gave something, "all" if it printed or
    drew, too. `acts` is False where calls of it are there to print what is shown otherwise.
    """

    source: str
    seen: bool = False
    shows: Literal["nothing", "value", "all"] = "nothing"
    acts: bool = True


def live_sources(cells: Sequence[Code], elsewhere: Iterable[str] = ()) -> list[str | None]:
    r"""Return what stays of the code of each cell of a page, None if nothing does.

    Parameters
    ----------
    elsewhere
        Other code of the page, such as inline expressions. An import that nothing on the page
        uses stays, for it is there for what it does.

    >>> cells = [Code("a = 1\nb = 2\nassert a < b"), Code("assert b"), Code("print(b)", seen=True)]
    >>> live_sources(cells)
    ['b = 2', None, 'print(b)']
    """
    texts: list[str | None] = [cell.source for cell in cells]
    before, elsewhere = None, list(elsewhere)
    while texts != before:  # without what is gone, less may be in doubt
        before = texts
        pairs = zip(cells, before, strict=True)
        texts = _Page([replace(cell, source=text or "") for cell, text in pairs], elsewhere).live()
    return texts


def idle_lines(cells: Sequence[Code], elsewhere: Iterable[str] = ()) -> int:
    """Return how many lines of code, blank ones apart, feed nothing that is shown."""
    kept = live_sources(cells, elsewhere)
    texts = ((cell.source, live or "") for cell, live in zip(cells, kept, strict=True))
    counts = ([len(re.findall(r"(?m)^.*\S", each)) for each in pair] for pair in texts)
    return sum(whole - live for whole, live in counts)


@dataclass
class _Statement:
    """The names that a statement reads and binds, and what it may do besides."""

    node: ast.stmt
    loads: set[str] = field(default_factory=set)
    stores: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)  # what its functions read when they are called
    sure: bool = False  # it binds in any case
    changes: bool = False  # objects
    stateful: bool = False  # what it binds changes as one uses it
    draws: bool = False


class _Page:
    def __init__(self, cells: Sequence[Code], elsewhere: Sequence[str]) -> None:
        self.cells = [(cell, _statements(cell.source)) for cell in cells]
        every = [each for _, found in self.cells for each in found or ()]
        texts = [*elsewhere, *(cell.source for cell, found in self.cells if found is None)]
        self.used = {name for text in texts for name in _NAME.findall(text)}
        self.used = self.used.union(*(each.loads | each.later for each in every))
        self.bound = set().union(*(each.stores for each in every))
        self.changing: set[str] = set()  # names whose use may change an object
        self.later: dict[str, set[str]] = {}  # what is read where a name is used
        size = -1
        while size != (size := len(self.changing) + sum(map(len, self.later.values()))):
            for each in every:
                self._note(each)

    def _note(self, one: _Statement) -> None:
        """Note what using the names that a statement binds may read and change."""
        if isinstance(one.node, _IMPORTS):
            self.changing |= {
                _bound(each) for each in one.node.names if _MODULES.match(_path(one.node, each))
            }
            return
        read = one.later.union(*(self.later.get(each, ()) for each in one.loads | one.later))
        for each in one.stores | (one.loads - _PURE if one.changes else set()):
            self.later.setdefault(each, set()).update(read)
        if (
            one.stateful
            or one.loads & self.changing
            or (one.changes and one.later)
            or one.later & self.changing
        ):
            self.changing |= one.stores

    def live(self) -> list[str | None]:
        """Return what stays of each cell."""
        texts: list[str | None] = []
        live: set[str] = set()
        for cell, found in reversed(self.cells):
            if found is None:
                live |= self._closed(set(_NAME.findall(cell.source)))
                texts.append(cell.source)
                continue
            kept: list[ast.stmt] = []
            for each in reversed(found):
                if cell.seen or self._stays(each, cell, live, last=each is found[-1]):
                    kept.append(each.node)
                    live -= each.stores if each.sure else set()
                    # a student may call a function that is seen
                    live |= self._closed(each.loads | (each.later if cell.seen else set()))
                    live |= self.bound if each.loads & _OPAQUE else set()
            body = [each.node for each in found]
            texts.append(cell.source if cell.seen else _written(cell.source, body, kept))
        return texts[::-1]

    def _stays(self, one: _Statement, cell: Code, live: set[str], *, last: bool) -> bool:
        node = one.node
        if isinstance(node, _IMPORTS):
            names = {_bound(each) for each in node.names}
            future = getattr(node, "module", "") == "__future__"
            return future or bool(names & {*live, "*"} or names - self.used)
        if one.stores & live or one.loads & _OPAQUE:
            return True
        if isinstance(node, (*_DEFINITIONS, ast.Assert, ast.Raise)):
            return bool(getattr(node, "decorator_list", ()))  # which may register it
        changing = bool(one.loads & self.changing)
        if isinstance(node, ast.Expr) and (called := _called(node.value)).lstrip(".").startswith(
            "assert"
        ):
            return False
        if cell.shows == "all" and (one.draws or changing):
            return True
        if isinstance(node, ast.Expr):
            acts = called not in {"", *_PURE} and cell.acts
            return acts or (last and cell.shows != "nothing")
        return one.changes or changing

    def _closed(self, names: set[str]) -> set[str]:
        """Add to names that are read those that they read in turn, as they may be functions."""
        found, todo = set[str](), list(names)
        while todo:
            if (name := todo.pop()) not in found:
                found.add(name)
                todo += self.later.get(name, ())
        return found


def _statements(source: str) -> list[_Statement] | None:
    r"""Return the statements of a cell; None if IPython alone reads it, or it is `a = 1; b = 2`.

    >>> (found,) = _statements("def f(a, b=c):\n    d = a\n    return d + e")
    >>> found.loads, found.stores, found.later
    ({'c'}, {'f'}, {'e'})
    """
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        body = ast.parse(source).body
        codes = [compile(ast.Module([node], []), "", "exec", flags) for node in body]
    except (SyntaxError, ValueError):
        return None
    if any(b.lineno <= (a.end_lineno or 0) for a, b in itertools.pairwise(body)):
        return None
    found = [_Statement(node) for node in body]
    for one, code in zip(found, codes, strict=True):
        _take(code, one, one.loads)
        bound = getattr(one.node, "targets", getattr(one.node, "names", [one.node]))
        one.sure = all(
            isinstance(each, (*_DEFINITIONS, ast.Name))
            or (isinstance(each, ast.alias) and (each.asname or "." not in each.name))
            for each in bound
        )
        taken: set[ast.AST] = set()
        for each in ast.walk(one.node):
            _look(each, one, taken)
    return found


def _take(code: CodeType, one: _Statement, loads: set[str]) -> None:
    """Collect the names of the page that code reads and binds, as Python's compiler has them."""
    for each in dis.get_instructions(code):
        if each.opname in {"LOAD_NAME", "LOAD_GLOBAL", "DELETE_NAME"}:
            loads.add(each.argval)
        if each.opname in {"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME"}:
            one.stores.add(each.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _take(inner, one, loads if inner.co_name in _AT_ONCE else one.later)
        elif isinstance(inner, str):
            loads |= set(re.findall(r"@(\w+)", inner))  # names for pandas


def _look(node: ast.AST, one: _Statement, taken: set[ast.AST]) -> None:
    """Note what a piece of code may do; `taken` are values that are used up where they are."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        method = isinstance(node, ast.Attribute) and bool(_CHANGES.match(node.attr))
        one.changes |= method or not isinstance(node.ctx, ast.Load)
    elif isinstance(node, ast.Expr):
        called = _called(node.value)
        one.changes |= (
            bool(called) and called not in _PURE and not called.lstrip(".").startswith("assert")
        )
    elif isinstance(node, ast.Call):
        name = _called(node)
        one.changes |= name in _ACTS or any(each.arg == "out" for each in node.keywords)
        one.stateful |= bool(_STATEFUL.match(name)) and node not in taken
        one.draws |= bool(_DRAWING.search(name))
        taken |= set(node.args) if name in _PURE else set()
    elif isinstance(node, (ast.For, ast.comprehension)):
        taken.add(node.iter)
    one.changes |= isinstance(node, (ast.AugAssign, ast.Global, ast.Await))
    one.stateful |= isinstance(node, (ast.ClassDef, ast.Yield, ast.YieldFrom)) or (
        isinstance(node, ast.Assign) and isinstance(node.value, ast.GeneratorExp)
    )


def _called(node: ast.expr) -> str:
    """Return the name of a function, or with a dot of a method, that is called; else ""."""
    if isinstance(node, ast.Await):
        return "await"
    function = getattr(node, "func", None)
    return (
        f".{function.attr}" if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    )


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _path(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    return f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name


def _written(source: str, body: Sequence[ast.stmt], kept: Sequence[ast.stmt]) -> str | None:
    """Return a cell's text without the statements that don't stay, and the comments above them."""
    if not kept:
        return None
    lines: list[str | None] = [*source.splitlines()]
    last = max(kept, key=lambda each: each.lineno)
    if isinstance(last, ast.Expr) and last is not body[-1]:  # what it gives was not shown
        at, end = (last.end_lineno or 0) - 1, last.end_col_offset or 0
        raw = (lines[at] or "").encode()
        lines[at] = f"{raw[:end].decode()};{raw[end:].decode()}"
    for statement in body:
        if statement not in kept:
            decorators = getattr(statement, "decorator_list", [])
            start = min(each.lineno for each in (statement, *decorators)) - 1
            lines[start : statement.end_lineno] = [None] * ((statement.end_lineno or 0) - start)
            while start and _COMMENT.match(lines[start - 1] or ""):
                start -= 1
                lines[start] = None
    return "\n".join(_joined(lines))


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
