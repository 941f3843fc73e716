"""Flags of a command, their values, and refusals in the words of a terminal: from parameters."""

from __future__ import annotations

import argparse
import datetime
import json
import re
from collections.abc import Iterable
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.parameters import Parameter

# Exit statuses; 2 is argparse's own, after wrong usage.
REFUSED, DOES_NOT_FIT, IMPOSSIBLE = 1, 3, 4

# What stands for a value in the help.
_METAVARS = {
    **dict.fromkeys(("count", "number"), "N"),
    **dict.fromkeys(("share", "shares"), "SHARE"),
    **{kind: kind.upper() for kind in ("word", "format", "name", "file", "names", "hours")},
}
# Parts without which an object can't be.
_NEEDED = {"speculation": "acceptance", "adapters": "rank"}


def add_flags(
    command: argparse.ArgumentParser, rows: Iterable[Parameter], door: str, given: Iterable[str]
) -> None:
    """Add parameters to a command: those `given` without a flag, and the flags of the others."""
    rows, groups = tuple(rows), dict[str, Any]({"": command})
    there = {row.name: row for row in rows}
    for each in given:
        optional: dict[str, Any] = {"nargs": "?"} if each.endswith("?") else {}
        row = there[each.rstrip("?")]
        command.add_argument(row.name, help=_help(row, door), **optional)
    for row in rows:
        if not row.flag:
            continue
        if row.group not in groups:
            groups[row.group] = command.add_argument_group(row.group)
        how: dict[str, Any] = {"metavar": _METAVARS.get(row.kind, "VALUE")}
        if row.kind == "switch":
            how = {"action": "store_const", "const": row.usual != "on"}
        groups[row.group].add_argument(
            *(f"--{each}" for each in (row.flag, row.short) if each),
            dest=row.name,
            help=_help(row, door),
            required=row.usual == "required",
            **how,
        )


def _help(row: Parameter, door: str) -> str:
    several = ", several with commas" if door in row.several else ""
    ranges = "; or LOW,HIGH" if row.kind == "range" else ""
    usual = f" ({row.usual})" if row.usual and row.kind != "switch" else ""
    return f"{row.meaning}{several}{ranges}{usual}".replace("%", "%%")


def arguments(options: argparse.Namespace, rows: Iterable[Parameter], door: str) -> dict[str, Any]:
    """Return the arguments of a door that options give, by name; what was left out is absent.

    Raises
    ------
    MlsimError
        If a value can't be read, or an object can't be made of its parts.
    """
    found: dict[str, Any] = {}
    parts: dict[str, dict[Parameter, Any]] = {}
    for row in rows:
        text = getattr(options, row.name, None)
        if text is None:
            continue
        value = text if row.kind == "switch" else read(row, text, door in row.several)
        whole, part, _ = row.name.partition(".")
        if part:
            parts.setdefault(whole, {})[row] = value
        else:
            found[whole] = value
    for whole, given in parts.items():
        found |= _made(whole, given, rows)
    return found


def _made(whole: str, given: dict[Parameter, Any], rows: Iterable[Parameter]) -> dict[str, Any]:
    """Return the object that is made of parts, by its name."""
    from mlsim.systems.system import PrefillPool
    from mlsim.workloads.adapters import LoRA, QLoRA
    from mlsim.workloads.steps import Offload, Speculation

    parts = {row.name.partition(".")[2]: value for row, value in given.items()}
    if whole == "given":
        return parts
    needed = _NEEDED.get(whole)
    if needed and needed not in parts:
        lacks = next(row for row in rows if row.name == f"{whole}.{needed}")
        first = next(iter(given))
        raise InvalidValueError(f"--{first.flag} needs --{lacks.flag}: {lacks.meaning}.")
    kinds = {"speculation": Speculation, "offload": Offload, "prefill": PrefillPool}
    kind = kinds.get(whole) or (QLoRA if parts.pop("quantized", False) else LoRA)
    return {whole: kind(**parts)}


def read(row: Parameter, text: str, several: bool) -> Any:
    """Return the value that a flag gives: of several, with commas, a list.

    Raises
    ------
    InvalidValueError
        If it can't be read; says what the parameter may be.
    """
    if several:
        values = [read(row, each.strip(), several=False) for each in text.split(",")]
        return values if len(values) > 1 else values[0]
    match row.kind:
        case "names":
            return tuple(each.strip() for each in text.split(","))
        case "counts":
            return tuple(_number(row, each) for each in text.split(","))
        case "hours":
            return _hours(row, text)
        case "shares" if "=" in text:
            return _shares(row, text)
        case "count" | "number" | "share" | "shares":
            return text if text in row.words else _number(row, text)
        case "word" | "format" | "name" | "file":
            return text
    # "1,000" is one number, and no range.
    low, comma, high = text.partition(",")
    if comma and row.kind == "range" and not re.fullmatch(r"[1-9]\d{0,2},\d{3}( .*)?", text):
        return tuple(read(row, each.strip(), several=False) for each in (low, high))
    try:
        return _number(row, text)
    except InvalidValueError:
        return {"no": False, "yes": True}.get(text, text)


def _number(row: Parameter, text: str) -> int | float:
    """Return a number; a whole one, such as 15e12, as such."""
    try:
        value = float(text)
    except ValueError:
        allowed = "a share" if row.kind == "shares" else row.allowed
        raise InvalidValueError(f"{shown(row)} must be {allowed}, not {text!r}.") from None
    return int(value) if value.is_integer() else value


def _shares(row: Parameter, text: str) -> dict[str, float]:
    """Return a share for each name: "gradient=0.5,pipeline=1"."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = (word.strip() for word in part.partition("="))
        if name in found:
            raise InvalidValueError(f"{shown(row)} says {name} twice: {text!r}.")
        found[name] = _number(row, share)
    return found


def _hours(row: Parameter, text: str) -> list[int]:
    """Return the hours of "12", "8-17" (the last one too) or "1,2,3"."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.strip().isdigit() and (last.strip() or first.strip()).isdigit()):
            raise InvalidValueError(f"{shown(row)} must be like 12, 8-17 or 1,2,3, not {text!r}.")
        found += range(int(first), int(last or first) + 1)
    return found


def shown(row: Parameter) -> str:
    """Return what a parameter is called in a terminal."""
    return f"--{row.flag}" if row.flag else row.name


# A parameter that a message names, with a value that it proposes: 2, 'full', (1.1, 1.5), True.
_NAMED = re.compile(
    r"(?<![\w.'/-])(?P<name>[a-zA-Z]\w*)"
    r"(?P<equals> = |= |=(?P<value>\w*\([^()]*\)|'[^']*'|[\w.]*\w)?)?"
)
# What only Python has: doors, names of the zoo, and a call as the last of several choices.
_PYTHON = (
    (re.compile(r"help\(Engine\.(\w+)\)"), r"mlsim \1 --help"),
    (re.compile(r"Engine\.(\w+)(\([^)]*\))?"), r"mlsim \1"),
    (re.compile(r"\b(?:Models|Hardware|Systems|Clusters)\.(?=\w)"), ""),
    (re.compile(r",? or (?:\w+\.)?\w+\((?:'|model).*?\)"), ""),
)


def in_flags(message: str, rows: Iterable[Parameter]) -> str:
    """Return a message of the package with the flags of these parameters in place of arguments.

    >>> from mlsim.parameters import parameters_of
    >>> in_flags("tensor_parallel = 3 can't be: try tensor_parallel=2.", parameters_of("serve"))
    "--tensor-parallel = 3 can't be: try --tensor-parallel 2."
    >>> in_flags("--set takes NAME=VALUES, such as batch=1", parameters_of("sweep"))
    '--set takes NAME=VALUES, such as batch=1'
    """
    known: dict[str, Parameter] = {}
    for row in rows:
        whole, _, part = row.name.partition(".")
        if row.flag:
            for name in (whole, row.quantity) if not part else (whole, part):
                known.setdefault(name, row)
    if "check_memory" not in known:
        message = re.sub(r" check_memory=False[^.]*\.", "", message)
    for pattern, words in _PYTHON:
        message = pattern.sub(words, message)

    def flag(found: re.Match[str]) -> str:
        name, equals, value = found["name"], found["equals"] or "", found["value"] or ""
        # A short name is also a word of English; where a message begins, it is the argument.
        word = "_" not in name and not equals and found.start() > 0
        if name not in known or word:
            return found[0]
        return f"{shown(known[name])}{_proposed(known[name], equals, value)}"

    return _NAMED.sub(flag, message)


def _proposed(row: Parameter, equals: str, value: str) -> str:
    """Return how a value is written behind its flag."""
    if equals == " = ":
        return equals
    if row.kind == "switch" or re.match(r"\w+\(", value):
        return ""
    if row.words and value in ("True", "False"):
        value = "yes" if value == "True" else "no"
    plain = re.fullmatch(r"'(\w+)'|\((.*)\)", value)
    if plain:
        value = plain[1] or plain[2].replace(", ", ",")
    return f" {value}" if value or equals == "= " else ""


def note_fit(options: argparse.Namespace, feasible: Any) -> None:
    """Let the command exit with its own status if nothing that was asked for fits."""
    fits = getattr(feasible, "any", lambda: feasible)()
    if getattr(options, "check_memory", None) is not False and not fits:
        options.code = DOES_NOT_FIT


def as_json(data: Any) -> str:
    """Return plain data as JSON text, dates as text."""
    return json.dumps(data, indent=2, ensure_ascii=False, default=datetime.date.isoformat)
