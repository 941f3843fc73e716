"""Physics is in equations: solvers choose and run them, and compute nothing themselves.

A solver that multiplies two quantities has a formula that no page shows and no test of
equations sees. So any arithmetic in `mlsim.solvers` is refused, but for the functions listed
here, each with the reason why what it computes is no physics.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlsim.solvers
from mlsim.quantities import VOCABULARY

FOLDER = Path(mlsim.solvers.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.py"))

PRINTED = "brings a result to the unit in which it is printed"
WHOLE = "whole numbers: does a layout divide the model, the batch or the devices"
LENGTH = "the length of a request, compared with a limit or printed"
SUM_SHOWN = "shows the terms of a sum that an equation computed"
ROUNDING = "a tolerance for rounding"
SEARCH = "a search of numbers, whatever they stand for"
ADDED = "adds up the rows of a table, each of which was computed elsewhere"
PLACES = "places in an array or a list, not quantities"
COPIES = "what one of several copies is sent, or all of them do"
CLOCK = "a clock that adds up times of steps, looked up in tables that equations filled"
# By module and function; "*" is a whole module.
EXPLAINED = {
    "anatomy/anatomy.py": {
        "Anatomy._view": PLACES,
        "Anatomy.total": ADDED,
    },
    "anatomy/figures.py": {
        "Figures.intensity": "two figures as values, whose quotient says what it is of",
        "figure": ADDED,
    },
    "anatomy/limits.py": {"module": SEARCH, "_last": SEARCH},
    "anatomy/parts.py": {"_one": ADDED},
    "anatomy/rows.py": {"kernel_rows": ADDED},
    "anatomy/view.py": {"View._cells": PLACES},
    "anatomy/views.py": {"*": ADDED},
    "claims/claim.py": {"_share": "a per cent as a share"},
    "claims/claims_report.py": {"_remedies": PRINTED},
    "claims/judge.py": {"judge": ROUNDING},
    "claims/remedies.py": {"_first": SEARCH, "_last": SEARCH, "_devices": SEARCH},
    "arrivals/asked.py": {"Loaded.times": LENGTH, "Loaded.copies": WHOLE},
    "arrivals/closed_forms.py": {"Steady.__init__": COPIES},
    "arrivals/loaded.py": {
        "LoadedService.stopped": ADDED,
        "LoadedService.assumptions": LENGTH,
        "LoadedService.queueing": "a run beside its closed form, as a ratio",
        "LoadedService.question": ADDED,
        "_times": COPIES,
    },
    "arrivals/lookup.py": {"*": CLOCK},
    "arrivals/residents.py": {"*": CLOCK},
    "arrivals/reading.py": {"*": CLOCK},
    "arrivals/results.py": {"*": "means, and times between moments of a run"},
    "arrivals/simulate.py": {"*": CLOCK},
    "arrivals/steady.py": {"*": CLOCK},
    "arrivals/split.py": {
        "SplitLoaded.readers": WHOLE,
        "SplitLoaded.known": "means of the requests, and what all copies do",
    },
    "arrivals/tandem.py": {"*": CLOCK},
    "arrivals/step_times.py": {
        "StepTimes.step": CLOCK,
        "_host": "the least step that a program starts itself, and the terms of hosted_step_latency",
        "step_times": PLACES,
        "_on_one_copy": COPIES,
        "_memory": COPIES,
    },
    "blocks.py": {"*": PLACES},
    "consistency.py": {"check_shares": ROUNDING, "_close": ROUNDING},
    "derivation.py": {
        "_cells": SUM_SHOWN,
        "_longest": SUM_SHOWN,
        "as_text": PLACES,
        "_wrapped": PLACES,
    },
    "explain.py": {"Explanation._largest": SUM_SHOWN, "Explanation._products": SUM_SHOWN},
    "footprint/electricity.py": {"_hour_factor": "means of the hours of a table"},
    "footprint/footprint_report.py": {"_held": PRINTED},
    "forward/configuration.py": {"Configuration.check_consistent": PLACES},
    "forward/inverse.py": {
        "find": SEARCH,
        "_range": SEARCH,
    },
    "gemm/asked.py": {"_check_blocks": WHOLE, "module": "the largest whole number of 32 bits"},
    "gemm/many.py": {"_merged": "how often a kernel stands in a format"},
    "gemm/search.py": {"from_which": PLACES},
    "gemm/wide.py": {"*": PLACES},
    "inputs.py": {
        "module": "the largest whole number that a float holds",
        "_allowed": "the least whole number allowed: 0 or 1",
        "_check_array": "how many entries are wrong",
    },
    "load.py": {
        "Load.__post_init__": ROUNDING,
        "Load.of": PRINTED,
        "_hours": "a bare number is in hours",
    },
    "noted.py": {"that_matter": ADDED, "of_hardware": PRINTED},
    "plan/options.py": {
        "slowed": "the same steps, so many times as long",
        "points": "the middle of an output, and what all stages of a pipeline do",
        "_in_flight": COPIES,
        "schedulers_in": COPIES,
        "largest_batch": COPIES,
        "_chosen": SEARCH,
        "margin_of": SEARCH,
    },
    "plan/prompts.py": {
        "Readers.packed": "a step's time, looked up, for each of its prompts",
        "Readers.saturation": COPIES,
        "Readers._further": "the slope of a table of times",
        "Readers.waits": SEARCH,
        "Readers.within": SEARCH,
        "_readers": "how many whole prompts a step of so many tokens has room for",
    },
    "plan/pools.py": {
        "Between.copies": WHOLE,
        "decoders": "the middle of an output",
        "_Both.pairs": COPIES,
        "_Both._bill": COPIES,
        "_Both.lost": SEARCH,
        "paired": "how many were tried",
    },
    "plan/planned_rows.py": {
        "front_points": "a rate for each device, and a speed in place of a time",
    },
    "plan/planned.py": {
        "*": "ratios of options, and results in the units in which they are printed"
    },
    "reports.py": {"shown": PLACES},
    "searching.py": {
        "bisect": SEARCH,
        "elasticities": "a numerical derivative of any result by any input",
    },
    "serving/levels.py": {"_stages": WHOLE, "_experts": WHOLE},
    "serving/fit.py": {"_widest": WHOLE, "_shortage": LENGTH},
    "serving/service.py": {"Service.assumptions": LENGTH},
    "serving/speculated.py": {"Speculated.break_even_batch": SEARCH},
    "serving/switch_checks.py": {"_check_pair": "rows of two vocabularies, but for padding"},
    "serving/step_profile.py": {"StepProfile.shares": "a yes or no as a share of 1 or 0"},
    "serving/validate.py": {"_check_context": LENGTH},
    "training/optimal_size.py": {"OptimalSize.report": PRINTED},
    "training/search.py": {"_divisors": WHOLE, "candidates": WHOLE, "_recipes": WHOLE},
    "training/training.py": {
        "Training.factors": "each of a row of times over the one before it",
    },
    "training/job.py": {"Job.variant": WHOLE},
    "training/network_validate.py": {"_micro_batch": WHOLE},
    "training/training_report.py": {"whole_words": PRINTED, "_tokens": PRINTED, "spent": PRINTED},
    "training/spread.py": {
        "parallelism_of": WHOLE,
        "data_copies": WHOLE,
        "_check_model": WHOLE,
        "check_batch": WHOLE,
        "comes_out_even": WHOLE,
    },
    "training/validate.py": {
        "_sequence": WHOLE,
        "_check_rates": "what a given rate would say of another one, for a refusal",
    },
}


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


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_solver_computes_nothing_itself(path: Path) -> None:
    explained = EXPLAINED.get(path.relative_to(FOLDER).as_posix(), {})
    found = list(arithmetic(path.read_text(encoding="utf-8")))
    wrong = [
        f"  line {line}, {name}: {text}"
        for name, line, text in found
        if not {name, "*"} & set(explained)
    ]
    assert not wrong, (
        f"{path.name} computes what an equation should:\n" + "\n".join(wrong) + "\n"
        "Make it an equation (CONTRIBUTING, Add an equation) and let the plan, or a call of the "
        "function, compute it. If it is no physics, list its function in EXPLAINED and say why."
    )
    assert set(explained) <= {"*", *(name for name, *_ in found)}, "what is explained is gone"


def test_what_is_explained_is_in_modules_that_exist() -> None:
    assert set(EXPLAINED) <= {path.relative_to(FOLDER).as_posix() for path in SOURCES}


@pytest.mark.parametrize(
    "line",
    [
        "return micro_batches * stage_time",
        "return parameters // shards",
        "total -= hidden",
        "return sum(times)",
        "return math.fsum(times) ",
        "return np.multiply(a, b)",
        "return reduce(mul, sizes)",
        "return values[2 * stage]",
        "return tokens + 1",
        "return len(devices) * rate",
        "return a / b + ' in text'",
        "return {'flops_per_multiply_add': 2.0}",
        "known['tile_size'] = 128",
        "return f'{tokens * bytes}'",
        "return 2 ** depth",
    ],
)
def test_arithmetic_is_found(line: str) -> None:
    (found,) = {name for name, *_ in arithmetic(f"def solve():\n    {line}")}
    assert found == "solve"


@pytest.mark.parametrize(
    "line",
    [
        "return equation(micro_batches, stage_time)",
        "return 'a' + f'{b}' + ', '.join(names)",
        "lines += [title, *rows]",
        "return ' ' * width",
        "return values[index + 1], range(count + 1)",
        "return {'hop_latency': 0.0, 'tokens_per_step': 1.0}",
        "return -value",
        "return len(names) - len(shown)",
        "return {'a', 'b'} - given, folder / 'file.toml'",
        "return one | other",
    ],
)
def test_what_is_no_arithmetic_is_not(line: str) -> None:
    assert list(arithmetic(f"def solve():\n    {line}")) == []
