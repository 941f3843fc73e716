"""What the closed forms say of requests that arrive at random, or of users who wait."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from mlsim.equations import Equation, arrivals, equations_of, plan
from mlsim.equations.arrivals import users_rate
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.answer import Answer, Form, Row
from mlsim.solvers.arrivals.step_times import CHUNKS, StepTimes, between, chunk_time
from mlsim.solvers.question import Known, Question
from mlsim.systems.schedulers import Scheduler
from mlsim.values.attributes import count, result

if TYPE_CHECKING:
    from mlsim.solvers.arrivals.loaded import LoadedService

# What counts what a run has seen.
OBSERVED = ("observed_running_requests",)
# Times that a rate and a batch are tried until they agree.
ROUNDS = 200
ENOUGH = 1e-9
# Times that a range of rates is halved: to a ten-thousandth.
_HALVINGS = 14
# Batches, each a part of the next larger one, and numbers of prompts in a step that are tried for
# the rate that saturates.
_BATCHES, _FEWER, _BUNCHES = 5, 0.5**0.5, 3
FULL = 0.999


@lru_cache(maxsize=4)
def equations_for(*, users: bool, speculates: bool = False) -> tuple[Equation, ...]:
    """Choose one equation for each quantity: of users who wait, or of arrivals at random."""
    left_out = (
        "token_interval" if users else "closed_token_interval",
        "output_steps" if speculates else "output_rounds",
        *OBSERVED,
    )
    return tuple(each for each in equations_of(arrivals.ARRIVALS) if each.name not in left_out)


class Typical:
    """A service and a request of mean lengths, whose steps are looked up in the tables."""

    def __init__(
        self,
        times: StepTimes,
        prompt: float,
        output: float,
        rule: Scheduler,
        *,
        prefix: float = 0.0,
        shared: bool = True,
        alike: bool = False,
        call_time: float = 0.0,
        tokenizing_time: float = 0.0,
    ) -> None:
        limit = float(rule.running_limit)
        self.times, self.prompt, self.limit = times, prompt, limit
        self.mixed = rule.mixed
        # Tokens of a prompt that are cached, and those that are worked on.
        self.prefix, self.new = prefix, prompt - prefix
        self.context = prompt + output / 2
        self.known = Known().add("definition", tokens_per_step=1.0)
        if times.pace != 1:
            self.known.add("the draft and its acceptance", expected_tokens=times.pace)
        # Steps in which a request decodes.
        self.rounds = max(1.0, output / times.pace)
        self.known.add("mean of the requests", prompt_tokens=prompt, output_tokens=output)
        self.known.add("the scheduler", steps_ahead=float(rule.steps_ahead))
        self.known.add("the way of a request to its scheduler", call_time=call_time)
        self.known.add("the host, for each token of a text", tokenizing_time=tokenizing_time)
        # Where an answer's room is not kept for it, requests are half grown, on average.
        grown = prompt + output if rule.reserves_output else self.context
        most = self.fitting(grown)
        # Requests that grow, or differ, are more at one time and fewer at another: a mean is no
        # whole number. Of equal ones whose room is kept, the last that does not fit never runs.
        running = min(limit, float(int(most)) if rule.reserves_output and alike else most)
        # Steps that hold prompts as well have less room for those who decode.
        running = min(running, max(1.0, self.decoding)) if shared and rule.mixed else running
        words = "the scheduler, the cache, and the tokens of a step"
        self.known.add(words, running_limit=running)

    @property
    def decoding(self) -> float:
        """Most requests that decode where every step is full, and reads the prompts of all.

        A step's tokens are shared as those of a request are, between its answer and its prompt.
        """
        checked = self.rounds * self.times.width
        return self.budget * checked / (checked + self.new) / self.times.width

    def equations(self, *, users: bool) -> tuple[Equation, ...]:
        """Return the equations that hold: of users who wait, or of arrivals at random."""
        return equations_for(users=users, speculates=self.times.pace != 1)

    def fitting(self, tokens: float) -> float:
        """Requests of so many tokens for which there is cache, on average."""
        times = self.times
        each = between(times.memory, tokens / times.context_step)
        if not each:
            return self.limit
        alone = times.cache_room / each
        if not times.prefix_bytes or alone <= times.prefixes:
            return alone
        shared = times.cache_room - times.prefixes * times.prefix_bytes
        own = each - times.prefix_bytes
        return shared / own if own > 0 else self.limit

    def decode_step(self, running: float) -> float:
        """Time of a decode step of so many requests, a mean where they are no whole number."""
        some = max(1.0, running)
        return self.times.step(self._decoding(running), some * self.times.width, some)

    def _decoding(self, running: float) -> float:
        """Time of such a step on the device."""
        low = min(int(running), len(self.times.reading) - 2)
        ends = [self._whole_step(low + i) for i in (0, 1)]
        return ends[0] + (ends[1] - ends[0]) * (running - low)

    def _whole_step(self, running: int) -> float:
        if not running:
            # A request decodes alone where fewer than one runs on average.
            running = 1
        times = self.times
        reading = between(times.reading[running], self.context / times.context_step)
        checked = running * times.width
        return times.together[checked] + times.scores[checked] + reading

    def prompt_time(self, running: float, prompts: float) -> float:
        """Time that each of so many prompts adds to a step in which others decode."""
        times, count, some = self.times, max(1.0, prompts), max(1.0, running)
        checked = some * times.width
        # A step reads as many tokens as it has room for, beside those who decode.
        most = min(int(checked + self.room(running)), len(times.together) - 1)
        before = min(int(checked), most)
        tokens = min(int(checked + count * self.new), most)
        read = max(1, tokens - before) / self.new
        device = self._decoding(running)
        added = times.together[tokens] - times.together[before] + read * self.attention
        whole = times.step(device + added, tokens, some + read)
        return (whole - times.step(device, some * times.width, some)) / read

    @cached_property
    def attention(self) -> float:
        """Time of a prompt's own attention, whole."""
        longest = min((CHUNKS - 1) * self.times.chunk_step + 1, float(self.budget))
        done, taken = self.prefix, 0.0
        while done < self.prompt:
            chunk = min(longest, self.prompt - done)
            taken += chunk_time(self.times, chunk, done)
            done += chunk
        return taken

    @property
    def lone_prompt_time(self) -> float:
        """Time of the steps that read one prompt and nothing else."""
        return self.reading_time(1.0)

    def reading_time(self, prompts: float) -> float:
        """Time of the steps that read so many prompts and nothing else."""
        times, left, taken = self.times, prompts * self.new, 0.0
        while left > 0:
            part = min(left, self.budget)
            read = part / self.new
            device = times.together[int(part)] + read * self.attention
            taken += times.step(device, part, max(1.0, read))
            left -= self.budget
        ends = self.reading_steps(prompts)
        together = min(math.ceil(prompts / ends), len(times.scores) - 1)
        return taken + ends * times.scores[together]

    def reading_steps(self, prompts: float) -> float:
        """Steps at whose end so many prompts are read: of long ones, as many as there are."""
        return min(prompts, math.ceil(prompts * self.new / self.budget))

    def room(self, running: float) -> float:
        """Tokens of prompts that a step reads while so many decode."""
        return self.budget - running * self.times.width if self.mixed else float(self.budget)

    def steps_of_a_prompt(self, running: float) -> int:
        """Steps that it takes to read one prompt while so many decode."""
        return math.ceil(self.new / max(1.0, self.room(running)))

    @property
    def budget(self) -> int:
        """Most tokens of prompts that a step reads."""
        return len(self.times.together) - 1 - (len(self.times.reading) - 1) * self.times.width

    def saturating(self) -> Question:
        """Return what asks for the most requests a second that the service can answer.

        That is with as many running as may, or with fewer where longer steps cost more than they
        bring: those who all ask at once may run together by chance.
        """
        limit = self.known["running_limit"]
        asked = [self._full(max(min(1.0, limit), limit * _FEWER**part)) for part in range(_BATCHES)]
        return max(asked, key=lambda each: float(each.value("saturation_rate")))

    def _full(self, running: float) -> Question:
        """Return what asks for the rate of a service that always runs so many."""
        # Prompts come as those before them end, so many in each step, or more of them together.
        least = max(1.0, running / self.rounds)
        more = max(1.0, min(running, self.budget / self.new) / least)
        bunches = (least * more ** (part / _BUNCHES) for part in range(_BUNCHES + 1))
        words = f"{running:,.3g} requests at once, from the operators"
        full = Known().add(
            words,
            running_limit=running,
            full_step_time=self.decode_step(running),
            full_prompt_time=self._full_prompt(
                min(self.prompt_time(running, each) for each in bunches)
            ),
        )
        return Question(self.known.joined(full), self.equations(users=False), {})

    def _full_prompt(self, beside: float) -> float:
        """Time of a prompt in a full service: `beside` is what it adds to the steps of others.

        Where one request at a time has fewer decode steps than its prompt needs, the rest of the
        prompt is read in steps without anybody who decodes.
        """
        if not self.mixed or self.decoding >= 1:
            return beside
        room = self.rounds * max(0.0, self.room(1.0))
        share = min(1.0, room / self.new)
        return share * beside + (1 - share) * self.lone_prompt_time

    def at_rate(self, rate: float) -> Known:
        """Return what is known of arrivals at a rate, with the batch at which they settle.

        Raises
        ------
        InvalidValueError
            If the rate is beyond saturation; says what is not.
        """
        asked = self.saturating()
        most = asked.value("saturation_rate")
        if rate >= most:
            raise InvalidValueError(
                f"{rate:g} requests/s are more than one copy can serve: it saturates at "
                f"{most:.3g}/s, so the queue would grow without end. Use more copies "
                "(data_parallel), a lower rate, or burst= to see how long a queue takes."
            )
        running, interval, found = 0.0, 0.0, Known()
        for _ in range(ROUNDS):
            found = self._known(rate, running, interval)
            wanted = ("running_requests", "token_interval")
            values = plan(self.equations(users=False), found, wanted).run(dict(found))
            settled = min(values["running_requests"], found["running_limit"])
            near = abs(settled - running) <= ENOUGH * max(1.0, running)
            running, interval = (running + settled) / 2, (interval + values["token_interval"]) / 2
            if near:
                break
        names = ("running_limit", "full_step_time", "full_prompt_time")
        full = {name: asked.known[name] for name in names}
        return found.joined(Known().add(asked.origin("full_step_time"), **full))

    def _known(self, rate: float, running: float, interval: float) -> Known:
        step = self.decode_step(running)
        # Prompts never fill all the time below saturation; a round on the way might think so.
        each = min(self.prompt_time(running, rate * max(step, interval)), FULL / rate)
        words = f"{running:,.1f} requests that run, from the operators"
        known = self.known.joined(Known().add("given", arrival_rate=rate))
        known.add(words, decode_step_time=step, prompt_time=each)
        return known.add("one prompt alone", lone_prompt_time=self.lone_prompt_time)

    def users_rate(self, users: float, think_time: float) -> float:
        """Return the rate at which users ask who think before each request; 0 if that is too much.

        The longer their answers take, the less they ask.
        """
        low, high = 0.0, FULL * float(self.saturating().value("saturation_rate"))
        if self._asked(users, think_time, high) >= high:
            return 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self._asked(users, think_time, middle) > middle:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    def _asked(self, users: float, think_time: float, rate: float) -> float:
        """Requests a second of users whose answers take as long as at a rate."""
        known = self.at_rate(rate)
        found = plan(self.equations(users=False), known, ("request_latency",)).run(dict(known))
        return float(users_rate(users, think_time, found["request_latency"]))

    def with_users(self, users: float) -> Known:
        """Return what is known of users who wait for their answers."""
        running = min(users, self.known["running_limit"])
        known = self.known.joined(Known().add("given", users=running))
        words = f"{running:,.0f} requests that run, from the operators"
        prompts = running / self.rounds
        return known.add(
            words,
            decode_step_time=self.decode_step(running),
            prompt_time=self.prompt_time(running, prompts),
            burst_time=self.reading_time(running),
            burst_steps=self.reading_steps(running),
        )


# What the closed forms tell of arrivals at random, and of users who wait.
_AT_RATE = (
    *("steady_first_token", "token_interval", "request_latency"),
    *("running_requests", "saturation_rate", "saturation_share"),
)
_OF_USERS = ("token_interval", "burst_first_token")


class Steady(Answer):
    """What the closed forms say of the same load, each with its derivation."""

    noun, variable = "closed form", "loaded.steady"
    form = Form(
        rows=(
            Row(
                "",
                lambda steady: [
                    (each.replace("_", " "), term(each).text(float(steady.value(each))))
                    for each in steady.reported
                ],
            ),
        ),
        inputs={
            "copies": lambda steady: steady.loaded.copies,
            "left_out": lambda steady: steady.left_out or "",
        },
        label=20,
    )

    steady_first_token = result("Mean time to the first token, no queue counted.")
    token_interval = result("Mean time between two tokens of a request.")
    request_latency = result("Mean time from a request's arrival to its last token.")
    running_requests = count("Requests that run at one time, on average.")
    saturation_rate = count("Requests per second from which on the queue grows without end.")
    saturation_share = count("The rate of arrivals over it.")
    burst_first_token = result("Time to the first token where all users ask at once.")
    full_prompt_time = result("Time that a prompt adds to the steps of a full service.")

    def __init__(self, loaded: LoadedService) -> None:
        super().__init__()
        self.loaded = loaded
        # Whether requests come at a rate: one that is given, or that of users who think.
        self._at_rate = bool(loaded.rate)
        self._results: tuple[str, ...] = _AT_RATE
        # Results that don't hold of these requests, by name, each with the reason.
        self.left_out: dict[str, str] = {}
        copies = loaded.copies
        if loaded.rate:
            self._known = loaded.typical.at_rate(loaded.rate / copies)
        else:
            users = max(1.0, loaded.requests.users / copies)
            self._known = self._of_users(users, loaded.requests.think_time)
        self._leave_out(max(1.0, loaded.requests.users / copies))
        if loaded.service.switches.speculation:
            # The interval is that between rounds, of several tokens each.
            names = {"token_interval": "time_per_output_token"}
            self._results = tuple(names.get(each, each) for each in self._results)
        self.first = self._results[0] if self._results else ""

    def _of_users(self, users: float, think_time: float) -> Known:
        """Return what is known of users: of those who think, at the rate at which they ask."""
        typical = self.loaded.typical
        spread = think_time and not self.loaded.requests.in_step
        rate = typical.users_rate(users, think_time) if spread else 0.0
        if not rate:
            self._results = _OF_USERS
            return typical.with_users(users)
        self._at_rate = True
        return typical.at_rate(rate)

    def _leave_out(self, users: float) -> None:
        """Take away the results that rest on what is not so of these requests."""
        typical, rule = self.loaded.typical, self.loaded.scheduler
        if self._at_rate:
            running = float(self.question.value("running_requests"))
            steps = typical.steps_of_a_prompt(min(running, self._known["running_limit"]))
            if steps > 1:
                why = (
                    f"a prompt of {typical.new:,.0f} tokens takes {steps:,} steps of "
                    f"{rule.tokens_per_step:,} tokens, and the form knows one"
                )
                # How often users ask hangs on how long they wait.
                names = ("steady_first_token", "request_latency")
                self.left_out = dict.fromkeys(names if self.loaded.rate else _AT_RATE, why)
        else:
            if users > self._known["running_limit"]:
                why = f"{users:,.0f} users have no room at once"
                self.left_out["burst_first_token"] = why
            if self.loaded.requests.in_step:
                why = "the form is of users who are spread, and these ask in step"
                self.left_out["token_interval"] = why
        self._results = tuple(each for each in self._results if each not in self.left_out)

    @cached_property
    def question(self) -> Question:
        """What is asked, of one copy."""
        equations = self.loaded.typical.equations(users=not (self.loaded.rate or self._at_rate))
        return Question(self._known, equations, self.loaded.service.labels)

    @property
    def names(self) -> Collection[str]:
        """What can be asked for by name; of one copy, where there are several."""
        return (*self._results, *self._known)

    @property
    def reported(self) -> tuple[str, ...]:  # type: ignore[override]
        """The results that JSON has."""
        return self._results

    def _asked(self, name: str) -> tuple[Question, str]:
        if name in self.left_out:
            raise InvalidValueError(
                f"there is no closed form of {name} here: {self.left_out[name]}. The simulation "
                "has its result."
            )
        return super()._asked(name)

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        return f"closed forms of {self.loaded.requests.words}"

    def line(self) -> str:
        """Return the results in one line."""
        shown = (
            f"{_STEADY[name]} {term(name).text(float(self.value(name)))}"
            for name in self._results
            if name in _STEADY
        )
        return "; ".join(filter(None, (", ".join(shown), self.lacks)))

    @property
    def lacks(self) -> str:
        """What has no closed form here, and why, in words."""
        whys = dict.fromkeys(self.left_out.values())
        found = []
        for why in whys:
            names = [each for each in _STEADY if self.left_out.get(each) == why]
            found.append(f"none of {', '.join(_STEADY[each] for each in names)}: {why}")
        return "; ".join(found)


_STEADY = {
    "steady_first_token": "first token",
    "split_first_token": "first token",
    "burst_first_token": "first token of the opening burst",
    "token_interval": "per token",
    "time_per_output_token": "per token",
    "request_latency": "last token",
}
