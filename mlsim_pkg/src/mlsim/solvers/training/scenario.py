"""What is trained, on what, and how it is divided: the facts of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from mlsim.errors import NotMeasuredError
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED
from mlsim.precision import Precision, by_default
from mlsim.solvers.formats import WIDE
from mlsim.solvers.question import Question
from mlsim.systems import Cluster, Placement, System, placement
from mlsim.workloads.kernels import Recipe
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism

if TYPE_CHECKING:
    from mlsim.hardware.device_calibration import Calibration
    from mlsim.hardware.kernel_constants import Loan
    from mlsim.software import Software
    from mlsim.systems.link_calibration import LinkCalibration

BOUND = "bound"


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


@dataclass(frozen=True, eq=False)
class Scenario:
    """A training run as it was asked for; sizes are floats in base units.

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
    # Whether nobody asked for the precision.
    assumed: bool
    # What runs it; of the calibrated estimate only.
    software: Software | None = None

    @property
    def why(self) -> str:
        """Why it is in this precision; "" where it was asked for."""
        return by_default(self.precision.name, self.model.stated_format) if self.assumed else ""

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

    @cached_property
    def variant(self) -> frozenset[str]:
        """What decides which equations hold."""
        flags = {
            "causal": self.model.decoder and not self.masked_worked,
            "calibrated": self.calibrated,
            "recomputed": self.recipe.recompute == "full",
            "bound": self.bound,
            "uneven": self.model.layers % self.parallelism.pipeline > 0,
            "adapters": self.recipe.adapters is not None,
            "quantized": self.recipe.quantized,
        }
        return frozenset(name for name, holds in flags.items() if holds)

    def bandwidth(self, span: int, stride: int) -> float:
        """Rate at which a device sends to a group of `span`, `stride` apart, one way."""
        return _bandwidth(self.hardware, span, stride)

    @property
    def calibrated(self) -> bool:
        """Whether the rates are those that were measured."""
        return self.estimate == CALIBRATED

    @property
    def bound(self) -> bool:
        """Whether the least time is asked for that a step can take."""
        return self.estimate == BOUND

    @property
    def masked_worked(self) -> bool:
        """Whether pairs of tokens are worked on that a mask hides; the bound leaves them out."""
        return self.recipe.standard and not self.bound

    @property
    def achieved(self) -> Calibration | None:
        """What the device was measured to reach; None of a roofline, or where all is given."""
        if not self.calibrated:
            return None
        from mlsim.hardware.device_calibration import calibration
        from mlsim.solvers.calibrated import OF_DEVICE

        if set(OF_DEVICE) <= set(self.given):
            return None
        return calibration(self.device, self.precision.computes_as)

    @property
    def attention_achieved(self) -> Calibration | None:
        """What attention reaches, which computes in 16 bits where matrices take 8."""
        if self.achieved is None:
            return None
        from mlsim.hardware.device_calibration import calibration

        return calibration(self.device, self.computes_in("attention", ""))

    @property
    def linked(self) -> LinkCalibration | None:
        """What its links were measured to reach; None of a roofline, or where nothing is sent.

        Nor is it looked up where all of it is given. Of links that nobody measured it is None,
        and they count as in a roofline.
        """
        if not self._sends or self.node is None:
            return None
        group = min(self.parallelism.tensor, self.node.devices)
        return _linked(self.node, group if group > 1 else None)

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Which constants were measured on other devices; of links also whether on none."""
        if not self.calibrated:
            return ()
        from mlsim.hardware.kernel_constants import NOBODY, Relatives, loans
        from mlsim.solvers.noted import farthest, without_given

        found = [each for each in (self.achieved, self.attention_achieved) if each]
        lent = without_given((loan for each in found for loan in each.loans), self.given)
        node = self.node
        if self._sends and node:
            linked = self.linked
            lent.extend(loans({"exchange": linked.kin if linked else Relatives(NOBODY, ())}))
        return farthest(lent)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What nobody asked for, and changes the answer."""
        from mlsim.solvers.noted import of_device, of_hardware

        cluster = self.hardware if self.parallelism.devices > self.node_devices else None
        return (*of_device(self.device), *of_hardware(cluster))

    @property
    def _sends(self) -> bool:
        """Whether rates of links are asked of what was measured."""
        asked = not {"link_fraction", "hop_latency"} <= set(self.given)
        return self.calibrated and self.parallelism.devices > 1 and asked

    def computes_in(self, kind: str, name: str) -> str:
        """Name the format in which a kernel computes; 8 bits are for matrices of layers only."""
        narrow = kind == "product" and not name.startswith(("output", "router", "adapter"))
        if self.precision.bits >= WIDE or narrow:
            return self.precision.computes_as
        return "bf16" if "bf16" in self.device.compute.figures else "fp16"

    @property
    def question(self) -> Question:
        """What is asked of it."""
        raise NotImplementedError

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        return {
            "model": self.model.name,
            "model_source": self.model.source,
            "hardware": self.hardware_name,
            "precision": self.precision.name,
            "estimate": self.estimate,
            **({"adapters": str(self.recipe.adapters)} if self.recipe.adapters else {}),
        }

    @property
    def hardware_name(self) -> str:
        """The devices that are used, and where they are."""
        where = "" if isinstance(self.hardware, Device) else f" of {self.hardware.name}"
        return f"{self.parallelism.devices:,} x {self.device.name}{where} ({self.parallelism})"


@lru_cache(maxsize=256)
def _linked(node: System, group: int | None) -> LinkCalibration | None:
    from mlsim.systems.link_calibration import link_calibration

    try:
        return link_calibration(node, group)
    except NotMeasuredError:
        return None


@lru_cache(maxsize=1024)
def _bandwidth(hardware: Device | System | Cluster, span: int, stride: int) -> float:
    if isinstance(hardware, Device):
        return 0.0  # nobody to send to, so nothing is divided by it
    if isinstance(hardware, Cluster):
        inside = placement(span, stride, hardware.node.devices).groups == 1
        return hardware.node.link_bandwidth(span) if inside else hardware.fabric_bandwidth
    return hardware.link_bandwidth(span)
