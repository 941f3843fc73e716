"""Every registered equation, by one test of each promise, which lists all that break it."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import kept
import numpy as np
import pint
import pytest
import sympy
from mutations import mutations

import mlsim
from mlsim import equations
from mlsim.equations import EQUATIONS, Equation, roofline
from mlsim.equations.functions import exceeds, floor, maximum, minimum, total
from mlsim.equations.machines import operand_reads, power_ratio, speedup, tile_intensity
from mlsim.equations.symbols import expression, indexed, tex
from mlsim.errors import UnknownNameError
from mlsim.quantities import term
from mlsim.records.references import references
from mlsim.solvers.calibrated import ONCE
from mlsim.solvers.footprint.footprint import equations_by
from mlsim.solvers.forward.configuration import SOLVER
from mlsim.solvers.forward.kinds import CALIBRATED_SOLVER, with_cache
from mlsim.solvers.gemm.layer import equations_for as layer_equations
from mlsim.solvers.serving.steps import equations_for
from mlsim.units import definitions
from mlsim.values import quantity

ROOT = Path(__file__).parents[3]
# Pint alone: its quantities keep the unit of what counts, too.
PINT = pint.UnitRegistry(None)
PINT.load_definitions(definitions())

# A worked example, and multiples of its inputs: of whole numbers, whole ones.
FACTORS = np.array([1, 3, 5, 7, 9])


def of_each_equation(rule: Callable[[Equation], None]) -> Callable[[], None]:
    """Make a rule one test, which lists the equations that break it."""

    def test() -> None:
        broken = []
        for each in EQUATIONS.values():
            try:
                rule(each)
            except Exception as error:  # noqa: BLE001 - of all equations, told at the end
                broken.append(f"{each.name}: {error or type(error).__name__}")
        assert not broken, "\n".join([f"{len(broken)} break it. {rule.__doc__}", *broken])

    test.__doc__ = rule.__doc__
    return test


def in_pint(value: Any, unit: str) -> Any:
    given = np.asarray(value, float) if isinstance(value, list) else value
    return PINT.Quantity(given, "" if unit == "1" else unit)


@of_each_equation
def test_dimensions_agree(each: Equation) -> None:
    """Base units go in, so the very unit comes out, not a multiple of it; counts are bare."""
    inputs, result = each.example
    if each.counts:
        found = each(*inputs.values())
        assert type(found) in {int, float}, f"{found!r} is no count"
        return
    found = each.function(*(in_pint(value, term(name).unit) for name, value in inputs.items()))
    assert found.dimensionality == in_pint(1.0, each.unit).dimensionality, (
        f"gives {found.units}, and {each.yields} is in {each.unit}"
    )
    assert found.to(each.unit).magnitude == pytest.approx(found.magnitude, rel=1e-12)
    assert found.magnitude == pytest.approx(result)


@of_each_equation
def test_arrays_equal_scalars(each: Equation) -> None:
    """In one call for all points, and one for each; operators lie along the first axis."""
    inputs = each.example[0].values()
    if each.sums:
        *columns, repeats = (np.array(value, float)[:, None] for value in inputs)
        together = each(*(column * FACTORS for column in columns), repeats)
        alone = [
            each(*((column[:, 0] * factor).tolist() for column in columns), repeats[:, 0].tolist())
            for factor in FACTORS
        ]
    else:
        arrays = [value * FACTORS for value in inputs]
        together = each(*arrays)
        alone = [each(*(array[point].item() for array in arrays)) for point in range(len(FACTORS))]
    assert together.shape == FACTORS.shape
    assert together.tolist() == pytest.approx(alone, rel=1e-12)


@of_each_equation
def test_arrays_broadcast(each: Equation) -> None:
    """A column beside a row is a table."""
    if each.sums or len(each.inputs) == 1:
        return
    first, second, *rest = each.example[0].values()
    together = each(first * FACTORS[:, None], second * FACTORS[:3], *rest)
    assert together.shape == (5, 3)
    alone = each((first * FACTORS[4]).item(), (second * FACTORS[2]).item(), *rest)
    assert together[4, 2] == pytest.approx(alone, rel=1e-12)


@of_each_equation
def test_sympy_renders_it(each: Equation) -> None:
    """With the symbols of the vocabulary, whole numbers, and repeats before what they repeat."""
    formula = tex(each)
    assert formula.startswith(f"{each.symbol} = ")
    assert not re.search(r"\d\.\d", formula), "a raw float stands in the formula"
    drawn = expression(each)
    assert not drawn.atoms(sympy.Float)
    assert {symbol.name for symbol in drawn.free_symbols} == set(each.inputs)
    symbols = [
        indexed(term(name).symbol) if each.sums else term(name).symbol for name in each.inputs
    ]
    assert all(symbol in formula for symbol in symbols)
    assert not any(name in formula for name in each.inputs), "a name stands for its symbol"
    assert not each.sums or formula.endswith(rf"\sum_i {symbols[-1]}\, {symbols[0]}")


@of_each_equation
def test_it_says_where_it_holds_and_by_whom(each: Equation) -> None:
    """Its source is in the bibliography; its sentences end, and its module asks a question."""
    assert each.source in references(), f"no reference is called {each.source}"
    assert each.validity.endswith(".")
    assert each.assumptions == "" or each.assumptions.endswith(".")
    assert each.topic.question.endswith("?")
    assert each.code.startswith(f"def {each.name}(")
    assert each.expression in each.code


def examples_of(each: Equation) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(each.function) or "")


def holds(example: doctest.Example, names: dict[str, Any]) -> bool:
    """Whether an example gives what it says."""
    try:
        return repr(eval(example.source, names)) == example.want.strip()
    except Exception:  # noqa: BLE001 - whatever a change breaks is noticed
        return False


@of_each_equation
def test_its_examples_hold(each: Equation) -> None:
    """Each line of them."""
    for example in examples_of(each):
        found = eval(example.source, {**each.function.__globals__})
        assert repr(found) == example.want.strip(), f"{example.source.strip()} is {found!r}"


def test_examples_tell_every_term() -> None:
    """Whoever confuses an operator, a constant or an order gets another result.

    So no input is 0 or 1 where that hides a term, and each side of a maximum has its example:
    of each change that `mutations` makes, some example must notice.
    """
    untold = []
    for module in sorted({each.function.__module__ for each in EQUATIONS.values()}):
        path = Path(equations.__path__[0]) / f"{module.rpartition('.')[2]}.py"
        source, changes = path.read_text("utf-8"), mutations(path)
        starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
        for node in ast.parse(source).body:
            if not (isinstance(node, ast.FunctionDef) and node.name in EQUATIONS):
                continue
            each, examples = EQUATIONS[node.name], examples_of(EQUATIONS[node.name])
            begin, end = starts[node.lineno - 1], starts[node.end_lineno or -1]
            for change in changes:
                # Zero times a quantity is zero with its unit, and two columns add up either way.
                zero = source[change.start - 2 : change.end] == "0 *" or change.new == "(0)"
                if (
                    begin <= change.start < end
                    and not zero
                    and not (each.sums and change.kind == "swapped arguments")
                ):
                    names = dict(each.function.__globals__)
                    exec(
                        source[begin : change.start] + change.new + source[change.end : end], names
                    )
                    if all(holds(example, names) for example in examples):
                        untold.append(f"{each.name}: {change.diff(path.parent)}")
    assert not untold, "\n".join(["The examples hold with this change, too:", *untold])


def test_what_adds_or_compares_refuses_another_dimension() -> None:
    for each in ("bytes_moved", "roofline_time", "memory_required", "memory_free"):
        good, bad = quantity(2.0, term(EQUATIONS[each].inputs[0]).unit), quantity(2.0, "sample")
        with pytest.raises(pint.DimensionalityError):
            EQUATIONS[each].function(good, bad)


def test_a_formula_keeps_the_order_of_its_source() -> None:
    formulas = dict(kept.cases("formulas.toml"))
    assert {name: tex(EQUATIONS[name]) for name in formulas} == formulas


def test_one_quantity_has_one_equation_in_a_solver() -> None:
    kinds = ["latent", "encoder", "bound", "sends", "windowed", "calibrated", "recurrent"]
    kinds += ["shared", "hosted", "unfused", "worked"]
    switches = ["sharing", "offloading", "moved", "drafted", "adapters"]
    variants: list[list[str]] = [
        [],
        kinds,
        ["switched", *switches],
        ["switched", *switches, *kinds],
    ]
    variants += [[kind] for kind in kinds] + [["switched", each] for each in switches]
    # Where devices share sequences, or experts are chosen unevenly.
    variants += [["spread"], ["spread", "uniform"], ["spread", "unfused", "calibrated"]]
    solvers = {
        "network": SOLVER,
        "network, cache": with_cache(SOLVER),
        "network, calibrated": CALIBRATED_SOLVER,
        "account": equations_by(False),
        "account, by location": equations_by(True),
        "layer": layer_equations("named", "on-chip"),
        **{f"serving, {each}": equations_for(frozenset(each)) for each in variants},
        **{f"layer, {each}": layer_equations(*each) for each in variants},
    }
    twice = {
        solver: [
            name for name, count in Counter(each.yields for each in chosen).items() if count > 1
        ]
        for solver, chosen in solvers.items()
    }
    assert {solver: names for solver, names in twice.items() if names} == {}


def test_every_equation_is_used() -> None:
    """Its topic or its own name stands in a module that is no equation's, or in a chapter."""
    package = Path(mlsim.__file__).parent
    users = [path for path in package.rglob("*.py") if path.parent.name != "equations"]
    users += ROOT.glob("tutorials/*.qmd")
    words = set(re.findall(r"\w+", "\n".join(path.read_text("utf-8") for path in users)))
    unused = {
        each.name for each in EQUATIONS.values() if not words & {each.name, each.topic.name.upper()}
    }
    # One is shown beside the one that overlaps, and one leads to the rate of a supply.
    assert unused - set(ONCE) == {"alternating_throughput", "prepare_rate"}


def test_registering_refuses_with_advice() -> None:
    before = dict(EQUATIONS)
    for name, argument, yields, docstring, words in kept.cases("registering.toml"):
        space: dict[str, Any] = {}
        exec(f"def {name}({argument}): return {argument}", space)
        space[name].__doc__ = docstring or None
        with pytest.raises((UnknownNameError, ValueError), match=words):
            roofline.ROOFLINE(source="williams2009roofline", yields=yields or None)(space[name])
    assert before == EQUATIONS


# What the equations say of convolutions, by hand.


def test_conv1_of_resnet_by_hand() -> None:
    """Conv1 is 7x7, stride 2, padding 3, from 3 to 64 channels, on 224x224 pixels."""
    # (224 + 2 * 3 - 7) / 2 = 111.5: 111 steps after the first window, so 112.
    assert EQUATIONS["output_size"](224, 3, 7, 2) == 112
    # 112 * 112 = 12,544 pixels x 64 channels x 7 * 7 * 3 = 147 inputs each.
    assert EQUATIONS["multiply_adds"](112, 64, 7, 3, 1) == 12_544 * 64 * 147 == 118_013_952
    assert EQUATIONS["parameters"](7, 3, 64, 1) == 147 * 64 == 9_408


# What they say of tiles and of clocks, in another way.


def test_reads_are_those_that_loops_make_and_intensity_is_work_over_them() -> None:
    """Counted in a loop over tiles, each of which loads a tile of both inputs."""
    rows, columns, depth = 8, 16, 24
    for tile in (1, 2, 4, 8):
        loops = product(*(range(0, side, tile) for side in (rows, columns, depth)))
        reads = sum(2 * tile * tile for _ in loops)
        assert operand_reads(rows, columns, depth, tile) == reads
        assert tile_intensity(tile, 2.0) == 2 * rows * columns * depth / (2.0 * reads)


def test_a_speedup_is_within_both_limits_and_half_the_size_takes_a_quarter_of_the_power() -> None:
    counts = np.array([1.0, 2.0, 16.0, 1024.0])
    for share in (0.0, 0.3, 0.99):
        gains = speedup(share, counts)
        assert (np.diff(gains) >= 0).all()
        assert (gains <= np.minimum(counts, 1 / (1 - share)) + 1e-9).all()
    assert power_ratio(0.5, 0.5, 1 / 0.5) == pytest.approx(0.25)


# The functions that equations may use.


@pytest.mark.parametrize(
    ("function", "a", "b", "expected"),
    [(maximum, 2.0, 3.0, 3.0), (minimum, 2.0, 3.0, 2.0), (exceeds, 3.0, 2.0, 1.0)],
)
def test_functions_take_floats_arrays_and_quantities(function, a, b, expected) -> None:
    assert function(a, b) == expected
    # Arrays on either side, on both, and an integer beside an array.
    for left, right in [
        (np.array([a, a]), b),
        (a, np.array([b, b])),
        (np.array([a, a]), np.array([b, b])),
        (np.array([a, a]), np.float64(b)),
        (int(a), np.array([b, b])),
    ]:
        assert function(left, right).tolist() == [expected, expected]
    # Quantities in other units are brought to one.
    found = function(quantity(a, "s"), quantity(b * 1e3, "ms"))
    assert float(getattr(found, "magnitude", found)) == pytest.approx(expected)


def test_floor_takes_integers_floats_and_arrays() -> None:
    assert [floor(7), floor(7.9), floor(np.array([7.9, -0.5])).tolist()] == [7, 7, [7.0, -1.0]]


def test_total_counts_a_value_that_all_operators_share() -> None:
    # Two operators, standing 3 and 1 times, each of 2 s: 8 s, in every form.
    assert total(2.0, [3.0, 1.0]) == 8.0
    assert total(2.0, np.array([3.0, 1.0])) == 8.0
    # Three points; the operators lie along the first axis.
    repeats = np.array([[3.0], [1.0]])
    assert total(np.array([1.0, 2.0, 3.0]), repeats).tolist() == [4.0, 8.0, 12.0]
    assert total(np.array([[1.0, 2.0], [3.0, 4.0]]), repeats).tolist() == [6.0, 10.0]


def test_total_refuses_lists_of_different_length() -> None:
    with pytest.raises(ValueError, match="zip"):
        total([1.0], [1, 2])
