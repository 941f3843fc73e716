"""A scheduler at work: step after step, which requests run, and when each has its tokens.

Nothing here is physics but the clock: how long a step takes comes from tables that the
equations filled. Between two events (a request comes, one ends, the cache is full) decode
steps are alike but for their growing context, so they are taken in one leap.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlsim.solvers.arrivals.lookup import between, chunk_time
from mlsim.solvers.arrivals.residents import Prompt, Residents, Run
from mlsim.solvers.arrivals.step_times import StepTimes
from mlsim.systems.schedulers import Scheduler
from mlsim.workloads.requests import Requests

# More steps than any run has.
_ALL = 2**62


def simulate(
    requests: Requests,
    times: StepTimes,
    scheduler: Scheduler,
    path: float | Sequence[float] = 0.0,
) -> Run:
    """Run all requests through one copy of a service.

    `path` is how long requests are on their way to the scheduler, in s: each, or all alike.
    """
    paths = [path] * len(requests) if isinstance(path, (int, float)) else path
    return Service(requests, times, scheduler, paths).run()


@dataclass(slots=True)
class Service(Residents):
    """The scheduler at work on its requests."""

    def run(self) -> Run:
        """Answer all requests, step after step."""
        requests = self.requests
        total = len(requests)
        self.log = Run([0.0] * total, [-1.0] * total, [-1.0] * total)
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
            duration += self._reading_prompt(chunk, each.done)
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
        if then < math.inf and not self._blocked():
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

    def _blocked(self) -> bool:
        """Tell whether one who comes now could not start."""
        return bool(self.waiting) or self.count >= self.scheduler.running_limit

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

    def _reading_prompt(self, chunk: int, context: int) -> float:
        return chunk_time(self.times, chunk, context)
