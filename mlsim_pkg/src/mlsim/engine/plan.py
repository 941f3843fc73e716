"""`Engine.plan`: which machines, how many and how laid out, for so many users in time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlsim.engine.layouts import Layouts, Prices, listed, once, pools_of, sizes
from mlsim.engine.load import limited
from mlsim.engine.serve import switched
from mlsim.errors import InvalidValueError, need
from mlsim.hardware.kernel_constants import Loan
from mlsim.parameters import CALIBRATED, check, one_number
from mlsim.solvers.arrivals.loaded import one_arrival
from mlsim.solvers.calibrated import farthest, that_matter
from mlsim.solvers.plan.options import (
    TOGETHER,
    Goals,
    Option,
    Refused,
    bought,
    schedulers_in,
    slowed,
)
from mlsim.solvers.plan.planned import Planned, nearest_of, planned
from mlsim.solvers.question import Known
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.serving import Serving
from mlsim.systems.schedulers import scheduler as find_scheduler
from mlsim.workloads.adapters import LoRA
from mlsim.workloads.model import Model
from mlsim.workloads.steps import Offload, Speculation
from mlsim.zoo import resolve

if TYPE_CHECKING:
    from mlsim.engine.bands import SpeedBand
    from mlsim.values.kinds import Quantity


def plan(
    model: Model | str,
    hardware: Any = None,
    *,
    rate: Any = None,
    users: int | None = None,
    think_time: float = 0.0,
    time_to_first_token: Any = "1 s",  # noqa: S107
    time_per_output_token: Any = "50 ms",  # noqa: S107
    prompt_tokens: int = 512,
    output_tokens: int = 128,
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
    context_parallel: Any = 1,
    pipeline_parallel: Any = 1,
    expert_imbalance: float | str = 1.0,
    pools: str = "one",
    prefill_hardware: Any = None,
    prefill_link_bandwidth: Any = None,
    prefill_overlap: bool = False,
) -> Planned:
    """Find the cheapest way to serve a language model in time.

    Each device that is rented, in each layout and format, at each batch: how many requests a
    second one copy serves in time (closed forms of `Engine.load`), how many copies that
    takes, and what they cost. Times are those of a full copy, without a wait for a place in its
    batch, which `Engine.load` tells.

    Parameters
    ----------
    model
        A record of the zoo, its name, a TOML file, or a `config.json`.
    rate
        Requests per second that must be served.
    users, think_time
        In place of a rate: users who each wait for an answer, think for so many seconds on
        average, and ask again. The longer a layout lets them wait, the less they ask.
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
    context_parallel, pipeline_parallel
        Devices that share each sequence, and stages that share the layers: a number, or a list
        of those to try.
    expert_imbalance
        As for `serve`; of layouts whose experts are spread.
    pools
        "one": the devices of a copy read prompts and decode. "two": some only read prompts, the
        others decode, each in a layout of its own, as many copies of each as serve best. "either":
        whichever is better. Two pools share a node or a cluster, whose link carries the cache.
    prefill_hardware
        What only reads prompts, or a list, where that is other hardware.
    prefill_link_bandwidth
        What one device sends to the other pool, such as "400 Gb/s": pools then are of any size,
        anywhere.
    prefill_overlap
        Whether the cache of each layer is sent while the next is computed.

    Raises
    ------
    InvalidValueError
        If nothing meets the goals: says what comes nearest; or a goal can't be.
    MissingLibraryError
        If NumPy is not installed.
    MlsimError
        As for `serve`.

    >>> from mlsim import Engine
    >>> found = Engine.plan(model="Llama3_8B", rate=20, hardware=["H100", "L40S"])
    >>> print(found.best.service.device.name, found.best.replicas, found.best.fleet_price)
    NVIDIA H100 SXM 80 GB 1 2.69 USD/h
    """
    need("numpy", "a plan", "arrays")
    check("estimate", estimate)
    served = resolve.transformer(model)
    one_arrival({"rate": rate, "users": users})
    check("expert_imbalance", expert_imbalance)
    goals = _goals(
        (rate, users, think_time),
        *(time_to_first_token, time_per_output_token, prompt_tokens, output_tokens),
    )
    if users is not None and pools != "one":
        raise InvalidValueError(
            f"pools={pools!r} needs a rate: how often users ask hangs on how long they wait, and "
            "two pools are planned for a rate. Give rate=, such as users / (think time + latency)."
        )
    rates = Prices(objective, provider, terms, price)
    rule = limited(find_scheduler(scheduler), running_limit)
    how = {
        "model": served,
        "reserve": reserve,
        "estimate": estimate,
        "software": rule.software if software is None and estimate == CALIBRATED else software,
        "prompt_tokens": int(goals.prompt_tokens),
        "output_tokens": int(goals.output_tokens),
        **switched((prefix_share, prefix_count), speculation, offload, (adapters, adapter_count)),
    }
    layouts = Layouts(
        how,
        rates,
        listed(precision),
        contexts=sizes("context_parallel", context_parallel),
        stages=sizes("pipeline_parallel", pipeline_parallel),
        imbalance=expert_imbalance,
        **pools_of(pools, prefill_hardware, prefill_link_bandwidth, prefill_overlap),
    )
    asked = rates.devices() if hardware is None else listed(hardware)
    there = once(resolve.cluster(each) for each in asked)
    rates.check_asked((*there, *layouts.prefill_hardware))
    found: list[Option | Refused] = []
    left_out: dict[str, Refused] = {}
    for where in there:
        here = list(layouts.of(where, goals, rule))
        found += here
        lost = [each for each in here if isinstance(each, Refused)]
        if hardware is not None and lost and len(lost) == len(here):
            left_out[where.name] = nearest_of(lost)
    known = _bands().band("decode", "latency_s", estimate)
    limits = (1 / known.most, 1 / known.least, known.words) if known else None
    if known and estimate == CALIBRATED:
        found = [_marked(each, goals, known) for each in found]
    return planned(
        served.name,
        goals,
        found,
        objective=objective,
        limits=limits,
        pools=pools,
        pairs=sum(layouts.pairs),
        left_out=left_out,
    )


def _goals(
    asking: tuple[Any, Any, Any],
    first_token: Any,
    per_token: Any,
    prompt_tokens: Any,
    output_tokens: Any,
) -> Goals:
    rate, users, think_time = asking
    pause = check("think_time", think_time)
    if pause and users is None:
        raise InvalidValueError(
            f"think_time = {think_time!r} is for users, who wait for an answer before they ask "
            "again; requests at a rate don't wait. Give users= in place of rate, or leave it out."
        )
    many = 0 if users is None else check("users", users, "plan")
    goals = Goals(
        rate=0.0 if many else one_number("required_rate", rate),
        users=float(many),
        think_time=pause,
        first_token=check("time_to_first_token", first_token),
        per_token=check("time_per_output_token", per_token),
        prompt_tokens=float(check("prompt_tokens", prompt_tokens, "plan")),
        output_tokens=float(check("output_tokens", output_tokens, "plan")),
    )
    if goals.output_tokens < 2:
        raise InvalidValueError("output_tokens must be 2 or more: one token has no pace.")
    return goals


def owned(
    *,
    price: Any,
    years: float,
    power: Any,
    electricity: Any,
    pue: float = 1.2,
) -> Quantity:
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
    >>> print(owned(price="30000 USD", years=4, power="700 W", electricity="0.1 USD/kWh"))
    0.940 USD/h
    """
    if isinstance(years, bool) or not isinstance(years, (int, float)) or not 0 < years < 100:
        raise InvalidValueError(f"years must be a number above 0, not {years!r}.")
    overhead = one_number("pue", pue)
    if overhead < 1:
        raise InvalidValueError(f"pue must be 1 or more, not {pue!r}: all power is in it.")
    known = Known().add(
        "given",
        purchase_price=one_number("purchase_price", price),
        device_lifetime=365.25 * 86_400 * years,
        max_power=one_number("max_power", power),
        pue=overhead,
        electricity_price=one_number("electricity_price", electricity),
    )
    return bought(known)


def _bands() -> Any:
    """Return what says how right predictions are: the one door of a plan to published rows."""
    return import_module("mlsim.engine.bands")


def _marked(found: Option | Refused, goals: Goals, known: SpeedBand) -> Option | Refused:
    """Return an option with its borrowed constants, and what it takes at the slow edge."""
    if isinstance(found, Refused):
        return found
    if found.prefill is None:
        lent = _mattering(
            found.service, found.value("running_requests"), found.value("prompt_share")
        )
    else:
        lent = _mattering(found.service, found.value("running_requests"), 0.0)
        lent += _mattering(found.prefill.service, 1.0, 1.0)
    if not lent:
        return found
    loans = farthest(lent)
    slower = 1 / _bands().lent("generation", (known.least, known.most), loans).least
    return replace(found, loans=loans, slower=slower, slow=slowed(found, goals, slower))


def _mattering(service: Service, running: float, reading: float) -> tuple[Loan, ...]:
    """Return the loans that decide a tenth of the time that requests take of devices.

    In a share of it, `reading`, they read prompts; in the rest so many requests decode together.
    """
    if not service.loans:
        return ()
    causes: Counter[str] = Counter()
    for name, batch, share in (
        ("time_to_first_token", TOGETHER, reading),
        ("time_per_output_token", running, 1 - reading),
    ):
        asked = replace(service, batch_size=batch * schedulers_in(service))
        behind = Serving(asked, check_memory=False).causes_behind(name) if share else {}
        causes.update({cause: share * part for cause, part in behind.items()})
    return that_matter(service.loans, causes)
