"""The machine of a claim about a network with a fixed input, such as images per second."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mlsim.equations.roofline import throughput
from mlsim.equations.serving import device_share, pooled_capacity, weight_reading_time
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.precision import Precision
from mlsim.solvers.claims.machine import MOST_BATCH, Parts
from mlsim.solvers.forward.profile import Profile, solve
from mlsim.workloads.model import Network


@dataclass(frozen=True)
class NetworkMachine:
    """A network on devices, each with a copy of it and its share of the batch."""

    model: Network
    device: Device
    devices: int
    formats: Precision
    batch: int | None = None

    def profile(self, batch: int, estimate: str = "bound") -> Profile:
        """Return the pass of one device over its share of the batch."""
        return solve(
            self.model,
            self.device,
            batch_size=int(device_share(batch, self.devices)),
            precision=self.formats,
            estimate=estimate,
            check_memory=False,
        )

    def limit(self, metric: str, batch: int, estimate: str = "bound") -> float:
        """Return the most samples per second with this batch.

        Raises
        ------
        InvalidValueError
            If the metric is one of language models.
        """
        if metric != "samples_per_second":
            raise InvalidValueError(
                f"{self.model.name} has a fixed input, so its speed is samples_per_second; "
                f"{metric} is claimed of language models."
            )
        return float(throughput(batch, self.profile(batch, estimate).value("latency")))

    def parts(self, metric: str, batch: int) -> Parts:
        """Return what the pass takes at least."""
        profile = self.profile(batch)
        return Parts(
            arithmetic=float(profile.value("total_compute_time")),
            weights=float(
                weight_reading_time(self.weights, self.device.memory.figures["bandwidth"].si)
            ),
            memory=float(profile.value("total_memory_time")),
        )

    @property
    def capacity(self) -> float:
        """Memory of all devices, in bytes."""
        return float(pooled_capacity(self.devices, self.device.capacity_si))

    @property
    def weights(self) -> float:
        """Weights of one copy, in bytes."""
        return float(self.profile(1).value("weight_memory"))

    @property
    def cache_each(self) -> float:
        """Nothing is kept from one pass to the next."""
        return 0.0

    @property
    def fitting(self) -> int:
        """No limit but the weights: activations may be made in parts."""
        return MOST_BATCH if self.weights <= self.device.capacity_si else 0

    def on(self, **changed: Any) -> NetworkMachine:
        """Return the same claim on another number of devices, or in another format."""
        return replace(self, **changed)
