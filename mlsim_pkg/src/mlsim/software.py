"""Classes of software: what a program adds to the times of its kernels.

Kernels are measured one by one. A program starts them, fuses some and not others, and takes
requests. A class of software says this in a few terms, each with a meaning, a unit and a
range in which it can lie. They are the only constants that are fitted to published results
of whole programs, and a score leaves out the series that it is about
(`benchmarks/fit_software.py`).
"""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType

from mlsim import records
from mlsim.errors import unknown_name
from mlsim.quantities import term as quantity
from mlsim.records import DATA

FOLDER = DATA / "software"

_PROGRAMS = tomllib.loads((DATA / "programs.toml").read_text(encoding="utf-8"))
# What each term is where a class does not name it: nothing is added.
NEUTRAL: Mapping[str, float] = MappingProxyType(_PROGRAMS["neutral"])
EXCHANGES = ("graph", "nccl")
SCHEDULING = ("between", "ahead")
# From this release on, vLLM schedules a step while the device works on the one before.
_AHEAD_FROM = 14
_RELEASE = re.compile(r"vllm v?0\.(\d+)")
# Activations of so many bits are brought to no other format.
_WIDE_BITS = 16
_NUMBERS = ("value", "low", "high", "least", "most")
_TEXTS = ("unit", "source", "note")
_HEADS = ("key", "name", "about")


@dataclass(frozen=True, slots=True)
class SoftwareTerm:
    """One number of a class.

    Attributes
    ----------
    value, unit
        In the base unit of the quantity of that name.
    low, high
        Least and largest value over fits that leave out one series each.
    least, most
        Between these it is plausible; no fit leaves them.
    source
        Keys of the documents whose rows it was fitted to.
    note
        How it was fitted, or why it is taken from elsewhere.
    """

    value: float
    unit: str
    low: float
    high: float
    least: float
    most: float
    source: str
    note: str = ""


@dataclass(frozen=True, eq=False)
class Software:
    """A class of software.

    Attributes
    ----------
    key, name, about
        Such as "eager"; in words; what belongs to it.
    terms
        By name, those that differ from `NEUTRAL`.
    launches
        Kernels of an operator, by its kind; one where a kind is not named.
    prompt_launches
        Those that the host starts for it where a prompt is read kernel by kernel, if others.
    expert_paths
        By the format of experts' weights beside 16 bits, the path of the atlas whose kernels it
        takes, where the format alone doesn't tell.
    exchanges
        How devices add up: "graph" (kernels of an engine in a captured graph), or "nccl".
    scheduling
        When a scheduler takes its turn: "between" two steps, or "ahead" of the device.

    >>> found = software("eager")
    >>> found.value("host_launch_time") > 0, found.value("weights_per_cycle")
    (True, inf)
    """

    key: str
    name: str
    about: str
    terms: Mapping[str, SoftwareTerm]
    launches: Mapping[str, float]
    exchanges: str = EXCHANGES[0]
    scheduling: str = SCHEDULING[0]
    prompt_launches: Mapping[str, float] = field(default_factory=dict)
    expert_paths: Mapping[str, str] = field(default_factory=dict)

    def value(self, name: str) -> float:
        """Return a term in its base unit, the neutral one where the class has none."""
        found = self.terms.get(name)
        return NEUTRAL[name] if found is None else found.value

    def kernels(self, kind: str) -> float:
        """Return how many kernels an operator of a kind is.

        >>> software("eager").kernels("convolution") > software("engine").kernels("convolution")
        True
        """
        return self.launches.get(kind, 1.0)

    def started(self, kind: str) -> float:
        """Return how many kernels the host starts for an operator while it reads a prompt.

        >>> software("torch_engine").started("state"), software("torch_engine").kernels("state")
        (16.0, 1.0)
        """
        return self.prompt_launches.get(kind, self.kernels(kind))

    def expert_path(self, weights: str, bits: float) -> str:
        """Return the path of the atlas that its experts take; empty: that of their format.

        Parameters
        ----------
        weights, bits
            The format of the weights, and the bits of the activations.

        >>> software("vllm").expert_path("mxfp4", 8)
        ''
        """
        return self.expert_paths.get(weights, "") if bits >= _WIDE_BITS else ""

    def origin(self, name: str) -> str:
        """Say where a term comes from."""
        found = self.terms.get(name)
        if found is None:
            return f"software {self.key}: adds nothing"
        return (
            f"software {self.key}: {found.note} ({found.low:.3g} to {found.high:.3g} with one "
            f"series left out); {found.source}"
        )

    @property
    def hosted(self) -> bool:
        """Whether the host takes part in the time of a step."""
        names = ("host_launch_time", "step_host_time", "sequence_host_time", "call_time")
        return any(self.value(name) for name in names) or self.value("call_bandwidth") < math.inf

    @property
    def ahead(self) -> bool:
        """Whether the host schedules a step while the device works on another.

        >>> software("vllm_async").ahead, software("vllm").ahead
        (True, False)
        """
        return self.scheduling == SCHEDULING[1]

    @property
    def unfused(self) -> bool:
        """Whether activations cross the memory more often than fused operators move them."""
        return bool(self.value("activation_passes") or self.value("score_passes"))


def software(name: str) -> Software:
    """Return a class of software.

    Raises
    ------
    UnknownNameError
        If there is no such class; names those that there are.

    >>> software("engine").name
    'Engine with fused kernels (TensorRT-LLM, AITemplate, gpt-fast)'
    """
    found = classes()
    if name not in found:
        raise unknown_name("class of software", str(name), found)
    return found[name]


# What the host takes for a step, between two of them or beside the device.
HOST = ("step_host_time", "sequence_host_time", "host_launch_time")


@lru_cache(maxsize=64)
def without_host(found: Software) -> Software:
    """Return a class whose host takes no time for a step: what is left is the device.

    >>> without_host(software("vllm")).value("step_host_time")
    0.0
    """
    kept = {name: term for name, term in found.terms.items() if name not in HOST}
    return replace(found, terms=MappingProxyType(kept))


def without(name: str, series: str) -> Software:
    """Return a class as it was fitted without a series, to be tested on it.

    Of a series to which nothing was fitted it is the class itself.

    Raises
    ------
    UnknownNameError
        As `software`.

    >>> without("engine", "no such series") is software("engine")
    True
    """
    found = software(name)
    values = _left_out().get((name, series), {})
    if not values:
        return found
    changed = {
        term: replace(found.terms[term], value=value, low=value, high=value)
        for term, value in values.items()
    }
    return _without(found, tuple(sorted(changed.items(), key=lambda item: item[0])))


@lru_cache(maxsize=256)
def _without(found: Software, changed: tuple[tuple[str, SoftwareTerm], ...]) -> Software:
    return replace(found, terms=MappingProxyType({**found.terms, **dict(changed)}))


@cache
def _left_out() -> Mapping[tuple[str, str], Mapping[str, float]]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    with (FOLDER / "left_out.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = (row["software"], row["series"])
            found.setdefault(key, {})[row["term"]] = float(row["value"])
    return MappingProxyType(found)


@cache
def _lanes() -> Mapping[str, float]:
    with (DATA / "software" / "cores" / "lanes.toml").open("rb") as file:
        table = tomllib.load(file)
    return MappingProxyType({key: float(count) for key, count in table["lanes"].items()})


def core_lanes(device: str) -> float:
    """Return how many general units a core of a device has, by the device's key.

    >>> core_lanes("Cloud.A100"), core_lanes("Cloud.H100")
    (64.0, 128.0)
    """
    return _lanes().get(device, _lanes()["other"])


def narrower(found: str, words: str) -> str:
    """Return a narrower class of software, where a program is named that has one.

    >>> narrower("eager", "TensorFlow 1.15, NGC 20.06"), narrower("eager", "PyTorch 2.1")
    ('graph', 'eager')
    >>> narrower("vllm", "vLLM 0.13.0"), narrower("vllm", "vLLM 0.14.0")
    ('vllm', 'vllm_async')
    """
    release = _RELEASE.search(words.lower())
    if found == "vllm" and release and int(release[1]) >= _AHEAD_FROM:
        return "vllm_async"
    narrow = _PROGRAMS["narrower"].get(found, {})
    return next((name for key, name in narrow.items() if key in words.lower()), found)


def of_program(words: str, usual: str) -> str:
    """Return the class of software of a program that is named in words.

    >>> of_program("ONNX Runtime and TensorRT in Triton", "engine")
    'request_path'
    >>> of_program("Megatron-LM", "framework"), of_program("TensorRT-LLM v0.5", "engine")
    ('megatron', 'early_engine')
    """
    told = words.lower()
    wide = next((name for key, name in _PROGRAMS["classes"].items() if key in told), usual)
    return narrower(wide, words)


@cache
def classes() -> Mapping[str, Software]:
    """Return all classes by their keys.

    >>> "llama_cpp" in classes()
    True
    """
    read = (load(path) for path in sorted(FOLDER.glob("*.toml")))
    return MappingProxyType({each.key: each for each in read})


def load(path: Path) -> Software:
    """Read the file of a class.

    Raises
    ------
    DataFileError
        If it is no TOML, a term is unknown or not whole, or a value is not plausible.
    """
    file = records.load(path)
    counts = {name: file.data.get(name, {}) for name in ("launches", "prompt_launches")}
    chosen = {"exchanges": EXCHANGES, "scheduling": SCHEDULING}
    own = (*_HEADS, *counts, *chosen, "expert_paths")
    for name, allowed in chosen.items():
        if name in file.data:
            file.one_of(name, allowed)
    for name, each in counts.items():
        for kind, count in each.items():
            if not isinstance(count, (int, float)) or count < 1:
                words = f"{name} of {kind} must be 1 or more, not {count!r}."
                raise file.error(words, name, kind)
        counts[name] = MappingProxyType({kind: float(count) for kind, count in each.items()})
    texts = file.texts(_HEADS)
    terms = {name: _term(file, name) for name in file.data if name not in own}
    return Software(
        **texts,  # type: ignore[arg-type]
        **counts,
        **{name: file.data.get(name, allowed[0]) for name, allowed in chosen.items()},
        terms=MappingProxyType(terms),
        expert_paths=MappingProxyType(file.data.get("expert_paths", {})),
    )


def _term(file: records.DataFile, name: str) -> SoftwareTerm:
    entry, fields = file.data[name], (*_NUMBERS, *_TEXTS)
    if name not in NEUTRAL:
        raise file.error(f"no term is called {name!r}. Terms: {', '.join(NEUTRAL)}.", name)
    if not isinstance(entry, dict) or set(entry) != set(fields):
        raise file.error(f"{name} must have {', '.join(fields)}.", name)
    if not all(type(entry[each]) in (int, float) for each in _NUMBERS):
        raise file.error(f"{name} must have numbers for {', '.join(_NUMBERS)}.", name)
    numbers = {each: float(entry[each]) for each in _NUMBERS}
    texts = {each: file.need(entry, each, str, name) for each in _TEXTS}
    found = SoftwareTerm(**numbers, **texts)  # type: ignore[arg-type]
    unit = quantity(_PROGRAMS["quantities"].get(name, name)).unit
    if found.unit != unit:
        raise file.error(f"{name} must be in {unit}, not {found.unit}.", name)
    if not 0 <= found.least <= found.low <= found.value <= found.high <= found.most:
        raise file.error(
            f"{name} must have least <= low <= value <= high <= most, not "
            f"{found.least:g}, {found.low:g}, {found.value:g}, {found.high:g}, {found.most:g}.",
            name,
        )
    return found
