"""A service under load: what its users wait for, and when it saturates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlsim.equations.arrivals import path_time
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.quantities import term
from mlsim.solvers.answer import Answer
from mlsim.solvers.arrivals.results import PERCENTILES, TIMES, results
from mlsim.solvers.arrivals.simulate import Run, simulate
from mlsim.solvers.arrivals.steady import Typical
from mlsim.solvers.arrivals.step_times import StepTimes, step_times
from mlsim.solvers.question import Known, Question
from mlsim.solvers.reports import Report, plain
from mlsim.solvers.serving.service import Service
from mlsim.systems.schedulers import Scheduler
from mlsim.units import scaled, text
from mlsim.workloads.requests import Requests

if TYPE_CHECKING:
    from pint import Quantity

_RATES = ("request_rate", "output_throughput", "running_requests", "waiting_requests")
RESULTS = (
    *TIMES,
    *(f"{name}_{key}" for name in TIMES for key in PERCENTILES),
    *_RATES,
    "server_use",
    "answered_requests",
    "run_span",
    "saturation_rate",
)
# What the closed forms tell of arrivals at random, and of users who wait.
_AT_RATE = (
    *("steady_first_token", "token_interval", "request_latency"),
    *("running_requests", "saturation_rate", "saturation_share"),
)
_OF_USERS = ("token_interval", "burst_first_token")


@dataclass(frozen=True, eq=False)
class Loaded:
    """A question about a service under load.

    Attributes
    ----------
    service
        The model on its hardware, as `Engine.serve` sees it.
    requests
        What arrives, and when.
    scheduler
        How its engine puts steps together.
    rate
        Requests per second, or None where they don't come at a rate.
    """

    service: Service
    requests: Requests
    scheduler: Scheduler
    rate: float | None = None

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
        longest = int(whole.max())
        if longest > self.service.model.context:
            raise InvalidValueError(
                f"a request of {longest:,} tokens (prompt and output) is longer than the context "
                f"of {self.service.model.name}, {self.service.model.context:,}. Shorten it; a "
                'distribution with an end, such as "uniform 100 900", has no long tail.'
            )
        return step_times(
            self.service,
            running=self.scheduler.running_limit,
            tokens=self.scheduler.tokens_per_step,
            longest=longest,
            prompt=self.requests.mean_prompt,
        )

    @cached_property
    def typical(self) -> Typical:
        """One copy and a request of the mean lengths."""
        asked = self.requests
        return Typical(
            self.times,
            asked.mean_prompt,
            asked.mean_output,
            self.scheduler,
            prefix=asked.mean_prefix,
            call_time=self.of_software("call_time"),
            tokenizing_time=self.of_software("tokenizing_time"),
        )


class LoadedService(Answer):
    """The answer for a service under load: times of its users, rates, where it saturates.

    Results come from a run of the scheduler, step by step; `steady` has those of the closed
    forms, with their derivation. Any result is to be had by name:
    `loaded["time_to_first_token_p90"]`.

    >>> from mlsim import Engine
    >>> loaded = Engine.load(model="Llama3_8B", hardware="H100", rate=5)
    >>> loaded.time_to_first_token < loaded["time_to_first_token_p90"]
    True
    """

    noun, variable, first = "loaded service", "loaded", "time_to_first_token"
    reported = RESULTS

    def __init__(self, loaded: Loaded) -> None:
        super().__init__()
        self.loaded = loaded
        # Refuses a rate beyond saturation before any step is taken.
        self.steady = Steady(loaded) if loaded.rate or loaded.requests.users else None

    @cached_property
    def runs(self) -> list[tuple[Requests, Run]]:
        """What each copy was sent, and what it did."""
        loaded, copies = self.loaded, self.loaded.copies
        parts = [loaded.requests.part(index, copies) for index in range(copies)]
        return [
            (each, simulate(each, loaded.times, loaded.scheduler, loaded.paths(each)))
            for each in parts
            if len(each)
        ]

    @property
    def stopped(self) -> int:
        """How often a request was stopped because the cache was full, and computed again."""
        return sum(run.stopped for _, run in self.runs)

    @cached_property
    def question(self) -> Question:
        """What was found: each result with the run that it comes from."""
        loaded, runs = self.loaded, self.runs
        found = results(runs)
        words = (
            f"a simulation of {len(loaded.requests):,} requests on {loaded.scheduler.name}'s "
            f"scheduler ({loaded.scheduler.source}), "
            f"{sum(run.steps for _, run in runs):,} steps"
        )
        known = Known().add(words, **found)
        most = loaded.typical.saturating()
        known.add("closed form, all copies", saturation_rate=_times(most, loaded.copies))
        return Question(known, (), self._labels)

    def _labels(self) -> dict[str, str]:
        return {**self.loaded.service.labels}

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

    def _reported(self) -> tuple[str, ...]:
        return tuple(name for name in RESULTS if name in self.question.known)

    def __getitem__(self, name: str | int | tuple[int, ...]) -> Any:
        """Return a result by name, with its unit; also a percentile of a time."""
        if not isinstance(name, str) or not _percentile(name):
            return super().__getitem__(name)
        return scaled(float(self.value(name)), term(_percentile(name)).unit)

    def _entry(self, name: str) -> Any:
        """Return a result for JSON."""
        unit = term(_percentile(name) or name).unit
        return {"value": plain(self.value(name)), "unit": unit}

    @property
    def time_to_first_token(self) -> Quantity[Any]:
        """Mean time from a request's arrival to its first token."""
        found: Quantity[Any] = self["time_to_first_token"]
        return found

    @property
    def time_per_output_token(self) -> Quantity[Any]:
        """Mean over requests of the mean time between their tokens."""
        found: Quantity[Any] = self["time_per_output_token"]
        return found

    @property
    def latency(self) -> Quantity[Any]:
        """Mean time from a request's arrival to its last token."""
        found: Quantity[Any] = self["request_latency"]
        return found

    @property
    def throughput(self) -> float:
        """New tokens per second of all users together, a plain float."""
        return float(self.value("output_throughput"))

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        loaded = self.loaded
        service = loaded.service
        return (
            f"{service.model.name} on {service.hardware_name}, {service.formats.name}, "
            f"{service.estimate}: {loaded.requests.words}, {loaded.scheduler.name}"
        )

    def _inputs(self) -> Mapping[str, Any]:
        loaded, service = self.loaded, self.loaded.service
        requests = loaded.requests
        return {
            "model": service.model.name,
            "hardware": service.hardware_name,
            "estimate": service.estimate,
            "formats": service.formats.name,
            "scheduler": loaded.scheduler.key,
            "arrivals": requests.words,
            "prompt_tokens": {"mean": plain(requests.mean_prompt), "unit": "token"},
            "output_tokens": {"mean": plain(requests.mean_output), "unit": "token"},
            **({"switched_on": dict(service.switches.words())} if service.switches.on else {}),
            "closed_form": self.steady.to_dict() if self.steady else None,
        }

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        rows = [(words, self._spread(name)) for name, words in _WORDS.items() if self._has(name)]
        asked = self.loaded.requests
        lengths = (
            f"{asked.mean_prompt:,.0f} prompt + {asked.mean_output:,.0f} output tokens, on average"
        )
        title, _, arrivals = self.about.partition(": ")
        rows[:0] = [("arrivals", arrivals), ("requests", lengths)]
        rows[2:2] = list(self.loaded.service.switches.words().items())
        rows.append(
            (
                "answers",
                (
                    f"{self.value('request_rate'):.3g} requests/s, "
                    f"{self.value('output_throughput'):,.0f} token/s"
                ),
            )
        )
        rows.append(
            (
                "running",
                (
                    f"{self.value('running_requests'):,.1f} on average, "
                    f"{self.value('waiting_requests'):,.1f} waiting, at work "
                    f"{self.value('server_use'):.0%} of the time"
                ),
            )
        )
        if self.stopped:
            rows.append(("stopped", f"{self.stopped:,} times, since the cache was full"))
        rows.append(("saturates", f"at {self.value('saturation_rate'):.3g} requests/s"))
        if self.steady:
            rows.append(("closed form", self.steady.line()))
        return Report(title, rows, label=14, width=120)

    def _has(self, name: str) -> bool:
        return name in self.question.known

    def _spread(self, name: str) -> str:
        mean = text(float(self.value(name)), "s")
        shares = (
            f"P{key[1:]} {text(float(self.value(f'{name}_{key}')), 's')}" for key in PERCENTILES
        )
        return f"{mean} on average, {', '.join(shares)}"


_WORDS = {
    "time_to_first_token": "first token",
    "time_per_output_token": "per token",
    "request_latency": "last token",
}


def _percentile(name: str) -> str:
    """Return the time of which a name is a percentile, or nothing."""
    base, _, key = name.rpartition("_")
    return base if key in PERCENTILES and base in TIMES else ""


def _times(most: Question, copies: int) -> float:
    return float(most.value("saturation_rate")) * copies


class Steady(Answer):
    """What the closed forms say of the same load, each with its derivation."""

    noun, variable = "closed form", "loaded.steady"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__()
        self.loaded = loaded
        typical = loaded.typical
        copies = loaded.copies
        if loaded.rate:
            known = typical.at_rate(loaded.rate / copies)
            self._results: tuple[str, ...] = _AT_RATE
        else:
            users = max(1.0, loaded.requests.users / copies)
            known, self._results = typical.with_users(users), _OF_USERS
        if loaded.service.switches.speculation:
            # The interval is that between rounds, of several tokens each.
            names = {"token_interval": "time_per_output_token"}
            self._results = tuple(names.get(each, each) for each in self._results)
        self._known = known
        self.first = self._results[0]

    @cached_property
    def question(self) -> Question:
        """What is asked, of one copy."""
        equations = self.loaded.typical.equations(users=not self.loaded.rate)
        return Question(self._known, equations, self.loaded.service.labels)

    @property
    def names(self) -> Collection[str]:
        """What can be asked for by name; of one copy, where there are several."""
        return (*self._results, *self._known)

    def _reported(self) -> tuple[str, ...]:
        return self._results

    def _inputs(self) -> Mapping[str, Any]:
        return {"copies": self.loaded.copies}

    @property
    def about(self) -> str:
        """What this is the answer to, in words."""
        return f"closed forms of {self.loaded.requests.words}"

    def line(self) -> str:
        """Return the results in one line."""
        shown = (
            f"{_STEADY[name]} {text(float(self.value(name)), term(name).unit)}"
            for name in self._results
            if name in _STEADY
        )
        return ", ".join(shown)

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        rows = [
            (name.replace("_", " "), text(float(self.value(name)), term(name).unit))
            for name in self._results
        ]
        return Report(self.about, rows, label=20)


_STEADY = {
    "steady_first_token": "first token",
    "split_first_token": "first token",
    "burst_first_token": "first token of the opening burst",
    "token_interval": "per token",
    "time_per_output_token": "per token",
    "request_latency": "last token",
}


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
