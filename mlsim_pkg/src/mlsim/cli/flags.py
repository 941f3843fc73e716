"""Refusals of the package, which speak of Python, in the words of the command line."""

from __future__ import annotations

import argparse
import re

_ON_RECORD = "one that `mlsim zoo` lists, or a .toml file"
# What a program would write, and what is written in a terminal.
_PHRASES = (
    (r"help\(Engine\.(\w+)\)", r"mlsim \1 --help"),
    (r", and the glossary the quantities", ""),
    (r"Engine\.(\w+)\([^)]*\)", r"mlsim \1"),
    (r"Engine\.(\w+)", r"mlsim \1"),
    (r", such as System\(.*?\), or one of Systems", f": {_ON_RECORD}"),
    (r"one of Clusters, or Cluster\(.*?\)", _ON_RECORD),
    (r"use dataclasses\.replace\(model, context=\.\.\.\)", "give a config.json that says so"),
    (r"\b(?:Models|Hardware|Systems|Clusters)\.(?=\w+\.?\w)", ""),
    (r"or pass check_memory=False for", "or pass --ignore-memory for"),
    (r"check_memory=False gives", "--ignore-memory gives"),
    (r"\b(host|embodied)=False", r"--\1 no"),
    (r"=True\b", "="),
    (r"(?<=\w)=\((\S+), (\S+)\)", r"=\1,\2"),
    (r"(?<=\w)='(\w+)'", r"=\1"),
)
# Quantities that have a longer name than the argument by which they are given.
_LONGER = {"tokens": "training_tokens", "price": "device_price"}


def flags_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the flag of each argument that a command passes on, by its name in Python."""
    own = {each.dest: each.option_strings[0] for each in parser._actions if each.option_strings}
    return own | {longer: own[name] for name, longer in _LONGER.items() if name in own}


def in_flags(message: str, flags: dict[str, str]) -> str:
    """Return a message with the flags of a command in place of arguments of Python.

    >>> in_flags("tensor_parallel = 3 can't be: try tensor_parallel=2.",
    ...          {"tensor_parallel": "--tensor-parallel"})
    "--tensor-parallel = 3 can't be: try --tensor-parallel 2."
    >>> in_flags("--set takes NAME=VALUES, such as batch=1", {})
    '--set takes NAME=VALUES, such as batch=1'
    """
    if "check_memory" not in flags:
        message = re.sub(r" check_memory=False gives [^.]*\.", "", message)
    for pattern, words in _PHRASES:
        message = re.sub(pattern, words, message)

    def flag(found: re.Match[str]) -> str:
        name, equals = found["name"], found["equals"] or ""
        # A short name is also a word of English; where a message begins, it is the argument.
        word = "_" not in name and not equals and found.start() > 0
        if name not in flags or word:
            return name + ("=" if equals == "= " else equals)
        return flags[name] + {"=": "", "= ": " "}.get(equals, equals)

    # Followed by "=" and a value, by "=" alone as in "give tokens=.", or by neither.
    spaced = re.sub(r"(?<![\w.'/-])([a-z]\w*)=(?=[\w'\"])", r"\1= ", message)
    pattern = r"(?<![\w.'/-])(?P<name>[a-z]\w*)(?P<equals>= ?| = )?"
    return re.sub(pattern, flag, spaced)
