"""The options of the gradebook, apart from what they need: a command line is read often."""

from __future__ import annotations

import argparse
from pathlib import Path

TAKE = ("latest", "best")
EXPORTS = ("canvas", "moodle", "csv")
HAND, OVERRIDES = "hand", "overrides.csv"  # the instructor's own, beside the key
PER_DAY, AT_MOST, GRACE = 10.0, 100.0, 0.0  # percent, percent, minutes


def add_finish(grade: argparse.ArgumentParser) -> None:
    """Add the options of the gradebook to `mlsim-book grade`."""
    own = grade.add_argument_group("gradebook")
    own.add_argument(
        "--take", choices=TAKE, default=TAKE[0],
        help="which of a student's submissions counts (default: the latest)",
    )  # fmt: skip
    own.add_argument("--due", metavar="TIME", help="when it was due: 2026-11-30T23:59+01:00")
    for name, default, words in [
        ("--late-per-day", PER_DAY, "percent taken off for each day that has begun"),
        ("--late-at-most", AT_MOST, "percent taken off at most"),
        ("--grace", GRACE, "minutes after --due in which nothing is late"),
    ]:
        own.add_argument(
            name, type=float, metavar="N", help=f"{words} (default: {default:g}); needs --due"
        )
    own.add_argument(
        "--groups", default="", metavar="COLUMN",
        help="the class list's column of groups: one notebook counts for all members",
    )  # fmt: skip
    own.add_argument(
        "--overrides", type=Path, metavar="CSV", help=f"your decisions (default: DIR/{OVERRIDES})"
    )
    own.add_argument(
        "--blind", action="store_true", help=f"no names in DIR/{HAND}, and rows in another order"
    )
    own.add_argument(
        "--export", choices=EXPORTS, action="append", default=[],
        help="grades as a course system reads them; may be given twice",
    )  # fmt: skip
    own.add_argument(
        "--export-as", default="", metavar="NAME", help="what the assignment is called there"
    )
