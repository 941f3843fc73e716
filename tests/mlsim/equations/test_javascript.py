"""Equations as JavaScript give what they give in Python, in Node, at hundreds of inputs each."""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts import CLOSE, FEW, TRIED, ask_node, differ

from mlsim.equations import EQUATIONS, Equation, functions, javascript, plan

# Of all equations together, each is tried at fewer inputs than a question.
EACH = 200 if TRIED == FEW else 1000


def drawn(equation: Equation, of: random.Random) -> tuple[float, ...]:
    """Return inputs around the worked example; what is whole there is whole here."""
    found = []
    for name, value in equation.example[0].items():
        number = value * 10 ** of.uniform(-1, 1)
        whole = float(value).is_integer() and value < 1e9
        share = "share" in name or "fraction" in name
        if whole:
            number = float(max(1, round(number)))
        found.append(min(number, 1.0) if share else number)
    return tuple(found)


def inputs(equation: Equation) -> Iterator[tuple[float, ...]]:
    of = random.Random(equation.name)
    yield tuple(float(each) for each in equation.example[0].values())
    for _ in range(EACH):
        yield drawn(equation, of)


def plain(equation: Equation, values: tuple[float, ...]) -> float | None:
    """Return the value in Python; what it refuses is no number in JavaScript.

    None where a root of what is negative is complex, which no question asks for.
    """
    try:
        return float(equation.function(*values))
    except (ZeroDivisionError, OverflowError, ValueError):
        return math.nan
    except TypeError as error:
        if "complex" not in str(error):
            raise
        return None


@pytest.fixture(scope="module")
def of_one() -> list[Equation]:
    """Equations whose worked example has single numbers."""
    return [
        each
        for each in EQUATIONS.values()
        if all(isinstance(value, (int, float)) for value in each.example[0].values())
    ]


def test_each_equation_gives_in_node_what_it_gives_in_python(
    of_one: list[Equation], tmp_path: Path
) -> None:
    assert len(of_one) > 0.9 * len(EQUATIONS)
    asked = [(each, values) for each in of_one for values in inputs(each)]
    source = javascript.module(EQUATIONS.values())
    answers = ask_node(source, [(each.name, values) for each, values in asked], tmp_path)
    wrong = {}
    for (each, values), answer in zip(asked, answers, strict=True):
        mine = plain(each, values)
        if mine is not None and differ(mine, answer) > CLOSE:
            wrong[each.name] = (values, mine, answer)
    assert wrong == {}


def test_functions_are_the_same_at_their_edges(tmp_path: Path) -> None:
    tiny = 2.0**-40
    edges = [-2.5, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1 - tiny, 1 + tiny, 2.0, 3.0, 7.5, 2.0**52 + 1]
    pairs = [(a, b) for a in edges for b in edges]
    alone = {
        "floor": edges,
        "ceil": edges,
        "decay": edges[:-1],
        "log2": [2.0**power for power in range(-60, 61)],
        "greatest": [1.0, 1.5, 2.0, 3.0, 8.0, 256.0, 1e6, 1e12],
        "square_root": [0.0, 2.0, 9.0, 1e30],
    }
    of_two = dict.fromkeys(("maximum", "minimum", "exceeds"), pairs)
    of_two["geometric"] = [(r, n) for r in (0.0, 0.5, 1.0, 1 + tiny, 2.0) for n in (1.0, 3.0, 7.0)]
    asked = [(name, (value,)) for name, values in alone.items() for value in values]
    asked += [(name, values) for name, each in of_two.items() for values in each]
    asked += [("missed", (n, m, k)) for n in (4.0, 60.0) for m in (0.0, 1.0, 4.0) for k in (1, 2.9)]
    names = "\n".join(f"export {text}" for text in javascript.HELPERS.values())
    answers = ask_node(names, asked, tmp_path)
    for (name, values), answer in zip(asked, answers, strict=True):
        mine = float(getattr(functions, name)(*values))
        exact = name in ("floor", "ceil", "maximum", "minimum", "exceeds", "log2")
        assert mine == answer if exact else differ(mine, answer) <= CLOSE, (name, values)


def test_whole_division_is_that_of_python(tmp_path: Path) -> None:
    numbers = [-7.5, -7.0, -2.0, -0.3, 0.1, 0.3, 1.0, 2.0, 7.0, 7.5, 1e17]
    pairs = [(a, b) for a in (*numbers, 0.0) for b in numbers]
    tree = ast.parse("a // b + 0 * (a % b)", mode="eval").body
    writer = javascript.Writer()
    text = writer.text(tree)
    assert text == "floor_divided(a,b)+0*remainder(a,b)"
    source = javascript.helpers(writer.used).replace("const ", "export const ", 1)
    source = source.replace("\nconst ", "\nexport const ")
    asked = [(name, pair) for name in ("floor_divided", "remainder") for pair in pairs]
    for (name, (a, b)), answer in zip(asked, ask_node(source, asked, tmp_path), strict=True):
        assert float(answer) == (a // b if name == "floor_divided" else a % b), (name, a, b)


@pytest.mark.parametrize(
    ("python", "written"),
    [
        ("a - (b - c)", "a-(b-c)"),
        ("a / (b * c) / d", "a/(b*c)/d"),
        ("(-a) ** 2 + b ** -c", "(-a)**2+b**(-c)"),
        ("-a ** 2", "-(a**2)"),
        ("a ** b ** c", "a**b**c"),
        ("(a ** b) ** c", "(a**b)**c"),
        ("a - -b", "a-(-b)"),
        ("1e30 * 0.5 + 3", "1e+30*.5+3"),
    ],
)
def test_signs_bind_as_in_python(python: str, written: str) -> None:
    assert javascript.Writer().text(ast.parse(python, mode="eval").body) == written


@pytest.mark.parametrize("python", ["a if b else c", "a.b", "open(a)", "a > b", "'text'"])
def test_what_is_no_expression_of_an_equation_is_refused(python: str) -> None:
    with pytest.raises(TypeError, match="of an equation"):
        javascript.Writer().text(ast.parse(python, mode="eval").body)


def test_a_plan_becomes_one_function_with_loops_over_operators(tmp_path: Path) -> None:
    from mlsim.solvers.forward.configuration import SOLVER

    columns = {
        "multiply_adds": [1e9, 2e9, 4e9],
        "parameters": [1e6, 2e6, 4e6],
        "activations_read": [1e5, 2e5, 4e5],
        "activations_written": [3e5, 3e5, 3e5],
        "repeats": [1.0, 2.0, 1.0],
    }
    fixed = {
        "flops_per_multiply_add": 2.0,
        "bytes_per_parameter": 2.0,
        "bytes_per_element": 2.0,
        "peak_flops": 1e14,
        "memory_capacity": 1e9,
        "activations_live": 1e6,
    }
    wanted = ("latency", "memory_bound_share", "memory_free", "throughput", "bytes_moved")
    moving = ("batch_size", "memory_bandwidth")
    steps = plan(SOLVER, (*columns, *fixed, *moving), wanted).steps
    used: set[str] = set()
    text = javascript.planned("f", steps, moving, columns, wanted, used)
    points = [(1.0, 1e12), (7.0, 2e12), (300.0, 5e11)]
    asked = [("f", [{**columns, **fixed}, *point]) for point in points]
    answers = ask_node(f"{javascript.helpers(used)}export {text}", asked, tmp_path)
    for point, answer in zip(points, answers, strict=True):
        known = {**columns, **fixed, **dict(zip(moving, point, strict=True))}
        mine = plan(SOLVER, tuple(known), wanted).run(known)
        assert set(answer) == set(wanted)
        for name in wanted:
            ours, theirs = mine[name], answer[name]
            pairs = zip(ours, theirs, strict=True) if name == "bytes_moved" else [(ours, theirs)]
            assert all(differ(a, b) <= CLOSE for a, b in pairs), name
