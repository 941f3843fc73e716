"""How a model and its batch are divided among devices: one value, for serving and training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Ways to divide a model, its batch or a sequence, each of which takes a number of devices.
SIZES = ("tensor", "pipeline", "data", "context", "expert")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How a model and its batch are divided among devices.

    Attributes
    ----------
    tensor, pipeline, data, context, expert
        Devices that share each matrix; stages that share the layers; copies that
        share the batch; devices that share each sequence; groups over which the
        experts of a layer are spread.
    interleaved
        Parts of the model, not adjacent, that each stage holds.
    sequence
        Whether what lies between matrices is divided among the tensor devices too.
    shard
        What copies divide among themselves: "none", "zero1" (optimizer state),
        "zero2" (and gradients), "zero3" (and weights; FSDP).

    >>> Parallelism(tensor=8, pipeline=2, data=4).devices
    64
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    expert: int = 1
    interleaved: int = 1
    sequence: bool = False
    shard: str = "none"

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Parallelism:
        """Return the layout whose sizes have the names of arguments; others count one.

        >>> Parallelism.of({"tensor_parallel": 8, "batch_size": 64}).tensor
        8
        """
        return cls(**{size: asked.get(f"{size}_parallel", 1) for size in SIZES})

    @property
    def sizes(self) -> dict[str, int]:
        """Its sizes by the names that arguments and quantities have.

        >>> Parallelism(tensor=8).sizes["tensor_parallel"]
        8
        """
        return {f"{size}_parallel": getattr(self, size) for size in SIZES}

    @property
    def devices(self) -> int:
        """Devices that it needs."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def stage_devices(self) -> int:
        """Devices of one stage: so far apart are neighbors in a pipeline numbered."""
        return self.tensor * self.data * self.context

    @property
    def copies(self) -> int:
        """Devices that hold the same part of the weights, or shards of it."""
        return self.data * self.context

    @property
    def expert_replicas(self) -> int:
        """Copies of the attention part that share one set of experts."""
        return max(1, self.expert // self.tensor)

    @property
    def of_weights(self) -> Parallelism:
        """The sizes that decide which part of the weights a device holds.

        All that a model's operators depend on: runs that differ in the rest share them.
        """
        return Parallelism(
            tensor=self.tensor, pipeline=self.pipeline, data=self.data, expert=self.expert
        )

    def __str__(self) -> str:
        sizes = (
            ("TP", self.tensor),
            ("CP", self.context),
            ("PP", self.pipeline),
            ("DP", self.data),
            ("EP", self.expert),
        )
        words = [f"{name}{size}" for name, size in sizes if size > 1]
        words += [f"{self.interleaved} parts a stage"] if self.interleaved > 1 else []
        words += ["sequence parallel"] if self.sequence else []
        words += [self.shard] if self.shard != "none" else []
        return " ".join(words) or "1 device"
