"""The requests of one copy: which wait and which run, and whether the cache has room for them."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlsim.solvers.arrivals.lookup import between, inverse
from mlsim.solvers.arrivals.step_times import StepTimes
from mlsim.systems.schedulers import Scheduler
from mlsim.workloads.requests import Requests

# Free part of the cache that a new request must leave: growth of those that run.
_SPARE = 0.01


@dataclass(slots=True)
class Run:
    """What happened to each request, and what the service did meanwhile.

    Attributes
    ----------
    arrived, first, finished
        Times in s, by request: it came, had its first token, had its last.
    busy, running_time, waiting_time
        Seconds in steps; request-seconds of running, and of waiting to start.
    tokens, steps, stopped
        Tokens generated; steps; requests that were stopped and computed again.
    held
        Request-seconds of waiting to start, by what had no room: `running_limit`, `cache` or
        `tokens_per_step`.
    began
        When seconds and tokens began to count, where that was not the start: then as many had been
        answered as come before the service is in its usual state.
    """

    arrived: list[float]
    first: list[float]
    finished: list[float]
    busy: float = 0.0
    running_time: float = 0.0
    waiting_time: float = 0.0
    tokens: float = 0
    steps: int = 0
    stopped: int = 0
    held: dict[str, float] = field(default_factory=dict)
    began: float | None = None

    def begin(self, now: float) -> None:
        """Count anew from now on."""
        self.began = now
        self.busy = self.running_time = self.waiting_time = self.tokens = 0.0
        self.held.clear()


@dataclass(slots=True)
class Prompt:
    """A request whose prompt is read, and how far."""

    index: int
    length: int
    done: int = 0


@dataclass(slots=True)
class Residents:
    """Requests of one copy that come, wait and run, between two steps, and their cache."""

    requests: Requests
    times: StepTimes
    scheduler: Scheduler
    path: Sequence[float] = ()
    now: float = 0.0
    # Decode steps so far: a request with n tokens left ends n steps later.
    clock: int = 0
    # Requests to come, by time; those that wait; those whose prompts are read.
    coming: list[tuple[float, int]] = field(default_factory=list)
    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    reading: deque[Prompt] = field(default_factory=deque)
    # Those that decode: when they end, by clock; in the order in which they began, with the
    # tokens that each makes in a step.
    ends: list[tuple[int, int]] = field(default_factory=list)
    began: dict[int, tuple[int, float]] = field(default_factory=dict)
    count: int = 0
    # Tokens that all of them make in a step.
    growth: float = 0
    # Tokens cached by those that decode, by those that are read, and at most at their ends.
    cached: float = 0
    read: int = 0
    promised: int = 0
    made: list[int] = field(default_factory=list)
    next_user: int = 0
    answered: int = 0
    # Decode steps since the last look at what arrived; steps for which prompts wait.
    unseen: int = 0
    waited: int = 0
    # When the step that comes next was made up: while the last one began, or now.
    made_up: float = 0.0
    # What has no room for the first of those who wait.
    full: str = ""
    log: Run = field(init=False)

    def _known(self, index: int) -> int:
        """Tokens of a request's prompt that are in the cache before it is read."""
        prefix = self.requests.prefix_tokens
        return 0 if prefix is None else int(prefix[index])

    def _whole(self, index: int) -> int:
        """Tokens of a request at its end."""
        return int(self.requests.prompt_tokens[index]) + int(self.requests.output_tokens[index])

    def _holds(self, index: int, length: int) -> str:
        """Return what has no room for a request beside those that run; nothing if it may start."""
        others = self.count + len(self.reading)
        if others >= self.scheduler.running_limit:
            return "running_limit"
        if not others:
            return ""
        sequences = others + 1
        if self.scheduler.reserves_output:
            taken = self._taken(self.promised + self._whole(index), sequences)
            return "cache" if taken > self.times.cache_room else ""
        taken = self._taken(self.cached + self.read + length, sequences)
        return "cache" if taken > self.times.cache_room * (1 - _SPARE) else ""

    def _taken(self, tokens: float, sequences: int) -> float:
        """Bytes of cache of sequences with so many tokens together, half a block each spare."""
        if not sequences:
            return 0.0
        mean = tokens / sequences + self.scheduler.block_tokens / 2
        alone = sequences * between(self.times.memory, mean / self.times.context_step)
        return alone - self.times.saved(sequences)

    def _until_full(self, context: float, pace: float) -> int:
        """Steps until the cache is full, were all to go on."""
        each = (self.times.cache_room + self.times.saved(self.count)) / self.count
        most = inverse(self.times.memory, each) * self.times.context_step
        return max(0, int((most - context - self.scheduler.block_tokens / 2) / pace))

    def _advance(self, steps: int) -> None:
        self.clock += steps
        self.cached += steps * self.growth
        self.log.tokens += steps * self.growth

    def _make_room(self) -> None:
        """Stop the latest while the cache is full; they are computed again."""
        while self.count > 1:
            sequences = self.count + len(self.reading)
            taken = self._taken(self.cached + self.read + self.growth, sequences)
            if taken <= self.times.cache_room:
                return
            index, (began, pace) = self.began.popitem()
            # A part of a token that it was ahead of is made again.
            made = (self.clock - began) * pace
            whole = round(made)
            self.log.tokens += whole - made
            self.made[index] += whole
            self.growth -= pace
            self.count -= 1
            length = int(self.requests.prompt_tokens[index]) + self.made[index]
            self.cached -= length - 1 - whole + made
            self.promised -= self._whole(index)
            self.ends = [each for each in self.ends if each[1] != index]
            heapq.heapify(self.ends)
            self.waiting.appendleft((index, length))
            self.log.stopped += 1
