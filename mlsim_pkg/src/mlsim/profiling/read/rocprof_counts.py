"""Operations and bytes of one launch from rocprof's counters, and what is missing.

Counters of operations are those of CDNA (MI200 and later): instructions of a wavefront of 64, and
blocks of 512 operations of the matrix cores. Bytes are rocprof's own sum, or follow from the
requests of the L2 cache to memory, whose sizes are counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsim.equations import counters as equations
from mlsim.profiling.measured_profile import MeasuredKernel

_WAVE = 64
_MATRIX = 512
_PATHS = {"F16": "fp16", "F32": "fp32", "F64": "fp64"}
_MATRIX_PATHS = {"F16": "tensor fp16", "BF16": "tensor bf16", "F32": "tensor", "F64": "tensor fp64"}
_MATRIX_PATHS |= {"F8": "tensor fp8", "F6F4": "tensor", "I8": "tensor int8", "XF32": "tensor tf32"}
_KILO = 1024
MISSING_WORK = (
    "no counter of operations is in the file. Collect SQ_INSTS_VALU_ADD_F32, "
    "SQ_INSTS_VALU_MUL_F32, SQ_INSTS_VALU_FMA_F32, SQ_INSTS_VALU_TRANS_F32, the same of F16 and "
    "F64, and SQ_INSTS_VALU_MFMA_MOPS_F16, _BF16, _F32, _F64"
)
MISSING_BYTES = "FETCH_SIZE and WRITE_SIZE are not in the file"
# Requests of the L2 cache to memory: how many in all, and how many of another size.
_READS, _WRITES = ("RDREQ_sum", "RDREQ_32B_sum"), ("WRREQ_sum", "WRREQ_64B_sum")
# From MI300 on, some reads are of 128 bytes, and a counter of its own says how many.
_LONG_READS = "TCC_BUBBLE_sum"


def is_counter(name: str) -> bool:
    """Whether a column or a name is that of a counter.

    >>> is_counter("SQ_WAVES"), is_counter("Grid_Size")
    (True, False)
    """
    return name.startswith(("SQ_", "TCC_", "TCP_", "TOTAL_")) or name.upper().replace("_", "") in (
        "FETCHSIZE",
        "WRITESIZE",
    )


def kernel_of(
    name: str, seconds: float | None, counted: Mapping[str, float], facts: dict[str, Any]
) -> MeasuredKernel:
    """Return what is known of a launch: time, work, bytes, and what is missing."""
    sources: dict[str, str] = {}
    missing: dict[str, str] = {}
    operations = _operations(counted, sources, missing)
    if not operations and "flops" not in missing:
        missing["flops"] = MISSING_WORK
    traffic = _traffic(counted, sources, missing)
    if seconds is None:
        missing["seconds"] = "BeginNs and EndNs are not in the file. Add --timestamp on"
    else:
        sources["seconds"] = "end less begin"
    return MeasuredKernel(name, 1, seconds, operations, traffic, sources, missing, facts)


def _operations(
    counted: Mapping[str, float], sources: dict[str, str], missing: dict[str, str]
) -> dict[str, float]:
    operations: dict[str, float] = {}
    for suffix, path in _PATHS.items():
        names = [f"SQ_INSTS_VALU_{op}_{suffix}" for op in ("ADD", "MUL", "FMA")]
        there = [name for name in names if name in counted]
        if not there:
            continue
        if len(there) < len(names):
            lacking = next(name for name in names if name not in counted)
            missing["flops"] = f"{lacking} is not in the file"
            continue
        add, mul, fma = (counted[name] for name in names)
        add += counted.get(f"SQ_INSTS_VALU_TRANS_{suffix}", 0.0)
        operations[path] = float(equations.counted_flops(add, mul, fma)) * _WAVE
        sources[path] = f"(ADD + MUL + TRANS + 2 FMA)_{suffix} x {_WAVE} lanes"
    for suffix, path in _MATRIX_PATHS.items():
        name = f"SQ_INSTS_VALU_MFMA_MOPS_{suffix}"
        if name in counted:
            operations[path] = operations.get(path, 0.0) + counted[name] * _MATRIX
            sources[path] = f"{name} x {_MATRIX}"
    totals = [f"TOTAL_{bits}_OPS" for bits in (16, 32, 64)]
    if not operations and all(name in counted for name in totals):
        operations["any"] = sum(counted[name] for name in totals)
        sources["any"] = " + ".join(totals)
    if operations and not sum(operations.values()) and "fp32" not in operations:
        missing.setdefault(
            "flops",
            f"the units that were counted ({', '.join(operations)}) did nothing, and single "
            "precision was not counted. Read the files of all passes together",
        )
    if operations and not any(path.startswith(("tensor", "any")) for path in operations):
        if counted.get("SQ_INSTS_MFMA") or counted.get("SQ_INSTS_VALU_MFMA"):
            missing["flops"] = (
                "it used the matrix cores, and their operations are not counted. Collect "
                "SQ_INSTS_VALU_MFMA_MOPS_F16, _BF16, _F32 and _F64"
            )
        else:
            missing["tensor"] = "matrix cores were not counted: SQ_INSTS_VALU_MFMA_MOPS_*"
    return operations


def _traffic(
    counted: Mapping[str, float], sources: dict[str, str], missing: dict[str, str]
) -> dict[str, float]:
    """Return bytes of main memory; write down the source, or what is missing."""
    sizes = {key.upper().replace("_", ""): value for key, value in counted.items()}
    if {"FETCHSIZE", "WRITESIZE"} <= set(sizes):
        sources["dram"] = "(FETCH_SIZE + WRITE_SIZE) x 1024 bytes"
        return {"dram": (sizes["FETCHSIZE"] + sizes["WRITESIZE"]) * _KILO}
    for unit in ("TCC_EA_", "TCC_EA0_"):
        wanted = [unit + each for each in (*_READS, *_WRITES)]
        if not any(name in counted for name in wanted):
            continue
        wanted += [_LONG_READS] if unit == "TCC_EA0_" else []
        lacking = [name for name in wanted if name not in counted]
        if lacking:
            missing["dram"] = f"{lacking[0]} is not in the file"
            return {}
        reads, narrow, writes, wide = (counted[name] for name in wanted[:4])
        long = counted[_LONG_READS] if unit == "TCC_EA0_" else 0.0
        if narrow + long > reads or wide > writes:
            missing["dram"] = f"more requests of one size than of all: see {wanted[0]}"
            return {}
        requests = {32: narrow + (writes - wide), 64: (reads - narrow - long) + wide, 128: long}
        sources["dram"] = f"requests {unit}RDREQ and WRREQ of 32, 64 and 128 bytes"
        return {"dram": sum(equations.sector_traffic(n, size) for size, n in requests.items())}
    missing["dram"] = MISSING_BYTES
    return {}
