"""What the cells of a table of measurements may contain: numbers, choices, keys of the zoo."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from mlsim.errors import DataFileError, nearest, unknown_name
from mlsim.records.tables import count, positive
from mlsim.zoo import resolve, spaces

__all__ = ["choice", "chosen", "count", "device", "flag", "metric", "model", "positive", "stated"]

Record = Mapping[str, str]
Cell = TypeVar("Cell")


def choice(record: Record, name: str, allowed: Collection[str]) -> str:
    """Return one of the words that are allowed.

    Raises
    ------
    DataFileError
        If the cell contains another; suggests the nearest.

    >>> choice({"recompute": "full"}, "recompute", ("none", "full"))
    'full'
    """
    text = record[name]
    if text not in allowed:
        raise DataFileError(
            f"{name} must be one of {', '.join(allowed)}, not {text!r}.{nearest(text, allowed)}"
        )
    return text


def flag(record: Record, name: str) -> bool:
    """Return whether the cell says yes.

    Raises
    ------
    DataFileError
        If it says neither yes nor no.

    >>> flag({"dropout": "no"}, "dropout")
    False
    """
    text = record[name]
    if text not in ("yes", "no"):
        raise DataFileError(f"{name} must be yes or no, not {text!r}.")
    return text == "yes"


def stated(record: Record, name: str, read: Callable[[Record, str], Cell]) -> Cell | None:
    """Read a cell that may be empty: None where the source does not say.

    >>> stated({"micro_batch": ""}, "micro_batch", count) is None
    True
    """
    return read(record, name) if record[name] else None


def metric(record: Record, metrics: Mapping[str, str]) -> None:
    """Refuse a metric that is not known, or a unit that is not its own.

    Raises
    ------
    UnknownNameError
        If there is no such metric.
    DataFileError
        If the unit is another.

    >>> metric({"metric": "step_time", "unit": "s"}, {"step_time": "s"})
    """
    name = record["metric"]
    if name not in metrics:
        raise unknown_name("metric", name, metrics)
    if record["unit"] != metrics[name]:
        raise DataFileError(f"the unit of {name} is {metrics[name]}, not {record['unit']!r}.")


def device(record: Record) -> str:
    """Return the key of a device of the zoo.

    Raises
    ------
    DataFileError
        If the device is there, but this is another of its names.
    UnknownNameError
        If there is none.

    >>> device({"device": "Cloud.A100"})
    'Cloud.A100'
    """
    key: str = spaces.Hardware.find(record["device"]).key
    if key != record["device"]:
        raise DataFileError(f"device must be the key {key!r}, not {record['device']!r}.")
    return key


def model(record: Record, *, language: bool = False) -> str:
    """Return the key of a model of the zoo; `language` asks for one that reads tokens.

    Raises
    ------
    DataFileError
        If the model is there, but this is another of its names.
    UnknownNameError, WrongKindError
        If there is none, or it is of another kind.

    >>> model({"model": "GPT3_175B"}, language=True)
    'GPT3_175B'
    """
    name = record["model"]
    found = resolve.transformer(name) if language else resolve.model(name)
    if found.key != name:
        raise DataFileError(f"model must be the key {found.key!r}, not {name!r}.")
    return found.key


class Measured(Protocol):
    """A published row."""

    @property
    def metric(self) -> str:
        """What was measured."""

    @property
    def series(self) -> str:
        """The table that it stands in."""


Published = TypeVar("Published", bound=Measured)


def chosen(
    rows: Iterable[Published], metrics: Collection[str], metric: str | None, series: str | None
) -> list[Published]:
    """Return the rows of a metric and of a series; all where None is asked.

    Raises
    ------
    UnknownNameError
        If there is no such metric or series.
    """
    found = list(rows)
    if metric is not None and metric not in metrics:
        raise unknown_name("metric", metric, metrics)
    known = dict.fromkeys(row.series for row in found)
    if series is not None and series not in known:
        raise unknown_name("series of measurements", series, known)
    return [row for row in found if metric in (None, row.metric) and series in (None, row.series)]
