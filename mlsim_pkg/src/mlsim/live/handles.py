"""What a reader moves: handles are numbers, choices are differences made beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlsim.errors import InvalidValueError, unknown_name


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a handle and a choice share: what readers see, "" for the name itself."""

    label: str = ""

    def shown(self, name: str) -> str:
        """Return the label, or the name as words."""
        return self.label or name.replace("_", " ").capitalize()


@dataclass(frozen=True)
class Handle(Named):
    """A number that moves, from `low` to `high`.

    Attributes
    ----------
    start
        Its value until somebody moves it, and after a reset; the lowest one if not given.
    step
        The distance of two values; any value may be taken without one.
    unit
        Written behind the value.
    scale
        "linear", or "log" for a range of decades.
    values
        The only values that it may have, from the lowest up.
    digits
        Significant digits that are shown.

    >>> Handle("batch", 1, 256, start=8, step=1).as_data()["label"]
    'Batch'
    """

    name: str
    low: float
    high: float
    start: float | None = None
    step: float | None = None
    unit: str = ""
    scale: str = "linear"
    values: Sequence[float] = ()
    digits: int = 3

    def __post_init__(self) -> None:
        """Refuse a range that is none."""
        if not self.low < self.high:
            raise InvalidValueError(
                f"handle '{self.name}' moves from {self.low:g} to {self.high:g}: the second must "
                "be larger."
            )
        if self.scale not in {"linear", "log"}:
            raise unknown_name("scale of a handle", self.scale, ("linear", "log"))
        if self.scale == "log" and self.low <= 0:
            raise InvalidValueError(
                f"handle '{self.name}' has decades, and so no place for {self.low:g}: let it "
                "begin above 0."
            )
        start = self.low if self.start is None else self.start
        if not self.low <= start <= self.high or (self.values and start not in self.values):
            allowed = self.values or f"{self.low:g} to {self.high:g}"
            raise InvalidValueError(f"handle '{self.name}' starts at {start:g}, not in {allowed}.")

    @property
    def stepped(self) -> bool:
        """Whether it leaves whole numbers out."""
        return self.step is not None and self.step > 1 and float(self.step).is_integer()

    def as_data(self) -> dict[str, Any]:
        """Return what the script reads."""
        start = self.low if self.start is None else self.start
        kept = {"name": self.name, "label": self.shown(self.name), "low": self.low}
        kept |= {"high": self.high, "start": start, "unit": self.unit, "digits": self.digits}
        kept |= {"step": self.step} if self.step else {}
        kept |= {"scale": self.scale} if self.scale != "linear" else {}
        return kept | ({"values": list(self.values)} if self.values else {})


@dataclass(frozen=True)
class Choice(Named):
    """A difference that was made beforehand: its options by key, with what readers see.

    >>> Choice("format", {"bf16": "BF16", "fp8": "FP8"}).as_data()["start"]
    'bf16'
    """

    name: str
    options: Mapping[str, str]
    start: str | None = None

    def __post_init__(self) -> None:
        """Refuse a choice of nothing, and a start that is no option."""
        if len(self.options) < 2:
            raise InvalidValueError(f"choice '{self.name}' needs two options or more.")
        if self.start is not None and self.start not in self.options:
            raise unknown_name(f"option of '{self.name}'", self.start, tuple(self.options))

    def as_data(self) -> dict[str, Any]:
        """Return what the script reads."""
        options = [[key, label] for key, label in self.options.items()]
        start = self.start if self.start is not None else options[0][0]
        kept = {"name": self.name, "label": self.shown(self.name)}
        return kept | {"options": options, "start": start}
