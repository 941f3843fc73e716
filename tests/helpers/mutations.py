"""What a mutant changes: each small error that a person could make in a line of code."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "/",
    ast.Mod: "*",
    ast.Pow: "*",
}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "ceil": "floor",
    "floor": "ceil",
    "minimum": "maximum",
    "maximum": "minimum",
    "left": "right",
    "right": "left",
    "inf": "pi",
}
UNITS = {
    "ns": "us",
    "us": "ms",
    "ms": "s",
    "s": "ms",
    "h": "min",
    "GB": "GiB",
    "GiB": "GB",
    "MB": "GB",
    "GB/s": "GiB/s",
    "TFLOP/s": "PFLOP/s",
    "GFLOP": "TFLOP",
    "W": "kW",
    "kWh": "MWh",
    "J": "kJ",
}
# Functions of two values that give the same with the two swapped.
EITHER_WAY = {"min", "max", "zip", "minimum", "maximum", "lcm", "gcd", "isinstance"}
# What no test should have to notice: how a class is stored, what a message says.
_SILENT = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)


@dataclass(frozen=True)
class Mutation:
    """One change of one place: the text between two offsets becomes another.

    `statement` is the line where the statement around it begins; None if it runs on import.
    """

    path: Path
    line: int
    statement: int | None
    start: int
    end: int
    new: str
    kind: str

    def applied(self) -> str:
        """Return the source of its module with the change."""
        source = self.path.read_text("utf-8")
        return source[: self.start] + self.new + source[self.end :]

    def diff(self, root: Path) -> str:
        """Return the change as lines of a diff, below the place where it stands."""
        old = self.path.read_text("utf-8").splitlines()
        lines = difflib.unified_diff(old, self.applied().splitlines(), lineterm="", n=0)
        changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        return "\n".join([f"{self.path.relative_to(root)}:{self.line} ({self.kind})", *changed])


def mutations(path: Path) -> list[Mutation]:
    """Return each change that can be made in a module, by the place where it stands."""
    return list(_Places(path).found())


class _Places:
    """The nodes of a module, and what may stand in their place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = path.read_text("utf-8")
        self.tree = ast.parse(self.source)
        # The parser counts bytes of UTF-8.
        self.lines = [line.encode("utf-8") for line in self.source.splitlines(keepends=True)]
        self.starts = [0]
        for line in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def found(self) -> Iterator[Mutation]:
        for node, statement in self._nodes(self.tree):
            for start, end, new, kind in self._changes(node):
                if self.source[start:end] != new:
                    yield Mutation(self.path, _line(node), statement, start, end, new, kind)

    def _nodes(
        self, node: ast.AST, statement: int | None = None
    ) -> Iterator[tuple[ast.AST, int | None]]:
        """Yield the nodes that compute something, and where their statement of a function begins."""
        yield node, statement
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "type_params"}:
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or _skipped(child):
                    continue
                inside = statement is not None or (function and name == "body")
                begins = isinstance(child, ast.stmt) or statement is None
                at = _line(child) if inside and begins else statement
                yield from self._nodes(child, at)

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1][:column].decode("utf-8"))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno, node.end_col_offset),
        )

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.source[start:end]

    def _changes(self, node: ast.AST) -> Iterator[tuple[int, int, str, str]]:
        changes: Callable[..., Iterator[tuple[int, int, str, str]]] | None = getattr(
            self, f"_{type(node).__name__.lower()}", None
        )
        if changes:
            yield from changes(node)

    def _binop(self, node: ast.BinOp) -> Iterator[tuple[int, int, str, str]]:
        if any(_is_text(side) for side in (node.left, node.right)):
            return
        start, end = self._span(node)
        if type(node.op) in OPERATORS:
            at, to = self._between(node.left, node.right)
            yield at, to, f" {OPERATORS[type(node.op)]} ", "operator"
        yield start, end, f"({self._text(node.left)})", "dropped term"
        if not isinstance(node.op, ast.Pow | ast.FloorDiv | ast.Mod):
            yield start, end, f"({self._text(node.right)})", "dropped term"

    def _augassign(self, node: ast.AugAssign) -> Iterator[tuple[int, int, str, str]]:
        if type(node.op) in OPERATORS and not _is_text(node.value):
            at, to = self._between(node.target, node.value)
            yield at, to, f" {OPERATORS[type(node.op)]}= ", "operator"

    def _between(self, left: ast.expr, right: ast.expr) -> tuple[int, int]:
        """Return the place of an operator: what stands between its two sides, brackets apart."""
        start, end = self._span(left)[1], self._span(right)[0]
        text = self.source[start:end]
        behind = len(text) - len(text.lstrip(") \n"))
        before = len(text.rstrip("( \n"))
        return start + behind, start + before

    def _compare(self, node: ast.Compare) -> Iterator[tuple[int, int, str, str]]:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            at, to = self._between(left, right)
            yield at, to, f" {COMPARISONS[type(operator)]} ", "comparison"
            left = right

    def _boolop(self, node: ast.BoolOp) -> Iterator[tuple[int, int, str, str]]:
        other = " or " if isinstance(node.op, ast.And) else " and "
        for left, right in zip(node.values, node.values[1:], strict=False):
            at, to = self._between(left, right)
            yield at, to, other, "wrong branch"

    def _unaryop(self, node: ast.UnaryOp) -> Iterator[tuple[int, int, str, str]]:
        start, end = self._span(node)
        if isinstance(node.op, ast.Not):
            yield start, end, f"({self._text(node.operand)})", "wrong branch"
        elif isinstance(node.op, ast.USub):
            yield start, end, f"({self._text(node.operand)})", "operator"

    def _constant(self, node: ast.Constant) -> Iterator[tuple[int, int, str, str]]:
        start, end = self._span(node)
        value = node.value
        if isinstance(value, bool):
            yield start, end, str(not value), "wrong branch"
        elif isinstance(value, int):
            yield start, end, str(value + 1), "off by one" if abs(value) < 10 else "constant"
        elif isinstance(value, float):
            yield start, end, repr(value * 1.25 if value else 1.0), "constant"
        elif isinstance(value, str) and value in UNITS:
            yield start, end, f'"{UNITS[value]}"', "unit factor"

    def _name(self, node: ast.Name) -> Iterator[tuple[int, int, str, str]]:
        if node.id in NAMES and isinstance(node.ctx, ast.Load):
            yield (*self._span(node), NAMES[node.id], "wrong function")

    def _attribute(self, node: ast.Attribute) -> Iterator[tuple[int, int, str, str]]:
        if node.attr in NAMES and isinstance(node.ctx, ast.Load):
            end = self._span(node)[1]
            yield end - len(node.attr), end, NAMES[node.attr], "wrong function"

    def _call(self, node: ast.Call) -> Iterator[tuple[int, int, str, str]]:
        plain = not any(isinstance(each, ast.Starred) for each in node.args)
        if len(node.args) >= 2 and plain and _name_of(node.func) not in EITHER_WAY:
            first, second = node.args[:2]
            start, end = self._span(first)[0], self._span(second)[1]
            between = self.source[self._span(first)[1] : self._span(second)[0]]
            yield start, end, self._text(second) + between + self._text(first), "swapped arguments"
        if _name_of(node.func) == "range" and plain:
            end = self._span(node.args[-1])[1]
            yield end, end, " - 1", "off by one"

    def _ifexp(self, node: ast.IfExp) -> Iterator[tuple[int, int, str, str]]:
        yield from self._negated(node.test)

    def _if(self, node: ast.If) -> Iterator[tuple[int, int, str, str]]:
        if _name_of(node.test) != "TYPE_CHECKING":
            yield from self._negated(node.test)

    def _negated(self, test: ast.expr) -> Iterator[tuple[int, int, str, str]]:
        yield (*self._span(test), f"(not ({self._text(test)}))", "wrong branch")


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _name_of(node: ast.expr) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def _skipped(node: ast.AST) -> bool:
    if isinstance(node, _SILENT):
        return True
    if isinstance(node, ast.If):
        return _name_of(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.keyword):
        return node.arg == "strict"  # of zip: it says what holds already
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return any(_name_of(target) in {"__all__", "__slots__"} for target in node.targets)
    return False
