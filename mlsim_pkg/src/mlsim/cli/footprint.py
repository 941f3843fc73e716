"""The command `mlsim footprint`: energy, carbon and water, as text, as JSON, or explained."""

from __future__ import annotations

import argparse
import re
from typing import Any

from mlsim.cli.options import LAYOUT, Flag, add_flags, add_json, argument, as_json, given
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError
from mlsim.solvers.footprint.footprint import Footprint

ABOUT = "energy, carbon and water of a service, or of device-hours"

# Flags of a service, as `mlsim serve` has them.
_SIZES = (
    ("batch", "N", "sequences served together (1)"),
    ("prompt", "N", "tokens in each prompt (512)"),
    ("output", "N", "new tokens for each (128)"),
)
_WORDS = (
    ("precision", "TEXT", "bf16, fp8, w4a16, ... (16 bits)"),
    ("estimate", "TEXT", "roofline, bound or calibrated (roofline)"),
)
_LAYOUT = tuple((name, "N", f"{what} (1)") for name, what in LAYOUT)
# Flags of the place; VALUE is one, or LOW,HIGH.
_PLACE = (
    ("grid", "TEXT", "such as Germany"),
    ("region", "TEXT", "of a cloud, such as us-central1: its grid and data centres"),
    ("data-centre", "TEXT", "such as Google, for PUE and WUE"),
    ("operator", "TEXT", "whose contracts count, with --accounting market"),
    ("accounting", "TEXT", "location or market (location)"),
)
_AROUND = (
    ("pue", "VALUE", "such as 1.1"),
    ("wue", "VALUE", "such as '0.3 L/kWh'"),
    ("carbon-intensity", "VALUE", "such as '350 gCO2e/kWh'"),
    ("water-intensity", "VALUE", "such as '1.5 L/kWh'"),
    ("network", "VALUE", "power of switches for each device, such as '20 W'"),
    ("lifetime", "VALUE", "of a device, such as '4 yr'"),
    ("lifetime-use", "VALUE", "share of it in which the device is used"),
)
_VALUES = (
    ("device-power", "VALUE", "average of a device, such as '330 W'"),
    ("max-power", "VALUE", "of a device"),
    ("idle-power", "VALUE", "of a device"),
    ("compute-utilisation", "VALUE", "share of the peak that is used"),
    ("memory-utilisation", "VALUE", "share of the bandwidth that is used"),
    ("tokens", "VALUE", "that device-hours make"),
)
_SWITCHES = (
    ("host", "TEXT", "host power for each device, a system, or no"),
    ("embodied", "TEXT", "carbon of making a device: '150 kgCO2e', a record, or no"),
)


def add(commands: Any) -> None:
    """Add `mlsim footprint` to the commands."""
    command = commands.add_parser("footprint", help=ABOUT, description=ABOUT)
    command.add_argument("model", nargs="?", help="as for serve; none with --device-hours")
    command.add_argument("hardware", help="device or system: name or .toml file")
    command.add_argument(
        "--device-hours", metavar="N", help="hours of devices, in place of a model"
    )
    add_flags(command, (*_SIZES, *_LAYOUT), type=int)
    add_flags(command, _WORDS)
    add_flags(command, _ranges(_VALUES))
    add_place(command)
    command.add_argument(
        "--explain", metavar="QUANTITY", help="show how a result is computed: total_carbon, ..."
    )
    add_json(command)
    command.set_defaults(run=run)


def add_place(command: argparse.ArgumentParser) -> None:
    """Add the options that say where a load runs, and when."""
    add_flags(command, (*_PLACE, *_SWITCHES))
    add_flags(command, _ranges(_AROUND))
    command.add_argument("--year", type=int, metavar="N", help="of the figures (the last)")
    command.add_argument("--hour", metavar="HOURS", help="of the day: 12, or 8-17, or 1,2,3")


def place_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `Engine.footprint` that say where and when; {} if none was given."""
    place = _given(options, _PLACE)
    place |= {name: _value(text, name) for name, text in _given(options, _AROUND).items()}
    place |= {name: _switch(text) for name, text in _given(options, _SWITCHES).items()}
    if options.hour is not None:
        place["hour"] = _hours(options.hour)
    if options.year is not None:
        place["year"] = options.year
    return place


def run(options: argparse.Namespace) -> str:
    """Compute the footprint that the options describe, and return what to print.

    Raises
    ------
    MlsimError
        As `Engine.serve` and `Engine.footprint`; or if an option can't be.
    """
    found = _footprint(options)
    if options.explain:
        explanation = found.explain(options.explain)
        return explanation.to_json() if options.json else str(explanation)
    if options.json:
        return as_json(found.to_dict())
    return str(found)


def _footprint(options: argparse.Namespace) -> Footprint:
    place = place_of(options)
    place |= {name: _value(text, name) for name, text in _given(options, _VALUES).items()}
    serve = _given(options, (*_SIZES, *_LAYOUT, *_WORDS))
    if options.device_hours is None:
        if options.model is None:
            raise InvalidValueError(
                "footprint of what? Give a model and hardware, or hardware and --device-hours."
            )
        served = Engine.serve(model=options.model, hardware=options.hardware, **serve)
        return Engine.footprint(served, **place)
    if options.model is not None or serve:
        raise InvalidValueError(
            "--device-hours stands in place of a model and its options: leave one of them out."
        )
    return Engine.footprint(
        hardware=options.hardware,
        device_hours=_value(options.device_hours, "device-hours"),
        **place,
    )


def _ranges(flags: tuple[Flag, ...]) -> list[Flag]:
    """Return flags whose help says that they take a range, too."""
    return [(name, metavar, f"{what}; or LOW,HIGH") for name, metavar, what in flags]


def _given(options: argparse.Namespace, flags: tuple[Flag, ...]) -> dict[str, Any]:
    """Return the arguments that these flags give."""
    return given(options, (argument(name) for name, *_ in flags))


def _value(text: str, name: str) -> Any:
    """Return a number, text with a unit, or a pair of them; "1,000" is no pair."""
    parts = text.split(",")
    if len(parts) == 2 and not re.fullmatch(r"[1-9]\d{0,2},\d{3}( .*)?", text):
        return tuple(_value(part.strip(), name) for part in parts)
    try:
        return float(text)
    except ValueError:
        return text


def _switch(text: str) -> Any:
    return {"no": False, "yes": True}.get(text, text)


def _hours(text: str) -> list[int]:
    """Return the hours of "12", "8-17" (the last one too) or "1,2,3"."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.strip().isdigit() and (last.strip() or first.strip()).isdigit()):
            raise InvalidValueError(f"--hour must be like 12, 8-17 or 1,2,3, not {text!r}.")
        found += range(int(first), int(last or first) + 1)
    return found
