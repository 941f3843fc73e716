"""Counters of `perf stat` as a profile of one program: its work, bytes and time."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mlsim.errors import DataFileError
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile
from mlsim.profiling.perf_stat import LINE, PerfStat
from mlsim.profiling.read.perf_text import INTEL_EVENTS, KNOWN_WORK, PROGRAM, Lines, parse
from mlsim.profiling.read.sources import Source

_MISSING = (
    "no event of operations is in the file. On Intel add -e {}, on AMD -e fp_ret_sse_avx_ops.all"
).format(",".join(INTEL_EVENTS))


def read(source: Source, header: str, lines: Lines, decimal: str | None) -> MeasuredProfile:
    """Read what `perf stat` printed as a profile of one program.

    Parameters
    ----------
    header
        The line with the program's name, which text begins with; "" for -x and --json.

    Raises
    ------
    DataFileError
        If a number can't be read, or the text is cut off before the time.
    """
    found = parse(lines, str(source.path), decimal=decimal)
    if header and found.elapsed is None:
        raise DataFileError(
            f"{source.path}: there is no line 'seconds time elapsed', so the text is cut off. "
            "Write it again: perf stat -o FILE COMMAND"
        )
    named = PROGRAM.search(header)
    return _profile(source, named["name"] if named else "program", found)


def _profile(source: Source, name: str, found: PerfStat) -> MeasuredProfile:
    """Return the counters as a profile with one kernel, which is the program."""
    counters = {
        event: each.value for event, each in found.counters.items() if each.value is not None
    }
    if not counters:
        raise DataFileError(f"{source.path}: perf stat counted no event. Allow it: see man perf.")
    times = {"time elapsed": found.elapsed, "user": found.user, "sys": found.system}
    counters |= {what: value for what, value in times.items() if value is not None}
    operations, sources = _operations(counters)
    missing = {} if operations else {"flops": _MISSING}
    traffic = {}
    memory = _memory(counters)
    if memory is None:
        missing["dram"] = (
            "no event of main memory is in the file. On Intel add -e uncore_imc/data_reads/,"
            "uncore_imc/data_writes/ (or unc_m_cas_count.rd, .wr) with -a"
        )
    else:
        traffic["dram"], sources["dram"] = memory
    if found.elapsed is None:
        missing["seconds"] = "the time elapsed is not in the file; add -e duration_time"
    else:
        sources["seconds"] = "seconds time elapsed"
    facts: dict[str, float] = {}
    if counters.get("cycles") and counters.get("instructions"):
        facts = {"ipc": found.ipc, "cpi": found.cpi}
    whole = MeasuredKernel(
        name, 1, found.elapsed, operations, traffic, sources, missing, facts, "program"
    )
    notes: tuple[str, ...] = ()
    if found.scaled:
        share = 100 * min(found.counters[event].share for event in found.scaled)
        notes = (
            f"Some events were counted {share:g} % of the time and scaled up by perf: estimates.",
        )
    notes += tuple(f"{each}." for each in found.words())
    files = (str(source.path),)
    return MeasuredProfile((whole,), "perf stat", files, counters=counters, notes=notes)


def _operations(counters: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    operations: dict[str, float] = {}
    sources: dict[str, str] = {}
    for event, value in counters.items():
        if event.lower() in INTEL_EVENTS:
            path, times = INTEL_EVENTS[event.lower()]
            operations[path] = operations.get(path, 0.0) + value * times
            sources[path] = "fp_arith_inst_retired.* times its width"
        elif KNOWN_WORK.match(event) and "assist" not in event:
            operations["any"] = operations.get("any", 0.0) + value
            sources["any"] = event
    return operations, sources


def _memory(counters: Mapping[str, float]) -> tuple[float, str] | None:
    reads = {e: v for e, v in counters.items() if re.search(r"data_reads?|cas_count[._]re?a?d", e)}
    writes = {e: v for e, v in counters.items() if re.search(r"data_writes?|cas_count[._]wr", e)}
    if not reads or not writes:
        return None
    total = 0.0
    for event, value in (reads | writes).items():
        # perf scales the events of the package to bytes; plain counts are lines of a cache.
        total += value * (LINE if event.lower().startswith("unc_") else 1)
    return total, " + ".join(reads | writes)
