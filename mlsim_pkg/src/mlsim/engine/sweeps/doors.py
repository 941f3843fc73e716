"""Doors that can be swept: which arguments run as arrays, and what a table has of the answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from typing import Any

from mlsim.errors import InvalidValueError, nearest

# Of a door's arguments, what a sweep has no use for: it keeps what does not fit as a row.
_NOT_SWEPT = ("check_memory",)
_PERCENTILES = ("_p50", "_p90", "_p99")


@dataclass(frozen=True, slots=True)
class Door:
    """A question of `Engine` that can be asked for many configurations at once.

    Attributes
    ----------
    name
        Such as "serve".
    arrays
        Arguments whose values are computed together; the others are asked one by one.
    whole
        Those of them that count one by one.
    results
        Columns of the answer, if nobody names any.
    more
        Columns that come with an argument, such as the cost with a price.
    """

    name: str
    arrays: tuple[str, ...]
    results: tuple[str, ...]
    whole: tuple[str, ...] = ()
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def ask(self) -> Callable[..., Any]:
        """The function behind the door."""
        found: Callable[..., Any] = getattr(import_module(f"mlsim.engine.{self.name}"), self.name)
        return found

    @property
    def arguments(self) -> tuple[str, ...]:
        """What it takes by name."""
        return tuple(
            each.name
            for each in signature(self.ask).parameters.values()
            if each.kind is not each.VAR_KEYWORD and each.name not in _NOT_SWEPT
        )

    @property
    def checks_memory(self) -> bool:
        """Whether it refuses times of what does not fit, unless told otherwise."""
        return _NOT_SWEPT[0] in signature(self.ask).parameters

    @property
    def required(self) -> tuple[str, ...]:
        """What it can't do without."""
        found = (each for each in signature(self.ask).parameters.values())
        return tuple(
            each.name
            for each in found
            if each.default is each.empty and each.kind is not each.VAR_KEYWORD
        )

    def columns(self, networks: Collection[bool], given: Iterable[str]) -> tuple[str, ...]:
        """Return the results that a table has, if nobody names any.

        `networks` says of each kind of model whether it is a network; one that is trained
        has samples, and no tokens.
        """
        further = [name for each in given for name in self.more.get(each, ())]
        found = [*self.results, *further]
        if self.name == "train" and True in networks:
            found.insert(found.index("token_rate"), "throughput")
            if False not in networks:
                found.remove("token_rate")
        return tuple(dict.fromkeys(found))


_SERVED = ("batch_size", "prompt_tokens", "output_tokens")
_RUN = ("global_batch", "micro_batch", "tokens", "price")
_FAILING = ("mean_time_to_failure", "checkpoint_bandwidth", "restart_time")

DOORS = {
    each.name: each
    for each in (
        Door(
            "solve",
            ("batch_size",),
            ("latency", "throughput", "bottleneck", "memory_bound_share", "memory_required"),
            whole=("batch_size",),
        ),
        Door(
            "serve",
            _SERVED,
            (
                *("time_to_first_token", "time_per_output_token", "generation_latency"),
                *("decode_throughput", "memory_required", "memory_free", "largest_batch"),
            ),
            whole=_SERVED,
        ),
        Door(
            "train",
            (*_RUN, *_FAILING),
            (
                *("step_time", "token_rate", "model_flops_utilization"),
                *("memory_required", "memory_free"),
            ),
            whole=("global_batch", "micro_batch"),
            more={
                "tokens": ("training_time", "device_time"),
                "samples": ("training_time", "device_time"),
                "price": ("training_cost",),
                "mean_time_to_failure": ("goodput",),
            },
        ),
        Door(
            "load",
            (),
            (
                *("time_to_first_token", "time_to_first_token_p90"),
                *("time_per_output_token", "time_per_output_token_p90", "request_latency"),
                *("output_throughput", "running_requests", "server_use", "saturation_rate"),
            ),
        ),
        Door(
            "gemm",
            ("M", "N", "K", "batch"),
            ("latency", "bottleneck", "memory_required"),
            whole=("M", "N", "K", "batch"),
        ),
        Door("footprint", (), ("facility_energy", "total_carbon")),
    )
}


def door_of(name: str | None, given: Mapping[str, Any], language: bool) -> Door:
    """Return the door that was named, or the one that the arguments belong to.

    Parameters
    ----------
    name
        Of the door, or None.
    given
        The arguments by name.
    language
        Whether the model is a language model.

    Raises
    ------
    InvalidValueError
        If there is no such door.
    """
    if name is not None:
        if not isinstance(name, str) or name not in DOORS:
            raise InvalidValueError(
                f"door must be one of {', '.join(DOORS)}, not {name!r}.{nearest(name, DOORS)}"
            )
        return DOORS[name]
    for door, own in _TELLING.items():
        if own & given.keys():
            return DOORS[door]
    return DOORS["serve" if language else "solve"]


# Arguments that one door alone has, and that tell it from the others.
LOADING = {"rate", "users", "burst", "trace"}
_TELLING = {
    "footprint": {"work", "device_hours"},
    "gemm": {"M", "N", "K", "groups"},
    "train": {"global_batch"},
    "load": LOADING,
}


def quantity_of(result: str) -> str:
    """Return the quantity of the vocabulary that a result is: of which phase or share it is aside.

    >>> quantity_of("decode.latency"), quantity_of("time_to_first_token_p90")
    ('latency', 'time_to_first_token')
    """
    name = result.rpartition(".")[2]
    for ending in _PERCENTILES:
        name = name.removesuffix(ending)
    return name
