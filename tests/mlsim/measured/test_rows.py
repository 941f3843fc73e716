"""All tables of published rows: each has its source, is as printed, and beats no bound.

A rule is one test that lists all rows that break it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mlsim import (
    Engine,
    failures,
    measurements,
    power_measurements,
    prices,
    published_runs,
)
from mlsim.errors import DataFileError, NotMeasuredError, UnknownNameError, WrongKindError
from mlsim.measured import (
    failures_and_prices,
    inside_machines,
    language_models,
    memory_peaks,
    network_rates,
    networks,
    power,
    product_slices,
    services,
    services_under_load,
    token_prices,
    training_runs,
    training_steps,
)
from mlsim.records import DATA
from mlsim.records.references import references

FIXTURES = Path(__file__).parents[2] / "fixtures" / "measured"
SERVED = services.serving_measurements()
TRAINED = training_steps.training_measurements()
TABLES: dict[str, Any] = {
    "networks": measurements(),
    "serving": SERVED,
    "training": TRAINED,
    "network training": network_rates.network_steps(),
    "power": power_measurements(),
    "runs": published_runs(),
    "units": inside_machines.execution_units(),
    "spaces": inside_machines.memory_spaces(),
    "rates": inside_machines.published_rates(),
    "facts": language_models.language_model_facts(),
    "failures": failures(),
    "prices": prices(),
    "tokens": token_prices.api_prices(),
}
# Tables whose quote has the very value, in the unit of the row, within what is kept of it.
QUOTED = {"networks": 0.0, "serving": 0.05, "training": 0.0}
METRICS = {
    "serving": services.METRICS,
    "training": training_steps.METRICS,
    "network training": network_rates.METRICS,
    "power": power.METRICS,
    "runs": training_runs.METRICS,
}
# Tables that say in a sentence what else is worth knowing.
NOTED = ("training", "power", "runs")
# Longer words were quoted there before the rule of fifteen.
LONG = ("networks", "serving", "network training", "failures", "prices", "tokens")


def sourceless(table: str, row: Any) -> Iterator[str]:
    """Yield what a row lacks."""
    words = [word for word in row.quote.split() if word != "|"]
    if row.source not in references():
        yield "a source in the bibliography"
    if not words or (len(words) > 15 and table not in LONG):
        yield "a quote of at most 15 words"
    if table in METRICS and row.unit != METRICS[table][row.metric]:
        yield "the unit of its metric"
    if table in NOTED and not row.note.endswith("."):
        yield "a sentence as its note"
    if not getattr(row, "software", "x") or not getattr(row, "boundary", "x"):
        yield "software, or what its value covers"
    if not getattr(row, "where", "x") or not 2015 <= getattr(row, "year", 2020) <= 2030:
        yield "a place, or a year that can be"
    if table in QUOTED or getattr(row, "series", "").startswith("mlenergy"):
        numbers = [float(each) for each in re.findall(r"\d+\.?\d*", row.quote.replace(",", ""))]
        # Sources that print sixteen digits, of which we keep four after the point, or one.
        exact = 5e-5 if row.metric == "energy_per_output_token" else QUOTED.get(table, 0.05)
        scale = 1e3 if row.metric == "time_to_first_token" else 1
        if not any(abs(each - scale * row.value) <= exact + 1e-9 for each in numbers):
            yield "its value in the quote"


def test_each_row_has_its_source_and_its_words() -> None:
    assert [
        (table, row.id if hasattr(row, "id") else row, lack)
        for table, rows in TABLES.items()
        for row in rows
        for lack in sourceless(table, row)
    ] == []
    for names in (("networks", "serving", "training"), ("power", "runs")):
        ids = [row.id for name in names for row in TABLES[name]]
        assert len(ids) == len(set(ids)) > 100


def test_no_measurement_beats_the_bound() -> None:
    """A row that did would show an error in the row, or in the bound."""
    fast = []
    for row in TABLES["networks"]:
        asked = {"batch_size": row.batch_size, "precision": row.precision, "estimate": "bound"}
        if row.value >= Engine.solve(row.model, row.device, **asked).throughput:
            fast.append(row.id)
    for row in SERVED:
        bound, roofline = row.predicted("bound"), row.predicted()
        order = (row.value, bound), (roofline, bound)
        if row.metric == "time_to_first_token":
            order = tuple((second, first) for first, second in order)
        if order[0][0] >= order[0][1] or order[1][0] > order[1][1]:
            fast.append(row.id)
    for row in TABLES["network training"]:
        bound, roofline = (row.train(each).throughput for each in ("bound", "roofline"))
        if not row.value < roofline < bound:
            fast.append(row.id)
    assert fast == []


POUND = 0.45359237e-3  # in tonnes
SCALES = {"ms": 1e-3, "kWh": 1e-3, "lb CO2e": POUND}
CARDS = {
    "Cloud.V100": "V100-SXM2-16GB",
    "Cloud.T4": "T4",
    "Cloud.A100": "A100",
    "Cloud.A100_40GB": "A100",
}


def differences(row: Any, theirs: dict[str, str]) -> Iterator[str]:
    """Yield what is otherwise in the words of who else read the document."""
    expected = {"series": theirs["series"], "year": int(theirs["year"])}
    value = float(theirs["value"]) * SCALES.get(theirs["unit"], 1)
    table = theirs["table"]
    if table == "networks":
        # "FP16 AMP" is mixed precision: its products are computed in fp16.
        expected |= {"precision": theirs["precision"].lower().partition(" ")[0]}
        expected |= {"batch_size": int(theirs["batch"])}
        if CARDS[row.hardware] not in theirs["hardware"]:
            yield "hardware"
    elif table == "energy":
        del expected["series"]
    else:
        expected |= {"devices": int(theirs["devices"])}
    if table == "serving":
        expected |= {name: theirs[cell] for name, cell in FORMATS}
        expected |= {"per_device": bool(theirs["scope"])}
        expected |= {"batch_size": round(float(theirs["batch"].partition(" ")[0]))}
        # A prompt of no tokens is one token that starts the text.
        if theirs["input_len"]:
            expected |= {"prompt_tokens": max(int(theirs["input_len"]), 1)}
        if theirs["output_len"]:
            expected |= {"output_tokens": int(theirs["output_len"].removeprefix("mean "))}
        expected |= {"tensor_parallel": int(theirs["tp"])}
        if row.bits_per_weight:
            expected |= {"bits_per_weight": float(theirs["w_bits"])}
    yield from (name for name, each in expected.items() if getattr(row, name) != each)
    if row.value != pytest.approx(value):
        yield "value"


FORMATS = (("weights", "w_dtype"), ("activations", "a_dtype"), ("kv_cache", "kv_dtype"))


def test_rows_are_as_another_reader_took_them_down() -> None:
    """Every row of their series is there, or left out for a reason."""
    with (FIXTURES / "published.csv").open(encoding="utf-8", newline="") as file:
        published = list(csv.DictReader(file))
    ours = {row.id: row for name in ("networks", "serving", "training") for row in TABLES[name]}
    ours |= {row.id: row for name in ("power", "runs") for row in TABLES[name]}
    assert [
        (theirs["id"], name)
        for theirs in published
        if not theirs["left_out"]
        for name in differences(ours[theirs["id"]], theirs)
    ] == []
    left_out = {theirs["id"] for theirs in published if theirs["left_out"]}
    assert not left_out & ours.keys()
    for table in ("networks", "serving", "training"):
        there = {each["id"] for each in published if each["table"] == table} - left_out
        assert there == {row.id for row in TABLES[table]}
    numbered = {key for key in ours if re.fullmatch(r"NRG-\d+", key)}
    assert numbered == {
        each["id"] for each in published if each["table"] == "energy"
    } - left_out - {key for key in ours if key.startswith("TRN")}


READERS: dict[str, Callable[[Path], Any]] = {
    "api_prices.csv": token_prices.load_api_prices,
    "growth/language_models.csv": language_models.load_facts,
    "inside/execution_units.csv": inside_machines.execution_units,
    "inside/input_rates.csv": inside_machines.published_rates,
    "inside/memory_spaces.csv": inside_machines.memory_spaces,
    "measurements/atlas/services.csv": services_under_load.load_services,
    "measurements/network_training": network_rates.load,
    "measurements/power": power.load,
    "measurements/reliability": failures_and_prices.load_failures,
    "measurements/resnet50_inference.csv": networks.load,
    "measurements/runs": training_runs.load,
    "measurements/serving": services.load,
    "measurements/training/": training_steps.load,
    "prices.csv": failures_and_prices.load_prices,
}


def test_a_fault_in_a_table_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first place where `old` stands, in the package's table or one of a row."""
    with (FIXTURES / "faults.csv").open(encoding="utf-8", newline="") as file:
        faults = list(csv.DictReader(file))
    assert {each["table"].partition("/")[0] for each in faults} >= {"measurements", "growth"}
    missed = []
    for number, fault in enumerate(faults):
        own = FIXTURES / Path(fault["table"]).name
        content = (own if own.is_file() else DATA / fault["table"]).read_text("utf-8")
        assert fault["old"] in content, fault
        path = tmp_path / f"{number}.csv"
        path.write_text(content.replace(fault["old"], fault["new"], 1), "utf-8")
        read: Any = next((READERS[key] for key in READERS if fault["table"].startswith(key)), None)
        if read is None:
            monkeypatch.setattr(memory_peaks, "FILE", path)
            read = lambda _: memory_peaks.training_memory.__wrapped__()  # noqa: E731
        try:
            read(path)
            said = "nothing"
        except DataFileError as error:
            said = str(error)
        if not said.startswith(f"{path}:{fault['line']}: ") or not re.search(
            fault["words"] if "|" in fault["words"] else re.escape(fault["words"]), said
        ):
            missed.append((fault, said))
    assert missed == []


def test_rows_of_one_id_are_refused(tmp_path: Path) -> None:
    header, first, *_ = (
        networks.FOLDER.joinpath("resnet50_inference.csv").read_text("utf-8").splitlines()
    )
    path = tmp_path / "rows.csv"
    path.write_text(f"{header}\n{first}\n{first}\n", encoding="utf-8")
    with pytest.raises(DataFileError, match="two rows have the same id"):
        networks.load(path)


# What selects rows, and what it refuses.
SELECTED: list[tuple[Callable[..., Any], dict[str, Any], type[Exception], str]] = [
    (services.serving_measurements, {"metric": "latency"}, UnknownNameError, "no metric is called"),
    (services.serving_measurements, {"series": "gptfast_a10"}, UnknownNameError, "'gptfast_a100'"),
    (services.serving_measurements, {"hardware": "H1000"}, UnknownNameError, "H1000"),
    (services.serving_measurements, {"model": "ResNet50"}, WrongKindError, "no language model"),
    (training_steps.training_measurements, {"metric": "speed"}, UnknownNameError, "'speed'"),
    (training_steps.training_measurements, {"series": "megatron_tab"}, UnknownNameError, "_tab5'"),
    (training_steps.training_measurements, {"device": "H1000"}, UnknownNameError, "H1000"),
    (training_steps.training_measurements, {"model": "ResNet50"}, WrongKindError, "no language"),
    (power_measurements, {"metric": "watts"}, UnknownNameError, "no metric is called 'watts'"),
    (power_measurements, {"series": "mlperf"}, UnknownNameError, "no series of measurements"),
    (published_runs, {"metric": "cost"}, UnknownNameError, "no metric is called 'cost'"),
    (published_runs, {"measured": "guessed"}, UnknownNameError, "no way of measuring is called"),
    (published_runs, {"model": "Llama9"}, UnknownNameError, "Llama9"),
    (measurements, {"hardware": "H1000"}, UnknownNameError, "H1000"),
    (measurements, {"precision": "fp7"}, UnknownNameError, "fp7"),
    (prices, {"device": "H1000"}, UnknownNameError, "H1000"),
    (token_prices.api_prices, {"model": "Llama3_71B"}, UnknownNameError, "Llama3_71B"),
    (product_slices.measured_formats, {"device": "Cloud.A100"}, NotMeasuredError, "There are: Cl"),
    (services_under_load.measured_loads, {"device": "A100"}, NotMeasuredError, "There are: Clo"),
    (inside_machines.published_rate, {"stage": "storge"}, UnknownNameError, "storge"),
    (
        inside_machines.published_rate,
        {"stage": "storage", "product": "floppy"},
        UnknownNameError,
        "floppy",
    ),
]


def test_a_selection_that_can_not_be_is_refused() -> None:
    for select, asked, error, words in SELECTED:
        with pytest.raises(error, match=words):
            select(**asked)
