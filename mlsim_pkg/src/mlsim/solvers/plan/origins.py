"""Where the results of a plan come from: values with the equations behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mlsim.equations import arrivals, equations_of
from mlsim.equations.registry import EQUATIONS
from mlsim.quantities import term
from mlsim.solvers.explain import Explanation
from mlsim.solvers.question import Known, Question
from mlsim.values import Origin, literal, of_base

if TYPE_CHECKING:
    from mlsim.solvers.plan.options import Option
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


def scaled_result(
    option: Option, name: str, value: float, origin: Callable[[Quantity], Origin]
) -> Quantity:
    """Return a result of a plan as a value, in the unit that a person would choose."""
    if name in _RATIOS:
        return of_base(value, "1", origin, share=name.endswith("_use"))
    if _is_price(option, name):
        unit = option.candidate.unit
        return of_base(value, unit if name == "fleet_price" else _PER_TOKEN[unit], origin)
    return term(name).scaled(value, origin)


def _is_price(option: Option, name: str) -> bool:
    """Tell whether a result has the place of a price, and is none."""
    return option.candidate.unit in _PER_TOKEN and name in ("fleet_price", *_TOKENS)


def origin_of(option: Option, name: str, value: Quantity) -> Origin:
    """Return how a result of a plan came to be, for the value that asks."""
    from mlsim.solvers.explain import as_card, as_note

    words = name.replace("_", " ")
    brief = f"{words} = {value.in_full} (plan: {literal(option.name)})"
    if name in _RATIOS or _is_price(option, name):
        how = _RATIOS.get(name) or f"all devices; {literal(price_words(option))}"
        return Origin(words, brief, f"{brief}\n\n{how}")
    derivation = Explanation(question_of(option), name).to_dict()
    return Origin(words, brief, as_card(derivation), as_note(derivation))


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
