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
from refusals import answered

import mlsim
from mlsim import Engine, Hardware
from mlsim.errors import DataFileError
from mlsim.measured import (
    failures_and_prices,
    growth,
    inference,
    inside_machines,
    measurements,
    power,
    power_measurements,
    prices,
    published_runs,
    training,
)
from mlsim.measured.tables import Table
from mlsim.records import DATA
from mlsim.records.references import references
from mlsim.solvers.explain import literal

FIXTURES = Path(__file__).parents[2] / "fixtures" / "measured"
SERVED = inference.serving_measurements()
TRAINED = training.training_measurements()
TABLES: dict[str, Any] = {
    "networks": measurements(),
    "serving": SERVED,
    "training": TRAINED,
    "network training": training.network_steps(),
    "power": power_measurements(),
    "runs": published_runs(),
    "units": inside_machines.execution_units(),
    "spaces": inside_machines.memory_spaces(),
    "rates": inside_machines.RATES.rows(),
    "facts": growth.language_model_facts(),
    "failures": failures_and_prices.failures(),
    "prices": prices(),
    "tokens": failures_and_prices.api_prices(),
}
# Tables whose quote has the very value, in the unit of the row, within what is kept of it.
QUOTED = {"networks": 0.0, "serving": 0.05, "training": 0.0}
METRICS = {
    "serving": inference.SERVING.metrics,
    "training": training.STEPS.metrics,
    "network training": training.NETWORK_STEPS.metrics,
    "power": power.POWER.metrics,
    "runs": training.RUNS.metrics,
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
    assert {row.serving_id for row in TABLES["power"]} <= {None, *(row.id for row in SERVED)}


SAID = {
    "networks": ("model", "batch_size", "precision", "software", "year"),
    "serving": ("metric", "software", "year"),
    "training": ("metric", "device", "devices", "software"),
    "network training": ("metric", "model", "device", "devices", "precision"),
    "power": ("metric", "series", "batch_size", "boundary"),
    "runs": ("metric", "run", "measured", "boundary"),
    "prices": ("product", "provider", "date", "terms", "unit"),
}


def test_a_value_says_of_what_it_is_and_where_it_stands() -> None:
    unsaid = []
    for table, names in SAID.items():
        for row in (TABLES[table][0], TABLES[table][-1]):
            told = row.published.origin.brief
            facts = (str(getattr(row, each)) for each in names)
            metric = getattr(row, "metric", "")
            words = (each.replace("_", " ") if each == metric else each for each in facts)
            unsaid += [(table, each) for each in words if literal(each) not in told]
            assert told.endswith(f"[@{row.source}]"), table
            assert row.published.magnitude == pytest.approx(row.value), table
    assert unsaid == []


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


READERS: tuple[Table[Any], ...] = (
    *(failures_and_prices.API_PRICES, failures_and_prices.FAILURES, failures_and_prices.PRICES),
    *(inside_machines.UNITS, inside_machines.RATES, inside_machines.SPACES),
    *(inference.LOADS, inference.SERVING, power.POWER, growth.FACT_ROWS),
    *(training.NETWORK_STEPS, training.RUNS, training.STEPS, training.PEAKS),
    # Its place is the folder around all others.
    inference.NETWORKS,
)


def test_a_fault_in_a_table_is_named_with_its_line(tmp_path: Path) -> None:
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
        place = str(DATA / fault["table"])
        table = next(each for each in READERS if place.startswith(str(each.place)))
        try:
            table.load(path)
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
        inference.NETWORKS.place.joinpath("resnet50_inference.csv").read_text("utf-8").splitlines()
    )
    path = tmp_path / "rows.csv"
    path.write_text(f"{header}\n{first}\n{first}\n", encoding="utf-8")
    with pytest.raises(DataFileError, match="two rows have the same id"):
        inference.NETWORKS.load(path)


def select(select: str, **asked: Any) -> Any:
    """Ask what selects rows, by its name."""
    return (getattr(mlsim, select, None) or getattr(mlsim.measured, select))(**asked)


def test_rows_are_selected_and_a_selection_that_can_not_be_is_refused() -> None:
    assert answered(select, "selections") == []
    for name in mlsim.measured.__all__:
        assert mlsim.measured.__getattr__(name).__name__ == name
    served, steps = inference.serving_measurements, training.training_measurements
    mine: list[tuple[Callable[..., Any], dict[str, Any], str, list[Any]]] = [
        (measurements, {"hardware": Hardware.Cloud.T4}, "hardware", ["Cloud.T4"]),
        (measurements, {"precision": "fp32"}, "precision", ["fp32"]),
        (measurements, {"software": "nothing"}, "id", []),
        (served, {"model": "llama2-7b", "hardware": "L40S"}, "model", ["Llama2_7B"]),
        (served, {"model": "llama2-7b", "hardware": "L40S"}, "hardware", ["Cloud.L40S"]),
        (served, {"metric": "time_to_first_token"}, "metric", ["time_to_first_token"]),
        (served, {"series": "spark_batch_dense"}, "batch_size", [1, 2, 4, 8, 16, 32]),
        (served, {"software": "TensorRT-LLM"}, "software",
         ["TensorRT-LLM v0.5", "TensorRT-LLM v0.6.1"]),
        (steps, {"model": "mt-nlg-530b", "metric": "step_time"}, "value",
         [37.83, 44.4, 49.05, 50.2, 60.1]),
        (steps, {"device": Hardware.Cloud.H200}, "device", ["Cloud.H200"]),
        (steps, {"software": "nothing"}, "id", []),
        (power_measurements, {"model": "DeepSeek_V3"}, "device", ["Cloud.B200"]),
        (power_measurements, {"series": "mlperf_power_h200", "device": "H200"}, "device",
         ["Cloud.H200"]),
        (published_runs, {"measured": "metered", "metric": "energy"}, "run",
         ["Evolved Transformer NAS", "GShard 600B", "Meena", "OLMo 2 13B", "OLMo 2 7B", "T5 11B"]),
        (prices, {"device": "H100"}, "device", ["Cloud.H100"]),
    ]  # fmt: skip
    for ask, asked, name, expected in mine:
        assert sorted({getattr(row, name) for row in ask(**asked)}) == expected, asked
    assert len(steps(software="Megatron")) == 23
    assert len(power_measurements(metric="device_power")) == 16
