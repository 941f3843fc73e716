"""Why mlsim and four other tools differ on the serving of language models.

    MLSIM_REFERENCE=... python benchmarks/peers_llm.py

The grid `data/peers_llm.csv` of the reference folder holds what genz-llm,
LLM-Viewer, llm-analysis and mlsysim answer. Each row is asked of mlsim, and
then the assumptions of that tool (`peers/`) are switched on in mlsim,
one after another, until mlsim says what the tool says.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from peers import CAUSES
from peers.causes import Cause
from peers.sheet import BATCH, CACHE, DECODE, PREFILL, WEIGHTS, Row, serve, sheet
from tables import lay_out

# What is compared, and its column in the grid.
ANSWERS = {
    PREFILL: "ttft_s",
    DECODE: "tpot_s",
    CACHE: "kv_bytes_per_token",
    WEIGHTS: "weight_bytes",
    BATCH: "max_batch",
}
FAR, NEAR = 0.10, 0.03
# A cause that changes a row by less is not counted for it.
LEAST = 0.01


def read(reference: Path) -> list[Row]:
    """Return the rows of the grid."""
    path = reference / "data" / "peers_llm.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(fields) for fields in csv.DictReader(file)]


def predict(row: Row, answer: str, causes: Iterable[Cause] = ()) -> float:
    """Return mlsim's answer to a row's question, with some causes switched on."""
    mine = [cause for cause in causes if answer in cause.answers]
    asked = row.question()
    for cause in mine:
        if cause.ask:
            asked = cause.ask(row, asked)
    if answer in (PREFILL, DECODE):
        found = sheet(row, answer, asked)
        for cause in mine:
            if cause.edit:
                found = cause.edit(row, answer, found)
        return found.seconds
    serving = serve(asked)
    if answer == CACHE:
        return float(serving.value("cache_per_sequence") / serving.value("cache_tokens"))
    weights = float(serving.value("weight_memory"))
    for cause in mine:
        if cause.weigh:
            weights = cause.weigh(row, weights)
    if answer == WEIGHTS:
        return weights
    return float(serve({**asked, "weight_memory": weights}).largest_batch)


def far(ours: float, theirs: float, limit: float = FAR) -> bool:
    """Whether two numbers differ by more than a share, either way."""
    if min(ours, theirs) <= 0:
        return ours != theirs
    return abs(math.log(ours / theirs)) > math.log(1 + limit)


@dataclass
class Comparison:
    """One answer of one tool beside mlsim's: as it is, and with causes switched on."""

    row: Row
    answer: str
    theirs: float
    before: float
    figures: float
    after: float


@dataclass
class Tally:
    """What one cause does to one answer of one tool."""

    factors: list[float] = field(default_factory=list)
    alone: int = 0
    needed: int = 0
    largest: int = 0


def compare(rows: Iterable[Row], answers: Sequence[str] = tuple(ANSWERS)) -> list[Comparison]:
    """Ask mlsim each question that a tool has answered."""
    found = []
    for row in rows:
        causes = CAUSES[row.tool]
        figures = [cause for cause in causes if cause.figures]
        for answer in answers:
            theirs = row.number(ANSWERS[answer])
            if theirs is not None:
                ways = [predict(row, answer, each) for each in ((), figures, causes)]
                found.append(Comparison(row, answer, theirs, *ways))
    return found


def attribute(compared: Iterable[Comparison]) -> dict[tuple[str, str, str], Tally]:
    """Count for each tool, answer and cause what the cause explains."""
    tallies: dict[tuple[str, str, str], Tally] = {}
    for each in compared:
        row, answer = each.row, each.answer
        causes = [cause for cause in CAUSES[row.tool] if answer in cause.answers]
        steps, last = {}, each.before
        for index, cause in enumerate(causes):
            tally = tallies.setdefault((row.tool, answer, cause.name), Tally())
            alone = predict(row, answer, (cause,))
            if each.before > 0 and alone > 0 and far(alone, each.before, LEAST):
                tally.factors.append(alone / each.before)
            now = predict(row, answer, causes[: index + 1])
            steps[cause.name] = math.log(now / last) if min(now, last) > 0 else 0.0
            last = now
            if far(each.before, each.theirs):
                tally.alone += not far(alone, each.theirs)
            others = [other for other in causes if other is not cause]
            if not far(each.after, each.theirs):
                tally.needed += far(predict(row, answer, others), each.theirs)
        if steps and far(each.before, each.theirs):
            # The largest step towards the tool's answer.
            sign = math.copysign(1.0, each.theirs - each.before)
            name = max(steps, key=lambda step: sign * steps[step])
            tallies[row.tool, answer, name].largest += 1
    return tallies


def share(compared: Sequence[Comparison], stage: str, limit: float = FAR) -> float:
    """Part of the comparisons in which mlsim and the tool agree, at a stage."""
    near = sum(not far(getattr(each, stage), each.theirs, limit) for each in compared)
    return near / len(compared)


def groups(compared: Iterable[Comparison]) -> dict[tuple[str, str], list[Comparison]]:
    """Sort comparisons by tool and answer."""
    found: dict[tuple[str, str], list[Comparison]] = {}
    for each in compared:
        found.setdefault((each.row.tool, each.answer), []).append(each)
    return found


def agreement(compared: Iterable[Comparison]) -> str:
    """Say how often mlsim and each tool agree, before and after the switches."""
    rows = []
    for (tool, answer), each in groups(compared).items():
        ratios = sorted(one.theirs / one.before for one in each if one.before > 0)
        rows.append(
            [
                tool,
                answer,
                f"{len(each)}",
                f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
                f"{share(each, 'before'):.1%}",
                f"{share(each, 'figures'):.1%}",
                f"{share(each, 'after'):.1%}",
                f"{share(each, 'after', NEAR):.1%}",
            ]
        )
    head = ["tool", "answer", "rows", "tool / mlsim", "within 10 %", "same figures"]
    return lay_out([*head, "all causes", "within 3 %"], rows)


def explained(tallies: dict[tuple[str, str, str], Tally]) -> str:
    """Say what each cause does alone, and in how many rows it is needed."""
    rows = []
    for (tool, answer, name), tally in tallies.items():
        factors = tally.factors or [1.0]
        rows.append(
            [
                tool,
                answer,
                name,
                f"{len(tally.factors)}",
                f"{min(factors):.2f} to {max(factors):.2f}",
                f"{statistics.median(factors):.2f}",
                f"{tally.alone}",
                f"{tally.needed}",
                f"{tally.largest}",
            ]
        )
    head = ["tool", "answer", "cause", "rows", "changes mlsim by", "median"]
    return lay_out([*head, "explains alone", "needed", "largest cause"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--reference",
        type=Path,
        default=os.environ.get("MLSIM_REFERENCE"),
        help="folder of the reference data ($MLSIM_REFERENCE)",
    )
    options = parser.parse_args()
    if not options.reference:
        parser.error("say where the reference data are: --reference, or MLSIM_REFERENCE")
    rows = read(options.reference)
    compared = compare(rows)
    silent = Counter(row.tool for row in rows if row.number(ANSWERS[PREFILL]) is None)
    print(f"{len(rows):,} rows; {len(compared):,} answers of {len(CAUSES)} tools")
    print(
        "without a TTFT, because the tool refused: "
        + (", ".join(f"{tool} {count}" for tool, count in silent.items()) or "none")
    )
    print("\nHow often they agree within 10 %: as they are; with the tool's bandwidth and peak;")
    print("with all its assumptions switched on in mlsim\n")
    print(agreement(compared))
    print("\nWhat each assumption does: rows that it changes by more than 1 % when switched on")
    print("alone, and by how much; differences beyond 10 % that it explains alone; rows that")
    print("differ again without it; differences of which it is the largest part\n")
    print(explained(attribute(compared)))
    left = [each for each in compared if far(each.after, each.theirs)]
    print(f"\nLeft unexplained, beyond 10 %: {len(left)}")
    for each in left:
        row = each.row
        what = ", ".join(row[name] for name in ("tool", "model", "gpu", "precision"))
        print(
            f"  {each.answer}: {what}, TP {row.tp}, batch {row.batch}, prompt {row.prompt}: "
            f"{each.theirs:.4g} of the tool, {each.after:.4g} with its causes"
        )


if __name__ == "__main__":
    main()
