"""Published results of language models: complete, and never faster than the bound."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mlsim import Hardware
from mlsim.errors import DataFileError, UnknownNameError, WrongKindError
from mlsim.measured.services import (
    METRICS,
    SERVING_FOLDER,
    ServingMeasurement,
    load,
    serving_measurements,
)
from mlsim.records.references import references
from mlsim.solvers.derivation import literal
from mlsim.systems import System

ROWS = serving_measurements()
BY_ID = {row.id: row for row in ROWS}
FILES = {path.stem: path for path in SERVING_FOLDER.glob("*.csv")}

# Rows of the reference's series that are left out, and why.
LEFT_OUT = {
    "DEC-059": "speculative decoding, whose acceptance rate is not stated",
    "DEC-222": "four GPUs, and the table does not say whether it counts them all",
    "PRE-086": "speed of a prompt, which is none of the metrics",
    "PRE-087": "speed of a prompt, which is none of the metrics",
    "PRE-088": "speed of a prompt, which is none of the metrics",
    "PRE-089": "speed of a prompt, which is none of the metrics",
    "PRE-090": "speed of a prompt, which is none of the metrics",
    "PRE-123": "Falcon 180B is not in the zoo",
    "PRE-130": "Falcon 180B is not in the zoo",
}

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


@each_row
def test_no_measurement_beats_the_bound(row: ServingMeasurement) -> None:
    """A row that did would show an error in the row, or in the bound."""
    bound = row.predicted("bound")
    if row.metric == "time_to_first_token":
        assert row.value > bound
        assert row.predicted() >= bound
    else:
        assert row.value < bound
        assert row.predicted() <= bound


@each_row
def test_a_row_has_its_source(row: ServingMeasurement) -> None:
    assert row.source in references()
    assert row.quote
    assert row.software
    assert row.note
    assert 2015 <= row.year <= 2030
    assert row.unit == METRICS[row.metric]
    printed = row.value * 1e3 if row.metric == "time_to_first_token" else row.value
    numbers = [float(each) for each in re.findall(r"\d+\.?\d*", row.quote.replace(",", ""))]
    # One source prints sixteen digits, of which we keep one after the point.
    assert any(each == pytest.approx(printed, abs=0.05, rel=0) for each in numbers)


def test_ids_are_of_one_row_in_all_files() -> None:
    assert len(BY_ID) == len(ROWS)


def test_rows_are_those_of_the_reference(reference: Path) -> None:
    with (reference / "data" / "measurements-open.csv").open(encoding="utf-8", newline="") as file:
        published = {row["id"]: row for row in csv.DictReader(file)}
    series = {row.series for row in ROWS}
    there = {
        key
        for key, row in published.items()
        if row["series"] in series and not row["metric"].startswith("energy")
    }
    assert there == {*BY_ID, *LEFT_OUT}
    assert not set(BY_ID) & set(LEFT_OUT)
    for row in ROWS:
        theirs = published[row.id]
        scale = 1e-3 if theirs["unit"] == "ms" else 1
        assert row.value == pytest.approx(scale * float(theirs["value"]))
        assert row.series == theirs["series"]
        assert row.year == int(theirs["year"])
        assert row.devices == int(theirs["hw_count"])
        assert row.per_device == ("PER GPU" in theirs["scope"])
        assert row.batch_size == round(float(theirs["batch"].partition(" ")[0]))
        # A prompt of no tokens is one token that starts the text.
        if theirs["input_len"]:
            assert row.prompt_tokens == max(int(theirs["input_len"]), 1)
        if theirs["output_len"]:
            assert row.output_tokens == int(theirs["output_len"].removeprefix("mean "))


def test_rows_are_the_resolved_cases_of_the_reference(reference: Path) -> None:
    with (reference / "accuracy" / "cases-open.csv").open(encoding="utf-8", newline="") as file:
        cases = {row["case_id"]: row for row in csv.DictReader(file)}
    for row in ROWS:
        case = cases[row.id]
        assert (row.weights, row.activations, row.kv_cache) == (
            case["w_dtype"],
            case["a_dtype"],
            case["kv_dtype"],
        )
        if row.bits_per_weight:
            assert row.bits_per_weight == float(case["w_bits"])
        assert row.tensor_parallel == int(case["tp"])
        total = row.value * (row.devices if row.per_device else 1)
        assert total == pytest.approx(float(case["measured"]))


def test_devices_are_joined_by_their_own_link() -> None:
    row = BY_ID["DEC-048"]
    assert isinstance(row.system, System)
    assert row.system.devices == row.tensor_parallel == 8
    assert row.system.device is row.device is Hardware.Cloud.A100
    # 600 GB/s count both directions.
    assert row.system.link_bandwidth(8) == 300e9
    assert row.system.figure is Hardware.Cloud.A100.figures["links.nvlink"]
    assert row.serve().decode.value("network_share") > 0
    alone = BY_ID["DEC-039"]
    assert alone.system is alone.device


def test_a_part_of_one_device_is_predicted_as_such() -> None:
    row = BY_ID["DEC-217"]
    assert (row.per_device, row.devices) == (True, 2)
    assert row.predicted() == pytest.approx(replace(row, per_device=False).predicted() / 2)


def test_bits_of_a_weight_are_those_of_the_row() -> None:
    row = BY_ID["DEC-041"]
    assert row.serve().decode.value("bytes_per_parameter") == row.bits_per_weight / 8 == 0.625
    # Half the bytes for each weight: nearly twice as fast, as the cache is small.
    faster = replace(row, bits_per_weight=2.5).predicted() / row.predicted()
    assert 1.9 < faster < 2


def test_an_encoder_makes_passes() -> None:
    row = next(row for row in ROWS if row.metric == "pass_throughput")
    assert row.output_tokens is None
    time = row.serve().value("time_to_first_token")
    assert row.predicted() == pytest.approx(row.batch_size / time)


@each_row
def test_words_name_what_was_measured(row: ServingMeasurement) -> None:
    words = row.words
    assert "\n" not in words
    assert row.device.name in words
    assert row.software in words
    assert str(row.year) in words
    plain = re.sub(r"\\(.)", r"\1", words)
    assert literal(plain) == words


def test_words_of_a_row() -> None:
    assert BY_ID["DEC-217"].words == (
        "output throughput per device of Llama 2 70B on 2 x NVIDIA H100 SXM 80 GB, "
        "batch 1,024, 128 + 128 tokens, fp8, with TensorRT-LLM v0.6.1, 2023"
    )
    assert "weights int4, activations bf16, KV cache bf16 (5 bits per weight)" in (
        BY_ID["DEC-041"].words
    )
    assert " 384 tokens, fp16, " in BY_ID["PRE-007"].words


def test_rows_are_selected() -> None:
    some = serving_measurements(model="llama2-7b", hardware=Hardware.Cloud.L40S)
    assert {(row.model, row.hardware) for row in some} == {("Llama2_7B", "Cloud.L40S")}
    assert {row.metric for row in some} == {"output_throughput", "time_to_first_token"}
    first = serving_measurements(metric="time_to_first_token")
    assert first == [row for row in ROWS if row.metric == "time_to_first_token"]
    dense = serving_measurements(series="spark_batch_dense")
    assert [row.batch_size for row in dense] == [1, 2, 4, 8, 16, 32]
    made = serving_measurements(software="TensorRT-LLM")
    assert {row.software for row in made} == {"TensorRT-LLM v0.5", "TensorRT-LLM v0.6.1"}
    assert serving_measurements(software="nothing") == []


def test_a_selection_that_can_not_be_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no metric is called 'latency'"):
        serving_measurements(metric="latency")
    with pytest.raises(UnknownNameError, match="Did you mean 'gptfast_a100'"):
        serving_measurements(series="gptfast_a10")
    with pytest.raises(UnknownNameError):
        serving_measurements(hardware="H1000")
    with pytest.raises(WrongKindError, match="no language model"):
        serving_measurements(model="ResNet50")


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "words"),
    [
        ("gptfast", "tensor_parallel", "parallel", 1, "the columns must be id, series, model,"),
        ("gptfast", "Llama2_7B", "Llama2_7", 2, "no model is called 'Llama2_7'. Did you mean"),
        ("gptfast", "Llama2_7B", "llama2-7b", 2, "model must be the key 'Llama2_7B', not 'llama2"),
        ("gptfast", "Llama2_7B", "ResNet50", 2, "ResNet-50 v1.5 is no language model"),
        ("gptfast", "Cloud.A100", "Cloud.A1000", 2, "no device is called 'Cloud.A1000'. Did you"),
        ("gptfast", "Cloud.A100", "A100", 2, "hardware must be the key 'Cloud.A100', not 'A100'."),
        ("gptfast", "bf16,bf16,bf16", "bf16,bf17,bf16", 2, "no precision is called 'bf17'. Did"),
        ("gptfast", ",1,1,1,5,", ",0,1,1,5,", 2, "devices must be a whole number from 1 up, not"),
        ("gptfast", ",1,1,1,5,", ",1,1,1.5,5,", 2, "batch_size must be a whole number from 1 up"),
        ("gptfast", ",1,1,1,5,", ",1,2,1,5,", 2, "tensor_parallel 2 does not divide 1 devices."),
        ("gptfast", ",200,", ",,", 2, "output_tokens must be given for a decoder, and only for"),
        ("gptfast", ",int8,bf16,bf16,8,", ",int8,bf16,bf16,-8,", 3, "bits_per_weight must be a "),
        ("gptfast", ",104.9,", ",nan,", 2, "value must be a positive number, not 'nan'."),
        ("gptfast", ",104.9,", ",fast,", 2, "value must be a positive number, not 'fast'."),
        ("gptfast", ",decode_throughput,", ",speed,", 2, "no metric is called 'speed'."),
        ("gptfast", ",decode_throughput,", ",pass_throughput,", 2, "the unit of pass_throughput"),
        ("gptfast", ",token/s,no,", ",s,no,", 2, "the unit of decode_throughput is token/s, not"),
        ("gptfast", ",token/s,no,", ",token/s,0,", 2, "per_device must be yes or no, not '0'."),
        ("gptfast", ",no,2024,", ",no,,", 2, "year must be a whole number from 1 up, not ''."),
        ("gptfast", ",gptfast2024,", ",nobody,", 2, "source 'nobody' is not in references.bib."),
        ("gptfast", ",gptfast2024,", ",", 2, "this row has not as many cells as there are colum"),
        ("gptfast", ",gptfast2024,", ",,,", 2, "this row has not as many cells as there are colu"),
        ("gptfast", "DEC-040", "DEC-039", 3, "two rows have the same id, 'DEC-039'."),
        ("bert_triton", ",384,,", ",384,1,", 2, "output_tokens must be given for a decoder, and"),
        (
            "bert_triton",
            "pass_throughput,275,sample/s",
            "decode_throughput,275,token/s",
            2,
            "BERT-Large is an encoder, which has no decode_throughput.",
        ),
        (
            "gptfast",
            "decode_throughput,104.9,token/s",
            "pass_throughput,104.9,sample/s",
            2,
            "Llama 2 7B is a decoder, which has no pass_throughput.",
        ),
        (
            "llamacpp_spark",
            "Workstation.DGXSpark,1,1,",
            "Workstation.DGXSpark,2,2,",
            2,
            "NVIDIA DGX Spark has no links.nvlink on record to join 2 of it.",
        ),
    ],
)
def test_a_fault_in_a_row_is_named(
    tmp_path: Path, file: str, old: str, new: str, line: int, words: str
) -> None:
    content = FILES[file].read_text(encoding="utf-8")
    assert old in content
    path = tmp_path / "rows.csv"
    path.write_text(content.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataFileError) as e:
        load(path)
    assert str(e.value).startswith(f"{path}:{line}: ")
    assert words in str(e.value)
