"""The table of `prof.key_averages().table()`: operators with times, memory and work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from mlsim.errors import DataFileError
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.fixed import rows_in, spans_of
from mlsim.profiling.read.intervals import is_exchange
from mlsim.profiling.read.sources import Source

_TIME = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ns|us|μs|µs|ms|s)")
_SCALES = {"ns": 1e-9, "us": 1e-6, "μs": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_TOTAL = re.compile(r"Self (?P<device>\w+) time total:\s*(?P<time>\S+)")
_FLOPS = re.compile(r"Total ([KMGTP]?)FLOPs?$", re.IGNORECASE)
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_DEVICES = ("CUDA", "XPU", "MTIA", "PrivateUse1", "HPU", "NPU")
_ANOTHER = "Another table stands below the first one in the file; the first is read."
_LITTLE = "PyTorch counts operations of mm, addmm, bmm, baddbmm, conv2d, add and mul alone"


def seconds_of(text: str) -> float | None:
    """Return a time of the table in s; None if it is none.

    >>> seconds_of("55.798ms"), seconds_of("--")
    (0.055798, None)
    """
    found = _TIME.fullmatch(text.strip())
    return float(found["number"]) * _SCALES[found["unit"]] if found else None


def read(
    source: Source, number: int, header: str, lines: Iterator[tuple[int, str, bool]]
) -> MeasuredProfile:
    """Read a table.

    Raises
    ------
    DataFileError
        If a row does not fit the columns, or the table does not end.
    """
    spans = spans_of(next(((line) for _, line, _ in lines), ""))
    if not spans:
        raise DataFileError(f"{source.path}:{number + 1}: below the header there must be dashes.")
    names = _names(header, spans)
    rows = []
    for line, cells, text in rows_in(lines, spans):
        if cells is None:
            raise DataFileError(
                f"{source.path}:{line}: the row does not fit the columns: {text.strip()[:60]!r}."
            )
        rows.append(_Cells(dict(zip(names, cells, strict=True)), f"{source.path}:{line}"))
    totals: dict[str, float | None] = {}
    another = False
    for _, below, _ in lines:
        found = _TOTAL.search(below)
        if found:
            totals[found["device"]] = seconds_of(found["time"])
        # The next table has totals of its own.
        another = another or (not found and "Self CPU" in below and "Name" in below)
        if another:
            break
    if not rows or not totals:
        raise DataFileError(
            f"{source.path}: the table has no {'rows' if not rows else 'line of totals below it'}; "
            "it is cut off. Print it again: print(prof.key_averages().table())"
        )
    profile = _profile(source, names, rows, totals)
    notes = (*profile.notes, _ANOTHER) if another else profile.notes
    return replace(profile, notes=notes)


def _names(header: str, spans: list[tuple[int, int]]) -> list[str]:
    """Return the names of the columns: two spaces part them, and a long one shifts the rest.

    "CUDA time avg" is longer than its column, so what follows stands one place to the right of
    its own.
    """
    names = re.split(r" {2,}", header.strip())
    if len(names) == len(spans):
        return names
    return [header[start:end].strip() for start, end in spans]


class _Cells:
    """One row of the table."""

    def __init__(self, cells: dict[str, str], where: str) -> None:
        self.cells, self.where = cells, where

    def time(self, *names: str) -> float | None:
        """Return the first of these columns as a time; refuse what is none."""
        for name in names:
            if name in self.cells:
                found = seconds_of(self.cells[name])
                if found is None and self.cells[name] not in ("--", ""):
                    raise DataFileError(
                        f"{self.where}: {name} is {self.cells[name]!r}, which is no time."
                    )
                return found
        return None

    def flops(self, column: str, scale: float) -> float | None:
        """Return the work of the row; None if PyTorch did not count it."""
        text = self.cells.get(column, "--").replace(",", "")
        if text in ("--", ""):
            return None
        try:
            return float(text) * scale
        except ValueError:
            raise DataFileError(f"{self.where}: {column} is {text!r}, no number.") from None

    def calls(self) -> int:
        """Return how often it ran."""
        text = self.cells.get("# of Calls", "").replace(",", "")
        if not text.isdigit():
            raise DataFileError(f"{self.where}: # of Calls is {text!r}, no whole number.")
        return int(text)


def _profile(
    source: Source, names: list[str], rows: list[_Cells], totals: dict[str, float | None]
) -> MeasuredProfile:
    device = next((each for each in _DEVICES if f"Self {each}" in names), "CPU")
    column = next((name for name in names if _FLOPS.match(name)), "")
    matched = _FLOPS.match(column)
    scale = _PREFIX[matched[1].upper()] if matched else 1.0
    kernels, operators, work, counted = [], [], 0.0, False
    for row in rows:
        flops = row.flops(column, scale) if column else None
        own, through = row.time(f"Self {device}"), row.time(f"{device} total")
        host = row.time("CPU total", "CPU time total")
        launched = device != "CPU" and not host
        kernels += [_kernel(row, own, device)] if own and (launched or device == "CPU") else []
        if not launched:
            operators.append(_operator(row, through if flops is not None else own, flops, device))
            counted = counted or flops is not None
            work += flops or 0.0
    if device != "CPU" and not kernels:
        kernels = [each for each in operators if each.seconds]
    order = sorted(kernels, key=lambda each: -(each.seconds or 0.0))
    total = totals.get(device)
    whole_table = _is_whole(rows, f"Self {device}", total)
    missing = {"dram": "the table counts no bytes of memory traffic"}
    if not counted:
        missing["flops"] = "the table has no work. Profile with with_flops=True"
    elif not whole_table:
        missing["flops"] = (
            "the rows don't add up to the total, so some are left out, and their work. Print all: "
            "table(row_limit=-1)"
        )
    if total is None:
        missing["seconds"] = f"the line of totals does not say the time on {device}"
    whole = MeasuredKernel(
        "the whole run",
        1,
        total,
        {"any": work} if counted else {},
        sources={"seconds": f"Self {device} time total", "any": f"sum of {column}"},
        missing=missing,
        kind="program",
    )
    return MeasuredProfile(
        tuple(order),
        "PyTorch key_averages",
        (str(source.path),),
        operators=tuple(sorted(operators, key=lambda each: -(each.seconds or 0.0))),
        whole=whole,
        notes=(f"{_LITTLE}; the sum is what it counted.",) if counted else (),
    )


def _is_whole(rows: list[_Cells], column: str, total: float | None) -> bool:
    """Whether the own times of the rows add up to the total, as far as digits were printed."""
    if total is None:
        return False
    added = rounding = 0.0
    for row in rows:
        found = _TIME.fullmatch(row.cells.get(column, ""))
        if found:
            added += float(found["number"]) * _SCALES[found["unit"]]
            rounding += 0.6e-3 * _SCALES[found["unit"]]
    return abs(added - total) <= rounding + 1e-6 * total


def _kernel(row: _Cells, own: float | None, device: str) -> MeasuredKernel:
    name = row.cells["Name"]
    missing = {
        "flops": "work stands beside the operator that starts this one; see `operators`",
        "dram": "the table counts no bytes of memory traffic",
    }
    return MeasuredKernel(
        name,
        row.calls(),
        own,
        sources={"seconds": f"Self {device}"},
        missing=missing,
        facts=_shape(row),
        kind="kernel" if is_exchange(name) or device != "CPU" else "operator",
    )


def _operator(row: _Cells, time: float | None, flops: float | None, device: str) -> MeasuredKernel:
    missing = {"dram": "the table counts no bytes of memory traffic"}
    if flops is None:
        missing["flops"] = _LITTLE
    column = f"{device} total" if flops is not None else f"Self {device}"
    return MeasuredKernel(
        row.cells["Name"],
        row.calls(),
        time,
        {} if flops is None else {"any": flops},
        sources={"seconds": column, "any": "Total FLOPs"},
        missing=missing,
        facts=_shape(row),
        kind="operator",
    )


def _shape(row: _Cells) -> dict[str, str]:
    shape = row.cells.get("Input Shapes", "")
    return {"shape": shape} if shape else {}
