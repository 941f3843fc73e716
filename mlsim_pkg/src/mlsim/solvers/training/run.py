"""What is trained, on what, and how it is spread: a question about a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from mlsim.equations import (
    EQUATIONS,
    Equation,
    Plan,
    collective,
    equations_of,
    link,
    pipeline,
    plan,
    run,
    training,
    training_memory,
)
from mlsim.hardware import Device
from mlsim.hardware.device_calibration import Calibration, calibration
from mlsim.precision import Precision
from mlsim.solvers.formats import WIDE
from mlsim.solvers.training.run_known import known
from mlsim.systems import Cluster, Placement, System, placement
from mlsim.systems.link_calibration import LinkCalibration, link_calibration
from mlsim.workloads.kernels import KERNEL_COLUMNS, Kernel, KernelTable, Parallelism
from mlsim.workloads.language import Transformer
from mlsim.workloads.passes import Recipe
from mlsim.workloads.training_lowering import kernels

_OWN = (training, collective, pipeline, training_memory, run)
# What holds of a kernel, of pairs of tokens and of memory whatever they are for.
_SHARED = (
    "bytes_moved",
    "compute_time",
    "calibrated_compute_time",
    "memory_time",
    "calibrated_memory_time",
    "waves",
    "filled_share",
    "roofline_time",
    "arithmetic_intensity",
    "unclipped_tokens",
    "attention_pairs",
    "bidirectional_pairs",
    "usable_memory",
    "usable_memory_free",
)
_BORROWED = tuple(EQUATIONS[name] for name in _SHARED)
TRAINING = (*_BORROWED, *equations_of(*_OWN))
COLLECTIVES = ("ring", "hierarchical", "tree")


@dataclass(frozen=True, slots=True)
class Overlap:
    """Parts of sending that computing hides: within a stage, between stages, of gradients."""

    exchange: float = 0.0
    pipeline: float = 0.0
    gradient: float = 0.0


@dataclass(frozen=True, slots=True)
class Reliability:
    """How often a device fails, and what saving and restarting take; None: not counted."""

    mean_time_to_failure: float | None = None
    checkpoint_bandwidth: float | None = None
    restart_time: float | None = None


@lru_cache(maxsize=64)
def equations_for(variant: frozenset[str], collective_kind: str) -> tuple[Equation, ...]:
    """Choose one equation for each quantity, for a kind of run and of answer."""
    measured = "calibrated" in variant
    chosen = {
        "compute_time": "calibrated_compute_time" if measured else "compute_time",
        "memory_time": "calibrated_memory_time" if measured else "memory_time",
        "kernel_time": "started_kernel_time" if measured else "ideal_kernel_time",
        "attention_pairs": "attention_pairs" if "causal" in variant else "bidirectional_pairs",
        "pass_rate": f"{collective_kind}_pass_rate",
        "pass_latency": f"{collective_kind}_pass_latency",
        "memory_free": "usable_memory_free",
        "micro_batches": "training_micro_batches",
    }
    return tuple(each for each in TRAINING if chosen.get(each.yields, each.name) == each.name)


@lru_cache(maxsize=1024)
def find_plan(
    variant: frozenset[str], algorithm: str, known: frozenset[str], wanted: tuple[str, ...]
) -> Plan:
    """Return the plan from known names to wanted ones, made once."""
    return plan(equations_for(variant, algorithm), known, wanted)


@dataclass(frozen=True, eq=False)
class Run:
    """A question about a training run; sizes are floats in base units.

    `tokens` is None where only a step is asked for; `given` holds quantities that
    override what the data or the equations say.
    """

    model: Transformer
    hardware: Device | System | Cluster
    parallelism: Parallelism
    recipe: Recipe
    precision: Precision
    gradients: Precision
    estimate: str
    global_batch: float
    micro_batch: float
    sequence_tokens: float
    tokens: float | None
    overlap: Overlap
    reliability: Reliability
    price: float | None
    collective: str
    reserve_share: float
    given: Mapping[str, Any]
    table: KernelTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", self._table())

    @property
    def device(self) -> Device:
        """Each of the devices."""
        return self.hardware if isinstance(self.hardware, Device) else self.hardware.device

    @property
    def node(self) -> System | None:
        """The system that each node is; None of a device alone."""
        if isinstance(self.hardware, Cluster):
            return self.hardware.node
        return self.hardware if isinstance(self.hardware, System) else None

    @property
    def node_devices(self) -> int:
        """Devices that share the fast links of one node."""
        return self.node.devices if self.node else 1

    @property
    def group(self) -> Placement:
        """Where the devices lie that hold the same weights."""
        return placement(self.parallelism.copies, self.parallelism.tensor, self.node_devices)

    @property
    def algorithm(self) -> str:
        """How gradients are brought together."""
        if self.collective != "auto":
            return self.collective
        return "ring" if self.group.groups == 1 else "hierarchical"

    @property
    def variant(self) -> frozenset[str]:
        """What decides which equations hold."""
        causal = self.model.decoder and not self.recipe.standard
        flags = {"causal": causal, "calibrated": self.estimate == "calibrated"}
        return frozenset(name for name, holds in flags.items() if holds)

    @property
    def shape(self) -> tuple[int, ...]:
        """One point."""
        return ()

    def bandwidth(self, span: int, stride: int) -> float:
        """Rate at which a device sends to a group of `span`, `stride` apart, one way."""
        if isinstance(self.hardware, Device):
            return 0.0  # nobody to send to, so nothing is divided by it
        lies = placement(span, stride, self.node_devices)
        if isinstance(self.hardware, Cluster):
            inside = lies.groups == 1
            node = self.hardware.node
            return node.link_bandwidth(span) if inside else self.hardware.fabric_bandwidth
        return self.hardware.link_bandwidth(span)

    def _table(self) -> KernelTable:
        rows = tuple(
            self._placed(row) for row in kernels(self.model, self.parallelism, self.recipe)
        )
        extra: dict[str, tuple[float, ...]] = {}
        if "peak_flops" not in self.given:
            extra["peak_flops"] = tuple(self._peak(row.kind, row.name).si for row in rows)
        if self.estimate == "calibrated":
            extra |= self._calibrated_columns(rows)
        sending = next((row for row in rows if row.link_span), None)
        if sending and "link_bandwidth" not in self.given:
            extra["link_bandwidth"] = tuple(
                self._exchange_bandwidth(row if row.link_span else sending) for row in rows
            )
        return KernelTable(rows, extra)  # type: ignore[arg-type]

    def _placed(self, row: Kernel) -> Kernel:
        """Return a kernel with the messages of two levels, if its group is in several nodes."""
        lies = placement(row.link_span or 1, row.link_stride, self.node_devices)
        if not row.collective or lies.groups == 1:
            return row
        rounds = row.link_hops // (row.link_span - 1)
        return replace(row, link_hops=rounds * (lies.members + lies.groups - 2))

    def _exchange_bandwidth(self, row: Kernel) -> float:
        """Rate at which a device of a stage sends; of two levels, that of one ring as fast."""
        one = self.bandwidth(row.link_span, row.link_stride)
        lies = placement(row.link_span, row.link_stride, self.node_devices)
        if not row.collective or lies.groups == 1 or self.node is None:
            return one
        inside = self.node.link_bandwidth(max(2, lies.members))
        return float(link.two_level_bandwidth(lies.members, lies.groups, inside, one))

    def _calibrated_columns(self, rows: tuple[Kernel, ...]) -> dict[str, tuple[float, ...]]:
        """Return columns of what was measured, where it is not the same for all kernels."""
        found, wide = self.achieved, self._attention_achieved
        assert found is not None
        assert wide is not None
        starts = tuple(
            0.0 if row.kind in ("network", "kept") else found.kernel_overhead for row in rows
        )
        # Standard attention is two products; flash attention is a kernel of its own.
        own = not self.recipe.standard
        reached = tuple(
            wide.attention_fraction if own and row.kind == "attention" else found.compute_fraction
            for row in rows
        )
        columns = {"kernel_overhead": starts, "compute_fraction": reached}
        return {name: values for name, values in columns.items() if name not in self.given}

    @property
    def _attention_achieved(self) -> Calibration | None:
        """What attention reaches, which computes in 16 bits where matrices take 8."""
        if self.estimate != "calibrated":
            return None
        return calibration(self.device, self._peak_name("attention", ""))

    def _peak(self, kind: str, name: str) -> Any:
        """Return the peak at which a kernel computes; 8 bits are for matrices of layers only."""
        return self.device.compute.figure(self._peak_name(kind, name))

    def _peak_name(self, kind: str, name: str) -> str:
        """Name the format in which a kernel computes."""
        narrow = kind == "product" and not name.startswith(("output", "router"))
        if self.precision.bits >= WIDE or narrow:
            return self.precision.computes_as
        return "bf16" if "bf16" in self.device.compute.figures else "fp16"

    @cached_property
    def known(self) -> dict[str, Any]:
        """Everything known but the kernels' columns, in base units."""
        return known(self)

    @property
    def achieved(self) -> Calibration | None:
        """What the device was measured to reach; None of a roofline."""
        if self.estimate != "calibrated":
            return None
        return calibration(self.device, self.precision.computes_as)

    @property
    def linked(self) -> LinkCalibration | None:
        """What its links were measured to reach; None of a roofline, or where nothing is sent."""
        if self.estimate != "calibrated" or self.parallelism.devices == 1 or self.node is None:
            return None
        group = min(self.parallelism.tensor, self.node.devices)
        return link_calibration(self.node, group if group > 1 else None)

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""
        names = frozenset((*self.known, *KERNEL_COLUMNS, *self.table.extra))
        return find_plan(self.variant, self.algorithm, names, wanted)

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        return {
            "model": self.model.name,
            "model_source": self.model.source,
            "hardware": self.hardware_name,
            "precision": self.precision.name,
            "estimate": self.estimate,
        }

    @property
    def hardware_name(self) -> str:
        """The devices that are used, and where they are."""
        where = "" if isinstance(self.hardware, Device) else f" of {self.hardware.name}"
        return f"{self.parallelism.devices:,} x {self.device.name}{where} ({self.parallelism})"

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        from mlsim.solvers.training.run_origins import origin

        return origin(self, name)
