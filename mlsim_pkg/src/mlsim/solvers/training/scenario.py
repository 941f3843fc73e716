"""What is trained, on what, and how it is divided: the facts of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from mlsim.equations import (
    Equation,
    calibration,
    equations_of,
    links,
    roofline,
    runs,
    serving,
    training,
    transformer,
)
from mlsim.errors import NotMeasuredError
from mlsim.hardware import Device
from mlsim.parameters import CALIBRATED
from mlsim.precision import Precision, by_default
from mlsim.solvers.formats import WIDE
from mlsim.solvers.question import Question, of_device, of_hardware
from mlsim.systems import Cluster, Placement, System, placement
from mlsim.workloads.kernels import Recipe
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism

if TYPE_CHECKING:
    from mlsim.hardware.device_calibration import Calibration
    from mlsim.hardware.kernel_constants import Loan
    from mlsim.software import Software
    from mlsim.systems.link_calibration import LinkCalibration


_OWN = equations_of(
    training.TRAINING,
    links.COLLECTIVE,
    training.PIPELINE,
    training.STEP_PARTS,
    training.TRAINING_MEMORY,
    runs.RUN,
    runs.TRAINING_BOUND,
    runs.ADAPTERS,
)
# Where adapters are trained beside a frozen model, what takes the place of which equation. Of
# each pair, the first holds where all weights are trained.
_OF_ADAPTERS = {
    "weight_memory": ("sharded_weight_memory", "frozen_weight_memory"),
    "gradient_memory": ("gradient_memory", "adapter_gradient_memory"),
    "optimizer_memory": ("optimizer_memory", "adapter_optimizer_memory"),
    "state_shards": ("state_shards", "adapter_state_shards"),
    "weight_shards": ("zero3_weight_shards", "frozen_weight_shards"),
    "activation_memory": ("training_activation_memory", "adapter_activation_memory"),
    "model_flops": ("model_flops", "adapter_model_flops"),
    "exchanged_parameters": ("exchanged_parameters", "exchanged_adapter_parameters"),
    "gradient_time": ("gradient_time", "adapter_gradient_time"),
    "optimizer_time": ("optimizer_time", "adapter_optimizer_time"),
    "checkpoint_bytes": ("adam_checkpoint_bytes", "adapter_checkpoint_bytes"),
    "compulsory_bytes": ("compulsory_bytes", "adapter_compulsory_bytes"),
}
# What holds of a kernel, of pairs of tokens and of memory whatever they are for.
_SHARED = (
    *("bytes_moved", "compute_time", "calibrated_compute_time", "memory_time"),
    *("calibrated_memory_time", "waves", "filled_share", "roofline_time", "arithmetic_intensity"),
    *("unclipped_tokens", "attention_pairs", "bidirectional_pairs", "usable_memory"),
    "usable_memory_free",
)
_BY_NAME = {
    each.name: each
    for each in equations_of(
        roofline.ROOFLINE, calibration.CALIBRATION, transformer.STEP, serving.SERVICE
    )
}
TRAINING = (*(_BY_NAME[name] for name in _SHARED), *_OWN)
# What holds of a network of layers too, whose devices share neither layers nor sequences.
_OF_NETWORKS = (
    *("flops", "weight_bytes", "activation_bytes", "bytes_moved", "arithmetic_intensity"),
    *("compute_time", "calibrated_compute_time", "memory_time", "calibrated_memory_time"),
    *("convolution_rows", "waves", "filled_share", "roofline_time"),
    *("ideal_kernel_time", "started_kernel_time", "forward_time", "backward_time"),
    *("stage_time", "steady_time", "bubble_time", "training_micro_batches", "step_time"),
    *("step_forward_time", "step_recompute_time", "step_backward_time", "step_exchange_time"),
    *("exposed_pipeline_time", "exposed_gradient_time", "optimizer_time", "kernel_step_time"),
    *("ring_pass_rate", "hierarchical_pass_rate", "tree_pass_rate", "tree_depth"),
    *("ring_pass_latency", "hierarchical_pass_latency", "tree_pass_latency"),
    *("gradient_time", "all_reduce_hop_latency", "hardware_flops", "ideal_step_time"),
    *("peak_step_time", "model_flops_utilization", "hardware_flops_utilization"),
    *("micro_batch_bytes", "training_memory_utilisation", "optimizer_memory", "state_memory"),
    *("training_memory", "usable_memory", "usable_memory_free", "adam_checkpoint_bytes"),
    *("failure_interval", "checkpoint_time", "checkpoint_interval", "goodput"),
    *("training_time", "device_time", "training_cost"),
    *("compulsory_bytes", "compulsory_time", "bound_step_time", "bound_memory_utilisation"),
)
# What the bound does not have: where the time of a step goes.
_PARTS = frozenset(
    (
        *("forward_time", "recompute_time", "backward_time", "exchange_time", "output_time"),
        *("stage_time", "steady_time", "bubble_time", "output_share", "pipeline_time"),
        *("exposed_pipeline_time", "exposed_gradient_time", "gradient_time", "optimizer_time"),
        *("step_forward_time", "step_recompute_time", "step_backward_time"),
        *("step_exchange_time", "kernel_step_time", "kernel_time", "network_time"),
        *("compute_time", "memory_time", "roofline_time", "micro_batch_bytes"),
    )
)
_CANDIDATES = {each.name: each for each in TRAINING} | _BY_NAME
NETWORK_TRAINING = (
    *(_CANDIDATES[name] for name in _OF_NETWORKS),
    *equations_of(runs.NETWORK_TRAINING),
)
COLLECTIVES = ("ring", "hierarchical", "tree")


@lru_cache(maxsize=64)
def equations_for(variant: frozenset[str], collective_kind: str) -> tuple[Equation, ...]:
    """Choose one equation for each quantity, for a kind of run and of answer."""
    fine = "adapters" in variant
    again = "adapter_recomputed_flops" if fine else "full_recomputed_flops"
    chosen = {
        **_of_all(variant, collective_kind),
        **{name: pair[fine] for name, pair in _OF_ADAPTERS.items()},
        "weight_bytes": (
            "dequantized_weight_bytes" if "quantized" in variant else "kernel_weight_bytes"
        ),
        "attention_pairs": "attention_pairs" if "causal" in variant else "bidirectional_pairs",
        "bubble_time": "uneven_bubble_time" if "uneven" in variant else "bubble_time",
        "recomputed_flops": (again if "recomputed" in variant else "selective_recomputed_flops"),
    }
    return _chosen(TRAINING, chosen, variant)


def _chosen(
    candidates: tuple[Equation, ...], chosen: dict[str, str], variant: frozenset[str]
) -> tuple[Equation, ...]:
    """Return the equations chosen by name, of those that have others beside them."""
    kept = (each for each in candidates if chosen.get(each.yields, each.name) == each.name)
    return tuple(each for each in kept if "bound" not in variant or each.yields not in _PARTS)


def _of_all(variant: frozenset[str], collective_kind: str) -> dict[str, str]:
    """Name the equation for each quantity that has several, whatever is trained."""
    measured, bound = "calibrated" in variant, "bound" in variant
    return {
        "step_time": "bound_step_time" if bound else "step_time",
        "memory_utilisation": (
            "bound_memory_utilisation" if bound else "training_memory_utilisation"
        ),
        "compute_time": "calibrated_compute_time" if measured else "compute_time",
        "memory_time": "calibrated_memory_time" if measured else "memory_time",
        "kernel_time": "started_kernel_time" if measured else "ideal_kernel_time",
        "pass_rate": f"{collective_kind}_pass_rate",
        "pass_latency": f"{collective_kind}_pass_latency",
        "memory_free": "usable_memory_free",
        "micro_batches": "training_micro_batches",
    }


@lru_cache(maxsize=64)
def network_equations_for(variant: frozenset[str], collective_kind: str) -> tuple[Equation, ...]:
    """Choose one equation for each quantity of training of a network of layers."""
    chosen = {
        **_of_all(variant, collective_kind),
        "optimizer_time": "optimizer_time" if "copied" in variant else "plain_optimizer_time",
    }
    return _chosen(NETWORK_TRAINING, chosen, variant)


# Sizes that only a run has which trains adapters.
OF_ADAPTERS = (
    *("adapter_parameters", "adapter_dense_parameters", "adapter_expert_parameters"),
    *("bytes_per_quantized", "quantized_parameters", "frozen_bytes", "dequantized_at_once"),
    *("frozen_multiply_adds", "spared_multiply_adds", "adapter_multiply_adds"),
    *("exchanged_frozen_parameters", "frozen_gathers"),
)
# Quantities that hold whether or not the run fits.
SIZES = (
    *("weight_memory", "gradient_memory", "optimizer_memory", "activation_memory", "state_memory"),
    *("saved_memory", "working_memory", "in_flight", "memory_required", "memory_free"),
    *("usable_memory", "device_parameters", "model_flops", "hardware_flops", "sequence_flops"),
    *("recomputed_flops", "micro_batches", "step_tokens", "state_bytes", "checkpoint_bytes"),
    *("expert_owners", "state_shards", "gradient_shards", "weight_shards", "weight_gathers"),
    *("gradient_scatters", "gathered_parameters", "pipeline_elements", "tree_depth", "hop_latency"),
    *("flops_per_parameter_token", "run_tokens_per_parameter", "trained_parameters"),
    "trained_share",
    *OF_ADAPTERS,
)
# Where the time of a step goes.
PARTS = {
    "forward": "step_forward_time",
    "recompute": "step_recompute_time",
    "backward": "step_backward_time",
    "exchange": "step_exchange_time",
    "bubble": "bubble_time",
    "pipeline": "exposed_pipeline_time",
    "gradients": "exposed_gradient_time",
    "optimizer": "optimizer_time",
}
# Of the whole run, what failures make longer.
WITH_FAILURES = ("goodput", "training_time", "device_time", "training_cost")

# What a caller may give in place of what the data or the equations say.
TRAINING_GIVABLE = tuple(
    dict.fromkeys(
        (
            *("peak_flops", "memory_bandwidth", "memory_capacity", "link_bandwidth"),
            *("node_bandwidth", "fabric_bandwidth", "stage_bandwidth", "hop_latency"),
            *("link_fraction", "memory_fraction", "bytes_per_parameter", "bytes_per_element"),
            *("bytes_per_gradient", "state_bytes", "checkpoint_bytes"),
            *(each.yields for each in TRAINING if not each.sums),
        )
    )
)

# The calibrated estimate has more of it.
CALIBRATED_GIVABLE = (*TRAINING_GIVABLE, "compute_fraction", "kernel_overhead")

# What can be asked for.
TRAINING_NAMES = tuple(
    dict.fromkeys(name for each in TRAINING for name in (each.yields, *each.inputs))
)


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
        from mlsim.solvers.calibrated import farthest, without_given

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
