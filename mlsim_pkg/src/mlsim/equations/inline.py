"""Equations written into one another: what is the same is computed once, what is fixed before.

A folded plan is run for one batch after another. Where equations are called one by one, each
works out again what another has, and what no batch changes. Here their expressions become one
function; not a sum, nor the order of its terms, is changed by that.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any, TypeGuard

from mlsim.equations import functions
from mlsim.equations.registry import Equation

_FUNCTIONS = ("maximum", "minimum", "exceeds", "floor", "ceil", "square_root", "log2", "total")
# What NumPy does alike, without a look at what it is given.
_OF_ARRAYS = {
    "maximum": "maximum",
    "minimum": "minimum",
    "floor": "floor",
    "ceil": "ceil",
    "log2": "log2",
}
_SIGNS: Mapping[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}


@dataclass
class _Node:
    """An expression whose parts are others: text with a place for each."""

    text: str
    parts: tuple[int, ...]
    fixed: bool
    uses: int = 0
    name: str = ""


@dataclass(frozen=True)
class Inlined:
    """Steps as code.

    `before` are expressions that nothing changes, by name, in order; `lines` are statements
    that compute what is left from them, and from what is known.
    """

    before: tuple[tuple[str, CodeType], ...]
    lines: tuple[str, ...]


@dataclass
class _Writer:
    fixed: frozenset[str]
    nodes: list[_Node] = field(default_factory=list)
    places: dict[Any, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)

    def node(self, text: str, parts: tuple[int, ...], *, fixed: bool) -> int:
        """Return the place of an expression; one that is there already is not made again."""
        key = (text, parts)
        if key not in self.places:
            self.places[key] = len(self.nodes)
            self.nodes.append(_Node(text, parts, fixed))
        return self.places[key]

    def value(self, name: str) -> int:
        """Return the place of a quantity."""
        if name not in self.values:
            fixed = name in self.fixed
            place = self.node(f"at_{name}" if fixed else name, (), fixed=fixed)
            self.nodes[place].name = self.nodes[place].text
            self.values[name] = place
        return self.values[name]

    def written(self, tree: ast.expr) -> int:
        """Return the place of an expression of an equation.

        Raises
        ------
        TypeError
            If it is written otherwise than equations are.
        """
        if isinstance(tree, ast.Name):
            return self.value(tree.id)
        if isinstance(tree, ast.Constant):
            return self.node(f"number({tree.value!r})", (), fixed=True)
        if _is_power(tree):
            return self._joined(f"({{}} ** {ast.unparse(tree.right)})", (self.written(tree.left),))
        if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS:
            parts = (self.written(tree.left), self.written(tree.right))
            return self._joined(f"({{}} {_SIGNS[type(tree.op)]} {{}})", parts)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return self._joined("(-{})", (self.written(tree.operand),))
        if isinstance(tree, ast.Call) and getattr(tree.func, "id", "") in _FUNCTIONS:
            return self._called(ast.unparse(tree.func), tuple(map(self.written, tree.args)))
        raise TypeError(f"no expression of an equation: {ast.unparse(tree)}")

    def _called(self, name: str, parts: tuple[int, ...]) -> int:
        if name == "total" and self.nodes[parts[1]].fixed:
            adds = self.node("adding({})", parts[1:], fixed=True)
            return self._joined("{1}({0})", (parts[0], adds))
        return self._joined(f"{name}({', '.join(['{}'] * len(parts))})", parts)

    def _joined(self, text: str, parts: tuple[int, ...]) -> int:
        return self.node(text, parts, fixed=all(self.nodes[each].fixed for each in parts))


def _is_power(tree: ast.expr) -> TypeGuard[ast.BinOp]:
    """Tell whether it is a power of a bare number, which NumPy has ways of its own for."""
    power = isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow)
    return power and isinstance(tree.right, ast.Constant)  # type: ignore[attr-defined]


@lru_cache(maxsize=1024)
def inlined(
    steps: tuple[Equation, ...], fixed: frozenset[str], wanted: tuple[str, ...]
) -> Inlined | None:
    """Return steps as code; None if one of them is written otherwise than equations are.

    Parameters
    ----------
    steps
        Equations in an order in which each finds its inputs ready.
    fixed
        Quantities that are known before, and never change.
    wanted
        Quantities that are asked for.

    >>> from mlsim.equations.roofline import memory_time
    >>> from mlsim.equations import EQUATIONS
    >>> steps, fixed = (EQUATIONS["memory_time"],), frozenset(("memory_bandwidth",))
    >>> inlined(steps, fixed, ("memory_time",)).lines
    ('memory_time = (bytes_moved / at_memory_bandwidth)', 'del bytes_moved')
    """
    writer = _Writer(fixed)
    try:
        for step in steps:
            tree = ast.parse(step.expression, mode="eval").body
            writer.values[step.yields] = writer.written(tree)
    except (TypeError, OSError):  # the latter where no sources are there to read
        return None
    return _code(writer, tuple(dict.fromkeys(name for name in wanted if name in writer.values)))


def _code(writer: _Writer, wanted: Sequence[str]) -> Inlined:
    nodes = writer.nodes
    asked = {writer.values[name] for name in wanted}
    needed = _needed(nodes, asked)
    for place in needed:
        for part in nodes[place].parts:
            # What is fixed counts for those that are not.
            nodes[part].uses += 1
    before: list[tuple[str, CodeType]] = []
    lines: list[str] = []
    used: list[set[str]] = []
    texts: dict[int, str] = {}
    names: dict[int, set[str]] = {}
    for place in sorted(needed):
        node = nodes[place]
        if node.name:
            texts[place] = node.text
            names[place] = set() if node.fixed else {node.text}
            continue
        text = node.text.format(*(texts[part] for part in node.parts))
        inner = set().union(*(names[part] for part in node.parts)) if node.parts else set()
        if node.fixed:
            name = f"fixed_{place}"
            before.append((name, compile(f"number({text})", "<folded plan>", "eval")))
            texts[place], names[place] = name, set()
        elif node.uses > 1 or place in asked:
            name = next((each for each in wanted if writer.values[each] == place), f"part_{place}")
            lines.append(f"{name} = {text}")
            used.append(inner)
            texts[place], names[place] = name, {name}
        else:
            texts[place], names[place] = text, inner
    given = {name: texts[place] for name, place in writer.values.items() if name in wanted}
    doubles = [f"{name} = {text}" for name, text in given.items() if name != text]
    return Inlined(tuple(before), (*_freed(lines, used, set(given.values())), *doubles))


def _needed(nodes: Sequence[_Node], asked: set[int]) -> set[int]:
    found: set[int] = set()
    stack = list(asked)
    while stack:
        place = stack.pop()
        if place not in found:
            found.add(place)
            stack.extend(nodes[place].parts)
    return found


def _freed(lines: Sequence[str], used: Sequence[set[str]], kept: set[str]) -> list[str]:
    """Return lines that also give back the memory of what no later one uses.

    A block's memory is given back while it is still in the cache.
    """
    last = {name: index for index, names in enumerate(used) for name in names}
    found = []
    for index, line in enumerate(lines):
        found.append(line)
        done = sorted(name for name, end in last.items() if end == index and name not in kept)
        found += [f"del {', '.join(done)}"] if done else []
    return found


def adding(repeats: Any) -> Callable[[Any], Any]:
    """Return what adds up over operators, each as often as it stands in the network.

    >>> adding(3.0)(2.0)
    6.0
    """
    axes = getattr(repeats, "ndim", 0)
    if not axes:
        return lambda values: functions.total(values, repeats)
    along, whole = repeats.ravel().dot, float(repeats.sum())

    def added(values: Any) -> Any:
        # Without an axis of operators the same value holds for each of them.
        return along(values) if getattr(values, "ndim", 0) >= axes else values * whole

    return added


def library(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the functions of expressions: NumPy's own where there are arrays.

    >>> sorted(library({}))[:2]
    ['adding', 'ceil']
    """
    found: dict[str, Any] = {name: getattr(functions, name) for name in _FUNCTIONS}
    found |= {"adding": adding, "number": _same}
    numpy = sys.modules.get("numpy")
    if numpy is not None and any(getattr(each, "ndim", 0) for each in values.values()):
        found |= {ours: getattr(numpy, theirs) for ours, theirs in _OF_ARRAYS.items()}
        found |= {"number": _number, "exceeds": _exceeds}
    return found


def _same(value: Any) -> Any:
    return value


def _number(value: Any) -> Any:
    """Return a number as an array without axes: NumPy then need not look at what it is."""
    if isinstance(value, (int, float)):
        return sys.modules["numpy"].asarray(float(value))
    return value


def _exceeds(a: Any, b: Any) -> Any:
    """Return numbers, since NumPy multiplies those faster than truths."""
    return sys.modules["numpy"].greater(a, b).astype(float)
