"""Megatron's published step times, predicted with what was measured of its parts alone.

Korthikanti et al. 2022, Table 5: full and selective recomputation of four GPT on
A100s with tensor parallelism of 8. No constant of the estimate comes from a run
of training.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from mlsim import Clusters, Engine, Training
from mlsim.hardware.device_calibration import calibration
from mlsim.hardware.measured_kernels import (
    AllReduceRow,
    AttentionRow,
    LaunchRow,
    ProductRow,
    StreamRow,
)
from mlsim.systems.link_calibration import link_calibration

# Model, stages, parts a stage, micro-batch, global batch; seconds: full, selective.
TABLE = (
    ("Megatron_22B", 1, 1, 4, 4, 1.42, 1.10),
    ("GPT3_175B", 8, 3, 1, 64, 18.13, 13.75),
    ("MT_NLG_530B", 35, 3, 1, 280, 49.05, 37.83),
    ("Megatron_1T", 64, 1, 1, 512, 94.42, 71.49),
)
RECOMPUTE = ("full", "selective")
ROWS = tuple(
    (*row[:5], recompute, row[5 + index])
    for row in TABLE
    for index, recompute in enumerate(RECOMPUTE)
)
MEAN, WORST = 0.06, 0.15


@cache
def predict(row: tuple[Any, ...], estimate: str = "calibrated") -> Training:
    model, stages, parts, micro, batch, recompute, _ = row
    selective = recompute == "selective"
    return Engine.train(
        model=model,
        hardware="Selene",
        global_batch=batch,
        micro_batch=micro,
        sequence_tokens=2048,
        precision="fp16",
        gradients="fp32",
        tensor_parallel=8,
        pipeline_parallel=stages,
        interleaved=parts,
        sequence_parallel=selective,
        recompute=recompute,
        attention="standard",
        dropout=True,
        estimate=estimate,
        # No term of a program, which is fitted to rows such as these.
        software="kernels" if estimate == "calibrated" else None,
    )


def error(row: tuple[Any, ...]) -> float:
    return float(predict(row).value("step_time") / row[-1] - 1)


rows = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[5]}")


@rows
def test_each_row_is_near(row: tuple[Any, ...]) -> None:
    assert abs(error(row)) <= WORST


def test_mean_error_is_small() -> None:
    assert sum(abs(error(row)) for row in ROWS) / len(ROWS) <= MEAN


@rows
def test_each_run_fits_as_it_did(row: tuple[Any, ...]) -> None:
    """They ran on devices of 80 GB."""
    assert predict(row).value("memory_required") <= 80e9
    assert predict(row).feasible


@rows
def test_the_roofline_is_faster_than_what_was_measured(row: tuple[Any, ...]) -> None:
    assert predict(row, "roofline").value("step_time") < row[-1]


@pytest.mark.parametrize(
    "pair", tuple(zip(ROWS[::2], ROWS[1::2], strict=True)), ids=lambda p: p[0][0]
)
def test_selective_saves_about_what_it_did(pair: tuple[Any, ...]) -> None:
    """By the table, a step with full recomputation takes 29 to 32 % longer."""
    full, selective = pair
    measured = full[-1] / selective[-1]
    found = predict(full).value("step_time") / predict(selective).value("step_time")
    assert found == pytest.approx(measured, rel=0.1)


def test_devices_are_those_of_the_table() -> None:
    assert [predict(row).devices for row in ROWS[::2]] == [8, 64, 280, 512]


def test_no_constant_comes_from_training() -> None:
    device = Clusters.Selene.device
    found = calibration(device, "fp16")
    kernels = {ProductRow, StreamRow, AttentionRow, LaunchRow}
    assert {type(row) for row in found.rows} <= kernels
    links = link_calibration(Clusters.Selene.node, 8)
    assert {type(row) for row in links.rows} == {AllReduceRow}
    sources = {row.source for row in (*found.rows, *links.rows)}
    assert "korthikanti2022reducing" not in sources
    assert "narayanan2021megatron" not in sources


def test_the_run_uses_these_constants_and_no_others() -> None:
    run = predict(ROWS[0])
    found = calibration(run.device, "fp16")
    links = link_calibration(Clusters.Selene.node, 8)
    known, columns = run.question.known, run.run.table.columns
    # Standard attention is two products, so that they reach what products do.
    assert set(columns["compute_fraction"]) == {found.compute_fraction}
    assert known["memory_fraction"] == found.memory_fraction
    assert known["link_fraction"] == links.link_fraction
    hops = 2 * (links.rows[0].devices - 1)
    assert run.value("hop_latency") == pytest.approx(links.link_latency / hops, rel=1e-12)
    assert set(columns["kernel_overhead"]) == {0.0, found.kernel_overhead}
    assert run.run.overlap.exchange == run.run.overlap.pipeline == run.run.overlap.gradient == 0
    assert not run.run.given
