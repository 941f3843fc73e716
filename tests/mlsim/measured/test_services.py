"""Published results of language models: complete, and never faster than the bound."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mlsim import Hardware
from mlsim.measured.services import (
    serving_measurements,
)
from mlsim.solvers.derivation import literal
from mlsim.systems import System

ROWS = serving_measurements()
BY_ID = {row.id: row for row in ROWS}


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


def test_words_name_what_was_measured() -> None:
    for row in ROWS:
        words = row.words
        assert "\n" not in words
        for each in (row.device.name, row.software, str(row.year)):
            assert each in words, row.id
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
