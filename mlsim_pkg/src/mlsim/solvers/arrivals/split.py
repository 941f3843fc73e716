"""A service under load whose prompts are read by a pool of devices of their own."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from mlsim.equations import Equation, arrivals, arrivals as physics, equations_of, plan
from mlsim.errors import InvalidValueError
from mlsim.hardware.kernel_constants import Loan
from mlsim.solvers.arrivals.loaded import LoadedService
from mlsim.solvers.arrivals.simulate import Log, Prompt, Server
from mlsim.solvers.arrivals.steady import OBSERVED, Steady, Typical
from mlsim.solvers.arrivals.step_times import StepTimes, chunk_time, step_times
from mlsim.solvers.calibrated import farthest
from mlsim.solvers.question import Known, Question
from mlsim.solvers.serving.split import Pools, transfer_bytes
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
class Decoder(Server):
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
        self.log = Log([0.0] * total, [-1.0] * total, [-1.0] * total)
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
        return min(Server._next_event(self), self.horizon)

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
) -> list[tuple[Requests, Log]]:
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
        Decoder(
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


def _run(station: Station, services: Sequence[Decoder], *, feedback: bool) -> None:
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


def _whole(service: Decoder, station: Station, own: slice) -> Log:
    """Return what a copy that decodes did, with what its requests saw before."""
    log = service.log
    return replace(
        log,
        arrived=station.arrived[own],
        first=station.first[own],
        waiting_time=log.waiting_time + math.fsum(station.queued[own]),
        tokens=round(log.tokens),
    )


# Lengths of prompts at which times are computed; between them they are interpolated.
_LENGTHS = 65
# Times that a rate and the prompts of a step are tried until they agree.
_ROUNDS = 60
_ENOUGH = 1e-6
# How far from a number of prompts a step's time is looked up for what each adds.
_NEAR = 1.5


class Reading:
    """How a copy reads the prompts of some requests, its steps looked up in tables."""

    def __init__(self, times: StepTimes, requests: Requests, rule: Scheduler) -> None:
        self.times, self.requests, self.rule = times, requests, rule
        self._mean = self._typical(requests.mean_prompt)

    def _typical(self, prompt: float) -> Typical:
        prefix = self.requests.prefix_share * prompt
        return Typical(self.times, prompt, 1.0, self.rule, prefix=prefix, shared=False)

    @cached_property
    def limit(self) -> int:
        """Most prompts of one step, whatever their tokens: by rule, and by the cache."""
        return int(max(1.0, self._mean.known["running_limit"]))

    @cached_property
    def step_prompts(self) -> float:
        """Prompts of mean length for which a step has room; one that is longer takes several."""
        return max(1.0, min(float(self.limit), self._mean.budget / self._mean.new))

    @cached_property
    def beside(self) -> float:
        """Prompts' worth of tokens that a full step reads beside a prompt that it ends.

        Long prompts are cut where a step is full, so a prompt ends anywhere in one. Of prompts
        that are all alike it is as many as fit, where they fill a step without a rest.
        """
        new = self.requests.prompt_tokens
        prefix = self.requests.prefix_tokens
        new = new if prefix is None else new - prefix
        same = math.gcd(int(new[0]), self._mean.budget) if (new == new[0]).all() else 1
        return min(float(self.limit - 1), (self._mean.budget - same) / self._mean.new)

    @cached_property
    def lengths(self) -> Any:
        """Lengths of prompts, over all that there are."""
        import numpy as np

        prompts = self.requests.prompt_tokens
        return np.unique(np.rint(np.linspace(prompts.min(), prompts.max(), _LENGTHS)))

    @cached_property
    def alone(self) -> Any:
        """Time to read one prompt of each of these lengths alone."""
        import numpy as np

        return np.array([self._typical(float(each)).lone_prompt_time for each in self.lengths])

    @cached_property
    def _each(self) -> Any:
        """Time to read the prompt of each request alone."""
        import numpy as np

        return np.interp(self.requests.prompt_tokens, self.lengths, self.alone)

    @cached_property
    def mean(self) -> float:
        """Mean time to read a prompt alone."""
        return float(self._each.mean())

    def together(self, prompts: float) -> float:
        """Time to read so many prompts and nothing else, a mean where they are no whole number."""
        low = int(prompts)
        ends = [self._mean.reading_time(float(low + i)) for i in (0, 1)]
        whole = ends[0] + (ends[1] - ends[0]) * (prompts - low)
        return whole * self.mean / self._mean.lone_prompt_time

    @cached_property
    def packed(self) -> float:
        """Time of a full step for each of its prompts."""
        return self.together(self.step_prompts) / self.step_prompts

    def further(self, prompts: float) -> float:
        """Time that each prompt adds to a step of about so many."""
        fewer, more = max(1.0, prompts / _NEAR), max(2.0, prompts * _NEAR)
        several = self.together(more) - self.together(fewer)
        return min(max(several / (more - fewer), 0.0), self.packed)

    @property
    def known(self) -> Known:
        """What the closed forms need of a copy, whatever the rate."""
        found = Known()
        found.add("mean of the requests' prompts, each alone", lone_prompt_time=self.mean)
        found.add(
            "the room of a step, and of the cache",
            step_prompts=self.step_prompts,
            beside_limit=self.beside,
        )
        found.add("a full step", packed_prompt_time=self.packed)
        return found.add("of the requests' prompts", service_variance=float(self._each.var()))

    def at_rate(self, rate: float, copies: float) -> Known:
        """Return what is known at a rate below saturation, with the steps at which it settles."""
        prompts, found = 1.0, self.known
        found.add("given", pool_arrival_rate=rate)
        found.add("prompts that are read at one time", prefill_copies=copies)
        for _ in range(_ROUNDS):
            words = f"steps of {prompts:.3g} prompts, from the operators"
            found.add(words, prompts_together=prompts, prompts_time=self.together(prompts))
            found.add(words, prompt_time=self.further(prompts))
            values = plan(equations_of(arrivals.PROMPT_LINES), found, ("prompts_beside",)).run(
                dict(found)
            )
            settled = max(1.0, 1.0 + values["prompts_beside"])
            if abs(settled - prompts) <= _ENOUGH * prompts:
                break
            prompts = (prompts + settled) / 2
        return found

    def by_prompt(self, values: Any) -> Callable[[float], float]:
        """Return what looks up a value by the tokens of a prompt, of values at the lengths."""
        import numpy as np

        found: dict[float, float] = {}

        def at(prompt: float) -> float:
            if prompt not in found:
                found[prompt] = float(np.interp(prompt, self.lengths, values))
            return found[prompt]

        return at


_STEADY = (
    *("split_first_token", "prompt_wait", "time_per_output_token", "token_interval"),
    *("request_latency", "running_requests"),
)
_RATES = ("prefill_rate", "transfer_rate", "decode_rate")
# Of the pools what one batch of prompts after another comes to, and of arrivals what a prompt
# adds to the steps of others.
_LEFT_OUT = ("decode_rate", "serial_transfer_time", "layered_transfer_time")
_OF_ONE_POOL = (
    *("token_interval", "closed_token_interval", "interval_variance", "met_interval"),
    *("steady_first_token", "request_latency", "interval_per_token", *OBSERVED),
)


class _Decoding(Typical):
    """A request of mean lengths on devices that only decode: prompts take none of their time."""

    def prompt_time(self, running: float, prompts: float) -> float:
        """Time that a prompt adds to a step: none."""
        return 0.0

    @property
    def lone_prompt_time(self) -> float:
        """Time of a step that reads one prompt: there is none."""
        return 0.0


class SplitLoadedService(LoadedService):
    """The answer for two pools under load: as `LoadedService`, for both together.

    Prompts wait in one line for the next copy that is free, which takes as many as its step has
    room for. The links are taken to be free of other steps' caches.
    `steady` has the closed forms of arrivals at random.

    >>> from mlsim import Engine
    >>> from mlsim.systems import PrefillPool
    >>> loaded = Engine.load(
    ...     model="Llama3_8B", hardware="HGX_H100", rate=5, prompt_tokens=2048,
    ...     prefill=PrefillPool(),
    ... )
    >>> loaded.time_to_first_token < loaded.time_to_first_token_p90
    True
    """

    noun = "loaded service in two pools"

    def __init__(
        self, pools: Pools, requests: Requests, scheduler: Scheduler, rate: float | None = None
    ) -> None:
        self.pools = pools
        super().__init__(pools.decode, requests, scheduler, rate)

    @property
    def loans(self) -> tuple[Loan, ...]:
        """Constants that were measured on other devices, of either pool."""
        return farthest((*self.pools.prefill.loans, *super().loans))

    def _calibrated(self) -> SplitLoadedService:
        asked = self.pools.calibrated_as(self.scheduler.software)
        return SplitLoadedService(asked, self.requests, self.scheduler)

    def _closed_forms(self) -> Steady | None:
        if not self.rate:
            return None
        most = self.rate_of("split_rate")
        if self.rate >= most:
            parts = {name: self.rate_of(name) for name in _RATES}
            least = min(parts, key=lambda name: parts[name]).removesuffix("_rate")
            advice = {
                "prefill": "more copies in PrefillPool(copies=...)",
                "transfer": "a faster link between the pools",
                "decode": "more copies (data_parallel)",
            }[least]
            raise InvalidValueError(
                f"{self.rate:g} requests/s are more than both pools can serve: {least} saturates "
                f"at {most:.3g}/s, so the queue would grow without end. Use {advice}, a lower "
                "rate, or burst= to see how long a queue takes."
            )
        return SplitSteady(self)

    @cached_property
    def runs(self) -> list[tuple[Requests, Log]]:
        """What each copy that decodes was sent, and what it did."""
        return in_tandem(
            self.requests, self.times, self.scheduler, self.station, copies=self.copies
        )

    @property
    def _simulated(self) -> str:
        return (
            f"a simulation of {len(self.requests):,} requests, read by {self.readers} and "
            f"decoded by {self.scheduler.name}'s scheduler ({self.scheduler.source})"
        )

    @property
    def _saturation(self) -> Known:
        return Known().add("closed form, both pools", saturation_rate=self.rate_of("split_rate"))

    @property
    def title(self) -> str:
        """What is asked how it does, in words."""
        return self.pools.title

    @property
    def readers(self) -> int:
        """Steps that read prompts at one time: on each copy, and in each stage of a pipeline."""
        layout = self.pools.prefill.parallelism
        return self.pools.pool.copies * layout.data * layout.pipeline

    @cached_property
    def reading(self) -> Reading:
        """One copy that reads these prompts."""
        rule = self.scheduler.on(self.pools.prefill.device)
        times = step_times(
            self.pools.prefill,
            running=rule.running_limit,
            tokens=rule.tokens_per_step,
            longest=int(self.requests.prompt_tokens.max()),
            prompt=self.requests.mean_prompt,
        )
        return Reading(times, self.requests, rule)

    @cached_property
    def typical(self) -> Typical:
        """One copy that decodes, and a request of the mean lengths."""
        return self._typical(_Decoding, shared=False)

    @property
    def station(self) -> Station:
        """The copies that read prompts, idle."""
        return Station(
            self.requests,
            self.paths(self.requests),
            self.reading.times,
            self.reading.rule.tokens_per_step,
            self.reading.limit,
            self.sending,
            [Reader() for _ in range(self.readers)],
        )

    @cached_property
    def sending(self) -> Callable[[float], float]:
        """Time that a prompt's cache is waited for."""
        import numpy as np

        lengths = self.reading.lengths
        known = self.pools.known
        size = transfer_bytes(replace(self.service, prompt_tokens=lengths, batch_size=1.0))
        known.add("the caches of prompts", transfer_bytes=size, prefill_batch=1.0)
        known.add("prompts of these lengths", time_to_first_token=self.reading.alone)
        wanted = "exposed_transfer_time"
        sent = plan(self.pools.equations, known, (wanted,)).run(dict(known))[wanted]
        return self.reading.by_prompt(np.broadcast_to(sent, lengths.shape))

    @cached_property
    def known(self) -> Known:
        """What the closed forms need of both pools, whatever the rate."""
        reading = self.reading
        found = self.pools.known.joined(reading.known)
        sent = [self.sending(float(each)) for each in self.requests.prompt_tokens]
        words = "mean of the requests' prompts"
        found.add("prompts that are read at one time", prefill_copies=float(self.readers))
        found.add("a full step", prefill_batch=reading.step_prompts)
        found.add("a full step", prefill_interval=reading.together(reading.step_prompts))
        found.add(words, exposed_transfer_time=sum(sent) / len(sent))
        size = transfer_bytes(
            replace(self.service, prompt_tokens=self.requests.mean_prompt, batch_size=1.0)
        )
        found.add("the cache of a prompt of mean length", transfer_bytes=float(size))
        most = self.typical.saturating()
        all_copies = float(most.value("saturation_rate")) * self.copies
        return found.add("closed form, all copies that decode", decode_rate=all_copies)

    def rate_of(self, name: str) -> float:
        """Return one of the rates at which pools and link are full."""
        return float(Question(self.known, self.equations, {}).value(name))

    @property
    def equations(self) -> tuple[Equation, ...]:
        """One equation for each quantity of two pools under load."""
        of_pools = [each for each in equations_of(physics.POOLS) if each.name not in _LEFT_OUT]
        own = (*of_pools, *equations_of(arrivals.PROMPT_LINES))
        rest = self.typical.equations(users=False)
        return (*own, *(each for each in rest if each.name not in _OF_ONE_POOL))


class SplitSteady(Steady):
    """What the closed forms say of two pools under the same load."""

    loaded: SplitLoadedService

    def __init__(self, loaded: SplitLoadedService) -> None:
        super().__init__(loaded)
        pool = loaded.reading.at_rate(float(loaded.rate or 0.0), float(loaded.readers))
        self._known = self._known.joined(loaded.known).joined(pool)
        self._results = _STEADY
        self.first = self._results[0]

    def _leave_out(self, users: float) -> None:
        """Take nothing away: prompts are read elsewhere, in steps of their own."""

    @cached_property
    def question(self) -> Question:
        """What is asked, of one copy that decodes."""
        return Question(self._known, self.loaded.equations, self.loaded.service.labels)
