"""Sweeps: every combination, one row each, in a tidy table."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Device, Engine, Hardware, Models

TOO_MANY = 1_000_000


def chip(name: str, rate: float = 1.0) -> Device:
    return Device(
        name,
        peak_flops={"fp16": f"{rate} TFLOP/s"},
        memory_bandwidth="1 TB/s",
        memory_capacity="16 GB",
    )


@pytest.fixture(scope="module")
def table():
    return Engine.sweep(
        model=Models.ResNet50,
        hardware=[Hardware.Cloud.V100, Hardware.Cloud.A100, Hardware.Cloud.T4],
        batch_size=[1, 32, 256],
        precision=["fp16", "fp32"],
    )


def test_the_table_is_tidy(table) -> None:
    assert len(table) == 3 * 2 * 3
    assert list(table.columns) == [
        "model",
        "hardware",
        "precision",
        "estimate",
        "activations",
        "batch_size",
        "latency",
        "throughput",
        "bottleneck",
        "memory_bound_share",
        "memory_required",
        "feasible",
        "reason",
    ]
    assert table.feasible.all()
    assert (table.reason == "").all()
    combinations = table[["hardware", "precision", "batch_size"]].drop_duplicates()
    assert len(combinations) == len(table)


@pytest.mark.parametrize(
    "asked",
    [
        {"estimate": "roofline", "precision": ["fp16", "int8"]},
        {"estimate": "bound", "precision": ["fp16", "int8"]},
        {"estimate": "roofline", "activations": "on-chip", "precision": ["bf16", "fp16"]},
        {"estimate": "calibrated", "activations": "on-chip", "precision": ["bf16", "fp16"]},
    ],
    ids=lambda asked: " ".join(map(str, asked.values())),
)
def test_each_row_is_what_solve_answers(asked: dict[str, Any]) -> None:
    """Also where activations stay on chip, which is another question."""
    kept = "activations" in asked
    hardware = [Hardware.Cloud.A100, Hardware.Cloud.H100] if kept else Hardware.Cloud
    batches = [1, 2, 8, 64, 4096] if kept else [1, 64]
    models = [Models.ResNet50, Models.AlexNet] if kept else [Models.ResNet50]
    table = Engine.sweep(model=models, hardware=hardware, batch_size=batches, **asked)
    assert table.feasible.sum() >= 40
    same = {name: value for name, value in asked.items() if name != "precision"}
    for row in table[table.feasible].itertuples():
        one = {"batch_size": row.batch_size, "precision": row.precision, **same}
        alone = Engine.solve(row.model, row.hardware, **one)
        assert row.latency == pytest.approx(alone.value("latency"), rel=1e-12)
        assert row.throughput == pytest.approx(alone.throughput, rel=1e-12)
        assert row.memory_bound_share == pytest.approx(alone.memory_bound_share, rel=1e-12)
        assert row.memory_required == pytest.approx(alone.value("memory_required"), rel=1e-12)
        assert row.bottleneck == alone.bottleneck
    if kept:
        assert (table.activations == "on-chip").all()
        # The tutorial's image: 37.8 us, where every activation that moves makes it 55.5.
        first = table[(table.hardware == Hardware.Cloud.A100.name) & (table.precision == "fp16")]
        if asked["estimate"] == "roofline":
            assert first.latency.iloc[0] == pytest.approx(37.84e-6, rel=1e-3)


def test_rows_that_cannot_run_are_kept() -> None:
    table = Engine.sweep(
        model="ResNet50",
        hardware=["A100", "T4"],
        batch_size=[1, TOO_MANY],
        precision=["fp16", "bf16"],
    )
    assert table.feasible.tolist() == [True, False, True, False, True, False, False, False]
    assert table.reason.tolist() == [
        "",
        "does not fit",
        "",
        "does not fit",
        "",
        "does not fit",
        "no bf16 peak on record",
        "no bf16 peak on record",
    ]
    stopped = table[~table.feasible]
    assert stopped.latency.isna().all()
    assert stopped.throughput.isna().all()
    assert stopped.bottleneck.isna().all()
    assert stopped.memory_bound_share.isna().all()
    # How much it would need is known, where the precision is.
    needs = table[table.reason == "does not fit"]
    assert needs.memory_required.notna().all()


def test_a_namespace_stands_for_all_of_it() -> None:
    table = Engine.sweep(model=Models, hardware=Hardware, precision="fp32")
    assert table.hardware.nunique() == len(Hardware.keys())


def test_devices_of_one_name_are_all_there() -> None:
    table = Engine.sweep(model=Models.ResNet50, hardware=[chip("Mine", 1), chip("Mine", 2)])
    assert table.hardware.tolist() == ["Mine", "Mine"]
    assert table.latency[0] > table.latency[1]


def test_a_design_space_of_many_devices() -> None:
    chips = [chip(f"chip {number}", rate=number) for number in range(1, 301)]
    table = Engine.sweep(model=Models.ResNet50, hardware=chips, batch_size=[1, 8])
    assert table.hardware.tolist()[::2] == [each.name for each in chips]
    assert table.latency[::2].is_monotonic_decreasing


def test_the_default_precision_is_said_to_be_one() -> None:
    asked = {"model": Models.ResNet50, "hardware": Hardware.Cloud.A100}
    table = Engine.sweep(**asked)
    assert table.attrs["formats_assumed"] == "fp16, since no other was given"
    given = Engine.sweep(**asked, precision="fp16")
    assert "formats_assumed" not in given.attrs
    assert given.attrs["units"]["latency"] == "s"
    assert table.equals(given)


def test_a_device_without_a_cache_is_a_row_that_cannot_run() -> None:
    table = Engine.sweep(
        model=Models.ResNet50,
        hardware=[chip("Bare"), Hardware.Cloud.A100],
        activations="on-chip",
    )
    assert table.feasible.tolist() == [False, True]
    assert table.reason.tolist() == ["no cache on record", ""]
    assert table.latency.isna().tolist() == [True, False]
