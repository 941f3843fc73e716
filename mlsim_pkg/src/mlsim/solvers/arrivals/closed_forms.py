"""The answer of the closed forms to a service under load."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from mlsim.quantities import term
from mlsim.solvers.answer import Answer
from mlsim.solvers.arrivals.asked import Loaded
from mlsim.solvers.question import Known, Question
from mlsim.solvers.reports import Report

# What the closed forms tell of arrivals at random, and of users who wait.
_AT_RATE = (
    *("steady_first_token", "token_interval", "request_latency"),
    *("running_requests", "saturation_rate", "saturation_share"),
)
_OF_USERS = ("token_interval", "burst_first_token")


class Steady(Answer):
    """What the closed forms say of the same load, each with its derivation."""

    noun, variable = "closed form", "loaded.steady"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__()
        self.loaded = loaded
        # Whether requests come at a rate: one that is given, or that of users who think.
        self._at_rate = False
        typical = loaded.typical
        copies = loaded.copies
        if loaded.rate:
            known = typical.at_rate(loaded.rate / copies)
            self._results: tuple[str, ...] = _AT_RATE
        else:
            users = max(1.0, loaded.requests.users / copies)
            known, self._results = self._of_users(users, loaded.requests.think_time)
        if loaded.service.switches.speculation:
            # The interval is that between rounds, of several tokens each.
            names = {"token_interval": "time_per_output_token"}
            self._results = tuple(names.get(each, each) for each in self._results)
        self._known = known
        self.first = self._results[0]

    def _of_users(self, users: float, think_time: float) -> tuple[Known, tuple[str, ...]]:
        """Return what is known of users: of those who think, at the rate at which they ask."""
        typical = self.loaded.typical
        rate = typical.users_rate(users, think_time) if think_time else 0.0
        if not rate:
            return typical.with_users(users), _OF_USERS
        self._at_rate = True
        return typical.at_rate(rate), _AT_RATE

    @cached_property
    def question(self) -> Question:
        """What is asked, of one copy."""
        equations = self.loaded.typical.equations(users=not (self.loaded.rate or self._at_rate))
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
            f"{_STEADY[name]} {term(name).text(float(self.value(name)))}"
            for name in self._results
            if name in _STEADY
        )
        return ", ".join(shown)

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        rows = [
            (name.replace("_", " "), term(name).text(float(self.value(name))))
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
