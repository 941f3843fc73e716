"""What a solve answers: times, rates, memory, what binds, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.errors import DoesNotFitError, unknown_name
from mlsim.precision import Precision, precision as find_precision
from mlsim.quantities import term
from mlsim.solvers.evaluation import (
    COMPUTE_BOUND,
    DOES_NOT_FIT,
    MEMORY_BOUND,
    OVERHEAD_BOUND,
    Answer,
)
from mlsim.solvers.forward.configuration import Configuration
from mlsim.solvers.inputs import CALIBRATED, validate, validate_given
from mlsim.units import text
from mlsim.workloads.operators import COLUMNS

if TYPE_CHECKING:
    import pandas
    from pint import Quantity

    from mlsim.hardware import Device
    from mlsim.solvers.explain import Explanation
    from mlsim.workloads.network import Network

# Quantities that have no meaning for a workload that can't run.
_NEEDS_MEMORY = frozenset(
    (
        "latency",
        "throughput",
        "achieved_flops",
        "memory_bound_time",
        "memory_bound_share",
        "total_overhead_time",
        "overhead_share",
    )
)


class Profile(Answer):
    """The answer for one configuration, or for an array of them.

    Times and sizes are quantities; `throughput` is a plain float, in samples
    per second. Anything else of the vocabulary that the equations reach is to
    be had by name: `profile["total_bytes"]`.

    >>> from mlsim import Engine, Hardware, Models
    >>> profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    >>> profile.bottleneck
    'Memory Bound'
    >>> print(f"{profile.latency.to('us'):.1f}")
    55.5 µs
    """

    noun = variable = "profile"

    def __init__(self, configuration: Configuration, *, check_memory: bool = True) -> None:
        self.configuration = configuration
        self._check_memory = check_memory
        self._values = configuration.evaluate(
            "latency", "memory_bound_share", "memory_required", "memory_free"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        return self.configuration.shape

    @property
    def model(self) -> Network:
        """The model that was asked about."""
        return self.configuration.model

    @property
    def hardware(self) -> Device:
        """The device that was asked about."""
        return self.configuration.device

    @property
    def batch_size(self) -> Any:
        """Samples per step: an int, or an array of floats."""
        batch = self.configuration.batch_size
        return int(batch) if isinstance(batch, float) else batch

    @property
    def precision(self) -> str:
        """Name of the number format."""
        return self.configuration.precision.name

    @property
    def estimate(self) -> str:
        """Which answer this is: "roofline", "bound" or "calibrated"."""
        return self.configuration.estimate

    def value(self, name: str) -> Any:
        """Return a quantity in its base unit: a float or an array.

        Points that don't fit are NaN in an array.

        Raises
        ------
        UnknownNameError
            If the vocabulary has no such name.
        UnreachableError
            If no equation leads to it.
        DoesNotFitError
            If a time is asked for that needs more memory than there is.
        """
        term(name)
        if name in self.configuration.known:
            return self.configuration.known[name]
        allowed = self.configuration.givable
        if name in COLUMNS or name not in allowed:
            raise unknown_name("result", name, allowed)
        if name not in self._values:
            self._values.update(self.configuration.evaluate(name))
        value = self._values[name]
        if name not in _NEEDS_MEMORY or not self._check_memory:
            return value
        return self._where_it_fits(value)

    def _where_it_fits(self, value: Any) -> Any:
        fits = self.feasible
        if not self.configuration.shape:
            if not fits:
                raise DoesNotFitError(self._too_large())
            return value
        import numpy as np

        return np.where(fits, value, np.nan)

    def _too_large(self) -> str:
        return (
            f"{self.model.name} at batch {self.batch_size} in {self.precision} needs "
            f"{text(float(self._values['memory_required']), 'B')}; {self.hardware.name} has "
            f"{text(self.configuration.known['memory_capacity'], 'B')}: "
            f"{text(-float(self._values['memory_free']), 'B')} too much. Use a smaller batch, or "
            "pass check_memory=False for the time it would take if it fitted."
        )

    def _point(self, pick: Callable[[Any], float]) -> Profile:
        point = replace(
            self.configuration,
            batch_size=pick(self.configuration.batch_size),
            given={name: pick(value) for name, value in self.configuration.given.items()},
        )
        return Profile(point, check_memory=self._check_memory)

    @property
    def latency(self) -> Quantity[Any]:
        """Time of one step. Raises DoesNotFitError if the workload does not fit."""
        found: Quantity[Any] = self["latency"]
        return found

    @property
    def throughput(self) -> Any:
        """Samples per second, a plain float."""
        value = self.value("throughput")
        return float(value) if not self.configuration.shape else value

    @property
    def memory_bound_share(self) -> Any:
        """Part of the latency spent in operators that memory limits.

        The arithmetic units also work in that time, only not at their peak.
        """
        value = self.value("memory_bound_share")
        return float(value) if not self.configuration.shape else value

    @property
    def bottleneck(self) -> Any:
        """What binds: "Memory Bound" if memory limits operators for over half the time.

        The calibrated estimate also knows "Overhead Bound": over half the time
        goes into starting operators.
        """
        share = self.value("memory_bound_share")
        starts = self.value("overhead_share") if self.configuration.calibrated else 0.0
        if not self.configuration.shape:
            other = OVERHEAD_BOUND if starts > 0.5 else COMPUTE_BOUND
            return MEMORY_BOUND if share > 0.5 else other
        import numpy as np

        others = np.where(np.greater(starts, 0.5), OVERHEAD_BOUND, COMPUTE_BOUND)
        named = np.where(share > 0.5, MEMORY_BOUND, others)
        return np.where(np.isnan(share), DOES_NOT_FIT, named)

    @property
    def feasible(self) -> Any:
        """Whether the workload fits in the device's memory."""
        fits = self._values["memory_free"] >= 0
        return fits if self.configuration.shape else bool(fits)

    @property
    def memory_required(self) -> Quantity[Any]:
        """Memory for weights and live activations."""
        found: Quantity[Any] = self["memory_required"]
        return found

    @property
    def operators(self) -> list[dict[str, Any]]:
        """One record per operator, in order, in base units, with what binds it.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("operators")
        from mlsim.solvers.explain import operator_rows

        return operator_rows(self.configuration, self.configuration.operators)

    def sensitivity(self, name: str = "latency") -> pandas.DataFrame:
        """Return how much a result changes with each input, as a table.

        The column `elasticity` is the per cent by which the result changes
        when the input grows by one per cent, the others held.

        >>> from mlsim import Engine
        >>> table = Engine.solve(model="ResNet50", hardware="A100").sensitivity()
        >>> table.input[0]
        'memory_bandwidth'

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("sensitivity()")
        from mlsim.solvers.forward.inverse import sensitivity

        self.value(name)
        return sensitivity(self.configuration, name)

    def explain(self, name: str = "latency") -> Explanation:
        """Show how a quantity came to be: equations, values, units, sources.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("explain()")
        from mlsim.solvers.explain import Explanation

        self.value(name)
        return Explanation(self.configuration, name)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer for JSON: every value with its unit."""
        from mlsim.solvers.forward.profile_report import as_dict

        return as_dict(self)

    def __str__(self) -> str:
        from mlsim.solvers.forward.profile_report import as_text

        return as_text(self)

    def __repr__(self) -> str:
        shape = self.configuration.shape
        what = f"{shape} points" if shape else f"batch {self.batch_size}"
        return (
            f"<Profile {self.model.name} on {self.hardware.name}, {what}, "
            f"{self.precision}, {self.estimate}>"
        )


def kind_of(estimate: str) -> type[Configuration]:
    """Return the kind of question for an estimate; the rates that were measured have their own."""
    if estimate != CALIBRATED:
        return Configuration
    from mlsim.solvers.forward.calibrated_configuration import CalibratedConfiguration

    return CalibratedConfiguration


def solve(
    model: Network,
    device: Device,
    *,
    batch_size: Any = 1,
    precision: str | Precision = "fp16",
    estimate: str = "roofline",
    check_memory: bool = True,
    given: Mapping[str, Any] | None = None,
) -> Profile:
    """Predict one forward pass; see `Engine.solve` for the arguments.

    Raises
    ------
    MlsimError
        As `Engine.solve`.
    """
    kind = kind_of(estimate)
    configuration = kind(
        model=model,
        device=device,
        precision=find_precision(precision),
        estimate=estimate,
        batch_size=validate("batch_size", batch_size, whole=True),
        given=validate_given(given, kind.givable) if given else {},
    )
    configuration.check_consistent()
    return Profile(configuration, check_memory=check_memory)
