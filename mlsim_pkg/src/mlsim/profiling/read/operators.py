"""Operators of PyTorch: those of a trace, and the table of `prof.key_averages().table()`.

A trace has the shapes from which work is counted, and the time of what each operator started. The
table has times, memory, and the work that PyTorch counted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlsim.equations import roofline
from mlsim.errors import DataFileError
from mlsim.profiling.joining import is_exchange
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile, longest_first
from mlsim.profiling.read.tables import Lines, Source, known

_TORCH = known("torch")
COUNTED = frozenset(_TORCH["counted"])
_OWN = frozenset(_TORCH["own"])
_PRODUCT = re.compile(_TORCH["product"])


def may_work(name: str) -> bool:
    """Whether an operator may do work that is not counted here.

    Somebody's own operator may do anything; so may what a compiler fused around a product.

    >>> [may_work(each) for each in ("aten::relu", "aten::_int_mm", "fbgemm::f8f8bf16_rowwise",
    ...     "triton_tem_fused_mm_0", "triton_poi_fused_add_0", "Optimizer.step#SGD.step")]
    [False, True, True, True, False, False]
    """
    library, mark, _ = name.partition("::")
    if any(each in name for each in _TORCH["uncounted"]):
        return True
    if mark and library not in _OWN:
        return True
    return not mark and name.startswith(("triton_", "cpp_")) and bool(_PRODUCT.search(name))


def flops_of(name: str, dims: Any, values: Any) -> float | None:
    """Return the floating-point operations of an operator; None if they can't be known.

    `dims` and `values` are "Input Dims" and "Concrete Inputs" of a trace.

    >>> flops_of("aten::mm", [[8, 16], [16, 4]], [])
    1024.0
    >>> flops_of("aten::conv2d", [[8, 3, 224, 224], [64, 3, 11, 11], [64], [], [], [], []],
    ...     ["", "", "", "[4, 4]", "[2, 2]", "[1, 1]", "1"])
    1124428800.0
    """
    if name not in COUNTED or not isinstance(dims, list):
        return None
    try:
        macs = _macs(name, dims, values if isinstance(values, list) else [])
    except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    if macs is None or macs < 0 or not math.isfinite(macs):
        return None
    return float(roofline.flops(2, macs, 1))


def _macs(name: str, dims: list[Any], values: list[Any]) -> float | None:
    short = name.removeprefix("aten::")
    if short == "mm":
        return _product(dims[0], dims[1])
    if short == "addmm":
        return _product(dims[1], dims[2])
    if short == "mkldnn_linear":
        return float(math.prod(dims[0]) * dims[1][0])
    if short in ("bmm", "baddbmm"):
        one, two = (dims[0], dims[1]) if short == "bmm" else (dims[1], dims[2])
        return float(one[0] * _product(one[1:], two[1:]))
    if short.startswith("_scaled"):
        return _attention(dims, values)
    if short == "convolution_backward":
        return _backward(dims, values)
    return _convolution(short, dims, values)


def _product(one: Sequence[int], two: Sequence[int]) -> float:
    if len(one) != 2 or len(two) != 2 or one[1] != two[0]:
        raise ValueError("these are no two matrices")
    return float(one[0] * one[1] * two[1])


def _numbers(text: Any, sides: int) -> list[int]:
    found = json.loads(text) if isinstance(text, str) else text
    found = found if isinstance(found, list) else [found]
    return [int(each) for each in (found * sides if len(found) == 1 else found)]


def _convolution(short: str, dims: list[Any], values: list[Any]) -> float | None:
    image, weight = dims[0], dims[1]
    sides = len(weight) - 2
    stride, padding, dilation = (_numbers(values[place], sides) for place in (3, 4, 5))
    if short == "convolution" and str(values[6]).lower() == "true":
        # Transposed: every input meets the whole kernel.
        return float(math.prod(image) * math.prod(weight[1:]))
    result = [
        (size + 2 * pad - hole * (kernel - 1) - 1) // step + 1
        for size, pad, hole, kernel, step in zip(
            image[2:], padding, dilation, weight[2:], stride, strict=True
        )
    ]
    # The weight has the channels of one group, so groups need no care.
    return float(image[0] * weight[0] * math.prod(result) * math.prod(weight[1:]))


def _backward(dims: list[Any], values: list[Any]) -> float | None:
    """Count as many products as gradients were asked for: of the input, of the weight."""
    gradient, weight = dims[0], dims[2]
    mask = [str(each).strip().lower() == "true" for each in str(values[10]).strip("[]").split(",")]
    if str(values[7]).lower() == "true" or len(mask) != 3:
        return None
    return float(math.prod(gradient) * math.prod(weight[1:]) * (mask[0] + mask[1]))


def _attention(dims: list[Any], values: list[Any]) -> float | None:
    query, key, value = dims[:3]
    batch, heads, rows, wide = query
    whole = float(batch) * heads * rows * key[2] * (wide + value[3])
    # Where is_causal stands differs; only a plain False is sure to mean all pairs.
    causal = any(str(each).lower() == "true" for each in values[3:])
    return float(whole / 2 if causal and rows == key[2] else whole)


_NO_SHAPES = "the trace has no shapes. Profile with record_shapes=True"
_OTHERS = "its work is not counted from shapes: only matrix products, convolutions and attention"


@dataclass(slots=True)
class Operator:
    """One call of an operator."""

    name: str
    place: tuple[Any, Any]
    start: float
    end: float
    identity: Any
    shape: str
    flops: float | None
    counted: bool
    type: str = ""
    own: float = 0.0
    owner: Operator | None = None

    @classmethod
    def of(
        cls, name: str, place: tuple[Any, Any], span: tuple[float, float], args: dict[str, Any]
    ) -> Operator:
        """Make one of an event."""
        dims = args.get("Input Dims")
        counted = name in COUNTED and isinstance(dims, list)
        flops = flops_of(name, dims, args.get("Concrete Inputs")) if counted else None
        shape = " x ".join(str(each) for each in dims[:3] if each) if isinstance(dims, list) else ""
        types = args.get("Input type")
        kind = next((str(each) for each in types if each), "") if isinstance(types, list) else ""
        identity = args.get("External id")
        return cls(name, place, *span, identity, shape[:120], flops, counted, kind)


def operators_of(
    operators: list[Operator], owners: Mapping[Any, float], *, gpu: bool
) -> tuple[MeasuredKernel, ...]:
    """Add operators up by name and shape, with the time of their kernels, or on a CPU their own.

    What an operator starts is part of it if its work was counted, so that time and work belong
    together: a convolution with all that it calls. `owners` has the time of the kernels that
    each operator started, by its identity.
    """
    _nest(operators)
    rows: dict[tuple[str, str], list[Any]] = {}
    by_id = {each.identity: each for each in operators if each.identity is not None}
    timed = ((by_id.get(owner), seconds) for owner, seconds in owners.items())
    seen = set()
    for each, seconds in timed if gpu else ((each, each.own) for each in operators):
        if each is None:
            continue
        row = _owner(each)
        kept = rows.setdefault((row.name, row.shape), [0, 0.0, row.flops, 0.0, row.type])
        kept[1] += seconds
        if id(row) not in seen:
            kept[0] += 1
            kept[3] += row.flops or 0.0
        seen.add(id(row))
    shapes = any(each.shape for each in operators)
    return longest_first(_row(key, value, shapes=shapes) for key, value in rows.items())


def _owner(operator: Operator) -> Operator:
    """Return the outermost operator around this one whose work was counted, else itself."""
    found, each = operator, operator.owner
    while each is not None:
        if each.counted:
            found = each
        each = each.owner
    return found


def _nest(operators: list[Operator]) -> None:
    """Find out what each operator was called by, and its time without what it called."""
    by_place: dict[tuple[Any, Any], list[Operator]] = {}
    for each in operators:
        by_place.setdefault(each.place, []).append(each)
    for group in by_place.values():
        stack: list[Operator] = []
        for each in sorted(group, key=lambda one: (one.start, -one.end)):
            each.own = each.end - each.start
            while stack and stack[-1].end <= each.start:
                stack.pop()
            if stack:
                each.owner = stack[-1]
                stack[-1].own = max(stack[-1].own - each.own, 0.0)
            stack.append(each)


def _row(key: tuple[str, str], value: list[Any], *, shapes: bool) -> MeasuredKernel:
    name, shape = key
    calls, seconds, flops, work, kind = value
    missing = {"dram": "a PyTorch trace counts no bytes"}
    operations: dict[str, float] = {}
    if flops is not None:
        operations = {"any": work}
    elif not shapes:
        missing["flops"] = _NO_SHAPES
    elif name in COUNTED or may_work(name):
        missing["flops"] = _OTHERS
    else:
        # What is no product does little: counted as none, as the book counts work.
        operations = {"any": 0.0}
    sources = {"seconds": "durations of the events"}
    if flops is not None:
        sources["any"] = "2 x multiply-adds, from the recorded shapes"
    elif operations:
        sources["any"] = "no matrix product, convolution or attention: counted as none"
    facts = {key: word for key, word in (("shape", shape), ("type", kind)) if word}
    return MeasuredKernel(name, calls, seconds, operations, {}, sources, missing, facts, "operator")


_TIME = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ns|us|μs|µs|ms|s)")
_SCALES = {"ns": 1e-9, "us": 1e-6, "μs": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_TOTAL = re.compile(r"Self (?P<device>\w+) time total:\s*(?P<time>\S+)")
_FLOPS = re.compile(r"Total ([KMGTP]?)FLOPs?$", re.IGNORECASE)
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_DEVICES = ("CUDA", "XPU", "MTIA", "PrivateUse1", "HPU", "NPU")
_ANOTHER = "Another table stands below the first one in the file; the first is read."
_NO_BYTES = "the table counts no bytes of memory traffic"
_BESIDE = "work stands beside the operator that starts this one; see `operators`"
_LITTLE = "PyTorch counts operations of mm, addmm, bmm, baddbmm, conv2d, add and mul alone"


def seconds_of(text: str) -> float | None:
    """Return a time of the table in s; None if it is none.

    >>> seconds_of("55.798ms"), seconds_of("--")
    (0.055798, None)
    """
    found = _TIME.fullmatch(text.strip())
    return float(found["number"]) * _SCALES[found["unit"]] if found else None


def read_table(source: Source, number: int, header: str, lines: Lines) -> MeasuredProfile:
    """Read a table.

    Raises
    ------
    DataFileError
        If a row does not fit the columns, or the table does not end.
    """
    dashes = next((line for _, line, _ in lines), "")
    spans = [each.span() for each in re.finditer("-+", dashes)]
    if not spans or set(dashes) - {"-", " "}:
        raise DataFileError(f"{source.path}:{number + 1}: below the header there must be dashes.")
    # Two spaces part the names. "CUDA time avg" is longer than its column, so what follows stands
    # one place to the right of its own.
    names = re.split(r" {2,}", header.strip())
    if len(names) != len(spans):
        names = [header[start:end].strip() for start, end in spans]
    rows = []
    for line, text, _ in lines:
        if not text.strip("- "):
            if text.strip():
                break
            continue
        cells = [text[start:end].strip() for start, end in spans]
        if len("".join(cells).replace(" ", "")) != len(text.replace(" ", "").rstrip()):
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
    return _profile(source, names, rows, totals, (_ANOTHER,) if another else ())


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

    def kernel(
        self, time: float | None, column: str, work: float | None, why: str, kind: str
    ) -> MeasuredKernel:
        """Return the row as a kernel or an operator; `why` says why its work is not known."""
        calls, shape = self.cells.get("# of Calls", ""), self.cells.get("Input Shapes", "")
        if not calls.replace(",", "").isdigit():
            raise DataFileError(f"{self.where}: # of Calls is {calls!r}, no whole number.")
        sources, missing = {"seconds": column}, {"dram": _NO_BYTES}
        if work is None:
            missing["flops"] = why
        else:
            sources["any"] = "Total FLOPs"
        return MeasuredKernel(
            self.cells["Name"],
            int(calls.replace(",", "")),
            time,
            {} if work is None else {"any": work},
            sources=sources,
            missing=missing,
            facts={"shape": shape} if shape else {},
            kind=kind,
        )


def _profile(
    source: Source,
    names: list[str],
    rows: list[_Cells],
    totals: dict[str, float | None],
    notes: tuple[str, ...],
) -> MeasuredProfile:
    device = next((each for each in _DEVICES if f"Self {each}" in names), "CPU")
    column = next((name for name in names if _FLOPS.match(name)), "")
    matched = _FLOPS.match(column)
    scale = _PREFIX[matched[1].upper()] if matched else 1.0
    own_column, whole_column = f"Self {device}", f"{device} total"
    kernels, operators, counts = [], [], list[float]()
    for row in rows:
        flops = row.flops(column, scale) if column else None
        own, through = row.time(own_column), row.time(whole_column)
        launched = device != "CPU" and not row.time("CPU total", "CPU time total")
        if own and (launched or device == "CPU"):
            gpu = launched or is_exchange(row.cells["Name"])
            kind = "kernel" if gpu else "operator"
            kernels.append(row.kernel(own, own_column, None, _BESIDE, kind))
        if not launched and flops is None:
            operators.append(row.kernel(own, own_column, None, _LITTLE, "operator"))
        elif not launched:
            operators.append(row.kernel(through, whole_column, flops, "", "operator"))
            counts.append(flops or 0.0)
    if device != "CPU" and not kernels:
        kernels = [each for each in operators if each.seconds]
    total = totals.get(device)
    missing = {"dram": _NO_BYTES}
    if not counts:
        missing["flops"] = "the table has no work. Profile with with_flops=True"
    elif not _is_whole(rows, own_column, total):
        missing["flops"] = (
            "the rows don't add up to the total, so some are left out, and their work. Print all: "
            "table(row_limit=-1)"
        )
    if total is None:
        missing["seconds"] = f"the line of totals does not say the time on {device}"
    sources = {"seconds": f"Self {device} time total", "any": f"sum of {column}"}
    work = {"any": sum(counts)} if counts else {}
    return MeasuredProfile(
        longest_first(kernels),
        "PyTorch key_averages",
        (str(source.path),),
        operators=longest_first(operators),
        whole=MeasuredKernel(
            "the whole run", 1, total, work, sources=sources, missing=missing, kind="program"
        ),
        notes=(*((f"{_LITTLE}; the sum is what it counted.",) if counts else ()), *notes),
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
