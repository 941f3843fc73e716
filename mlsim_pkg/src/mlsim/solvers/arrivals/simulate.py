"""A scheduler at work: step after step, which requests run, and when each has its tokens.

Nothing here is physics but the clock: how long a step takes comes from tables that the
equations filled. Between two events (a request comes, one ends, the cache is full) decode
steps are alike but for their growing context, so they are taken in one leap.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlsim.solvers.arrivals.step_times import StepTimes, between, chunk_time, inverse
from mlsim.systems.schedulers import Scheduler
from mlsim.workloads.requests import Requests

# Free part of the cache that a new request must leave: growth of those that run.
_SPARE = 0.01


@dataclass(slots=True)
class Log:
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
    log: Log = field(init=False)

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


# More steps than any run has.
_ALL = 2**62


def simulate(
    requests: Requests,
    times: StepTimes,
    scheduler: Scheduler,
    path: float | Sequence[float] = 0.0,
) -> Log:
    """Run all requests through one copy of a service.

    `path` is how long requests are on their way to the scheduler, in s: each, or all alike.
    """
    paths = [path] * len(requests) if isinstance(path, (int, float)) else path
    return Server(requests, times, scheduler, paths).run()


@dataclass(slots=True)
class Server(Residents):
    """The scheduler at work on its requests."""

    def run(self) -> Log:
        """Answer all requests, step after step."""
        requests = self.requests
        total = len(requests)
        self.log = Log([0.0] * total, [-1.0] * total, [-1.0] * total)
        self.made = [0] * total
        self._open(total)
        while self.at_work:
            self.go_on()
        self.log.tokens = round(self.log.tokens)
        return self.log

    @property
    def at_work(self) -> bool:
        """Whether requests are to come, or wait, or run; and whether somebody follows them."""
        if self.requests.followed and self.answered >= self.requests.followed:
            return False
        return bool(self.coming or self.waiting or self.reading or self.count)

    def go_on(self) -> None:
        """Take what has come, and a step."""
        if not (self.waiting or self.reading or self.count):
            self.now = self.made_up = max(self.now, self.coming[0][0])
        self._arrive()
        if self._prompts_go():
            self._mixed_step()
        elif self.count:
            self._decode()

    def _open(self, total: int) -> None:
        users = self.requests.users
        self.next_user = min(users, total) if users else total
        arrived = self.requests.arrived.tolist()
        path = self.path
        self.coming = [(arrived[index] + path[index], index) for index in range(self.next_user)]
        # Who came later may be there sooner: a long text is longer on its way.
        heapq.heapify(self.coming)

    def _arrive(self) -> None:
        if self.unseen and self.count and self.unseen < self.scheduler.poll_steps:
            return
        self.unseen = 0
        coming, prompts = self.coming, self.requests.prompt_tokens
        seen = self.made_up if self.scheduler.steps_ahead else self.now
        while coming and coming[0][0] <= seen:
            time, index = heapq.heappop(coming)
            self.log.arrived[index] = time - self.path[index] if self.path else time
            self.waiting.append((index, int(prompts[index])))

    # What may start.

    def _prompts_go(self) -> bool:
        """Take requests in, and tell whether a prompt can be worked on now."""
        budget = self.scheduler.tokens_per_step
        if self.scheduler.mixed:
            budget -= self.count * self.times.width
        room = budget - sum(each.length - each.done for each in self.reading)
        self.full = ""
        while self.waiting:
            self.full = self._holds(*self.waiting[0]) or ("" if room > 0 else "tokens_per_step")
            if self.full:
                break
            index, length = self.waiting.popleft()
            known = self._known(index)
            self.reading.append(Prompt(index, length, known))
            self.read += length
            self.promised += self._whole(index)
            room -= length - known
        return bool(self.reading) and budget > 0 and not self._hold_back()

    def _hold_back(self) -> bool:
        """Tell whether prompts wait for others, so that a step reads several."""
        rule = self.scheduler
        if not rule.wait_steps or not self.count:
            return False
        tokens = self.count * self.times.width + sum(
            each.length - each.done for each in self.reading
        )
        begun = any(each.done > self._known(each.index) for each in self.reading)
        if begun or tokens >= rule.wait_share * rule.tokens_per_step:
            self.waited = 0
        elif self.waited < rule.wait_steps:
            return True
        self.waited = 0
        return False

    # Steps.

    def _mixed_step(self) -> None:
        """Read prompts as far as the step has room for tokens; decode beside them, or not."""
        mixed = self.scheduler.mixed
        decoding = self.count if mixed else 0
        checked = decoding * self.times.width
        budget = self.scheduler.tokens_per_step - checked
        tokens, duration, read, done = checked, 0.0, 0, 0
        for each in self.reading:
            chunk = min(each.length - each.done, budget)
            if chunk <= 0:
                break
            duration += chunk_time(self.times, chunk, each.done)
            each.done += chunk
            budget -= chunk
            tokens += chunk
            read += 1
            done += each.done == each.length
        if decoding:
            duration += self._reading(decoding, self.cached / decoding)
        duration += (
            self.times.together[tokens]
            + self.times.scores[min(checked + done, len(self.times.scores) - 1)]
        )
        self._pass(self.times.step(duration, tokens, decoding + read), 1)
        self.unseen = 0
        if decoding:
            self._advance(1)
        while self.reading and self.reading[0].done == self.reading[0].length:
            self._start(self.reading.popleft())
        self._end()
        self._make_room()

    def _start(self, prompt: Prompt) -> None:
        """A prompt is read: its request has a token, and decodes from now on."""
        index = prompt.index
        self.read -= prompt.length
        if self.log.first[index] < 0:
            self.log.first[index] = self.now
        self.made[index] += 1
        self.log.tokens += 1
        left = int(self.requests.output_tokens[index]) - self.made[index]
        rounds, pace = self._rounds(left)
        heapq.heappush(self.ends, (self.clock + rounds, index))
        self.began[index] = (self.clock, pace)
        self.growth += pace
        self.count += 1
        self.cached += prompt.length

    def _rounds(self, left: int) -> tuple[int, float]:
        """Steps in which so many tokens are made, and how many in each: whole steps, all alike."""
        if self.times.pace == 1:
            return left, 1
        rounds = math.ceil(left / self.times.pace)
        return rounds, left / max(1, rounds)

    def _decode(self) -> None:
        """Take decode steps up to the next event."""
        steps = self.ends[0][0] - self.clock
        context, pace = self.cached / self.count, self.growth / self.count
        steps = max(1, min(steps, self._until_full(context, pace), self._until_look()))
        checked = self.count * self.times.width
        fixed = self.times.together[checked] + self.times.scores[checked]
        then = self._next_event()
        # Whoever comes now could start.
        free = not self.waiting and self.count < self.scheduler.running_limit
        if then < math.inf and free:
            left = then - self.now
            first = self._decoding(fixed, context)
            guess = min(steps, int(left / first) + 1)
            mean = self._decoding(fixed, context + guess / 2 * pace)
            steps = max(1, min(steps, int(left / mean) + 1))
        each = self._decoding(fixed, context + (steps - 1) / 2 * pace)
        self.unseen += steps
        self.waited += steps if self.reading else 0
        self._pass(each * steps, steps)
        self._advance(steps)
        self._end()
        self._make_room()

    def _next_event(self) -> float:
        """When the next request comes; never, if all have."""
        return self.coming[0][0] if self.coming else math.inf

    def _until_look(self) -> int:
        """Steps until the scheduler looks for requests, or until prompts no longer wait."""
        rule = self.scheduler
        if self.reading:
            # Whoever comes may fill the step for which the others wait.
            return 1 if self.coming else max(1, rule.wait_steps - self.waited)
        return rule.poll_steps - self.unseen % rule.poll_steps if rule.poll_steps > 1 else _ALL

    def _pass(self, duration: float, steps: int) -> None:
        self.now += duration
        self.made_up = self.now - duration / steps
        log = self.log
        log.busy += duration
        log.steps += steps
        log.running_time += duration * (self.count + len(self.reading))
        if self.waiting:
            waited = duration * len(self.waiting)
            log.waiting_time += waited
            log.held[self.full] = log.held.get(self.full, 0.0) + waited

    def _end(self) -> None:
        """Let those go who have all their tokens; a user asks again."""
        while self.ends and self.ends[0][0] <= self.clock:
            _, index = heapq.heappop(self.ends)
            if index not in self.began:
                continue
            self.growth -= self.began.pop(index)[1]
            self.count -= 1
            whole = self._whole(index)
            # The last token is not cached: nothing comes after it.
            self.cached -= whole - 1
            self.promised -= whole
            self.log.finished[index] = self.now
            self.answered += 1
            if self.requests.followed and self.answered == self.requests.settled:
                self.log.begin(self.now)
            if self.requests.users and self.next_user < len(self.requests):
                self._ask(self.now + self.requests.pause(self.next_user), self.next_user)
                self.next_user += 1

    def _ask(self, then: float, index: int) -> None:
        """Let a request set out at a time."""
        heapq.heappush(self.coming, (then + self.path[index], index))

    # Times, from the tables.

    def _reading(self, sequences: int, context: float) -> float:
        return between(self.times.reading[sequences], context / self.times.context_step)

    def _decoding(self, fixed: float, context: float) -> float:
        device = fixed + self._reading(self.count, context)
        return self.times.step(device, self.count * self.times.width, self.count)
