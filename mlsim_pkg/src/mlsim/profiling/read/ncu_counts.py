"""Operations and bytes of one launch from its metrics, and what can't be known without others."""

from __future__ import annotations

from typing import Any

from mlsim.equations import counters as equations
from mlsim.profiling.measured_profile import MeasuredKernel
from mlsim.profiling.read import ncu_metrics
from mlsim.profiling.read.ncu_launch import Counters, Launch

_FP32 = ",".join(
    f"smsp__{ncu_metrics.THREAD.format(kind='f', op=op)}.sum" for op in ("add", "mul", "fma")
)


def kernel_of(launch: Launch) -> MeasuredKernel:
    """Return what is known of a launch: time, work, bytes, and what is missing."""
    counters = Counters(launch)
    sources: dict[str, str] = {}
    missing: dict[str, str] = {}
    times = launch.calls
    if counters.seconds is None:
        missing["seconds"] = "gpu__time_duration.sum is not in the file"
    else:
        sources["seconds"] = counters.time_source
    operations = operations_of(counters, sources, missing)
    traffic = traffic_of(counters, sources, missing)
    facts: dict[str, Any] = {
        name: launch.metrics[metric][0]
        for metric, name in ncu_metrics.FACTS.items()
        if metric in launch.metrics
    }
    for way, op in (("load", "ld"), ("store", "st")):
        lines = f"pipe_lsu_mem_global_op_{op}.sum"
        sectors = launch.metrics.get(f"l1tex__t_sectors_{lines}", (0.0, ""))[0]
        requests = launch.metrics.get(f"l1tex__t_requests_{lines}", (0.0, ""))[0]
        if requests:
            facts[f"sectors_per_{way}"] = sectors / requests
    facts |= {
        key: text
        for key, text in (
            ("grid", launch.grid),
            ("block", launch.block),
            ("cc", launch.capability),
        )
        if text
    }
    return MeasuredKernel(
        launch.name,
        times,
        None if counters.seconds is None else counters.seconds * times,
        {path: count * times for path, count in operations.items()},
        {level: count * times for level, count in traffic.items()},
        sources,
        missing,
        facts,
        "graph" if launch.name == "graph" else "kernel",
    )


def operations_of(
    counters: Counters, sources: dict[str, str], missing: dict[str, str]
) -> dict[str, float]:
    """Return operations by data path; write down sources, and what is missing."""
    operations = _scalar(counters, sources, missing)
    name, capability = counters.launch.name, counters.launch.capability
    tensor, known = _tensor(counters, sources)
    used, evidence = _tensor_use(counters)
    operations |= tensor
    worked = sum(operations.values())
    wanted = ncu_metrics.wanted_tensor_metrics(capability)
    if sum(tensor.values()) > 0:
        pass
    elif used:
        missing["flops"] = (
            f"it used the tensor cores ({evidence}), and their operations are not counted. Add "
            f"--metrics {wanted}"
        )
    elif used is None and not known and ncu_metrics.has_tensor_cores(capability):
        _unseen_tensor(name, operations, wanted, missing)
    elif known and used is None and ncu_metrics.looks_like_tensor(name) and not worked:
        missing["flops"] = (
            "its name shows work on tensor cores, and no counter of the formats that were asked "
            f"for saw any. Add --metrics {wanted}"
        )
    if operations and not sum(operations.values()) and "fp32" not in operations:
        missing.setdefault(
            "flops",
            f"the units that were counted ({', '.join(operations)}) did nothing, and single "
            f"precision was not counted. Add --metrics {_FP32}",
        )
    if not operations and "flops" not in missing:
        missing["flops"] = (
            f"no counter of operations is in the file. Add --metrics {_FP32},{wanted}"
        )
    return operations


def _unseen_tensor(
    name: str, operations: dict[str, float], wanted: str, missing: dict[str, str]
) -> None:
    """Decide what is known of a kernel whose file has no counter of tensor cores."""
    if ncu_metrics.looks_like_tensor(name):
        missing["flops"] = (
            "its name shows work on tensor cores, which the counters in the file do not see. Add "
            f"--metrics {wanted}"
        )
    elif operations and not any(operations.values()) and ncu_metrics.looks_like_product(name):
        missing["flops"] = (
            "its name shows a product, and the arithmetic units that were counted did nothing, so "
            f"it used tensor cores. Add --metrics {wanted}"
        )
    else:
        missing["tensor"] = (
            f"tensor cores were not counted (its name shows none); to be sure add {wanted}"
        )


def _scalar(
    counters: Counters, sources: dict[str, str], missing: dict[str, str]
) -> dict[str, float]:
    """Return operations on arithmetic units outside tensor cores."""
    operations: dict[str, float] = {}
    if not any("sass_thread_inst_executed_op" in base for base in counters.by_base):
        return operations
    for path, (kind, wide) in ncu_metrics.SCALAR.items():
        bases = [ncu_metrics.THREAD.format(kind=kind, op=op) for op in ("add", "mul", "fma")]
        found = [counters.count(base) or counters.derived(base) for base in bases]
        if not any(found):
            continue
        lacking = [base for base, value in zip(bases, found, strict=True) if value is None]
        if lacking:
            missing[path] = f"smsp__{lacking[0]}.sum is not in the file"
            # Two of three kinds of instruction are no count of work.
            missing.setdefault("flops", missing[path])
            continue
        add, mul, fma = (value[0] for value in found if value)
        total = float(equations.counted_flops(add, mul, fma)) * wide
        alone = path == "fp16" and fma and not add and not mul
        if alone and not ncu_metrics.looks_like_half(counters.launch.name):
            missing[path] = (
                f"{fma:,.0f} fused multiply-adds alone, with which compilers load constants"
            )
            continue
        operations[path] = total
        pairs = ", each of two numbers" if wide == 2 else ""
        sources[path] = f"add + mul + 2 fma of {_stem(found[2])}{pairs}"
    return operations


def _stem(found: tuple[float, str] | None) -> str:
    return found[1] if found else ""


def _tensor(counters: Counters, sources: dict[str, str]) -> tuple[dict[str, float], bool]:
    """Return operations on tensor cores by format, and whether any counter of them is there."""
    seen: dict[ncu_metrics.TensorMetric, float] = {}
    named: dict[ncu_metrics.TensorMetric, str] = {}
    for base in list(counters.by_base):
        metric = ncu_metrics.tensor_metric(base)
        found = counters.count(base) if metric else None
        if metric and found:
            seen[metric], named[metric] = found
    operations: dict[str, float] = {}
    for metric, value in ncu_metrics.without_doubles(seen).items():
        operations[metric.path] = operations.get(metric.path, 0.0) + value
        before = f"{sources[metric.path]} + " if metric.path in sources else ""
        sources[metric.path] = before + named[metric]
    if seen:
        return operations, True
    found = _instructions(counters)
    if found is None:
        return {}, False
    shape = ncu_metrics.shape_in(counters.launch.name, counters.launch.capability)
    if not found[0]:
        return {}, True
    if shape is None:
        return {}, False
    sources["tensor"] = f"{found[1]}, each of {' x '.join(map(str, shape))} multiply-adds"
    return {"tensor": ncu_metrics.instruction_flops(found[0], shape)}, True


def _instructions(counters: Counters) -> tuple[float, str] | None:
    """Return tensor-core instructions of all kinds, if a counter of them is there."""
    for base in (
        ncu_metrics.TENSOR_INSTRUCTIONS,
        f"{ncu_metrics.TENSOR_INSTRUCTIONS}_op_hmma",
        f"{ncu_metrics.TENSOR_INSTRUCTIONS}_op_hmma_v2",
    ):
        found = counters.count(base)
        if found is not None:
            return found
    return None


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


def traffic_of(
    counters: Counters, sources: dict[str, str], missing: dict[str, str]
) -> dict[str, float]:
    """Return bytes by level; write down sources, and what is missing."""
    traffic = {}
    for level, every in ncu_metrics.BYTES.items():
        choices = [each for each in every if any(base in counters.by_base for base in each)]
        for bases in choices:
            found = [_bytes(counters, base) for base in bases]
            if all(each is not None for each in found):
                traffic[level] = sum(each[0] for each in found if each)
                sources[level] = " + ".join(each[1] for each in found if each)
                break
        else:
            part = [b for choice in choices for b in choice if _bytes(counters, b) is not None]
            if part:
                want = next(c for c in choices if part[0] in c)
                lack = next(b for b in want if b not in part)
                missing[level] = f"{lack}.sum is not in the file"
            elif level == "dram":
                missing[level] = _no_bytes(counters)
    return traffic


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
    if base not in counters.by_base or base in ncu_metrics.PARTIAL:
        return None
    if "sectors" in base:
        found = counters.count(base)
        size = ncu_metrics.SECTOR_BYTES
    elif "wavefronts" in base:
        found = counters.count(base)
        size = ncu_metrics.WAVEFRONT_BYTES
    else:
        return counters.count(base, "B")
    if found is None:
        return None
    return float(equations.sector_traffic(found[0], size)), f"{found[1]} x {size} bytes"
