"""Read what a profiler wrote: find out which one it was, and hand the file to its reader."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.profiling.measured_profile import MeasuredProfile
from mlsim.profiling.read.fixed import spans_of
from mlsim.profiling.read.sources import SQLITE, Source, open_source

Lines = Iterator[tuple[int, str, bool]]

_KNOWN = (
    "Known are: Nsight Compute (ncu --csv), Nsight Systems (nsys stats --format csv, or its "
    ".sqlite), a PyTorch trace (.json), key_averages().table(), rocprof and "
    "rocprofv3 CSV, perf stat. `mlsim profile-command` prints the command for each."
)
_METRIC = re.compile(r"[a-z0-9]+__[\w.]+")
# A header below more lines than these is not looked for.
_MOST_LINES = 500_000


def read_profile(path: str | Path, *, decimal: str | None = None) -> MeasuredProfile:
    r"""Read a profile, gzipped or not; the format is found out from what is in the file.

    Formats: Nsight Compute (CSV long, wide and summary, and its page), Nsight Systems CSV and
    SQLite, PyTorch traces and tables of `key_averages()`, rocprof, rocprofv3, `perf stat`.

    Parameters
    ----------
    path
        The file.
    decimal
        What parts the fraction of a number, "." or ","; found out from the file if left out.

    Returns
    -------
    MeasuredProfile
        Kernels with time in s, work in FLOP by data path and bytes by level; what the file does
        not hold is absent and says which metric would hold it.

    Raises
    ------
    DataFileError
        If the file is damaged, cut off, too large, binary or of no known format; says where and
        what to do.
    InvalidValueError
        If `path` is no path.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "stats.csv")
    >>> _ = file.write_text('"Name","Calls","TotalDurationNs"\n"saxpy",4,8000\n')
    >>> print(read_profile(file).time)
    8 µs
    """
    if not isinstance(path, (str, Path)):
        raise InvalidValueError(
            f"a profile is a file, given by its path as text or Path, not {path!r}."
        )
    source = open_source(path)
    if source.head.startswith(SQLITE):
        from mlsim.profiling.read import nsight_sqlite

        return nsight_sqlite.read(source)
    start = source.start.lstrip()
    if start[:1] in ("{", "[") and '"counter-value"' not in start:
        from mlsim.profiling.read import kineto

        if kineto.is_trace(start) and not _of_rocprof(start):
            return kineto.read(source)
    return _read_text(source, decimal)


def _read_text(source: Source, decimal: str | None) -> MeasuredProfile:
    """Look for the first line that a known table begins with."""
    lines = source.lines()
    before = ""
    for number, line, _ in lines:
        if number > _MOST_LINES:
            break
        found = _reader_of(source, number, line, lines, decimal)
        if found is not None:
            return found()
        if "Total Time" in before and spans_of(line):
            from mlsim.profiling.read import nsight_systems

            return nsight_systems.read_columns(source, number - 1, before, line, lines)
        before = line
    raise DataFileError(f"{source.path}: {_what(source.start)} {_KNOWN}")


def _of_rocprof(start: str) -> bool:
    """Whether JSON is what rocprof or rocprofv3 writes."""
    return "rocprofiler-sdk-tool" in start or ("traceEvents" in start and '"BeginNs"' in start)


def _what(start: str) -> str:
    """Say what a file is instead of a profile, as far as it shows."""
    lines = [line for line in start.splitlines() if line.strip()]
    if lines and all(_METRIC.fullmatch(line.strip()) for line in lines):
        return "this is a list of metrics without values: collect them with ncu --metrics."
    if "Command Line Profiler" in start:
        return "this is what ncu --version prints, and has no kernel."
    if "NVIDIA-SMI" in start or start.startswith(("# gpu", "timestamp, ", "index, ", "name, ")):
        return "this is a log of nvidia-smi, of which `read_nvidia_smi` makes readings."
    if _of_rocprof(start):
        return (
            "this is rocprof's trace for a browser. Give the table beside it: results.csv or "
            "results.stats.csv, with rocprofv3 what --output-format csv writes."
        )
    first = lines[0].strip() if lines else ""
    columns = first.split(",")
    if len(columns) > 2:
        return f"this table has the columns {', '.join(columns)[:120]}, and no profiler's."
    return f"this is no profile; it begins with {first[:60]!r}."


def _reader_of(
    source: Source, number: int, line: str, lines: Lines, decimal: str | None
) -> Callable[[], MeasuredProfile] | None:
    """Return what reads the table that begins at a line, if one does."""
    if "Performance counter stats for" in line:
        from mlsim.profiling.read import perf_stat

        return lambda: perf_stat.read(source, line, _numbered(lines), decimal)
    if "Name" in line and ("Self CPU" in line or "CPU total" in line) and "," not in line:
        from mlsim.profiling.read import key_averages

        return lambda: key_averages.read(source, number, line, lines)
    if line.startswith(" ") and "Context " in line:
        from mlsim.profiling.read import ncu_text

        if ncu_text.is_heading(line):
            return lambda: ncu_text.read(source, number, line, lines, decimal)
    if len(line) < 12 or not any(sign in line for sign in ",;\t|"):
        return None
    from mlsim.profiling.read import nsight_compute, nsight_systems, perf_stat, perf_text, rocprof
    from mlsim.profiling.read.tables import header_in

    if "Kernel" in line or "Function Name" in line or "Demangled" in line:
        table = header_in(source, number, line, nsight_compute.is_long)
        table = table or header_in(source, number, line, nsight_compute.is_wide)
        if table is not None:
            found = table
            return lambda: nsight_compute.read(source, found, lines, decimal)
    if "Time" in line or "Duration" in line or "Operation" in line:
        table = header_in(source, number, line, nsight_systems.is_report)
        if table is not None:
            report = table
            return lambda: nsight_systems.read(source, report, lines, decimal)
    table = header_in(source, number, line, rocprof.is_table)
    if table is not None:
        dispatches = table
        return lambda: rocprof.read(source, dispatches, lines, decimal)
    if perf_text.is_csv(line) or '"counter-value"' in line:
        both = itertools.chain([(number, line)], _numbered(lines))
        return lambda: perf_stat.read(source, "", both, decimal)
    return None


def _numbered(lines: Lines) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line, _ in lines)
