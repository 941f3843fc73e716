"""What a system says of its machine, read from files that stand in for /proc and /sys."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from mlsim.hardware.this_machine import linux_machine, mac_machine, this_machine

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Made  CPU @ 3.00GHz
flags\t\t: fpu hypervisor avx2
"""
TWO_MIB, MEMORY = 2 * 2**20, 16384000 * 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two cores with two threads each: caches of 48 KiB and 2 MiB for each core, 32 MiB for all."""

    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")

    write("proc/cpuinfo", CPUINFO)
    write("proc/meminfo", "MemTotal:       16384000 kB\nMemFree: 1 kB")
    write("sys/fs/cgroup/cpu.max", "max 100000")
    for cpu in range(4):
        base = f"sys/devices/system/cpu/cpu{cpu}"
        write(f"{base}/topology/physical_package_id", "0")
        write(f"{base}/topology/core_id", f"{cpu // 2}")
        pair = f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"
        for number, values in enumerate(
            (
                ("1", "Data", "48K", pair),
                ("1", "Instruction", "32K", pair),
                ("2", "Unified", "2M", pair),
                ("3", "Unified", "32768K", "0-3"),
                # What says no size or no level is no cache.
                ("4", "Unified", "", "0-3"),
                ("", "Unified", "5K", "0-3"),
            )
        ):
            names = ("level", "type", "size", "shared_cpu_list")
            for name, value in zip(names, values, strict=True):
                write(f"{base}/cache/index{number}/{name}", value)
    return tmp_path


def test_cores_are_physical_and_caches_are_counted(root: Path) -> None:
    machine = linux_machine(root, range(4))
    assert (machine.processor, machine.vendor) == ("Made CPU @ 3.00GHz", "GenuineIntel")
    assert (machine.cores, machine.memory, machine.virtual) == (2, MEMORY, True)
    assert machine.system.split()[::2] == [platform.system(), platform.machine()]
    assert [(each.level, each.size, each.total) for each in machine.caches] == [
        (1, 48 * 2**10, 96 * 2**10),
        (2, TWO_MIB, 2 * TWO_MIB),
        (3, 32 * 2**20, 32 * 2**20),
    ]
    assert machine.fingerprint == "made-cpu-3-00ghz-2-cores"
    # What may not be used does not count.
    part = linux_machine(root, [0, 1])
    assert (part.cores, part.caches[1].total) == (1, TWO_MIB)
    # Other processors go by other words, and some say nothing of virtual ones.
    (root / "proc/cpuinfo").write_text("Processor\t: Armed\nCPU implementer\t: 0x41\n")
    other = linux_machine(root, range(4))
    assert (other.processor, other.vendor, other.virtual) == ("Armed", "0x41", False)


def test_limits_of_a_container(root: Path) -> None:
    for quota, memory, found in (
        ("100000 100000", f"{2**30}", (1, 2**30)),
        ("900000 100000", f"{2**50}", (2, MEMORY)),
        ("max 100000", "max", (2, MEMORY)),
        ("200000 0", "max", (2, MEMORY)),
    ):
        (root / "sys/fs/cgroup/cpu.max").write_text(f"{quota}\n")
        (root / "sys/fs/cgroup/memory.max").write_text(f"{memory}\n")
        machine = linux_machine(root, range(4))
        assert (machine.cores, machine.memory) == found, (quota, memory)
    (root / "proc/meminfo").unlink()
    (root / "sys/fs/cgroup/memory.max").write_text(f"{3 * 2**30}\n")
    assert linux_machine(root, range(4)).memory == 3 * 2**30


def test_what_a_system_does_not_say_is_absent(tmp_path: Path) -> None:
    machine = linux_machine(tmp_path, [0, 1])
    assert (machine.cores, machine.memory, machine.caches) == (2, 0, ())
    assert (machine.vendor, machine.virtual) == ("unknown", False)
    silent = mac_machine(lambda _: "")
    assert silent.cores >= 1
    assert (silent.caches, silent.memory) == ((), 0)
    assert this_machine().fingerprint.endswith("-cores")


def test_each_system_is_asked_in_its_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("linux", "mac"):
        monkeypatch.setattr(f"mlsim.hardware.this_machine.{name}_machine", name.upper)
    for system, asked in (("darwin", "MAC"), ("linux", "LINUX"), ("win32", "LINUX")):
        monkeypatch.setattr("sys.platform", system)
        assert this_machine() == asked
    for processor, vendor in (("arm64", "Apple"), ("x86_64", "unknown")):
        monkeypatch.setattr("platform.machine", lambda processor=processor: processor)
        assert mac_machine(lambda _: "").vendor == vendor
    monkeypatch.setattr("platform.processor", str)
    for known, named in (("arm64", "arm64"), ("", "processor")):
        monkeypatch.setattr("platform.machine", lambda known=known: known)
        assert linux_machine(tmp_path, range(1)).processor == named


def test_a_mac_has_the_caches_of_its_fast_cores() -> None:
    """Ten cores, six of them fast: six L1, one L2 for each three, one L3 for all that says so."""
    said = {
        "hw.physicalcpu": "10",
        "hw.perflevel0.physicalcpu": "6",
        "hw.memsize": "7000",
        "hw.perflevel0.l1dcachesize": "100",
        "hw.l1dcachesize": "50",
        "hw.perflevel0.l2cachesize": "900",
        "hw.perflevel0.cpusperl2": "3",
        "hw.l3cachesize": "5000",
    }
    machine = mac_machine(lambda name: said.get(name, ""))
    assert (machine.cores, machine.memory) == (10, 7000)
    found = [(each.level, each.size, each.total) for each in machine.caches]
    assert found == [(1, 100, 600), (2, 900, 1800), (3, 5000, 5000)]
    assert machine.system.startswith("macOS ")
