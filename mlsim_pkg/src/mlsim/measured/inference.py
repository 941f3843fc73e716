"""What others measured of inference: published results, each with its source and its words.

Nothing here was measured by this project. A row names the very device of the zoo on which it was
taken, and contains what `Engine.solve`, `Engine.serve` or `Engine.load` is asked for the same:
passes of networks, batches of a language model, and services with a fixed number of users. The
last come from the package that `hardware.kernel_constants` names, chosen by `benchmarks/atlas`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

from mlsim.errors import DataFileError, NotMeasuredError, unknown_name
from mlsim.hardware import Device
from mlsim.hardware.kernel_constants import ATLAS
from mlsim.measured.tables import (
    FOLDER,
    LANGUAGE_MODEL,
    MILLISECONDS,
    PRECISION,
    Column,
    Measured,
    Table,
)
from mlsim.precision import Precision, precision
from mlsim.quantities import term
from mlsim.software import Software
from mlsim.solvers.formats import formats
from mlsim.solvers.serving.checks import service
from mlsim.solvers.serving.serving import Serving
from mlsim.systems import System
from mlsim.systems.schedulers import scheduler
from mlsim.values import Origin, literal, quantity
from mlsim.values.attributes import result
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.workloads.steps import Parallelism
from mlsim.zoo import resolve, spaces
from mlsim.zoo.spaces import Systems

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


@dataclass(frozen=True, kw_only=True)
class Measurement(Measured):
    """One published result.

    `series` is the table that it stands in: one source, one machine; `value` is in samples
    per second; `quote` is the line of the source that it was read from, and `source` the key
    of that source.
    """

    series: str
    model: str
    hardware: str
    batch_size: int
    precision: str
    software: str

    def said(self) -> tuple[str, str]:
        """Return what was measured, in words: as a name, and in one line of Markdown."""
        words = (
            f"measured throughput of {self.model} on {self.device.name}, batch {self.batch_size}"
        )
        software = f"with {literal(self.software)} in {self.year}"
        return words, f"{words}, {self.precision}, {software}"

    @property
    def device(self) -> Device:
        """The device of the zoo on which it was measured."""
        found: Device = spaces.Hardware.get(self.hardware)
        return found


def measurements(
    *,
    model: Model | str | None = None,
    hardware: Device | str | None = None,
    precision: str | None = None,
    software: str | None = None,
) -> list[Measurement]:
    """Return published results, all or those of a model, device, precision, software.

    `software` matches from the left: "PyTorch" selects "PyTorch eager, ...".

    >>> rows = measurements(model="ResNet50", hardware="T4", precision="fp32")
    >>> [(row.batch_size, row.value) for row in rows][:2]
    [(1, 98.0), (4, 325.0)]
    """
    return NETWORKS.find(model=model, hardware=hardware, precision=precision, software=software)


NETWORKS = Table(Measurement, FOLDER)


# What can be measured, and its unit.
SERVING_METRICS: Mapping[str, str] = {
    "decode_throughput": "token/s",
    "output_throughput": "token/s",
    "time_to_first_token": "s",
    "pass_throughput": "sample/s",
}
LINK = "links.nvlink"


@dataclass(frozen=True, kw_only=True)
class ServingMeasurement(Measured):
    """One published result of a language model.

    Attributes
    ----------
    id, series
        A name of its own; the table that it stands in: one source, one machine.
    model, hardware
        Keys of the zoo.
    devices, tensor_parallel
        How many there were, and how many shared each matrix.
    batch_size, prompt_tokens, output_tokens
        Sequences served together and their lengths; an encoder has no output.
    weights, activations, kv_cache
        Number formats.
    bits_per_weight
        Bits of every weight, scales included, where they differ from those of the format.
    software
        What ran the model.
    metric
        "decode_throughput": tokens per second of all users while decoding;
        "output_throughput": new tokens per second over the whole time, prefill
        included; "time_to_first_token"; "pass_throughput": sequences per second
        of an encoder.
    value, unit, per_device
        As printed, but for seconds instead of milliseconds; whether it is the
        part of one device.
    year, source, quote, note
        When, in which document, in which words; anything else worth knowing.
    """

    series: str
    model: str
    hardware: str
    devices: int
    tensor_parallel: int
    batch_size: int
    prompt_tokens: int
    output_tokens: int | None
    weights: str
    activations: str
    kv_cache: str
    bits_per_weight: float | None
    software: str
    per_device: bool

    def said(self) -> tuple[str, str]:
        """Return what was measured, in words: as a name, and in one line of Markdown."""
        return f"measured {self.metric.replace('_', ' ')}", f"measured: {self.words}"

    @property
    def device(self) -> Device:
        """The device of the zoo on which it was measured."""
        found: Device = spaces.Hardware.get(self.hardware)
        return found

    @cached_property
    def system(self) -> Device | System:
        """The device, or as many as there were, joined by the link that each has."""
        device = self.device
        if self.devices == 1:
            return device
        figure = device.figures[LINK]
        return System.of_figures(
            key=f"{self.devices} x {device.key}",
            name=f"{self.devices} x {device.name}",
            device=device,
            devices=self.devices,
            topology="switch",
            source=figure.source,
            figures={"link.bandwidth": figure},
        )

    def serve(self, estimate: str = "roofline", software: Software | str | None = None) -> Serving:
        """Predict the service that was measured, whether or not it fits.

        Parameters
        ----------
        estimate, software
            As for `Engine.serve`; a class may be as it was fitted without these rows.
        """
        given: dict[str, Any] = {}
        if self.bits_per_weight is not None:
            given["bytes_per_parameter"] = f"{self.bits_per_weight / 8} B/parameter"
        asked = service(
            model=resolve.transformer(self.model),
            hardware=self.system,
            batch_size=self.batch_size,
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
            formats=formats(
                None, self.weights, self.activations, self.kv_cache, device=self.device
            ),
            parallelism=Parallelism(
                tensor=self.tensor_parallel, data=self.devices // self.tensor_parallel
            ),
            estimate=estimate,
            software=software,
            given=given,
        )
        return Serving(asked, check_memory=False)

    def predicted(
        self, estimate: str = "roofline", software: Software | str | None = None
    ) -> float:
        """Return the prediction, in the unit of the row and as `per_device` says.

        Requests that come and go are predicted as batches that follow one another.

        >>> row = serving_measurements(model="Llama2_7B", series="gptfast_a100")[0]
        >>> row.value, round(row.predicted())
        (104.9, 154)
        """
        found = self._of(self.serve(estimate, software), plain=True)
        return float(found)

    def prediction(
        self, estimate: str = "roofline", software: Software | str | None = None
    ) -> Quantity:
        """Return the same as a value, which knows how it came to be."""
        found: Quantity = self._of(self.serve(estimate, software), plain=False)
        return found

    def _of(self, serving: Serving, *, plain: bool) -> Any:
        """Return the result of a service that the row has measured."""
        get = serving.value if plain else serving.quantity
        if self.metric == "pass_throughput":
            return (self.batch_size if plain else quantity(self.batch_size, "sample")) / get(
                "time_to_first_token"
            )
        found = get(self.metric)
        return found / self.devices if self.per_device else found

    @property
    def words(self) -> str:
        """What was measured, in one line that is safe in Markdown."""
        model: Transformer = resolve.transformer(self.model)
        tokens = f"{self.prompt_tokens:,}"
        if self.output_tokens is not None:
            tokens += f" + {self.output_tokens:,}"
        weights: str | Precision | None = self.weights
        bits = ""
        if weights and self.bits_per_weight:
            # Scales and zero points as they were there, and not as they usually are.
            weights = Precision(precision(weights).name, self.bits_per_weight)
            bits = f" ({self.bits_per_weight:g} bits per weight)"
        kinds = formats("bf16", weights, self.activations, self.kv_cache).name
        return literal(
            f"{self.metric.replace('_', ' ')}{' per device' if self.per_device else ''} of "
            f"{model.name} on {self.system.name}, batch {self.batch_size:,}, {tokens} tokens, "
            f"{kinds}{bits}, with {self.software}, {self.year}"
        )


def serving_measurements(
    *,
    model: Model | str | None = None,
    hardware: Device | str | None = None,
    software: str | None = None,
    metric: str | None = None,
    series: str | None = None,
) -> list[ServingMeasurement]:
    """Return published results of language models, all or those that are asked for.

    `software` matches from the left: "TensorRT-LLM" selects all its versions.

    Raises
    ------
    UnknownNameError
        If there is no such model, device, metric or series.

    >>> rows = serving_measurements(model="Mixtral_8x7B", metric="decode_throughput")
    >>> [(row.devices, row.weights, row.value) for row in rows][:2]
    [(2, 'bf16', 96.67), (4, 'bf16', 155.35)]
    """
    return SERVING.find(
        model=model, hardware=hardware, software=software, metric=metric, series=series
    )


def _check_service(row: ServingMeasurement) -> None:
    """Refuse what the model can't have been asked, and a layout that devices can't have had."""
    model, device = resolve.transformer(row.model), row.device
    if model.decoder == (row.metric == "pass_throughput"):
        kind = "a decoder" if model.decoder else "an encoder"
        raise DataFileError(f"{model.name} is {kind}, which has no {row.metric}.")
    if model.decoder != (row.output_tokens is not None):
        raise DataFileError("output_tokens must be given for a decoder, and only for one.")
    if row.devices % row.tensor_parallel:
        raise DataFileError(
            f"tensor_parallel {row.tensor_parallel} does not divide {row.devices} devices."
        )
    if row.devices > 1 and LINK not in device.figures:
        raise DataFileError(f"{device.name} has no {LINK} on record to join {row.devices} of it.")


SERVING = Table(
    ServingMeasurement,
    FOLDER / "serving",
    {
        "model": LANGUAGE_MODEL,
        **dict.fromkeys(("weights", "activations", "kv_cache"), PRECISION),
    },
    SERVING_METRICS,
    _check_service,
)
# Shortest length that the benchmark's client draws, as a share of the stated, longest one.
SHORTEST = 0.8
OLDER = "vllm"
DRAWN_BY = "semianalysis2025inferencemax"


@dataclass(frozen=True)
class MeasuredLoad:
    """A service with so many users, each of whom waits for an answer before asking again.

    Attributes
    ----------
    id, model, device
        A name of its own; keys of the zoo.
    scheduler, precision, tensor_parallel
        Of which engine; in which format; how many devices share the model.
    users, prompt_tokens, output_tokens
        How many wait; the stated lengths.
    first_token, per_token
        Mean times, in s.
    measured, source
        When; key of the document.
    """

    id: str
    model: str
    device: str
    scheduler: str
    precision: str
    tensor_parallel: int
    users: int
    prompt_tokens: int
    output_tokens: int
    first_token: float
    per_token: float
    measured: datetime.date
    source: str

    time_to_first_token = result("Mean time to the first token that was measured.")
    time_per_output_token = result("Mean time per further token that was measured.")

    def quantity(self, name: str) -> Quantity:
        """Return a measured time by its name in the vocabulary, as a value with its origin.

        Raises
        ------
        UnknownNameError
            If it is none of the two.

        >>> print(measured_loads("H100")[0].time_to_first_token)
        121 ms
        """
        times = {"time_to_first_token": self.first_token, "time_per_output_token": self.per_token}
        if name not in times:
            raise unknown_name("measured time of a service", name, times)
        return term(name).scaled(times[name], partial(self._origin_of, name))

    by_name = quantity

    def _origin_of(self, name: str, value: Quantity) -> Origin:
        words = f"measured {name.replace('_', ' ')}"
        service = (
            f"{self.model} on {self.tensor_parallel} x {self.device}, {self.precision}, "
            f"{self.scheduler}, {self.users} users, {self.prompt_tokens:,} + "
            f"{self.output_tokens:,} tokens, {self.measured}"
        )
        brief = f"{words} = {value.in_full}, {literal(service)} [@{self.source}]"
        return Origin(words, brief, brief)

    @property
    def asked(self) -> dict[str, Any]:
        """What `Engine.load` is asked for the same service.

        Lengths are those of the benchmark's client, uniform from 0.8 of the stated ones. The
        KV cache has 16 bits, as the published command for the H200 leaves it.

        >>> measured_loads("H100")[0].asked["prompt_tokens"]
        'uniform 819 1024'
        """
        return {
            "model": self.model,
            "hardware": _node(self.device),
            "users": self.users,
            "prompt_tokens": f"uniform {int(SHORTEST * self.prompt_tokens)} {self.prompt_tokens}",
            "output_tokens": f"uniform {int(SHORTEST * self.output_tokens)} {self.output_tokens}",
            "tensor_parallel": self.tensor_parallel,
            "precision": self.precision,
            "kv_cache": "bf16",
            "scheduler": self.scheduler,
            # All are from before vLLM's release 0.14.
            **({"software": OLDER} if self.scheduler == "vllm" else {}),
        }


def measured_loads(device: str | None = None) -> tuple[MeasuredLoad, ...]:
    """Return the services, all or of one device.

    Raises
    ------
    NotMeasuredError
        If there are none of the device; lists those that there are.
    UnknownNameError
        If there is no such device.

    >>> {row.users for row in measured_loads("H100")} == {4, 8, 16, 32, 64}
    True
    """
    rows = LOADS.rows()
    if device is None:
        return rows
    found = tuple(LOADS.find(device=device))
    if not found:
        there = ", ".join(dict.fromkeys(row.device for row in rows))
        key = resolve.device(device).key
        raise NotMeasuredError(f"no such service on {key} is on record. There are: {there}.")
    return found


LOADS = Table(
    MeasuredLoad,
    ATLAS / "services.csv",
    {
        "scheduler": Column(lambda row, name: scheduler(row[name]).key),
        **dict.fromkeys(("first_token", "per_token"), MILLISECONDS),
    },
)


@cache
def _node(device: str) -> System:
    """Return the largest node that has this device."""
    nodes: list[System] = [each for each in Systems if each.device.key == device]
    return max(nodes, key=lambda each: each.devices)
