"""Sweeps: every combination, one row each, in a tidy table."""

from __future__ import annotations

from typing import Any

import pytest
from own_chips import chip

from mlsim import Device, Engine, Hardware, Models

TOO_MANY = 1_000_000


def mine(name: str, rate: float = 1.0) -> Device:
    return chip(name, capacity="16 GB", fp16=f"{rate} TFLOP/s")


def test_the_table_is_tidy() -> None:
    """Every combination once; a namespace stands for all of it; what is assumed is said."""
    devices = [Hardware.Cloud.V100, Hardware.Cloud.A100, Hardware.Cloud.T4]
    asked = {"batch_size": [1, 32, 256], "precision": ["fp16", "fp32"]}
    table = Engine.sweep(model=Models.ResNet50, hardware=devices, **asked)
    assert len(table) == 3 * 2 * 3
    assert list(table.columns) == [
        *("model", "hardware", "precision", "estimate", "activations", "batch_size", "latency"),
        *("throughput", "bottleneck", "memory_bound_share", "memory_required"),
        *("feasible", "reason"),
    ]
    assert table.feasible.all()
    assert (table.reason == "").all()
    assert len(table[["hardware", *reversed(asked)]].drop_duplicates()) == len(table)
    whole = Engine.sweep(model=Models, hardware=Hardware, precision="fp32")
    assert whole.hardware.nunique() == len(Hardware.keys())
    assumed = Engine.sweep(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    assert assumed.attrs["formats_assumed"] == "fp16, since no other was given"
    given = Engine.sweep(model=Models.ResNet50, hardware=Hardware.Cloud.A100, precision="fp16")
    assert "formats_assumed" not in given.attrs
    assert given.attrs["units"]["latency"] == "s"
    assert assumed.equals(given)


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
    asked = {"batch_size": [1, TOO_MANY], "precision": ["fp16", "bf16"]}
    table = Engine.sweep(model="ResNet50", hardware=["A100", "T4"], **asked)
    none = "no bf16 peak on record"
    assert table.reason.tolist() == [*["", "does not fit"] * 3, none, none]
    assert table.feasible.tolist() == (table.reason == "").tolist()
    stopped = table[~table.feasible]
    numbers = ["latency", "throughput", "bottleneck", "memory_bound_share"]
    assert stopped[numbers].isna().all(axis=None)
    # How much it would need is known, where the precision is.
    assert table[table.reason == "does not fit"].memory_required.notna().all()
    bare = Engine.sweep("ResNet50", [mine("Bare"), Hardware.Cloud.A100], activations="on-chip")
    assert bare.reason.tolist() == ["no cache on record", ""]
    assert bare.latency.isna().tolist() == (~bare.feasible).tolist() == [True, False]


def test_a_memory_that_is_just_full_holds_it() -> None:
    """7 images need so many bytes: a device with these runs them, and one with a byte less not."""
    needed = int(Engine.sweep("ResNet50", mine("Mine"), batch_size=7).memory_required[0])
    devices = [
        chip(f"{each} B", capacity=f"{each} B", fp16="1 TFLOP/s") for each in (needed, needed - 1)
    ]
    table = Engine.sweep("ResNet50", devices, batch_size=7)
    assert table.feasible.tolist() == [True, False]


def test_devices_of_one_name_are_all_there() -> None:
    table = Engine.sweep(model=Models.ResNet50, hardware=[mine("Mine", 1), mine("Mine", 2)])
    assert table.hardware.tolist() == ["Mine", "Mine"]
    assert table.latency[0] > table.latency[1]


def test_a_table_says_of_which_devices_the_constants_are_borrowed() -> None:
    table = Engine.sweep("ResNet50", ["A100", "MI300X"], estimate="calibrated", batch_size=8)
    [(name, words)] = table.attrs["borrowed"].items()
    assert name == "AMD Instinct MI300X 192 GB"
    assert words.startswith("share of the memory bandwidth from ")
    assert "borrowed" not in Engine.sweep("ResNet50", "MI300X", batch_size=8).attrs
