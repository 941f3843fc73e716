"""How far answers are off whose constants were measured on other devices.

    python benchmarks/borrowed.py [--write] [--bands]

Each open case of the reference folder (`MLSIM_REFERENCE`) is predicted again with constants of
its device left out, so that it borrows them: from the same chip, from its family, from its
class (`mlsim.hardware.kernel_constants`). Rows count at the level from which their device borrows
what it computes and moves, and so do those of devices that nobody measured; of links, rows of
several devices, also with the link at its full rate where nobody lends. Terms of software are
fitted without the series of each row. `--write` renews `data/software/borrowed.csv`, of which
the bands of answers with borrowed constants are made; and `bands.csv` beside it, the limits of
all bands. `--bands` renews these alone, in seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from statistics import median
from typing import Any

import fit_software as fits
from tables import lay_out

import mlsim.software as shelf
from mlsim.engine.accuracy import ALL, CALIBRATED, CLOSE, BorrowedScore
from mlsim.engine.bands import KIND, ON_RECORD, TIMES, limits_anew, quantile
from mlsim.engine.predict import architectures, predict
from mlsim.engine.predict.case import Case
from mlsim.errors import NotMeasuredError
from mlsim.hardware.device_calibration import calibration
from mlsim.hardware.kernel_constants import (
    LEVELS,
    LIBRARY,
    NOBODY,
    lend_from,
    measured_devices,
    relatives,
)
from mlsim.software import FOLDER
from mlsim.systems.link_calibration import OVER_PCIE

CASES, MODELS = "cases-open.csv", "models.csv"
TRAINING = ("train_lm", "train_cnn", "train_enc", "train_run")
FILE, BANDS = FOLDER / "borrowed.csv", FOLDER / "bands.csv"
# What is left out, and from where it may then be lent.
ASKED = (
    *(("device", level) for level in LEVELS[1:]),
    *(("links", level) for level in (*LEVELS[1:], NOBODY)),
)


def accuracy_folder() -> Path:
    """Return the folder of open cases."""
    if "MLSIM_REFERENCE" not in os.environ:
        sys.exit("MLSIM_REFERENCE must name the folder of reference data.")
    return Path(os.environ["MLSIM_REFERENCE"]) / "accuracy"


def lent(what: str, case: Case) -> str:
    """Return from where a case's device borrows; "" if it does not, or can't."""
    device = case.device
    if what == "links":
        sends = (
            case.count > 1 if case.text("kind") in TRAINING else case.text("tp") not in ("", "1")
        )
        over_nvlink = [each for each in measured_devices("exchange") if each not in OVER_PCIE]
        kin = relatives(device.key, over_nvlink, LIBRARY, what="links")
        return (kin.level if kin else NOBODY) if sends else ""
    try:
        found = calibration(device, device.compute.usual_precision).kin
    except NotMeasuredError:
        return ""
    both = (found[name].level for name in ("compute_fraction", "memory_fraction"))
    return max(both, key=LEVELS.index)


def ratios(what: str, level: str, folder: Path) -> Iterator[tuple[str, str, str, float]]:
    """Yield kind, id, series and predicted over measured speed of each row with such loans."""
    lend_from(level, what)
    rows = [row for row in fits.read(folder / CASES) if row["kind"] in KIND]
    models = architectures(folder / MODELS)
    found = {each.case_id: each for each in predict(rows, models)}
    values = {name: float(each.predicted) for name, each in found.items() if each.predicted}
    for name in fits.ROWS:
        own = [row for row in rows if fits.belongs(name, row, beside=True)]
        for series in sorted({row["series"] for row in own}):
            apart = [row for row in own if row["series"] == series]
            values |= fits.predictions(apart, {name: shelf.without(name, series)}, models)
    for row in rows:
        answer = found[row["case_id"]]
        if row["tier"] not in ("A", "B") or answer.source != CALIBRATED:
            continue
        if level == "own" or lent(what, Case(row)) == level:
            over = values[row["case_id"]] / float(row["measured"])
            speed = 1 / over if row["metric_kind"] in TIMES else over
            yield KIND[row["kind"]], row["case_id"], row["series"], speed


def asked(what: str, level: str, folder: Path) -> list[tuple[str, str, str, float]]:
    """Return the same, from a process of its own: what was worked out is remembered in each."""
    command = [sys.executable, __file__, "--what", what, "--level", level, "--folder", str(folder)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return [tuple(each) for each in json.loads(found.stdout)]


def scores(folder: Path) -> Iterator[BorrowedScore]:
    """Yield a score for each level and kind, and for all kinds together."""
    own = {(kind, name): ratio for kind, name, _, ratio in asked("device", "own", folder)}
    for what, level in ASKED:
        rows = asked(what, level, folder)
        for kind in (*dict.fromkeys(KIND.values()), ALL):
            chosen = [each for each in rows if kind in (each[0], ALL)]
            if not chosen:
                continue
            found = [ratio for *_, ratio in chosen]
            speeds = sorted(1 / each for each in found)
            outside = (1 - ON_RECORD) / 2
            errors = [abs(each - 1) for each in found]
            before = [abs(own[each[0], each[1]] - 1) for each in chosen]
            yield BorrowedScore(
                what=what,
                level=level,
                kind=kind,
                rows=len(found),
                series=len({each[2] for each in chosen}),
                error=round(median(errors), 4),
                own_error=round(median(before), 4),
                close=round(sum(each <= CLOSE for each in errors) / len(errors), 4),
                ratio=round(median(found), 4),
                least=round(quantile(speeds, outside), 4),
                most=round(quantile(speeds, 1 - outside), 4),
            )


def keep(file: Path, found: Sequence[Any]) -> None:
    """Write scores as a table."""
    lines = [",".join(each.name for each in fields(found[0]))]
    lines += [",".join(str(value) for value in asdict(each).values()) for each in found]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Print the scores as a table; with --write, keep them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="renew the table of the package")
    parser.add_argument("--bands", action="store_true", help="renew the limits of bands alone")
    parser.add_argument("--what", help=argparse.SUPPRESS)
    parser.add_argument("--level", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.bands:
        keep(BANDS, list(limits_anew()))
        return
    if given.level:
        print(json.dumps(list(ratios(given.what, given.level, given.folder))))
        return
    found = list(scores(given.folder or accuracy_folder()))
    percent = "{:.0%}".format
    shown = [
        [
            *(each.what, each.level, each.kind, str(each.rows)),
            *map(percent, (each.own_error, each.error, each.close)),
            *(f"{each.ratio:.2f}", f"{each.least:.2f} to {each.most:.2f}"),
        ]
        for each in found
    ]
    heads = ("left out", "lent by", "rows of", "rows", "own", "borrowed", "close", "ratio", "band")
    print(lay_out(heads, shown))
    if given.write:
        keep(FILE, found)
        keep(BANDS, list(limits_anew()))


if __name__ == "__main__":
    main()
