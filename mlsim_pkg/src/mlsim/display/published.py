"""Numbers that open, of what others published: measurements, runs, prices, failures."""

from __future__ import annotations

from typing import Any

from mlsim.display.number import Number, words as in_words
from mlsim.errors import unknown_name
from mlsim.hardware.measured_kernels import KernelRow
from mlsim.measured.failures_and_prices import Failures, Price
from mlsim.measured.networks import Measurement
from mlsim.measured.power import PowerMeasurement
from mlsim.measured.services import ServingMeasurement
from mlsim.measured.training_runs import PublishedRun
from mlsim.measured.training_steps import TrainingMeasurement
from mlsim.solvers.derivation import literal
from mlsim.units import factor, quantity, text
from mlsim.zoo import resolve


def _published(name: str, row: Any, words: str) -> Number:
    """Return a published value in its own unit."""
    base = f"{quantity(1.0, row.unit).to_base_units().units:~C}" or "1"
    # Six digits would turn a million hours into a power of ten.
    form = ",g" if abs(row.value) < 1e6 else ",.0f"
    brief = f"{words}: {row.value:{form}} {row.unit} [@{row.source}]"
    how = f"{brief}, in these words: “{literal(row.quote)}”. {literal(row.note)}"
    value = row.value * factor(row.unit, base)
    return Number(value, base, name, brief, how.strip(), row.unit, form)


def _of_measurement(row: Measurement) -> Number:
    words = f"measured throughput of {row.model} on {row.device.name}, batch {row.batch_size}"
    how = (
        f"{words}, {row.precision}: {row.value:,g} samples per second with {literal(row.software)} "
        f"in {row.year} [@{row.source}], in these words: “{literal(row.quote)}”. {row.note}"
    )
    return Number(row.value, "sample/s", words, how.rpartition(", in these")[0], how.strip())


def _of_serving_measurement(row: ServingMeasurement) -> Number:
    brief = f"measured: {row.words}: {text(row.value, row.unit)} [@{row.source}]"
    how = f"{brief}, in these words: “{literal(row.quote)}”. {literal(row.note)}"
    name = f"measured {row.metric.replace('_', ' ')}"
    return Number(row.value, row.unit, name, brief, how.strip())


def _of_step_row(row: TrainingMeasurement) -> Number:
    devices = f"{row.devices:,} x {row.device}"
    words = f"measured {in_words(row.metric)} of training {row.model} on {devices}, {row.software}"
    return _published(f"measured {in_words(row.metric)}", row, words)


def _of_run_row(row: PublishedRun) -> Number:
    words = f"published {in_words(row.metric)} of {row.run} ({row.measured}); {row.boundary}"
    return _published(f"published {in_words(row.metric)}", row, literal(words))


def _of_power_row(row: PowerMeasurement) -> Number:
    words = f"measured {in_words(row.metric)}, {row.series}, batch {row.batch_size}; {row.boundary}"
    return _published(f"measured {in_words(row.metric)}", row, literal(words))


def _of_kernel_row(row: KernelRow) -> Number:
    words = f"measured on {resolve.device(row.device).name}, {row.software}, {row.year}"
    return _published("measured of a kernel", row, literal(words))


def _of_price(row: Price) -> Number:
    words = f"price of {row.product} from {row.provider} on {row.date}, {row.terms}"
    each = f", for {row.devices}" if row.devices > 1 else ""
    most = f", up to {row.most:g} {row.unit} in other places" if row.most else ""
    return _published("price", row, literal(words + each + most))


def _of_failures(row: Failures, name: str) -> Number:
    counts = {
        "failures": (row.failures, "1", f"unplanned stops of {row.run} in {row.days:g} days"),
        "days": (row.days, "1", f"days that {row.run} was watched"),
        "devices": (row.devices, "1", f"devices of {row.run}"),
        "mean_time_to_failure": (
            row.mean_time_to_failure.to("s").magnitude,
            "s",
            f"time between failures of one device in {row.run}",
        ),
    }
    name = "mean_time_to_failure" if name == "latency" else name
    if name not in counts:
        raise unknown_name("figure of a run's failures", name, counts)
    value, base, words = counts[name]
    brief = f"{words}: {text(float(value), base)} [@{row.source}]"
    how = f"{brief}, in these words: “{literal(row.quote)}”. {literal(row.note)}"
    return Number(float(value), base, words, brief, how.strip())


MAKERS: tuple[tuple[type, Any], ...] = (
    (Measurement, lambda row, _: _of_measurement(row)),
    (ServingMeasurement, lambda row, _: _of_serving_measurement(row)),
    (TrainingMeasurement, lambda row, _: _of_step_row(row)),
    (PublishedRun, lambda row, _: _of_run_row(row)),
    (PowerMeasurement, lambda row, _: _of_power_row(row)),
    (KernelRow, lambda row, _: _of_kernel_row(row)),
    (Price, lambda row, _: _of_price(row)),
    (Failures, _of_failures),
)
