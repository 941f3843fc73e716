"""The values of a Hugging Face `config.json`: read strictly, each error with its line.

And what it states beside its sizes: YaRN, and a format of parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, UnknownNameError
from mlsim.precision import precision
from mlsim.records import given

# The default of a key that each file of a family has.
NEEDED = object()
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,\n]')

# More than any layer, vocabulary or context has.
MOST = 10**12


@dataclass(frozen=True)
class Source:
    """A JSON file in memory, able to tell on which line a key stands."""

    path: Path
    data: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]

    def error(self, message: str, *keys: str) -> DataFileError:
        """Make an error that names this file and the line of a key (1 if not found)."""
        return DataFileError(f"{self.path}:{self.lines.get(keys, 1)}: {message}")


@dataclass(frozen=True)
class Config:
    """One object of the file, with a family's defaults for the keys that it omits.

    `values` has the family's own names of keys, `spelled` what the file calls
    them; `within` is the key that holds the object, if it is nested.
    """

    source: Source
    values: Mapping[str, Any]
    spelled: Mapping[str, str]
    within: tuple[str, ...] = ()

    def error(self, message: str, key: str = "") -> DataFileError:
        """Make an error that names the file and the line of a key, or of the object."""
        keys = (*self.within, self.name(key)) if key else self.within
        return self.source.error(message, *keys)

    def name(self, key: str) -> str:
        """Return what the file calls a key."""
        return self.spelled.get(key, key)

    def count(self, key: str, least: int = 1) -> int:
        """Return a whole number that must be there."""
        value = self.maybe(key, least)
        if value is None:
            raise self.error(f"{self.name(key)} must be a whole number, not null.", key)
        return value

    def maybe(self, key: str, least: int = 1) -> int | None:
        """Return a whole number, or None where the file says null or nothing."""
        value = self.values.get(key)
        if value is None:
            return None
        if type(value) is not int:
            raise self.error(f"{self.name(key)} must be a whole number, not {shown(value)}.", key)
        if value < least:
            raise self.error(f"{self.name(key)} must be {least} or more, not {value}.", key)
        if value > MOST:
            message = f"{self.name(key)} must be at most {MOST:,}, not {value:.3g}: is it a slip?"
            raise self.error(message, key)
        return value

    def flag(self, key: str) -> bool:
        """Return true or false; false if the family has no such key."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.error(f"{self.name(key)} must be true or false, not {shown(value)}.", key)
        return value

    def entries(self, key: str, kind: type) -> list[Any] | None:
        """Return a list whose entries are of one kind, or None for null or nothing."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or any(type(each) is not kind for each in value):
            what = {int: "whole numbers", str: "texts"}[kind]
            raise self.error(f"{self.name(key)} must be a list of {what}, not {shown(value)}.", key)
        return value

    def one_each(self, key: str, listed: Any) -> list[Any]:
        """Return a list that must have an entry for each layer."""
        layers = self.count("num_hidden_layers")
        if not isinstance(listed, list) or len(listed) != layers:
            found = len(listed) if isinstance(listed, list) else shown(listed)
            raise self.error(
                f"{self.name(key)} must have {layers} entries, one for each layer, not {found}.",
                key,
            )
        return listed


def shown(value: Any) -> str:
    """Return a value as JSON has it, shortened.

    >>> shown(None), shown([1] * 40)
    ('null', '[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...')
    """
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def read_source(path: Path) -> Source:
    """Read a JSON file that holds one object.

    Raises
    ------
    DataFileError
        If it can't be read, is no JSON, is no object, or repeats a key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataFileError(f"{path}: can't be read: {error}.") from error
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise DataFileError(f"{path}:{error.lineno}: not JSON: {error.msg}.") from error
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{path}: can't be understood: {error}.") from error
    if not isinstance(data, dict):
        raise DataFileError(f"{path}:1: a config.json is one object, not {shown(data)}.")
    return Source(path, data, _key_lines(text))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its entries, which JSON lets repeat."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return made


def _key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line of each key, which is named with the keys around it."""
    lines: dict[tuple[str, ...], int] = {}
    around: list[str] = []
    line, word, word_line, holder = 1, "", 1, ""
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark == "\n":
            line += 1
        elif mark[0] == '"':
            word, word_line = mark, line
        elif mark == ":":
            holder = json.loads(word)
            lines.setdefault((*around[1:], holder), word_line)
        elif mark in "{[":
            around.append(holder)
            holder = ""
        elif mark in "}]":
            around.pop()
            holder = ""
    return lines


# Of both, the one that newer files have, first.
_ROTATIONS = ("rope_parameters", "rope_scaling")
_FORMATS = ("dtype", "torch_dtype")
_TRAINED = "original_max_position_embeddings"


def stretched(config: Config, context: int) -> dict[str, Any]:
    """Return the context that YaRN gives a model, and the one that it has without.

    That is `factor` times the length at which it was trained, where it is more than the file's
    `max_position_embeddings`, which some files have stretched already. Nothing without YaRN.

    Raises
    ------
    DataFileError
        If the factor or the length can't be; names file and line.
    """
    data = _own_object(config)
    longest = context
    for key, rotation in _rotations(data):
        if "yarn" not in (rotation.get("rope_type"), rotation.get("type")):
            continue
        factor: Any = rotation.get("factor")
        trained = rotation.get(_TRAINED, data.get(_TRAINED))
        # NaN is in no range.
        if type(factor) not in (int, float) or not 1 <= factor <= MOST:
            raise config.error(f"factor of YaRN must be 1 or more, not {shown(factor)}.", key)
        if trained is None:
            trained = context
        if type(trained) is not int or not 1 <= trained <= MOST:
            raise config.error(f"{_TRAINED} must be a whole number, not {shown(trained)}.", key)
        longest = max(longest, round(factor * trained))
    if longest == context:
        return {}
    known = given("configured_context", float(context), "token")
    return {"context": longest, "figures": {known.name: known}}


def stated_format(config: Config) -> str:
    """Return the format that the file states of its parameters, as it writes it; or ""."""
    for data in (_own_object(config), config.source.data):
        for key in _FORMATS:
            said = data.get(key)
            try:
                if isinstance(said, str) and precision(said.removeprefix("torch.")):
                    return said.removeprefix("torch.")
            except UnknownNameError:
                continue  # such as "auto"
    return ""


def _own_object(config: Config) -> Mapping[str, Any]:
    """Return the object of the file that the configuration was read from."""
    data = config.source.data
    for key in config.within:
        data = data[key]
    return data


def _rotations(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what is said of positions by rotation: once, or of each kind of layer."""
    for key in _ROTATIONS:
        found = data.get(key)
        if isinstance(found, dict):
            yield key, found
            yield from ((key, each) for each in found.values() if isinstance(each, dict))
