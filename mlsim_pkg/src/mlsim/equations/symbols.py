"""How an equation looks in mathematics: SymPy symbols, and TeX from them.

SymPy is imported when the first formula is drawn. Its own Max and Min sort
their arguments, and its sums need an index, so a few functions of ours stand in
for them: they keep the order of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Protocol

from mlsim.errors import need
from mlsim.quantities import term


class Drawn(Protocol):
    """What can be drawn: an equation, as far as its formula goes."""

    @property
    def symbol(self) -> str:
        """The symbol of the result."""

    @property
    def function(self) -> Callable[..., Any]:
        """What computes it."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its arguments."""

    @property
    def sums(self) -> bool:
        """Whether it adds up over operators."""


_TEX = {
    "max": r"\max\left({0},\, {1}\right)",
    "min": r"\min\left({0},\, {1}\right)",
    "exceeds": r"\left[{0} > {1}\right]",
    "floor": r"\left\lfloor {0} \right\rfloor",
    "ceil": r"\left\lceil {0} \right\rceil",
    "square_root": r"\sqrt{{{0}}}",
    "log2": r"\log_2 {0}",
    "decay": r"e^{{-{0}}}",
    "greatest": r"\hat{{z}}_{{{0}}}",
    "missed": r"\binom{{{0} - {1}}}{{{2}}} \Big/ \binom{{{0}}}{{{2}}}",
    "total": r"\sum_i {1}\, {0}",
}


@cache
def function(name: str) -> Any:
    """Return a SymPy function that prints as its TeX pattern."""
    sympy = need("sympy", "drawing a formula", "math")

    def _latex(self: Any, printer: Any, **_: Any) -> str:
        return _TEX[name].format(*(printer._print(argument) for argument in self.args))

    return type(name, (sympy.Function,), {"_latex": _latex, "nargs": None})


@cache
def symbol(name: str) -> Any:
    """Return the SymPy symbol of a quantity, printed as the vocabulary says.

    >>> symbol("memory_bandwidth")
    memory_bandwidth
    """
    return need("sympy", "drawing a formula", "math").Symbol(name, positive=True)


def expression(equation: Drawn) -> Any:
    """Return the right-hand side as a SymPy expression, unevaluated."""
    sympy = need("sympy", "drawing a formula", "math")
    with sympy.evaluate(False):
        drawn = equation.function(*(symbol(name) for name in equation.inputs))
        return _flat(sympy, drawn)


def _flat(sympy: Any, drawn: Any) -> Any:
    """Turn a sum of sums into one, in the order of the source: (a + b) + c is a + b + c."""
    if not getattr(drawn, "args", ()):
        return drawn
    arguments = [_flat(sympy, each) for each in drawn.args]
    if isinstance(drawn, sympy.Add):
        terms = [each.args if isinstance(each, sympy.Add) else (each,) for each in arguments]
        return sympy.Add(*(term for group in terms for term in group), evaluate=False)
    kind = type(drawn)
    return kind(*arguments, evaluate=False) if kind in (sympy.Mul, sympy.Pow) else kind(*arguments)


def tex(equation: Drawn) -> str:
    r"""Return the formula in TeX, drawn from the function that computes.

    >>> from mlsim.equations import EQUATIONS
    >>> print(tex(EQUATIONS["memory_time"]))
    t_\mathrm{mem} = \frac{D}{\beta}
    """
    from sympy.printing.latex import LatexPrinter  # type: ignore[import-untyped]

    names = {
        symbol(name): indexed(term(name).symbol) if equation.sums else term(name).symbol
        for name in equation.inputs
    }
    printer = LatexPrinter({"order": "none", "symbol_names": names, "mul_symbol": r" \, "})
    return f"{equation.symbol} = {printer.doprint(expression(equation))}"


def indexed(tex_symbol: str) -> str:
    r"""Give a symbol the index of its operator, for a sum over operators.

    >>> indexed("t"), indexed(r"t_\mathrm{mem}")
    ('t_i', 't_{\\mathrm{mem},i}')
    """
    base, _, below = tex_symbol.partition("_")
    return f"{base}_{{{below},i}}" if below else f"{base}_i"


def in_symbols(steps: Iterable[Any], known: Mapping[str, Any], name: str) -> Any:
    """Return a quantity as a SymPy expression that SymPy can work with.

    Parameters
    ----------
    steps
        Equations in an order in which each finds its inputs ready.
    known
        Numbers or symbols; of operators, a list with one for each.
    name
        The quantity.

    >>> from mlsim.equations import EQUATIONS
    >>> known = {"compute_time": 2.0, "memory_time": symbol("memory_time")}
    >>> in_symbols([EQUATIONS["roofline_time"]], known, "roofline_time")
    Max(2, memory_time)
    """
    sympy = need("sympy", "a formula", "math")
    values = dict(known)
    for step in steps:
        inputs = [values[each] for each in step.inputs]
        lists = [each for each in inputs if isinstance(each, list)]
        if not lists:
            values[step.yields] = step.function(*inputs)
            continue
        columns = [each if isinstance(each, list) else [each] * len(lists[0]) for each in inputs]
        rows = [step.function(*row) for row in zip(*columns, strict=True)]
        values[step.yields] = sympy.Add(*rows) if step.sums else rows
    return _worked(sympy, sympy.sympify(values[name]))


def _worked(sympy: Any, drawn: Any) -> Any:
    """Put SymPy's own functions in place of ours, and fractions in place of floats."""
    own = {
        "max": sympy.Max,
        "min": sympy.Min,
        "floor": sympy.floor,
        "ceil": sympy.ceiling,
        "square_root": sympy.sqrt,
        "total": lambda a, count: a * count,
        "exceeds": lambda a, b: sympy.Piecewise((1, a > b), (0, True)),
    }
    theirs = {function(name): each for name, each in own.items()}

    def worked(node: Any) -> Any:
        if not node.args:
            return node
        return theirs.get(node.func, node.func)(*map(worked, node.args))

    return worked(sympy.nsimplify(drawn, rational=True))
