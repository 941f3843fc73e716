"""Fit the terms of classes of software to open cases, and score them leave-series-out.

    python benchmarks/fit_software.py --cases CASES.csv --out FOLDER [--write] [CLASS ...]
    python benchmarks/fit_software.py --cases CASES.csv --score

`CASES.csv` has the columns that `mlsim predict` reads, and `measured`, `higher_better`,
`series`, `tier`. For each class, all its terms are fitted to all of its rows (in sample);
then once more without each series, which is predicted by the rest (left out). `--write`
puts values, and their least and largest over the fits, into the files of the classes, and
the values without each series into `left_out.csv` beside them. The
folder gets `in_sample.csv` and `left_out.csv` (case_id, predicted) and `terms.csv`.

The loss is the mean of |log(predicted / measured)|, at most 1 a row, in which a series weighs
as the square root of its rows; a term pays a little for being off the middle of its range.
Terms move one after another by shrinking factors; none
leaves the range that its file calls plausible.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import mlsim.software as shelf
from mlsim.engine.predict import QUESTIONS, architectures, predict
from mlsim.engine.predict.case import READ, Case
from mlsim.errors import MlsimError
from mlsim.hardware import measured_kernels
from mlsim.software import FOLDER, Software, narrower

Row = Mapping[str, str]
# Which rows a class is fitted to: by kind, and by the column of software ("" is any).
ROWS: Mapping[str, Mapping[str, str]] = {
    "eager": {"cnn_infer": "eager", "enc_infer": "eager"},
    "graph": {"cnn_infer": "eager", "enc_infer": "eager"},
    "engine": dict.fromkeys(
        ("cnn_infer", "enc_infer", "decode", "gen_e2e", "static_gen", "serve_offline", "ttft"),
        "engine",
    ),
    "early_engine": dict.fromkeys(
        ("enc_infer", "decode", "gen_e2e", "static_gen", "serve_offline", "ttft"), "engine"
    ),
    "request_path": {"cnn_infer": "engine_host", "enc_infer": "engine_host"},
    "vllm": dict.fromkeys(("serve_steady", "serve_offline", "decode"), "vllm"),
    "llama_cpp": dict.fromkeys(("decode", "prefill"), "llamacpp"),
    "framework": {"train_lm": ""},
    "megatron": {"train_lm": ""},
}
# Which rows depend on a class that is not fitted to them.
BESIDE: Mapping[str, Mapping[str, str]] = {"vllm": {"tok_energy": "vllm"}}
# Factors by which a term is moved, one after another.
STEPS = (1.6, 1.25, 1.1, 1.04)
MOST = 1.0
# What a term at the end of its range costs, as an error of each row.
STRAIN = 0.02


def main() -> None:
    """Fit, score, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--out", type=Path, default=Path("scores"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--score", action="store_true", help="with the terms as they are")
    parser.add_argument("classes", nargs="*", default=list(ROWS))
    asked = parser.parse_args()
    rows = read(asked.cases)
    models = architectures(asked.models) if asked.models else {}
    if asked.score:
        write_scores(rows, models)
        return
    inside: dict[str, float] = {}
    outside: dict[str, float] = {}
    terms: list[tuple[str, str, float, float, float]] = []
    left: list[tuple[str, str, str, str]] = []
    for name in asked.classes:
        own = [row for row in rows if belongs(name, row)]
        fitted = fit(name, own, models)
        inside |= predictions(own, {name: fitted}, models)
        folds = {}
        for series in sorted({row["series"] for row in own}):
            rest = [row for row in own if row["series"] != series]
            folds[series] = fit(name, rest, models, start=fitted) if rest else fitted
            # What is not fitted but depends on the class is left out with its series.
            apart = [
                row for row in rows if row["series"] == series and belongs(name, row, beside=True)
            ]
            outside |= predictions(apart, {name: folds[series]}, models)
            left += [
                (name, series, term, f"{folds[series].value(term):.4g}")
                for term, each in fitted.terms.items()
                if each.least < each.most
            ]
        for term in fitted.terms:
            values = [each.value(term) for each in folds.values()]
            low, high = min(*values, fitted.value(term)), max(*values, fitted.value(term))
            terms.append((name, term, fitted.value(term), low, high))
            print(f"  {name} {term}: {fitted.value(term):.3g} ({low:.3g} to {high:.3g})")
        for words, found in (("in sample", inside), ("left out", outside)):
            print(name, words, told(own, found), flush=True)
        if asked.write:
            sources = ", ".join(sorted({row["series"] for row in own}))
            write(name, terms, sources)
    if asked.write:
        keep_left_out(left, asked.classes)
    report(rows, inside, outside)
    asked.out.mkdir(parents=True, exist_ok=True)
    save(asked.out / "in_sample.csv", ("case_id", "predicted"), inside.items())
    save(asked.out / "left_out.csv", ("case_id", "predicted"), outside.items())
    save(asked.out / "terms.csv", ("software", "term", "value", "low", "high"), terms)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows that can be scored."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["tier"] in ("A", "B")]
    return [row for row in rows if number(row["measured"]) > 0]


def number(text: str) -> float:
    """Return a number, 0 if it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def belongs(name: str, row: Row, *, beside: bool = False) -> bool:
    """Tell whether a class is fitted to a row, or depends on it besides."""
    wanted = {**ROWS[name], **(BESIDE.get(name, {}) if beside else {})}.get(row["kind"])
    if wanted is None or wanted not in ("", row["sw_class"]):
        return False
    # By its door or the table's column it is of a class, and by its program of a narrower one.
    usual = {"eager": "eager", "graph": "eager", "framework": "framework", "megatron": "framework"}
    found = narrower(usual.get(name, "engine"), row["software"])
    return found == name or (found == "engine" and name not in ("early_engine", *usual))


def fit(
    name: str, rows: list[dict[str, str]], models: Mapping[str, Any], start: Software | None = None
) -> Software:
    """Return the class with the terms that fit some rows best."""
    found = start or shelf.classes()[name]
    best = loss(rows, {name: found}, models) + strain(found)
    for step in STEPS[1:] if start else STEPS:
        for _ in range(4):
            before = best
            for term in found.terms:
                for factor in (step, 1 / step):
                    while True:
                        moved = with_term(found, term, found.value(term) * factor)
                        now = loss(rows, {name: moved}, models) + strain(moved)
                        if now >= best - 1e-5:
                            break
                        found, best = moved, now
            if best > before - 1e-4:
                break
    return found


def strain(found: Software) -> float:
    """Return what it costs that terms are off the middle of what is plausible."""
    costs = 0.0
    for each in found.terms.values():
        if 0 < each.least < each.most:
            middle = math.sqrt(each.least * each.most)
            costs += (math.log(each.value / middle) / math.log(each.most / middle)) ** 2
    return STRAIN * costs


def with_term(found: Software, term: str, value: float) -> Software:
    """Return a class with another value of a term, within its range."""
    old = found.terms[term]
    inside = min(max(value, old.least), old.most)
    new = replace(old, value=inside, low=inside, high=inside)
    return replace(found, terms=MappingProxyType({**found.terms, term: new}))


def loss(
    rows: list[dict[str, str]], changed: Mapping[str, Software], models: Mapping[str, Any]
) -> float:
    """Return the mean of the errors, as logarithms."""
    counts = Counter(row["series"] for row in rows)
    found = predictions(rows, changed, models)
    total = weights = 0.0
    for row in rows:
        if row["case_id"] in found:
            weight = 1 / math.sqrt(counts[row["series"]])
            ratio = found[row["case_id"]] / float(row["measured"])
            total += weight * min(abs(math.log(ratio)), MOST)
            weights += weight
    return total / weights if weights else MOST


def predictions(
    rows: Iterable[Row], changed: Mapping[str, Software], models: Mapping[str, Any]
) -> dict[str, float]:
    """Return the calibrated predictions of rows by their ids, with some classes changed."""
    usual: Callable[[], Mapping[str, Software]] = shelf.classes
    table = {**usual(), **changed}
    shelf.classes = lambda: table  # type: ignore[assignment]
    try:
        return dict(_answered(rows, models))
    finally:
        shelf.classes = usual  # type: ignore[assignment]


_LAYOUTS: dict[Any, Any] = {}


def _answered(rows: Iterable[Row], models: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    for row in rows:
        cells = {name: row.get(name) or "" for name in READ[1:]}
        case = Case(cells, models, _LAYOUTS)
        try:
            value = QUESTIONS[row["kind"]][row["metric_kind"]](case, "calibrated")
        except (MlsimError, KeyError, ArithmeticError):
            continue
        yield row["case_id"], float(value)


# Kinds of cases that are single kernels.
KERNELS = ("gemm", "attention", "membw", "linkbw", "allreduce")
# Kinds of cases that are told together on the page.
TITLES: Mapping[str, tuple[str, ...]] = {
    "products and attention": ("gemm", "attention"),
    "memory and exchanges": ("membw", "linkbw", "allreduce"),
    "networks": ("cnn_infer",),
    "prompts": ("enc_infer", "prefill", "ttft"),
    "generation": ("decode", "gen_e2e", "static_gen", "serve_offline", "serve_steady"),
    "training": ("train_lm", "train_cnn", "train_enc", "train_run"),
    "energy": ("tok_energy",),
}


def write_scores(rows: list[dict[str, str]], models: Mapping[str, Any]) -> None:
    """Score all rows with the terms as they are, and with those without each series.

    Of single kernels, what is left out are the published kernels of the series.
    """
    inside = {
        each.case_id: float(each.predicted) for each in predict(rows, models) if each.predicted
    }
    outside = dict(inside)
    outside |= without_kernels([row for row in rows if row["kind"] in KERNELS])
    for name in ROWS:
        for series in sorted({row["series"] for row in rows if belongs(name, row, beside=True)}):
            apart = [
                row for row in rows if row["series"] == series and belongs(name, row, beside=True)
            ]
            outside |= predictions(apart, {name: shelf.without(name, series)}, models)
    lines = []
    for title, kinds in (*TITLES.items(), ("all", ())):
        own = [row for row in rows if not kinds or row["kind"] in kinds]
        scores = [score for found in (inside, outside) for score in scored(own, found)]
        answered = sum(row["case_id"] in inside for row in own)
        lines.append((title, len(own), answered, *(f"{each:.3f}" for each in scores)))
        print(*lines[-1])
    names = ("kind", "cases", "answered", "fitted_error", "fitted_close")
    save(FOLDER / "scores.csv", (*names, "left_out_error", "left_out_close"), lines)


def without_kernels(rows: list[dict[str, str]]) -> dict[str, float]:
    """Predict cases of single kernels, each without the published kernels of its own series.

    A device's rates are medians over published kernels, of which some are these very cases. Each
    series is predicted in a process of its own, since rates are worked out once.
    """
    found: dict[str, float] = {}
    series = sorted({row["series"] for row in rows})
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        for each in series:
            own = [row for row in rows if row["series"] == each]
            found |= processes.submit(_kernels_without, each, own).result()
    return found


def _kernels_without(series: str, rows: list[dict[str, str]]) -> dict[str, float]:
    plain = measured_kernels.load

    def load(*asked: Any) -> Any:
        return tuple(row for row in plain(*asked) if row.series != series)

    measured_kernels.load = load  # type: ignore[assignment]
    return {each.case_id: float(each.predicted) for each in predict(rows) if each.predicted}


def scored(rows: Iterable[Row], found: Mapping[str, float]) -> tuple[float, float]:
    """Return the median error and the share within a quarter."""
    errors = [
        abs(found[row["case_id"]] / float(row["measured"]) - 1)
        for row in rows
        if row["case_id"] in found
    ]
    return median(errors), sum(each <= 0.25 for each in errors) / len(errors)


def told(rows: Iterable[Row], found: Mapping[str, float]) -> str:
    """Return the median error and the share within a quarter, in words."""
    errors = sorted(
        abs(found[row["case_id"]] / float(row["measured"]) - 1)
        for row in rows
        if row["case_id"] in found
    )
    if not errors:
        return "no rows"
    close = sum(each <= 0.25 for each in errors) / len(errors)
    return f"{len(errors)} rows, median {errors[len(errors) // 2]:.1%}, {close:.0%} close"


def report(rows: list[dict[str, str]], inside: Mapping[str, float], outside: Any) -> None:
    """Print both scores by kind."""
    for kind in dict.fromkeys(row["kind"] for row in rows if row["case_id"] in inside):
        own = [row for row in rows if row["kind"] == kind]
        print(f"{kind:14} in sample {told(own, inside):45} left out {told(own, outside)}")


def write(name: str, terms: Iterable[tuple[Any, ...]], sources: str) -> None:
    """Put values and their spread into the file of a class."""
    path = FOLDER / f"{name}.toml"
    text = path.read_text(encoding="utf-8")
    for _, term, value, low, high in (each for each in terms if each[0] == name):
        for field, new in (("value", value), ("low", low), ("high", high)):
            pattern = rf"(\[{term}\]\n(?:(?!\[).*\n)*?{field} = ).*"
            text = re.sub(pattern, lambda found, new=new: f"{found[1]}{new:.4g}", text)
    path.write_text(text, encoding="utf-8")
    print(f"{path.name}: fitted to {sources}", file=sys.stderr)


def keep_left_out(left: list[tuple[str, str, str, str]], classes: list[str]) -> None:
    """Put the values without each series beside those of the other classes."""
    path = FOLDER / "left_out.csv"
    with path.open(encoding="utf-8", newline="") as file:
        names, *rest = csv.reader(file)
    others = [tuple(row) for row in rest if row[0] not in classes]
    save(path, tuple(names), [*others, *left])


def save(path: Path, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write a table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
