"""What somebody claims: figures with units, and the names under which they are claimed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlsim.equations import serving
from mlsim.equations.roofline import throughput, weight_memory
from mlsim.equations.serving import (
    device_share,
    half_output,
    held_sequences,
    pooled_bandwidth,
    pooled_capacity,
    pooled_peak,
    user_token_rate,
    weight_reading_time,
)
from mlsim.equations.training import model_flops_utilization
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.parameters import validate
from mlsim.precision import Precision
from mlsim.solvers.formats import Formats
from mlsim.solvers.forward.profile import Profile, solve
from mlsim.solvers.serving.checks import service
from mlsim.solvers.serving.serving import Serving
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Network

_KINDS = ("rate", "shared", "decodes")


@dataclass(frozen=True)
class Metric:
    """One kind of claim.

    Attributes
    ----------
    name, words, unit
        The argument, what it means, and the unit in which it is kept.
    asked
        The quantity of the engine that answers it.
    rate
        Whether more is better; of a time, less is.
    shared
        Whether all users together are meant, so that a larger batch helps.
    decodes
        Whether it speaks of generating, after the prompt was read.
    """

    name: str
    words: str
    unit: str
    asked: str
    rate: bool
    shared: bool
    decodes: bool


_TOKENS, _EACH = "tokens per second, all users together", "tokens per second for each user"
_ALL = (
    ("tokens_per_second", _TOKENS, "token/s", "decode_throughput", "rate shared decodes"),
    ("tokens_per_second_per_user", _EACH, "token/s", "user_token_rate", "rate decodes"),
    ("time_per_output_token", "time per output token", "s", "time_per_output_token", "decodes"),
    ("time_to_first_token", "time to first token", "s", "time_to_first_token", ""),
    ("samples_per_second", "samples per second", "sample/s", "throughput", "rate shared"),
    ("mfu", "model FLOPs utilization of training", "1", "total_flops", "rate"),
)
METRICS: Mapping[str, Metric] = {
    name: Metric(name, words, unit, asked, *(each in kinds for each in _KINDS))
    for name, words, unit, asked, kinds in _ALL
}
SAMPLES, MFU, FIRST = "samples_per_second", "mfu", "time_to_first_token"


@dataclass(frozen=True)
class Claim:
    """One claimed figure: its metric, and its value in the metric's unit."""

    metric: Metric
    value: float

    def excess(self, limit: float) -> float:
        """Return the claimed speed over a limit: above 1 means faster than the limit.

        >>> Claim(METRICS["tokens_per_second"], 300.0).excess(100.0)
        3.0
        >>> Claim(METRICS["time_per_output_token"], 0.01).excess(0.03)
        3.0
        """
        pair = (self.value, limit) if self.metric.rate else (limit, self.value)
        return float(serving.claim_excess(*pair))


def claims(given: Mapping[str, Any]) -> tuple[Claim, ...]:
    """Return the figures that are claimed, checked; those that are None are not.

    Raises
    ------
    InvalidValueError, UnitError
        If one is not a positive number, or has the wrong unit.

    >>> [each.value for each in claims({"tokens_per_second": 314, "mfu": None})]
    [314.0]
    """
    return tuple(
        Claim(METRICS[name], _figure(METRICS[name], value))
        for name, value in given.items()
        if value is not None
    )


def _figure(metric: Metric, value: Any) -> float:
    if getattr(value, "ndim", 0) or isinstance(value, (list, tuple, set, dict)):
        raise InvalidValueError(
            f"{metric.name} must be one figure, not {value!r}: check one claim at a time."
        )
    if metric.name == MFU:
        if isinstance(value, str) and value.strip().endswith("%"):
            with suppress(ValueError):
                value = float(value.strip()[:-1]) / 100
        # It may be above one, which is then judged.
        if not _is_number(value) or not 0 < value < 100:
            raise InvalidValueError(
                f"mfu must be a share such as 0.45, or text such as '45%'; not {value!r}."
            )
        return float(value)
    if not metric.rate:
        return float(validate(metric.name, value))
    if not _is_number(value) or not 0 < value < math.inf:
        raise InvalidValueError(
            f"{metric.name} must be a positive number, which counts per second, such as 314; "
            f"not {value!r}."
        )
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


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
            bandwidth = device.memory.figures["bandwidth"].si
            given = {
                "peak_flops": f"{self.peak} FLOP/s",
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
