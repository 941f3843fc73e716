"""`Engine.plan`: which machines, how many and how laid out, for so many users in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlsim.engine.keywords import SWITCHES, service_of
from mlsim.engine.predict.bands import band as find_band
from mlsim.equations import plans
from mlsim.errors import InvalidValueError, MlsimError, nearest
from mlsim.hardware import Device
from mlsim.measured.failures_and_prices import TERMS, Price, prices
from mlsim.solvers.inputs import CALIBRATED, check_estimate, validate
from mlsim.solvers.plan.options import Candidate, Goals, Option, Refused, tried
from mlsim.solvers.plan.planned import OBJECTIVES, Planned, planned
from mlsim.systems import Cluster, System
from mlsim.systems.schedulers import scheduler as find_scheduler
from mlsim.units import to_base
from mlsim.workloads.adapters import LoRA
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.workloads.parallelism import Parallelism
from mlsim.workloads.requests import check_count
from mlsim.workloads.switches import Offload, Speculation
from mlsim.zoo import resolve
from mlsim.zoo.spaces import Systems


def plan(
    *,
    model: Model | str,
    rate: Any,
    time_to_first_token: Any = "1 s",  # noqa: S107
    time_per_output_token: Any = "50 ms",  # noqa: S107
    prompt_tokens: int = 512,
    output_tokens: int = 128,
    hardware: Any = None,
    precision: Any = None,
    objective: str = "cost",
    provider: str | None = None,
    terms: str = "on demand",
    price: Any = None,
    scheduler: str = "vllm",
    running_limit: int | None = None,
    reserve: float = 0.1,
    estimate: str = "calibrated",
    software: str | None = None,
    prefix_share: Any = 0.0,
    prefix_count: int | None = None,
    speculation: Speculation | None = None,
    offload: Offload | None = None,
    adapters: LoRA | None = None,
    adapter_count: int | None = None,
) -> Planned:
    """Find the cheapest way to serve a language model in time.

    Each device that is rented, in each layout and format, at each batch: how many requests a
    second one copy serves in time (closed forms of `Engine.load`), how many copies that
    takes, and what they cost.

    Parameters
    ----------
    model
        A record of the zoo, its name, a TOML file, or a `config.json`.
    rate
        Requests per second that must be served.
    time_to_first_token, time_per_output_token
        Most that a user should wait, on average, such as "500 ms".
    prompt_tokens, output_tokens
        Tokens of each request.
    hardware
        A device, system or cluster, or a list of them; by default all that have a price on record.
        Of a device, tensor parallelism goes up to the largest node of the zoo that has it; of a
        cluster, beyond a node.
    precision
        A format or a list of them; by default what the model was released in.
    objective
        "cost"; "energy", at the full power of the devices, whose order is also that of carbon
        in one place; or "devices".
    provider, terms
        Whose prices, and on which terms: "on demand" or "spot". The lowest on record counts, of
        a product the newest.
    price
        Price of one device in place of those on record, such as "2.5 USD/h", or by device:
        {"H100": "2.5 USD/h"}.
    scheduler, running_limit
        As for `load`: whose steps and class of software count, and the most requests that run at
        one time on one copy.
    reserve, estimate, software
        As for `load`.
    prefix_share, prefix_count, speculation, offload, adapters, adapter_count
        What is switched on, as for `serve`.

    Raises
    ------
    InvalidValueError
        If nothing meets the goals: says what comes nearest; or a goal can't be.
    MlsimError
        As for `serve`.

    >>> from mlsim import Engine
    >>> found = Engine.plan(model="Llama3_8B", rate=20, hardware=["H100", "L40S"])
    >>> found.best.service.device.name, round(found.best["replicas"])
    ('NVIDIA H100 SXM 80 GB', 1)
    """
    keywords = dict(locals())
    check_estimate(estimate)
    served = resolve.transformer(model)
    goals = Goals(
        rate=_positive("required_rate", rate, "sample/s"),
        first_token=_positive("time_to_first_token", time_to_first_token, "s"),
        per_token=_positive("time_per_output_token", time_per_output_token, "s"),
        prompt_tokens=float(check_count("prompt_tokens", prompt_tokens)),
        output_tokens=float(check_count("output_tokens", output_tokens)),
    )
    if goals.output_tokens < 2:
        raise InvalidValueError("output_tokens must be 2 or more: one token has no pace.")
    rates = _Prices(_objective(objective), provider, _terms(terms), price)
    rule = find_scheduler(scheduler)
    if running_limit is not None:
        rule = rule.with_limits(check_count("running_limit", running_limit, 100_000))
    if software is None and estimate == CALIBRATED:
        keywords["software"] = rule.software
    how = {name: keywords[name] for name in ("reserve", "estimate", "software", *SWITCHES)}
    how |= {
        "model": served,
        "batch_size": 1,
        "prompt_tokens": int(goals.prompt_tokens),
        "output_tokens": int(goals.output_tokens),
    }
    found: list[Option | Refused] = []
    for where in _hardware(hardware, rates):
        made = _candidates(where, rates, how, _list(precision))
        found += [each if isinstance(each, Refused) else tried(each, goals, rule) for each in made]
    known = find_band("decode", "latency_s", estimate)
    limits = (1 / known.most, 1 / known.least) if known else None
    return planned(served.name, goals, found, objective, limits)


def owned(
    *,
    price: Any,
    years: float,
    power: Any,
    electricity: Any,
    pue: float = 1.2,
) -> Any:
    """Return what a device costs per hour that is bought and not rented.

    Parameters
    ----------
    price
        Of one device, with its share of the host if it should count: "30000 USD".
    years
        For which it is used.
    power
        That it draws, such as "700 W".
    electricity
        Price of it, such as "0.1 USD/kWh".
    pue
        Power of the data center over that of its devices.

    >>> from mlsim.engine.plan import owned
    >>> print(f"{owned(price='30000 USD', years=4, power='700 W', electricity='0.1 USD/kWh'):.2f}")
    0.94 USD/h
    """
    from mlsim.units import quantity

    found = plans.owned_device_price(
        _positive("purchase_price", price, "USD"),
        float(quantity(365.25 * _years(years), "day").to("s").magnitude),
        _positive("max_power", power, "W"),
        pue,
        _positive("electricity_price", electricity, "USD/J"),
    )
    return quantity(found, "USD/s").to("USD/h")


def _years(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 100:
        raise InvalidValueError(f"years must be a number above 0, not {value!r}.")
    return float(value)


def _positive(name: str, value: Any, unit: str) -> float:
    found = validate(name, value)
    if getattr(found, "ndim", False):
        raise InvalidValueError(f"{name} must be one number; plan once for each.")
    return float(found)


def _objective(name: str) -> str:
    if name not in OBJECTIVES:
        raise InvalidValueError(
            f"objective {name!r} is none of {', '.join(OBJECTIVES)}.{nearest(name, OBJECTIVES)}"
        )
    return name


def _terms(name: str) -> str:
    if name not in TERMS:
        raise InvalidValueError(f"terms {name!r} are none of {', '.join(TERMS)}.")
    return name


def _list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


class _Prices:
    """What a device costs per time, and in whose words."""

    def __init__(self, objective: str, provider: str | None, terms: str, given: Any) -> None:
        self.objective, self.provider, self.terms = objective, provider, terms
        self.given: dict[str, Any] = {}
        self.same: Any = None
        if isinstance(given, dict):
            self.given = {resolve.device(name).key: value for name, value in given.items()}
        else:
            self.same = given
        if provider is not None and not prices(provider=provider):
            known = sorted({row.provider for row in prices()})
            raise InvalidValueError(
                f"no prices of {provider!r} are on record.{nearest(provider, known)} "
                f"There are those of {', '.join(known)}."
            )

    def devices(self) -> list[Device]:
        """All devices that have a price."""
        keys = dict.fromkeys((*(row.device for row in self._rows(None)), *self.given))
        return [resolve.device(key) for key in keys]

    def _rows(self, device: Device | None) -> list[Price]:
        found = prices(device=device, provider=self.provider)
        # What a provider asked before for the same product is no price any more.
        newest: dict[tuple[str, str], Price] = {}
        for row in sorted(found, key=lambda row: row.date):
            if row.terms == self.terms:
                newest[row.provider, row.product] = row
        return list(newest.values())

    def of(self, device: Device) -> tuple[float, str] | None:
        """Return what one device costs per time, or None where nobody says."""
        if self.objective == "devices":
            return 1.0, "devices are counted"
        if self.objective == "energy":
            power = device.power
            if power is None:
                return None
            return float(power.to("W").magnitude), f"full power of one device: {power:~P}"
        given = self.given.get(device.key, self.same)
        if given is not None:
            return to_base(given, "USD/s", "price"), f"given: {given} for one device"
        rows = self._rows(device)
        if not rows:
            return None
        least = min(rows, key=lambda row: row.per_device.to("USD/s").magnitude)
        return float(least.per_device.to("USD/s").magnitude), (
            f"{least.per_device:.2f} for one {device.name}, {least.provider}, {least.terms}, "
            f"{least.date} ({least.source})"
        )


def _hardware(given: Any, rates: _Prices) -> Iterator[Device | System | Cluster]:
    if given is None:
        yield from rates.devices()
        return
    for each in _list(given):
        yield resolve.cluster(each)


def _node(device: Device) -> System | None:
    """Return the largest node of the zoo that has this device."""
    found = [each for each in Systems if each.device.key == device.key]
    return max(found, key=lambda each: each.devices, default=None)


def _candidates(
    where: Device | System | Cluster,
    rates: _Prices,
    how: Mapping[str, Any],
    precisions: Sequence[Any],
) -> Iterator[Candidate | Refused]:
    """Yield each layout of a model on some hardware, in each format."""
    device = where if isinstance(where, Device) else where.device
    system = _node(device) if isinstance(where, Device) else where
    cost = rates.of(device)
    if cost is None:
        yield Refused(None, device.name, "no price is on record; give price=")
        return
    for precision in precisions:
        for layout in _layouts(how["model"], system):
            hardware = system if system and layout.devices > 1 else device
            name = f"{layout.devices} x {device.name}, {precision or 'as released'}"
            own = {"hardware": hardware, "precision": precision, "parallelism": layout}
            try:
                made, _ = service_of({**how, **own})
            except MlsimError as error:
                yield Refused(None, name, str(error))
                continue
            yield Candidate(made, *cost)


def _layouts(model: Transformer, system: System | Cluster | None) -> Iterator[Parallelism]:
    """Yield tensor parallelism of powers of two, experts divided or spread."""
    most = system.devices if system else 1
    size = 1
    while size <= min(most, 64):
        yield Parallelism(tensor=size, pipeline=1, data=1, expert=1)
        if model.experts and size > 1:
            yield Parallelism(tensor=size, pipeline=1, data=1, expert=size)
        size *= 2
