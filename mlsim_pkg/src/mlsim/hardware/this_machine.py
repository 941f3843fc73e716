"""The machine that runs this: its processor, cores, caches and memory, as the system reports them.

Nothing is measured here. What the system does not say is absent, not guessed.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "": 1}


@dataclass(frozen=True, slots=True)
class ReportedCache:
    """A level of cache for data: its size in B, and how many of them the usable cores have."""

    level: int
    size: int
    instances: int

    @property
    def total(self) -> int:
        """Bytes of all of them."""
        return self.size * self.instances


@dataclass(frozen=True, slots=True)
class Machine:
    """What a system says of itself.

    Attributes
    ----------
    processor, vendor
        Names, as the system prints them.
    cores
        Physical cores that this process may use: an affinity or a quota may leave fewer
        than there are.
    memory
        Main memory in B; 0 where the system does not say. A limit of a container counts.
    caches
        Levels of cache for data, the first one first; empty where the system does not say.
    system
        Kernel and kind of processor: "Linux 6.1 x86_64".
    virtual
        Whether the processor says that it is a guest's: others share it, unseen.
    """

    processor: str
    vendor: str
    cores: int
    memory: int
    caches: tuple[ReportedCache, ...]
    system: str
    virtual: bool = False

    @property
    def fingerprint(self) -> str:
        """A name for files that belong to this kind of machine.

        >>> Machine("AMD EPYC", "AMD", 2, 0, (), "Linux").fingerprint
        'amd-epyc-2-cores'
        """
        name = re.sub(r"[^a-z0-9]+", "-", self.processor.lower()).strip("-") or "processor"
        return f"{name}-{self.cores}-cores"


def this_machine() -> Machine:
    """Return what the system says of the machine that runs this.

    >>> this_machine().cores >= 1
    True
    """
    return mac_machine() if sys.platform == "darwin" else linux_machine()


def linux_machine(root: Path = Path("/"), usable: Iterable[int] | None = None) -> Machine:
    """Read /proc and /sys; on other systems than Linux most of it is absent.

    Parameters
    ----------
    root
        Where `proc` and `sys` lie.
    usable
        Numbers of the processors that may be used; those of this process by default.
    """
    info = _text(root / "proc/cpuinfo")
    own = sorted(usable) if usable is not None else _usable()
    topology = [root / f"sys/devices/system/cpu/cpu{each}" for each in own]
    physical = {
        (_text(each / "topology/physical_package_id"), _text(each / "topology/core_id"))
        for each in topology
    }
    known = bool(_text(topology[0] / "topology/core_id")) if topology else False
    cores = len(physical) if known else len(own)
    quota = _quota(_text(root / "sys/fs/cgroup/cpu.max"))
    return Machine(
        processor=_field(info, "model name", "Processor", "cpu model") or _other_name(),
        vendor=_field(info, "vendor_id", "CPU implementer") or "unknown",
        cores=max(1, min(cores, quota or cores)),
        memory=_memory(root),
        caches=_caches(topology),
        system=f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        virtual="hypervisor" in _field(info, "flags").split(),
    )


def _usable() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _other_name() -> str:
    return platform.processor() or platform.machine() or "processor"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _field(info: str, *names: str) -> str:
    for name in names:
        found = re.search(rf"^{re.escape(name)}\s*:\s*(.+)$", info, re.MULTILINE)
        if found:
            return " ".join(found[1].split())
    return ""


def _quota(line: str) -> int:
    """Return how many whole cores a container may use; 0 for no limit.

    >>> _quota("150000 100000"), _quota("max 100000"), _quota("50000 100000")
    (1, 0, 1)
    """
    words = line.split()
    if len(words) != 2 or not all(each.isdigit() for each in words) or int(words[1]) == 0:
        return 0
    return max(1, int(words[0]) // int(words[1]))


def _memory(root: Path) -> int:
    found = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    total = int(found[1]) * 2**10 if found else 0
    limit = _text(root / "sys/fs/cgroup/memory.max")
    return min(total or int(limit), int(limit)) if limit.isdigit() else total


def _caches(processors: list[Path]) -> tuple[ReportedCache, ...]:
    sizes: dict[int, int] = {}
    sharers: dict[int, set[str]] = {}
    for processor in processors:
        for index in sorted((processor / "cache").glob("index*")):
            size = re.fullmatch(r"(\d+)([KMG]?)", _text(index / "size"))
            level = _text(index / "level")
            if _text(index / "type") == "Instruction" or not size or not level.isdigit():
                continue
            sizes[int(level)] = int(size[1]) * _UNITS[size[2]]
            sharers.setdefault(int(level), set()).add(
                _text(index / "shared_cpu_list") or processor.name
            )
    return tuple(ReportedCache(level, sizes[level], len(sharers[level])) for level in sorted(sizes))


def _sysctl(name: str) -> str:
    try:
        done = subprocess.run(
            ["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def mac_machine(ask: Callable[[str], str] = _sysctl) -> Machine:
    """Ask macOS; of processors with two kinds of cores, the caches are those of the fast ones.

    >>> said = {"machdep.cpu.brand_string": "Apple M2", "hw.physicalcpu": "8",
    ...         "hw.memsize": "17179869184", "hw.perflevel0.physicalcpu": "4",
    ...         "hw.perflevel0.l1dcachesize": "131072", "hw.perflevel0.l2cachesize": "16777216",
    ...         "hw.perflevel0.cpusperl2": "4"}
    >>> machine = mac_machine(lambda name: said.get(name, ""))
    >>> machine.processor, machine.cores, [cache.total for cache in machine.caches]
    ('Apple M2', 8, [524288, 16777216])
    """

    def count(*names: str) -> int:
        return next((int(each) for each in map(ask, names) if each.isdigit()), 0)

    cores = count("hw.physicalcpu") or os.cpu_count() or 1
    fast = count("hw.perflevel0.physicalcpu") or cores
    found = []
    for level, kind in ((1, "l1dcachesize"), (2, "l2cachesize"), (3, "l3cachesize")):
        size = count(f"hw.perflevel0.{kind}", f"hw.{kind}")
        shared = 1 if level == 1 else count(f"hw.perflevel0.cpusperl{level}") or fast
        if size:
            found.append(ReportedCache(level, size, max(1, fast // shared)))
    return Machine(
        processor=ask("machdep.cpu.brand_string") or _other_name(),
        vendor="Apple" if platform.machine() == "arm64" else "unknown",
        cores=cores,
        memory=count("hw.memsize"),
        caches=tuple(found),
        system=f"macOS {platform.release()} {platform.machine()}",
    )
