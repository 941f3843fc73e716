"""Every registered equation, by one parametrised test of each promise."""

from __future__ import annotations

import doctest
import inspect
import itertools
import math
import re
from typing import Any

import numpy as np
import pint
import pytest
import sympy

from mlsim.equations import (
    EQUATIONS,
    Equation,
    arrivals,
    attention_kernels,
    break_even,
    causes,
    claimed,
    convolution,
    counters,
    equations_of,
    exchange_kernels,
    execution,
    expert_kernels,
    from_records,
    input_pipeline,
    link,
    lone_transfers,
    machines,
    nodes,
    plans,
    pools,
    product_kernels,
    prompt_lines,
    recurrent,
    serving_counts,
    state_kernels,
    systolic,
    tiles,
    timing,
    training_causes,
    transformer,
)
from mlsim.equations.functions import exceeds, floor, maximum, minimum, total
from mlsim.equations.registry import equation
from mlsim.equations.symbols import expression, indexed, tex
from mlsim.errors import UnknownNameError
from mlsim.quantities import VOCABULARY, term
from mlsim.records.references import references
from mlsim.solvers.anatomy.limits import EPOCHS
from mlsim.solvers.calibrated import ONCE
from mlsim.solvers.footprint.account import equations_by
from mlsim.solvers.forward.calibrated_configuration import CALIBRATED_SOLVER
from mlsim.solvers.forward.configuration import SOLVER, with_lookups
from mlsim.solvers.forward.on_chip import with_cache
from mlsim.solvers.gemm.layer import equations_for as layer_equations, every_equation
from mlsim.solvers.serving.phase import equations_for
from mlsim.solvers.serving.switched import BESIDE, ROUND
from mlsim.solvers.training.plan import NETWORK_TRAINING, TRAINING
from mlsim.units import DEFINITIONS
from mlsim.values import quantity

# Pint alone: its quantities keep the unit of what counts, too.
PINT = pint.UnitRegistry(None)
PINT.load_definitions(DEFINITIONS.strip().splitlines())

each_equation = pytest.mark.parametrize(
    "each", EQUATIONS.values(), ids=lambda equation: equation.name
)

POINTS, OPERATORS = 5, 4

# Whole numbers that a layer could have, so that windows fit.
LAYER = {
    "input_size": 224,
    "output_size": 56,
    "kernel_size": 3,
    "stride": 2,
    "padding": 1,
    "groups": 4,
    "in_channels": 16,
    "out_channels": 32,
    # What counts of a transformer take.
    "active_parameters": 4096,
    "heads": 32,
    "kv_heads": 8,
    "head_size": 128,
    "kv_rank": 512,
    "rope_size": 64,
    "content_size": 128,
    "value_size": 128,
    "state_size": 64,
    "state_elements": 524288,
    "waiting_elements": 18432,
    "index_heads": 32,
    "index_size": 64,
    "hidden_size": 4096,
    "tensor_parallel": 8,
    "new_tokens": 100,
    "cached_tokens": 900,
    "unclipped_tokens": 60,
    "attention_window": 1024,
    "experts": 64,
    "experts_per_token": 2,
    "expert_parallel": 16,
    "expert_rank_share": 0.25,
    "residual_streams": 4,
    "adapter_rank": 16,
    "group_tokens": 20,
    # What a product on the cores of a device takes.
    "tokens_worked": 100,
    "device_batch": 3,
    "batch_size": 4,
    "activations_written": 12544,
    "product_rows": 300,
    "outputs": 4096,
    "tile_size": 128,
    "cores": 108,
    "product_depth": 512,
    "waves": 2,
    # What a program adds.
    "small_tile_fraction": 0.8,
    "multiply_adds": 1e9,
    "token_multiply_adds": 1e7,
    "launches": 3,
    "middle_token_time": 0.01,
    "repeats": 2,
    "peak_flops": 2e13,
    "units_per_core": 64,
    "flops_per_multiply_add": 2,
    "activations_read": 150528,
    # What a kernel of the atlas takes.
    "depth_parts": 2,
    "split_rounds": 1.5,
    "edge_tokens": 64,
    "walked_share": 0.1,
    "width_step": 128,
    "weight_sets": 4,
    "group_rows": 300,
    "layer_rows": 600,
    "layer_outputs": 4096,
    "layer_inputs": 2048,
    "turned_input": 1,
    "turned_weight": 1,
    "device_cores": 132,
    "least_depth": 512,
    "last_round_share": 0.5,
    "depth_start": 100,
    "attention_tasks": 64,
    "context_tokens": 900,
    "context_parts": 2,
    "least_context": 512,
    "routed_rows": 40,
    "most_rows": 320,
    "imbalance": 0.3,
    "own_experts": 4,
    "spread": 0.8,
    "busiest_rows": 90,
    "met_experts": 3.5,
    "expert_rows": 128,
    "expert_width": 2048,
    "expert_size": 4096,
    "expert_branches": 2,
    "expert_share": 0.5,
    "expert_tile": 64,
    "scan_chunk": 64,
    "passed_rows": 200,
    "elsewhere_share": 0.5,
    "uncaptured_launches": 3,
    "captured_tokens": 512,
    "half_width": 100,
    # What a service takes.
    "latency": 0.25,
    "micro_batches": 2,
    "pipeline_parallel": 4,
    "data_parallel": 2,
    "time_to_first_token": 0.5,
    "exposed_transfer_time": 0.25,
    "context_parallel": 4,
    "output_tokens": 100,
    "time_per_output_token": 0.01,
    "prompt_tokens": 1000,
    "block_tokens": 16,
    "usable_memory": 72e9,
    "weight_memory": 16e9,
    "cache_per_sequence": 0.3e9,
    "sequence_activations": 0.05e9,
    "sequence_logits": 0.01e9,
    "chunk_memory": 0.2e9,
    # What a kernel and a pipeline count.
    "row_tokens": 1,
    "device_tokens": 2048,
    "fixed_rows": 12,
    "interleaved": 3,
    # What copies and groups of devices count.
    "shard_group": 9,
    "devices": 8,
    "expert_replicas": 4,
    "ring_hops": 15,
    "group_size": 16,
    "node_members": 8,
    "node_groups": 2,
    # What a claim is held against.
    "claimed_value": 300.0,
    "value_limit": 100.0,
    # What the power of a device takes.
    "running_power_weight": 0.1,
    "compute_power_weight": 3,
    "compute_utilisation": 0.1,
    "memory_power_weight": 0.9,
    "memory_utilisation": 0.5,
    "power_load": 0.75,
    # What a server and a generation take.
    "server_idle_power": 1600.0,
    "server_devices": 8,
    "idle_power": 50.0,
    "vocabulary_size": 128256,
    "bytes_per_element": 2.0,
    "live_elements": 20000,
    "logits": 128256,
    "resident_batch": 4,
    "expert_outputs": 2048,
    "first_cached_tokens": 1000,
    "last_cached_tokens": 1999,
    "full_cached_tokens": 1500,
    "context_memory": 50e9,
    "step_token_memory": 1e6,
    "longest_sequence": 1000.5,
    "sequence_memory": 13e9,
    "token_activations": 4e6,
    "prefill_busy_time": 0.5,
    "decode_busy_time": 0.01,
    # What serving switches on.
    "prefix_share": 0.1,
    "prefix_tokens": 500,
    "prefixes": 2,
    "prefix_cache": 0.01e9,
    "served_adapters": 20,
    "acceptance_rate": 0.125,
    "expected_tokens": 2.5,
    "draft_tokens": 4,
    "draft_prefill_time": 0.05,
    # A request in two pools.
    "output_steps": 127,
    "token_interval": 0.02,
    "cache_wait": 0.01,
    "joining_wait": 0.03,
}
REPEATS = tuple(name for name in VOCABULARY if name.endswith("repeats"))


def values_of(name: str, *shape: int) -> np.ndarray:
    """Return positive numbers, other ones for every quantity, always the same."""
    if name in LAYER:
        return LAYER[name] * np.arange(1, 1 + math.prod(shape)).reshape(shape)
    seed = sum(map(ord, name))
    return np.random.default_rng(seed).uniform(0.5, 100.0, shape)


def in_pint(value: Any, unit: str) -> Any:
    return PINT.Quantity(value, "" if unit == "1" else unit)


@each_equation
def test_dimensions_agree(each: Equation) -> None:
    if each.counts:
        result = each(*(LAYER[name] for name in each.inputs))
        assert isinstance(result, (int, float))
        assert not isinstance(result, bool)
        return
    rows = (OPERATORS,) if each.sums else ()
    arguments = [in_pint(values_of(name, *rows), term(name).unit) for name in each.inputs]
    result = each.function(*arguments)
    expected = in_pint(1.0, each.unit)
    assert result.dimensionality == expected.dimensionality
    # Base units go in, so the very unit comes out, not a multiple of it.
    assert np.allclose(result.to(each.unit).magnitude, result.magnitude, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["bytes_moved", "roofline_time", "memory_required", "memory_free"])
def test_what_adds_or_compares_refuses_another_dimension(name: str) -> None:
    each = EQUATIONS[name]
    good, bad = (quantity(2.0, term(each.inputs[0]).unit), quantity(2.0, "sample"))
    with pytest.raises(pint.DimensionalityError):
        each.function(good, bad)


@each_equation
def test_arrays_equal_scalars(each: Equation) -> None:
    if each.sums:
        rows = [
            values_of(name, OPERATORS, 1 if name in REPEATS else POINTS) for name in each.inputs
        ]
        together = each(*rows)
        assert together.shape == (POINTS,)
        for point in range(POINTS):
            columns = [
                row[:, 0].tolist() if name in REPEATS else row[:, point].tolist()
                for name, row in zip(each.inputs, rows, strict=True)
            ]
            assert together[point] == pytest.approx(each(*columns), rel=1e-12)
        return
    arrays = [values_of(name, POINTS) for name in each.inputs]
    together = each(*arrays)
    assert together.shape == (POINTS,)
    for point in range(POINTS):
        alone = each(*(array[point].item() for array in arrays))
        assert together[point] == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize(
    "each",
    [each for each in EQUATIONS.values() if not each.sums and len(each.inputs) > 1],
    ids=lambda equation: equation.name,
)
def test_arrays_broadcast(each: Equation) -> None:
    first, *rest = each.inputs
    column = values_of(first, POINTS, 1)
    row = values_of(rest[0], 3)
    fixed = [float(values_of(name)) if name not in LAYER else LAYER[name] for name in rest[1:]]
    together = each(column, row, *fixed)
    assert together.shape == (POINTS, 3)
    assert together[4, 2] == pytest.approx(
        each(column[4, 0].item(), row[2].item(), *fixed), rel=1e-12
    )


@each_equation
def test_sympy_renders_it(each: Equation) -> None:
    formula = tex(each)
    assert formula.startswith(f"{each.symbol} = ")
    assert not re.search(r"\d\.\d", formula), "a raw float stands in the formula"
    drawn = expression(each)
    assert not drawn.atoms(sympy.Float)
    assert {symbol.name for symbol in drawn.free_symbols} == set(each.inputs)
    for name in each.inputs:
        symbol = term(name).symbol
        assert (indexed(symbol) if each.sums else symbol) in formula
        assert name not in formula, "a name stands where its symbol belongs"


@each_equation
def test_its_source_is_in_the_bibliography(each: Equation) -> None:
    assert each.source in references()


@each_equation
def test_its_doctest_holds(each: Equation) -> None:
    tests = doctest.DocTestFinder(recurse=False).find(
        each.function, each.name, globs={each.name: each.function}
    )
    examples = [example for test in tests for example in test.examples]
    assert any(each.name in example.source for example in examples)
    runner = doctest.DocTestRunner(verbose=False)
    for test in tests:
        runner.run(test)
    assert runner.failures == 0


@each_equation
def test_it_says_where_it_holds_and_works_an_example(each: Equation) -> None:
    assert each.validity.endswith(".")
    assert each.assumptions == "" or each.assumptions.endswith(".")
    assert each.question.endswith("?")
    inputs, result = each.example
    assert tuple(inputs) == each.inputs
    assert each.function(**inputs) == pytest.approx(result)
    assert each.code.startswith(f"def {each.name}(")
    assert each.expression in each.code


@each_equation
def test_its_names_are_the_vocabularys(each: Equation) -> None:
    assert {each.yields, *each.inputs} <= set(VOCABULARY)
    assert each.inputs == tuple(inspect.signature(each.function).parameters)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("memory_time", r"t_\mathrm{mem} = \frac{D}{\beta}"),
        ("flops", r"F = \phi \, m \, B"),
        ("activation_bytes", r"D_a = b_a \, \left(a_\mathrm{in} + a_\mathrm{out}\right) \, B"),
        ("bytes_moved", "D = D_w + D_a"),
        ("memory_free", r"M_\mathrm{free} = M - M_\mathrm{req}"),
        ("attainable_flops", r"P_\mathrm{att} = \min\left(I \, \beta,\, P_\mathrm{peak}\right)"),
        ("roofline_time", r"t = \max\left(t_\mathrm{comp},\, t_\mathrm{mem}\right)"),
        (
            "operator_memory_bound_time",
            r"t_\mathrm{mb} = t \, \left[t_\mathrm{mem} > t_\mathrm{comp}\right]",
        ),
        ("latency", r"T = \sum_i n_i\, t_i"),
        ("total_memory_time", r"T_\mathrm{mem} = \sum_i n_i\, t_{\mathrm{mem},i}"),
        ("throughput", r"R = \frac{B}{T}"),
        (
            "multiply_adds",
            r"m = \frac{H_\mathrm{out}^{2} \, C_\mathrm{out} \, K^{2} \, C_\mathrm{in}}{G}",
        ),
    ],
)
def test_a_formula_keeps_the_order_of_its_source(name: str, formula: str) -> None:
    assert tex(EQUATIONS[name]) == formula


SWITCHED = ("switched", "sharing", "offloading", "moved", "drafted", "adapters")
KINDS = (
    *("latent", "encoder", "bound", "sends", "windowed", "calibrated", "recurrent", "shared"),
    *("hosted", "unfused", "worked"),
)


# Where devices share sequences, or experts are chosen unevenly.
SPREAD = (("spread",), ("spread", "uniform"), ("spread", "unfused", "calibrated"))


@pytest.mark.parametrize(
    "kinds",
    [
        (),
        *((kind,) for kind in KINDS),
        KINDS,
        *(("switched", kind) for kind in SWITCHED[1:]),
        SWITCHED,
        (*KINDS, *SWITCHED),
        *SPREAD,
    ],
)
def test_one_quantity_has_one_equation_in_a_solver(kinds: tuple[str, ...]) -> None:
    accounts = (equations_by(False), equations_by(True))
    for chosen in (
        SOLVER,
        with_cache(SOLVER),
        CALIBRATED_SOLVER,
        *accounts,
        equations_for(frozenset(kinds)),
        layer_equations(*kinds),
        layer_equations("named", "on-chip"),
    ):
        yielded = [each.yields for each in chosen]
        assert len(yielded) == len(set(yielded))


def test_every_equation_is_used() -> None:
    """By a solver, to count a layer's work, for a record, for times of kernels, or to explain."""
    accounts = (*equations_by(False), *equations_by(True))
    used = {
        each.name
        for each in (
            *SOLVER,
            *with_lookups(SOLVER),
            *with_cache(SOLVER),
            *CALIBRATED_SOLVER,
            *TRAINING,
            *NETWORK_TRAINING,
            *EPOCHS,
            *accounts,
            *every_equation(),
            *equations_of(break_even),
        )
    }
    for kinds in itertools.product((False, True), repeat=len(KINDS)):
        picked = frozenset(kind for kind, on in zip(KINDS, kinds, strict=True) if on)
        used |= {each.name for each in equations_for(picked)}
    used |= {each.name for each in equations_for(frozenset(("calibrated", "hosted", "ahead")))}
    for kinds in ((), ("bound",), ("calibrated",)):
        used |= {each.name for each in equations_for(frozenset((*kinds, *SWITCHED)))}
    used |= {each.name for each in ROUND} | {*BESIDE}
    for kind in SPREAD:
        used |= {each.name for each in equations_for(frozenset(kind))}
    counting = {
        each.name
        for each in equations_of(
            arrivals,
            convolution,
            transformer,
            recurrent,
            link,
            nodes,
            pools,
            prompt_lines,
            from_records,
            serving_counts,
            machines,
            tiles,
        )
    }
    # What is inside a machine is compared with simulations and data sheets, by no solver.
    inside = {each.name for each in equations_of(execution, systolic, input_pipeline)}
    # What the time goes into is asked beside a question that a solver has answered.
    asked = {each.name for each in equations_of(causes, training_causes, claimed)}
    # What counters saw is read from files, by no solver.
    counted = {each.name for each in equations_of(counters)}
    # A run is looked at, and a device bought, beside a plan.
    beside = {each.name for each in equations_of(arrivals, plans)}
    # Rows are added up, and a cache divided, before a layer is asked about.
    counting |= {"context_cached_elements", "stacked_rows", "grouped_rows"}
    # Prompts of others are added to a step where services stand beside measured ones.
    counting |= {"mixed_token_time", "wave_token_time"}
    fitted = {
        each.name
        for each in equations_of(
            product_kernels,
            attention_kernels,
            expert_kernels,
            exchange_kernels,
            state_kernels,
            lone_transfers,
        )
    }
    clocked = {each.name for each in equations_of(timing)}
    # What a program adds is in part worked out once for a table of operators, or for tiles
    # that training has still whole.
    apart = asked | counted | beside | clocked | set(ONCE)
    assert used | counting | inside | fitted | apart == set(EQUATIONS)


def test_symbol_and_unit_come_from_the_vocabulary() -> None:
    each = EQUATIONS["held_memory"]
    assert (each.symbol, each.unit) == ("M_w", "B")


COMPLETE = """Time of an operator.

Valid for an operator.

>>> {name}(2.0)
2.0
"""


@pytest.mark.parametrize(
    ("name", "argument", "yields", "docstring", "words"),
    [
        (
            "misspelt",
            "compute_tim",
            "roofline_time",
            COMPLETE,
            r"'compute_tim'\. Did you mean 'compute_time'\? .*add a row",
        ),
        ("roofline_tme", "compute_time", None, COMPLETE, "Did you mean 'roofline_time'"),
        ("memory_time", "bytes_moved", None, COMPLETE, "two equations are called memory_time"),
        ("bare", "compute_time", "latency", None, 'first line .*; and a .*"Valid".*>>> bare'),
        (
            "nowhere_valid",
            "compute_time",
            "latency",
            COMPLETE.replace("Valid", "It holds"),
            'docstring needs a sentence on a line of its own that begins with "Valid"',
        ),
        (
            "not_worked",
            "compute_time",
            "latency",
            COMPLETE.replace(">>>", ""),
            r"docstring needs a worked example, such as >>> not_worked\(",
        ),
    ],
)
def test_registering_refuses_with_advice(
    name: str, argument: str, yields: str | None, docstring: str | None, words: str
) -> None:
    before = dict(EQUATIONS)
    space: dict[str, Any] = {}
    exec(f"def {name}({argument}): return {argument}", space)
    space[name].__doc__ = docstring and docstring.format(name=name)
    with pytest.raises((UnknownNameError, ValueError), match=words):
        equation(source="williams2009roofline", yields=yields)(space[name])
    assert before == EQUATIONS


# What the equations say of convolutions, by hand.


def test_conv1_of_resnet_by_hand() -> None:
    """Conv1 is 7x7, stride 2, padding 3, from 3 to 64 channels, on 224x224 pixels."""
    # (224 + 2 * 3 - 7) / 2 = 111.5: 111 steps after the first window, so 112.
    assert EQUATIONS["output_size"](224, 3, 7, 2) == 112
    # 112 * 112 = 12,544 pixels x 64 channels x 7 * 7 * 3 = 147 inputs each.
    assert EQUATIONS["multiply_adds"](112, 64, 7, 3, 1) == 12_544 * 64 * 147 == 118_013_952
    assert EQUATIONS["parameters"](7, 3, 64, 1) == 147 * 64 == 9_408


def test_groups_divide_work_and_weights() -> None:
    # A depthwise convolution: as many groups as channels.
    assert EQUATIONS["multiply_adds"](10, 32, 3, 32, 32) == 100 * 32 * 9
    assert EQUATIONS["parameters"](3, 32, 32, 32) == 32 * 9


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
