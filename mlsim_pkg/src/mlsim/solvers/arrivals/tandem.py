"""Two stations one after the other: a pool that reads prompts, and schedulers that decode.

Prompts wait in one line. A copy that is free takes as many as a step has room for, as any
scheduler does; what is left of a long one it reads in its next step. Then the caches go, one after
another, to the devices that decode, whose steps hold nothing else.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mlsim.solvers.arrivals.lookup import chunk_time
from mlsim.solvers.arrivals.residents import Prompt, Run
from mlsim.solvers.arrivals.simulate import Service
from mlsim.solvers.arrivals.step_times import StepTimes
from mlsim.systems.schedulers import Scheduler
from mlsim.workloads.requests import Requests

# Time in s by the tokens of a prompt.
ByPrompt = Callable[[float], float]


@dataclass(slots=True)
class Reader:
    """A copy that reads prompts: when it is free, and the prompts that it has begun."""

    free: float = 0.0
    begun: deque[Prompt] = field(default_factory=deque)


@dataclass(slots=True)
class Station:
    """The copies that read prompts, first come first served.

    Attributes
    ----------
    requests, paths
        What is read; how long each is on its way to the line, in s.
    times, budget, limit
        How long steps take; most tokens, and most prompts, of one.
    sending
        How long it takes to send a prompt's cache so that it can be decoded.
    readers
        The copies.
    arrived, first, queued
        By request: when it came, when its first token was there, and how long it was in line.
    """

    requests: Requests
    paths: Sequence[float]
    times: StepTimes
    budget: int
    limit: int
    sending: ByPrompt
    readers: list[Reader]
    line: list[tuple[float, int]] = field(default_factory=list)
    arrived: list[float] = field(init=False)
    first: list[float] = field(init=False)
    queued: list[float] = field(init=False)

    def __post_init__(self) -> None:
        total = len(self.requests)
        self.arrived, self.first, self.queued = ([0.0] * total for _ in range(3))

    def ask(self, index: int, at: float) -> None:
        """Let a request set out at a time."""
        self.arrived[index] = at
        heapq.heappush(self.line, (at + self.paths[index], index))

    @property
    def next_start(self) -> float:
        """When the next step begins; never, if nothing is to be read."""
        return min(map(self._start, self.readers))

    def _start(self, reader: Reader) -> float:
        if reader.begun:
            return reader.free
        return max(reader.free, self.line[0][0]) if self.line else math.inf

    def step(self) -> list[tuple[float, int]]:
        """Take the next step; return when the caches of its prompts have come, and whose."""
        reader = min(self.readers, key=self._start)
        start = self._start(reader)
        duration, tokens, done = 0.0, 0, 0
        for each in self._taken(reader, start):
            chunk = min(each.length - each.done, self.budget - tokens)
            duration += chunk_time(self.times, chunk, each.done)
            each.done += chunk
            tokens += chunk
            done += each.done == each.length
        duration += self.times.together[tokens] + self.times.scores[done]
        reader.free = start + self.times.step(duration, tokens, len(reader.begun))
        return self._sent(reader)

    def _taken(self, reader: Reader, start: float) -> deque[Prompt]:
        """Return the prompts of a step: what is left of one, and whoever there is room for."""
        room = self.budget - sum(each.length - each.done for each in reader.begun)
        while room > 0 and len(reader.begun) < self.limit and self.line:
            if self.line[0][0] > start:
                break
            at, index = heapq.heappop(self.line)
            self.queued[index] = start - at
            prefix = self.requests.prefix_tokens
            known = 0 if prefix is None else int(prefix[index])
            length = int(self.requests.prompt_tokens[index])
            reader.begun.append(Prompt(index, length, known))
            room -= length - known
        return reader.begun

    def _sent(self, reader: Reader) -> list[tuple[float, int]]:
        """Send the caches of prompts that are read, one after another."""
        found, then = [], reader.free
        while reader.begun and reader.begun[0].done == reader.begun[0].length:
            each = reader.begun.popleft()
            self.first[each.index] = reader.free
            then += self.sending(float(each.length))
            found.append((then, each.index))
        return found


@dataclass(slots=True)
class _Decoding(Service):
    """A scheduler whose prompts were read elsewhere."""

    station: Station | None = None
    # Which requests of all are this copy's: every so-manieth.
    offset: int = 0
    copies: int = 1
    # Until when nothing can come that is not known yet.
    horizon: float = math.inf

    def begin(self) -> None:
        """Wait for the first cache."""
        total = len(self.requests)
        self.log = Run([0.0] * total, [-1.0] * total, [-1.0] * total)
        self.made = [0] * total

    @property
    def clock_time(self) -> float:
        """When this copy goes on: now, when the next cache comes, or never."""
        if self.waiting or self.reading or self.count:
            return self.now
        return max(self.now, self.coming[0][0]) if self.coming else math.inf

    def _mixed_step(self) -> None:
        """Let requests in whose caches have come: that takes no step."""
        while self.reading:
            self._start(self.reading.popleft())
        self._end()
        self._make_room()

    def _hold_back(self) -> bool:
        """Prompts are read elsewhere: none waits here for others."""
        return False

    def _next_event(self) -> float:
        """Stop a leap where a cache may come that is still to be read."""
        return min(Service._next_event(self), self.horizon)

    def _ask(self, then: float, index: int) -> None:
        """A user asks again: the prompt is read first."""
        assert self.station is not None
        self.station.ask(self.offset + index * self.copies, then)


def in_tandem(
    requests: Requests,
    times: StepTimes,
    scheduler: Scheduler,
    station: Station,
    *,
    copies: int,
) -> list[tuple[Requests, Run]]:
    """Run all requests through both stations; return what each copy that decodes did.

    Parameters
    ----------
    station
        The copies that read prompts, idle.
    copies
        Schedulers that decode.
    """
    total = len(requests)
    services = [
        _Decoding(
            requests.part(index, copies),
            times,
            scheduler,
            station=station,
            offset=index,
            copies=copies,
        )
        for index in range(copies)
    ]
    for each in services:
        each.begin()
        each.next_user = min(each.requests.users, len(each.requests))
    arrived = requests.arrived.tolist()
    for index in range(min(requests.users, total) if requests.users else total):
        station.ask(index, arrived[index])
    _run(station, services, feedback=requests.users > 0)
    return [
        (each.requests, _whole(each, station, slice(each.offset, None, copies)))
        for each in services
        if len(each.requests)
    ]


def _run(station: Station, services: Sequence[_Decoding], *, feedback: bool) -> None:
    """Let whoever is furthest behind go on, until all is done.

    Where nobody waits for an answer before asking, all prompts are read first: what decodes has
    no say in it.
    """

    def read() -> None:
        for ready, index in station.step():
            to = services[index % len(services)]
            heapq.heappush(to.coming, (ready, index // len(services)))

    while not feedback and station.next_start < math.inf:
        read()
    while True:
        clocks = sorted((each.clock_time, place) for place, each in enumerate(services))
        behind, place = clocks[0]
        start = station.next_start
        if min(behind, start) == math.inf:
            return
        if start <= behind:
            read()
            continue
        others = clocks[1][0] if feedback and len(clocks) > 1 else math.inf
        services[place].horizon = min(start, others)
        services[place].go_on()


def _whole(service: _Decoding, station: Station, own: slice) -> Run:
    """Return what a copy that decodes did, with what its requests saw before."""
    log = service.log
    return replace(
        log,
        arrived=station.arrived[own],
        first=station.first[own],
        waiting_time=log.waiting_time + math.fsum(station.queued[own]),
        tokens=round(log.tokens),
    )
