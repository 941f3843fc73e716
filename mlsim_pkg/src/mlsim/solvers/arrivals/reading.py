"""One copy of a pool that only reads prompts: how many share its steps, and what each adds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

from mlsim.equations import arrivals, equations_of, plan
from mlsim.solvers.arrivals.steady import Typical
from mlsim.solvers.arrivals.step_times import StepTimes
from mlsim.solvers.question import Known
from mlsim.systems.schedulers import Scheduler
from mlsim.workloads.requests import Requests

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
