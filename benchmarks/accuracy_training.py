"""How far `Engine.train` is from published results of training.

    python benchmarks/accuracy_training.py

For each published row that states its layout: the step as measured (a rate or a
utilization is turned into the time of a step by the rule that its source names),
the roofline, and the calibrated estimate, with nothing hidden behind computing and
with gradients hidden as far as there is computing to hide them. No constant comes
from rows of training: products, streams, all-reduces and launches were measured on
their own. The eight rows of Megatron's Table 5 come first, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean, median

from tables import lay_out

from mlsim.errors import InvalidValueError, NotMeasuredError
from mlsim.measured.training import TrainingMeasurement, training_measurements

TABLE_5 = "megatron_tab5"
HIDDEN = {"gradient": 1.0}


@dataclass(frozen=True)
class Compared:
    """A row, the time of its step, and what is said of it (None: not calibrated)."""

    row: TrainingMeasurement
    measured: float
    roofline: float
    calibrated: float | None
    hidden: float | None


def measured_step(row: TrainingMeasurement) -> float:
    """Return the time of a step in s, as it follows from the row."""
    if row.step_time is not None:
        return row.step_time
    # A source that does not say so is taken to count the full square of attention.
    flops = row.transformer.flop_count(
        row.sequence_tokens, causal=row.attention_counted == "causal", all_logits=True
    )
    work = 3 * row.global_batch * flops
    training = row.train()
    peak = training.value("peak_rate") if row.metric == "mfu" else 1.0
    return work / (row.base_value * row.devices * peak)


def compare(row: TrainingMeasurement) -> Compared:
    """Predict the step of a row."""
    roofline = row.train().value("step_time")
    calibrated = hidden = None
    try:
        calibrated = row.train(estimate="calibrated").value("step_time")
        hidden = row.train(estimate="calibrated", overlap=HIDDEN).value("step_time")
    except NotMeasuredError:
        pass
    return Compared(row, measured_step(row), roofline, calibrated, hidden)


def error(predicted: float | None, measured: float) -> str:
    return "" if predicted is None else f"{predicted / measured - 1:+.1%}"


def one_by_one(rows: Iterable[Compared]) -> str:
    lines = [
        [
            each.row.id,
            each.row.model,
            str(each.row.recompute),
            f"{each.measured:.2f}",
            f"{each.roofline:.2f}",
            error(each.roofline, each.measured),
            f"{each.calibrated:.2f}" if each.calibrated else "",
            error(each.calibrated, each.measured),
        ]
        for each in rows
    ]
    head = ["row", "model", "recompute", "measured, s", "roofline, s", "error"]
    return lay_out([*head, "calibrated, s", "error"], lines)


def by_series(rows: list[Compared]) -> str:
    lines = []
    for name in dict.fromkeys(each.row.series for each in rows):
        found = [each for each in rows if each.row.series == name]
        errors = {
            part: [
                abs(value / each.measured - 1)
                for each in found
                if (value := getattr(each, part)) is not None
            ]
            for part in ("roofline", "calibrated", "hidden")
        }
        lines.append(
            [
                name,
                found[0].row.device,
                f"{len(found)}",
                *(
                    f"{median(each):.0%}, {max(each):.0%}" if each else "not measured"
                    for each in errors.values()
                ),
            ]
        )
    head = ["series", "device", "rows", "roofline: median, worst", "calibrated"]
    return lay_out([*head, "calibrated, gradients hidden"], lines)


def main() -> None:
    stated = [row for row in training_measurements() if not row.missing]
    compared, refused = [], []
    for row in stated:
        try:
            compared.append(compare(row))
        except InvalidValueError as error:
            refused.append(f"{row.id}: {error}")
    table = [each for each in compared if each.row.series == TABLE_5]
    print(one_by_one(table))
    errors = [abs(each.calibrated / each.measured - 1) for each in table if each.calibrated]
    print(f"\nMegatron, Table 5: mean error {mean(errors):.2%}, worst {max(errors):.2%}\n")
    print(by_series(compared))
    left = len(training_measurements()) - len(stated)
    print(f"\n{len(compared)} rows; {left} more don't state their layout, and are not asked.")
    print("\n".join(f"not asked, {words}" for words in refused))


if __name__ == "__main__":
    main()
