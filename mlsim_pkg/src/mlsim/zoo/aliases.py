"""Names that tables of results use for devices, models and software of the zoo."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, unknown_name
from mlsim.records import DATA
from mlsim.zoo.written import plain

FILE = DATA / "aliases.toml"
GROUPS = ("devices", "systems", "models", "software")


@dataclass(frozen=True, slots=True)
class Alias:
    """What a name stands for, and in what the two differ ("" if in nothing)."""

    key: str
    note: str = ""


@cache
def aliases(path: Path = FILE) -> Mapping[str, Mapping[str, Alias]]:
    """Return the aliases of each group, by their plain names.

    Raises
    ------
    DataFileError
        If a name stands twice, spelled alike or not, or an entry is no alias; says which.

    >>> aliases()["models"]["olmo17b"].key
    'OLMo_7B'
    """
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataFileError(f"{path}: {error}.") from None
    unknown = sorted(read.keys() - set(GROUPS))
    if unknown:
        raise DataFileError(f"{path}: no group is called {unknown[0]!r}. {', '.join(GROUPS)} are.")
    return {group: _group(path, group, read.get(group, {})) for group in GROUPS}


def _group(path: Path, group: str, entries: Mapping[str, Any]) -> dict[str, Alias]:
    found: dict[str, Alias] = {}
    spelled: dict[str, str] = {}
    for name, entry in entries.items():
        if plain(name) in found:
            raise DataFileError(
                f"{path}: {group} has {name!r} twice, first as {spelled[plain(name)]!r}: "
                "keep one of them."
            )
        found[plain(name)], spelled[plain(name)] = _alias(path, name, entry), name
    return found


def _alias(path: Path, name: str, entry: Any) -> Alias:
    if isinstance(entry, str):
        return Alias(entry)
    texts = isinstance(entry, dict) and all(isinstance(each, str) for each in entry.values())
    if not texts or not {"key"} <= entry.keys() <= {"key", "note"}:
        raise DataFileError(f"{path}: {name!r} must be a name, or a table with a key and a note.")
    return Alias(**entry)


def find(group: str, name: str) -> Alias | None:
    """Return what a name stands for, if it is an alias.

    >>> find("devices", "GB10").key, find("devices", "T4")
    ('Workstation.DGXSpark', None)
    """
    return aliases()[group].get(plain(name)) if group else None


def software(name: str) -> Alias:
    """Return the class of software of a name.

    Raises
    ------
    UnknownNameError
        If there is no such class; names those that there are.
    """
    found = aliases()["software"].get(plain(name))
    if found is None:
        raise unknown_name("class of software", name, aliases()["software"])
    return found
