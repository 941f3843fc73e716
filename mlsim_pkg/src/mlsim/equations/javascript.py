"""Equations as JavaScript, from their source: a page then computes what the package computes.

An equation is one expression of arithmetic and a few functions, so its syntax tree says all of
it. A plan of equations becomes one function: what has one value for each operator stands in a
loop over them, and sums over operators close the loop.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mlsim.equations.registry import Equation

# How tightly signs bind, as in Python and in JavaScript.
_SUM, _PRODUCT, _SIGN, _POWER, _WHOLE = range(5)
_SIGNS: Mapping[type, tuple[str, int]] = {
    ast.Add: ("+", _SUM),
    ast.Sub: ("-", _SUM),
    ast.Mult: ("*", _PRODUCT),
    ast.Div: ("/", _PRODUCT),
    ast.Pow: ("**", _POWER),
}
# Signs of Python that JavaScript lacks, or reads otherwise where a number is negative.
_CALLED: Mapping[type, str] = {ast.FloorDiv: "floor_divided", ast.Mod: "remainder"}

# The functions of equations: each does for numbers what Python's does, to the last digit.
HELPERS: Mapping[str, str] = {
    "maximum": "const maximum=(a,b)=>a>=b?a:b;",
    "minimum": "const minimum=(a,b)=>a<=b?a:b;",
    "exceeds": "const exceeds=(a,b)=>a>b?1:0;",
    "floor": "const floor=Math.floor;",
    # Rounded up, -0.5 is 0 and not -0: one over it has another sign.
    "ceil": "const ceil=a=>Math.ceil(a)+0;",
    "square_root": "const square_root=Math.sqrt;",
    "log2": "const log2=Math.log2;",
    "decay": "const decay=a=>Math.exp(-a);",
    "geometric": "const geometric=(r,n)=>r===1?n:(1-r**n)/(1-r);",
    "missed": (
        "const missed=(n,m,k)=>{let s=1;for(let t=0;t<Math.trunc(k);t++)"
        "s*=Math.max(n-m-t,0)/(n-t);return s;};"
    ),
    # Wichura's rational functions (AS 241), as in Python's `statistics`.
    "greatest": (
        "const greatest=n=>{const p=.5264**(1/n),q=p-.5,f=(r,c)=>c.reduce((s,x)=>s*r+x,0);"
        "if(Math.abs(q)<=.425){const r=.180625-q*q;return q*"
        "f(r,[2509.0809287301226727,33430.575583588128105,67265.770927008700853,"
        "45921.953931549871457,13731.693765509461125,1971.5909503065514427,"
        "133.14166789178437745,3.387132872796366608])/"
        "f(r,[5226.495278852545925,28729.085735721942674,39307.89580009271061,"
        "21213.794301586595867,5394.1960214247511077,687.1870074920579083,"
        "42.313330701600911252,1]);}"
        "let r=Math.sqrt(-Math.log(q<0?p:1-p)),x;"
        "if(r<=5){r-=1.6;x="
        "f(r,[7.7454501427834140764e-4,.0227238449892691845833,.24178072517745061177,"
        "1.27045825245236838258,3.64784832476320460504,5.7694972214606914055,"
        "4.6303378461565452959,1.42343711074968357734])/"
        "f(r,[1.05075007164441684324e-9,5.475938084995344946e-4,.0151986665636164571966,"
        ".14810397642748007459,.68976733498510000455,1.6763848301838038494,"
        "2.05319162663775882187,1]);}"
        "else{r-=5;x="
        "f(r,[2.01033439929228813265e-7,2.71155556874348757815e-5,.0012426609473880784386,"
        ".026532189526576123093,.29656057182850489123,1.7848265399172913358,"
        "5.4637849111641143699,6.6579046435011037772])/"
        "f(r,[2.04426310338993978564e-15,1.4215117583164458887e-7,1.8463183175100546818e-5,"
        "7.868691311456132591e-4,.0148753612908506148525,.13692988092273580531,"
        ".59983220655588793769,1]);}"
        "return q<0?-x:x;};"
    ),
    "remainder": (
        "const remainder=(a,b)=>{const m=a%b;return m?(b<0)!==(m<0)?m+b:m:Math.sign(b)*0;};"
    ),
    "floor_divided": (
        "const floor_divided=(a,b)=>{const m=a%b;let d=(a-m)/b;if(m&&(b<0)!==(m<0))d-=1;"
        "const f=Math.floor(d);return d-f>.5?f+1:f;};"
    ),
}
# What NumPy does of columns: what is no number stays none.
_OF_COLUMNS = {"maximum": "Math.max", "minimum": "Math.min"}
_RESERVED = frozenset(
    (
        *("await break case catch class const continue debugger default delete do else enum"),
        *("export extends false finally for function if import in instanceof let new null"),
        *("return static super switch this throw true try typeof var void while with yield"),
    )
)


@dataclass
class Writer:
    """Writes expressions; `named` says how each quantity is called, if otherwise."""

    named: Mapping[str, str] = field(default_factory=dict)
    # Which of the helpers were needed so far.
    used: set[str] = field(default_factory=set)

    def text(self, tree: ast.expr, least: int = _SUM, *, column: bool = False) -> str:
        """Return an expression, in parentheses where it binds less than `least`.

        Raises
        ------
        TypeError
            If it is written otherwise than equations are.

        >>> Writer().text(ast.parse("(a + b) * -c ** 2 - (d - e)", mode="eval").body)
        '(a+b)*(-(c**2))-(d-e)'
        """
        binds, text = self._written(tree, column)
        return text if binds >= least else f"({text})"

    def _written(self, tree: ast.expr, column: bool) -> tuple[int, str]:
        if isinstance(tree, ast.Name):
            return _WHOLE, self.named.get(tree.id, tree.id)
        if isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float)):
            return _WHOLE, number(tree.value)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return _SIGN, f"-{self.text(tree.operand, _WHOLE, column=column)}"
        if isinstance(tree, ast.BinOp) and type(tree.op) in _CALLED:
            return self._called(_CALLED[type(tree.op)], (tree.left, tree.right), column)
        if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS:
            sign, binds = _SIGNS[type(tree.op)]
            # A power binds from the right, and has no bare sign before it; all else from the left.
            power = binds == _POWER
            left = self.text(tree.left, binds + power, column=column)
            right = self.text(tree.right, binds + (not power), column=column)
            # Two signs in a row would be another sign.
            right = f"({right})" if right.startswith("-") else right
            return binds, f"{left}{sign}{right}"
        if isinstance(tree, ast.Call) and not tree.keywords:
            return self._called(ast.unparse(tree.func), tree.args, column)
        raise TypeError(f"no expression of an equation: {ast.unparse(tree)}")

    def _called(self, name: str, parts: Iterable[ast.expr], column: bool) -> tuple[int, str]:
        inner = ",".join(self.text(each, column=column) for each in parts)
        if column and name in _OF_COLUMNS:
            return _WHOLE, f"{_OF_COLUMNS[name]}({inner})"
        if name not in HELPERS:
            raise TypeError(f"no function of an equation: {name}")
        self.used.add(name)
        return _WHOLE, f"{name}({inner})"


def number(value: float) -> str:
    """Return a number as JavaScript reads it.

    >>> number(8.0), number(0.25), number(1e30), number(math.inf)
    ('8', '.25', '1e+30', 'Infinity')
    """
    if isinstance(value, float) and (math.isinf(value) or math.isnan(value)):
        return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = repr(float(value))
    return text[1:] if text.startswith("0.") else text


def helpers(used: Collection[str]) -> str:
    """Return the source of those helpers that are used, a line each."""
    return "".join(f"{text}\n" for name, text in HELPERS.items() if name in used)


def module(equations: Iterable[Equation]) -> str:
    """Return equations of single numbers as one module that exports each by its name."""
    writer = Writer()
    lines = [f"export {_arrow(each, writer)}\n" for each in equations]
    return helpers(writer.used) + "".join(lines)


def _arrow(equation: Equation, writer: Writer) -> str:
    tree = _Alone().visit(_tree(equation))
    return f"const {equation.name}=({','.join(equation.inputs)})=>{writer.text(tree)};"


def _tree(equation: Equation) -> ast.expr:
    return ast.parse(equation.expression, mode="eval").body


class _Alone(ast.NodeTransformer):
    """Writes a sum over operators as the product that it is for one."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if ast.unparse(node.func) != "total":
            return node
        return ast.BinOp(node.args[0], ast.Mult(), node.args[1])


def planned(
    name: str,
    steps: Sequence[Equation],
    moving: Sequence[str],
    columns: Collection[str],
    wanted: Sequence[str],
    used: set[str],
    called: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the steps of a plan as one function of JavaScript.

    It takes an object with all that is fixed by name, numbers and columns, and then what moves,
    in order; it returns an object with what is wanted: numbers, or arrays of them where each
    operator has its own.

    Parameters
    ----------
    name
        Of the function.
    steps
        Equations in an order in which each finds its inputs ready.
    moving
        Quantities that are arguments; they are numbers.
    columns
        Which of the known quantities have one value for each operator.
    wanted
        Quantities to return.
    used
        Names of helpers: those that are needed are added.
    called
        Names of what is fixed in the object, where they are others.

    Raises
    ------
    TypeError
        If an equation is written otherwise than equations are.

    >>> from mlsim.equations import EQUATIONS
    >>> steps = [EQUATIONS["compute_time"], EQUATIONS["total_compute_time"]]
    >>> columns, used = ("flops", "repeats"), set()
    >>> print(planned("f", steps, ["peak_flops"], columns, ["total_compute_time"], used))
    const f=(c,peak_flops)=>{
    let sum0=0;
    for(let i=0;i<c.repeats.length;i++){
    const compute_time=c.flops[i]/peak_flops;
    sum0+=compute_time*c.repeats[i];
    }
    const total_compute_time=sum0;
    return {total_compute_time};};
    """
    found = Function(moving, columns, wanted, used, called)
    for step in steps:
        found.add(step)
    return f"const {name}=({','.join(('c', *moving))})=>{{\n{found.body()}}};"


class Function:
    """A plan's lines, by level: how many sums over operators stand before one."""

    def __init__(
        self,
        moving: Sequence[str],
        columns: Collection[str],
        wanted: Sequence[str],
        used: set[str],
        called: Mapping[str, str],
    ) -> None:
        self.columns, self.wanted, self.used, self.called = columns, wanted, used, called
        # Where each quantity is made; which of them have a value for each operator.
        self.level: dict[str, int] = dict.fromkeys(moving, 0)
        self.many: set[str] = set()
        # Columns that a later loop reads, or that are wanted.
        self.kept: set[str] = set()
        self.lines: dict[int, list[tuple[str, str]]] = {}
        self.loops: dict[int, list[tuple[str, str]]] = {}
        self.sums: dict[str, tuple[str, int]] = {}
        self.along = ""

    def add(self, step: Equation) -> None:
        """Add an equation's line."""
        made, tree = step.yields, _Totals(self).visit(_tree(step))
        level, many = self._place(tree)
        text = self._text(tree, level, many)
        self.level[made] = level
        if many:
            self.many.add(made)
            self.loops.setdefault(level, []).append((made, text))
        else:
            self.lines.setdefault(level, []).append((made, text))

    def total(self, values: ast.expr, repeats: ast.expr) -> ast.expr:
        """Return what stands for a sum over operators, whose lines are added."""
        level, many = self._place(values)
        upto, counted = self._place(repeats)
        if not counted:
            return ast.BinOp(values, ast.Mult(), repeats)
        level = max(level, upto)
        each = self._text(repeats, level, True, _PRODUCT)
        if many:
            each = f"{self._text(values, level, True, _PRODUCT)}*{each}"
        if (each, level) not in self.sums.values():
            self.sums[self.sum_of(each)] = (each, level)
        name = next(name for name, sum_ in self.sums.items() if sum_ == (each, level))
        self.level[name] = level + 1
        total = ast.Name(name)
        # Where all operators have the same value, their number is added up.
        return total if many else ast.BinOp(values, ast.Mult(), total)

    def sum_of(self, _each: str) -> str:
        """Return the name of a new sum."""
        return f"sum{len(self.sums)}"

    def _place(self, tree: ast.expr) -> tuple[int, bool]:
        """Return the level at which an expression is known, and whether it is a column."""
        names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
        names -= _functions(tree)
        level = max((self.level.get(each, 0) for each in names), default=0)
        return level, any(each in self.many or each in self.columns for each in names)

    def _text(self, tree: ast.expr, level: int, many: bool, least: int = _SUM) -> str:
        names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
        named = {each: self.named(each, level) for each in names - _functions(tree)}
        return Writer(named, self.used).text(tree, least, column=many)

    def named(self, name: str, level: int) -> str:
        """Return how a quantity is read at a level."""
        if name in self.many:
            if self.level[name] == level:
                return name
            self.kept.add(name)
            return f"all_{name}[i]"
        if name in self.level:
            return name
        fixed = f"c.{self.called.get(name, name)}"
        if name not in self.columns:
            return fixed
        self.along = fixed
        return f"{fixed}[i]"

    def body(self) -> str:
        """Return all lines, in an order in which each finds its inputs ready."""
        self.kept |= self.many & set(self.wanted)
        starts = [f"all_{name}=[]" for name in sorted(self.kept)]
        starts += [f"{name}=0" for name in self.sums]
        found = [f"let {','.join(starts)};\n"] if starts else []
        for level in range(1 + max((*self.lines, *self.loops, *self._ends()), default=0)):
            found += [f"const {name}={text};\n" for name, text in self.lines.get(level, [])]
            inner = []
            for name, text in self.loops.get(level, []):
                inner.append(f"const {name}={text};\n")
                inner += [f"all_{name}.push({name});\n"] if name in self.kept else []
            inner += [f"{name}+={each};\n" for name, (each, at) in self.sums.items() if at == level]
            if inner:
                found += [f"for(let i=0;i<{self.along}.length;i++){{\n", *inner, "}\n"]
        return "".join((*found, f"return {{{','.join(map(self._returned, self.wanted))}}};"))

    def _ends(self) -> tuple[int, ...]:
        return tuple(at for _, at in self.sums.values())

    def _returned(self, name: str) -> str:
        if name in self.many:
            return f"{name}:all_{name}"
        return name if name in self.level else f"{name}:c.{self.called.get(name, name)}"


def _functions(tree: ast.expr) -> set[str]:
    return {each.func.id for each in ast.walk(tree) if _calls(each)}  # type: ignore[attr-defined]


def _calls(node: Any) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


class _Totals(ast.NodeTransformer):
    """Takes sums over operators out of an expression, the innermost first."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if ast.unparse(node.func) != "total":
            return node
        return self.function.total(*node.args)
