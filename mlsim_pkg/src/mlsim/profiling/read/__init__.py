"""Read what a profiler wrote: find out which one it was, and hand the file to its reader."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from mlsim.errors import DataFileError, InvalidValueError, unknown_name
from mlsim.profiling.measured_profile import MeasuredProfile
from mlsim.profiling.read.tables import (
    FOLDER,
    SQLITE,
    Lines,
    Source,
    header_in,
    open_source,
)

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

    Formats: Nsight Compute (CSV long and wide), summaries of Nsight Systems and its
    SQLite, PyTorch's traces and tables of `key_averages()`, rocprof, rocprofv3, `perf stat`.

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
    from mlsim.profiling.read import kineto, nsight_systems

    source = open_source(path)
    if source.head.startswith(SQLITE):
        return nsight_systems.read_export(source)
    start = source.start.lstrip()
    if kineto.is_trace(start) and not _of_rocprof(start):
        return kineto.read(source)
    lines = source.lines()
    for number, line, _ in lines:
        if number > _MOST_LINES:
            break
        read = _reader_of(source, number, line, lines, decimal)
        if read is not None:
            return read()
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
    if '"Invocations"' in start:
        return "this is a summary of Nsight Compute: write each launch, without --print-summary."
    if "==PROF==" in start and "Metric Name" in start:
        return "this is a page of Nsight Compute for people: write a table, by ncu --csv."
    if "NVIDIA-SMI" in start or start.startswith(("# gpu", "timestamp, ", "index, ", "name, ")):
        return (
            "this is of nvidia-smi. `read_nvidia_smi`, or mlsim profile with this file alone, "
            "reads a log of nvidia-smi --query-gpu=... --format=csv."
        )
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
    from mlsim.profiling.read import nsight_compute, nsight_systems, operators, perf_stat, rocprof

    if "Performance counter stats for" in line:
        numbered = ((at, text) for at, text, _ in lines)
        return lambda: perf_stat.read(source, line, numbered, decimal)
    if "Name" in line and ("Self CPU" in line or "CPU total" in line) and "," not in line:
        return lambda: operators.read_table(source, number, line, lines)
    if len(line) < 12 or not any(sign in line for sign in ",;\t|"):
        return None
    # Words of which a header has one, what knows the columns, and what reads the rows.
    for words, known, read in (
        (("Kernel", "Function Name", "Demangled"), nsight_compute.is_table, nsight_compute.read),
        (("Time", "Duration", "Operation"), nsight_systems.is_report, nsight_systems.read),
        (("",), rocprof.is_table, rocprof.read),
    ):
        if any(word in line for word in words):
            table = header_in(source, number, line, known)
            if table is not None:
                return partial(read, table, lines, decimal)
    if perf_stat.is_table(line):
        perf_stat.parse([(number, line)], str(source.path))
    return None


@dataclass(frozen=True, slots=True)
class SampleProfile:
    """A profile of somebody's run.

    Attributes
    ----------
    name, path, what
        Its name here, its file, and what ran.
    source, license, read
        Key of the bibliography, under which terms it is here, and when it was read.
    """

    name: str
    path: Path
    what: str
    source: str
    license: str
    read: datetime.date


@cache
def sample_profiles() -> dict[str, SampleProfile]:
    """Return all profiles that come with the package, by name.

    >>> sample_profiles()["vllm_a100_graphs"].path.name
    'vllm_a100_graphs.csv'
    """
    with (FOLDER / "samples.toml").open("rb") as file:
        listed = tomllib.load(file)
    return {
        name: SampleProfile(name, FOLDER / entry.pop("file"), **entry)
        for name, entry in listed.items()
    }


def sample_profile(name: str) -> Path:
    """Return the path of a profile that comes with the package, for `read_profile`.

    Raises
    ------
    UnknownNameError
        If there is none of that name.

    >>> from mlsim.profiling import read_profile
    >>> graphs = read_profile(sample_profile("vllm_a100_graphs"))
    >>> [round(kernel.intensity.magnitude, 2) for kernel in graphs.kernels]
    [26.94, 48.29, 93.07]
    """
    if name not in sample_profiles():
        raise unknown_name("sample profile", name, sample_profiles())
    return sample_profiles()[name].path
