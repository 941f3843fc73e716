"""Write what mlsim predicts of cases, each with terms of software fitted without its series.

    python benchmarks/rivals/ours.py --cases CASES.csv --models MODELS.csv --out FOLDER

Writes `mlsim.csv` (case_id,predicted) for `compare.py`. `../fit_software.py --score` makes its
scores in the same way.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import fit_software as fits

import mlsim.software as shelf
from mlsim.engine.predict import architectures, predict


def main() -> None:
    """Predict all cases, those of fitted series with the terms that never saw them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("rivals"))
    asked = parser.parse_args()
    rows, models = fits.read(asked.cases), architectures(asked.models)
    found = {
        each.case_id: float(each.predicted) for each in predict(rows, models) if each.predicted
    }
    for name in fits.ROWS:
        own = [row for row in rows if fits.belongs(name, row, beside=True)]
        for series in sorted({row["series"] for row in own}):
            apart = [row for row in own if row["series"] == series]
            found |= fits.predictions(apart, {name: shelf.without(name, series)}, models)
    asked.out.mkdir(parents=True, exist_ok=True)
    fits.save(asked.out / "mlsim.csv", ("case_id", "predicted"), found.items())


if __name__ == "__main__":
    main()
