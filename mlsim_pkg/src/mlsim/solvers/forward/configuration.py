"""How long a forward pass takes on one device: which equations answer it.

A configuration is turned into known quantities; a plan of equations is run on
the operator table of the model, all operators at once. Arrays of points are run
in blocks that stay in the cache.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

from mlsim.equations import Equation, Plan, equations_of, lookup, memory, plan, roofline
from mlsim.errors import InvalidValueError, nearest
from mlsim.hardware import Device
from mlsim.hardware.device_calibration import Calibration
from mlsim.precision import Precision
from mlsim.quantities import VOCABULARY
from mlsim.solvers import calibrated
from mlsim.units import text
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD
from mlsim.workloads.network import Network
from mlsim.workloads.operators import OperatorTable

ESTIMATES = ("roofline", "bound", "calibrated")

# The equations of this question. Those of layers have been used when the model
# was lowered; those of a language model's steps answer another.
SOLVER = equations_of(roofline, memory)

# The same question at rates that were measured.
CALIBRATED = calibrated.network_equations(SOLVER)

# The same two for a network that looks rows of tables up: it holds more than it reads.
LOOKUP = equations_of(lookup)
TABLED, CALIBRATED_TABLED = (
    tuple({each.yields: each for each in (*plain, *LOOKUP)}.values())
    for plain in (SOLVER, CALIBRATED)
)

# What a caller may give in place of what the data or the equations say.
GIVABLE = (
    "peak_flops",
    "memory_bandwidth",
    "memory_capacity",
    "bytes_per_parameter",
    "bytes_per_element",
    *(each.yields for each in SOLVER),
)

# The calibrated estimate has more of it.
CALIBRATED_GIVABLE = (
    *GIVABLE,
    *calibrated.OF_DEVICE,
    *(name for name in ("waves", "filled_share", "operator_time", "total_overhead_time")),
    "overhead_share",
)

# Points in a block: with some 30 operators a column block is under a megabyte,
# and the handful that are alive at a time stay in a level-2 cache.
BLOCK = 3072

ARRAYS = importlib.util.find_spec("numpy") is not None


def givable(estimate: str) -> tuple[str, ...]:
    """Return what a caller may give, and ask for, of an estimate."""
    return CALIBRATED_GIVABLE if estimate == calibrated.CALIBRATED else GIVABLE


@lru_cache(maxsize=256)
def find_plan(
    known: frozenset[str], wanted: tuple[str, ...], equations: tuple[Equation, ...] = SOLVER
) -> Plan:
    """Return the plan from known names to wanted ones, made once."""
    return plan(equations, known, wanted)


class Question(Protocol):
    """What can be evaluated: known quantities, operators, and equations."""

    @property
    def known(self) -> Mapping[str, Any]:
        """Known quantities but the operators' columns, in base units."""

    @property
    def table(self) -> Table:
        """The operators to reckon with."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""


class Table(Protocol):
    """Operators as columns."""

    @property
    def columns(self) -> dict[str, list[float]]:
        """One list of floats for each column."""

    @property
    def arrays(self) -> dict[str, Any]:
        """The columns as NumPy arrays of shape (operators,)."""

    @property
    def columns_2d(self) -> dict[str, Any]:
        """The columns as NumPy arrays of shape (operators, 1)."""

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Configuration:
    """One question: a model on a device, at a batch and a precision.

    `batch_size` and the values of `given` are floats or NumPy arrays that
    broadcast to `shape`.
    """

    model: Network
    device: Device
    precision: Precision
    estimate: str
    batch_size: Any
    given: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.estimate not in ESTIMATES:
            raise InvalidValueError(
                f"estimate must be one of {', '.join(ESTIMATES)}, not {self.estimate!r}."
                f"{nearest(self.estimate, ESTIMATES)}"
            )
        if self.calibrated:
            # Refuses a device that was not measured.
            _ = self.calibrations

    @property
    def calibrated(self) -> bool:
        """Whether the rates are those that were measured."""
        return self.estimate == calibrated.CALIBRATED

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The equations that answer the question."""
        if self.model.operators.table_parameters:
            return CALIBRATED_TABLED if self.calibrated else TABLED
        return CALIBRATED if self.calibrated else SOLVER

    @cached_property
    def calibrations(self) -> dict[str, Calibration]:
        """What the device was measured to reach; empty if all of it is given.

        Raises
        ------
        NotMeasuredError
            If there are no measurements of the device.
        """
        return calibrated.constants(self.device, (self.precision.name,), self.given)

    def check_consistent(self) -> None:
        """Refuse given quantities that contradict each other.

        Raises
        ------
        InvalidValueError
            If a result and all that it is computed from are given, and differ.
        """
        if not self.given:
            return
        calibrated.check_parts(self.given)
        check_consistent(self.equations, self.given, {**self.given, "batch_size": self.batch_size})

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        values = [self.batch_size, *self.given.values()]
        if not any(getattr(value, "ndim", 0) for value in values):
            return ()
        import numpy as np

        try:
            return np.broadcast_shapes(*(np.shape(value) for value in values))
        except ValueError:
            names = ["batch_size", *self.given]
            shapes = ", ".join(
                f"{name} {np.shape(value)}" for name, value in zip(names, values, strict=True)
            )
            raise InvalidValueError(f"these shapes don't broadcast: {shapes}.") from None

    @property
    def table(self) -> OperatorTable:
        """The operators to reckon with: all, or for the bound the whole network as one."""
        operators = self.model.operators
        if self.calibrated:
            return operators.merged.with_outputs.with_tables
        fused = self.estimate == "bound"
        return operators.fused.with_tables if fused else operators.merged.with_tables

    @cached_property
    def known(self) -> dict[str, Any]:
        """Everything known but the operators' columns, in base units."""
        known = {
            "batch_size": self.batch_size,
            "flops_per_multiply_add": FLOPS_PER_MULTIPLY_ADD,
            "bytes_per_parameter": self.precision.bytes,
            "bytes_per_element": self.precision.bytes,
            "activations_live": float(self.model.operators.activations_live),
            "memory_bandwidth": self.device.bandwidth_si,
            "memory_capacity": self.device.capacity_si,
        }
        if "peak_flops" not in self.given:
            known["peak_flops"] = self.device.compute.figure(self.precision).si
        if self.calibrated:
            known.update(calibrated.tiling(self.device))
            for found in self.calibrations.values():
                known.update({name: getattr(found, name) for name in calibrated.OF_DEVICE})
        known.update(self.given)
        return known

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        return {
            "model": self.model.name,
            "model_source": self.model.source,
            "hardware": self.device.name,
            "precision": self.precision.name,
            "estimate": self.estimate,
        }

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        device = self.device
        figures = {
            "peak_flops": f"compute.{self.precision.computes_as}",
            "memory_bandwidth": "memory.bandwidth",
            "memory_capacity": "memory.capacity",
        }
        if name in self.given or name == "batch_size":
            return "given"
        if name in figures:
            return f"{device.name}: {device.figures[figures[name]].origin()}"
        if name in ("bytes_per_parameter", "bytes_per_element"):
            return f"{self.precision.name}: {self.precision.bits:g} bits"
        if name == "activations_live":
            return f"{self.model.name}, from its layers ({self.model.source})"
        if self.calibrated:
            return calibrated.origin(name, device, self.calibrations) or "definition"
        return "definition"

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""
        if self.calibrated:
            known = frozenset((*self.known, *self.table.names))
            return find_plan(known, wanted, self.equations)
        return find_plan(frozenset((*self.known, *self.table.names)), wanted, self.equations)


def check_consistent(
    equations: Iterable[Equation], given: Mapping[str, Any], fixed: Mapping[str, Any]
) -> None:
    """Refuse given quantities that contradict what is fixed.

    Raises
    ------
    InvalidValueError
        If a result and all that it is computed from are given, and differ.
    """
    for each in equations:
        # A sum also needs the operators, which nobody gives.
        if each.sums or each.yields not in given or not set(each.inputs) <= set(fixed):
            continue
        computed = each.function(*(fixed[name] for name in each.inputs))
        if not _close(given[each.yields], computed):
            unit = VOCABULARY[each.yields].unit
            raise InvalidValueError(
                f"{each.yields} = {_shown(given[each.yields], unit)} contradicts "
                f"{each.expression} = {_shown(computed, unit)}: leave one of "
                f"{', '.join((each.yields, *each.inputs))} out."
            )


def _close(a: Any, b: Any) -> bool:
    """Tell whether two numbers, or all of two arrays, are equal but for rounding."""
    differ = abs(a - b) > 1e-9 * abs(b)
    return not (differ.any() if hasattr(differ, "any") else differ)


def _shown(value: Any, unit: str) -> str:
    return "an array" if getattr(value, "ndim", False) else text(float(value), unit)


def evaluate(
    configuration: Question,
    *wanted: str,
    table: Table | None = None,
    into: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Compute quantities of a configuration.

    `into` names flat arrays to fill, for a sweep that would only join them.

    Returns floats for one point and arrays of the configuration's shape for
    many. A quantity of the operators has one value per row of the table (a
    first axis, or a list where NumPy is not installed).
    """
    table = configuration.table if table is None else table
    steps, known = configuration.plan(*wanted), configuration.known
    if configuration.shape:
        return _evaluate_blocks(configuration, steps, table, into)
    values = steps.run({**known, **(table.arrays if ARRAYS else table.columns)})
    return {name: values[name] for name in wanted}


def _evaluate_blocks(
    configuration: Question,
    steps: Plan,
    table: Table,
    into: Mapping[str, Any] | None,
) -> dict[str, Any]:
    import numpy as np

    shape, known = configuration.shape, configuration.known
    size = int(np.prod(shape))
    # Arrays are laid out flat, so that a block is a slice of each.
    flat = {
        name: np.broadcast_to(value, shape).reshape(-1)
        for name, value in known.items()
        if getattr(value, "ndim", 0)
    }
    # What is the same for all points is computed once.
    once, each = steps.split(flat)
    columns = once.run({**known, **table.columns_2d})

    def run(block: slice) -> dict[str, Any]:
        return each.run({**columns, **{name: value[block] for name, value in flat.items()}})

    # One point shows the form of each answer: per operator, or one for all.
    first = run(slice(0, 1))
    results = into or {name: _room(np, first[name], size) for name in steps.wanted}

    def fill(start: int, stop: int) -> None:
        for begin in range(start, stop, BLOCK):
            block = slice(begin, min(begin + BLOCK, stop))
            values = run(block)
            for name, result in results.items():
                result[..., block] = values[name]

    _in_parallel(fill, size)
    return {name: value.reshape(*value.shape[:-1], *shape) for name, value in results.items()}


def _room(np: Any, value: Any, size: int) -> Any:
    """Make the array for an answer: rows per operator, if it has them, then points."""
    value = np.asarray(value)
    return np.empty((*(value.shape[:-1] if value.ndim > 1 else ()), size), dtype=value.dtype)


def _in_parallel(fill: Callable[[int, int], None], size: int) -> None:
    """Fill all points, large arrays in as many threads as there are processors.

    NumPy lets go of the interpreter while it computes, so threads help.
    """
    workers = min(os.cpu_count() or 1, size // (8 * BLOCK))
    if workers < 2:
        fill(0, size)
        return
    step = -(-size // (workers * BLOCK)) * BLOCK
    with ThreadPoolExecutor(workers) as pool:
        futures = [
            pool.submit(fill, start, min(start + step, size)) for start in range(0, size, step)
        ]
        for future in futures:
            future.result()


def quiet() -> AbstractContextManager[object]:
    """Let NumPy divide zero by zero without a word."""
    if not ARRAYS:
        return nullcontext()
    import numpy as np

    return np.errstate(divide="ignore", invalid="ignore")
