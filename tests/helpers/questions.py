"""Questions to every door as data, and how they are asked.

A question is a door and its arguments in JSON. What is no number, word or list is a word with a
capital and its arguments, such as {"LoRA": {"rank": 8}}; {"pair": [1, 2]} is a range, and
{"file": "trace.csv"} one of tests/fixtures/questions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import mlsim
from mlsim import Engine, LoRA, QLoRA
from mlsim.profiling import diagnose, join, read_profile, sample_profile
from mlsim.solvers.load import Load
from mlsim.systems.system import PrefillPool
from mlsim.workloads.steps import Offload, Speculation

FILES = Path(__file__).parents[1] / "fixtures" / "questions"


def _load(**given: Any) -> Load:
    from mlsim.zoo import resolve

    return Load.of(hardware=resolve.cluster(given.pop("hardware")), **given)


def _predicted(**cells: str) -> Any:
    from mlsim.engine.predict import predict
    from mlsim.errors import InvalidValueError

    found = next(predict([{"case_id": "1", **cells}]))
    if not found.predicted:
        raise InvalidValueError(found.note)
    return found


def _profiled(files: list[Any], hardware: str | None = None, decimal: str | None = None) -> Any:
    """Read files of a profiler, and say what limits what they have."""
    from mlsim.profiling.read.printed import read_log

    paths = [each if isinstance(each, Path) else sample_profile(each) for each in files]
    log = read_log(paths[0]) if len(paths) == 1 else None
    if log is not None:
        return {f"log {at}": _fields(each) for at, each in enumerate(log)}
    profiles = [read_profile(path, decimal=decimal) for path in paths]
    profile = profiles[0] if len(profiles) == 1 else join(*profiles)
    if hardware is None:
        return profile
    return diagnose(profile, hardware=hardware)


def _fields(record: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(record)


DOORS: Mapping[str, Callable[..., Any]] = {
    **{
        name: getattr(Engine, name)
        for name in (
            *("solve", "serve", "load", "plan", "train", "gemm", "fit", "footprint"),
            *("compare_formats", "find", "sweep", "sensitivity", "optimal_size", "check_claim"),
        )
    },
    **{
        name: getattr(mlsim, name)
        for name in (
            *("anatomy", "largest_batch", "over_memory", "estimate_training_for"),
            *("profile_ops", "profile_layer_mem", "profile_mem", "summary"),
        )
    },
    "predict": _predicted,
    "profile": _profiled,
}
# What stands for a word with a capital.
MADE: Mapping[str, Callable[..., Any]] = {
    "LoRA": LoRA,
    "QLoRA": QLoRA,
    "Speculation": Speculation,
    "Offload": Offload,
    "PrefillPool": PrefillPool,
    "Load": _load,
    "Serve": Engine.serve,
    "Train": Engine.train,
    "Solve": Engine.solve,
}


@dataclass(frozen=True)
class Question:
    """A door and what it is asked; `text` is its arguments in JSON, by which it is known."""

    door: str
    text: str

    @classmethod
    def of(cls, door: str, asked: Mapping[str, Any]) -> Question:
        """Make one of arguments as data."""
        return cls(door, json.dumps(asked, sort_keys=True, ensure_ascii=False))

    @cached_property
    def asked(self) -> dict[str, Any]:
        """The arguments as data."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    def __str__(self) -> str:
        first = ("model", "hardware", "M", "N", "K")
        words = [str(self.asked[name]) for name in first if name in self.asked]
        rest = [f"{name}={_brief(v)}" for name, v in self.asked.items() if name not in first]
        return " ".join([self.door, *words, *rest])

    def answer(self) -> Any:
        """Ask it.

        Raises
        ------
        Exception
            Whatever the door raises.
        """
        return DOORS[self.door](**{name: _made(each) for name, each in self.asked.items()})


def _brief(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _made(value: Any) -> Any:
    """Return what a piece of data stands for."""
    if isinstance(value, list):
        return [_made(each) for each in value]
    if isinstance(value, dict) and len(value) == 1:
        [(name, given)] = value.items()
        if name == "pair":
            return tuple(given)
        if name == "file":
            return FILES / given
        if name in MADE:
            return MADE[name](**{key: _made(each) for key, each in given.items()})
    return value
