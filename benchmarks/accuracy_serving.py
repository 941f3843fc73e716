"""How far `Engine.serve` is from published measurements of language models.

    MLSIM_REFERENCE=... python benchmarks/accuracy_serving.py --csv predictions.csv

Reads the open cases of the reference folder (`accuracy/cases-open.csv`, prefill
and decode, tiers A and B), asks `Engine.serve` about each (`serving_cases.py`
says how), and prints: which cases can be asked; whether a measurement beats
`estimate="bound"`; how large the errors of the default estimate are, by the
folder's own `score.py`; the worst cases, each with a cause; and what is known
about the causes, reckoned from the measurements. `--csv` writes the predictions
in the form that `score.py` reads. `--calibrated` sets the calibrated estimate beside
the default one, for the cases on devices that are calibrated.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from accuracy_calibrated import language_models, table
from serving_cases import STAND_INS, Case, Scored, cases, predict_all, speed_ratio
from serving_gaps import FASTER, SLOWER, Gap, cause, evidence
from tables import lay_out

# A measurement may beat the bound by this much: rounding of what was printed.
ROUNDING = 0.005
RANKED = 0.9  # what the rank correlation within a series must reach


def load_score(reference: Path) -> ModuleType:
    """Import the reference folder's own scorer."""
    spec = importlib.util.spec_from_file_location("score", reference / "accuracy" / "score.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"no score.py in {reference / 'accuracy'}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scored(rows: Iterable[Case], predictions: dict[str, float]) -> list[Scored]:
    """Return case, prediction, measurement and speed ratio, as `score.py` wants them."""
    return [
        (case, predicted, float(case["measured"]), speed_ratio(case, predicted))
        for case in rows
        if (predicted := predictions.get(case["case_id"])) is not None
    ]


def violations(rows: Iterable[Scored]) -> list[Scored]:
    """Return the cases whose measurement is faster than the prediction."""
    return sorted((each for each in rows if each[3] < 1 - ROUNDING), key=lambda each: each[3])


def errors(score: ModuleType, rows: Sequence[Scored], by: str) -> str:
    """Lay out the scorer's figures for each kind or series."""
    lines = []
    for name in sorted({case[by] for case, *_ in rows}):
        found = score.metrics([each for each in rows if each[0][by] == name])
        lines.append([name, *figures(found)])
    lines.append(["all", *figures(score.metrics(list(rows)))])
    head = ["cases", "median error", "within 25 %", "factor", "mlsim / measured", "rank"]
    return lay_out([by, *head], lines)


def figures(found: dict[str, Any]) -> list[str]:
    """Write one row of the scorer's figures."""
    return [
        f"{found['n']}",
        f"{found['mdAPE']:.0%}",
        f"{found['in25']:.0%}",
        f"{1 + found['medF']:.2f}",
        f"{1 + found['bias']:.2f}",
        "" if math.isnan(found["rho"]) else f"{found['rho']:.2f}",
    ]


def worst(rows: Sequence[Scored], reference: Path, count: int) -> str:
    """Lay out the cases that are furthest off, with causes."""
    lines = []
    for each in sorted(rows, key=lambda each: -abs(math.log(each[3])))[:count]:
        case, ratio, gap = each[0], each[3], Gap(each, reference)
        devices = f"{case['count']} x {case['device']}" if case["count"] != "1" else case["device"]
        shape = f"{case['input_len'].removesuffix('.0')}/{case['output_len'].removesuffix('.0')}"
        lines.append(
            [
                case["case_id"],
                f"{ratio:.1f}",
                f"{case['model']} {float(case['w_bits']):g} bit, {devices}, {case['kind']}",
                f"{gap.batch} x {shape.strip('/')}",
                f"{gap.measured * 1e3:.2f}",
                f"{gap.predicted * 1e3:.2f}",
                f"{gap.per_layer:,.0f}",
                f"{1e6 * gap.seconds / gap.batch:,.0f}",
                cause(case, SLOWER),
            ]
        )
    head = ["case", "ratio", "what", "batch x tokens", "ms measured", "ms estimated"]
    return lay_out([*head, "us/layer", "us/sequence", "cause"], lines)


def write(path: Path, predictions: dict[str, float]) -> None:
    """Write predictions as `score.py` reads them."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case_id", "predicted"])
        writer.writerows((name, repr(value)) for name, value in predictions.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--reference",
        type=Path,
        default=os.environ.get("MLSIM_REFERENCE"),
        help="folder of the reference data ($MLSIM_REFERENCE)",
    )
    parser.add_argument("--csv", type=Path, help="write the default estimate's predictions")
    parser.add_argument(
        "--calibrated", action="store_true", help="set the calibrated estimate beside it"
    )
    parser.add_argument("--worst", type=int, default=15, help="cases to list (15)")
    options = parser.parse_args()
    if not options.reference:
        parser.error("say where the reference data are: --reference, or MLSIM_REFERENCE")
    reference = Path(options.reference)
    rows = cases(reference)
    score = load_score(reference)

    bounds, _ = predict_all(rows, reference, "bound")
    predictions, refused = predict_all(rows, reference)
    print(f"{len(predictions)} of {len(rows)} open cases can be asked")
    for reason, count in Counter(refused.values()).most_common():
        print(f"  {count} not: {reason}")
    used = Counter(case["device"] for case in rows if case["case_id"] in predictions)
    for device, words in STAND_INS.items():
        print(f"  {used[device]} with a stand-in: {words}")

    limits = scored(rows, bounds)
    beaten = violations(limits)
    print(f'\nestimate="bound": {len(beaten)} measurements beat it by more than {ROUNDING:.1%}')
    for case, predicted, measured, ratio in beaten:
        print(f"  {case['case_id']} {ratio:.3f}: measured {measured:g}, bound {predicted:g}")
    nearest = sorted(limits, key=lambda each: each[3])[:5]
    print("nearest to it: " + ", ".join(f"{each[0]['case_id']} {each[3]:.2f}" for each in nearest))

    found = scored(rows, predictions)
    print("\nThe default estimate: median error, part within 25 %, typical factor, median of")
    print("predicted over measured speed, rank correlation within a series\n")
    print(errors(score, found, "kind"), errors(score, found, "series"), sep="\n\n")
    rank = score.metrics(found)["rho"]
    print(f"\nmean rank correlation within series: {rank:.3f} (must reach {RANKED})")
    print(f"\nThe {options.worst} worst cases; times of a step, or of a pass\n")
    print(worst(found, reference, options.worst))
    print("\nFaster than the default estimate by more than 0.5 %")
    for case, predicted, measured, ratio in violations(found):
        print(
            f"- {case['case_id']} {ratio:.2f}: {case['model']} on {case['device']}, "
            f"{measured:g} measured, {predicted:.4g} estimated: {cause(case, FASTER)}"
        )
    if options.calibrated:
        print("\nThe calibrated estimate beside it, on devices that are calibrated\n")
        print(table(language_models(reference)))
    print("\nHow the causes are known")
    for line in evidence(found, reference):
        print(f"- {line}")
    if options.csv:
        write(options.csv, predictions)
    if beaten or rank < RANKED:
        sys.exit(1)


if __name__ == "__main__":
    main()
