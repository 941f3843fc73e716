"""Operations and bytes of one launch from Nsight Compute's metrics, and what can't be known.

Scalar work: an instruction of one thread is one operation, a fused multiply-add two. Half precision
works on pairs, so Nsight Compute's own roofline counts it twice over (its derived metrics end in
_x2 and _x4). Tensor cores: `sm__ops_path_tensor_*` are operations already;
`sm__inst_executed_pipe_tensor` are instructions of a warp, whose size differs by kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mlsim.equations import counters as equations
from mlsim.errors import DataFileError
from mlsim.profiling.measured_profile import Counted, MeasuredKernel
from mlsim.profiling.read.tables import known

# Scalar instructions of each data path: add, multiply, fused multiply-add; and how many numbers
# one instruction of a thread works on.
SCALAR: Mapping[str, tuple[str, int]] = {"fp64": ("d", 1), "fp32": ("f", 1), "fp16": ("h", 2)}
THREAD = "sass_thread_inst_executed_op_{kind}{op}_pred_on"
OPS_PATH = "ops_path_tensor"
TENSOR_INSTRUCTIONS = "inst_executed_pipe_tensor"
SECTOR_BYTES = 32
WAVEFRONT_BYTES = 128
_NCU = known("ncu")
# Bytes by level: alternatives, best first.
BYTES: Mapping[str, list[list[str]]] = _NCU["bytes"]
# What the page "details" prints in words, and what else is kept of a launch.
DETAILS: Mapping[str, tuple[str, str]] = _NCU["details"]
FACTS: Mapping[str, str] = _NCU["facts"]
_SHAPE = re.compile(r"(?<![0-9])[shi](16832|16816|8832|8816|1688|884)(?![0-9])")
_NAMES = {kind: re.compile("|".join(parts)) for kind, parts in _NCU["names"].items()}


@dataclass(frozen=True, slots=True)
class TensorMetric:
    """A metric of operations on tensor cores, taken apart."""

    operation: str
    sources: frozenset[str]
    result: str
    sparsity: str

    def covers(self, other: TensorMetric) -> bool:
        """Whether what the other counts is part of what this one counts."""
        return (
            self != other
            and self.sources >= other.sources
            and self.operation in ("", other.operation)
            and self.result in ("", other.result)
            and self.sparsity in ("", other.sparsity)
        )

    @property
    def path(self) -> str:
        """The data path, a key of `measured_profile.PATHS`."""
        from mlsim.profiling.measured_profile import PATHS

        only = next(iter(self.sources)) if len(self.sources) == 1 else ""
        return f"tensor {only}" if f"tensor {only}" in PATHS else "tensor"


_OPS = re.compile(
    r"ops_path_tensor(?:_op_(?P<op>[a-z0-9]+))?"
    r"(?:_src(?P<src>(?:_[a-z]{0,2}(?:fp|bf|tf|int)\d+)+))?(?:_dst_(?P<dst>[a-z0-9]+))?"
    r"(?:_sparsity_(?P<sp>on|off))?"
)


@lru_cache(maxsize=4096)
def tensor_metric(base: str) -> TensorMetric | None:
    """Take a metric apart; None if it is no count of tensor-core operations.

    `base` has neither the unit in front nor the roll-up behind.

    >>> found = tensor_metric("ops_path_tensor_src_bf16_dst_fp32_sparsity_off")
    >>> found.path, found.sparsity
    ('tensor bf16', 'off')
    >>> tensor_metric("ops_path_tensor_src_fp4_fp6_fp8_dst_fp32").path
    'tensor'
    """
    found = _OPS.fullmatch(base)
    if not found:
        return None
    sources = frozenset(each for each in (found["src"] or "").split("_") if each)
    return TensorMetric(found["op"] or "", sources, found["dst"] or "", found["sp"] or "")


def without_doubles(metrics: Mapping[TensorMetric, float]) -> dict[TensorMetric, float]:
    """Leave out metrics that are part of another that is there.

    >>> whole, part = tensor_metric("ops_path_tensor_src_fp64"), tensor_metric(
    ...     "ops_path_tensor_src_fp64_sparsity_off")
    >>> list(without_doubles({whole: 5.0, part: 5.0})) == [whole]
    True
    """
    return {
        each: value
        for each, value in metrics.items()
        if not any(other.covers(each) for other in metrics)
    }


def shape_in(name: str, capability: str) -> tuple[int, int, int] | None:
    """Return the shape of the tensor-core instruction that a kernel's name tells.

    >>> shape_in("ampere_fp16_s16816gemm_fp16_64x64_tn", "8.0"), shape_in("my_kernel", "8.0")
    ((16, 8, 16), None)
    """
    found = _SHAPE.search(name)
    if found is None and capability not in ("7.0", "7.2"):
        return None
    # On Volta there is no other.
    rows, columns, depth = _NCU["shapes"][found[1] if found else "884"]
    return rows, columns, depth


@lru_cache(maxsize=4096)
def looks_like(kind: str, name: str) -> bool:
    """Whether a kernel's name shows "tensor" cores, a "product" or numbers of 16 bits ("half").

    >>> [looks_like("tensor", each) for each in ("flash_fwd_kernel", "ampere_sgemm_64x64_tn",
    ...     "ampere_fp16_s16816gemm_fp16_64x64_ldg8", "saxpy_kernel")]
    [True, False, True, False]
    """
    plain = kind != "half" and _NAMES["scalar"].search(name)
    return bool(_NAMES[kind].search(name)) and not plain


def capability_number(capability: str) -> float:
    """Return a compute capability as a number; 0 if it is not known."""
    return float(capability) if re.fullmatch(r"\d+\.\d", capability) else 0.0


@lru_cache(maxsize=4096)
def wanted_tensor_metrics(capability: str) -> str:
    """Return the metrics that would count tensor-core work on a device, for a message.

    >>> wanted_tensor_metrics("8.0").split(",")[0]
    'sm__ops_path_tensor_src_bf16_dst_fp32.sum'
    """
    number = capability_number(capability)
    if number and number < 8.0:
        return "sm__inst_executed_pipe_tensor.sum"
    formats = ["bf16_dst_fp32", "fp16_dst_fp16", "fp16_dst_fp32", "tf32_dst_fp32"]
    if number >= 10.0:
        return "regex:sm__ops_path_tensor_.*src.*"
    if number >= 8.9:
        formats.append("fp8")
    formats += ["fp64", "int8"] if number in (8.0, 9.0, 0.0) else ["int8"]
    return ",".join(f"sm__ops_path_tensor_src_{each}.sum" for each in formats)


@dataclass
class Launch:
    """One launch: metrics as numbers with their kind of unit."""

    name: str
    capability: str
    grid: str
    block: str
    where: str
    metrics: dict[str, tuple[float, str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


class Counters:
    """Metrics of one launch, asked for without unit in front and roll-up behind."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.seconds, self.time_source = self._time()
        self.by_base: dict[str, list[str]] = {}
        for metric in launch.metrics:
            base = metric.partition(".")[0]
            plain = re.sub(r"^(smsp|sm)__", "", base)
            self.by_base.setdefault(base, []).append(metric)
            if plain != base:
                self.by_base.setdefault(plain, []).append(metric)

    def value(self, metric: str, kind: str) -> float | None:
        """Return a metric whose unit is of a kind.

        Raises
        ------
        DataFileError
            If its unit measures something else, as when columns were mixed up.
        """
        if metric not in self.launch.metrics:
            return None
        value, found = self.launch.metrics[metric]
        if found == "?":
            return value if kind == "1" else None
        if found != kind:
            unit = {"s": "of time", "B": "of bytes", "1": "of a count"}.get(found, found)
            raise DataFileError(
                f"{self.launch.where}: {metric} has a unit {unit}. Columns and header don't belong "
                "together."
            )
        return value

    def _time(self) -> tuple[float | None, str]:
        for base in _NCU["times"]:
            for roll in (".sum", "", ".avg", ".max"):
                value = self.value(base + roll, "s")
                if value:
                    return value, base + roll
        return None, ""

    def count(self, base: str, kind: str = "1") -> tuple[float, str] | None:
        """Return how much a counter counted, and of which metric; None if it is not there.

        From a rate per second it is the rate times the time; from a rate per cycle, times the
        cycles.
        """
        for metric in self.by_base.get(base, ()):
            stem, _, roll = metric.partition(".")
            found = self.value(metric, kind) if roll in ("sum", "") else None
            if found is not None:
                return found, metric
        for metric in self.by_base.get(base, ()):
            stem, _, roll = metric.partition(".")
            if roll == "sum.per_second" and self.seconds:
                rate = self.value(metric, f"{kind}/s")
                if rate is not None:
                    return rate * self.seconds, f"{metric} x {self.time_source}"
            if roll == "sum.per_cycle_elapsed":
                cycles = self._cycles(stem.partition("__")[0])
                rate = self.value(metric, "1/cycle")
                if rate is not None and cycles is not None:
                    return rate * cycles, f"{metric} x cycles"
        return None

    def derived(self, base: str) -> tuple[float, str] | None:
        """Return a count from what a roofline section derives: per cycle, times 2 or 4."""
        for times in (2, 4):
            metric = f"derived__smsp__{base}_x{times}"
            value = self.launch.metrics.get(metric)
            cycles = None if value is None else self._cycles("smsp")
            if value is not None and cycles is not None:
                return value[0] / times * cycles, f"{metric} / {times} x cycles"
        return None

    def _cycles(self, unit: str) -> float | None:
        for name in (unit, "smsp", "sm"):
            for roll in ("avg", "max"):
                cycles = self.value(f"{name}__cycles_elapsed.{roll}", "1")
                if cycles is not None:
                    return cycles
            rate = self.value(f"{name}__cycles_elapsed.avg.per_second", "1/s")
            if rate is not None and self.seconds:
                return rate * self.seconds
        return None


_FP32 = ",".join(f"smsp__{THREAD.format(kind='f', op=op)}.sum" for op in ("add", "mul", "fma"))


def kernel_of(launch: Launch) -> MeasuredKernel:
    """Return what is known of a launch: time, work, bytes, and what is missing."""
    counters, found = Counters(launch), Counted()
    if counters.seconds is None:
        found.lack("seconds", "gpu__time_duration.sum is not in the file")
    else:
        found.sources["seconds"] = counters.time_source
    _work(counters, found)
    _traffic(counters, found)
    there = launch.metrics
    facts: dict[str, Any] = {FACTS[each]: there[each][0] for each in FACTS if each in there}
    for way, op in (("load", "ld"), ("store", "st")):
        lines = f"pipe_lsu_mem_global_op_{op}.sum"
        sectors, requests = (
            there.get(f"l1tex__t_{each}_{lines}", (0.0, ""))[0] for each in ("sectors", "requests")
        )
        if requests:
            facts[f"sectors_per_{way}"] = sectors / requests
    said = {"grid": launch.grid, "block": launch.block, "cc": launch.capability}
    facts |= {key: text for key, text in said.items() if text}
    kind = "graph" if launch.name == "graph" else "kernel"
    return found.kernel(launch.name, counters.seconds, facts, kind)


def _work(counters: Counters, found: Counted) -> None:
    """Count operations by data path; say what is missing."""
    name, capability = counters.launch.name, counters.launch.capability
    _scalar(counters, found)
    tensor, known = _tensor(counters, found)
    used, evidence = _tensor_use(counters)
    wanted = wanted_tensor_metrics(capability)
    why = ""
    if tensor > 0:
        pass
    elif used:
        why = f"it used the tensor cores ({evidence}), and their operations are not counted"
    elif used is None and not known and not 0 < capability_number(capability) < 7.0:
        why = _unseen_tensor(name, found, wanted)
    elif (
        known and used is None and looks_like("tensor", name) and not sum(found.operations.values())
    ):
        why = (
            "its name shows work on tensor cores, and no counter of the formats that were asked "
            "for saw any"
        )
    if why:
        found.missing["flops"] = f"{why}. Add --metrics {wanted}"
    found.check_idle(f"Add --metrics {_FP32}")
    if not found.operations:
        advice = f"Add --metrics {_FP32},{wanted}"
        found.lack("flops", f"no counter of operations is in the file. {advice}")


def _unseen_tensor(name: str, found: Counted, wanted: str) -> str:
    """Say why the work of a kernel is not known whose file has no counter of tensor cores."""
    if looks_like("tensor", name):
        return "its name shows work on tensor cores, which the counters in the file do not see"
    if found.operations and not any(found.operations.values()) and looks_like("product", name):
        return (
            "its name shows a product, and the arithmetic units that were counted did nothing, so "
            "it used tensor cores"
        )
    why = "tensor cores were not counted (its name shows none); to be sure add"
    found.missing["tensor"] = f"{why} {wanted}"
    return ""


def _scalar(counters: Counters, done: Counted) -> None:
    """Count operations on arithmetic units outside tensor cores."""
    if not any("sass_thread_inst_executed_op" in base for base in counters.by_base):
        return
    for path, (kind, wide) in SCALAR.items():
        bases = [THREAD.format(kind=kind, op=op) for op in ("add", "mul", "fma")]
        found = [counters.count(base) or counters.derived(base) for base in bases]
        if not any(found):
            continue
        lacking = [base for base, value in zip(bases, found, strict=True) if value is None]
        if lacking:
            done.missing[path] = f"smsp__{lacking[0]}.sum is not in the file"
            # Two of three kinds of instruction are no count of work.
            done.lack("flops", done.missing[path])
            continue
        (add, _), (mul, _), (fma, stem) = (each for each in found if each)
        total = float(equations.counted_flops(add, mul, fma)) * wide
        alone = path == "fp16" and fma and not add and not mul
        if alone and not looks_like("half", counters.launch.name):
            done.missing[path] = (
                f"{fma:,.0f} fused multiply-adds alone, with which compilers load constants"
            )
            continue
        pairs = ", each of two numbers" if wide == 2 else ""
        done.work(path, total, f"add + mul + 2 fma of {stem}{pairs}")


def _tensor(counters: Counters, done: Counted) -> tuple[float, bool]:
    """Count operations on tensor cores; return them, and whether any counter of them is there."""
    seen: dict[TensorMetric, float] = {}
    named: dict[TensorMetric, str] = {}
    for base in list(counters.by_base):
        metric = tensor_metric(base)
        found = counters.count(base) if metric else None
        if metric and found:
            seen[metric], named[metric] = found
    whole = without_doubles(seen)
    for metric, value in whole.items():
        before = f"{done.sources[metric.path]} + " if metric.path in done.sources else ""
        done.work(metric.path, value, before + named[metric])
    if seen:
        return sum(whole.values()), True
    # Instructions of all kinds.
    kinds = (TENSOR_INSTRUCTIONS + each for each in ("", "_op_hmma", "_op_hmma_v2"))
    found = next((each for base in kinds if (each := counters.count(base)) is not None), None)
    shape = shape_in(counters.launch.name, counters.launch.capability)
    if found is None or (found[0] and shape is None):
        return 0.0, False
    if not found[0] or shape is None:
        return 0.0, True
    work = float(equations.matrix_instruction_flops(found[0], *shape))
    source = f"{found[1]}, each of {' x '.join(map(str, shape))} multiply-adds"
    done.work("tensor", work, source)
    return work, True


def _tensor_use(counters: Counters) -> tuple[bool | None, str]:
    """Return whether tensor cores worked, and the metric that shows it; None if none says."""
    idle = False
    for metric, (value, _) in counters.launch.metrics.items():
        base = metric.partition(".")[0]
        if "pipe_tensor" not in base or "mem_tensor" in base or metric[-14:] == "peak_sustained":
            continue
        if value > 0:
            return True, f"{metric} is {value:,g}"
        # One kind of instruction at zero says nothing of others.
        whole = base.endswith(("inst_executed_pipe_tensor", "pipe_tensor_cycles_active"))
        idle = idle or whole
    return (False if idle else None), ""


def _traffic(counters: Counters, done: Counted) -> None:
    """Count bytes by level; say what is missing."""
    for level, every in BYTES.items():
        choices = [each for each in every if any(base in counters.by_base for base in each)]
        for bases in choices:
            found = [_bytes(counters, base) for base in bases]
            if all(each is not None for each in found):
                done.traffic[level] = sum(each[0] for each in found if each)
                done.sources[level] = " + ".join(each[1] for each in found if each)
                break
        else:
            part = [b for choice in choices for b in choice if _bytes(counters, b) is not None]
            if part:
                want = next(c for c in choices if part[0] in c)
                lack = next(b for b in want if b not in part)
                done.missing[level] = f"{lack}.sum is not in the file"
            elif level == "dram":
                done.missing[level] = _no_bytes(counters)


def _no_bytes(counters: Counters) -> str:
    """Say why a launch has no bytes of main memory."""
    bare = [each for each in counters.launch.metrics if each.startswith("dram__bytes")]
    if any(counters.launch.metrics[each][1] == "?" for each in bare):
        return (
            f"the file has {bare[0]} and no unit for it. Export it with the row of units: "
            "ncu --import FILE --page raw --csv"
        )
    return "dram__bytes_read.sum and dram__bytes_write.sum are not in it"


def _bytes(counters: Counters, base: str) -> tuple[float, str] | None:
    # Most levels are in no file: of a million launches each question counts.
    if base not in counters.by_base:
        return None
    if "sectors" in base:
        found = counters.count(base)
        size = SECTOR_BYTES
    elif "wavefronts" in base:
        found = counters.count(base)
        size = WAVEFRONT_BYTES
    else:
        return counters.count(base, "B")
    if found is None:
        return None
    return float(equations.sector_traffic(found[0], size)), f"{found[1]} x {size} bytes"
