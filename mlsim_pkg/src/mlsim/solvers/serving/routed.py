"""Experts among which tokens choose, as measured kernels: their constants, and their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsim.equations import kernels
from mlsim.hardware.device_calibration import expert_constants
from mlsim.hardware.kernel_constants import Relatives
from mlsim.solvers.formats import WIDE_BYTES
from mlsim.solvers.question import Known
from mlsim.workloads.steps import StepOperator

if TYPE_CHECKING:
    from mlsim.precision import Precision
    from mlsim.solvers.serving.service import Service
    from mlsim.workloads.blocks import Experts

# The kind of operators that experts are.
EXPERTS = "experts"
# Of the constants, those that a whole step shares.
_SHARED = (
    *("imbalance", "spread", "data_passes", "half_width"),
    *("expert_tile", "elsewhere_share"),
)
# Formats whose scales make them another path than their values alone.
_SCALED = ("mxfp4", "nvfp4")


@dataclass(frozen=True)
class MeasuredKind:
    """Constants of a device's kernels of one kind by name, and whose they are."""

    constants: Mapping[str, float]
    words: str
    kin: Relatives


def experts_of(service: Service) -> MeasuredKind | None:
    """Return what a service's experts were measured to reach; None if it has none, or nobody did.

    Whoever gives the shares of peak and bandwidth means all products.
    """
    made_by, given = service.software, {"compute_fraction", "memory_fraction"}
    experts = service.model.experts
    if not experts or made_by is None or given & set(service.given):
        return None
    formats = service.formats
    found = expert_constants(
        *(service.device.key, made_by.key, _path(formats.weights), _path(formats.activations)),
        own_path=made_by.expert_path(formats.weights.name, formats.activations.bits),
        sliced=_width(service) < float(experts.size),
    )
    return MeasuredKind(*found) if found else None


def _path(chosen: Precision) -> str:
    return chosen.name if chosen.name in _SCALED else chosen.computes_as


def marks(service: Service, operators: tuple[StepOperator, ...]) -> dict[str, tuple[float, ...]]:
    """Return which operators are experts, and the bytes that a token brings to one of them."""
    experts, width = service.model.experts, _width(service)
    assert experts is not None
    branches = {"experts, up": float(experts.expert.branches)}
    hidden = float(experts.width(service.model.hidden))
    return {
        "routed_mark": tuple(float(each.kind == EXPERTS) for each in operators),
        "passed_bytes": tuple(
            float(kernels.passed_bytes(WIDE_BYTES, hidden, branches.get(each.name, 1.0), width))
            if each.kind == EXPERTS
            else 0.0
            for each in operators
        ),
    }


def _width(service: Service) -> float:
    experts, parallelism = service.model.experts, service.parallelism
    size = float(experts.size) if experts else 0.0
    return float(kernels.expert_width(size, parallelism.tensor, parallelism.expert))


def add_experts(known: Known, service: Service, experts: Experts) -> None:
    """Add what the equations of measured experts ask for."""
    measured, parallelism = service.table.cache["routed"], service.parallelism
    if measured is None:
        return
    own = kernels.own_experts(float(experts.count), parallelism.expert)
    known.add(
        f"layout: {parallelism}",
        expert_parallel=float(parallelism.expert),
        own_experts=float(own),
        expert_width=_width(service),
    )
    known.add(measured.words, **{name: measured.constants[name] for name in _SHARED})
    if service.beyond_one_node:
        # The kernels were measured with choices that are more uneven on more devices. Between
        # nodes, services even them out, with copies of busy experts: `expert_imbalance` tells.
        known.add("between nodes, as expert_imbalance says", imbalance=0.0)
        known.add("between nodes, only tokens that chose its experts come", elsewhere_share=0.0)
    known.columns("which operators are experts", "routed_mark")
    known.columns("widths of the model and of an expert", "passed_bytes")
