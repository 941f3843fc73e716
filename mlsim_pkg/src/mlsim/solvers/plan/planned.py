"""The answer to a plan: what to rent or buy, what came next, and what can't serve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, Suggesting
from mlsim.solvers.answer import Form, Pairs, Row, Written
from mlsim.solvers.calibrated import farthest, loans_words
from mlsim.solvers.plan.options import Candidate, Goals, Option, Refused, price_words
from mlsim.units import text
from mlsim.values import Origin, of_base

if TYPE_CHECKING:
    import pandas

    from mlsim.values.kinds import Quantity


def nothing(model: str, refused: Sequence[Refused], left_out: Mapping[str, Refused]) -> str:
    """Say that nothing serves a model in time, and what comes nearest."""
    if not refused or not refused[0].nearest:
        reasons = "; ".join(dict.fromkeys(f"{each.name}: {each.why}" for each in refused[:3]))
        return f"nothing that was tried can serve {model}. {reasons}".strip()
    near = refused[0]
    unable = {name: each for name, each in left_out.items() if not each.nearest}
    others = f" Left out: {by_reason(unable)}." if unable else ""
    first, each = (near.nearest[name] for name in ("time_to_first_token", "time_per_output_token"))
    return (
        f"nothing that was tried serves {model} in time. Nearest is {near.name}, batch "
        f"{near.nearest['running_requests']:,.0f}: first token {text(first, 's')}, each token "
        f"{text(each, 's')}. Allow these times, or allow narrower formats or larger systems."
        f"{others}"
    )


def by_reason(left_out: Mapping[str, Refused]) -> str:
    """Return in words why hardware has no option, each reason once."""
    names: dict[str, list[str]] = {}
    for name, each in left_out.items():
        names.setdefault(each.why, []).append(name)
    return ". ".join(f"{', '.join(those)}: {why}" for why, those in names.items())


def nearest_of(refused: Sequence[Refused]) -> Refused:
    """Return the nearest; of layouts that can't run, the largest, which was tried last."""
    return min(reversed(refused), key=lambda each: each.short)


def row(option: Option) -> dict[str, Any]:
    """Return an option as a row of a table, in base units."""
    service = option.service
    parallelism = service.parallelism
    return {
        "device": service.device.name,
        "system": service.system.name if service.system else "",
        "format": service.formats.name,
        "tensor_parallel": parallelism.tensor,
        "pipeline_parallel": parallelism.pipeline,
        "context_parallel": parallelism.context,
        "data_parallel": parallelism.data,
        "expert_parallel": parallelism.expert,
        **(_prefill(option.prefill) if option.prefill else {}),
        **option.found,
        "price": price_words(option),
        "borrowed": loans_words(option.loans),
    }


def _prefill(candidate: Candidate) -> dict[str, Any]:
    """Return the layout of a pool that reads prompts."""
    layout = candidate.service.parallelism
    return {
        "prefill_device": candidate.service.device.name,
        "prefill_tensor_parallel": layout.tensor,
        "prefill_pipeline_parallel": layout.pipeline,
        "prefill_context_parallel": layout.context,
        "prefill_expert_parallel": layout.expert,
    }


def front_points(option: Option, goals: Goals) -> list[dict[str, Any]]:
    """Return an option at all batches that were tried, as points of a front."""
    front, devices = option.front, option.value("replica_devices")
    name = option.name
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


# By what plans are ordered: the unit of a device's price, and of a fleet's for people.
OBJECTIVES = {"cost": ("USD/s", "USD/h"), "energy": ("W", "kW"), "devices": ("1", "")}
SECONDS = 3600.0
MILLION = 1e6
# Beside a plan that rests on constants of other devices.
_MARK = "*"
# A slow edge that is worth a word: that of few loans lies where it does without any.
_WIDER = 1.005
# Options that the text tells of.
_SHOWN = 5


def _goals(plan: Planned) -> dict[str, Any]:
    """Return what was asked for, for JSON: a rate, or users, and the rest."""
    goals = plan.goals
    asked = {"rate": (goals.rate, "sample/s")}
    if goals.users:
        asked = {"users": (goals.users, "1"), "think_time": (goals.think_time, "s")}
    asked |= {
        "time_to_first_token": (goals.first_token, "s"),
        "time_per_output_token": (goals.per_token, "s"),
        "prompt_tokens": (goals.prompt_tokens, "token/sample"),
        "output_tokens": (goals.output_tokens, "token/sample"),
    }
    return {name: {"value": value, "unit": unit} for name, (value, unit) in asked.items()}


def _title(plan: Planned) -> str:
    goals = plan.goals
    return (
        f"{plan.model}: {plan._who()} of {goals.prompt_tokens:,.0f} + "
        f"{goals.output_tokens:,.0f} tokens, first token within "
        f"{text(goals.first_token, 's')}, each within {text(goals.per_token, 's')}"
    )


def _options(plan: Planned) -> Pairs:
    return [
        (f"{place}{_MARK if each.loans else ''}", plan._line(each))
        for place, each in enumerate(plan._shown(), 1)
    ]


def _software(plan: Planned) -> str:
    made_by = plan.best.service.software
    return f"{made_by.name} ({made_by.key})" if made_by else ""


def _tried(plan: Planned) -> str:
    tried = f"{len(plan.options)} layouts meet the goals, {len(plan.refused)} do not"
    pairs = f"; of {plan.pairs:,} pairs of pools the best for each layout that decodes"
    return tried + (pairs if plan.pairs else "")


_FORM = Form(
    title=_title,
    rows=(
        Row("", _options),
        Row("", lambda plan: [(_MARK, words) for words in plan.borrowed]),
        Row("", lambda plan: [("assumed", words) for words in plan.assumptions]),
        Row("in use", lambda plan: plan._used()),
        Row("runner-up", lambda plan: plan.why),
        Row("", lambda plan: plan._other()),
        Row("margin", lambda plan: plan._margin()),
        Row("program", _software),
        Row("price", lambda plan: price_words(plan.best)),
        Row("", lambda plan: [("with", words) for words in plan._switched_on().values()]),
        Row("a million", lambda plan: plan._apart() if plan.objective == "cost" else ""),
        Row("tried", _tried),
        Row("left out", lambda plan: by_reason(plan.left_out)),
    ),
    inputs={
        "model": lambda plan: plan.model,
        "goals": _goals,
        "objective": lambda plan: plan.objective,
        "software": lambda plan: getattr(plan.best.service.software, "key", ""),
        "switched_on": lambda plan: plan._switched_on() or "",
        "borrowed": lambda plan: plan.borrowed or "",
        "assumptions": lambda plan: plan.assumptions or "",
        "options": lambda plan: [row(each) for each in plan.options],
        "refused": lambda plan: [{"layout": each.name, "why": each.why} for each in plan.refused],
        "left_out": lambda plan: {n: each.why for n, each in plan.left_out.items()} or "",
    },
    label=10,
    width=120,
)


@dataclass(frozen=True, repr=False)
class Planned(Suggesting, Written):
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
    limits
        Lower and upper factor around the predicted times in which 80 % of published rows of
        this kind lie, and which these are; None where there are too few.
    pools
        "one", "two" or "either": whether devices that only read prompts were tried.
    pairs
        Pairs of pools that were tried, each with its numbers of copies; 0 if none were asked for.
    left_out
        Hardware that was asked for and has no option, by name: what comes nearest, and why not.

    >>> from mlsim import Engine
    >>> found = Engine.plan(model="Llama3_8B", rate=20, hardware=["H100", "L40S"])
    >>> found.best.service.device.name
    'NVIDIA H100 SXM 80 GB'
    """

    form = _FORM

    model: str
    goals: Goals
    options: tuple[Option, ...]
    refused: tuple[Refused, ...]
    objective: str
    limits: tuple[float, float, str] | None = None
    pools: str = "one"
    pairs: int = 0
    left_out: Mapping[str, Refused] = field(default_factory=dict)

    @property
    def best(self) -> Option:
        """The layout that costs least."""
        return self.options[0]

    @property
    def band(self) -> tuple[Quantity, Quantity] | None:
        """The same limits as values: what predicted times are multiplied by."""
        if self.limits is None:
            return None
        low, high, words = self.limits

        def end(side: str, factor: float) -> Quantity:
            brief = f"{side} end of the band = {factor:.4g}, measured over predicted times, {words}"
            return of_base(factor, "1", Origin(f"{side} end of the band", brief, brief))

        return end("lower", low), end("upper", high)

    @property
    def table(self) -> pandas.DataFrame:
        """All options as a tidy table, the best first, in base units.

        `time_to_first_token` and `time_per_output_token` are those of a full copy, which serves
        `replica_rate` with so many `running_requests`, without a wait for a place among them;
        `replica_use` is the share of that rate that is asked of it.
        """
        import pandas

        return pandas.DataFrame([row(each) for each in self.options])

    @property
    def front(self) -> pandas.DataFrame:
        """The Pareto front: no other point is faster for a user and serves more per device.

        Of all layouts that were tried at all batches: `tokens_per_user` (token/s) and
        `tokens_per_device` (token/s), with the layout and its batch.
        """
        import pandas

        rows = [point for each in self.options for point in front_points(each, self.goals)]
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
        ratio = self._value(second) / self._value(first)
        told = [f"{second.name}: {ratio:.2f} times the {self.objective}"]
        more = second.value("fleet_devices") - first.value("fleet_devices")
        told.append(f"{abs(more):,.0f} device(s) {'more' if more >= 0 else 'fewer'}")
        one, other = second.value("replica_rate"), first.value("replica_rate")
        told.append(f"one serves {one:.3g} requests/s, not {other:.3g}")
        return ", ".join(told) + (f". {_idle(second)}" if second.prefill else "")

    def _other(self) -> Pairs:
        """Return a row with how the other kind fared: two pools beside one, or one beside two."""
        if self.pools != "either":
            return []
        split = self.best.prefill is None
        label = "two pools" if split else "one pool"
        there = [each for each in self.options if (each.prefill is None) is not split]
        if not there:
            lost = [each for each in self.refused if each.split is split]
            return [(label, f"{lost[0].name}: {lost[0].why}" if lost else "none can run")]
        other = there[0]
        if other is self.options[1] and split:
            return []  # the runner-up, of which all is told
        ratio = self._value(other) / self._value(self.best)
        two = other if split else self.best
        return [(label, f"{other.name}: {ratio:.2f} times the {self.objective}. {_idle(two)}")]

    def _value(self, option: Option) -> float:
        return (
            option.value("fleet_devices")
            if self.objective == "devices"
            else option.value("fleet_price")
        )

    @property
    def borrowed(self) -> list[str]:
        """What plans with constants of other devices rest on, and where they stand, in words."""
        lent = [each for each in self.options if each.loans]
        if not lent:
            return []
        devices = dict.fromkeys(each.service.device.name for each in lent)
        loans = {
            name: farthest(
                loan for each in lent if each.service.device.name == name for loan in each.loans
            )
            for name in devices
        }
        words = [f"{name} borrows {loans_words(found)}" for name, found in loans.items()]
        most = max(each.slower for each in lent)
        if most < _WIDER:
            return words
        late = sum(not each.slow for each in lent)
        last = f"; {late} would miss the goals then, and stand last" if late else ""
        where = (
            f"plans marked {_MARK} stand by what they take at the slow edge of their band, with "
            f"steps up to {most:.2f} times as long as predicted{last}. {self._by_prediction()}"
        )
        return [*words, where]

    def _by_prediction(self) -> str:
        """Say what would stand first if borrowed constants were a device's own."""
        least = min(self.options, key=self._value)
        if self._value(least) == self._value(self.best):
            if not self.best.loans:
                return "The first borrows nothing that decides a tenth of its time"
            own = next((each for each in self.options if not each.loans), None)
            than = f": {own.name}, {self._price(own)}" if own else ": there is none"
            return f"The first is one of them; the best that is measured{than}"
        return f"As predicted, {least.name} would be first, {self._price(least)}"

    @property
    def assumptions(self) -> list[str]:
        """What nobody asked for, and changes a plan by a tenth, in words."""
        found = (words for each in self._shown() for words in each.service.assumptions)
        return list(dict.fromkeys(found))

    def _switched_on(self) -> dict[str, str]:
        return dict(self.best.service.switches.words())

    def _who(self) -> str:
        """Return who asks, in words."""
        goals = self.goals
        if not goals.users:
            return f"{goals.rate:g} requests/s"
        return (
            f"{goals.users:,.0f} users who think for {text(goals.think_time, 's')}, "
            f"{self.best.value('required_rate'):.3g} requests/s or more"
        )

    def _used(self) -> str:
        """Return how much of a copy's rate is asked of it, and of which load its times are."""
        whole = "copy" if self.best.prefill is None else "pair of pools"
        more = " or more" if self.goals.users else ""
        return (
            f"a {whole} of the first gets {self.best.value('replica_use'):.0%}{more} of the rate "
            "that fills it, the most that it serves in time. Times are those when full, without a "
            "wait for a place in the batch (don't set it as a limit); `Engine.load` tells the wait "
            "at this load"
        )

    def _shown(self) -> Sequence[Option]:
        return self.options[:_SHOWN]

    def _line(self, option: Option) -> str:
        one = option.value("replicas") == 1
        if option.prefill is None:
            noun = "copy of" if one else "copies of"
        else:
            noun = "pair of pools," if one else "pairs of pools, each"
        many = f"{option.value('replicas'):,.0f} {noun}"
        data = option.service.parallelism.data
        each = f" on each of {data}" if data > 1 else ""
        wider = option.slow and option.slower >= _WIDER
        edge = f" ({self._amount(option.slow)} at the slow edge)" if wider else ""
        return (
            f"{self._price(option)}{edge}: {many} {option.name}, full at "
            f"{option.value('replica_rate'):.3g} requests/s (batch "
            f"{option.value('running_requests'):,.0f}{each}): "
            f"{text(option.value('time_to_first_token'), 's')} and "
            f"{text(option.value('time_per_output_token'), 's')}"
        )

    def _amount(self, found: Mapping[str, float]) -> str:
        """Return what a fleet takes, of that by which plans are ordered."""
        if self.objective == "cost":
            return f"{found['fleet_price'] * SECONDS:,.2f} USD/h"
        if self.objective == "energy":
            return text(found["fleet_price"], "W")
        return f"{found['fleet_devices']:,.0f} devices"

    def _price(self, option: Option) -> str:
        amount = self._amount(option.found)
        if self.objective != "cost":
            return amount
        million = option.value("output_token_price") * MILLION
        return f"{amount} ({million:.2f} USD per million new tokens)"

    def _apart(self) -> str:
        """Return what a million tokens cost in and out, and what that assumes."""
        into, out = (
            self.best.value(name) * MILLION for name in ("prompt_token_price", "answer_token_price")
        )
        share = self.best.value("prompt_share")
        split = "time is" if self.best.prefill is None else "rent of the pools is"
        return (
            f"{into:.2f} USD in and {out:.2f} USD out, split as the {split} ({share:.0%} reads "
            "prompts), with requests at this rate all day"
        )

    def _margin(self) -> str:
        margin = self.best.value("margin")
        told = f"goals are {margin:.2f} times the predicted times"
        if self.limits is None:
            return told
        # As much wider as borrowed constants make it.
        low, high = self.limits[0], self.limits[1] * self.best.slower
        worst = max(low, high)
        safe = "that is enough" if margin >= worst else f"for that, ask for {worst:.2f} times less"
        return (
            f"{told}; of published services 80 % took {low:.2f} to {high:.2f} times theirs: {safe}"
        )

    def __repr__(self) -> str:
        return f"<Planned {self.model}: {len(self.options)} options>"


def _idle(option: Option) -> str:
    """Return how busy two pools are, and what neither can lend the other."""
    reads, decodes = option.value("prefill_use"), option.value("decode_use")
    return (
        f"Of the two pools, devices that read prompts are busy {reads:.0%} of the time, and those "
        f"that decode are {decodes:.0%} full; neither helps the other"
    )


def planned(
    model: str,
    goals: Goals,
    found: Sequence[Option | Refused],
    *,
    objective: str,
    limits: tuple[float, float, str] | None,
    pools: str = "one",
    pairs: int = 0,
    left_out: Mapping[str, Refused],
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
        raise InvalidValueError(nothing(model, refused, left_out))
    key = "fleet_devices" if objective == "devices" else "fleet_price"
    # With borrowed constants it costs what it does at the slow edge. Of equal cost comes first
    # what is measured, then the faster one.
    edge = {
        id(each): each.slow.get(key, math.inf) if each.loans else each.value(key)
        for each in options
    }
    options.sort(
        key=lambda each: (edge[id(each)], bool(each.loans), each.value(key), -each.value("margin")),
    )
    return Planned(
        *(model, goals, tuple(options), tuple(refused), objective, limits, pools, pairs),
        left_out=left_out,
    )
