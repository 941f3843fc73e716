"""What an equation is, and the register of those whose topics were imported.

An equation is a pure function of named quantities. Its arguments' names come
from the vocabulary and its own name is the quantity that it computes, so a
graph of equations needs no wiring.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from types import FunctionType, ModuleType
from typing import Any, cast

from mlsim import quantities
from mlsim.equations.functions import Value
from mlsim.errors import UnknownNameError, nearest
from mlsim.quantities import Term, term
from mlsim.values import KINDS

EQUATIONS: dict[str, Equation] = {}


@dataclass(frozen=True, eq=False)
class Equation:
    """One formula: the function, what it yields, and where it comes from.

    Attributes
    ----------
    name
        The quantity it computes, unless `yields` names another.
    symbol, unit
        Of the result; the vocabulary's.
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
        """Evaluate the equation; of values, as a value."""
        return self.on_values(*values, **named)

    @cached_property
    def on_values(self) -> Callable[..., Any]:
        """The function as its module has it: given values, it returns one."""
        function, kinds, equation = cast("FunctionType", self.function), KINDS, self

        def called(*values: Any, **named: Any) -> Any:
            # Solvers make many of these calls: they pay for one look at the types.
            given = (*values, *named.values()) if named else values
            if kinds and not kinds.isdisjoint(map(type, given)):
                from mlsim.equations.called import given_values

                return given_values(equation, values, named)
            return function(*values, **named)

        # With the globals of the equation's module, which tell its question.
        found = FunctionType(
            called.__code__, function.__globals__, self.name, None, called.__closure__
        )
        return update_wrapper(found, function)

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

    def with_values(self, shown: Mapping[str, str]) -> str:
        """Return the expression with values, as text, in the place of names.

        >>> from mlsim.equations.roofline import memory_time
        >>> known = {"bytes_moved": "2 GB", "memory_bandwidth": "2,039 GB/s"}
        >>> EQUATIONS["memory_time"].with_values(known)
        '2 GB / 2,039 GB/s'
        """
        return re.sub(r"\b[a-z_]+\b", lambda match: shown.get(match[0], match[0]), self.expression)

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
        # Only pages and tests ask for it; a solve does without this import.
        import doctest

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
    *, source: str, yields: str | None = None, sums: bool = False, counts: bool = False
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a function as an equation; given values, it returns a value with its origin.

    Symbol and unit of the result are those that the vocabulary has for `yields`, or for
    the function's own name.

    Raises
    ------
    UnknownNameError
        If its name or an argument is not in the vocabulary; suggests the nearest.
    ValueError
        If the name is taken, or the docstring lacks what the math page shows.
    """

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        name = function.__name__
        entry = _entry(name, yields or name)
        inputs = tuple(inspect.signature(function).parameters)
        for argument in inputs:
            _entry(name, argument)
        if name in EQUATIONS:
            raise ValueError(f"two equations are called {name}: rename one, and use `yields`.")
        _check_docstring(function)
        EQUATIONS[name] = made = Equation(
            name=name,
            yields=entry.name,
            function=function,
            inputs=inputs,
            symbol=entry.symbol,
            unit=entry.unit,
            source=source,
            sums=sums,
            counts=counts,
            module=function.__module__,
        )
        return made.on_values

    return register


def _entry(equation_name: str, quantity: str) -> Term:
    """Return the vocabulary's entry for the result or an argument of an equation."""
    try:
        return term(quantity)
    except UnknownNameError:
        raise UnknownNameError(
            f"equation {equation_name}: no quantity is called {quantity!r}."
            f"{nearest(quantity, quantities.VOCABULARY)} Use the vocabulary's name, or add a "
            "row for a new quantity in mlsim/quantities/."
        ) from None


def _check_docstring(function: Callable[..., Value]) -> None:
    """Refuse an equation that does not say what the math page shows of it."""
    if sys.flags.optimize > 1:
        return  # python -OO drops all docstrings
    words, name = function.__doc__ or "", function.__name__
    needed = {
        "a first line that says what it is, and ends with a full stop": words.partition("\n")[
            0
        ].endswith("."),
        'a sentence on a line of its own that begins with "Valid" and tells where it holds': (
            re.search(r"^\s*Valid\b", words, re.MULTILINE)
        ),
        f"a worked example, such as >>> {name}(2.0, 4.0), and its result": f">>> {name}(" in words,
    }
    missing = [what for what, there in needed.items() if not there]
    if missing:
        raise ValueError(f"equation {name}: its docstring needs {'; and '.join(missing)}.")
