"""Published results of training: complete, as printed, and consistent with one another."""

from __future__ import annotations

import re

import pytest

from mlsim import Hardware, Models, Systems
from mlsim.errors import InvalidValueError
from mlsim.measured.training_steps import (
    training_measurements,
)
from mlsim.systems import Cluster
from mlsim.zoo import resolve

ROWS = training_measurements()
BY_ID = {row.id: row for row in ROWS}


def test_times_and_utilisations_of_megatron_agree() -> None:
    """72 B L s h^2 (1 + s/6h + V/12hL) operations, equation 7 of the appendix of that paper."""
    for time, rate in ((115, 122), (117, 123), (119, 124), (121, 125)):
        row, mfu = BY_ID[f"TRN-{time}"], BY_ID[f"TRN-{rate}"]
        model = resolve.transformer(row.model)
        length, width, layers, words = row.sequence_tokens, model.hidden, model.layers, 51200
        flops = 72 * row.global_batch * layers * length * width**2
        flops *= 1 + length / (6 * width) + words / (12 * width * layers)
        assert mfu.base_value == pytest.approx(flops / row.value / row.devices / 312e12, rel=0.01)


def test_utilisations_of_mpt_are_those_of_its_parameters_and_tokens() -> None:
    """The README's formula: 6 N + 12 L d s operations for each token, N with the embeddings."""
    for row in (each for each in ROWS if each.series.startswith("mpt")):
        found = re.match(r"([\d,]+) parameters, \d+ TFLOP/s and (\d+) tokens", row.note)
        assert found, row.id
        parameters, tokens = int(found[1].replace(",", "")), int(found[2])
        model = row.transformer
        if row.sequence_tokens >= 2048:
            assert model.parameter_count == parameters, row.id
        peak = 312e12 if "A100" in row.device else 989e12
        peak *= 2 if row.precision == "fp8" else 1
        per_token = 6 * parameters + 12 * model.layers * model.hidden * row.sequence_tokens
        assert row.base_value == pytest.approx(per_token * tokens / peak, rel=0.015), row.id


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


def test_a_step_is_predicted() -> None:
    """By the roofline: faster than what was measured, and half as fast where links wait."""
    for key in ("TRN-003", "TRN-061", "TRN-086", "TRN-090", "TRN-117", "TRN-134", "TRN-181"):
        row = BY_ID[key]
        assert not row.missing
        predicted = row.train().value("step_time")
        if row.step_time:
            assert 0.3 < predicted / row.step_time < 1.5, key


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
