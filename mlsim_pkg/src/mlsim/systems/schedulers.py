"""Schedulers: which requests a serving engine takes into its next step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsim import records
from mlsim.errors import InvalidValueError, unknown_name
from mlsim.records import DATA

FOLDER = DATA / "schedulers"


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
        Most requests that run at one time.
    tokens_per_step
        Most tokens that one step works on.
    block_tokens
        Tokens in a block of the cache.
    software
        The class of software that it belongs to, for calibrated estimates.
    source, where
        What its rules were read in.

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

    def with_limits(
        self, running_limit: int | None = None, tokens_per_step: int | None = None
    ) -> Scheduler:
        """Return it with other limits, where they are given."""
        return replace(
            self,
            running_limit=self.running_limit if running_limit is None else running_limit,
            tokens_per_step=self.tokens_per_step if tokens_per_step is None else tokens_per_step,
        )


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


_KINDS = {
    "key": str,
    "name": str,
    "mixed": bool,
    "reserves_output": bool,
    "running_limit": int,
    "tokens_per_step": int,
    "block_tokens": int,
    "software": str,
    "source": str,
    "where": str,
}


def _read(path: Path) -> Scheduler:
    file = records.load(path)
    file.only(file.data, (*_KINDS, "quote", "read", "note"))
    values: dict[str, Any] = {
        name: file.need(file.data, name, kind) for name, kind in _KINDS.items()
    }
    for name in ("running_limit", "tokens_per_step", "block_tokens"):
        if values[name] < 1:
            raise file.error(f"{name} must be 1 or more, not {values[name]}.", name)
    return Scheduler(**values)
