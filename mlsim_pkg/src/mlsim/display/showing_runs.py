"""Numbers that show their work, of training runs, footprints, and what was published of both."""

from __future__ import annotations

from typing import Any

from mlsim.display.number import Number
from mlsim.errors import InvalidValueError, unknown_name
from mlsim.measured.failures_and_prices import Failures, Price
from mlsim.measured.power import PowerMeasurement
from mlsim.measured.training_runs import PublishedRun
from mlsim.measured.training_steps import TrainingMeasurement
from mlsim.quantities import term
from mlsim.solvers.derivation import as_card, as_note, literal
from mlsim.solvers.footprint.footprint import Footprint
from mlsim.solvers.training.optimal_size import OptimalSize
from mlsim.solvers.training.training import Training
from mlsim.units import factor, quantity, text


def _words(name: str) -> str:
    return name.replace("_", " ")


def answered(answer: Any, name: str, where: str) -> Number:
    """Return a result of an answer as a number that can be opened."""
    value, base = float(answer.value(name)), term(name).unit
    brief = f"{_words(name)} = {text(value, base)} ({where})"
    derivation = answer.explain(name).to_dict()
    return Number(value, base, _words(name), brief, as_card(derivation), note=as_note(derivation))


def _of_training(training: Training, name: str) -> Number:
    run = training.run
    batch = f"{run.global_batch:,.0f} x {run.sequence_tokens:,.0f} tokens a step"
    where = (
        f"training {run.model.name} on {run.hardware_name}, {batch}, {run.precision.name}, "
        f"{run.estimate}"
    )
    return answered(training, "step_time" if name == "latency" else name, where)


def _of_footprint(footprint: Footprint, name: str) -> Number:
    name = "facility_energy" if name == "latency" else name
    if footprint.ranges:
        raise InvalidValueError(
            f"{_words(name)} is a range, since something known is: show one end of it, such as "
            f"show(footprint.high, {name!r})."
        )
    load = footprint.load
    return answered(footprint, name, f"{load.label}, {footprint.account.place}")


def _of_size(size: OptimalSize, name: str) -> Number:
    name = "optimal_parameters" if name == "latency" else name
    return answered(size, name, size.labels["hardware"])


def _published(name: str, row: Any, words: str) -> Number:
    """Return a published value in its own unit."""
    base = f"{quantity(1.0, row.unit).to_base_units().units:~C}" or "1"
    # Six digits would turn a million hours into a power of ten.
    form = ",g" if abs(row.value) < 1e6 else ",.0f"
    brief = f"{words}: {row.value:{form}} {row.unit} [@{row.source}]"
    how = f"{brief}, in these words: “{literal(row.quote)}”. {literal(row.note)}"
    value = row.value * factor(row.unit, base)
    return Number(value, base, name, brief, how.strip(), row.unit, form)


def _of_step_row(row: TrainingMeasurement) -> Number:
    devices = f"{row.devices:,} x {row.device}"
    words = f"measured {_words(row.metric)} of training {row.model} on {devices}, {row.software}"
    return _published(f"measured {_words(row.metric)}", row, words)


def _of_run_row(row: PublishedRun) -> Number:
    words = f"published {_words(row.metric)} of {row.run} ({row.measured}); {row.boundary}"
    return _published(f"published {_words(row.metric)}", row, literal(words))


def _of_power_row(row: PowerMeasurement) -> Number:
    words = f"measured {_words(row.metric)}, {row.series}, batch {row.batch_size}; {row.boundary}"
    return _published(f"measured {_words(row.metric)}", row, literal(words))


def _of_price(row: Price) -> Number:
    words = f"price of {row.product} from {row.provider} on {row.date}, {row.terms}"
    each = f", for {row.devices}" if row.devices > 1 else ""
    return _published("price", row, literal(words + each))


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
    (Training, _of_training),
    (Footprint, _of_footprint),
    (OptimalSize, _of_size),
    (TrainingMeasurement, lambda row, _: _of_step_row(row)),
    (PublishedRun, lambda row, _: _of_run_row(row)),
    (PowerMeasurement, lambda row, _: _of_power_row(row)),
    (Price, lambda row, _: _of_price(row)),
    (Failures, _of_failures),
)
