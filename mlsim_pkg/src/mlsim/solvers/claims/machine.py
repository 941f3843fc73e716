"""The machine of a claim: so many devices, seen as one that has all they have.

Nobody who claims a speed tells the whole layout. Seen as one device, with all memory, all
bandwidth and all arithmetic, and with nothing to send, the devices are at least as fast as
in any layout. So a claim above this bound is false in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mlsim.equations.roofline import throughput, weight_memory
from mlsim.equations.serving import (
    half_output,
    held_sequences,
    pooled_bandwidth,
    pooled_capacity,
    pooled_peak,
    user_token_rate,
    weight_reading_time,
)
from mlsim.equations.training import model_flops_utilization
from mlsim.hardware import Device
from mlsim.solvers.formats import Formats
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.validate import service
from mlsim.workloads.language import Transformer

# What a claim that does not say how long its texts are is judged by: the shortest there are.
SHORTEST_PROMPT, SHORTEST_OUTPUT = 1, 2
# More than anybody runs together; where a search for a batch or for devices ends.
MOST_BATCH, MOST_DEVICES = 1 << 20, 1 << 12


@dataclass(frozen=True)
class Parts:
    """What a step takes at least, in seconds: its arithmetic, its weights, all its bytes."""

    arithmetic: float
    weights: float
    memory: float


@dataclass(frozen=True)
class Machine:
    """A language model on devices that work as one, in a format, with texts of a length.

    `batch` is None where the claim does not state it; training keeps no cache.
    """

    model: Transformer
    device: Device
    devices: int
    formats: Formats
    batch: int | None = None
    prompt: int = SHORTEST_PROMPT
    output: int = SHORTEST_OUTPUT
    training: bool = False

    def serving(self, batch: int, estimate: str = "bound", output: int | None = None) -> Serving:
        """Return the service of so many sequences together."""
        device, given = self.device, {}
        if self.devices > 1:
            used = dict.fromkeys(self.formats.all_computing(device))
            bandwidth = device.memory.figures["bandwidth"].si
            peaks = [device.compute.figure(each).si for each in used]
            given = {
                "peak_flops": f"{pooled_peak(self.devices, max(peaks))} FLOP/s",
                "memory_bandwidth": f"{pooled_bandwidth(self.devices, bandwidth)} B/s",
                "memory_capacity": f"{self.capacity} B",
            }
        length = self.output if output is None else output
        asked = service(
            model=self.model,
            hardware=device,
            batch_size=batch,
            prompt_tokens=self.prompt,
            output_tokens=length if self.model.decoder else None,
            formats=self.formats,
            block_tokens=1,
            reserve=0.0,
            estimate=estimate,
            given=given,
        )
        return Serving(asked, check_memory=False)

    def limit(self, metric: str, batch: int, estimate: str = "bound") -> float:
        """Return the best that a metric can be with so many sequences, in base units.

        One prompt is read alone: the others may have come before it.
        """
        if metric == "time_to_first_token":
            return float(self.serving(1, estimate).value("time_to_first_token"))
        if metric == "mfu":
            serving = self.serving(batch, estimate)
            work, time = serving.prefill.value("total_flops"), serving.value("time_to_first_token")
            # The peak is that of all devices, which count as one.
            return float(model_flops_utilization(work, time, 1, self.peak))
        serving = self.serving(batch, estimate)
        if metric == "samples_per_second":
            return float(throughput(batch, serving.value("time_to_first_token")))
        step = float(serving.value("time_per_output_token"))
        each = float(user_token_rate(1, step))
        return {
            "tokens_per_second": float(throughput(batch, step)),
            "tokens_per_second_per_user": each,
            "time_per_output_token": step,
        }[metric]

    @property
    def peak(self) -> float:
        """The highest rate of arithmetic in the formats used, FLOP/s."""
        used = dict.fromkeys(self.formats.all_computing(self.device))
        most = max(self.device.compute.figure(each).si for each in used)
        return float(pooled_peak(self.devices, most))

    def parts(self, metric: str, batch: int) -> Parts:
        """Return what the step behind a metric takes at least."""
        alone = metric == "time_to_first_token"
        serving = self.serving(1 if alone else batch)
        reads = alone or metric == "samples_per_second"
        step = serving.prefill if reads else serving.decode
        repeats = serving.service.table.columns["repeats"]
        weights = weight_memory([float(size) for size in step.value("weight_bytes")], repeats)
        return Parts(
            arithmetic=float(step.value("total_compute_time")),
            weights=float(weight_reading_time(weights, step.value("memory_bandwidth"))),
            memory=float(step.value("total_memory_time")),
        )

    @cached_property
    def _one(self) -> Serving:
        return self.serving(1, output=int(half_output(self.output)))

    @property
    def capacity(self) -> float:
        """Memory of all devices, in bytes."""
        return float(pooled_capacity(self.devices, self.device.capacity_si))

    @cached_property
    def weights(self) -> float:
        """Weights, held once, in bytes."""
        return float(self._one.value("weight_memory"))

    @cached_property
    def cache_each(self) -> float:
        """KV cache of one sequence halfway through its output, in bytes.

        Sequences that come and go are on average halfway.
        """
        keeps = self.model.decoder and not self.training
        return float(self._one.value("cache_memory")) if keeps else 0.0

    @cached_property
    def fitting(self) -> int:
        """Most sequences whose cache fits beside the weights; 0 if the weights don't fit."""
        if self.weights > self.capacity:
            return 0
        if not self.cache_each:
            return MOST_BATCH
        return min(int(held_sequences(self.capacity, self.weights, self.cache_each)), MOST_BATCH)

    def on(self, **changed: Any) -> Machine:
        """Return the same claim on another number of devices, or in another format."""
        return replace(self, **changed)
