"""What `perf stat` prints of a program: events, times, and what follows from them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.numbers import Locale, find_locale
from mlsim.profiling.read.sources import Source

_NUMBER = r"(?:\d[\d.,   '’]*\d|\d|<not (?:supported|counted)>)"
_EVENT = re.compile(
    rf"^\s*(?P<value>{_NUMBER})\s+(?:(?P<unit>msec|ns|MiB|Bytes|Joules|KiB|GiB)\s+)?"
    r"(?P<event>\S+)(?P<rest>.*)$"
)
_ELAPSED = re.compile(
    rf"^\s*(?P<value>{_NUMBER})\s*(?:\+-\s*[\d.,]+\s*)?seconds (?P<what>time elapsed|user|sys)"
)
_PART = re.compile(r"\(\s*(?P<share>\d+[.,]\d+)%\)\s*$")
_FOR = re.compile(r"Performance counter stats for '?(?P<name>.*?)'?(?:\s*\((?P<runs>\d+) runs\))?:")
_SCALES = {"MiB": 2**20, "KiB": 2**10, "GiB": 2**30, "Bytes": 1, "msec": 1e-3, "ns": 1e-9}
# Operations of one event. Intel counts a fused multiply-add as two.
_INTEL = {
    "scalar_single": ("fp32", 1),
    "128b_packed_single": ("fp32", 4),
    "256b_packed_single": ("fp32", 8),
    "512b_packed_single": ("fp32", 16),
    "scalar_double": ("fp64", 1),
    "128b_packed_double": ("fp64", 2),
    "256b_packed_double": ("fp64", 4),
    "512b_packed_double": ("fp64", 8),
}
INTEL_EVENTS = tuple(f"fp_arith_inst_retired.{each}" for each in _INTEL)
_LINE = 64
_NAME = re.compile(r"[A-Za-z_][\w.:/=,\-]*")
_ARITHMETIC = re.compile(r"packed|scalar|arith|^fp_|_inst_retired\.")
_KNOWN_WORK = re.compile(r"fp_ret_sse_avx_ops\.all|fp_ops_retired_by_type\.vector_all|fp_assist")
# What perf prints between the events.
_BESIDE = ("#", "Topdown", "Some events", "echo ", "perf stat", "(", "<not", "sudo ")
_MISSING = (
    "no event of operations is in the file. On Intel add -e {}, on AMD -e fp_ret_sse_avx_ops.all"
).format(",".join(INTEL_EVENTS))


def read(
    source: Source, header: str, lines: Iterator[tuple[int, str, bool]], decimal: str | None
) -> MeasuredProfile:
    """Read the text of `perf stat`.

    Raises
    ------
    DataFileError
        If a number can't be read, or the text is cut off before the time.
    """
    found: list[tuple[int, str, str, str, str]] = []
    times: dict[str, tuple[int, str]] = {}
    for number, line, _ in lines:
        if _FOR.search(line):
            raise DataFileError(
                f"{source.path}:{number}: a second program begins. Keep each in a file of its own."
            )
        if any(letter < " " and letter != "\t" for letter in line):
            raise DataFileError(
                f"{source.path}:{number}: the line holds a control character: the file is damaged."
            )
        if elapsed := _ELAPSED.match(line):
            times[elapsed["what"]] = (number, elapsed["value"])
        elif event := _EVENT.match(line):
            _check_event(source, number, event["event"])
            part = _PART.search(event["rest"])
            share = part[1] if part else ""
            found.append((number, event["event"], event["value"], event["unit"] or "", share))
        elif not times and line.strip() and not line.strip().startswith(_BESIDE):
            raise DataFileError(
                f"{source.path}:{number}: {line.strip()[:40]!r} is no line of perf stat. The file "
                "is damaged, or holds other output: write it by perf stat -o FILE."
            )
    named = _FOR.search(header)
    texts = [value for _, _, value, _, _ in found] + [value for _, value in times.values()]
    locale = find_locale(texts, str(source.path), decimal=decimal)
    counters = _counters(source, found, locale)
    if "time elapsed" not in times:
        raise DataFileError(
            f"{source.path}: there is no line 'seconds time elapsed', so the text is cut off. "
            "Write it again: perf stat -o FILE COMMAND"
        )
    for what, (number, text) in times.items():
        counters[what] = _value(source, number, text, locale) or 0.0
    shared = [float(part.replace(",", ".")) for *_, part in found if part]
    return _profile(
        source, named["name"] if named else "program", counters, min(shared, default=100)
    )


def _check_event(source: Source, number: int, event: str) -> None:
    """Refuse an event whose name is damaged, or may be one of operations that is not known."""
    kind = event.lower().split("fp_arith_inst_retired.")[-1].split(":")[0].rstrip("/")
    arithmetic = _ARITHMETIC.search(event.lower()) and not _KNOWN_WORK.match(event.lower())
    known = "fp_arith_inst_retired." in event.lower() and kind in _INTEL
    if not _NAME.fullmatch(event) or (arithmetic and not known):
        raise DataFileError(
            f"{source.path}:{number}: the event {event!r} is damaged, or counts operations in a "
            "way that is not known here. Known are fp_arith_inst_retired.* and "
            "fp_ret_sse_avx_ops.all."
        )


def is_csv(line: str) -> bool:
    """Whether a line is one of `perf stat -x,`."""
    parts = line.split(",")
    return len(parts) in range(5, 9) and bool(
        re.fullmatch(r"\d+(\.\d+)?|<not (supported|counted)>", parts[0])
        and re.fullmatch(r"[a-z][\w.:/\-]*[a-z/]", parts[2])
        and re.fullmatch(r"\d+", parts[3])
    )


def read_csv(
    source: Source,
    number: int,
    line: str,
    lines: Iterator[tuple[int, str, bool]],
    decimal: str | None,
) -> MeasuredProfile:
    """Read the lines of `perf stat -x,`.

    Raises
    ------
    DataFileError
        If a line is broken.
    """
    found, shares = [], []
    all_lines = [(number, line), *((place, text) for place, text, _ in lines)]
    for place, text in all_lines:
        if not text.strip() or text.startswith("#"):
            continue
        if not is_csv(text):
            raise DataFileError(f"{source.path}:{place}: this is no line of perf stat -x,.")
        parts = text.split(",")
        found.append((place, parts[2], parts[0], parts[1], ""))
        if parts[4].replace(".", "").isdigit():
            shares.append(float(parts[4]))
    counters = _counters(source, found, Locale("", "."))
    if "duration_time" in counters:
        counters["time elapsed"] = counters["duration_time"] * 1e-9
    return _profile(source, "program", counters, min(shares, default=100.0))


def _value(source: Source, number: int, text: str, locale: Locale) -> float | None:
    try:
        return locale.number(text)
    except InvalidValueError as error:
        raise DataFileError(f"{source.path}:{number}: {error}. The file may be damaged.") from error


def _counters(
    source: Source, found: list[tuple[int, str, str, str, str]], locale: Locale
) -> dict[str, float]:
    counters: dict[str, float] = {}
    for number, event, text, unit, _ in found:
        value = _value(source, number, text, locale)
        if value is None:
            continue
        # "26.55 task-clock (msec)" has its unit behind the name.
        clock = event.startswith(("task-clock", "cpu-clock"))
        scale = _SCALES.get("msec" if clock else unit, 1)
        counters[event] = counters.get(event, 0.0) + value * scale
    if not counters:
        raise DataFileError(f"{source.path}: perf stat counted no event. Allow it: see man perf.")
    return counters


def _event(counters: dict[str, float], *names: str) -> float | None:
    """Return an event, with or without its modifiers (cycles:u, cpu_core/cycles/)."""
    for name in names:
        for event, value in counters.items():
            plain = re.sub(r"^cpu(_core)?/|/.*$", "", event.split(":")[0])
            if plain == name:
                return value
    return None


def _profile(
    source: Source, name: str, counters: dict[str, float], share: float
) -> MeasuredProfile:
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
    seconds = counters.get("time elapsed")
    if seconds is None:
        missing["seconds"] = "the time elapsed is not in the file; add -e duration_time"
    else:
        sources["seconds"] = "seconds time elapsed"
    cycles = _event(counters, "cycles", "cpu-cycles", "cpu_cycles")
    instructions = _event(counters, "instructions")
    facts: dict[str, float] = {}
    if cycles and instructions:
        facts = {"ipc": instructions / cycles, "cpi": cycles / instructions}
    whole = MeasuredKernel(
        name, 1, seconds, operations, traffic, sources, missing, facts, "program"
    )
    notes = []
    if share < 100:
        notes.append(
            f"Some events were counted {share:g} % of the time and scaled up by perf: estimates."
        )
    return MeasuredProfile(
        (whole,), "perf stat", (str(source.path),), counters=counters, notes=tuple(notes)
    )


def _operations(counters: dict[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    operations: dict[str, float] = {}
    sources: dict[str, str] = {}
    for event, value in counters.items():
        kind = event.lower().split("fp_arith_inst_retired.")[-1].split(":")[0].rstrip("/")
        if "fp_arith_inst_retired." in event.lower() and kind in _INTEL:
            path, times = _INTEL[kind]
            operations[path] = operations.get(path, 0.0) + value * times
            sources[path] = "fp_arith_inst_retired.* times its width"
        elif _KNOWN_WORK.match(event) and "assist" not in event:
            operations["any"] = operations.get("any", 0.0) + value
            sources["any"] = event
    return operations, sources


def _memory(counters: dict[str, float]) -> tuple[float, str] | None:
    reads = {e: v for e, v in counters.items() if re.search(r"data_reads?|cas_count[._]re?a?d", e)}
    writes = {e: v for e, v in counters.items() if re.search(r"data_writes?|cas_count[._]wr", e)}
    if not reads or not writes:
        return None
    total = 0.0
    for event, value in (reads | writes).items():
        # perf scales the events of the package to bytes; plain counts are lines of a cache.
        total += value * (_LINE if event.lower().startswith("unc_") else 1)
    return total, " + ".join(reads | writes)
