"""What an equation is, and the register of those whose topics were imported.

An equation is a pure function of named quantities. Its arguments' names come
from the vocabulary and its own name is the quantity that it computes, so a
graph of equations needs no wiring.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from mlsim.quantities import term

EQUATIONS: dict[str, Equation] = {}


@dataclass(frozen=True, eq=False)
class Equation:
    """One formula: the function, what it yields, and where it comes from.

    Attributes
    ----------
    name
        The quantity it computes, unless `yields` names another.
    symbol, unit
        Of the result, as the vocabulary has them.
    source
        Key of a reference in `references.bib`.
    sums
        Whether it adds up over operators.
    counts
        Whether it counts things: its arguments are plain numbers, and the
        result is that many of `unit`.
    module
        Where it stands, which tells the question that it answers.
    """

    name: str
    yields: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    symbol: str
    unit: str
    source: str
    sums: bool = False
    counts: bool = False
    module: str = ""

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Evaluate the equation."""
        return self.function(*values, **named)

    @cached_property
    def expression(self) -> str:
        """The right-hand side, as the source has it.

        >>> from mlsim.equations.roofline import memory_time
        >>> EQUATIONS["memory_time"].expression
        'bytes_moved / memory_bandwidth'
        """
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function)))
        returned = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
        return ast.unparse(returned[0].value) if returned and returned[0].value else ""

    @property
    def meaning(self) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def question(self) -> str:
        """The question of the module that the equation stands in."""
        found: str = self.function.__globals__["QUESTION"]
        return found

    @property
    def code(self) -> str:
        """The source of the function, without its decorator and docstring."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function)))
        function = tree.body[0]
        assert isinstance(function, ast.FunctionDef)
        body = "\n".join(f"    {ast.unparse(line)}" for line in function.body[1:])
        return f"def {self.name}({', '.join(self.inputs)}):\n{body}"

    @property
    def assumptions(self) -> str:
        """What the docstring says that it assumes; empty if nothing."""
        return self._said("Assumes")

    @property
    def validity(self) -> str:
        """Where the docstring says that it holds."""
        return self._said("Valid")

    def _said(self, word: str) -> str:
        """Return the sentence of the docstring that begins with a word."""
        paragraph = rf"^{word}\b.*?(?=^Valid\b|^Assumes\b|^\s*$|\Z)"
        found = re.search(paragraph, inspect.getdoc(self.function) or "", re.DOTALL | re.MULTILINE)
        return " ".join(found[0].split()) if found else ""

    @property
    def tex(self) -> str:
        """The formula in TeX, drawn from the function that computes (needs SymPy)."""
        from mlsim.equations.symbols import tex

        return tex(self)

    @cached_property
    def example(self) -> tuple[dict[str, Any], Any]:
        """The worked example of the docstring: the inputs, and what comes out.

        >>> from mlsim.equations.roofline import memory_time
        >>> EQUATIONS["memory_time"].example
        ({'bytes_moved': 2000000000.0, 'memory_bandwidth': 2000000000000.0}, 0.001)
        """
        first = doctest.DocTestParser().get_examples(inspect.getdoc(self.function) or "")[0]
        call = ast.parse(first.source.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        values = [ast.literal_eval(argument) for argument in call.args]
        return dict(zip(self.inputs, values, strict=True)), ast.literal_eval(first.want.strip())

    def __repr__(self) -> str:
        return f"<Equation {self.yields} = {self.expression}>"


def equations_of(*modules: ModuleType) -> tuple[Equation, ...]:
    """Return the equations that stand in these modules, by module and in their order."""
    names = sorted({module.__name__ for module in modules})
    return tuple(each for name in names for each in EQUATIONS.values() if each.module == name)


def sorted_by_topic() -> dict[str, Equation]:
    """Return the register with its topics in order, whichever was imported first."""
    ordered = sorted(EQUATIONS.items(), key=lambda item: item[1].module)
    EQUATIONS.clear()
    EQUATIONS.update(ordered)
    return EQUATIONS


def equation(
    *,
    symbol: str,
    unit: str,
    source: str,
    yields: str | None = None,
    sums: bool = False,
    counts: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as an equation; the function itself is unchanged.

    Raises
    ------
    UnknownNameError
        If its name or an argument is not in the vocabulary.
    ValueError
        If symbol or unit differ from the vocabulary's, or the name is taken.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        entry = term(yields or name)
        inputs = tuple(inspect.signature(function).parameters)
        for argument in inputs:
            term(argument)
        if (symbol, unit) != (entry.symbol, entry.unit):
            raise ValueError(
                f"equation {name}: symbol and unit ({symbol}, {unit}) differ from the "
                f"vocabulary's ({entry.symbol}, {entry.unit}); change one of the two."
            )
        if name in EQUATIONS:
            raise ValueError(f"two equations are called {name}.")
        module = function.__module__
        EQUATIONS[name] = Equation(
            name, entry.name, function, inputs, symbol, unit, source, sums, counts, module
        )
        return function

    return register
