"""The answer of the closed forms to a service under load."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.answer import Answer, Report
from mlsim.solvers.arrivals.asked import Loaded
from mlsim.solvers.question import Known, Question
from mlsim.values.attributes import count, result

# What the closed forms tell of arrivals at random, and of users who wait.
_AT_RATE = (
    *("steady_first_token", "token_interval", "request_latency"),
    *("running_requests", "saturation_rate", "saturation_share"),
)
_OF_USERS = ("token_interval", "burst_first_token")


class Steady(Answer):
    """What the closed forms say of the same load, each with its derivation."""

    noun, variable = "closed form", "loaded.steady"

    steady_first_token = result("Mean time to the first token, no queue counted.")
    token_interval = result("Mean time between two tokens of a request.")
    request_latency = result("Mean time from a request's arrival to its last token.")
    running_requests = count("Requests that run at one time, on average.")
    saturation_rate = count("Requests per second from which on the queue grows without end.")
    saturation_share = count("The rate of arrivals over it.")
    burst_first_token = result("Time to the first token where all users ask at once.")
    full_prompt_time = result("Time that a prompt adds to the steps of a full service.")

    def __init__(self, loaded: Loaded) -> None:
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

    def _reported(self) -> tuple[str, ...]:
        return self._results

    def _asked(self, name: str) -> tuple[Question, str]:
        if name in self.left_out:
            raise InvalidValueError(
                f"there is no closed form of {name} here: {self.left_out[name]}. The simulation "
                "has its result."
            )
        return super()._asked(name)

    def _inputs(self) -> Mapping[str, Any]:
        return {
            "copies": self.loaded.copies,
            **({"left_out": self.left_out} if self.left_out else {}),
        }

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
