"""Two stations one after the other: a pool that reads prompts, and schedulers that decode.

Prompts wait in one line for the next copy that is free, which reads them one by one. Then their
cache goes to the devices that decode, whose steps hold nothing else.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlsim.solvers.arrivals.simulate import Run, _Service
from mlsim.solvers.arrivals.step_times import StepTimes
from mlsim.systems.schedulers import Scheduler
from mlsim.workloads.requests import Requests

# Time in s by the tokens of a prompt.
ByPrompt = Callable[[float], float]


@dataclass(slots=True)
class Station:
    """The copies that read prompts, first come first served.

    Attributes
    ----------
    free
        When each copy has read all that it took.
    reading, sending
        How long it takes to read a prompt, and to send its cache so that it can be decoded.
    arrived, first
        By request: when it came, and when its first token was there.
    """

    free: list[float]
    reading: ByPrompt
    sending: ByPrompt
    arrived: list[float]
    first: list[float]

    def take(self, index: int, at: float, prompt: float) -> float:
        """Read a prompt, and return when its cache is where it is decoded."""
        start = max(at, heapq.heappop(self.free))
        done = start + self.reading(prompt)
        heapq.heappush(self.free, done)
        self.arrived[index], self.first[index] = at, done
        return done + self.sending(prompt)


@dataclass(slots=True)
class _Decoding(_Service):
    """A scheduler whose prompts were read elsewhere."""

    station: Station | None = None
    # Which requests of all are this copy's: every so-manieth.
    offset: int = 0
    copies: int = 1

    def begin(self, ready: Sequence[float]) -> None:
        """Let its first requests come when their caches are there."""
        total = len(self.requests)
        self.log = Run([0.0] * total, [-1.0] * total, [-1.0] * total)
        self.made = [0] * total
        self.next_user = len(ready)
        self.coming = [(time, index) for index, time in enumerate(ready)]
        heapq.heapify(self.coming)

    def _mixed_step(self) -> None:
        """Let requests in whose caches have come: that takes no step."""
        while self.reading:
            self._start(self.reading.popleft())
        self._end()
        self._make_room()

    def _hold_back(self) -> bool:
        """Prompts are read elsewhere: none waits here for others."""
        return False

    def _ask(self, then: float, index: int) -> None:
        """A user asks again: the prompt is read first."""
        prompt = float(self.requests.prompt_tokens[index])
        ready = self.station.take(self.offset + index * self.copies, then, prompt)  # type: ignore[union-attr]
        heapq.heappush(self.coming, (ready, index))


def in_tandem(
    requests: Requests,
    times: StepTimes,
    scheduler: Scheduler,
    *,
    readers: int,
    copies: int,
    reading: ByPrompt,
    sending: ByPrompt,
) -> list[tuple[Requests, Run]]:
    """Run all requests through both stations; return what each copy that decodes did.

    Parameters
    ----------
    readers, copies
        Prompts that are read at one time; schedulers that decode.
    reading, sending
        Times in s by the tokens of a prompt.
    """
    total = len(requests)
    station = Station([0.0] * readers, reading, sending, [0.0] * total, [0.0] * total)
    parts = [requests.part(index, copies) for index in range(copies)]
    services = [
        _Decoding(part, times, scheduler, station=station, offset=index, copies=copies)
        for index, part in enumerate(parts)
    ]
    opening = min(requests.users, total) if requests.users else total
    arrived, prompts = requests.arrived.tolist(), requests.prompt_tokens.tolist()
    ready = [station.take(index, arrived[index], prompts[index]) for index in range(opening)]
    for each in services:
        each.begin(ready[each.offset :: copies])
    at_work = [each for each in services if each.at_work]
    while at_work:
        # Whoever is furthest behind goes on, so that prompts come in order.
        min(at_work, key=_clock)._go_on()
        at_work = [each for each in at_work if each.at_work]
    return [
        (
            each.requests,
            replace(
                each.log,
                arrived=station.arrived[each.offset :: copies],
                first=station.first[each.offset :: copies],
                tokens=round(each.log.tokens),
            ),
        )
        for each in services
        if len(each.requests)
    ]


def _clock(service: _Decoding) -> float:
    """Return when a copy goes on: now, or when the next cache comes."""
    idle = not (service.waiting or service.reading or service.count)
    return max(service.now, service.coming[0][0]) if idle else service.now
