"""A step's operators as a sheet of lines, on which an assumption can be changed.

What `peers_llm.py` compares: a row of the grid, the question it asks of mlsim,
and mlsim's answer operator by operator.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mlsim import Engine, Hardware, Models, System, Transformer

MODELS = {
    "Llama-2-7B": "Llama2_7B",
    "Llama-3-8B": "Llama3_8B",
    "Llama-3-70B": "Llama3_70B",
    "Mixtral-8x7B": "Mixtral_8x7B",
}
DEVICES = {"A100-80GB": "A100", "H100": "H100"}
PREFILL, DECODE, WEIGHTS, BATCH, CACHE = "TTFT", "TPOT", "weights", "largest batch", "KV cache"
QUERIES = "queries, keys, values"
ATTENTION = "attention"
PROJECTION = "attention output"
UP = ("feed-forward, up", "experts, up")
DOWN = ("feed-forward, down", "experts, down")
OUTPUT = "output layer"
EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True)
class Line:
    """One operator on one device: its work, its traffic by kind, and time spent sending."""

    name: str
    kind: str
    repeats: float
    flops: float
    weights: float
    cache: float
    activations: float
    sent: float
    peak: float

    @property
    def bytes(self) -> float:
        """All traffic with the memory."""
        return self.weights + self.cache + self.activations

    def but(self, **changes: Any) -> Line:
        """Return it with some fields changed."""
        return dataclasses.replace(self, **changes)

    def share(self, part: float) -> Line:
        """Return a part of its work, traffic and sending."""
        return self.but(
            flops=self.flops * part,
            weights=self.weights * part,
            cache=self.cache * part,
            activations=self.activations * part,
            sent=self.sent * part,
        )


@dataclass(frozen=True)
class Sheet:
    """The operators of a step, and how their times add up."""

    lines: tuple[Line, ...]
    bandwidth: float
    extra: float = 0.0
    counts_memory: bool = True
    counts_compute: bool = True

    def time(self, line: Line) -> float:
        """Return the time of one operator: the longer of arithmetic and traffic, and sending."""
        compute = line.flops / line.peak if self.counts_compute else 0.0
        memory = line.bytes / self.bandwidth if self.counts_memory else 0.0
        return max(compute, memory) + line.sent

    @property
    def seconds(self) -> float:
        """Time of the step."""
        return sum(line.repeats * self.time(line) for line in self.lines) + self.extra

    def but(self, **changes: Any) -> Sheet:
        """Return it with some fields changed."""
        return dataclasses.replace(self, **changes)

    def change(self, names: str | Iterable[str], change: Callable[[Line], Line]) -> Sheet:
        """Return it with the lines of these names changed."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        return self.but(
            lines=tuple(change(line) if line.name in wanted else line for line in self.lines)
        )

    def add(self, *lines: Line) -> Sheet:
        """Return it with more lines."""
        return self.but(lines=(*self.lines, *lines))

    def line(self, *names: str) -> Line:
        """Return the first line that has one of these names."""
        return next(line for line in self.lines if line.name in names)


@dataclass(frozen=True)
class Row:
    """A row of the grid: what a tool was asked, and what it answered."""

    fields: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.fields[name]

    def number(self, name: str) -> float | None:
        """Return a number the tool gave, or None if it gave none."""
        return float(self.fields[name]) if self.fields[name] else None

    @property
    def tool(self) -> str:
        """The tool."""
        return self["tool"]

    @property
    def batch(self) -> int:
        """Sequences."""
        return int(self["batch"])

    @property
    def prompt(self) -> int:
        """Tokens of each prompt."""
        return int(self["prompt_tokens"])

    @property
    def context(self) -> int:
        """Tokens cached in the decode step that the tool was asked about."""
        return int(float(self["tpot_context_tokens"] or self.prompt + int(self["output_tokens"])))

    @property
    def tp(self) -> int:
        """Devices that share each matrix."""
        return int(self["tp"])

    @property
    def eight_bit(self) -> bool:
        """Whether weights, activations and cache are all asked for in 8 bits."""
        return self["precision"] in ("int8", "fp8")

    @property
    def flash(self) -> bool:
        """Whether the tool was asked for what it calls flash attention."""
        return "flashattention=True" in self["notes"]

    @property
    def model(self) -> Transformer:
        """The model, its context lengthened where the grid goes beyond it."""
        return _model(self["model"], self.prompt + int(self["output_tokens"]))

    @property
    def activation_bytes(self) -> float:
        """Bytes of one activation, as asked."""
        return 1.0 if self.eight_bit else 2.0

    @property
    def weight_bytes(self) -> float:
        """Bytes of one weight, as asked."""
        return 2.0 if self["precision"] == "bf16" else 1.0

    @property
    def peak(self) -> float:
        """The one peak that the tool used, FLOP/s; 0 if it gave none."""
        number, _, unit = self["peak_flops_used"].partition(" ")
        return float(number or 0) * (1e12 if unit else 1.0)

    @property
    def tokens(self) -> int:
        """Tokens of all prompts."""
        return self.batch * self.prompt

    def question(self) -> dict[str, Any]:
        """Return the arguments of `Engine.serve`, with the device's own figures as numbers."""
        device = getattr(Hardware.Cloud, DEVICES[self["gpu"]])
        asked: dict[str, Any] = {
            "model": self.model,
            "hardware": device if self.tp == 1 else _node(self["gpu"], self.tp),
            "batch_size": self.batch,
            "prompt_tokens": self.prompt,
            "output_tokens": int(self["output_tokens"]),
            "tensor_parallel": self.tp,
            "memory_bandwidth": device.bandwidth_si,
        }
        kind = self["precision"]
        if kind == "int8_weight_only":
            asked |= {"precision": "bf16", "weights": "int8"}
        elif kind in device.compute.figures:
            asked["precision"] = kind
        else:
            # What an A100 can do with FP8: keep it in memory, and compute in BF16.
            asked |= {"precision": kind, "activations": "bf16"}
        return asked


@functools.lru_cache(maxsize=64)
def _model(name: str, longest: int) -> Transformer:
    found = getattr(Models, MODELS[name])
    # A decode step makes one token more.
    return dataclasses.replace(found, context=max(found.context, longest + 1))


@functools.lru_cache(maxsize=8)
def _node(gpu: str, count: int) -> System:
    device = getattr(Hardware.Cloud, DEVICES[gpu])
    one_way = device.figures["links.nvlink"].si / 2
    return System(f"{count} x {gpu}", device, devices=count, link_bandwidth=f"{one_way} B/s")


UNITS = {
    "memory_bandwidth": "B/s",
    "memory_capacity": "B",
    "peak_flops": "FLOP/s",
    "bytes_per_parameter": "B/parameter",
    "weight_memory": "B",
}


def serve(asked: Mapping[str, Any]) -> Any:
    """Ask mlsim, with units set on what is given as a number."""
    return _serve(tuple(sorted(asked.items(), key=lambda item: item[0])))


@functools.lru_cache(maxsize=4096)
def _serve(items: tuple[tuple[str, Any], ...]) -> Any:
    asked = {name: f"{value!r} {UNITS[name]}" if name in UNITS else value for name, value in items}
    return Engine.serve(**asked, check_memory=False)


def sheet(row: Row, phase: str, asked: Mapping[str, Any]) -> Sheet:
    """Return mlsim's answer for a row, operator by operator."""
    return _sheet(phase, row.context, tuple(sorted(asked.items(), key=lambda item: item[0])))


@functools.lru_cache(maxsize=8192)
def _sheet(phase: str, context: int, items: tuple[tuple[str, Any], ...]) -> Sheet:
    serving = _serve(items)
    step = serving.prefill if phase == PREFILL else serving.decode_at(context)
    table = list(step.service.table)
    columns = {
        "flops": "flops",
        "weights": "weight_bytes",
        "cache": "cache_bytes",
        "activations": "activation_bytes",
        "peak": "peak_flops",
        "repeats": "repeats",
    }
    if any(operator.link_elements for operator in table):
        columns["sent"] = "network_time"
    values = {field: step.value(name) for field, name in columns.items()}
    lines = []
    for index, operator in enumerate(table):
        here = {
            field: float(value[index]) if getattr(value, "ndim", 0) else float(value)
            for field, value in values.items()
        }
        lines.append(Line(name=operator.name, kind=operator.kind, **{"sent": 0.0, **here}))
    return Sheet(tuple(lines), step.value("memory_bandwidth"))
