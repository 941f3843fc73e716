"""What a solve answers: times, rates, memory, what binds, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from mlsim.parameters import CALIBRATED, check, validate, validate_given
from mlsim.precision import Precision, precision as find_precision
from mlsim.solvers.answer import (
    COMPUTE_BOUND,
    DOES_NOT_FIT,
    MEMORY_BOUND,
    Column,
    Form,
    Row,
    banded,
    doubts,
    memory_used,
    noted,
    plain,
    seconds,
    short,
    with_unit,
)
from mlsim.solvers.causes import TimedAnswer, label_of, shares_of, with_causes, written
from mlsim.solvers.forward.configuration import Configuration, sensitivity
from mlsim.solvers.question import Question
from mlsim.units import held
from mlsim.values.attributes import count, result
from mlsim.workloads.model import COLUMNS

if TYPE_CHECKING:
    import pandas

    from mlsim.hardware import Device
    from mlsim.software import Software
    from mlsim.workloads.model import Network

# Where activations are between two operators, unless a cache may keep them.
IN_MEMORY = "memory"

# The precision of a sweep that asks for none: one for all its devices.
USUAL = "fp16"

# Results that are computed together.
_USUAL_RESULTS = (
    *("latency", "throughput", "memory_bound_share", "memory_required", "memory_free"),
)
# Quantities that have no meaning for a workload that can't run.
_NEEDS_MEMORY = frozenset(
    (
        *("latency", "throughput", "achieved_flops", "memory_bound_time", "memory_bound_share"),
        *("total_overhead_time", "overhead_share"),
    )
)


def _bottleneck(profile: Profile) -> str:
    """Return what binds, and for how much of the time."""
    if not profile.configuration.calibrated:
        share = profile.value("memory_bound_share")
        return f"{profile.bottleneck} ({share:.0%} of the time in memory-bound operators)"
    return f"{profile.bottleneck}: {written(profile.causes)} of the time"


def _formats(profile: Profile) -> str:
    return profile.configuration.why


def _software(profile: Profile) -> str:
    return profile.configuration.labels.get("software", "")


def _estimate(profile: Profile) -> str:
    return profile.configuration.labels["estimate"]


def _caused(profile: Profile) -> bool:
    """Tell whether JSON says what the time goes into."""
    return profile.configuration.calibrated and profile.shows_times


_FORM = Form(
    title=lambda profile: (
        f"{profile.model.name} on {profile.hardware.name}, {profile.precision}, "
        f"{_estimate(profile)}"
    ),
    rows=(
        Row("batch size", lambda profile: str(profile.batch_size)),
        Row("formats", _formats, note=True),
        Row("software", _software, note=True),
        Row("", noted, note=True),
        Row("latency", "latency", timed=True),
        banded("latency"),
        Row("throughput", "throughput", timed=True),
        Row("bottleneck", _bottleneck, timed=True),
        Row("memory", lambda profile: memory_used(profile, "memory_capacity")),
        Row("", doubts),
        Row("feasible", lambda profile: "" if profile.shows_times else short(profile)),
    ),
    columns=(
        Column("batch", 8, lambda profile: profile.batch_size),
        Column("latency", 10, "latency", seconds),
        Column("samples/s", 10, "throughput"),
        Column("bottleneck", 0, lambda profile: profile.bottleneck, str),
    ),
    inputs={
        "model": lambda profile: profile.model.name,
        "hardware": lambda profile: profile.hardware.name,
        "precision": lambda profile: profile.precision,
        "formats_assumed": _formats,
        "estimate": _estimate,
        "software": _software,
        "batch_size": lambda profile: with_unit(profile.batch_size, "sample"),
        "feasible": lambda profile: plain(profile.feasible),
        "bottleneck": lambda profile: plain(profile.bottleneck) if profile.shows_times else None,
        "cause": lambda profile: profile.cause if _caused(profile) and not profile.shape else "",
        "causes": lambda profile: plain(profile.causes) if _caused(profile) else "",
    },
)


class Profile(TimedAnswer):
    """The answer for one configuration, or for an array of them.

    Each result is a value that knows its unit and how it came to be; `throughput` and shares
    are floats as well. What has no attribute, `show(profile, name)` gives by name.

    >>> from mlsim import Engine, Hardware, Models
    >>> profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    >>> profile.bottleneck
    'Memory Bound'
    >>> print(f"{profile.latency.to('us'):.1f}")
    55.5 µs
    """

    noun = variable = "profile"
    needs_memory = _NEEDS_MEMORY
    form = _FORM
    main: ClassVar[Mapping[str, str]] = {"latency": "{}"}
    reported = (
        *("latency", "throughput", "memory_bound_share", "total_flops", "total_bytes"),
        *("network_intensity", "ridge_point", "memory_required", "memory_capacity"),
    )

    def __init__(self, configuration: Configuration, *, check_memory: bool) -> None:
        super().__init__(configuration, check_memory=check_memory)
        self.configuration = configuration
        if configuration.plain or not configuration.shape:
            self._values = configuration.evaluate(*_USUAL_RESULTS)
        else:
            _ = self.question.known  # results wait until all that are wanted are computed together

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
    def names(self) -> tuple[str, ...]:
        """What can be asked for by name."""
        results = (each for each in self.configuration.givable if each not in COLUMNS)
        return tuple(dict.fromkeys((*results, *self.question.known)))

    def _value(self, name: str) -> Any:
        # The configuration remembers its plans from one batch to the next.
        configuration = self.configuration
        computed = name in configuration.givable and name not in configuration.given
        if computed and name not in self._values and name not in COLUMNS:
            self._values |= configuration.evaluate(
                *(_USUAL_RESULTS if name in _USUAL_RESULTS else (name,))
            )
        return super()._value(name)

    def too_large(self) -> str:
        """Say by how much it does not fit, and what would help."""
        return (
            f"{self.model.name} at batch {self.batch_size} in {self.precision} needs "
            f"{held(float(self._values['memory_required']))}; {self.hardware.name} has "
            f"{held(self.question.known['memory_capacity'])}: "
            f"{held(-float(self._values['memory_free']))} too much. Use a smaller batch, or "
            "pass check_memory=False for the time it would take if it fitted."
        )

    def _point(self, pick: Callable[[Any], float]) -> Profile:
        point = replace(
            self.configuration,
            batch_size=pick(self.configuration.batch_size),
            given={name: pick(value) for name, value in self.configuration.given.items()},
        )
        return Profile(point, check_memory=self._check_memory)

    latency = result("Time of one step.")
    throughput = count("Samples per second.")
    memory_bound_share = count(
        "Part of the latency spent in operators that memory limits. The arithmetic units also "
        "work in that time, only not at their peak."
    )
    overhead_share = count("Part of the latency that no operator uses; of the calibrated estimate.")
    achieved_flops = result("Work over latency.")
    total_flops = result("Work of the step.")
    total_bytes = result("Bytes that the step moves to and from main memory.")
    total_compute_time = result("Time of the arithmetic alone, at its rate.")
    total_memory_time = result("Time of the bytes alone, at their rate.")
    network_intensity = result("Work of the step over its bytes.")
    ridge_point = result("Intensity at which the device's two limits meet.")
    weight_memory = result("Memory that the weights take.")
    activation_memory = result("Most memory that activations take at one time.")
    memory_required = result("Memory for weights and live activations.")
    memory_capacity = result("Memory of the device that a program can take.")
    memory_free = result("Memory that is left; negative where it does not fit.")
    peak_flops = result("Dense peak of the device in this precision.")
    memory_bandwidth = result("Bandwidth of the device's main memory.")
    last_level_cache = result("The cache in which activations may stay; of `on-chip` answers.")

    @property
    def bottleneck(self) -> Any:
        """What binds: "Memory Bound" if memory limits operators for over half the time.

        The calibrated estimate takes the label with the largest part of the time, and also
        knows "Overhead Bound": tiles that don't fill the device, starting operators, and
        waiting for the host. `cause` says which of them.
        """
        share = self.value("memory_bound_share")
        if self.configuration.calibrated:
            named = label_of(self._caused)
        elif not self.configuration.shape:
            return MEMORY_BOUND if share > 0.5 else COMPUTE_BOUND
        if not self.configuration.shape:
            return named
        import numpy as np

        if not self.configuration.calibrated:
            named = np.where(share > 0.5, MEMORY_BOUND, COMPUTE_BOUND)
        return np.where(np.isnan(share), DOES_NOT_FIT, named)

    @cached_property
    def _caused(self) -> Question:
        return with_causes(self.question, calibrated=self.configuration.calibrated, alone=True)

    @property
    def causes(self) -> dict[str, Any]:
        """Part of the time by cause; the parts add up to 1.

        "arithmetic", "memory" and "network"; of the calibrated estimate also "tiles" that
        don't fill the device, "launches" of operators, and waiting for the "host".
        """
        self.value("memory_bound_share")  # refused where it does not fit
        return shares_of(self._caused, calibrated=self.configuration.calibrated)

    def _as_roofline(self) -> Profile | None:
        asked, known = self.configuration, Configuration.givable
        if not asked.calibrated:
            return None
        given = {name: value for name, value in asked.given.items() if name in known}
        return Profile(as_roofline(asked, given), check_memory=False)

    def _calibrated(self) -> Profile:
        from mlsim.solvers.calibrated import software_of

        kind: Any = kind_of(CALIBRATED, "on-chip" if self.configuration.keeps else IN_MEMORY)
        same = vars(self.configuration) | {"estimate": CALIBRATED}
        asked = {each.name: same[each.name] for each in fields(Configuration)}
        made_by = software_of(None, CALIBRATED, "solve")
        return Profile(kind(**asked, software=made_by), check_memory=self._check_memory)

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

        return operator_rows(self.question, self.configuration.operators)

    def sensitivity(self, name: str = "latency") -> pandas.DataFrame:
        """Return how much a result changes with each input, as a table.

        The column `elasticity` is the percent by which the result changes
        when the input grows by one percent, the others held.

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
        self.value(name)
        return sensitivity(self.configuration, name)

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        points = f"{self.shape} points" if self.shape else f"batch {self.batch_size}"
        estimate = self.configuration.labels["estimate"]
        return f"{self.model.name} on {self.hardware.name}, {points}, {self.precision}, {estimate}"


def as_roofline(held: Configuration, given: Mapping[str, Any]) -> Configuration:
    """Return the roofline's question to a calibrated one."""
    kind = kind_of("roofline", "on-chip" if held.keeps else IN_MEMORY)
    same = ("model", "device", "precision", "batch_size", "assumed")
    return kind(estimate="roofline", given=given, **{name: getattr(held, name) for name in same})


def kind_of(estimate: str, activations: str = IN_MEMORY) -> type[Configuration]:
    """Return the kind of question for an estimate; the rates that were measured have their own."""
    if activations != IN_MEMORY:
        from mlsim.solvers.forward.kinds import on_chip

        return on_chip(estimate, activations)
    if estimate == CALIBRATED:
        from mlsim.solvers.forward.kinds import CalibratedConfiguration

        return CalibratedConfiguration
    if estimate != "roofline":  # the usual one
        check("estimate", estimate)
    return Configuration


def solve(
    model: Network,
    device: Device,
    *,
    batch_size: Any = 1,
    precision: str | Precision | None = None,
    estimate: str = "roofline",
    activations: str = IN_MEMORY,
    software: Software | str | None = None,
    check_memory: bool = True,
    given: Mapping[str, Any] | None = None,
) -> Profile:
    """Predict one forward pass; see `Engine.solve` for the arguments.

    Raises
    ------
    MlsimError
        As `Engine.solve`.
    """
    kind = kind_of(estimate, activations)
    more: dict[str, Any] = {}
    if estimate == CALIBRATED or software is not None:
        from mlsim.solvers.calibrated import software_of

        more["software"] = software_of(software, estimate, "solve")
    configuration = kind(
        model=model,
        device=device,
        precision=find_precision(
            device.compute.usual_precision if precision is None else precision
        ),
        estimate=estimate,
        batch_size=validate("batch_size", batch_size, whole=True),
        given=validate_given(given, kind.givable) if given else {},
        assumed=precision is None,
        **more,
    )
    configuration.check_given()
    return Profile(configuration, check_memory=check_memory)
