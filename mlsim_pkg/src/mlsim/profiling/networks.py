"""`time_network`: a network of the zoo, run and timed on this machine by PyTorch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from mlsim.equations import roofline
from mlsim.errors import (
    DataFileError,
    InvalidValueError,
    MissingLibraryError,
    NotMeasuredError,
    need,
    unknown_name,
)
from mlsim.hardware import Device
from mlsim.hardware.device import load_device
from mlsim.hardware.this_machine import this_machine
from mlsim.precision import precision as format_of
from mlsim.profiling.measuring.gpu import Gpu, find_gpu
from mlsim.profiling.measuring.samples import TORCH
from mlsim.profiling.stopwatch import Run, Timing, time_function
from mlsim.profiling.torch_networks import TorchNetwork
from mlsim.records import DATA
from mlsim.units import text
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD, Model, Operator
from mlsim.zoo import resolve

# Runs in which each layer has a stopwatch of its own.
LAYER_RUNS = 3
# The slowest layers are printed; `layers` has all.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class LayerTime:
    """One layer: its counts for the batch, and the median of its times in s."""

    name: str
    kind: str
    flops: float
    bytes_moved: float
    seconds: float

    @property
    def intensity(self) -> float:
        """FLOP for each byte that it moves."""
        return float(roofline.arithmetic_intensity(self.flops, self.bytes_moved))

    @property
    def rate(self) -> float:
        """FLOP/s."""
        return self.flops / self.seconds


@dataclass(frozen=True)
class NetworkRun:
    """A network that was timed, a point for `plot_roofline(points=...)`.

    Attributes
    ----------
    network, batch_size, precision
        What ran.
    machine
        Where, with PyTorch's version and its threads.
    flops, bytes_moved
        Counted from the layers for the batch, every layer with memory of its own; not measured.
    timing
        Of whole runs.
    layers
        Each with the median of its own times. Together they take longer than a whole run where
        a stopwatch has to wait for a GPU.
    """

    network: str
    batch_size: int
    precision: str
    machine: str
    flops: float
    bytes_moved: float
    timing: Timing
    layers: tuple[LayerTime, ...]

    @property
    def name(self) -> str:
        """Network and batch, for legends."""
        return f"{self.network}, batch {self.batch_size}"

    @property
    def seconds(self) -> float:
        """The median of whole runs."""
        return self.timing.wall

    @property
    def intensity(self) -> float:
        """FLOP for each byte that its layers move."""
        return float(roofline.arithmetic_intensity(self.flops, self.bytes_moved))

    @property
    def rate(self) -> float:
        """FLOP/s."""
        return self.flops / self.seconds

    def save(self, path: str | Path) -> Path:
        """Write the raw numbers as JSON, for a report or another machine; return where."""
        place = Path(path)
        place.write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")
        return place

    @classmethod
    def load(cls, path: str | Path) -> NetworkRun:
        """Read what `save` wrote.

        Raises
        ------
        DataFileError
            If there is no such file, or it holds something else.

        >>> sample_run("LeNet5_Variant-1").batch_size
        1
        """
        try:
            plain = json.loads(Path(path).read_text(encoding="utf-8"))
            timing = plain.pop("timing")
            runs, warm_up = (
                tuple(Run(each["wall"], each["user"], each["system"]) for each in timing[name])
                for name in ("runs", "warm_up")
            )
            layers = tuple(LayerTime(**each) for each in plain.pop("layers"))
            return cls(**plain, timing=Timing(runs, warm_up, timing["name"]), layers=layers)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataFileError(
                f"{path}: no run of time_network(...).save(path): {error}."
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, in base units."""
        layers = [
            {name: getattr(each, name) for name in LayerTime.__dataclass_fields__}
            for each in self.layers
        ]
        fields = ("network", "batch_size", "precision", "machine", "flops", "bytes_moved")
        plain = {name: getattr(self, name) for name in fields}
        return {**plain, "timing": self.timing.to_dict(), "layers": layers}

    def __str__(self) -> str:
        wall, waited = self.timing.spread(), self.timing.spread("waiting").median
        low, high = (text(each, "s") for each in (wall.low, wall.high))
        counts = f"{text(self.flops, 'FLOP')}, {text(self.bytes_moved, 'B')} counted"
        between = f"{low} to {high}, {len(self.timing.runs)} runs"
        lines = [
            f"{self.name}, {self.precision}: {text(wall.median, 's')} ({between})",
            f"  on {self.machine}",
            f"  {counts}: {self.intensity:.3g} FLOP/byte, {text(self.rate, 'FLOP/s')}",
        ]
        if waited > wall.median / 10:
            lines.append(f"  {waited / wall.median:.0%} of this was waiting: other programs work")
        whole, kinds = sum(each.seconds for each in self.layers), dict[str, float]()
        for each in self.layers:
            kinds[each.kind] = kinds.get(each.kind, 0.0) + each.seconds
        lines.append(
            "  by kind: "
            + ", ".join(
                f"{kind} {seconds / whole:.0%}"
                for kind, seconds in sorted(kinds.items(), key=lambda item: -item[1])
            )
        )
        for each in sorted(self.layers, key=lambda each: -each.seconds)[:_SHOWN]:
            rate = f", {text(each.rate, 'FLOP/s')}" if each.flops else ""
            lines.append(f"  slow: {each.name}, {text(each.seconds, 's')}{rate}")
        return "\n".join(lines)


def time_network(
    network: Model | str,
    *,
    batch_size: int = 1,
    precision: str = "fp32",
    device: str = "cpu",
    repeat: int = 7,
    warm_up: int = 1,
) -> NetworkRun:
    """Run a network of the zoo on this machine, and time it: the whole, and each layer.

    PyTorch runs it layer by layer, as the zoo describes it, without compiling anything. Weights
    and samples are drawn by chance: a product takes as long with trained ones.

    Parameters
    ----------
    network
        A network with an input of a fixed size, such as `Models.ResNet50` or "ViT_B16".
    batch_size
        Samples in a run.
    precision
        Format of weights and activations: "fp32", "fp64", "bf16" or "fp16". In fp32 a GPU
        multiplies in fp32, not in tf32.
    device
        "cpu", or "gpu" for what PyTorch finds.
    repeat, warm_up
        Runs that count, and runs before.

    Raises
    ------
    MissingLibraryError
        If PyTorch is not installed; says what to do without it.
    UnsupportedLayerError
        If the network has a layer that this can't run; says which networks it runs.
    UnknownNameError, WrongKindError
        If there is no such network, format or device; a language model is no network.
    InvalidValueError
        If a count is no whole number from 1 up.
    NotMeasuredError
        If PyTorch sees no GPU.
    """
    found = resolve.network(network)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InvalidValueError(f"batch_size is a whole number from 1 up, not {batch_size!r}.")
    if precision not in TORCH:
        raise unknown_name("format that PyTorch runs networks in", precision, TORCH)
    if device not in ("cpu", "gpu"):
        raise unknown_name("kind of device to measure", device, ("cpu", "gpu"))
    torch = _torch()
    gpu = find_gpu(torch) if device == "gpu" else None
    where = gpu.backend if gpu else "cpu"
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if where == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(allow_tf32=False))
            torch.backends.cuda.matmul.allow_tf32 = False
        built = TorchNetwork(torch, found, where, getattr(torch, TORCH[precision]))
        sample = built.sample(batch_size)
        wait = gpu.module.synchronize if gpu else None
        timing = time_function(built.run, sample, repeat=repeat, warm_up=warm_up, wait=wait)
        seconds = _layer_seconds(built, sample, wait)
    layers = tuple(
        LayerTime(each.name, each.kind, *_counts(each, batch_size, precision), seconds[each.name])
        for each in found.operators
    )
    return NetworkRun(
        network=found.name,
        batch_size=batch_size,
        precision=precision,
        machine=_machine(torch, gpu),
        flops=sum(each.flops for each in layers),
        bytes_moved=sum(each.bytes_moved for each in layers),
        timing=timing,
        layers=layers,
    )


def _torch() -> Any:
    try:
        return need("torch", "running a network", "torch")
    except MissingLibraryError as error:
        raise MissingLibraryError(
            f"{error} On a laptop: pip install torch. Without it, time one layer as a product of "
            "matrices by time_function(np.matmul, a, b), or take measured kernels of others from "
            "mlsim.lab."
        ) from error


def _layer_seconds(built: TorchNetwork, sample: Any, wait: Any) -> Mapping[str, float]:
    """Return the median time of each step over a few runs."""
    times: dict[str, list[float]] = {step.name: [] for step in built.steps}
    for _ in range(LAYER_RUNS):
        last = perf_counter()

        def after(name: str) -> None:
            nonlocal last
            if wait:
                wait()
            now = perf_counter()
            times[name].append(now - last)
            last = now

        built.run(sample, after)
    return {name: median(each) for name, each in times.items()}


def _counts(operator: Operator, batch_size: int, precision: str) -> tuple[float, float]:
    """Return the FLOP and the bytes of a layer for the batch, as the solver counts them."""
    size, parameters = format_of(precision).bytes, operator.parameters
    weights = roofline.weight_bytes(size, parameters)
    moved = (operator.activations_read, operator.activations_written, batch_size)
    flops = roofline.flops(FLOPS_PER_MULTIPLY_ADD, operator.multiply_adds, batch_size)
    total = roofline.bytes_moved(weights, roofline.activation_bytes(size, *moved))
    return float(flops), float(total)


def _machine(torch: Any, gpu: Gpu | None) -> str:
    if gpu:
        return f"{gpu.name}, PyTorch {torch.__version__}"
    threads = torch.get_num_threads()
    named = f"{threads} thread{'s' if threads != 1 else ''}"
    return f"{this_machine().processor}, PyTorch {torch.__version__}, {named}"


# A machine with two cores that others used meanwhile, and what ran on one of them, and on both.
_SAMPLES = DATA / "project"


def sample_machine(cores: int = 2) -> Device:
    """Return the machine of the sample report, as `mlsim measure` found it: both cores, or one.

    Raises
    ------
    InvalidValueError
        If it is asked for another number of cores.

    >>> sample_machine(1).bandwidth_si < sample_machine(2).bandwidth_si
    True
    """
    both = load_device(_SAMPLES / "machine.toml")
    if cores not in (1, 2):
        raise InvalidValueError(f"the sample machine has 1 or 2 cores, not {cores!r}.")
    return both if cores == 2 else one_core(both)


def one_core(machine: Device) -> Device:
    """Return one core of a measured machine as a device: its own roof.

    Raises
    ------
    NotMeasuredError
        If one core was not measured by itself.
    """
    names = {"one_core.fp32": "fp32", "one_core.bandwidth": "memory bandwidth"}
    missing = [words for name, words in names.items() if name not in machine.figures]
    if missing:
        raise NotMeasuredError(
            f"{machine.name} has no {' and no '.join(missing)} of one core: run `mlsim measure` "
            "on a quieter machine, or with --accept-noisy."
        )
    figures = machine.figures
    return Device(
        f"{machine.name}, one core",
        peak_flops={
            name.removeprefix("one_core."): f"{each.si} FLOP/s"
            for name, each in figures.items()
            if name.startswith("one_core.") and each.base == "FLOP/s"
        },
        memory_bandwidth=f"{figures['one_core.bandwidth'].si} B/s",
        memory_capacity=f"{figures['memory.capacity'].si} B",
    )


def sample_run(name: str) -> NetworkRun:
    """Return a run on the sample machine.

    Raises
    ------
    UnknownNameError
        If there is none of that name; lists those there are.

    >>> sample_run("ResNet50-2").precision
    'fp32'
    """
    path = _SAMPLES / f"{name}.json"
    if not path.is_file():
        there = sorted(each.stem for each in _SAMPLES.glob("*.json"))
        raise unknown_name("sample run", name, there)
    return NetworkRun.load(path)
