"""The command `mlsim predict`: a table of cases in, a table of predictions out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mlsim.cli.options import add_json, as_json
from mlsim.errors import InvalidValueError


def add(commands: Any) -> None:
    """Add `mlsim predict` to the commands."""
    text = "predictions for a table of cases, each with its bound, its band and its reasons"
    command = commands.add_parser("predict", help=text, description=text)
    command.add_argument(
        "cases",
        metavar="CASES.csv",
        help="a case in each row: case_id, kind, metric_kind, device, model and what it needs; a "
        "column of measured values is never used",
    )
    command.add_argument(
        "--models",
        metavar="FILE",
        help="a table of models that the zoo does not have (models.csv beside the cases, if it "
        "is there)",
    )
    command.add_argument("--out", metavar="FILE", help="write the table to a file")
    add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> str:
    """Return the predictions, or how many were written.

    Raises
    ------
    MlsimError
        If the table can't be read, or the answer written. A row never stops it.
    """
    from mlsim.engine.predict import architectures, predict, read_cases, write

    rows = read_cases(options.cases)
    beside = Path(options.cases).expanduser().with_name("models.csv")
    table = options.models or (beside if beside.is_file() else None)
    found = list(predict(rows, architectures(table) if table else None))
    made = as_json([each.as_dict() for each in found]) + "\n" if options.json else write(found)
    if options.out is None:
        return made.rstrip("\n")
    try:
        Path(options.out).expanduser().write_text(made, encoding="utf-8")
    except OSError as error:
        raise InvalidValueError(f"the predictions can't be written: {error}.") from None
    answered = sum(1 for each in found if each.predicted)
    return f"{options.out}: {answered:,} of {len(found):,} cases predicted"
