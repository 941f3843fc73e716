"""`Engine.sensitivity`: how much each input of an answer matters, through any door."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.engine.sweeps.question import DOORS, door_for, named, quantity_of
from mlsim.errors import InvalidValueError
from mlsim.quantities import term
from mlsim.solvers.arrays import STEP, Input, elasticities
from mlsim.solvers.question import Known, Question
from mlsim.workloads.model import OperatorTable

if TYPE_CHECKING:
    import pandas

    from mlsim.solvers.serving.service import Service

# What is known of device, formats and links, and of what programs reach of them.
_OF_DEVICE = (
    *("peak_flops", "memory_bandwidth", "memory_capacity", "link_bandwidth"),
    *("bytes_per_parameter", "bytes_per_element", "bytes_per_cached_element"),
    *("compute_fraction", "memory_fraction", "kernel_overhead", "link_fraction", "link_latency"),
    *("host_launch_time", "step_host_time", "sequence_host_time"),
)
_OF_RUN = (
    *("node_bandwidth", "fabric_bandwidth", "stage_bandwidth", "hop_latency"),
    *("bytes_per_gradient", "moment_bytes", "master_bytes", "global_batch", "training_tokens"),
    *("mean_time_to_failure", "checkpoint_bandwidth", "restart_time", "device_price"),
)
_OF_REQUEST = ("batch_size", "prompt_tokens", "output_tokens")
# What goes up or down with another quantity.
_TOGETHER = {"peak_flops": ("peak_rate",)}

# A result where an input is so many times as large.
Scaled = Callable[[float], float]


def sensitivity(
    model: Any = ...,
    hardware: Any = ...,
    *,
    target: str | None = None,
    door: str | None = None,
    **given: Any,
) -> pandas.DataFrame:
    """Tell how much a result changes with each input, as a table, the most first.

    The column `elasticity` is the percent by which the result changes when the input grows
    by one percent, the others held: -1 is half the time at twice the rate. `value` is missing
    where operators differ in it; all of them then change alike. Requests and batches, which
    are counted, go one up and one down.

    Parameters
    ----------
    target
        The result; by default the first that the door tells of.
    model, hardware, door, **given
        The door and its arguments, as for `sweep`, each with one value.

    Raises
    ------
    DoesNotFitError
        If it does not fit in memory, and the result is a time.
    MlsimError
        As the door.

    >>> from mlsim import Engine
    >>> table = Engine.sensitivity(target="time_per_output_token", model="Llama3_8B",
    ...                            hardware="H100")
    >>> table.input[0], float(table.elasticity[0].round(2))
    ('memory_bandwidth', -1.0)
    """
    given = {"model": model, "hardware": hardware, **given}
    asked = {name: each for name, each in given.items() if each is not ...}
    found = door_for(door, asked, "sensitivity")
    result = target or found.results[0]
    answer = DOORS[found.name].ask(**asked)
    _ = answer.question
    answer.one_point("sensitivity()")
    if found.name in ("solve", "gemm"):
        return answer.sensitivity(result)  # type: ignore[no-any-return]
    part, _, inner = result.rpartition(".")
    value = (getattr(answer, part) if part else answer).value(inner)
    if hasattr(value, "low"):
        raise InvalidValueError(f"{result} is a range: give the inputs as single numbers.")
    inputs = {
        "serve": lambda: _of_service(answer.service, _served(result)),
        "load": lambda: _of_load(answer, asked, result),
        "train": lambda: _of_question(
            answer.question, (*_OF_DEVICE, *_OF_RUN), lambda q: _trained(answer, q, result)
        ),
        "footprint": lambda: _of_question(
            answer.question, tuple(answer.question.known), lambda q: float(q.value(result))
        ),
    }
    table = elasticities(inputs[found.name](), lambda name: term(quantity_of(named(name))).unit)
    table.attrs["target"] = result
    return table


def _of_service(
    service: Service, ask: Callable[[Service], float], *, requests: bool = True
) -> Iterator[Input]:
    """Yield what a service's device, formats, links and requests are, and results around it."""
    for name in _OF_REQUEST if requests else ():
        value = float(getattr(service, name))
        if value >= 1:
            # A count goes by whole steps, at least one.
            step = max(STEP, 1 / value)

            def at(scale: float, name: str = name, value: float = value) -> float:
                counted: dict[str, Any] = {name: float(round(value * scale))}
                return ask(replace(service, **counted))

            yield name, value, at, step
    for name in _OF_DEVICE:
        found = _value(name, service.known, service.table)
        # The steps of a scheduler are made of a service anew, which knows one value for all.
        if found is not None and (requests or not math.isnan(found)):
            yield name, found, _of_scaled(service, name, found, ask), STEP


def _of_scaled(
    service: Service, name: str, value: float, ask: Callable[[Service], float]
) -> Scaled:
    """Return a result of a service where a quantity is so many times as large."""

    def at(scale: float) -> float:
        if not math.isnan(value):
            return ask(replace(service, given={**service.given, name: value * scale}))
        made = copy(service)
        object.__setattr__(made, "table", _scaled_table(service.table, name, scale))
        return ask(made)

    return at


def _scaled_table(table: OperatorTable[Any], name: str, scale: float) -> OperatorTable[Any]:
    extra = dict(table.extra)
    if name in extra:
        extra[name] = tuple(each * scale for each in extra[name])
    # What was worked out of the table before does not hold of this one.
    kept = {
        key: table.cache[key]
        for key in ("sends", "worked", "routed", "uniform", "variant")
        if key in table.cache
    }
    return OperatorTable(table.operators, table.counted, extra, kept)


def _value(name: str, known: Mapping[str, Any], table: OperatorTable[Any]) -> float | None:
    """Return a quantity: NaN where operators differ in it, None where there is none."""
    if name in known:
        value = float(known[name])
        return value if value > 0 else None
    if name not in table.extra:
        return None
    column = set(table.extra[name])
    if len(column) == 1:
        value = column.pop()
        return value if value > 0 else None
    return float("nan") if max(column) > 0 else None


def _served(result: str) -> Callable[[Service], float]:
    from mlsim.solvers.serving.serving import Serving

    part, _, inner = result.rpartition(".")

    def ask(service: Service) -> float:
        answer = Serving(service, check_memory=False)
        return float((getattr(answer, part) if part else answer).value(inner))

    return ask


def _of_load(answer: Any, asked: Mapping[str, Any], result: str) -> Iterator[Input]:
    """Yield the rate, and what the service's device is; the same requests come each time."""
    from mlsim.solvers.arrivals.loaded import LoadedService

    if answer.rate and "trace" not in asked:

        def faster(scale: float) -> float:
            return float(DOORS["load"].ask(**{**asked, "rate": answer.rate * scale}).value(result))

        yield "rate", answer.rate, faster, STEP

    def ask(service: Service) -> float:
        again = LoadedService(service, answer.requests, answer.scheduler, answer.rate)
        return float(again.value(result))

    yield from _of_service(answer.service, ask, requests=False)


def _of_question(
    question: Question, names: tuple[str, ...], ask: Callable[[Question], float]
) -> Iterator[Input]:
    """Yield what is known in one question, and its result around it."""
    for name in names:
        value = _value(name, question.known, question.table)
        if value is None:
            continue

        def at(scale: float, name: str = name) -> float:
            known = question.known.joined(Known())
            for each in (name, *_TOGETHER.get(name, ())):
                if each in known:
                    known[each] = known[each] * scale
            return ask(
                Question(
                    known,
                    question.equations,
                    question.labels,
                    table=_scaled_table(question.table, name, scale),
                )
            )

        yield name, value, at, STEP


def _trained(answer: Any, question: Question, result: str) -> float:
    """Return a result of a training run whose question is another one."""
    made = copy(answer)
    made._check_memory, made._values, made.run = False, {}, copy(answer.run)
    made.__dict__["question"] = made.run.__dict__["question"] = question
    return float(made.value(result))
