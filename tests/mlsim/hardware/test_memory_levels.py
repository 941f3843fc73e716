"""Levels of memory, energies and machines of the past: orders that physics sets, and refusals."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from mlsim import Hardware
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.hardware.memory_levels import FOLDER, energy, level, levels, load, past
from mlsim.records.references import references

ALL = [entry for path in sorted(FOLDER.glob("*.toml")) for entry in load(path).values()]


def test_latency_grows_with_the_distance() -> None:
    for path in (
        ("h100_shared", "h100_l1", "h100_l2", "h100_hbm"),
        ("cpu_l1", "cpu_l2", "cpu_l3", "cpu_dram", "cpu_ssd", "cpu_disk"),
    ):
        for near, far in pairwise(path):
            assert level(near)["latency"].si < level(far)["latency"].si, (near, far)


def test_an_h100_waits_38_cycles_of_1980_megahertz_for_its_l1() -> None:
    assert level("h100_l1")["latency"].si == pytest.approx(38 / 1.98e9, rel=1e-3)
    assert level("h100_hbm")["latency"].si == pytest.approx(834.476 / 1.98e9, rel=1e-3)


def test_a_gpu_has_more_registers_than_cache_and_a_cpu_fewer() -> None:
    """65,536 registers of 4 B on each of 82 multiprocessors are 20.5 MiB; L2 has 6."""
    assert level("rtx3090_registers")["capacity"].si == 82 * 65536 * 4
    for card in ("rtx3090", "h100"):
        assert level(f"{card}_registers")["capacity"].si > level(f"{card}_shared")["capacity"].si
    assert level("rtx3090_registers")["capacity"].si > level("rtx3090_l2")["capacity"].si
    sizes = [entry["capacity"].si for entry in levels(machine="AMD Ryzen 9 5950X")]
    assert sizes == sorted(sizes)


def test_levels_agree_with_the_zoo() -> None:
    """Of the L2 that a lecture takes for 24 GB, and of the bandwidths of datasheets."""
    for key in ("rtx3090_l2", "h100_l2"):
        entry = level(key)
        assert entry["capacity"].si == Hardware.get(entry.device).figures["memory.l2"].si
    hbm = level("h100_hbm")
    assert 0.7 < hbm["bandwidth"].si / Hardware.get(hbm.device).bandwidth_si < 1
    assert hbm["bandwidth"].si < level("h100_l2")["bandwidth"].si


def test_every_figure_is_quoted_and_sourced() -> None:
    odd = [
        (entry.key, name)
        for entry in ALL
        for name, figure in entry.figures.items()
        if figure.source not in references()
        or not 0 < len(figure.quote.split()) <= 15
        or (figure.kind == "estimate" and not figure.note.startswith("An estimate"))
    ]
    assert odd == []


def test_what_is_not_on_record_is_named() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'h100_l2'"):
        level("h100_l3")
    assert ("latency" in level("h100_l2"), "latency" in level("h100_registers")) == (True, False)
    with pytest.raises(UnknownNameError, match="latency"):
        level("h100_registers")["latency"]
    with pytest.raises(UnknownNameError, match="NVIDIA H100"):
        levels(machine="NVIDIA H1000")
    with pytest.raises(UnknownNameError, match="multiply_fp32"):
        energy("multiply_fp3")
    with pytest.raises(UnknownNameError, match="eniac"):
        past("enaic")


GOOD = """
[x]
machine = "M"
name = "L1"

[x.latency]
value = 1.5
unit = "ns"
kind = "secondary"
source = "zhangd2l"
where = "a table"
quote = "1.5 ns"
read = 2026-11-22
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "L1"\n', "", r":2: x\.name is missing"),
        ("latency]", "latencey]", r":6: unknown key 'latencey'. Did you mean 'latency'"),
        ('unit = "ns"', 'unit = "GB"', r":8: x\.latency: a value in GB"),
    ],
)
def test_a_bad_file_names_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "levels.toml"
    path.write_text(GOOD, encoding="utf-8")
    assert load(path)["x"]["latency"].si == pytest.approx(1.5e-9)
    bad = tmp_path / "bad.toml"
    bad.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(DataFileError, match=says):
        load(bad)
