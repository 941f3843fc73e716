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
from functools import cached_property, partial, update_wrapper
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from mlsim.equations.functions import Value
from mlsim.errors import UnitError, UnknownNameError, nearest
from mlsim.quantities import VOCABULARY, term
from mlsim.units import factor
from mlsim.values import KINDS, Origin, counts

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


EQUATIONS: dict[str, Equation] = {}


class Topic:
    """The equations that answer one question; called, it registers a function as one of them.

    A module begins each topic with `NAME = equation = Topic(...)`, so that `@equation` below
    stands for the topic. Topics are in the order of their names, whichever was imported first.
    """

    def __init__(self, name: str, question: str) -> None:
        self.name, self.question = name, question

    def __call__(
        self, *, source: str, yields: str | None = None, sums: bool = False, counts: bool = False
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
            name, code = function.__name__, function.__code__
            inputs = code.co_varnames[: code.co_argcount]
            for quantity in (yields or name, *inputs):
                if quantity not in VOCABULARY:
                    raise UnknownNameError(
                        f"equation {name}: no quantity is called {quantity!r}."
                        f"{nearest(quantity, VOCABULARY)} Use the vocabulary's name, or add a "
                        "line for a new quantity in mlsim/data/quantities/."
                    )
            if name in EQUATIONS:
                raise ValueError(f"two equations are called {name}: rename one, and use `yields`.")
            _check_docstring(function)
            made = Equation(name, yields or name, function, inputs, source, self, sums, counts)
            EQUATIONS[name] = made
            return made.on_values

        return register


@dataclass(frozen=True, eq=False)
class Equation:
    """One formula: the function, what it yields, and where it comes from.

    Attributes
    ----------
    name
        The quantity it computes, unless `yields` names another.
    source
        Key of a reference in `references.bib`.
    topic
        Whose question it answers.
    sums
        Whether it adds up over operators.
    counts
        Whether it counts things: its arguments are plain numbers, and the
        result is that many of `unit`.
    """

    name: str
    yields: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    source: str
    topic: Topic
    sums: bool = False
    counts: bool = False

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Evaluate the equation; of values, as a value."""
        return self.on_values(*values, **named)

    @cached_property
    def on_values(self) -> Callable[..., Any]:
        """The function as its module has it: given values, it returns one."""
        function, kinds, equation = cast("FunctionType", self.function), KINDS, self
        of_values = given_values  # which is not among the globals below

        def called(*values: Any, **named: Any) -> Any:
            # Solvers make many of these calls: they pay for one look at the types.
            given = (*values, *named.values()) if named else values
            if kinds and not kinds.isdisjoint(map(type, given)):
                return of_values(equation, values, named)
            return function(*values, **named)

        # With the globals of its module, by which doctest knows whose it is.
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
    def symbol(self) -> str:
        """Of the result; the vocabulary's."""
        return term(self.yields).symbol

    @property
    def unit(self) -> str:
        """Of the result; the vocabulary's."""
        return term(self.yields).unit

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


def equations_of(*topics: Topic) -> tuple[Equation, ...]:
    """Return the equations of these topics, in the order of topics and of their own."""
    ordered = sorted(topics, key=lambda topic: topic.name)
    return tuple(each for topic in ordered for each in EQUATIONS.values() if each.topic is topic)


def sorted_by_topic() -> dict[str, Equation]:
    """Return the register with its topics in order, whichever was imported first."""
    ordered = sorted(EQUATIONS.items(), key=lambda item: item[1].topic.name)
    EQUATIONS.clear()
    EQUATIONS.update(ordered)
    return EQUATIONS


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


def given_values(equation: Equation, values: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Compute in base units, and give the result its origin; what is many has none.

    >>> from mlsim import Hardware, given
    >>> from mlsim.equations.roofline import memory_time
    >>> time = memory_time(given("2 GB", "weights"), Hardware.Cloud.A100.memory.bandwidth)
    >>> print(time, time.name, memory_time(2e9, 2e12))
    981 µs memory time 0.001
    """
    given = inspect.signature(equation.function).bind(*values, **named).arguments
    if not all(isinstance(each, (float, int)) or _is_value(each) for each in given.values()):
        return equation.function(**given)
    numbers = {name: _number(equation, name, each) for name, each in given.items()}
    result = equation.function(**numbers)
    if not isinstance(result, (float, int)):
        return result
    return term(equation.yields).scaled(float(result), partial(_origin, equation, given, numbers))


def _is_value(argument: Any) -> bool:
    return type(argument) in KINDS and isinstance(argument.magnitude, (float, int))


def _number(equation: Equation, name: str, argument: Any) -> float:
    """Return an argument in the base unit that the equation takes.

    Raises
    ------
    UnitError
        If a value measures something else; tells what the equation takes.
    """
    if not _is_value(argument):
        return float(argument)
    unit, has = term(name).unit, argument.base
    try:
        # One kind of count may stand for another: tokens are rows of a product.
        alike = counts(unit) and counts(has) and unit.endswith("/s") == has.endswith("/s")
        return float(argument.si if alike else argument.si * factor(has, unit))
    except UnitError:
        takes = ", ".join(f"{each} ({term(each).unit})" for each in equation.inputs)
        raise UnitError(
            f"{equation.name}: {name} was given in {has}, and is in {unit}. "
            f"It takes, in this order, {takes}."
        ) from None


def _origin(
    equation: Equation, given: Mapping[str, Any], numbers: Mapping[str, float], value: Quantity
) -> Origin:
    """Write the formula, what goes in, what comes out, and what is known of the inputs."""
    name = equation.yields.replace("_", " ")
    shown = {each: term(each).text(number) for each, number in numbers.items()}
    worked = equation.with_values(shown).replace(" * ", " × ")
    result, source = term(equation.yields).text(value.si), f"[@{equation.source}]"
    briefs = [each.origin.brief for each in given.values() if _is_value(each)]
    known = tuple(dict.fromkeys(filter(None, briefs)))

    def how() -> str:
        lines = [f"{name} = {worked} = **{result}** {source}", f"$${equation.tex}$$"]
        return "\n\n".join([*lines, "\n".join(f"- {each}" for each in known)]).strip()

    def note() -> tuple[str, ...]:
        formula = f"{equation.yields} = {equation.expression}".replace(" * ", " × ")
        return f"{formula} = {worked} = {result} {source}", *known

    return Origin(name, f"{name} = {worked} = {result} {source}", how, note)
