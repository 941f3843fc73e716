"""A service under load: what its users wait for, and when it saturates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from mlsim.equations import arrivals
from mlsim.equations.arrivals import path_time
from mlsim.errors import InvalidValueError, WrongKindError, unknown_name
from mlsim.solvers.answer import Answer, Form, Pairs, Row, noted, seconds
from mlsim.solvers.arrivals.simulate import Log, simulate
from mlsim.solvers.arrivals.steady import Steady, Typical
from mlsim.solvers.arrivals.step_times import StepTimes, step_times
from mlsim.solvers.question import Known, Question, of_context
from mlsim.solvers.serving.service import Service
from mlsim.systems.schedulers import Scheduler
from mlsim.values.attributes import count, result
from mlsim.workloads.requests import Requests


def one_arrival(given: Mapping[str, Any]) -> str:
    """Return which of several ways of arriving is given.

    Raises
    ------
    WrongKindError
        If none is, or several are.
    """
    found = [name for name, value in given.items() if value is not None]
    if len(found) == 1:
        return found[0]
    ways = ", ".join(given)
    have = "none" if not found else " and ".join(found)
    raise WrongKindError(f"requests arrive in one way: give one of {ways}; given is {have}.")


PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
TIMES = ("time_to_first_token", "time_per_output_token", "request_latency")


def each_request(runs: Sequence[tuple[Requests, Log]]) -> dict[str, Any]:
    """Return the times of each request that counts, as arrays in s, by name."""
    import numpy as np

    columns = (np.concatenate(column) for column in zip(*map(_times, runs), strict=True))
    return {name: values[~np.isnan(values)] for name, values in zip(TIMES, columns, strict=True)}


def results(runs: Sequence[tuple[Requests, Log]]) -> dict[str, float]:
    """Return the results of one or several copies, in base units, by name."""
    import numpy as np

    found: dict[str, float] = {}
    for name, known in each_request(runs).items():
        if not len(known):
            continue
        found[name] = float(known.mean())
        for key, share in PERCENTILES.items():
            found[f"{name}_{key}"] = float(np.quantile(known, share))
    return found | _rates([run for _, run in runs])


def binding(runs: Sequence[tuple[Requests, Log]], first_token: float) -> list[str]:
    """Return what held requests back for a tenth of the mean wait for a token, the longest first.

    Of `running_limit`, `tokens_per_step` and `cache`, whatever had no room for those who waited.
    """
    held: dict[str, float] = {}
    for _, run in runs:
        for name, waited in run.held.items():
            held[name] = held.get(name, 0.0) + waited
    least = _WORTH_A_WORD * first_token * sum(_answered(run) for _, run in runs)
    return sorted((name for name in held if held[name] >= least), key=lambda each: -held[each])


def _times(pair: tuple[Requests, Log]) -> tuple[Any, Any, Any]:
    """Return the times of those requests of one copy that count."""
    import numpy as np

    requests, run = pair
    counted = slice(requests.settled, None)
    arrived, first, ended = (
        np.array(each)[counted] for each in (run.arrived, run.first, run.finished)
    )
    steps = arrivals.output_steps(requests.output_tokens[counted].astype(float), 1.0)
    # Of those whom nobody follows to their end, what is seen counts.
    first, ended = (np.where(each < 0, np.nan, each) for each in (first, ended))
    with np.errstate(divide="ignore", invalid="ignore"):
        # One token alone has no time between tokens.
        between = np.where(steps > 0, (ended - first) / steps, np.nan)
    return first - arrived, between, ended - arrived


def _rates(runs: Sequence[Log]) -> dict[str, float]:
    """Return what the service did as a whole, from its first request to its last token.

    Of users who go on asking: from when it was in its usual state until nobody follows any more,
    the mean of its copies.
    """
    answered = float(sum(map(_answered, runs)))
    begun = [run.began for run in runs if run.began is not None]
    if len(begun) == len(runs):
        lasted = (sum(max(run.finished) for run in runs) - sum(begun)) / len(runs)
    else:
        lasted = max(max(run.finished) for run in runs) - min(min(run.arrived) for run in runs)
    return {
        "answered_requests": answered,
        "run_span": lasted,
        "request_rate": arrivals.request_rate(answered, lasted),
        "output_throughput": arrivals.request_rate(sum(run.tokens for run in runs), lasted),
        "running_requests": arrivals.observed_running_requests(
            sum(run.running_time for run in runs), lasted
        ),
        "waiting_requests": arrivals.waiting_requests(
            sum(run.waiting_time for run in runs), lasted
        ),
        "server_use": arrivals.server_use(sum(run.busy for run in runs) / len(runs), lasted),
    }


def _answered(run: Log) -> int:
    """Return how many were answered in the time that counts."""
    since = -1.0 if run.began is None else run.began
    return sum(each > since for each in run.finished)


_RATES = ("request_rate", "output_throughput", "running_requests", "waiting_requests")
# Times the closed form's first token from which a queue is worth a word.
_SEVERAL = 3.0
# What binds for this part of the mean wait for a token is worth a word.
_WORTH_A_WORD = 0.1
RESULTS = (
    *TIMES,
    *(f"{name}_{key}" for name in TIMES for key in PERCENTILES),
    *_RATES,
    "server_use",
    "answered_requests",
    "run_span",
    "saturation_rate",
)


_WORDS = {
    "time_to_first_token": "first token",
    "time_per_output_token": "per token",
    "request_latency": "last token",
}


def _lengths(loaded: LoadedService) -> str:
    asked = loaded.requests
    means = f"{asked.mean_prompt:,.0f} prompt + {asked.mean_output:,.0f} output tokens, on average"
    return f"{means}{', ' if asked.lengths else ''}{asked.lengths}"


def _program(loaded: LoadedService) -> str:
    program = loaded.service.software
    return f"{program.name} ({program.key})" if program else ""


def _times_of(loaded: LoadedService) -> Pairs:
    """Return a row for each time that there is: its mean, and percentiles."""
    rows = []
    for name, words in _WORDS.items():
        if name in loaded.question.known:
            parts = [(f"{name}_{key}", f"P{key[1:]} ") for key in PERCENTILES]
            shares = (f"{label}{seconds(loaded.value(part))}" for part, label in parts)
            rows.append((words, f"{seconds(loaded.value(name))} on average, {', '.join(shares)}"))
    return rows + [("memory", words) for _, words in loaded.service.known.guessed_memory()]


def _rates_of(loaded: LoadedService) -> Pairs:
    """Return the rows of what the service did, and of what held requests back."""
    value = loaded.value
    running = (
        f"{value('running_requests'):,.1f} on average, {value('waiting_requests'):,.1f} waiting, "
        f"at work {value('server_use'):.0%} of the time"
    )
    answers = f"{value('request_rate'):.3g} requests/s, {value('output_throughput'):,.0f} token/s"
    limits = [("" if at else "limit", words) for at, words in enumerate(loaded.held_back)]
    return [("answers", answers), ("running", running), *limits]


_FORM = Form(
    lambda loaded: loaded.title,
    (
        Row("arrivals", lambda loaded: f"{loaded.requests.words}, {loaded.scheduler.name}"),
        Row("requests", _lengths),
        Row("program", _program),
        Row("", lambda loaded: [*loaded.service.switches.words().items()]),
        Row("", noted),
        Row("", _times_of),
        Row(
            "",
            lambda loaded: [("memory", each) for _, each in loaded.service.known.guessed_memory()],
        ),
        Row("", _rates_of),
        Row("queue", lambda loaded: loaded.queueing),
        Row(
            "stopped",
            lambda loaded: (
                f"{loaded.stopped:,} times, since the cache was full" if loaded.stopped else ""
            ),
        ),
        Row("saturates", lambda loaded: f"at {loaded.value('saturation_rate'):.3g} requests/s"),
        Row("closed form", lambda loaded: loaded.steady.line() if loaded.steady else ""),
    ),
    inputs={
        "model": lambda loaded: loaded.service.model.name,
        "hardware": lambda loaded: loaded.service.hardware_name,
        "estimate": lambda loaded: loaded.service.estimate,
        "formats": lambda loaded: loaded.service.formats.name,
        "scheduler": lambda loaded: loaded.scheduler.key,
        "running_limit": lambda loaded: loaded.scheduler.running_limit,
        "tokens_per_step": lambda loaded: loaded.scheduler.tokens_per_step,
        "software": lambda loaded: getattr(loaded.service.software, "key", ""),
        "arrivals": lambda loaded: loaded.requests.words,
        "lengths": lambda loaded: loaded.requests.lengths,
        "prompt_tokens": lambda loaded: {"mean": loaded.requests.mean_prompt, "unit": "token"},
        "output_tokens": lambda loaded: {"mean": loaded.requests.mean_output, "unit": "token"},
        "switched_on": lambda loaded: loaded.service.switches.words() or "",
        "closed_form": lambda loaded: loaded.steady.to_dict() if loaded.steady else None,
    },
    label=14,
    width=120,
)


class LoadedService(Answer):
    """The answer for a service under load: times of its users, rates, where it saturates.

    Results come from a run of the scheduler, step by step; `steady` has those of the closed
    forms, with their derivation. Percentiles of times are results too.

    >>> from mlsim import Engine
    >>> loaded = Engine.load(model="Llama3_8B", hardware="H100", rate=5)
    >>> loaded.time_to_first_token < loaded.time_to_first_token_p90
    True
    """

    noun, variable, first = "loaded service", "loaded", "time_to_first_token"
    form = _FORM
    # The rest would take another simulation.
    main: ClassVar[Mapping[str, str]] = {"saturation_rate": "saturates at {} requests/s"}

    def __init__(
        self,
        service: Service,
        requests: Requests,
        scheduler: Scheduler,
        rate: float | None = None,
    ) -> None:
        super().__init__(service)
        self.service, self.requests, self.scheduler = service, requests, scheduler
        # Requests per second, or None where they don't come at a rate.
        self.rate = rate
        # Refuses a rate beyond saturation before any step is taken.
        self.steady = self._closed_forms() if rate or requests.users else None

    def _closed_forms(self) -> Steady | None:
        return Steady(self)

    @property
    def copies(self) -> int:
        """Schedulers that share the requests: copies, and batches in flight in a pipeline."""
        parallelism = self.service.parallelism
        return parallelism.data * parallelism.pipeline

    def of_software(self, name: str) -> float:
        """Return what the program adds to the way of a request, 0 if no program is asked of."""
        made_by = self.service.software
        return made_by.value(name) if made_by else 0.0

    def paths(self, requests: Requests) -> list[float]:
        """Return how long each of some requests is on its way to the scheduler, in s."""
        call, token = self.of_software("call_time"), self.of_software("tokenizing_time")
        found: list[float] = path_time(call, requests.prompt_tokens, token).tolist()
        return found

    @cached_property
    def times(self) -> StepTimes:
        """How long steps take."""
        whole = self.requests.prompt_tokens + self.requests.output_tokens
        longest, model = int(whole.max()), self.service.model
        if longest > model.context:
            raise InvalidValueError(
                f"a request of {longest:,} tokens (prompt and output) is longer than the context "
                f"of {model.name}, {model.context:,}. Shorten it; a distribution with an end, "
                'such as "uniform 100 900", has no long tail.'
            )
        return step_times(
            self.service,
            running=self.scheduler.running_limit,
            tokens=self.scheduler.tokens_per_step,
            longest=longest,
            prompt=self.requests.mean_prompt,
            shortest=int(self.requests.prompt_tokens.min()),
        )

    @cached_property
    def typical(self) -> Typical:
        """One copy and a request of the mean lengths."""
        return self._typical(Typical, prefix=self.requests.mean_prefix)

    def _typical(self, kind: type[Typical], **changed: Any) -> Typical:
        asked = self.requests
        return kind(
            self.times,
            asked.mean_prompt,
            asked.mean_output,
            self.scheduler,
            alike=asked.alike,
            call_time=self.of_software("call_time"),
            tokenizing_time=self.of_software("tokenizing_time"),
            **changed,
        )

    @cached_property
    def runs(self) -> list[tuple[Requests, Log]]:
        """What each copy was sent, and what it did."""
        parts = [self.requests.part(index, self.copies) for index in range(self.copies)]
        return [
            (each, simulate(each, self.times, self.scheduler, self.paths(each)))
            for each in parts
            if len(each)
        ]

    def each_request(self, name: str) -> Any:
        """Return a time of each request that counts, as an array in s: what a mean hides.

        Parameters
        ----------
        name
            "time_to_first_token", "time_per_output_token" or "request_latency".

        Raises
        ------
        UnknownNameError
            If it is none of these.

        >>> from mlsim import Engine
        >>> loaded = Engine.load(model="Llama3_8B", hardware="H100", rate=10, requests=200)
        >>> float(loaded.each_request("request_latency").mean()) == loaded.value("request_latency")
        True
        """
        found = each_request(self.runs)
        if name not in found:
            raise unknown_name("time of a request", name, found)
        return found[name]

    @property
    def stopped(self) -> int:
        """How often a request was stopped because the cache was full, and computed again."""
        return sum(run.stopped for _, run in self.runs)

    @property
    def held_back(self) -> tuple[str, ...]:
        """Each limit that holds requests back, in words, the one that does so longest first."""
        rule, typical = self.scheduler, self.typical
        held = binding(self.runs, self.value("time_to_first_token"))
        steps = typical.steps_of_a_prompt(0.0)
        long = steps > 1 and "tokens_per_step" in (*rule.limited, *held)
        found = []
        for name in dict.fromkeys((*held, *(["tokens_per_step"] if long else []))):
            also = ["others wait"] if name in held else []
            if name == "tokens_per_step" and long:
                also.insert(0, f"a prompt of {typical.new:,.0f} takes {steps:,} or more")
            given = name in rule.limited
            whose = "as given" if given else f"the default of {rule.name} on this device"
            limit = _LIMITS[name].format(f"{getattr(rule, name, 0):,}", whose)
            found.append("; ".join((limit, *also)))
        return tuple(found)

    @property
    def queueing(self) -> str:
        """That requests queue far longer than the closed form tells; nothing where they don't."""
        closed = "steady_first_token"
        if self.steady is None or self.steady.first != closed:
            return ""
        times = self.value("time_to_first_token") / self.steady.value(closed)
        if times < _SEVERAL:
            return ""
        return (
            f"requests queue: their first token takes {times:.1f} times as long as in the closed "
            "form, which leaves the queue out"
        )

    @cached_property
    def question(self) -> Question:
        """What was found: each result with the run that it comes from."""
        known = Known().add(self._simulated, **results(self.runs))
        return Question(known.joined(self._saturation), (), self.service.labels)

    @property
    def _simulated(self) -> str:
        many = self.requests.followed or len(self.requests)
        return (
            f"a simulation of {many:,} requests on {self.scheduler.name}'s "
            f"scheduler ({self.scheduler.source}), "
            f"{sum(run.steps for _, run in self.runs):,} steps"
        )

    @property
    def _saturation(self) -> Known:
        most = float(self.typical.saturating().value("saturation_rate"))
        return Known().add("closed form, all copies", saturation_rate=most * self.copies)

    def _value(self, name: str) -> Any:
        # Nothing has to be simulated for it.
        return self._saturation[name] if name == "saturation_rate" else super()._value(name)

    @property
    def names(self) -> Collection[str]:
        """What can be asked for by name."""
        return tuple(self.question.known)

    def _asked(self, name: str) -> tuple[Question, str]:
        if name in RESULTS and name not in self.question.known:
            raise InvalidValueError(
                f"there is no {name}: each request has one output token, so nothing lies "
                "between two. Give output_tokens of 2 or more."
            )
        return super()._asked(name)

    @property
    def reported(self) -> tuple[str, ...]:  # type: ignore[override]
        """The results that JSON has."""
        return tuple(name for name in RESULTS if name in self.question.known)

    time_to_first_token = result("Mean time from a request's arrival to its first token.")
    time_to_first_token_p50 = result("Its median.")
    time_to_first_token_p90 = result("What nine in ten requests stay below.")
    time_to_first_token_p99 = result("What 99 in a hundred requests stay below.")
    time_per_output_token = result("Mean over requests of the mean time between their tokens.")
    time_per_output_token_p50 = result("Its median.")
    time_per_output_token_p90 = result("What nine in ten requests stay below.")
    time_per_output_token_p99 = result("What 99 in a hundred requests stay below.")
    request_latency = result("Mean time from a request's arrival to its last token.")
    request_latency_p50 = result("Its median.")
    request_latency_p90 = result("What nine in ten requests stay below.")
    request_latency_p99 = result("What 99 in a hundred requests stay below.")
    request_rate = count("Requests answered per second.")
    answered_requests = count("Requests that were answered.")
    output_throughput = count("New tokens per second of all users together.")
    running_requests = count("Requests that run at one time, on average.")
    waiting_requests = count("Requests that wait at one time, on average.")
    server_use = count("Part of the time in which a step runs.")
    saturation_rate = count("Requests per second from which on the queue grows without end.")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What nobody asked for, and changes the answer by a tenth, in words."""
        longest = float((self.requests.prompt_tokens + self.requests.output_tokens).max())
        found = (*self.service.assumptions, *of_context(self.service.model, longest))
        return tuple(dict.fromkeys(found))

    def _calibrated(self) -> LoadedService:
        asked = self.service.calibrated_as(self.scheduler.software)
        # At no rate: what it saturates at is asked, and a rate beyond it would be refused.
        return LoadedService(asked, self.requests, self.scheduler)

    @property
    def title(self) -> str:
        """What is asked how it does, in words."""
        return self.service.title

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        return f"{self.title}: {self.requests.words}, {self.scheduler.name}"


# What may hold requests back, in words: a limit of the scheduler, and whose it is.
_LIMITS = {
    "running_limit": ("{} requests at most run at one time on a copy, {} (running_limit)"),
    "tokens_per_step": ("a step of a copy works on {} tokens at most, {} (tokens_per_step)"),
    "cache": "the cache has no room for more requests at one time",
}
