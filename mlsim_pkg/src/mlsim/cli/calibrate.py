"""The command `mlsim calibrate`: a few own measurements in, the correction of predictions out."""

from __future__ import annotations

import argparse
from typing import Any

from mlsim.cli.options import add_json, as_json
from mlsim.engine import Engine


def add(commands: Any) -> None:
    """Add `mlsim calibrate` to the commands."""
    text = "how a few measurements of your own correct the predictions for their device"
    command = commands.add_parser("calibrate", help=text, description=text)
    command.add_argument(
        "measured",
        metavar="FILE.csv",
        help="a measurement in each row: kind (solve, serve-prefill, serve-decode, train), model, "
        "hardware, batch_size and what else the command takes, measured, unit",
    )
    command.add_argument(
        "--estimate",
        choices=("calibrated", "roofline"),
        default="calibrated",
        help="which predictions are corrected (calibrated)",
    )
    command.add_argument(
        "--explain", action="store_true", help="show each row, and how the band came to be"
    )
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> str:
    """Return the correction as text or JSON.

    Raises
    ------
    MlsimError
        As `Engine.calibrate`.
    """
    found = Engine.calibrate(options.measured, estimate=options.estimate)
    if options.json:
        return as_json(found.to_dict())
    return f"{found}\n\n{found.explain()}" if options.explain else str(found)
