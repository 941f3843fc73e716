"""Schedulers: which requests a serving engine takes into its next step."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsim import records
from mlsim.errors import InvalidValueError, check_whole, unknown_name
from mlsim.hardware import Device
from mlsim.records import DATA
from mlsim.units import to_base

FOLDER = DATA / "schedulers"
_LIMITS = ("running_limit", "tokens_per_step")


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine sets itself on devices with enough memory, where nobody says otherwise.

    Attributes
    ----------
    memory, but
        Least memory in bytes, and words of names of devices that are left out all the same.
    running_limit, tokens_per_step
        As for `Scheduler`.
    """

    memory: float
    but: tuple[str, ...]
    running_limit: int
    tokens_per_step: int

    def hold(self, device: Device) -> bool:
        """Tell whether these are the limits on a device."""
        named = any(each in device.name.lower() for each in self.but)
        return not named and device.memory.capacity.to("B").magnitude >= self.memory


@dataclass(frozen=True, slots=True)
class Scheduler:
    """How an engine puts its steps together.

    Attributes
    ----------
    key, name
        Such as "vllm" and "vLLM".
    mixed
        Whether prompts and decoding share a step; else prompts go first, on their own.
    reserves_output
        Whether a request starts only where its whole answer has room in the cache. Else it
        starts where its prompt has, and the latest are stopped and computed again when the
        cache is full.
    running_limit
        Most requests that run at one time, on any device.
    tokens_per_step
        Most tokens that one step works on, on any device.
    block_tokens
        Tokens in a block of the cache.
    software
        The class of software that it belongs to, for calibrated estimates.
    source, where
        What its rules were read in.
    steps_ahead
        Steps that are made up before the one that runs has ended: 1 where the host works beside
        the device, so that who comes during a step is not in the next one. 0 where it waits.
    poll_steps
        Decode steps between two looks at what has arrived; after a prompt, and where nothing
        runs, it looks at once.
    wait_steps, wait_share
        While others decode, prompts wait for more of them: at most so many steps, and until
        they fill that share of a step's tokens. 0 steps: none waits.
    own
        The engine's own limits by device, the first that hold; see `on`.
    limited
        The limits that somebody set, by name: the engine's own are no more.

    >>> scheduler("vllm").mixed
    True
    """

    key: str
    name: str
    mixed: bool
    reserves_output: bool
    running_limit: int
    tokens_per_step: int
    block_tokens: int
    software: str
    source: str
    where: str
    steps_ahead: int = 0
    poll_steps: int = 1
    wait_steps: int = 0
    wait_share: float = 0.0
    own: tuple[Limits, ...] = ()
    limited: tuple[str, ...] = ()

    def with_limits(
        self, running_limit: int | None = None, tokens_per_step: int | None = None
    ) -> Scheduler:
        """Return it with other limits, where they are given, on whatever device."""
        given = zip(_LIMITS, (running_limit, tokens_per_step), strict=True)
        set_to: dict[str, Any] = {name: value for name, value in given if value is not None}
        own = tuple(replace(each, **set_to) for each in self.own)
        limited = tuple(dict.fromkeys((*self.limited, *set_to)))
        return replace(self, **set_to, own=own, limited=limited)

    def on(self, device: Device) -> Scheduler:
        """Return it with the limits that the engine sets itself on a device.

        >>> from mlsim import Hardware
        >>> vllm = scheduler("vllm")
        >>> [vllm.on(each).running_limit for each in (Hardware.Cloud.A100, Hardware.Cloud.H100)]
        [256, 1024]
        """
        there = next((each for each in self.own if each.hold(device)), self)
        return replace(self, **{name: getattr(there, name) for name in _LIMITS})

    def with_patience(
        self, *, poll_steps: int = 1, wait_steps: int = 0, wait_share: float = 0.0
    ) -> Scheduler:
        """Return it as it runs where it looks for requests, or takes them, less often.

        Raises
        ------
        InvalidValueError
            If steps are no whole number, 1 or 0 and up, or the share is not from 0 to 1.

        >>> scheduler("sglang").with_patience(poll_steps=30).poll_steps
        30
        """
        for name, value, least in (("poll_steps", poll_steps, 1), ("wait_steps", wait_steps, 0)):
            check_whole(name, value, least)
        if not 0 <= wait_share <= 1:
            raise InvalidValueError(f"wait_share must be from 0 to 1, not {wait_share!r}.")
        return replace(self, poll_steps=poll_steps, wait_steps=wait_steps, wait_share=wait_share)


@lru_cache(maxsize=1)
def schedulers() -> dict[str, Scheduler]:
    """Return all schedulers on record, by key."""
    found = (_read(path) for path in sorted(FOLDER.glob("*.toml")))
    return {each.key: each for each in found}


def scheduler(name: str | Scheduler) -> Scheduler:
    """Find a scheduler by its key.

    Raises
    ------
    UnknownNameError
        If there is none of that name; suggests the nearest.
    """
    if isinstance(name, Scheduler):
        return name
    if not isinstance(name, str):
        raise InvalidValueError(f"a scheduler is a name, such as 'vllm', not {name!r}.")
    key = name.lower().replace("-", "").replace("_", "")
    for found in schedulers().values():
        if key in (found.key.replace("_", ""), found.name.lower().replace("-", "")):
            return found
    raise unknown_name("scheduler", name, schedulers())


# What is set for a run, and not by a file; the types of all others.
_OF_RUNS = ("poll_steps", "wait_steps", "wait_share", "own", "limited")
_TYPES = {"str": str, "bool": bool, "int": int}
_KINDS = {
    each.name: _TYPES[str(each.type)] for each in fields(Scheduler) if each.name not in _OF_RUNS
}


def _read(path: Path) -> Scheduler:
    file = records.load(path)
    file.only(file.data, (*_KINDS, "quote", "read", "note", "limits", "large"))
    values = {name: file.need(file.data, name, kind) for name, kind in _KINDS.items()}
    for name in (*_LIMITS, "block_tokens"):
        if values[name] < 1:
            raise file.error(f"{name} must be 1 or more, not {values[name]}.", name)
    if values["steps_ahead"] not in (0, 1):
        raise file.error(f"steps_ahead must be 0 or 1, not {values['steps_ahead']}.", "steps_ahead")
    return Scheduler(**values, own=_limits(file))


def _limits(file: Any) -> tuple[Limits, ...]:
    """Read the limits of larger devices and of all others, and check where they are from."""
    if "limits" in file.data:
        cited = ("source", "where", "quote")
        file.only(file.data["limits"], (*cited, "read", "note"), "limits")
        file.texts(cited, file.data["limits"], "limits")
    if "large" not in file.data:
        return ()
    table = file.data["large"]
    file.only(table, ("memory", "but", *_LIMITS), "large")
    large, small = ([file.need(each, name, int) for name in _LIMITS] for each in (table, file.data))
    but = tuple(str(each).lower() for each in file.need(table, "but", list, "large"))
    memory = float(to_base(file.need(table, "memory", str, "large"), "B", "memory"))
    return Limits(memory, but, *large), Limits(0.0, (), *small)
