"""The command `mlsim footprint`: energy, carbon and water, as text, as JSON, or explained."""

from __future__ import annotations

import argparse
import re
from typing import Any

from mlsim.cli.options import LAYOUT, add_json, as_json
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError
from mlsim.solvers.footprint.footprint import Footprint

ABOUT = "energy, carbon and water of a service, or of device-hours"

# Flags with a number, the argument of `Engine.serve`, and what it is.
_SIZES = (
    ("batch", "batch_size", "sequences served together (1)"),
    ("prompt", "prompt_tokens", "tokens in each prompt (512)"),
    ("output", "output_tokens", "new tokens for each (128)"),
)
_WORDS = (
    ("precision", "precision", "bf16, fp8, w4a16, ... (16 bits)"),
    ("estimate", "estimate", "roofline, bound or calibrated (roofline)"),
)
_LAYOUT = tuple((name, name.replace("-", "_"), what) for name, _, what in LAYOUT)
# Flags of the place, and the argument of `Engine.footprint`; VALUE is one, or LOW,HIGH.
_PLACE = (
    ("grid", "grid", "such as Germany"),
    ("region", "region", "of a cloud, such as us-central1: its grid and data centres"),
    ("data-centre", "data_centre", "such as Google, for PUE and WUE"),
    ("operator", "operator", "whose contracts count, with --accounting market"),
    ("accounting", "accounting", "location or market (location)"),
)
_AROUND = (
    ("pue", "pue", "such as 1.1"),
    ("wue", "wue", "such as '0.3 L/kWh'"),
    ("carbon-intensity", "carbon_intensity", "such as '350 gCO2e/kWh'"),
    ("water-intensity", "water_intensity", "such as '1.5 L/kWh'"),
    ("network", "network", "power of switches for each device, such as '20 W'"),
    ("lifetime", "lifetime", "of a device, such as '4 yr'"),
    ("lifetime-use", "lifetime_use", "share of it in which the device is used"),
)
_VALUES = (
    ("device-power", "device_power", "average of a device, such as '330 W'"),
    ("max-power", "max_power", "of a device"),
    ("idle-power", "idle_power", "of a device"),
    ("compute-utilisation", "compute_utilisation", "share of the peak that is used"),
    ("memory-utilisation", "memory_utilisation", "share of the bandwidth that is used"),
    ("tokens", "tokens", "that device-hours make"),
)
_SWITCHES = (
    ("host", "host", "host power for each device, a system, or no"),
    ("embodied", "embodied", "carbon of making a device: '150 kgCO2e', a record, or no"),
)


def add(commands: Any) -> None:
    """Add `mlsim footprint` to the commands."""
    command = commands.add_parser("footprint", help=ABOUT, description=ABOUT)
    command.add_argument("model", nargs="?", help="as for serve; none with --device-hours")
    command.add_argument("hardware", help="device or system: name or .toml file")
    command.add_argument(
        "--device-hours", metavar="N", help="hours of devices, in place of a model"
    )
    for name, argument, what in _SIZES:
        command.add_argument(f"--{name}", dest=argument, type=int, metavar="N", help=what)
    for name, short, what in LAYOUT:
        command.add_argument(f"--{name}", f"--{short}", type=int, metavar="N", help=f"{what} (1)")
    for name, argument, what in _WORDS:
        command.add_argument(f"--{name}", dest=argument, metavar="TEXT", help=what)
    for name, argument, what in _VALUES:
        command.add_argument(
            f"--{name}", dest=argument, metavar="VALUE", help=f"{what}; or LOW,HIGH"
        )
    add_place(command)
    command.add_argument(
        "--explain", metavar="QUANTITY", help="show how a result is computed: total_carbon, ..."
    )
    add_json(command)
    command.set_defaults(run=run)


def add_place(command: argparse.ArgumentParser) -> None:
    """Add the options that say where a load runs, and when."""
    for name, argument, what in (*_PLACE, *_SWITCHES):
        command.add_argument(f"--{name}", dest=argument, metavar="TEXT", help=what)
    for name, argument, what in _AROUND:
        command.add_argument(
            f"--{name}", dest=argument, metavar="VALUE", help=f"{what}; or LOW,HIGH"
        )
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


def _given(options: argparse.Namespace, names: tuple[tuple[str, str, str], ...]) -> dict[str, Any]:
    """Return the arguments that the options give."""
    pairs = ((argument, getattr(options, argument)) for _, argument, _ in names)
    return {argument: value for argument, value in pairs if value is not None}


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
