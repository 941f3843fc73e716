"""The values of a Hugging Face `config.json`: read strictly, each error with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError

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

    def objects(self, key: str) -> list[dict[str, Any]]:
        """Return a list of objects, which must be there."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.error(
                f"{self.name(key)} must be a list of objects, not {shown(value)}.", key
            )
        return value


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
