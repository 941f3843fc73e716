"""One way to serve a model: a device, a layout, a format; and what it can do in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mlsim.equations import arrivals, equations_of
from mlsim.equations.registry import EQUATIONS
from mlsim.errors import MlsimError, Suggesting, unknown_name
from mlsim.quantities import term
from mlsim.solvers.explain import Explanation
from mlsim.solvers.question import Known, Question
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.speculated import round_question
from mlsim.solvers.serving.steps import step_question
from mlsim.systems.schedulers import Scheduler
from mlsim.values import Origin, literal, of_base
from mlsim.values.attributes import count, result

if TYPE_CHECKING:
    from mlsim.hardware.kernel_constants import Loan
    from mlsim.values.kinds import Quantity


# What follows from the rest, by name: of one pool, and of two, whose bill is that of both.
_TOKENS = ("output_token_price", "prompt_token_price", "answer_token_price")
_OF_ONE = ("replicas", "fleet_devices", "fleet_price", *_TOKENS)
_OF_TWO = ("fleet_devices", *_TOKENS)
# What the vocabulary has no word for, and how it is found.
_RATIOS = {
    "replica_use": "the required rate, over the rate of all copies when full",
    "margin": "the goals over the predicted times, the lesser of the two",
    "prefill_use": "the required rate, over that at which the pool reads prompts",
    "decode_use": "the required rate, over that at which the pool decodes in time",
}
# Prices where none is a price: what stands for money, by the unit of one device's.
_PER_TOKEN = {"W": "J/token", "1": "s/token"}


def price_words(option: Option) -> str:
    """Return where the prices of an option come from."""
    both = (option.candidate, option.prefill or option.candidate)
    return "; ".join(dict.fromkeys(each.words for each in both))


def question_of(option: Option) -> Question:
    """Return what is known of a plan, each with its origin, and the equations of its bill."""
    service, goals, split = option.service, option.goals, option.prefill is not None
    follows = _OF_TWO if split else _OF_ONE
    words = "two pools" if split else "a copy that is full"
    found = {
        name: value
        for name, value in option.found.items()
        if name not in (*follows, *_RATIOS, "required_rate", "replica_devices")
    }
    known = Known().add(f"closed forms of {words}, at the best batch within the goals", **found)
    asking = f"of {goals.users:,.0f} users who wait and think" if goals.users else "given"
    known.add(asking, required_rate=option.value("required_rate"))
    known.add("layout", replica_devices=option.value("replica_devices"))
    known.add("given", prompt_tokens=goals.prompt_tokens, output_tokens=goals.output_tokens)
    words = price_words(option)
    if split:
        known.add(f"prices of both pools: {words}", fleet_price=option.value("fleet_price"))
    else:
        known.add(words, device_price=option.candidate.price)
    both = option.name.removesuffix(f", {service.formats.name}")
    labels = {**service.labels, "hardware": both}
    equations = equations_of(arrivals.PLANS)
    return Question(known, tuple(each for each in equations if each.name in follows), labels)


# What the derivation of a device's price says that it is about.
_BOUGHT = {
    "model": "any model",
    "model_source": "",
    "hardware": "a device that is bought",
    "precision": "any precision",
    "estimate": "paid off evenly over its life",
}


def bought(known: Known) -> Quantity:
    """Return what a device costs per time that was bought, from what is known of it."""
    question = Question(known, (EQUATIONS["owned_device_price"],), _BOUGHT)
    price = float(question.value("device_price"))

    def origin(value: Quantity) -> Origin:
        from mlsim.solvers.explain import as_card, as_note

        derivation = Explanation(question, "device_price").to_dict()
        words = "price of a device that is bought"
        brief = f"{words} = {value.in_full}, over its life, with electricity at full power"
        return Origin(words, brief, as_card(derivation), as_note(derivation))

    return term("device_price").scaled(price, origin)


# Batches that are tried of each layout, and prompts that are read together to time one more.
BATCHES, TOGETHER = 32, 4


@dataclass(frozen=True, slots=True)
class Goals(Suggesting):
    """What a service must do: times in s, requests per second, tokens of each request.

    In place of a rate, `users` who think for `think_time` between an answer and the next request.
    """

    rate: float
    first_token: float
    per_token: float
    prompt_tokens: float
    output_tokens: float
    users: float = 0.0
    think_time: float = 0.0

    def met_by(self, values: Mapping[str, float]) -> Goals:
        """Return them with the rate at which users ask who wait as long as a layout lets them."""
        if not self.users:
            return self
        steps = arrivals.output_steps(self.output_tokens, 1.0)
        first, each = (values[name] for name in ("time_to_first_token", "time_per_output_token"))
        latency = arrivals.request_latency(first, steps, each)
        return replace(self, rate=float(arrivals.users_rate(self.users, self.think_time, latency)))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate(Suggesting):
    """A layout to be tried, and what one of its devices costs per time.

    Attributes
    ----------
    service
        The model on its devices.
    price
        In USD/s for one device; of energy, its full power in W.
    words
        Where the price comes from.
    unit
        Of the price: "1" where devices are counted.
    """

    service: Service
    price: float
    words: str
    unit: str = "USD/s"


@dataclass(frozen=True, slots=True, eq=False)
class Option(Suggesting):
    """A layout that meets the goals, at the largest batch that does.

    All in base units, of a copy that is full at this batch, without a wait for a place in it;
    `front` has every batch that was tried, as columns.
    """

    candidate: Candidate
    found: Mapping[str, float]
    front: Mapping[str, Any] = field(repr=False)
    goals: Goals = field(repr=False)
    # What reads the prompts, where that has devices of its own.
    prefill: Candidate | None = None
    # Constants that were measured on other devices, and matter; by which factor its times may be
    # longer than those of a layout with its own; and what it takes if they are: nothing where it
    # then misses the goals.
    loans: tuple[Loan, ...] = ()
    slower: float = 1.0
    slow: Mapping[str, float] = field(default_factory=dict)

    required_rate = count("Requests per second that are asked of all copies.")
    running_requests = count("Requests that one scheduler works on at one time.")
    replica_rate = count("Requests per second that one full copy serves in time.")
    replicas = count("Copies that the rate needs.")
    replica_use = count("Share of a copy's rate that is asked of it.")
    replica_devices = count("Devices of one copy; of two pools, of a pair of them.")
    fleet_devices = count("Devices of all copies.")
    fleet_price = result("Price of all devices per time; of energy their power, else a count.")
    prompt_share = count("Share of the time in which prompts are read; of two pools, of the bill.")
    time_to_first_token = result("Mean time to the first token of a full copy.")
    time_per_output_token = result("Mean time per further token of a full copy.")
    output_token_price = result("Price of one generated token, prompts included.")
    prompt_token_price = result("Price of one token of a prompt.")
    answer_token_price = result("Price of one generated token, prompts apart.")
    margin = count("How many times as long both times may be within the goals.")
    prefill_copies = count("Copies that only read prompts, in each pair of pools.")
    decode_copies = count("Copies that only decode, in each pair of pools.")
    prefill_use = count("Share of the time in which the pool that reads prompts is busy.")
    decode_use = count("Share of its rate that is asked of the pool that decodes.")

    def value(self, name: str) -> float:
        """Return a result in its base unit.

        Raises
        ------
        UnknownNameError
            If there is no such result, as of two pools where there is one.
        """
        if name not in self.found:
            raise unknown_name("result of a plan", name, self.found)
        return self.found[name]

    def quantity(self, name: str) -> Quantity:
        """Return a result as a value with unit, name and origin: what its attribute gives.

        Raises
        ------
        UnknownNameError
            As `value`.

        >>> from mlsim import Engine
        >>> best = Engine.plan(model="Llama3_8B", rate=20, hardware="H100").best
        >>> best.fleet_devices == 1, best.fleet_price == best.quantity("fleet_price")
        (True, True)
        """
        value, origin = self.value(name), partial(self._origin_of, name)
        if name in _RATIOS:
            return of_base(value, "1", origin, share=name.endswith("_use"))
        if self._stands_for_price(name):
            unit = self.candidate.unit
            return of_base(value, unit if name == "fleet_price" else _PER_TOKEN[unit], origin)
        return term(name).scaled(value, origin)

    by_name = quantity

    def _stands_for_price(self, name: str) -> bool:
        """Tell whether a result has the place of a price, and is none."""
        return self.candidate.unit in _PER_TOKEN and name in ("fleet_price", *_TOKENS)

    def _origin_of(self, name: str, value: Quantity) -> Origin:
        """Return how a result came to be, for the value that asks."""
        from mlsim.solvers.explain import as_card, as_note

        words = name.replace("_", " ")
        brief = f"{words} = {value.in_full} (plan: {literal(self.name)})"
        if name in _RATIOS or self._stands_for_price(name):
            how = _RATIOS.get(name) or f"all devices; {literal(price_words(self))}"
            return Origin(words, brief, f"{brief}\n\n{how}")
        derivation = Explanation(question_of(self), name).to_dict()
        return Origin(words, brief, as_card(derivation), as_note(derivation))

    @property
    def service(self) -> Service:
        """The model on its devices; of two pools on those that decode."""
        return self.candidate.service

    @property
    def name(self) -> str:
        """The layout in words."""
        if self.prefill is None:
            return name_of(self.service)
        reads = pool_words(self.prefill.service, self.value("prefill_copies"))
        decodes = pool_words(self.service, self.value("decode_copies"))
        return f"prefill on {reads}, decode on {decodes}, {self.service.formats.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Refused(Suggesting):
    """A layout that can't serve, or misses the goals: why, and by how much at its best.

    `short` is the worst time over its goal where it comes nearest; infinite if it can't run.
    """

    candidate: Candidate | None
    name: str
    why: str
    short: float = float("inf")
    nearest: Mapping[str, float] = field(default_factory=dict)
    # Whether it has two pools.
    split: bool = False


def tried(candidate: Candidate, goals: Goals, rule: Scheduler) -> Option | Refused:
    """Return what a layout can do: its best batch within the goals, or why there is none."""
    try:
        front = points(candidate.service, goals, rule.on(candidate.service.device))
    except MlsimError as error:
        return Refused(candidate, name_of(candidate.service), str(error))
    if isinstance(front, str):
        return Refused(candidate, name_of(candidate.service), front)
    return _chosen(candidate, front, goals)


def slowed(option: Option, goals: Goals, factor: float) -> Mapping[str, float]:
    """Return what a layout takes if all its steps are so many times as long; nothing if late.

    Of two pools it is the cost that grows: each copy answers as much less.
    """
    if option.prefill is not None:
        if option.value("margin") < factor:
            return {}
        found = {name: option.value(name) * factor for name in ("fleet_price", "fleet_devices")}
        return {**option.found, **found}
    times = dict.fromkeys(("time_per_output_token", "time_to_first_token"), factor)
    times["replica_rate"] = 1 / factor
    front = {name: values * times.get(name, 1.0) for name, values in option.front.items()}
    made = _chosen(option.candidate, front, goals)
    return made.found if isinstance(made, Option) else {}


def name_of(service: Service) -> str:
    """Return a layout in words."""
    return f"{service.hardware_name}, {service.formats.name}"


def pool_words(service: Service, copies: float) -> str:
    """Return one of two pools in words: its copies, and the layout of each."""
    layout, many = service.parallelism, f"{copies:,.0f} x " if copies > 1 else ""
    each = f"{layout.devices} x {service.device.name} ({layout})"
    return f"{many}{each if layout.devices > 1 else service.device.name}"


def points(service: Service, goals: Goals, rule: Scheduler) -> dict[str, Any] | str:
    """Return times and rates of one copy by batch, as arrays; in words why there are none."""
    import numpy as np

    batch = batches(service, goals, rule)
    if batch is None:
        return "does not fit in memory"
    decode, made = decoding(service, batch, goals.prompt_tokens + goals.output_tokens / 2)
    reading = reading_times(service, np.array([1.0, TOGETHER]))
    lone = float(reading[0])
    prompt = arrivals.further_prompt_time(float(reading[1]), lone, float(TOGETHER))
    rate = arrivals.saturation_rate(batch, decode_steps(goals, made), decode, prompt)
    interval = arrivals.token_interval(decode, rate, prompt)
    met = arrivals.met_interval(interval, arrivals.interval_variance(interval, rate, prompt))
    first = arrivals.steady_first_token(
        *(lone, decode, prompt, rate, met, batch, float(rule.steps_ahead), interval),
        path_time=path_of(service, goals.prompt_tokens),
    )
    return {
        "running_requests": batch,
        "replica_rate": rate * schedulers_in(service),
        "prompt_share": arrivals.prompt_share(rate, prompt),
        "time_per_output_token": arrivals.interval_per_token(interval, made),
        "time_to_first_token": first,
    }


def path_of(service: Service, prompt_tokens: float) -> float:
    """Return how long a request is on its way to its scheduler, in s."""
    made_by = service.software
    if made_by is None:
        return 0.0
    call, token = (made_by.value(name) for name in ("call_time", "tokenizing_time"))
    return float(arrivals.path_time(call, prompt_tokens, token))


def batches(service: Service, goals: Goals, rule: Scheduler) -> Any:
    """Return the batches of one scheduler that are tried, or None where nothing fits."""
    import numpy as np

    largest = largest_batch(service, goals)
    if largest < 1:
        return None
    most = min(largest, rule.running_limit)
    return np.unique(np.rint(np.geomspace(1, most, BATCHES))).astype(float)


def schedulers_in(service: Service) -> int:
    """Return the batches that one copy has at a time, each with a scheduler of its own.

    The stages of a pipeline have one each, in turn; so have copies of attention that share experts.
    """
    return service.parallelism.pipeline * service.parallelism.data


def largest_batch(service: Service, goals: Goals) -> int:
    """Return for how many requests of one scheduler there is memory."""
    one = replace(service, batch_size=float(service.parallelism.data))
    alone = step_question(one, "memory", 1.0, goals.prompt_tokens)
    return int(alone.value("largest_batch")) // schedulers_in(service)


def decode_steps(goals: Goals, made: float) -> float:
    """Return the steps in which a request decodes that makes so many tokens in each."""
    return float(arrivals.output_rounds(goals.output_tokens, made))


def decoding(service: Service, batch: Any, cached: float) -> tuple[Any, float]:
    """Return the time of a decode step, or of a round of speculation, and what it makes."""
    import numpy as np

    if service.switches.speculation is None:
        return _latency(service, batch, 1.0, cached), 1.0
    asked = replace(service, batch_size=batch * schedulers_in(service))
    found = round_question(asked, np.full(batch.shape, cached)).evaluate(
        "round_time", "expected_tokens"
    )
    return found["round_time"], float(np.max(found["expected_tokens"]))


def reading_times(service: Service, batch: Any) -> Any:
    """Return the time in which prompts are read, by a draft as well where there is one."""
    new, cached = service.prefill
    name = "time_to_first_token" if service.switches.draft else "latency"
    return _latency(service, batch, new, cached, name)


def _latency(service: Service, batch: Any, new: float, cached: float, name: str = "latency") -> Any:
    import numpy as np

    asked = replace(service, batch_size=batch * schedulers_in(service))
    full = np.full(batch.shape, new), np.full(batch.shape, cached)
    found = step_question(asked, "a step of the plan", *full).evaluate(name)[name]
    return np.broadcast_to(found, batch.shape)


def _chosen(candidate: Candidate, front: dict[str, Any], goals: Goals) -> Option | Refused:
    import numpy as np

    late = np.maximum(
        front["time_per_output_token"] / goals.per_token,
        front["time_to_first_token"] / goals.first_token,
    )
    name = name_of(candidate.service)
    if late.min() > 1:
        nearest = int(late.argmin())
        values = {key: float(column[nearest]) for key, column in front.items()}
        slow = (
            "first token"
            if values["time_to_first_token"] / goals.first_token
            >= values["time_per_output_token"] / goals.per_token
            else "each token"
        )
        why = f"{slow} takes {late.min():.3g} times the goal at its best"
        return Refused(candidate, name, why, float(late.min()), values)
    best = int(np.where(late <= 1, front["replica_rate"], -1.0).argmax())
    values = {key: float(column[best]) for key, column in front.items()}
    return Option(candidate, values | _fleet(candidate, values, goals), front, goals)


def _fleet(candidate: Candidate, values: Mapping[str, float], goals: Goals) -> dict[str, float]:
    """Return how many copies and devices it takes, and what that costs."""
    goals = goals.met_by(values)
    copies = arrivals.replicas(goals.rate, values["replica_rate"])
    each = float(candidate.service.parallelism.devices)
    load = arrivals.replica_load(goals.rate, copies)
    devices = arrivals.fleet_devices(copies, each)
    price = arrivals.fleet_price(devices, candidate.price)
    return {
        "required_rate": goals.rate,
        "replicas": float(copies),
        "replica_use": float(arrivals.saturation_share(load, values["replica_rate"])),
        "replica_devices": each,
        "fleet_devices": float(devices),
        "fleet_price": price,
        **token_prices(price, values["prompt_share"], goals),
        "margin": margin_of(values, goals),
    }


def token_prices(price: float, share: float, goals: Goals) -> dict[str, float]:
    """Return what tokens cost of a fleet of which a share reads prompts."""
    rate = goals.rate
    return {
        "output_token_price": arrivals.output_token_price(price, rate, goals.output_tokens),
        "prompt_token_price": arrivals.prompt_token_price(price, share, rate, goals.prompt_tokens),
        "answer_token_price": arrivals.answer_token_price(price, share, rate, goals.output_tokens),
    }


def margin_of(values: Mapping[str, float], goals: Goals) -> float:
    """Return how much longer both times may be within the goals: the lesser factor."""
    return float(
        min(
            goals.per_token / values["time_per_output_token"],
            goals.first_token / values["time_to_first_token"],
        )
    )
