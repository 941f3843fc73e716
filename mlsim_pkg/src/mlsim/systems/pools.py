"""A pool of devices that only read prompts, beside one that decodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, check_whole
from mlsim.workloads.steps import Parallelism

if TYPE_CHECKING:
    from mlsim.hardware import Device
    from mlsim.systems.cluster import Cluster
    from mlsim.systems.system import System

_SIZES = (
    *("copies", "batch_size", "tensor_parallel", "pipeline_parallel", "data_parallel"),
    *("expert_parallel", "context_parallel"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPool:
    """Devices that only read prompts; the cache of each goes on to those that decode.

    Parameters
    ----------
    hardware
        A device, system or cluster, or its name; by default that of the devices that
        decode, which both pools then share.
    copies
        Copies of the model that read prompts, each laid out as follows.
    batch_size
        Prompts that one copy reads together, of `Engine.serve`. Under load (`Engine.load`) a step
        takes as many as wait, up to the scheduler's tokens.
    tensor_parallel, pipeline_parallel, data_parallel, expert_parallel, context_parallel
        The layout of one copy, as for `Engine.serve`.
    link_bandwidth
        What one device sends to the other pool, one way, such as "400 Gb/s"; by default that
        of the cluster in which both pools are, or of the system that they share.
    overlap
        Whether the cache of each layer is sent while the next is computed, so that only the
        last layer's is waited for.

    Raises
    ------
    InvalidValueError
        If a size is no whole number from 1 up.

    >>> PrefillPool(hardware="HGX_H100", copies=2, tensor_parallel=4).parallelism.devices
    4
    """

    hardware: Device | System | Cluster | str | None = None
    copies: int = 1
    batch_size: int = 1
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    expert_parallel: int = 1
    context_parallel: int = 1
    link_bandwidth: Any = None
    overlap: bool = False

    def __post_init__(self) -> None:
        for name in _SIZES:
            whole = check_whole(f"{name} of a PrefillPool", getattr(self, name))
            object.__setattr__(self, name, whole)
        if not isinstance(self.overlap, bool):
            raise InvalidValueError(
                f"overlap of a PrefillPool must be True or False, not {self.overlap!r}."
            )

    @property
    def parallelism(self) -> Parallelism:
        """The layout of one copy."""
        return Parallelism(
            tensor=self.tensor_parallel,
            pipeline=self.pipeline_parallel,
            data=self.data_parallel,
            expert=self.expert_parallel,
            context=self.context_parallel,
        )
