"""The layouts that `Engine.plan` tries: of each device or system, in each format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, MlsimError, nearest
from mlsim.hardware import Device
from mlsim.parameters import check, validate
from mlsim.solvers.formats import formats
from mlsim.solvers.plan.options import Candidate, Goals, Option, Refused, tried
from mlsim.solvers.plan.planned import OBJECTIVES
from mlsim.solvers.plan.pools import Between, paired
from mlsim.solvers.serving.checks import service
from mlsim.systems import Cluster, System
from mlsim.systems.schedulers import Scheduler
from mlsim.systems.system import link_rate
from mlsim.workloads.language import Transformer
from mlsim.workloads.steps import Parallelism
from mlsim.zoo import resolve
from mlsim.zoo.spaces import Systems

if TYPE_CHECKING:
    from mlsim.measured.failures_and_prices import Price

Where = Device | System | Cluster
_MOST_TENSOR = 64


@dataclass(frozen=True)
class Layouts:
    """What is tried.

    Attributes
    ----------
    how
        What each layout is asked about, as `Engine.serve` has it.
    prices
        What a device costs.
    precisions, contexts, stages
        Formats; devices that share a sequence; stages of a pipeline.
    imbalance
        Tokens of the busiest device with experts over the mean, where experts are spread.
    pools
        Whether all devices do both, some only read prompts, or whichever is better.
    prefill_hardware
        Where prompts are read, if elsewhere.
    link_bandwidth, overlap
        What joins two pools, where it is given.
    """

    how: Mapping[str, Any]
    prices: Prices
    precisions: Sequence[Any]
    contexts: Sequence[int] = (1,)
    stages: Sequence[int] = (1,)
    imbalance: float | str = 1.0
    pools: str = "one"
    prefill_hardware: Sequence[Where] = ()
    link_bandwidth: float | None = None
    overlap: bool = False
    # Pairs of pools that were tried.
    pairs: list[int] = field(default_factory=list)

    def of(self, where: Where, goals: Goals, rule: Scheduler) -> Iterator[Option | Refused]:
        """Yield what can be done on some hardware, in one pool or two."""
        for precision in self._formats(_device(where)):
            made = list(self.candidates(where, precision))
            refused = [each for each in made if isinstance(each, Refused)]
            able = [each for each in made if isinstance(each, Candidate)]
            yield from refused
            if self.pools != "two":
                yield from (tried(each, goals, rule) for each in able)
            if self.pools != "one" and able:
                yield from self._split(where, precision, able, goals, rule)

    def _formats(self, device: Device) -> list[Any]:
        """Return the formats that are to be tried on a device, each once, however it is written."""
        found: dict[str, Any] = {}
        for each in self.precisions:
            try:
                name = formats(each, device=device, released=self.how["model"].released).name
            except MlsimError:
                name = str(each)  # refused where it is tried
            found.setdefault(name, each)
        return list(found.values())

    def _split(
        self,
        where: Where,
        precision: Any,
        decode: Sequence[Candidate],
        goals: Goals,
        rule: Scheduler,
    ) -> Iterator[Option | Refused]:
        between = self._between(where)
        if between is None:
            why = "no link between two pools is on record; give prefill_link_bandwidth="
            yield Refused(None, f"two pools of {_device(where).name}", why, split=True)
            return
        found = []
        for there in self.prefill_hardware or (where,):
            found += list(self.candidates(there, precision, prefill=True))
        yield from (each for each in found if isinstance(each, Refused) and self.prefill_hardware)
        reading = [each for each in found if isinstance(each, Candidate)]
        options, count = paired(reading, decode, between, goals, rule)
        self.pairs.append(count)
        yield from options

    def _between(self, where: Where) -> Between | None:
        """Return what joins two pools, or None where nobody says."""
        if self.link_bandwidth is not None:
            return Between(self.link_bandwidth, overlap=self.overlap)
        system = _node(where) if isinstance(where, Device) else where
        if self.prefill_hardware or system is None:
            return None
        if isinstance(system, Cluster):
            return Between(system.fabric_bandwidth, float(system.devices), self.overlap)
        rate = system.link_bandwidth(system.devices)
        return Between(rate, float(system.devices), self.overlap)

    def candidates(
        self, where: Where, precision: Any, *, prefill: bool = False
    ) -> Iterator[Candidate | Refused]:
        """Yield each layout of the model on some hardware; of a pool that only reads, as it is."""
        device = _device(where)
        system = _node(where) if isinstance(where, Device) else where
        cost = self.prices.of(device)
        if cost is None:
            yield Refused(None, device.name, "no price is on record; give price=")
            return
        # Guesses and offload are for what decodes.
        own = {"speculation": None, "offload": None, "output_tokens": 1} if prefill else {}
        there = system.devices if system else 1
        model = self.how["model"]
        layouts = list(self._layouts(model, there))
        if not layouts:
            why = f"has {there} device(s): too few for context_parallel and pipeline_parallel"
            yield Refused(None, device.name, why)
        for layout in layouts:
            try:
                chosen = formats(
                    precision, device=device, released=model.released, stated=model.stated_format
                )
                made = service(
                    **{**self.how, **own},
                    hardware=system if system and layout.devices > 1 else device,
                    formats=chosen,
                    parallelism=layout,
                    expert_imbalance=self.imbalance if layout.expert > 1 else 1.0,
                    batch_size=layout.data,
                )
            except MlsimError as error:
                name = f"{layout.devices} x {device.name}, {precision or 'as released'}"
                yield Refused(None, name, str(error))
                continue
            yield Candidate(made, *cost, OBJECTIVES[self.prices.objective][0])

    def _layouts(self, model: Transformer, most: int) -> Iterator[Parallelism]:
        """Yield tensor parallelism of powers of two, experts divided or spread.

        Where there are experts, also copies of attention that share them, as many as there are
        devices for: each copy then has its own requests and cache.
        """
        for context in self.contexts:
            for pipeline in self.stages:
                size = 1
                while size <= _MOST_TENSOR and size * context * pipeline <= most:
                    one = Parallelism(tensor=size, pipeline=pipeline, context=context)
                    yield one
                    if model.experts and size > 1:
                        yield replace(one, expert=size)
                    if model.experts:
                        yield from _attention_copies(one, most)
                    size *= 2


def _attention_copies(one: Parallelism, most: int) -> Iterator[Parallelism]:
    """Yield a layout with two, four ... copies of attention that share one set of experts."""
    copies = 2
    while copies * one.devices <= most and copies * one.tensor <= _MOST_TENSOR:
        yield replace(one, data=copies, expert=copies * one.tensor)
        copies *= 2


def _device(where: Where) -> Device:
    return where if isinstance(where, Device) else where.device


def _node(device: Device) -> System | None:
    """Return the largest node of the zoo that has this device."""
    found = [each for each in Systems if each.device.key == device.key]
    return max(found, key=lambda each: each.devices, default=None)


def once(asked: Iterable[Where]) -> list[Where]:
    """Return hardware without what is there twice: a device stands for its largest node, too.

    >>> from mlsim import Hardware, Systems
    >>> len(once([Hardware.Cloud.H100, Systems.HGX_H100, Hardware.Cloud.A100]))
    2
    """
    found: list[Where] = []
    known: list[tuple[Device, Where | None]] = []
    for each in asked:
        same = _device(each), _node(each) if isinstance(each, Device) else each
        if same not in known:
            known.append(same)
            found.append(each)
    return found


def listed(given: Any) -> list[Any]:
    """Return what is given as a list: several, or one."""
    return list(given) if isinstance(given, (list, tuple)) else [given]


def sizes(name: str, given: Any) -> list[int]:
    """Return the sizes of a layout that are to be tried.

    Raises
    ------
    InvalidValueError
        If one is no whole number from 1 up.
    """
    return list(dict.fromkeys(check(name, each) for each in listed(given)))


def pools_of(
    pools: Any, prefill_hardware: Any, prefill_link_bandwidth: Any, prefill_overlap: Any
) -> dict[str, Any]:
    """Return what is said of two pools, as a `Layouts` has it.

    Raises
    ------
    InvalidValueError
        If it can't be, or contradicts itself.
    """
    check("pools", pools)
    check("prefill_overlap", prefill_overlap)
    said = {
        "prefill_hardware": prefill_hardware is not None,
        "prefill_link_bandwidth": prefill_link_bandwidth is not None,
        "prefill_overlap": prefill_overlap,
    }
    names = [name for name, given in said.items() if given]
    if pools == "one" and names:
        raise InvalidValueError(
            f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} for two pools, and "
            "pools='one' tries none. Ask with pools='either', or 'two'."
        )
    if prefill_hardware is not None and prefill_link_bandwidth is None:
        raise InvalidValueError(
            "nobody says how prefill_hardware is joined to the devices that decode: give "
            "prefill_link_bandwidth='400 Gb/s', what one device sends to the other pool."
        )
    link = None if prefill_link_bandwidth is None else link_rate(prefill_link_bandwidth)
    return {
        "pools": pools,
        "prefill_hardware": once(resolve.cluster(each) for each in listed(prefill_hardware or [])),
        "link_bandwidth": link,
        "overlap": prefill_overlap,
    }


class Prices:
    """What a device costs per time, and in whose words."""

    def __init__(self, objective: str, provider: str | None, terms: str, given: Any) -> None:
        from mlsim.measured.failures_and_prices import TERMS, prices

        self.objective, self.provider, self.terms = check("objective", objective), provider, terms
        if terms not in TERMS:
            raise InvalidValueError(f"terms {terms!r} are none of {', '.join(TERMS)}.")
        self.given: dict[str, Any] = {}
        self.same: Any = None
        if isinstance(given, dict):
            for name, value in given.items():
                _price(value)
                self.given[resolve.device(name).key] = value
        elif given is not None:
            _price(given)
            self.same = given
        if provider is not None and not prices(provider=provider):
            known = sorted({row.provider for row in prices()})
            raise InvalidValueError(
                f"no prices of {provider!r} are on record.{nearest(provider, known)} "
                f"There are those of {', '.join(known)}."
            )

    def check_asked(self, hardware: Iterable[Device | System | Cluster]) -> None:
        """Refuse the price of a device that isn't tried.

        Raises
        ------
        InvalidValueError
            If one is given.
        """
        tried = [each if isinstance(each, Device) else each.device for each in hardware]
        keys = [each.key for each in tried]
        for key in self.given:
            if key not in keys:
                name = resolve.device(key).name
                raise InvalidValueError(
                    f"price has {name}, which is not tried: hardware has "
                    f"{', '.join(dict.fromkeys(each.name for each in tried))}. Add it there, or "
                    "leave its price out."
                )

    def devices(self) -> list[Device]:
        """All devices that have a price."""
        keys = dict.fromkeys((*(row.device for row in self._rows(None)), *self.given))
        return [resolve.device(key) for key in keys]

    def _rows(self, device: Device | None) -> list[Price]:
        from mlsim.measured.failures_and_prices import prices

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
            power = device.power.tdp
            if power is None:
                return None
            return float(power.to("W").magnitude), f"full power of one device: {power:~P}"
        given = self.given.get(device.key, self.same)
        if given is not None:
            return _price(given), f"given: {given} for one device"
        rows = self._rows(device)
        if not rows:
            return None
        least = min(rows, key=lambda row: row.per_device.to("USD/s").magnitude)
        return float(least.per_device.to("USD/s").magnitude), (
            f"{least.per_device:.2f} for one {device.name}, {least.provider}, {least.terms}, "
            f"{least.date} ({least.source})"
        )


def _price(given: Any) -> float:
    """Return a price that is given in USD/s; refuse what is no price."""
    found = validate("device_price", given)
    if getattr(found, "ndim", 0):
        raise InvalidValueError(
            f"device_price must be one price, or one by device as {{'H100': '2 USD/h'}}, not "
            f"{given!r}."
        )
    return float(found)
