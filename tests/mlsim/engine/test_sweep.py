"""What a sweep says in a terminal, who computes it; and products that lack a side."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mlsim import Engine
from mlsim.engine.sweep import _cell, _schedulers, sweep_text
from mlsim.errors import InvalidValueError


def test_cells_of_a_line() -> None:
    """Memory in GiB, what moves in GB; numbers of three places, from a hundred up whole."""
    for name, value, unit, expected in (
        ("memory_required", 3 * 2**30, "B", "3 GiB"),
        ("decode.memory_required", 3 * 2**30, "B", "3 GiB"),
        ("no_such_term", 3e9, "B", "3 GB"),
        ("latency", 0.007, "s", "7 ms"),
        ("memory_bandwidth", 2e12, "B/s", "2 TB/s"),
        ("peak_flops", 5e12, "FLOP/s", "5 TFLOP/s"),
        ("throughput", 1234.5, "sample/s", "1,234"),
        ("throughput", 100.25, "sample/s", "100"),
        ("throughput", -123.4, "sample/s", "-123"),
        ("throughput", 99.75, "sample/s", "99.8"),
        ("throughput", 7.0, "sample/s", "7"),
        ("bottleneck", "Memory Bound", None, "Memory Bound"),
        ("latency", float("nan"), "s", "-"),
    ):
        assert _cell(name, value, unit) == expected, (name, value)


def test_columns_stand_under_their_heads() -> None:
    """Numbers to the right, words to the left, and a reason behind the line it is of."""
    table = Engine.sweep("ResNet50", ["A100", "T4"], batch_size=[5, 1_000_000])
    head, first, second, *others, last = sweep_text(table).splitlines()
    assert " ".join(head.split()) == (
        "model hardware precision batch latency samples/s bottleneck memory_required"
    )
    for name in ("latency", "samples/s", "memory_required"):
        end = head.index(name) + len(name)
        assert first[end - 1] != " "
        assert first[end : end + 2].strip() == ""
    assert first[head.index("bottleneck") :].startswith(("Memory Bound  ", "Compute Bound  "))
    assert first[: head.index("batch") + len("batch")].endswith("    5")
    assert second.endswith("  does not fit")
    assert len(others) == 2
    assert last == f"formats: {table.attrs['formats_assumed']}"


def test_one_word_means_who_computes_and_how_a_service_schedules() -> None:
    pool: Any = SimpleNamespace(submit=print)
    for given, own, expected in (
        (None, False, (None, ...)),
        (pool, False, (pool, ...)),
        ([pool], False, (pool, ...)),
        (pool, True, (pool, ...)),
        ("vllm", True, (None, "vllm")),
        (["vllm", "sglang"], True, (None, ["vllm", "sglang"])),
        (["vllm", pool], True, (pool, ["vllm"])),
    ):
        assert _schedulers(given, own=own) == expected, given
    for given, own in (("vllm", False), ([pool, "x"], False), ([pool, pool], True), ([], False)):
        with pytest.raises(InvalidValueError, match="scheduler must be a Dask client"):
            _schedulers(given, own=own)


def test_a_product_has_three_sides_and_its_groups_stand_for_the_first() -> None:
    sides: dict[str, Any] = {"M": 64, "N": 96, "K": 160, "hardware": "H100"}
    for name in "MNK":
        with pytest.raises(InvalidValueError, match=f"^{name} is missing: a product is"):
            Engine.gemm(**{**sides, name: None})
