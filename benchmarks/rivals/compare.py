"""Score what rivals answered, and mlsim on exactly the same rows.

    python benchmarks/rivals/compare.py --cases CASES.csv --folder FOLDER [--write]

The folder holds what `ours.py` and the scripts `ask_*.py` wrote. Prints by kind; `--write` puts
the answers beside this script (`answers.csv`: case_id, rival, predicted) and the scores where
the page reads them (`rivals.csv` of the package's data).
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import fit_software as fits
from tables import lay_out

# In which files the answers are, and which version of which program gave them.
RIVALS = {
    "mlsysim": ("mlsysim", "0.3.0", "half of the peak, its default"),
    "genz-llm": ("genz-llm", "0.0.16", "whole peak and bandwidth, its default"),
    "llm-analysis": (
        "llm-analysis",
        "0.2.2",
        "0.7 of the peak (0.5 in training), 0.9 of bandwidth",
    ),
    "aiconfigurator-silicon": ("aiconfigurator", "0.12.0", "measured kernels only, its default"),
    "aiconfigurator-hybrid": ("aiconfigurator", "0.12.0", "measured kernels, gaps by formula"),
}
FEW = 3
NAMES = ("rival", "version", "settings", "kind", "rows", "error", "close", "our_error")


def main() -> None:
    """Print the scores, and write them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=Path("rivals"))
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    rows = fits.read(asked.cases)
    ours = read(asked.folder / "mlsim.csv")
    lines: list[Sequence[str]] = []
    answers: list[tuple[str, str, str]] = []
    for key, about in RIVALS.items():
        path = asked.folder / f"{key}.csv"
        if not path.exists():
            print(f"no {path}")
            continue
        theirs = read(path)
        same = [row for row in rows if row["case_id"] in theirs and row["case_id"] in ours]
        print(f"{key}: {len(theirs)} answered, {len(same)} of them by mlsim too")
        answers += [(name, key, f"{theirs[name]:.5g}") for name in sorted(theirs)]
        for title, kinds in (*fits.TITLES.items(), ("all", ())):
            own = [row for row in same if not kinds or row["kind"] in kinds]
            if len(own) < FEW:
                continue
            scores = [*fits.scored(own, theirs), *fits.scored(own, ours)]
            lines.append((*about, title, f"{len(own)}", *(f"{each:.3f}" for each in scores)))
    print(lay_out([*NAMES[:1], *NAMES[3:], "our_close"], [[row[0], *row[3:]] for row in lines]))
    if asked.write:
        here = Path(__file__).resolve().parent
        fits.save(here / "answers.csv", ("case_id", "rival", "predicted"), answers)
        fits.save(fits.FOLDER / "rivals.csv", (*NAMES, "our_close"), lines)


def read(path: Path) -> Mapping[str, float]:
    """Return predictions by the ids of their cases."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["case_id"]: float(row["predicted"])
            for row in csv.DictReader(file)
            if number(row["predicted"])
        }


def number(text: str) -> bool:
    """Whether a cell is a number; verdicts on memory are words."""
    try:
        float(text)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    main()
