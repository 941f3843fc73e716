"""The part of a page's code that a notebook needs: what feeds something that it shows.

A notebook's sentences are plain text, so code that only feeds sentences, or makes sure of them,
feeds nothing there. Statements are followed from the last one back to the first. Those of cells
that readers see stay, and those that show something, and whatever binds or changes a name that
one of these reads later. In doubt a statement stays. What stays is the author's text, comments
included; only imports lose names.
"""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Literal

from mlsim_book.render.code_names import (
    FUNCTIONS,
    RANDOM,
    Known,
    bindings,
    blocks,
    bound_by,
    definitions,
    effects_of,
    gives_nothing,
    header,
    is_assertion,
    known_of,
    names_of,
    reach,
    read_at_once,
    sources,
    statements_in,
    stored,
    surely_bound,
)

_NAME = re.compile(r"[^\W\d]\w*")


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
    texts: Sequence[str | None] = [cell.source for cell in cells]
    before, elsewhere = None, list(elsewhere)
    while texts != before:  # without what is gone, less may be in doubt
        before = texts
        pairs = zip(cells, before, strict=True)
        page = _Page([replace(cell, source=text or "") for cell, text in pairs], elsewhere)
        texts = page.sources()
    return list(texts)


def idle_lines(cells: Sequence[Code], elsewhere: Iterable[str] = ()) -> int:
    """Return how many lines of code, blank ones apart, feed nothing that is shown."""
    kept = live_sources(cells, elsewhere)
    return sum(
        _lines(each.source) - _lines(live or "") for each, live in zip(cells, kept, strict=True)
    )


def _lines(source: str) -> int:
    return sum(bool(line.strip()) for line in source.splitlines())


@dataclass
class _Kept:
    """What stays of some statements, and the names that are live before them."""

    live: set[str]
    statements: set[ast.stmt] = field(default_factory=set)


class _Page:
    def __init__(self, cells: Sequence[Code], elsewhere: Iterable[str]) -> None:
        self.cells = [(cell, _parsed(cell.source)) for cell in cells]
        trees = [tree for _, tree in self.cells if tree]
        self.known = known_of(trees)
        self.affects = _shared(trees, self.known)
        self.parts = {  # `settings = plt.rcParams`
            name: sources(value)
            for tree in trees for names, value in bindings(tree) for name in names
            if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript))
        }  # fmt: skip
        statements = [statement for tree in trees for statement in tree.body]
        self.places = {statement: place for place, statement in enumerate(statements)}
        self.place = len(statements)
        self.bound = _deferred(statements)
        texts = [cell.source for cell, tree in self.cells if tree is None]
        self.used = {name for text in (*texts, *elsewhere) for name in _NAME.findall(text)}
        self.used |= {name for tree in trees for name in _used(tree)}
        self.imports: dict[ast.stmt, list[ast.alias]] = {}  # what stays of each

    def sources(self) -> list[str | None]:
        found: list[str | None] = []
        live: set[str] = set()
        for cell, tree in reversed(self.cells):
            if tree is None:
                live |= self._with_later(set(_NAME.findall(cell.source)))
                found.append(cell.source)
                continue
            self.cell, self.last = cell, tree.body[-1] if tree.body else None
            kept = self._block(tree.body, live)
            live = kept.live
            text = written(cell.source, tree, kept.statements, self.imports)
            found.append(cell.source if cell.seen else text)
        return found[::-1]

    def _block(self, body: Sequence[ast.stmt], live: set[str]) -> _Kept:
        """Follow some statements backwards; `live` are the names that are read after them."""
        kept = _Kept(set(live))
        for statement in reversed(body):
            self.place = self.places.get(statement, self.place)
            if inner := blocks(statement):
                self._compound(statement, inner, kept)
            elif self._stays(statement, kept.live):
                kept.statements.add(statement)
                self._read(statement, kept.live)
        return kept

    def _compound(
        self, statement: ast.stmt, inner: Sequence[Sequence[ast.stmt]], kept: _Kept
    ) -> None:
        """Follow a loop, a `with` or an `if` into its blocks."""
        head = header(statement)
        names = names_of(*head)
        first = names.stores if isinstance(statement, ast.For) else set()
        live, before = set(kept.live), None
        while live != before:  # what one turn of a loop binds, the next may read
            before = set(live)
            found = [self._block(body, live) for body in inner]
            changes = any(self._changes(each, live) for each in head)
            if not (changes or names.stores & kept.live or any(each.statements for each in found)):
                return
            for body, each in zip(inner, found, strict=True):
                if not any(one in each.statements for one in body):  # a block can't be empty
                    each.statements |= statements_in(body)
                    for one in body:
                        self._read(one, each.live)
                    each.live |= live
                live |= each.live - first
            live |= self._with_later(names.loads)
        kept.live = live
        kept.statements |= {statement}.union(*(each.statements for each in found))

    def _stays(self, statement: ast.stmt, live: set[str]) -> bool:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self.imports[statement] = [
                each for each in statement.names if self._import_stays(each, statement, live)
            ]
            return bool(self.imports[statement]) or self.cell.seen
        names = names_of(statement)
        if self.cell.seen or names.opaque or names.stores & live or self._changes(statement, live):
            return True
        if (
            statement is self.last
            and isinstance(statement, ast.Expr)
            and not is_assertion(statement)
        ):
            return self.cell.shows != "nothing"
        return self.cell.shows == "all" and effects_of(statement, self.known).prints

    def _import_stays(self, alias: ast.alias, statement: ast.stmt, live: set[str]) -> bool:
        name = bound_by(alias)
        always = alias.name == "*" or getattr(statement, "module", "") == "__future__"
        return always or name in live or name not in self.used

    def _changes(self, node: ast.AST, live: set[str]) -> bool:
        """Say whether code changes something that is live, or what no name holds."""
        found = effects_of(node, self.known)
        reached = reach(found.mutates, self.affects)
        outside = reach(found.mutates, self.parts) & self.known.imported.keys()
        return bool(reached & live) or (self.cell.acts and (found.world or bool(outside)))

    def _read(self, statement: ast.stmt, live: set[str]) -> None:
        """Turn the names that are live after a statement into those that are live before it."""
        names = names_of(statement)
        if not names.opaque:
            live -= surely_bound(statement)
        # a student may call a function that is seen
        loads = names.loads if self.cell.seen else read_at_once(statement)
        live |= self._with_later(loads)
        live |= self.known.bound | {RANDOM} if names.opaque else set()
        live |= effects_of(statement, self.known).mutates & {RANDOM}

    def _with_later(self, names: set[str]) -> set[str]:
        """Add to names that are read here those that they read in turn, being functions."""
        found, todo = set[str](), list(names)
        while todo:
            if (name := todo.pop()) not in found:
                found.add(name)
                for binding in reversed(self.bound.get(name, ())):
                    if binding.place <= self.place:
                        todo += binding.later
                        if binding.sure and binding.place < self.place:
                            break
        return found


def _parsed(source: str) -> ast.Module | None:
    """Return the tree of a cell; None if it has syntax of IPython's or `a = 1; b = 2`."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            pairs = itertools.pairwise(body)
            if any(after.lineno <= before.end_lineno for before, after in pairs):
                return None
    return tree


def _used(tree: ast.Module) -> set[str]:
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}


# ------------------------------------------------------------------ what holds for a page
def _shared(trees: Iterable[ast.Module], known: Known) -> dict[str, set[str]]:
    """Return, for each name, those whose object may change with its own."""
    found: dict[str, set[str]] = {}
    imported = known.imported.keys()
    for tree in trees:
        for names, value in bindings(tree):
            held = sources(value)
            held |= names if isinstance(value, ast.Call) else set()  # `fig, ax = subplots()`
            for name in names:
                found.setdefault(name, set()).update(held - imported)
                for each in held - imported:
                    found.setdefault(each, set()).add(name)
        for into, value in stored(tree):  # `x[k] = value`, `x.append(value)`
            for each in sources(value) - imported:
                found.setdefault(each, set()).update(sources(into))
    return found


@dataclass(frozen=True)
class _Binding:
    """What a statement gives a name to: the names that are read where it is used."""

    place: int  # of the statement on the page
    sure: bool
    later: AbstractSet[str]


def _deferred(statements: Sequence[ast.stmt]) -> dict[str, list[_Binding]]:
    """Return, for each name, its bindings in order: a function reads names when it is called."""
    functions: set[str] = set()  # names of functions, and of what may hold one
    plain: set[str] = set()  # functions that return no function
    for node in definitions(ast.Module(list(statements), [])):
        functions.add(node.name)
        inner = [each for each in ast.walk(node) if each is not node]
        lazy = (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.Yield, ast.YieldFrom)
        if isinstance(node, FUNCTIONS) and not any(isinstance(each, lazy) for each in inner):
            plain.add(node.name)
    values = [each for statement in statements for each in _given(statement)]
    size = -1
    while size != len(functions):
        size = len(functions)
        for names, value in values:
            functions |= names if _functions_in(value, functions, plain) else set()
    found: dict[str, list[_Binding]] = {}
    for place, statement in enumerate(statements):
        held = [
            (names, _functions_in(value, functions, plain)) for names, value in _given(statement)
        ]
        inside = definitions(ast.Module([statement], []))
        held += [({node.name}, names_of(node).loads) for node in inside]
        sure = surely_bound(statement)
        for names, later in [
            *held,
            (sure - set[str]().union(*(names for names, _ in held)), set()),
        ]:
            for name in names:
                found.setdefault(name, []).append(_Binding(place, name in sure, later))
    return found


def _given(statement: ast.stmt) -> Iterator[tuple[AbstractSet[str], ast.expr]]:
    """Yield names of objects and the values that a statement gives them or puts into them."""
    yield from bindings(statement)
    yield from ((sources(into), value) for into, value in stored(statement))


def _functions_in(
    value: ast.expr, functions: AbstractSet[str], plain: AbstractSet[str]
) -> set[str]:
    """Return the names that a value may read later: of its lambdas, and functions it may hold."""
    inside = list(ast.walk(value))
    called = {id(each.func) for each in inside if isinstance(each, ast.Call)}
    held = {
        each.id for each in inside
        if isinstance(each, ast.Name) and not (each.id in plain and id(each) in called)
    }  # fmt: skip
    lambdas = [each for each in inside if isinstance(each, ast.Lambda)]
    return (held & functions) | names_of(*lambdas).loads


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
