"""What others measured of language models: published results, each with its words.

Nothing here was measured by this project. A row contains the arguments of
`Engine.serve` with which the same service is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.errors import DataFileError
from mlsim.hardware import Device
from mlsim.measured import cells
from mlsim.measured.networks import FOLDER
from mlsim.precision import Precision, precision, recorded
from mlsim.records.rows import Published
from mlsim.records.tables import read
from mlsim.software import Software
from mlsim.solvers.formats import formats
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.validate import service
from mlsim.systems import System
from mlsim.values import literal, quantity
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.workloads.parallelism import Parallelism
from mlsim.zoo import resolve, spaces

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

SERVING_FOLDER = FOLDER / "serving"

# What can be measured, and its unit.
METRICS: Mapping[str, str] = {
    "decode_throughput": "token/s",
    "output_throughput": "token/s",
    "time_to_first_token": "s",
    "pass_throughput": "sample/s",
}
LINK = "links.nvlink"
_FLAGS = {"yes": True, "no": False}


@dataclass(frozen=True)
class ServingMeasurement(Published):
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

    id: str
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
    metric: str
    value: float
    unit: str
    per_device: bool
    year: int
    source: str
    quote: str
    note: str

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
    wanted_model = resolve.transformer(model).key if model is not None else None
    wanted_device = resolve.device(hardware).key if hardware is not None else None
    rows = (row for path in sorted(SERVING_FOLDER.glob("*.csv")) for row in load(path))
    return [
        row
        for row in cells.chosen(rows, METRICS, metric, series)
        if wanted_model in (None, row.model)
        and wanted_device in (None, row.hardware)
        and (software is None or row.software.startswith(software))
    ]


@cache
def load(path: Path) -> tuple[ServingMeasurement, ...]:
    """Read a file of measurements.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a number can't be, names contradict
        each other or are not in the zoo or the bibliography; names file and line.
    """
    return read(path, tuple(ServingMeasurement.__dataclass_fields__), _row)


def _row(record: dict[str, str]) -> ServingMeasurement:
    for name in ("weights", "activations", "kv_cache"):
        recorded(record[name])
    output, bits = record["output_tokens"], record["bits_per_weight"]
    cells.metric(record, METRICS)
    if record["per_device"] not in _FLAGS:
        raise DataFileError(f"per_device must be yes or no, not {record['per_device']!r}.")
    parsed: dict[str, Any] = {
        **record,
        **{name: cells.count(record, name) for name in _COUNTS},
        "output_tokens": cells.count(record, "output_tokens") if output else None,
        "value": cells.positive(record, "value"),
        "bits_per_weight": cells.positive(record, "bits_per_weight") if bits else None,
        "per_device": _FLAGS[record["per_device"]],
    }
    row = ServingMeasurement(**parsed)
    _check_model(row)
    _check_devices(row)
    return row


_COUNTS = ("devices", "tensor_parallel", "batch_size", "prompt_tokens", "year")


def _check_model(row: ServingMeasurement) -> None:
    """Refuse what the model can't have been asked.

    Raises
    ------
    DataFileError
        If key, metric or output does not belong to such a model.
    UnknownNameError, WrongKindError
        If it is no language model of the zoo.
    """
    model = resolve.transformer(row.model)
    if model.key != row.model:
        raise DataFileError(f"model must be the key {model.key!r}, not {row.model!r}.")
    if model.decoder == (row.metric == "pass_throughput"):
        kind = "a decoder" if model.decoder else "an encoder"
        raise DataFileError(f"{model.name} is {kind}, which has no {row.metric}.")
    if model.decoder != (row.output_tokens is not None):
        raise DataFileError("output_tokens must be given for a decoder, and only for one.")


def _check_devices(row: ServingMeasurement) -> None:
    """Refuse a layout that the devices can't have had.

    Raises
    ------
    DataFileError
        If the key is another, or the devices can't be divided or joined so.
    UnknownNameError
        If the zoo has no such device.
    """
    device = spaces.Hardware.find(row.hardware)
    if device.key != row.hardware:
        raise DataFileError(f"hardware must be the key {device.key!r}, not {row.hardware!r}.")
    if row.devices % row.tensor_parallel:
        raise DataFileError(
            f"tensor_parallel {row.tensor_parallel} does not divide {row.devices} devices."
        )
    if row.devices > 1 and LINK not in device.figures:
        raise DataFileError(f"{device.name} has no {LINK} on record to join {row.devices} of it.")
