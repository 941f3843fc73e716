"""PyTorch's trace (Kineto): kernels, copies, exchanges and launches on a line of time.

A trace has no counters, unless CUPTI's range profiler ran: then it has counters, and its times
are those of replays and no times of kernels. Events are read one by one: a file of 200 MB needs no
more memory than its longest event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any, NoReturn

from mlsim.errors import DataFileError
from mlsim.profiling.joining import Timeline, is_exchange
from mlsim.profiling.measured_profile import MeasuredKernel, MeasuredProfile
from mlsim.profiling.read.ncu_counts import Launch, kernel_of
from mlsim.profiling.read.nsight_systems import direction
from mlsim.profiling.read.operators import Operator, operators_of
from mlsim.profiling.read.tables import LONGEST_LINE, Source, known

_EVENTS = re.compile(r'\A\s*\[|"traceEvents"\s*:\s*\[')
_LETTER = re.compile(r"\S")


def _no_constant(name: str) -> None:
    """Read NaN and Infinity, which are no JSON and yet stand in traces, as no value."""


_DECODER = json.JSONDecoder(parse_constant=_no_constant, strict=False)


def _next(text: str, place: int) -> int:
    """Return where the next sign that is no space stands, or the end."""
    found = _LETTER.search(text, place)
    return found.start() if found else len(text)


class Events:
    """The events of a trace; once they are read, `about` has what stands beside them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.about: dict[str, Any] = {}
        self.count = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        pieces = self.source.text()
        buffer, bare = self._begin(pieces)
        place, first = 0, True
        while True:
            place = _next(buffer, place)
            if place >= len(buffer):
                buffer, place = self._more(buffer, place, pieces), 0
                continue
            if buffer[place] == "]":
                break
            if not first:
                if buffer[place] != ",":
                    self._refuse("two events have no comma between them")
                place = _next(buffer, place + 1)
            try:
                event, end = _DECODER.raw_decode(buffer, place)
            except RecursionError:
                self._refuse("an event is nested too deeply")
            except ValueError as error:
                start = place if first else buffer.rindex(",", 0, place + 1)
                if len(buffer) - place > LONGEST_LINE:
                    self._refuse(f"it is no JSON ({error})")
                buffer, place = self._more(buffer, start, pieces, error), 0
                continue
            if not isinstance(event, dict):
                self._refuse(f"{event!r:.40} stands where an event should")
            self.count += 1
            place, first = end, False
            yield event
        rest = buffer[place + 1 :]
        for piece in pieces:
            rest += piece
            if len(rest) > 4 * LONGEST_LINE:
                self._refuse("too much stands behind its events")
        rest = rest.strip()
        if bare and rest:
            self._refuse("something stands behind its events")
        self._keep("{}" if bare or rest == "}" else "{" + rest.removeprefix(","))

    def _begin(self, pieces: Iterator[str]) -> tuple[str, bool]:
        """Return the text from the first event on, and whether nothing stands before it."""
        text = ""
        for piece in pieces:
            text += piece
            if begin := _EVENTS.search(text):
                before = text[: begin.start()].rstrip().rstrip(",")
                self._keep(before + "}" if before else "{}")
                return text[begin.end() :], not before
            if len(text) > 4 * LONGEST_LINE:
                break
        self._refuse_other(text)
        return self._refuse("it has no traceEvents")

    def _refuse_other(self, text: str) -> None:
        """Refuse whole JSON that is no trace: nothing is wrong with it but its kind."""
        try:
            found = _DECODER.decode(text.strip())
        except (ValueError, RecursionError):
            return
        names = ", ".join(str(each) for each in found)[:120] if found else "nothing"
        raise DataFileError(
            f"{self.source.path}: this JSON has {names}, and no traceEvents, so it is no trace of "
            "PyTorch. Write one: profiler.export_chrome_trace(FILE)"
        )

    def _more(
        self, buffer: str, place: int, pieces: Iterator[str], error: Exception | None = None
    ) -> str:
        """Return the rest of the text with another piece."""
        piece = next((each for each in pieces if each), None)
        if piece is None:
            why = f" ({error})" if error else ""
            self._refuse(f"the file ends within its events{why}")
        return buffer[place:] + piece

    def _keep(self, text: str) -> None:
        try:
            found = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            self._refuse(f"what stands beside its events is no JSON ({error})")
        if isinstance(found, dict):
            self.about |= found

    def _refuse(self, why: str) -> NoReturn:
        raise DataFileError(
            f"{self.source.path}: the trace is damaged or cut off: {why}, after {self.count:,} "
            "events. Export it again: profiler.export_chrome_trace(FILE)"
        )


MISSING = {
    "flops": "a PyTorch trace counts no operations of kernels. Join it with a file of Nsight "
    "Compute, or record shapes (record_shapes=True) and see `operators`",
    "dram": "a PyTorch trace counts no bytes. Join it with a file of Nsight Compute",
}
_REPLAY = (
    "the range profiler runs kernels several times, and its durations are no times of kernels. "
    "Join it with a trace without counters"
)
_GPU_COPIES = ("gpu_memcpy", "gpu_memset", "Memcpy", "Memset")
_RUNTIMES = ("cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "privateuse1_runtime")
_WANTED = frozenset(
    {"kernel", "Kernel", *_GPU_COPIES, *_RUNTIMES, "cuda_profiler_range", "cpu_op", "Operator"}
)
_SIZES: Mapping[str, int] = known("torch")["sizes"]
_COLLECTIVE = re.compile(r"^(?:nccl|gloo|mpi|ucc|hccl):(?P<name>\w+)")
_MOST_EVENTS = 8_000_000


def is_trace(start: str) -> bool:
    """Whether a text begins as a trace does, and not as the JSON of perf."""
    if start[:1] not in ("{", "[") or '"counter-value"' in start:
        return False
    return start[0] == "{" or '"traceEvents"' in start or '"ph"' in start


class _Found(Timeline):
    """Events sorted by what they are."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.path)
        self.operators = list[Operator]()
        # Time of the kernels that an operator started, by its identity.
        self.owners = dict[Any, float]()
        self.ranges = 0
        self.base: float | None = None


def read(source: Source) -> MeasuredProfile:
    """Read a trace.

    Raises
    ------
    DataFileError
        If it is damaged, or has neither kernels nor operators nor exchanges.
    """
    events, found = Events(source), _Found(source)
    for event in events:
        if events.count > _MOST_EVENTS:
            raise DataFileError(
                f"{source.path}: more than {_MOST_EVENTS:,} events. Profile fewer steps, by a "
                "schedule: mlsim profile-command SCRIPT --tool torch"
            )
        if event.get("ph") == "X":
            _take(event, found, source, events.count)
    return _profile(source, events.about, found)


def _number(event: dict[str, Any], key: str, source: Source, count: int) -> float:
    value = event.get(key)
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e18:
        raise DataFileError(
            f"{source.path}: event {count:,} has the {key} {event.get(key)!r}, which is no number."
        )
    if key == "dur" and value < 0:
        raise DataFileError(f"{source.path}: event {count:,} ends before it begins.")
    return float(value)


def _take(event: dict[str, Any], found: _Found, source: Source, number: int) -> None:
    """Sort one event with a duration by what it is."""
    category, name = str(event.get("cat", "")), str(event.get("name", ""))
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    if category not in _WANTED and not _COLLECTIVE.match(name):
        return
    moment = _number(event, "ts", source, number)
    # Microseconds since 1970 leave no digits for nanoseconds: count from the first event.
    found.base = moment if found.base is None else found.base
    start = (moment - found.base) * 1e-6
    seconds = _number(event, "dur", source, number) * 1e-6
    interval = (start, start + seconds)
    if category in ("kernel", "Kernel"):
        _kernel(name, args, interval, seconds, found)
    elif category in _GPU_COPIES:
        size = args.get("bytes")
        counted = isinstance(size, (int, float)) and not isinstance(size, bool)
        found.busy(*interval, _device(args), kernel=False)
        found.copy(direction(name), seconds, float(size or 0) if counted else 0.0)
    elif category in _RUNTIMES:
        if "Launch" in name:
            found.called(args.get("correlation"), start, seconds)
    elif category == "cuda_profiler_range":
        found.ranges += 1
        found.add(_range(name, args, source))
    elif category in ("cpu_op", "Operator"):
        place = (event.get("pid"), event.get("tid"))
        found.operators.append(Operator.of(name, place, interval, args))
    elif _COLLECTIVE.match(name) and category != "gpu_user_annotation":
        # Of a host, with the bytes of its first input.
        dims, types = args.get("Input Dims"), args.get("Input type")
        size = _SIZES.get(str(types[0]).lower(), 0) if isinstance(types, list) and types else 0
        sides = dims[0] if isinstance(dims, list) and dims and isinstance(dims[0], list) else [0]
        count = prod(each if isinstance(each, (int, float)) else 0 for each in sides)
        found.exchange(name, seconds, float(count * size))


def _device(args: dict[str, Any]) -> int:
    device = args.get("device", 0)
    return device if isinstance(device, int) else 0


def _kernel(
    name: str, args: dict[str, Any], interval: tuple[float, float], seconds: float, found: _Found
) -> None:
    exchange = is_exchange(name)
    found.busy(*interval, _device(args), kernel=not exchange)
    if exchange:
        count, size = args.get("In msg nelems"), _SIZES.get(str(args.get("dtype", "")).lower(), 0)
        moved = float(count) * size if isinstance(count, (int, float)) else 0.0
        found.exchange(str(args.get("Collective name") or name), seconds, moved)
    facts: dict[str, Any] = {
        key: f"({', '.join(str(each) for each in args[key])})"
        for key in ("grid", "block")
        if isinstance(args.get(key), list)
    }
    if "est. achieved occupancy %" in args:
        facts["occupancy"] = args["est. achieved occupancy %"]
    found.began(args.get("correlation"), interval[0])
    sources = {"seconds": "dur of the event"}
    found.add(MeasuredKernel(name, 1, seconds, sources=sources, missing=MISSING, facts=facts))
    owner = args.get("External id")
    if owner is not None:
        found.owners[owner] = found.owners.get(owner, 0.0) + seconds


def _range(name: str, args: dict[str, Any], source: Source) -> MeasuredKernel:
    """Return the counters of a range as those of a kernel."""
    launch = Launch(name, "", "", "", str(source.path))
    for metric, value in args.items():
        if "__" in metric and isinstance(value, (int, float)) and not isinstance(value, bool):
            if value < 0:
                raise DataFileError(f"{source.path}: {metric} is {value}, and can't be negative.")
            kind = "B" if "bytes" in metric else ("s" if "time" in metric else "1")
            scale = 1e-9 if kind == "s" else 1.0
            launch.metrics[metric] = (float(value) * scale, kind)
    kernel = kernel_of(launch)
    return replace(kernel, seconds=None, missing={**kernel.missing, "seconds": _REPLAY})


def _profile(source: Source, about: dict[str, Any], found: _Found) -> MeasuredProfile:
    properties = about.get("deviceProperties")
    first = properties[0] if isinstance(properties, list) and properties else {}
    first = first if isinstance(first, dict) else {}
    notes = []
    if found.ranges:
        notes.append(f"Counters of {found.ranges:,} ranges: {_REPLAY}.")
    summed = found.kernels()
    if not summed:
        notes.append("There is no kernel of a GPU in the trace; operators of the CPU are shown.")
    operators = operators_of(found.operators, found.owners, gpu=bool(summed))
    kernels = summed or operators
    if not kernels and not found.exchanges:
        raise DataFileError(
            f"{source.path}: the trace has neither kernels nor operators. Profile with "
            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
        )
    major, minor = first.get("computeMajor"), first.get("computeMinor")
    return found.profile(
        "PyTorch trace",
        kernels,
        device_name=str(first.get("name", "")),
        device_facts={"compute capability": f"{major}.{minor}"} if isinstance(major, int) else {},
        operators=operators,
        notes=tuple(notes),
    )
