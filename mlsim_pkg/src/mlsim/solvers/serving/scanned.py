"""Layers with the gated delta rule, as measured kernels: whose constants a service takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsim.hardware.device_calibration import state_constants
from mlsim.hardware.kernel_times import SCAN_CHUNK
from mlsim.solvers.question import Known
from mlsim.solvers.serving.routed import MeasuredKind
from mlsim.workloads.blocks import DeltaRule

if TYPE_CHECKING:
    from mlsim.solvers.serving.service import Service
    from mlsim.workloads.steps import StepOperator

# The kind of operators that states are.
STATE = "state"


def states_of(service: Service) -> MeasuredKind | None:
    """Return what a service's states were measured to reach; None if it has none, or nobody did.

    Whoever gives the shares of peak and bandwidth means all operators.
    """
    made_by, given = service.software, {"compute_fraction", "memory_fraction"}
    ruled = any(isinstance(each, DeltaRule) for _, each in service.model.mixers)
    if not ruled or made_by is None or given & set(service.given):
        return None
    found = state_constants(service.device.key, made_by.key)
    return MeasuredKind(*found) if found else None


def columns_of(
    states: MeasuredKind,
    operators: tuple[StepOperator, ...],
    fractions: tuple[float, ...] | None,
) -> dict[str, tuple[float, ...]]:
    """Return how long states wait for a chunk, and the parts of the peak, with theirs in them."""
    own, step = (states.constants[name] for name in ("compute_fraction", "scan_step_time"))
    marked = [each.kind == STATE for each in operators]
    found = {"scan_step_time": tuple(step if state else 0.0 for state in marked)}
    if fractions:
        pairs = zip(marked, fractions, strict=True)
        found["compute_fraction"] = tuple(own if state else each for state, each in pairs)
    return found


def add_states(known: Known, service: Service) -> None:
    """Add what the equations of measured states ask for."""
    measured = service.table.cache["scanned"]
    if measured is not None:
        known.add("convention: tokens of a chunk in engines' code", scan_chunk=SCAN_CHUNK)
        known.columns(measured.words, "scan_step_time")
