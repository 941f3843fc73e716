"""What is asked: known quantities with their origins, operators, and the equations between."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from mlsim.equations import Equation, Plan, plan
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.units import text
from mlsim.workloads.model import NO_OPERATORS, OperatorTable

if TYPE_CHECKING:
    from mlsim.hardware import Device
    from mlsim.records import Figure
    from mlsim.systems import Cluster, System
    from mlsim.workloads.language import Transformer


ARRAYS = importlib.util.find_spec("numpy") is not None

# Words that say where a quantity comes from, or what finds them when somebody asks.
Origin = str | Callable[[], str]


def recorded(owner: Device | System | Cluster, figure: Figure) -> Origin:
    """Return the origin of a figure on record, of a device or a system."""
    return lambda: f"{owner.name}: {figure.origin()}"


class Known(dict[str, Any]):
    """Known quantities in base units, by name, each born with its origin.

    >>> known = Known().add("given", batch_size=8.0)
    >>> known["batch_size"], known.origin("batch_size")
    (8.0, 'given')
    """

    __slots__ = ("origins",)

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[str, Origin] = {}

    def add(self, origin: Origin, **values: Any) -> Known:
        """Add quantities of one origin, in place of those of the same name."""
        self.update(values)
        self.origins.update(dict.fromkeys(values, origin))
        return self

    def columns(self, origin: Origin, *names: str) -> Known:
        """Add the origin of columns of operators, whose values are in their table."""
        self.origins.update(dict.fromkeys(names, origin))
        return self

    def add_memory(self, device: Device) -> Known:
        """Add the bandwidth of a device's memory, and the size that decides what fits."""
        sizes = {"memory_bandwidth": device.bandwidth_si, "memory_capacity": device.capacity_si}
        for name, value in sizes.items():
            self.add(partial(device.origin_of_memory, name), **{name: value})
        return self

    def joined(self, others: Known) -> Known:
        """Return these and others, which take the place of those of the same name."""
        found = Known()
        found.update(self)
        found.update(others)
        found.origins = {**self.origins, **others.origins}
        return found

    def origin(self, name: str) -> str:
        """Say where a quantity comes from; what nobody gave or recorded is a definition."""
        found = self.origins.get(name, "definition")
        return found if isinstance(found, str) else found()

    def doubts(self) -> list[tuple[str, str]]:
        """Return rows of a report on figures of the device that nobody read or measured well."""
        noisy = [
            name.replace("_flops", "").replace("_", " ")
            for name in ("memory_bandwidth", "peak_flops")
            if ": estimate, mlsim measure" in self.origin(name)
        ]
        rows = self.guessed_memory()
        if noisy:
            names = " and ".join(noisy)
            rows.append(("", f"{names}: measured on a noisy machine, and kept"))
        return rows

    def guessed_memory(self) -> list[tuple[str, str]]:
        """Return a row of a report if nobody read how much memory the device has.

        >>> from mlsim import Hardware
        >>> Known().add_memory(Hardware.Workstation.RTX4080).guessed_memory()
        [('', "the device's memory is an estimate: no list of a driver was read")]
        """
        if ": estimate, " not in self.origin("memory_capacity"):
            return []
        return [("", "the device's memory is an estimate: no list of a driver was read")]


def shape_of(values: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of an answer, () for one point, from what is asked for by name.

    Raises
    ------
    InvalidValueError
        If arrays don't broadcast.
    """
    arrays = {name: value for name, value in values.items() if getattr(value, "ndim", 0)}
    if not arrays:
        return ()
    import numpy as np

    try:
        return np.broadcast_shapes(*(value.shape for value in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in arrays.items())
        raise InvalidValueError(f"these shapes don't broadcast: {shapes}.") from None


class Question:
    """Known quantities, a table of operators, and the equations that lead to an answer.

    All that is asked comes down to this: of a forward pass, a step of a service, a training
    run, a footprint, or the size of a model.

    Parameters
    ----------
    known
        The quantities, or what returns them once somebody needs them.
    equations
        At most one for each quantity.
    labels
        What this is about, in words for an explanation: model, model_source, hardware,
        precision and estimate. Or what returns them.
    table
        The operators; by default there are none.
    shape
        Shape of the answer: () for one point.
    wide
        Columns whose operators differ from point to point: arrays of the shape (operators,
        points), with the points in one row.

    >>> from mlsim.equations import EQUATIONS
    >>> known = Known().add("given", flops=1e12, peak_flops=1e14)
    >>> Question(known, [EQUATIONS["compute_time"]], {}).value("compute_time")
    0.01
    """

    def __init__(
        self,
        known: Known | Callable[[], Known],
        equations: Iterable[Equation],
        labels: Mapping[str, str] | Callable[[], Mapping[str, str]],
        *,
        table: OperatorTable[Any] = NO_OPERATORS,
        shape: tuple[int, ...] = (),
        wide: Mapping[str, Any] | None = None,
    ) -> None:
        self._known, self._labels, self.wide = known, labels, wide or {}
        self.equations = tuple(equations)
        self.table = table
        self.shape = shape

    @cached_property
    def known(self) -> Known:
        """Everything known but the operators' columns, in base units."""
        return self._known if isinstance(self._known, Known) else self._known()

    @property
    def labels(self) -> Mapping[str, str]:
        """What this is about, in words, for an explanation."""
        return self._labels() if callable(self._labels) else self._labels

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        return self.known.origin(name)

    def check_given(
        self, given: Mapping[str, Any], fixed: Iterable[str], shares: Iterable[str]
    ) -> None:
        """Refuse given quantities that contradict each other, or what was asked by number.

        Parameters
        ----------
        given
            Quantities that take the place of data or of equations, in base units.
        fixed
            Names of what else was asked for by number, as far as it is known.
        shares
            Names of parts of something, which have to lie between 0 and 1.

        Raises
        ------
        InvalidValueError
            As `check_consistent` and `check_shares`.
        """
        if given:
            known = self.known
            held = {name: known[name] for name in fixed if name in known}
            check_consistent(self.equations, given, held)
            check_shares(self.evaluate(*shares), given)

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted, in order."""
        return plan(self.equations, (*self.known, *self.table.names, *self.wide), wanted)

    def evaluate(
        self,
        *wanted: str,
        table: OperatorTable[Any] | None = None,
        into: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Compute quantities, from the operators or those of another table.

        Returns floats for one point and arrays of the question's shape for many. A quantity
        of the operators has one value per row of the table (a first axis, or a list where
        NumPy is not installed). Results of many points may go `into` flat arrays by name.

        Raises
        ------
        UnreachableError
            If no equation leads to one of them.
        """
        table, steps = table or self.table, self.plan(*wanted)
        if self.shape:
            from mlsim.solvers.arrays import evaluate_blocks

            columns = table.columns_2d
            return evaluate_blocks(steps, self.known, columns, self.shape, self.wide, into=into)
        if ARRAYS:
            # No lists, so the plan's own function will do.
            values = {**self.known, **table.arrays}
            values.update(steps.compute(values))
        else:
            values = steps.run({**self.known, **table.columns})
        return {name: values[name] for name in wanted}

    def value(self, name: str) -> Any:
        """Compute one quantity: a float for one point, even where a sum came out of NumPy."""
        return self.values(name)[name]

    def values(self, *names: str) -> dict[str, Any]:
        """Compute several at once, each as `value` does."""
        # What computes and moves nothing, as sending does, has no intensity.
        with quiet():
            found = self.evaluate(*names)
        return {
            name: float(each)
            if not self.shape and not getattr(each, "ndim", 0) and type(each) is not list
            else each
            for name, each in found.items()
        }


def quiet() -> AbstractContextManager[object]:
    """Let NumPy divide zero by zero without a word."""
    if not ARRAYS:
        return nullcontext()
    import numpy as np

    return np.errstate(divide="ignore", invalid="ignore")


# Two numbers are equal if they differ by this part of one of them: rounding, no more.
_ROUNDING = 1e-9


def check_consistent(
    equations: Iterable[Equation], given: Mapping[str, Any], fixed: Mapping[str, Any]
) -> None:
    """Refuse given quantities that contradict what follows from the rest.

    Whatever the equations make of given and fixed quantities counts, over several
    steps too. What also needs data of the model or the device may be overridden.

    Parameters
    ----------
    equations
        At most one for each quantity.
    given
        Quantities that take the place of data or of equations, in base units.
    fixed
        What else was asked for by number: batches, lengths, parallel sizes.

    Raises
    ------
    InvalidValueError
        If two differ; says what was given, what follows, and from what.
    """
    known = {**fixed, **given}
    # From which of the given and fixed quantities each one follows.
    leaves: dict[str, tuple[str, ...]] = {name: (name,) for name in known}
    # A sum also needs the operators, which nobody gives.
    waiting = [each for each in equations if not each.sums]
    while ready := [each for each in waiting if leaves.keys() >= set(each.inputs)]:
        for each in ready:
            waiting.remove(each)
            computed = each.function(*(known[name] for name in each.inputs))
            behind = tuple(dict.fromkeys(leaf for name in each.inputs for leaf in leaves[name]))
            if each.yields not in known:
                known[each.yields], leaves[each.yields] = computed, behind
                continue
            name, own = each.yields, known[each.yields]
            differ = abs(own - computed) > _ROUNDING * abs(computed)
            if differ.any() if hasattr(differ, "any") else differ:
                follows = ", ".join(f"{leaf} = {_shown(known[leaf], leaf)}" for leaf in behind)
                raise InvalidValueError(
                    f"{name} = {_shown(own, name)} contradicts {each.expression} = "
                    f"{_shown(computed, name)}, which follows from {follows}: "
                    f"leave {name} out, or change one of these."
                )


def check_shares(results: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse given quantities by which a part would be larger than the whole, or negative.

    Parameters
    ----------
    results
        Computed shares of something, such as model_flops_utilization.
    given
        What was given, in base units.

    Raises
    ------
    InvalidValueError
        If a share is not from 0 to 1; says which, and what was given.
    """
    for name, share in results.items():
        least = most = share
        if getattr(share, "ndim", 0):
            least, most = share.min(), share.max()
        # NaN, of what can't be computed, is no contradiction.
        if most > 1 + _ROUNDING or least < -_ROUNDING:
            shown = ", ".join(f"{each} = {_shown(value, each)}" for each, value in given.items())
            raise InvalidValueError(
                f"{shown} can't be: {name} would be {float(most if most > 1 else least):.4g}, "
                "and a share lies between 0 and 1. Leave it out, or give what would explain it, "
                "such as a higher peak_flops or memory_bandwidth."
            )


def _shown(value: Any, name: str) -> str:
    if getattr(value, "ndim", False):
        return "an array"
    return term(name).text(float(value))


# Of these modules a program sees each die as a device of its own.
_ONE_DIE = "one GCD"


def of_device(device: Device) -> Iterator[str]:
    """Yield what a name of a device may hide."""
    if _ONE_DIE in device.name:
        module = device.name.partition(",")[0]
        yield (
            f"{module}: one of its two dies (GCD), which a program sees as a device; a module "
            "has two"
        )


def of_hardware(hardware: Device | System | Cluster | None) -> Iterator[str]:
    """Yield through which network nodes send, where there are several."""
    fabric: float | None = getattr(hardware, "fabric_bandwidth", None)
    if hardware is not None and fabric is not None:
        rate = text(8 * fabric / 1e9, "1")
        yield f"between nodes: {hardware.name}, {rate} Gb/s for each device"


def of_context(model: Transformer, tokens: float) -> Iterator[str]:
    """Yield that a sequence is longer than a model's configuration allows."""
    figure = model.figures.get("configured_context")
    if figure is None or tokens <= figure.si:
        return
    how = "states" if figure.kind == "given" else "leaves off"
    yield (
        f"context: beyond {figure.si:,.0f} tokens {model.name} needs YaRN, which its "
        f"config.json {how}; with it {model.context:,}"
    )
