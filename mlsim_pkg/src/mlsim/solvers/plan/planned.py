"""The answer to a plan: what to rent or buy, what came next, and what can't serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError
from mlsim.solvers.plan.options import Goals, Option, Refused, name_of
from mlsim.solvers.reports import Report
from mlsim.units import text

if TYPE_CHECKING:
    import pandas

# By what plans are ordered: the unit of a device's price, and of a fleet's for people.
OBJECTIVES = {"cost": ("USD/s", "USD/h"), "energy": ("W", "kW"), "devices": ("1", "")}
SECONDS = 3600.0
MILLION = 1e6
# Options that the text tells of.
_SHOWN = 5


@dataclass(frozen=True, repr=False)
class Planned:
    """Ways to serve a model, the best first.

    Attributes
    ----------
    model
        Its name.
    goals
        What was asked for.
    options
        Layouts that meet the goals, the best first.
    refused
        Those that don't, the nearest first.
    objective
        By what they are ordered.
    band
        Lower and upper factor around the predicted times in which 80 % of published rows of
        this kind lie, where there are enough; else None.

    >>> from mlsim import Engine
    >>> found = Engine.plan(model="Llama3_8B", rate=20, hardware=["H100", "L40S"])
    >>> found.best.service.device.name
    'NVIDIA H100 SXM 80 GB'
    """

    model: str
    goals: Goals
    options: tuple[Option, ...]
    refused: tuple[Refused, ...]
    objective: str
    band: tuple[float, float] | None = None

    @property
    def best(self) -> Option:
        """The layout that costs least."""
        return self.options[0]

    @property
    def table(self) -> pandas.DataFrame:
        """All options as a tidy table, the best first, in base units."""
        import pandas

        return pandas.DataFrame([_row(each) for each in self.options])

    @property
    def front(self) -> pandas.DataFrame:
        """The Pareto front: no other point is faster for a user and serves more per device.

        Of all layouts that were tried at all batches: `tokens_per_user` (token/s) and
        `tokens_per_device` (token/s), with the layout and its batch.
        """
        import pandas

        rows = [row for each in self.options for row in _points(each, self.goals)]
        found = pandas.DataFrame(rows).sort_values(
            ["tokens_per_user", "tokens_per_device"], ascending=False
        )
        best = found.tokens_per_device.cummax()
        kept = (found.tokens_per_device == best) & ~best.duplicated()
        return found[kept].reset_index(drop=True)

    @property
    def why(self) -> str:
        """Why the runner-up lost."""
        if len(self.options) < 2:
            return "nothing else meets the goals"
        first, second = self.options[:2]
        ratio = self._value(second) / self._value(first) if self._value(first) else 1.0
        told = [f"{name_of(second.service)}: {ratio:.2f} times the {self.objective}"]
        more = second["fleet_devices"] - first["fleet_devices"]
        told.append(f"{abs(more):,.0f} device(s) {'more' if more >= 0 else 'fewer'}")
        told.append(
            f"a copy serves {second['replica_rate']:.3g} requests/s, not "
            f"{first['replica_rate']:.3g}"
        )
        return ", ".join(told)

    def _value(self, option: Option) -> float:
        return option["fleet_devices"] if self.objective == "devices" else option["fleet_price"]

    def to_dict(self) -> dict[str, Any]:
        """Return goals, options and what was refused, for JSON."""
        return {
            "model": self.model,
            "goals": {
                "rate": {"value": self.goals.rate, "unit": "sample/s"},
                "time_to_first_token": {"value": self.goals.first_token, "unit": "s"},
                "time_per_output_token": {"value": self.goals.per_token, "unit": "s"},
                "prompt_tokens": {"value": self.goals.prompt_tokens, "unit": "token/sample"},
                "output_tokens": {"value": self.goals.output_tokens, "unit": "token/sample"},
            },
            "objective": self.objective,
            **self._switched(),
            "options": [_row(each) for each in self.options],
            "refused": [{"layout": each.name, "why": each.why} for each in self.refused],
        }

    def _switched(self) -> dict[str, Any]:
        """Return what is switched on, for JSON; nothing where nothing is."""
        on = self.best.service.switches
        return {"switched_on": dict(on.words())} if on.on else {}

    def report(self) -> Report:
        """Return the plan as a title and rows: the best options, and why others lost."""
        goals = self.goals
        title = (
            f"{self.model}: {goals.rate:g} requests/s of {goals.prompt_tokens:,.0f} + "
            f"{goals.output_tokens:,.0f} tokens, first token within "
            f"{text(goals.first_token, 's')}, each within {text(goals.per_token, 's')}"
        )
        rows = [(f"{place}", self._line(each)) for place, each in enumerate(self._shown(), 1)]
        rows.append(("runner-up", self.why))
        rows.append(("margin", self._margin()))
        rows.append(("price", self.best.candidate.words))
        rows += [("with", words) for words in self.best.service.switches.words().values()]
        if self.objective == "cost":
            rows.append(("a million", self._apart()))
        rows.append(
            ("tried", f"{len(self.options)} layouts meet the goals, {len(self.refused)} do not")
        )
        return Report(title, rows, label=10, width=120)

    def _shown(self) -> Sequence[Option]:
        return self.options[:_SHOWN]

    def _line(self, option: Option) -> str:
        copies = option["replicas"]
        return (
            f"{self._price(option)}: {copies:,.0f} {'copy' if copies == 1 else 'copies'} of "
            f"{name_of(option.service)}, batch {option['running_requests']:,.0f}, "
            f"{text(option['time_to_first_token'], 's')} and "
            f"{text(option['time_per_output_token'], 's')}"
        )

    def _price(self, option: Option) -> str:
        if self.objective == "cost":
            million = option["output_token_price"] * MILLION
            hourly = option["fleet_price"] * SECONDS
            return f"{hourly:,.2f} USD/h ({million:.2f} USD per million new tokens)"
        if self.objective == "energy":
            return text(option["fleet_price"], "W")
        return f"{option['fleet_devices']:,.0f} devices"

    def _apart(self) -> str:
        """Return what a million tokens cost in and out, and what that assumes."""
        into, out = (
            self.best[name] * MILLION for name in ("prompt_token_price", "answer_token_price")
        )
        share = self.best["prompt_share"]
        return (
            f"{into:.2f} USD in and {out:.2f} USD out, split as the time is ({share:.0%} reads "
            "prompts), with requests at this rate all day"
        )

    def _margin(self) -> str:
        margin = self.best["margin"]
        told = f"goals are {margin:.2f} times the predicted times"
        if self.band is None:
            return told
        worst = max(self.band)
        safe = "that is enough" if margin >= worst else f"for that, ask for {worst:.2f} times less"
        return (
            f"{told}; of published services 80 % took {self.band[0]:.2f} to {self.band[1]:.2f} "
            f"times theirs: {safe}"
        )

    def __str__(self) -> str:
        return self.report().text()

    def _repr_markdown_(self) -> str:
        return self.report().markdown()

    def __repr__(self) -> str:
        return f"<Planned {self.model}: {len(self.options)} options>"


def planned(
    model: str,
    goals: Goals,
    found: Sequence[Option | Refused],
    objective: str,
    band: tuple[float, float] | None,
) -> Planned:
    """Order what was found; refuse where nothing meets the goals.

    Raises
    ------
    InvalidValueError
        If nothing does: says what comes nearest.
    """
    options = [each for each in found if isinstance(each, Option)]
    refused = sorted((each for each in found if isinstance(each, Refused)), key=lambda r: r.short)
    if not options:
        raise InvalidValueError(_nothing(model, refused))
    key = "fleet_devices" if objective == "devices" else "fleet_price"
    # Of equal cost the faster one.
    options.sort(key=lambda each: (each[key], -each["margin"]))
    return Planned(model, goals, tuple(options), tuple(refused), objective, band)


def _nothing(model: str, refused: Sequence[Refused]) -> str:
    if not refused or not refused[0].nearest:
        reasons = "; ".join(dict.fromkeys(f"{each.name}: {each.why}" for each in refused[:3]))
        return f"nothing that was tried can serve {model}. {reasons}".strip()
    near = refused[0]
    first, each = (near.nearest[name] for name in ("time_to_first_token", "time_per_output_token"))
    return (
        f"nothing that was tried serves {model} in time. Nearest is {near.name}, batch "
        f"{near.nearest['running_requests']:,.0f}: first token {text(first, 's')}, each token "
        f"{text(each, 's')}. Allow these times, or allow narrower formats or larger systems."
    )


def _row(option: Option) -> dict[str, Any]:
    service = option.service
    parallelism = service.parallelism
    return {
        "device": service.device.name,
        "system": service.system.name if service.system else "",
        "format": service.formats.name,
        "tensor_parallel": parallelism.tensor,
        "expert_parallel": parallelism.expert,
        **option.found,
        "price": option.candidate.words,
    }


def _points(option: Option, goals: Goals) -> list[dict[str, Any]]:
    front, devices = option.front, option["replica_devices"]
    name = name_of(option.service)
    return [
        {
            "tokens_per_user": 1 / interval,
            "tokens_per_device": rate * goals.output_tokens / devices,
            "batch": batch,
            "layout": name,
        }
        for interval, rate, batch in zip(
            front["time_per_output_token"].tolist(),
            front["replica_rate"].tolist(),
            front["running_requests"].tolist(),
            strict=True,
        )
    ]
