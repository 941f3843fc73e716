"""A question about a forward pass on one device, and the equations that answer it.

A configuration is turned into known quantities; a plan of equations is run on the
operator table of the model, all operators at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from mlsim.equations import Equation, equations_of, roofline
from mlsim.equations.graph import Folded, fold
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED
from mlsim.precision import Precision, by_default
from mlsim.solvers import question
from mlsim.solvers.question import Known, Question, of_device, recorded, shape_of
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, Network, NetworkOperators

if TYPE_CHECKING:
    import pandas

    from mlsim.hardware.kernel_constants import Loan


# The equations of this question. Those of layers have been used when the model
# was lowered; those of a language model's steps answer another.
SOLVER = equations_of(roofline.ROOFLINE, roofline.MEMORY)

# What a caller may give in place of what the data or the equations say.
GIVABLE = (
    *("peak_flops", "memory_bandwidth", "memory_capacity", "bytes_per_parameter"),
    "bytes_per_element",
    *(each.yields for each in SOLVER),
)


# Folded plans that a model's table keeps.
MOST_KEPT = 256


def lookups() -> tuple[Equation, ...]:
    """Return the equations of a network that looks rows of tables up."""
    from mlsim.equations import roofline

    return equations_of(roofline.LOOKUP)


@lru_cache(maxsize=8)
def with_lookups(equations: tuple[Equation, ...]) -> tuple[Equation, ...]:
    """Return the equations of a network that holds more than it reads: tables, of which rows."""
    return tuple({each.yields: each for each in (*equations, *lookups())}.values())


@dataclass(frozen=True, eq=False)
class Configuration:
    """A model on a device, at a batch and a precision.

    `batch_size` and the values of `given` are floats or NumPy arrays that
    broadcast to `shape`.
    """

    model: Network
    device: Device
    precision: Precision
    estimate: str
    batch_size: Any
    given: Mapping[str, Any]
    # Whether nobody asked for the precision.
    assumed: bool = False

    # What may be given, and asked for; whether a cache keeps activations.
    givable: ClassVar[tuple[str, ...]] = GIVABLE
    keeps: ClassVar[bool] = False

    @property
    def why(self) -> str:
        """Why the answer is in this precision; "" where it was asked for."""
        return by_default(self.precision.name) if self.assumed else ""

    @property
    def calibrated(self) -> bool:
        """Whether the rates are those that were measured."""
        return self.estimate == CALIBRATED

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Which constants were measured on other devices: none of a roofline."""
        return ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What nobody asked for, and changes the answer by a tenth, in words."""
        return tuple(of_device(self.device))

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The equations that answer the question."""
        return with_lookups(SOLVER) if self.model.operators.table_parameters else SOLVER

    def check_given(self) -> None:
        """Refuse given quantities that contradict each other or the batch, or make no sense.

        Raises
        ------
        InvalidValueError
            If a result and all that it follows from are given, and differ; or if the answer
            would have a share above 1.
        """
        if self.given:
            shares = ("memory_bound_share", "overhead_share")[: 1 + self.calibrated]
            self.question.check_given(self.given, ("batch_size",), shares)

    @property
    def plain(self) -> bool:
        """Whether one batch is all that is asked: the usual question, which is answered fast."""
        return type(self.batch_size) is float and not self.given

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        return shape_of({"batch_size": self.batch_size, **self.given})

    @property
    def operators(self) -> NetworkOperators:
        """All operators in order, or for the bound the whole network as one."""
        operators = self.model.operators
        return operators.fused if self.estimate == "bound" else operators

    @property
    def table(self) -> NetworkOperators:
        """The operators to reckon with: equal ones in one row."""
        operators = self.model.operators
        fused = self.estimate == "bound"
        return operators.fused.with_tables if fused else operators.merged.with_tables

    @cached_property
    def question(self) -> Question:
        """What is asked of this configuration: all that is known, and the equations."""
        return Question(
            self._known,
            self.equations,
            lambda: self.labels,
            table=self.table,
            shape=self.shape,
        )

    def _known(self) -> Known:
        return self._on_record().add("given", batch_size=self.batch_size, **self.given)

    def _on_record(self) -> Known:
        """Return what is known of model, device and precision."""
        device, bits = (
            self.device,
            f"{self.why or self.precision.name}: {self.precision.bits:g} bits",
        )
        network = f"{self.model.name}, from its layers ({self.model.source})"
        live = float(self.model.operators.activations_live)
        known = Known().add("definition", flops_per_multiply_add=FLOPS_PER_MULTIPLY_ADD)
        known.add(
            bits, bytes_per_parameter=self.precision.bytes, bytes_per_element=self.precision.bytes
        )
        known.add(network, activations_live=live)
        known.add_memory(device)
        if "peak_flops" not in self.given:
            peak = device.compute.figure(self.precision)
            known.add(recorded(device, peak), peak_flops=peak.si)
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

    def evaluate(self, *wanted: str) -> dict[str, Any]:
        """Compute quantities of the whole network: floats for one point, else arrays."""
        if not (self.plain and question.ARRAYS):
            return self.question.evaluate(*wanted)
        # Of one batch after another, all else is the same as the last time.
        table = self.table
        key = (self.device, self.precision, wanted)
        run: Folded | None = table.cache.get(key)
        if run is None:
            if len(table.cache) >= MOST_KEPT:
                table.cache.clear()
            asked = self.question
            known = {**asked.known, **table.arrays}
            run = table.cache[key] = fold(asked.plan(*wanted), known, ("batch_size",))
        return run({"batch_size": self.batch_size})


# What may be varied: the batch, and all that is known of device and format.
VARIABLE = (
    *("batch_size", "peak_flops", "memory_bandwidth", "memory_capacity", "bytes_per_parameter"),
    "bytes_per_element",
)


def sensitivity(configuration: Configuration, target: str) -> pandas.DataFrame:
    """Return how much a result changes with each input, as a table; see `elasticities`."""
    from mlsim.solvers.arrays import STEP, elasticities

    known = configuration.question.known

    def at(name: str, scale: float) -> float:
        value = float(known[name]) * scale
        if name == "batch_size":
            changed = replace(configuration, batch_size=value)
        else:
            changed = replace(configuration, given={**configuration.given, name: value})
        return float(changed.question.value(target))

    return elasticities((n, float(known[n]), partial(at, n), STEP) for n in VARIABLE)
