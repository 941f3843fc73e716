"""The exact commands that profile a script, for a device and a tool."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mlsim.errors import InvalidValueError, unknown_name
from mlsim.hardware import Device
from mlsim.profiling.read.ncu_counts import SCALAR, THREAD, wanted_tensor_metrics
from mlsim.profiling.read.perf_stat import INTEL_EVENTS
from mlsim.zoo import resolve

TOOLS = ("ncu", "nsys", "torch", "rocprof", "perf")
# Compute capabilities as NVIDIA's list of CUDA GPUs has them, where the architecture alone does
# not tell.
_BY_KEY = {
    "Cloud.A100": "8.0",
    "Cloud.A100_40GB": "8.0",
    "Cloud.A100_PCIe": "8.0",
    "Cloud.A30": "8.0",
    "Edge.JetsonAGXOrin": "8.7",
    "Edge.JetsonOrinNano": "8.7",
    "Cloud.B200": "10.0",
    "Cloud.GB200": "10.0",
    "Cloud.B300": "10.3",
    "Cloud.GB300": "10.3",
    "Edge.JetsonThor": "11.0",
    "Workstation.DGXSpark": "12.1",
}
_BY_ARCHITECTURE = {
    "Volta": "7.0",
    "Turing": "7.5",
    "Ampere": "8.6",
    "Ada Lovelace": "8.9",
    "Hopper": "9.0",
    "Grace Hopper": "9.0",
    "Blackwell": "12.0",
}
_BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum")
_COUNTERS = (
    "pmc: FETCH_SIZE WRITE_SIZE",
    *(
        "pmc: " + " ".join(f"SQ_INSTS_VALU_{op}_{path}" for op in ("ADD", "MUL", "FMA", "TRANS"))
        for path in ("F16", "F32", "F64")
    ),
    "pmc: " + " ".join(f"SQ_INSTS_VALU_MFMA_MOPS_{path}" for path in ("F16", "BF16", "F32", "F64")),
)
_TORCH = """\
# Put this around the loop of {script}.
from torch.profiler import ProfilerActivity, profile, schedule

with profile(
    activities=[{activities}],
    # Leave a step out, warm up in one, record three.
    schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
    on_trace_ready=lambda done: done.export_chrome_trace("trace.json.gz"),
    record_shapes=True,
    profile_memory=True,
    with_flops=True,
) as profiler:
    for step, batch in enumerate(loader):
        train_step(batch)
        profiler.step()
        if step == 5:
            break

print(profiler.key_averages(group_by_input_shape=True).table(
    sort_by="self_{device}_time_total", row_limit=-1))

# Then: mlsim profile trace.json.gz{hardware}
"""


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
    makers = {"ncu": _ncu, "nsys": _nsys, "torch": _torch, "rocprof": _rocprof, "perf": _perf}
    return makers[tool](program, words[0], device)


def capability_of(device: Device) -> str:
    """Return the compute capability of an NVIDIA device; "" of another.

    >>> from mlsim import Hardware
    >>> capability_of(Hardware.Cloud.H100), capability_of(Hardware.Cloud.MI300X)
    ('9.0', '')
    """
    if device.vendor != "NVIDIA":
        return ""
    return _BY_KEY.get(device.key) or _BY_ARCHITECTURE.get(device.architecture, "")


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


def _nvidia(device: Device | None, tool: str) -> Device:
    if device is None:
        raise InvalidValueError(
            f"{tool} needs hardware=..., such as 'A100': its metrics differ by architecture."
        )
    if device.vendor != "NVIDIA":
        other = "rocprof" if device.vendor == "AMD" else "torch, or perf for a CPU"
        raise InvalidValueError(
            f"{tool} profiles GPUs of NVIDIA, and {device.name} is none. Use {other}."
        )
    return device


def _ncu(program: str, script: str, device: Device | None) -> str:
    found = _nvidia(device, "ncu")
    capability = capability_of(found)
    if not capability:
        raise InvalidValueError(
            f"Nsight Compute needs Volta or later, and {found.name} is {found.architecture}."
        )
    metrics = ",\\\n".join(metrics_for(found))
    return (
        f"# Operations, bytes and time of each kernel on {found.name} (compute capability "
        f"{capability}).\n"
        "# Each kernel runs several times: profile few. It needs the right to read counters.\n"
        "ncu --csv --print-units base --log-file profile_ncu.csv --target-processes all \\\n"
        "  --clock-control none --launch-skip 100 --launch-count 200 \\\n"
        f"  --metrics {metrics} \\\n"
        f"  {program}\n\n"
        "# Then, best with times of nsys, which does not slow the run down:\n"
        f"mlsim profile profile_ncu.csv --hardware {found.key}\n"
    )


def _nsys(program: str, script: str, device: Device | None) -> str:
    hardware = f" --hardware {device.key}" if device is not None else ""
    if device is not None:
        _nvidia(device, "nsys")
    return (
        "# Times of kernels, copies, launches and gaps.\n"
        "nsys profile --trace=cuda,nvtx,osrt --output=profile --force-overwrite=true \\\n"
        f"  {program}\n"
        "nsys export --type=sqlite --output=profile.sqlite --force-overwrite=true "
        "profile.nsys-rep\n"
        "\n# Then; with counters of ncu both are joined:\n"
        f"mlsim profile profile.sqlite{hardware}\n"
        f"mlsim profile profile_ncu.csv profile.sqlite{hardware}\n"
    )


def _torch(program: str, script: str, device: Device | None) -> str:
    gpu = device is None or device.vendor in ("NVIDIA", "AMD")
    gpu = gpu and not (device is not None and device.key.startswith("Server."))
    activities = "ProfilerActivity.CPU" + (", ProfilerActivity.CUDA" if gpu else "")
    return _TORCH.format(
        script=script,
        activities=activities,
        device="cuda" if gpu else "cpu",
        hardware=f" --hardware {device.key}" if device is not None else "",
    )


def _rocprof(program: str, script: str, device: Device | None) -> str:
    if device is not None and device.vendor != "AMD":
        raise InvalidValueError(
            f"rocprof profiles GPUs of AMD, and {device.name} is none. Use ncu or nsys."
        )
    hardware = f" --hardware {device.key}" if device is not None else ""
    counters = "\n".join(_COUNTERS)
    return (
        "# Times of kernels:\n"
        f"rocprofv3 --kernel-trace --stats --output-format csv -d profile -- {program}\n\n"
        "# Operations and bytes; each line of counters.txt is a run of its own:\n"
        f"cat > counters.txt <<'END'\n{counters}\nEND\n"
        f"rocprofv3 -i counters.txt --output-format csv -d counters -- {program}\n\n"
        "# Then, with the files that they wrote:\n"
        f"mlsim profile counters/*_counter_collection.csv{hardware}\n"
        f"mlsim profile profile/*_kernel_stats.csv{hardware}\n"
    )


def _perf(program: str, script: str, device: Device | None) -> str:
    amd = device is not None and device.vendor == "AMD"
    work = "fp_ret_sse_avx_ops.all" if amd else ",".join(INTEL_EVENTS)
    memory = "" if amd else ",uncore_imc/data_reads/,uncore_imc/data_writes/"
    kind = "AMD's" if amd else "Intel's (on AMD: fp_ret_sse_avx_ops.all)"
    hardware = f" --hardware {device.key}" if device is not None else ""
    return (
        f"# Cycles, instructions and operations of the CPU; events of operations are {kind}.\n"
        "# LC_ALL=C keeps the numbers in English. Events of memory need -a and the right to it.\n"
        "LC_ALL=C perf stat -o profile_perf.txt \\\n"
        f"  -e cycles,instructions,cache-references,cache-misses,{work}{memory} \\\n"
        f"  {program}\n\n"
        f"mlsim profile profile_perf.txt{hardware}\n"
    )
