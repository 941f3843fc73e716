"""Work from shapes, sizes of caches and notes of tables: each worked by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlsim.hardware.this_machine import Machine, ReportedCache
from mlsim.profiling import read_profile, stopwatch
from mlsim.profiling.measuring.registers import RegisterChains
from mlsim.profiling.measuring.whole import reported_sizes
from mlsim.profiling.read import kineto
from mlsim.profiling.read.shapes import flops_of

CONV = [[2, 3, 8, 9], [4, 3, 3, 2], [4]]
SPACED = ["", "", "", "[2, 1]", "[1, 0]", "[1, 2]"]
BACK = [[2, 4, 5, 6], [2, 3, 7, 8], [4, 3, 3, 2]]
HEADS = [[2, 3, 4, 5], [2, 3, 6, 5], [2, 3, 6, 7]]
SQUARE = [[2, 3, 6, 5], [2, 3, 6, 5], [2, 3, 6, 7]]
WORK: list[tuple[str, Any, Any, float | None]] = [
    # 2 x 3 x 5 x 7; with an addend the matrices stand behind it; twice that for two of them.
    ("mm", [[3, 5], [5, 7]], [], 210),
    ("addmm", [[7], [3, 5], [5, 7]], [], 210),
    ("bmm", [[2, 3, 5], [2, 5, 7]], [], 420),
    ("baddbmm", [[2, 3, 7], [2, 3, 5], [2, 5, 7]], [], 420),
    ("mkldnn_linear", [[2, 3, 5], [7, 5]], [], 420),
    # Rows (8 + 2 - 2 - 1) // 2 + 1 = 4, columns 9 - 2 - 1 + 1 = 7: 2 x 4 x 28 results of 18 pairs.
    ("conv2d", CONV, [*SPACED, "1"], 2 * 2 * 4 * 28 * 18),
    ("convolution", CONV, [*SPACED, "False"], 2 * 2 * 4 * 28 * 18),
    # One side for both, and in one dimension: 9 - 2 x 2 - 1 + 1 = 5 results of 4 channels.
    ("conv1d", [[2, 3, 9], [4, 3, 3]], ["", "", "", "1", "0", "2", "1"], 2 * 2 * 4 * 5 * 9),
    # Transposed: each of 120 inputs meets 6 x 2 x 2.
    ("convolution", [[2, 3, 4, 5], [3, 6, 2, 2]], [*SPACED, "True"], 2 * 120 * 24),
    # 240 results meet 3 x 3 x 2 weights, once for each gradient that is asked for.
    ("convolution_backward", BACK, [""] * 7 + ["False", "", "", "[True, True, False]"], 2 * 240 * 36),
    ("convolution_backward", BACK, [""] * 7 + ["False", "", "", "[False, True, True]"], 2 * 240 * 18),
    ("convolution_backward", BACK, [""] * 7 + ["True", "", "", "[True, True, False]"], None),
    ("convolution_backward", BACK, [""] * 7 + ["False", "", "", "[True, True]"], None),
    # 2 x 3 heads, 4 x 6 pairs of 5 + 7; half of a square where the later ones are masked.
    ("_scaled_dot_product_flash_attention", HEADS, ["", "", "", "0.0", "False"], 2 * 6 * 24 * 12),
    ("_scaled_dot_product_flash_attention", HEADS, ["", "", "", "0.0", "True"], 2 * 6 * 24 * 12),
    ("_scaled_dot_product_flash_attention", SQUARE, ["", "", "", "0.0", "True"], 6 * 36 * 12),
    ("mm", [[3, 5], [4, 7]], [], None),
    ("mm", [[2, 3, 5], [5, 7]], [], None),
    ("mm", [[3, 5]], [], None),
    ("mm", None, [], None),
    ("mm", [[-3, 5], [5, 7]], [], None),
    ("conv2d", CONV, None, None),
    ("relu", [[3, 5]], [], None),
]  # fmt: skip


def test_work_of_operators_follows_from_their_shapes() -> None:
    found = [
        (name, dims, values, flops_of(f"aten::{name}", dims, values))
        for name, dims, values, _ in WORK
    ]
    assert found == WORK


def test_a_core_has_its_own_caches_and_all_of_them_those_of_all() -> None:
    caches = (ReportedCache(1, 32, 4), ReportedCache(3, 1000, 2))
    machine = Machine("Chip", "", 4, 2**30, caches, "Linux")
    sizes = {
        table: reported_sizes(machine, SimpleNamespace(table=table))
        for table in ("one_core", "compute")
    }  # type: ignore[arg-type]
    assert sizes == {"one_core": {1: 32, 3: 1000}, "compute": {1: 128, 3: 2000}}


def test_each_ceiling_has_its_variant_and_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, int]] = []
    monkeypatch.setattr(RegisterChains, "rate", lambda _, *given: asked.append(given) or len(asked))
    found = RegisterChains(SimpleNamespace(), SimpleNamespace()).measure(7)  # type: ignore[arg-type]
    assert {f"ceilings.{precision}_{variant}" for variant, precision, _ in asked} == set(found)
    assert {precision for _, precision, _ in asked} == {"fp64", "fp32"}
    assert {samples for _, _, samples in asked} == {7}
    assert list(found.values()) == list(range(1, len(asked) + 1))


def test_a_table_with_work_says_which_work_it_is(tmp_path: Path) -> None:
    def noted(*work: str) -> list[str]:
        names = ("Name", "Self CPU", "CPU total", "# of Calls", *("Total FLOPs" for _ in work))
        cells = ("aten::mm", "10.000us", "10.000us", "2", *work)
        rows = ["  ".join(f"{each:>14}" for each in row) for row in (names, cells)]
        line = "  ".join("-" * 14 for _ in names)
        text = "\n".join((line, rows[0], line, rows[1], line, "Self CPU time total: 10.000us", ""))
        path = tmp_path / "table.txt"
        path.write_text(text, "utf-8")
        return [note for note in read_profile(path).notes if "the sum is what it counted" in note]

    assert len(noted("420")) == 1
    assert noted() == []


def test_a_reading_adds_what_ended_children_took(monkeypatch: pytest.MonkeyPatch) -> None:
    # User 2 + 5 and system 3 + 11, from either source.
    usage = {
        0: SimpleNamespace(ru_utime=2, ru_stime=3),
        1: SimpleNamespace(ru_utime=5, ru_stime=11),
    }
    unix = SimpleNamespace(RUSAGE_SELF=0, RUSAGE_CHILDREN=1, getrusage=usage.get)
    taken = SimpleNamespace(user=2, system=3, children_user=5, children_system=11)
    monkeypatch.setattr(stopwatch, "os", SimpleNamespace(times=lambda: taken))
    for source in (unix, None):
        monkeypatch.setattr(stopwatch, "resource", source)
        found = stopwatch.now()
        assert (found.user, found.system) == (7, 14), source


def test_an_event_without_a_number_of_its_device_is_of_the_first() -> None:
    assert [kineto._device(each) for each in ({}, {"device": "x"}, {"device": 3})] == [0, 0, 3]
