"""The exact commands that profile a script; `data/profilers/tools.toml` has their texts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mlsim.errors import InvalidValueError, unknown_name
from mlsim.hardware import Device
from mlsim.profiling.read.ncu_counts import SCALAR, THREAD, wanted_tensor_metrics
from mlsim.profiling.read.perf_stat import INTEL_EVENTS
from mlsim.profiling.read.tables import known
from mlsim.zoo import resolve

TOOLS = ("ncu", "nsys", "torch", "rocprof", "perf")
_BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum")


def profile_command(
    script: str | Sequence[str], *, tool: str, hardware: Device | str | None = None
) -> str:
    r"""Return the commands that profile a script so that `mlsim profile` can read the result.

    Parameters
    ----------
    script
        A Python file with its arguments, as one text or in parts; or any other program.
    tool
        "ncu" (operations and bytes of each kernel), "nsys" (times), "torch" (code for
        `torch.profiler`), "rocprof" (AMD) or "perf" (CPU).
    hardware
        The device, which decides the metrics; `perf` and `torch` do without.

    Raises
    ------
    UnknownNameError
        If there is no such tool or device.
    InvalidValueError
        If the tool does not profile that device, or a device is needed and none is given.

    >>> print(profile_command("train.py --epochs 1", tool="nsys", hardware="A100").splitlines()[1])
    nsys profile --trace=cuda,nvtx,osrt --output=profile --force-overwrite=true \
    """
    if tool not in TOOLS:
        raise unknown_name("tool", tool, TOOLS)
    words = shlex.split(script) if isinstance(script, str) else list(script)
    if not words:
        raise InvalidValueError("give the script to profile, such as 'train.py --epochs 1'.")
    device = resolve.device(hardware) if hardware is not None else None
    program = shlex.join(["python3", *words] if words[0].endswith(".py") else words)
    parts = _parts_of(tool, device)
    hardware = f" --hardware {device.key}" if device is not None else ""
    template: str = known("commands")[tool]
    return template.format(program=program, script=words[0], hardware=hardware, **parts)


def capability_of(device: Device) -> str:
    """Return the compute capability of an NVIDIA device; "" of another.

    >>> from mlsim import Hardware
    >>> capability_of(Hardware.Cloud.H100), capability_of(Hardware.Cloud.MI300X)
    ('9.0', '')
    """
    if device.vendor != "NVIDIA":
        return ""
    found = known("ncu")["capability"]
    return str(found["key"].get(device.key) or found["architecture"].get(device.architecture, ""))


def metrics_for(device: Device) -> tuple[str, ...]:
    """Return the metrics of Nsight Compute that a roofline of a device needs.

    >>> from mlsim import Hardware
    >>> len(metrics_for(Hardware.Cloud.A100)), metrics_for(Hardware.Cloud.V100)[-1]
    (20, 'sm__inst_executed_pipe_tensor.sum')
    """
    scalar = (
        f"smsp__{THREAD.format(kind=kind, op=op)}.sum"
        for kind, _ in SCALAR.values()
        for op in ("add", "mul", "fma")
    )
    tensor = wanted_tensor_metrics(capability_of(device)).split(",")
    return ("gpu__time_duration.sum", *_BYTES, *scalar, *tensor)


def _parts_of(tool: str, device: Device | None) -> dict[str, str]:
    """Return what the command of a tool says of a device; refuse a device that it can't profile."""
    vendor, name = (device.vendor, device.name) if device is not None else ("", "")
    if tool == "perf":
        if vendor == "AMD":
            return {"work": "fp_ret_sse_avx_ops.all", "memory": "", "kind": "AMD's"}
        memory = ",uncore_imc/data_reads/,uncore_imc/data_writes/"
        kind = "Intel's (on AMD: fp_ret_sse_avx_ops.all)"
        return {"work": ",".join(INTEL_EVENTS), "memory": memory, "kind": kind}
    if tool == "torch":
        server = device is not None and device.key.startswith("Server.")
        gpu = vendor in ("NVIDIA", "AMD", "") and not server
        activities = "ProfilerActivity.CPU" + (", ProfilerActivity.CUDA" if gpu else "")
        return {"activities": activities, "device": "cuda" if gpu else "cpu"}
    if tool == "rocprof" and vendor not in ("AMD", ""):
        raise InvalidValueError(
            f"rocprof profiles GPUs of AMD, and {name} is none. Use ncu or nsys."
        )
    if tool in ("ncu", "nsys") and vendor not in ("NVIDIA", ""):
        other = "rocprof" if vendor == "AMD" else "torch, or perf for a CPU"
        raise InvalidValueError(f"{tool} profiles GPUs of NVIDIA, and {name} is none. Use {other}.")
    if tool != "ncu":
        return {}
    if device is None:
        raise InvalidValueError(
            "ncu needs hardware=..., such as 'A100': its metrics differ by architecture."
        )
    capability = capability_of(device)
    if not capability:
        raise InvalidValueError(
            f"Nsight Compute needs Volta or later, and {name} is {device.architecture}."
        )
    metrics = ",\\\n".join(metrics_for(device))
    return {"name": name, "capability": capability, "metrics": metrics}
