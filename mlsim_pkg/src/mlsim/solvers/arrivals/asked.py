"""A question about a service to which requests come: what it serves, what arrives, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlsim.equations.arrivals import path_time
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.solvers.arrivals.steady import Typical
from mlsim.solvers.arrivals.step_times import StepTimes, step_times
from mlsim.solvers.serving.service import Service
from mlsim.systems.schedulers import Scheduler
from mlsim.workloads.requests import Requests


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
            shortest=int(self.requests.prompt_tokens.min()),
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
            alike=asked.alike,
            call_time=self.of_software("call_time"),
            tokenizing_time=self.of_software("tokenizing_time"),
        )


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
