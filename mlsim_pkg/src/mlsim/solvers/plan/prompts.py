"""A pool that only reads prompts: what each of its layouts can do, by how many copies it has."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mlsim.equations import arrivals, equations_of, plan
from mlsim.errors import MlsimError
from mlsim.solvers.plan.options import (
    Candidate,
    Goals,
    Refused,
    largest_batch,
    name_of,
    path_of,
    reading_times,
    schedulers_in,
)
from mlsim.systems.schedulers import Scheduler

# Numbers of prompts whose steps are timed, and shares of what saturates that are tried.
_STEPS, _SHARES = 12, 40
# Times that a rate and the prompts of a step are tried until they agree.
_ROUNDS = 12
# How far from a number of prompts a step's time is looked up for what each adds.
_NEAR = 1.5
# More copies than any pool that is tried has.
_MOST = 256


@dataclass(frozen=True, eq=False)
class Readers:
    """A layout that reads prompts.

    Attributes
    ----------
    candidate
        The model on its devices.
    goals
        What is asked for.
    prompts, times
        Numbers of prompts, and the time of a step that reads so many, in s.
    room, beside
        Prompts for which a step has room, and how many it reads beside one that it ends.
    """

    candidate: Candidate
    goals: Goals
    prompts: Any
    times: Any
    room: float
    beside: float

    @property
    def devices(self) -> float:
        """Devices of one copy."""
        return float(self.candidate.service.parallelism.devices)

    @property
    def alone(self) -> float:
        """Time to read one prompt alone, in s."""
        return float(self.times[0])

    @cached_property
    def packed(self) -> float:
        """Time of a full step for each of its prompts, in s."""
        return float(self._together(self.room)) / self.room

    @property
    def path(self) -> float:
        """Time of a request on its way to the line, in s."""
        return path_of(self.candidate.service, self.goals.prompt_tokens)

    @property
    def alone_first_token(self) -> float:
        """Time to the first token of a request that waits for nobody, in s."""
        return float(arrivals.split_first_token(self.path, 0.0, self.alone))

    def saturation(self, copies: Any) -> Any:
        """Prompts a second of so many copies that are never idle."""
        return copies * schedulers_in(self.candidate.service) / self.packed

    def _together(self, prompts: Any) -> Any:
        import numpy as np

        return np.interp(prompts, self.prompts, self.times)

    def _further(self, prompts: Any) -> Any:
        """Time that each prompt adds to a step of about so many."""
        import numpy as np

        fewer, more = np.maximum(1.0, prompts / _NEAR), np.maximum(2.0, prompts * _NEAR)
        several = self._together(more) - self._together(fewer)
        return np.clip(several / (more - fewer), 0.0, self.packed)

    def waits(self, rate: Any, copies: Any) -> tuple[Any, Any]:
        """Return the time to the first token, and the prompts read beside each, at rates."""
        import numpy as np

        stages = schedulers_in(self.candidate.service)
        rate, copies = np.broadcast_arrays(np.asarray(rate, float), np.asarray(copies, float))
        known = {
            "pool_arrival_rate": rate,
            "prefill_copies": copies * stages,
            "lone_prompt_time": self.alone,
            "step_prompts": self.room,
            "beside_limit": self.beside,
            "packed_prompt_time": self.packed,
            "service_variance": 0.0,
            "path_time": self.path,
        }
        names = ("prompts_together", "prompts_time", "prompt_time")
        wanted = ("split_first_token", "prompts_beside")
        made = plan(equations_of(arrivals.PROMPT_LINES), {*known, *names}, wanted)
        prompts = np.ones(rate.shape)
        for _ in range(_ROUNDS):
            asked = (prompts, self._together(prompts), self._further(prompts))
            found = made.run(known | dict(zip(names, asked, strict=True)))
            prompts = (prompts + 1.0 + found["prompts_beside"]) / 2
        return found["split_first_token"], found["prompts_beside"]

    def within(self, most: float) -> tuple[Any, Any, Any]:
        """Return numbers of copies, the rate of each within the goal, and prompts beside each.

        Up to as many copies as the required rate takes, or as `most` says. The rate is 0 where
        the goal can't be met.
        """
        import numpy as np

        needed = math.ceil(self.goals.rate * self.packed) * 2 + 2
        copies = np.arange(1.0, max(1.0, min(most, needed, _MOST)) + 1.0)
        shares = np.linspace(0.0, 1.0, _SHARES + 1)[1:-1]
        rates = self.saturation(copies)[:, None] * shares
        first, beside = self.waits(rates, copies[:, None])
        kept = first <= self.goals.first_token
        # The wait grows with the rate: what comes before the first that is too late is in time.
        late = np.where(kept.all(axis=1), kept.shape[1], kept.argmin(axis=1))
        last = np.maximum(late - 1, 0)
        rows = np.arange(len(copies))
        return copies, np.where(kept[:, 0], rates[rows, last], 0.0), beside[rows, last]


def readers(candidate: Candidate, goals: Goals, rule: Scheduler) -> Readers | Refused:
    """Return what a layout can do that only reads prompts, or why it can't."""
    try:
        return _readers(candidate, goals, rule.on(candidate.service.device))
    except MlsimError as error:
        return Refused(candidate, name_of(candidate.service), str(error))


def _readers(candidate: Candidate, goals: Goals, rule: Scheduler) -> Readers | Refused:
    import numpy as np

    service = replace(candidate.service, output_tokens=1.0)
    largest = largest_batch(service, goals)
    if largest < 1:
        return Refused(candidate, name_of(service), "does not fit in memory")
    limit = float(min(largest, rule.running_limit))
    new, _ = service.prefill
    room = max(1.0, min(limit, rule.tokens_per_step / new))
    same = math.gcd(int(new), rule.tokens_per_step)
    beside = min(limit - 1, (rule.tokens_per_step - same) / new)
    most = math.ceil(_NEAR * max(2.0, room, 1 + beside))
    prompts = np.unique(np.rint(np.geomspace(1, most, _STEPS))).astype(float)
    prompts = np.union1d(prompts, (2.0,))
    return Readers(candidate, goals, prompts, reading_times(service, prompts), room, beside)
