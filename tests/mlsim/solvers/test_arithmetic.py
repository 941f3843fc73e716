"""Physics is in equations: solvers choose and run them, and compute nothing themselves.

A solver that multiplies two quantities has a formula that no page shows and no test of
equations sees. So any arithmetic in `mlsim.solvers` is refused, but for the functions listed
in `fixtures/solver_arithmetic.toml`, each with the reason why what it computes is no physics.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import kept

import mlsim.solvers
from mlsim.quantities import VOCABULARY

FOLDER = Path(mlsim.solvers.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.py"))

# By module and function; "*" is a whole module.
EXPLAINED = tomllib.loads(
    (Path(__file__).parents[2] / "fixtures" / "solver_arithmetic.toml").read_text("utf-8")
)


def arithmetic(source: str) -> Iterator[tuple[str, int, str]]:
    """Yield function, line and text of all arithmetic of a module."""
    yield from _Finder().of(ast.parse(source))


# Functions that are arithmetic by another name.
_CALLS = {
    *("sum", "fsum", "prod", "pow", "mul", "truediv", "floordiv", "divide"),
    *("multiply", "subtract", "dot", "matmul", "einsum", "mean", "fmean", "cumsum", "cumprod"),
    *("accumulate", "reduce", "power", "exp", "log", "log2", "log10", "sqrt"),
}
# Text and tables are put together under these names.
_WRITTEN = {"cells", "lines", "rows", "words"}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)


class _Finder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names: list[str] = []
        self.found: list[tuple[str, int, str]] = []
        self.functions = 0
        self.index = 0

    def of(self, tree: ast.AST) -> list[tuple[str, int, str]]:
        self.visit(tree)
        return self.found

    def _keep(self, node: ast.expr | ast.stmt) -> None:
        self.found.append((".".join(self.names) or "module", node.lineno, ast.unparse(node)))

    def _named(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        # What stands in a function counts as its own.
        inner = self.functions > 0
        self.names += [] if inner else [node.name]
        self.functions += isinstance(node, ast.FunctionDef)
        self.generic_visit(node)
        self.functions -= isinstance(node, ast.FunctionDef)
        self.names = self.names if inner else self.names[:-1]

    visit_FunctionDef = visit_ClassDef = _named  # noqa: N815

    def visit_BinOp(self, node: ast.BinOp) -> None:
        counted = isinstance(node.op, _OPERATORS) and not (_joins(node) or _counts_rows(node))
        if counted and not (self.index and _is_one(node)):
            self._keep(node)
        else:
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        written = getattr(node.target, "id", "") in _WRITTEN or _text_or_list(node.value)
        if isinstance(node.op, _OPERATORS) and not written:
            self._keep(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in _CALLS:
            self._keep(node)
        self.index += name == "range"
        self.generic_visit(node)
        self.index -= name == "range"

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        self.index += 1
        self.visit(node.slice)
        self.index -= 1

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and _typed(key, value):
                self._keep(value)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _typed(target.slice, node.value):
                self._keep(node)
        self.generic_visit(node)


def _text_or_list(node: ast.expr) -> bool:
    """Tell whether it is plainly text, a list, or one of the two."""
    if isinstance(node, ast.IfExp):
        return _text_or_list(node.body) and _text_or_list(node.orelse)
    if isinstance(node, ast.BinOp):
        return _joins(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "join"
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple))


def _joins(node: ast.BinOp) -> bool:
    """Tell whether it joins or repeats text or lists."""
    sides = (_text_or_list(node.left), _text_or_list(node.right))
    if isinstance(node.op, ast.Div):  # a path
        return isinstance(node.right, ast.Constant) and isinstance(node.right.value, str)
    sets = isinstance(node.left, (ast.Set, ast.SetComp)) and isinstance(node.op, ast.Sub)
    return sets or (isinstance(node.op, (ast.Add, ast.Mult)) and any(sides))


def _counts_rows(node: ast.BinOp) -> bool:
    """Tell whether it adds to, or takes from, the length of a list."""
    lengths = [
        isinstance(side, ast.Call) and getattr(side.func, "id", "") == "len"
        for side in (node.left, node.right)
    ]
    return isinstance(node.op, (ast.Add, ast.Sub)) and any(lengths)


def _is_one(node: ast.BinOp) -> bool:
    """Tell whether it goes one place on or back."""
    literal = isinstance(node.right, ast.Constant) and node.right.value == 1
    return literal and isinstance(node.op, (ast.Add, ast.Sub))


def _typed(key: ast.expr, value: ast.expr) -> bool:
    """Tell whether a number is typed for a quantity: none (0) and all (1) are no physics."""
    if not (isinstance(key, ast.Constant) and key.value in VOCABULARY):
        return False
    number = isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
    return number and value.value not in (0, 1)


def test_a_solver_computes_nothing_itself() -> None:
    wrong, gone = [], set(EXPLAINED)
    for path in SOURCES:
        module = path.relative_to(FOLDER).as_posix()
        explained = set(EXPLAINED.get(module, {}))
        found = list(arithmetic(path.read_text(encoding="utf-8")))
        wrong += [
            f"  {module}, line {line}, {name}: {text}"
            for name, line, text in found
            if not {name, "*"} & explained
        ]
        if explained <= {"*", *(name for name, *_ in found)}:
            gone.discard(module)
    assert not wrong, (
        "What an equation should compute:\n" + "\n".join(wrong) + "\n"
        "Make it an equation (CONTRIBUTING, Add an equation) and let the plan, or a call of the "
        "function, compute it. If it is no physics, list its function with the reason."
    )
    assert not gone, "what is explained is gone"


def test_arithmetic_is_found_and_what_is_none_is_not() -> None:
    for name, lines in kept.blocks("solver_arithmetic.txt").items():
        found = [bool(list(arithmetic(f"def solve():\n    {line}"))) for line in lines]
        assert found == [name == "arithmetic"] * len(lines), name
