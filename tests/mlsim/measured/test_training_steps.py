"""Published results of training: complete, as printed, and consistent with one another."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from mlsim import Hardware, Models, Systems
from mlsim.errors import DataFileError, InvalidValueError, UnknownNameError, WrongKindError
from mlsim.measured.training_steps import (
    METRICS,
    TRAINING_FOLDER,
    TrainingMeasurement,
    load,
    training_measurements,
)
from mlsim.records.references import references
from mlsim.systems import Cluster
from mlsim.zoo import resolve

ROWS = training_measurements()
BY_ID = {row.id: row for row in ROWS}
FILES = {path.stem: path for path in TRAINING_FOLDER.glob("*.csv")}

# Rows of the reference's series that are left out, and why.
LEFT_OUT = {
    "TRN-153": "PaLM 540B is not in the zoo",
    "TRN-154": "Gopher 280B is not in the zoo",
    "TRN-156": "GLM-130B is not in the zoo",
    "TRN-160": "how many GPUs trained GPT-3 is not public",
    **{f"TRN-{n}": "the optimizer ran on the host" for n in range(172, 180)},
}

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


@each_row
def test_a_row_has_its_source(row: TrainingMeasurement) -> None:
    assert row.source in references()
    assert len([word for word in row.quote.split() if word != "|"]) <= 15
    assert row.software
    assert row.note.endswith(".")
    assert 2015 <= row.year <= 2030
    assert row.unit == METRICS[row.metric]
    printed = [float(each) for each in re.findall(r"\d+\.?\d*", row.quote.replace(",", ""))]
    assert row.value in printed


def test_rows_of_each_series() -> None:
    assert Counter(row.series for row in ROWS) == {
        "megatron_tab5": 8,
        "megatron_mfu": 4,
        "megatron_strong": 2,
        "mtnlg": 3,
        "published_mfu": 4,
        "bloom_tuning": 4,
        "bloom_final": 1,
        "mpt_h100_80gb": 13,
        "mpt_h100_80gb_fp8": 3,
        "mpt_a100_80gb": 4,
        "mpt_a100_40gb": 6,
        "torchtitan_h100": 10,
        "maxtext_a3": 3,
        "dle_pyt_bertl_pretrain_a100": 6,
        "stas_8b_seqlen": 2,
    }
    assert len(BY_ID) == len(ROWS) == 73


def test_rows_are_those_of_the_reference(reference: Path) -> None:
    with (reference / "data" / "measurements-open.csv").open(encoding="utf-8", newline="") as file:
        published = {row["id"]: row for row in csv.DictReader(file)}
    series = {row.series for row in ROWS}
    there = {key for key, row in published.items() if row["series"] in series}
    assert there == {*BY_ID, *LEFT_OUT}
    assert not set(BY_ID) & set(LEFT_OUT)
    for row in ROWS:
        theirs = published[row.id]
        assert (row.value, row.series) == (float(theirs["value"]), theirs["series"])
        assert (row.year, row.devices) == (int(theirs["year"]), int(theirs["hw_count"]))


@pytest.mark.parametrize(
    ("time", "rate"),
    [
        ("TRN-115", "TRN-122"),
        ("TRN-117", "TRN-123"),
        ("TRN-119", "TRN-124"),
        ("TRN-121", "TRN-125"),
    ],
)
def test_times_and_utilisations_of_megatron_agree(time: str, rate: str) -> None:
    """72 B L s h^2 (1 + s/6h + V/12hL) operations, equation 7 of the appendix of that paper."""
    row, mfu = BY_ID[time], BY_ID[rate]
    model = resolve.transformer(row.model)
    length, width, layers, words = row.sequence_tokens, model.hidden, model.layers, 51200
    flops = 72 * row.global_batch * layers * length * width**2
    flops *= 1 + length / (6 * width) + words / (12 * width * layers)
    assert mfu.base_value == pytest.approx(flops / row.value / row.devices / 312e12, rel=0.01)


@pytest.mark.parametrize("row", [r for r in ROWS if r.series.startswith("mpt")], ids=lambda r: r.id)
def test_utilisations_of_mpt_are_those_of_its_parameters_and_tokens(
    row: TrainingMeasurement,
) -> None:
    """The README's formula: 6 N + 12 L d s operations for each token, N with the embeddings."""
    found = re.match(r"([\d,]+) parameters, \d+ TFLOP/s and (\d+) tokens", row.note)
    assert found
    parameters, tokens = int(found[1].replace(",", "")), int(found[2])
    model = row.transformer
    if row.sequence_tokens >= 2048:
        assert model.parameter_count == parameters
    peak = 312e12 if "A100" in row.device else 989e12
    peak *= 2 if row.precision == "fp8" else 1
    per_token = 6 * parameters + 12 * model.layers * model.hidden * row.sequence_tokens
    assert row.base_value == pytest.approx(per_token * tokens / peak, rel=0.015)


def test_a_step_time_follows_where_it_can() -> None:
    # 8 GPUs, 2 sequences of 8192 tokens each, 5762 tokens per second: 16384 / 5762.
    assert BY_ID["TRN-089"].step_time == pytest.approx(16384 / 5762)
    # 8192 sequences of one GPU at 580 in a second.
    assert BY_ID["TRN-001"].step_time == pytest.approx(14.124, abs=5e-4)
    assert BY_ID["TRN-131"].step_time == 143.31
    assert BY_ID["TRN-122"].step_time is None
    # 1920 x 2048 tokens in 60.1 s are the 65.43 thousand of the quote.
    assert "65.43K" in BY_ID["TRN-155"].quote
    assert pytest.approx(65430, rel=1e-3) == 1920 * 2048 / BY_ID["TRN-126"].value


def test_values_in_base_units() -> None:
    assert BY_ID["TRN-123"].base_value == pytest.approx(0.514)
    assert BY_ID["TRN-180"].base_value == 461e12
    assert BY_ID["TRN-116"].base_value == 18.13
    assert BY_ID["TRN-089"].base_value == 5762


def test_machines() -> None:
    megatron = BY_ID["TRN-121"].machine
    assert isinstance(megatron, Cluster)
    assert (megatron.key, megatron.node) == ("Selene", Systems.HGX_A100)
    assert BY_ID["TRN-001"].machine is Hardware.Cloud.A100
    assert BY_ID["TRN-180"].machine is Systems.HGX_H200
    # Four Omni-Path links of 100 Gb/s for eight GPUs.
    assert BY_ID["TRN-135"].machine.link_bandwidth(64) == 6.25e9


def test_nodes_hold_the_very_device_of_the_row() -> None:
    small = BY_ID["TRN-062"].machine
    assert isinstance(small, Cluster)
    assert small.device is Hardware.Cloud.A100_40GB
    assert small.name == "NVIDIA DGX A100 SuperPOD with NVIDIA A100 SXM 40 GB"
    # 1600 Gb/s for eight.
    assert (small.link_bandwidth(8), small.link_bandwidth(16)) == (300e9, 25e9)


def test_a_model_is_as_long_as_its_sequences() -> None:
    long = BY_ID["TRN-050"].transformer
    assert (long.context, long.positions, long.parameter_count) == (65536, 65536, 6_918_905_856)
    assert BY_ID["TRN-053"].transformer.parameter_count == 6_658_859_008
    rotary = BY_ID["TRN-094"].transformer
    assert (rotary.context, rotary.positions) == (262144, 0)
    assert BY_ID["TRN-089"].transformer is Models.Llama3_8B


@pytest.mark.parametrize(
    "key", ["TRN-003", "TRN-061", "TRN-086", "TRN-090", "TRN-117", "TRN-134", "TRN-181"]
)
def test_a_step_is_predicted(key: str) -> None:
    row = BY_ID[key]
    assert not row.missing
    predicted = row.train().value("step_time")
    assert predicted > 0
    if row.step_time:
        assert 0.3 < predicted / row.step_time < 1.5


def test_arguments_are_those_of_train() -> None:
    row = BY_ID["TRN-119"]
    given = row.arguments()
    assert given["model"].key == "MT_NLG_530B"
    assert (given["tensor_parallel"], given["pipeline_parallel"], given["interleaved"]) == (
        8,
        35,
        3,
    )
    assert (given["micro_batch"], given["global_batch"], given["devices"]) == (1, 280, 280)
    assert (given["recompute"], given["sequence_parallel"]) == ("selective", True)
    assert (given["attention"], given["dropout"], given["shard"]) == ("standard", True, "none")
    assert given["check_memory"] is False
    assert row.arguments(recompute="full", overlap=0.5)["recompute"] == "full"
    # What the source does not state is left to the default where it costs no time.
    assert "dropout" not in BY_ID["TRN-131"].arguments()


def test_what_a_source_does_not_state_must_be_given() -> None:
    row = BY_ID["TRN-126"]
    assert row.missing == ("interleaved", "shard", "micro_batch")
    with pytest.raises(
        InvalidValueError, match=r"TRN-126 does not state interleaved, shard, micro"
    ):
        row.train()
    with pytest.raises(InvalidValueError, match=r"row\.train\(micro_batch=\.\.\.\)"):
        row.arguments(interleaved=1, shard="none")
    assert row.arguments(interleaved=1, shard="none", micro_batch=1)["micro_batch"] == 1


def test_rows_are_selected() -> None:
    some = training_measurements(model="mt-nlg-530b", metric="step_time")
    assert [row.value for row in some] == [49.05, 37.83, 60.1, 50.2, 44.4]
    assert {row.device for row in training_measurements(device=Hardware.Cloud.H200)} == {
        "Cloud.H200"
    }
    assert len(training_measurements(software="Megatron")) == 23
    assert training_measurements(software="nothing") == []


def test_a_selection_that_can_not_be_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no metric is called 'speed'"):
        training_measurements(metric="speed")
    with pytest.raises(UnknownNameError, match="Did you mean 'megatron_tab5'"):
        training_measurements(series="megatron_tab")
    with pytest.raises(UnknownNameError):
        training_measurements(device="H1000")
    with pytest.raises(WrongKindError, match="no language model"):
        training_measurements(model="ResNet50")


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("megatron", "tensor_parallel", "parallel", "1: the columns must be id, series, model,"),
        ("megatron", "Megatron_22B", "Megatron_2B", "2: no model is called 'Megatron_2B'. Did you"),
        (
            "megatron",
            "Megatron_22B",
            "megatron-22b",
            "2: model must be the key 'Megatron_22B', not",
        ),
        ("megatron", "Megatron_22B", "ResNet50", "2: ResNet-50 v1.5 is no language model"),
        ("megatron", "Cloud.A100", "A100", "2: device must be the key 'Cloud.A100', not 'A100'."),
        ("megatron", ",Selene,", ",Selena,", "2: no device, system or cluster is called 'Selena'."),
        ("megatron", ",8,8,1,1,1,", ",8,8,2,1,1,", "2: parallel sizes 8 x 2 x 1 x 1 make 16 dev"),
        ("megatron", ",8,8,1,1,1,", ",0,8,1,1,1,", "2: devices must be a whole number from 1 up"),
        ("megatron", ",8,8,1,1,1,", ",8,8,x,1,1,", "2: pipeline_parallel must be a whole number "),
        ("megatron", ",none,4,4,", ",none,3,4,", "2: global_batch 4 is no whole number of micro-"),
        ("megatron", ",none,4,4,", ",zero4,4,4,", "2: shard must be one of none, zero1, zero2, z"),
        ("megatron", ",fp16,full,", ",fp17,full,", "2: no precision is called 'fp17'."),
        (
            "megatron",
            ",full,standard,",
            ",fully,standard,",
            "2: recompute must be one of none, sel",
        ),
        ("megatron", ",standard,yes,", ",standard,1,", "2: dropout must be yes or no, not '1'."),
        ("megatron", ",step_time,", ",step,", "2: no metric is called 'step'."),
        ("megatron", ",1.42,s,", ",1.42,ms,", "2: the unit of step_time is s, not 'ms'."),
        ("megatron", ",1.42,s,", ",-1.42,s,", "2: value must be a positive number, not '-1.42'."),
        ("megatron", ",1.42,s,", ",nan,s,", "2: value must be a positive number, not 'nan'."),
        (
            "megatron",
            "korthikanti2022reducing",
            "nobody",
            "2: source 'nobody' is not in references",
        ),
        ("megatron", "TRN-115", "TRN-114", "3: two rows have the same id, 'TRN-114'."),
        ("deepspeed", "HGX_H200", "HGX_H100", "2: NVIDIA HGX H100, 8 GPUs is made of Cloud.H100"),
        ("deepspeed", "HGX_H200,8,", "HGX_H200,16,", "2: NVIDIA HGX H200, 8 GPUs has 8 devices, f"),
        (
            "bert",
            "Cloud.A100,,1,",
            "Cloud.A100,,2,",
            "2: NVIDIA A100 SXM 80 GB has 1 devices, fewe",
        ),
        ("deepspeed", ",causal,", ",half,", "2: attention_counted must be one of full, causal, no"),
    ],
)
def test_a_fault_in_a_row_is_named(
    tmp_path: Path, file: str, old: str, new: str, words: str
) -> None:
    content = FILES[file].read_text(encoding="utf-8")
    assert old in content
    path = tmp_path / "rows.csv"
    path.write_text(content.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataFileError) as e:
        load(path)
    assert str(e.value).startswith(f"{path}:{words}")
