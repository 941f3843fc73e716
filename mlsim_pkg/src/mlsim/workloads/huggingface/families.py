"""Families of language models on Hugging Face: how each one's keys make an architecture.

They stand in `data/huggingface.toml`, whose head says what a family has; it is read strictly,
and when the first configuration is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from mlsim import records
from mlsim.workloads.huggingface import mixed, parts, sparse
from mlsim.workloads.huggingface.config import NEEDED, Config

FILE = records.DATA / "huggingface.toml"
_BUILDERS = {"parts": parts, "mixed": mixed, "sparse": sparse}
_TABLES = ("options", "keys", "nested", "spellings", "fixed", "modules")
# Options that name a function of `parts`.
_FUNCTIONS = {"window", "experts"}
# The defaults that TOML has no value for.
_WORDS = {"needed": NEEDED, "null": None}


@dataclass(frozen=True)
class Family:
    """What a `model_type` means.

    `build` makes the arguments of a Transformer. `keys` has what it reads, each
    with its default, and `nested` those defaults that differ in a model of several modalities;
    `spellings` other names of a key, the usual one first; `fixed` values that can't be
    otherwise; `ignored` keys that change no count, each with the reason why; `modules` what
    the family's code calls a part of a layer.
    """

    build: Callable[[Config], dict[str, Any]]
    keys: Mapping[str, Any]
    nested: Mapping[str, Any] = field(default_factory=dict)
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)

    @property
    def understood(self) -> set[str]:
        """All names of keys that this family gives a meaning, or knows to have none."""
        named = {name for names in self.spellings.values() for name in names}
        return named.union(self.ignored, self.keys, self.fixed)


@dataclass(frozen=True)
class Catalogue:
    """All families by `model_type`, and the types that are of none.

    `wrappers` has models of several modalities, with the types that the text model within them
    may have, the usual one first, and `around` the keys around it; `refused` has types that are
    known and can't be told here, each with the reason; `quantised` what files of quantized
    checkpoints call modules, formats and keys.
    """

    families: Mapping[str, Family]
    wrappers: Mapping[str, tuple[str, ...]]
    around: frozenset[str]
    refused: Mapping[str, str]
    quantised: Mapping[str, Any]


@cache
def catalogue() -> Catalogue:
    """Return the families that are known."""
    return load_catalogue(FILE)


def load_catalogue(path: Path) -> Catalogue:
    """Read a file of families.

    Raises
    ------
    DataFileError
        If a key, a reason, a function or a family is unknown; names file and line.
    """
    file = records.load(path)
    data = file.data
    file.only(data, ("reasons", "refused", "wrappers", "sets", "families", "quantised"))
    families = {name: _family(file, "families", name) for name in data["families"]}
    wrappers = {name: tuple(types) for name, types in data["wrappers"].items()}
    for name, types in wrappers.items():
        file.only(dict.fromkeys(types), families, "wrappers", name)
    around = _tables(file, "sets", "around")
    return Catalogue(
        families,
        wrappers,
        frozenset((*around["ignored"], *around["fixed"])),
        data["refused"],
        data["quantised"],
    )


def _tables(file: records.DataFile, *keys: str) -> dict[str, Any]:
    """Return all that a set or a family has, by itself and of the sets that it is like."""
    found: dict[str, Any] = {name: {} for name in (*_TABLES, "ignored")}
    for each in (("sets", "all"), keys):
        _gather(file, found, *each)
    return found


def _family(file: records.DataFile, *keys: str) -> Family:
    found = _tables(file, *keys)
    options, build = found.pop("options"), found.pop("build")
    try:
        module, function = build.split(".")
        for name in _FUNCTIONS & options.keys():
            options[name] = getattr(parts, options[name])
        return Family(partial(getattr(_BUILDERS[module], function), **options), **found)
    except (KeyError, ValueError, AttributeError) as error:
        raise file.error(
            f"{keys[-1]}: no such function: {build}, {options} ({error}).", *keys
        ) from None


def _gather(file: records.DataFile, found: dict[str, Any], *keys: str) -> None:
    """Add what a set or a family has to what was found before."""
    data, table = file.data, file.need(file.data[keys[0]], keys[1], dict, keys[0])
    file.only(table, (*_TABLES, "like", "build", "ignored"), *keys)
    for name in table.get("like", ()):
        section = "sets" if name in data["sets"] else "families"
        file.only({name: 0}, (*data["sets"], *data["families"]), *keys, "like")
        _gather(file, found, section, name)
    found["build"] = table.get("build", found.get("build", ""))
    for name in _TABLES:
        found[name] |= {key: _read(name, value) for key, value in table.get(name, {}).items()}
    given = table.get("ignored", {})
    file.only(given, data["reasons"], *keys, "ignored")
    for reason, names in given.items():
        found["ignored"] |= dict.fromkeys(names.split(), data["reasons"][reason])


def _read(table: str, value: Any) -> Any:
    """Return a value of a table as a family has it; null may stand for each that is fixed."""
    if table == "fixed":
        return (*value, None)
    if table in ("keys", "nested"):
        return _WORDS[value] if isinstance(value, str) else value
    return value
