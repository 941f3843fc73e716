"""What a system says of its machine, read from files that stand in for /proc and /sys."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim.hardware.this_machine import linux_machine, mac_machine, this_machine

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Made  CPU @ 3.00GHz
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two cores with two threads each: caches of 48 KiB and 2 MiB for each core, 32 MiB for all."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(CPUINFO)
    (tmp_path / "proc/meminfo").write_text("MemTotal:       16384000 kB\nMemFree: 1 kB\n")
    for cpu in range(4):
        base = tmp_path / f"sys/devices/system/cpu/cpu{cpu}"
        (base / "topology").mkdir(parents=True)
        (base / "topology/physical_package_id").write_text("0\n")
        (base / "topology/core_id").write_text(f"{cpu // 2}\n")
        pair = f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"
        for number, (level, kind, size, shared) in enumerate(
            [(1, "Data", "48K", pair), (1, "Instruction", "32K", pair), (2, "Unified", "2M", pair),
             (3, "Unified", "32768K", "0-3")]
        ):  # fmt: skip
            index = base / f"cache/index{number}"
            index.mkdir(parents=True)
            for name, value in (("level", level), ("type", kind), ("size", size)):
                (index / name).write_text(f"{value}\n")
            (index / "shared_cpu_list").write_text(f"{shared}\n")
    return tmp_path


def test_cores_are_physical_and_caches_are_counted(root: Path) -> None:
    machine = linux_machine(root, range(4))
    assert machine.processor == "Made CPU @ 3.00GHz"
    assert (machine.cores, machine.memory) == (2, 16384000 * 1024)
    assert [(each.level, each.size, each.total) for each in machine.caches] == [
        (1, 48 * 2**10, 96 * 2**10),
        (2, 2 * 2**20, 4 * 2**20),
        (3, 32 * 2**20, 32 * 2**20),
    ]
    assert machine.fingerprint == "made-cpu-3-00ghz-2-cores"


def test_what_may_not_be_used_does_not_count(root: Path) -> None:
    machine = linux_machine(root, [0, 1])
    assert machine.cores == 1
    assert machine.caches[1].total == 2 * 2**20


def test_limits_of_a_container(root: Path) -> None:
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/cpu.max").write_text("100000 100000\n")
    (root / "sys/fs/cgroup/memory.max").write_text(f"{2**30}\n")
    machine = linux_machine(root, range(4))
    assert (machine.cores, machine.memory) == (1, 2**30)
    (root / "sys/fs/cgroup/cpu.max").write_text("max 100000\n")
    (root / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert linux_machine(root, range(4)).memory == 16384000 * 1024


def test_what_a_system_does_not_say_is_absent(tmp_path: Path) -> None:
    machine = linux_machine(tmp_path, [0, 1])
    assert (machine.cores, machine.memory, machine.caches) == (2, 0, ())


def test_a_mac_that_says_nothing() -> None:
    machine = mac_machine(lambda _: "")
    assert machine.cores >= 1
    assert machine.caches == ()


def test_this_one() -> None:
    assert this_machine().fingerprint.endswith("-cores")
