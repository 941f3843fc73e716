"""How far predicted energy per token is from published measurements.

    python benchmarks/accuracy_energy.py

Three questions about each service whose power and throughput were measured. (i) The
throughput is known: is the power right? (ii) Nothing is known: are time and power right
together? (iii) As (ii), with the time that the serving software takes for each sequence
in each step, which no estimate of the package has: the median of what the other series
took beyond the estimate. All beside full power (TDP) times the same time; (i) also beside
one share of TDP for all, the mean of the other series, since a model should beat that.
The constants of the power model are fitted to such rows, so each row is predicted with
constants that were fitted without its series. Power is that of the devices alone, by
their own meters.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean, median

from tables import lay_out

from mlsim import Engine
from mlsim.errors import NotMeasuredError
from mlsim.measured.power import PowerRow, limits, predict, rows, weights
from mlsim.solvers.load import Load

CLAIM = 0.40
WAYS = (
    "power",
    "full_power",
    "one_share",
    "all_predicted",
    "all_full_power",
    "software",
    "software_full_power",
)


@dataclass(frozen=True)
class Scored:
    """A row, and predicted over measured energy per token in several ways."""

    row: PowerRow
    power: float
    full_power: float
    one_share: float
    all_predicted: float
    all_full_power: float
    software: float
    software_full_power: float
    estimate: str


def predicted(row: PowerRow) -> tuple[Load, str]:
    """Return the load by the best estimate of the time that there is, and its name."""
    service = row.serving.service
    try:
        # Refuses where a constant of the device was not measured.
        Engine.serve(
            model=service.model,
            hardware=service.system or service.device,
            weights=service.formats.weights,
            activations=service.formats.activations,
            kv_cache=service.formats.kv_cache,
            tensor_parallel=service.parallelism.tensor,
            estimate="calibrated",
        )
        return row.served("calibrated").load(), "calibrated"
    except NotMeasuredError:
        return row.serving.load(), "roofline"


def sequence_steps(row: PowerRow) -> float:
    """Return how many tokens a generation of the batch writes, a step for each sequence."""
    return float(row.serving.batch_size * row.serving.service.output_tokens)


def software_time(found: list[PowerRow]) -> float:
    """Return the time for a sequence in a step that the estimate does not have, in s."""
    return median((row.load.time - predicted(row)[0].time) / sequence_steps(row) for row in found)


def score(row: PowerRow, fitted: tuple[float, float, float], share: float, each: float) -> Scored:
    """Predict a row with constants of other series."""
    _, most = limits(row.load.device)
    load, estimate = predicted(row)
    of_time = load.devices * load.time / load.tokens / row.energy_per_token
    slower = load.within(f"{load.time + each * sequence_steps(row)!r} s")
    of_slower = of_time * slower.time / load.time
    return Scored(
        row=row,
        power=predict(row.load, fitted) / row.power,
        full_power=most.low / row.power,
        one_share=share * most.low / row.power,
        all_predicted=predict(load, fitted) * of_time,
        all_full_power=most.low * of_time,
        software=predict(slower, fitted) * of_slower,
        software_full_power=most.low * of_slower,
        estimate=estimate,
    )


def all_scored() -> list[Scored]:
    """Score each row with weights of kernels, and what else is fitted of the other series."""
    constants = weights()
    fitted = (constants.running, constants.compute, constants.memory)
    found, scored = rows(), []
    for series in dict.fromkeys(row.series for row in found):
        others = [row for row in found if row.series != series]
        share = mean(row.power / limits(row.load.device)[1].low for row in others)
        own = [row for row in found if row.series == series]
        each = software_time(others)
        scored += [score(row, fitted, share, each) for row in own]
    return scored


def error(ratios: list[float]) -> float:
    """Return the median of the absolute relative errors."""
    return median(abs(ratio - 1) for ratio in ratios)


def table(scored: list[Scored]) -> str:
    """Lay out a line for each row."""
    lines = []
    for each in scored:
        row, load = each.row, each.row.load
        lines.append(
            [
                row.id,
                f"{row.serving.model.name}, {load.devices} x {load.device.name.split()[1]}",
                f"{row.serving.batch_size:,}",
                f"{row.energy_per_token:.4f}",
                f"{row.power:.0f}",
                f"{row.energy_per_token * each.power:.4f}",
                f"{row.energy_per_token * each.full_power:.4f}",
                f"{row.energy_per_token * each.all_predicted:.4f}",
                f"{row.energy_per_token * each.all_full_power:.4f}",
                each.estimate,
            ]
        )
    head = ["row", "service", "batch", "J/token", "W", "(i) model", "(i) TDP"]
    return lay_out([*head, "(ii) model", "(ii) TDP", "time by"], lines)


def main() -> None:
    scored, fitted = all_scored(), weights()
    print(table(scored))
    print(
        f"\nweights fitted to {fitted.kernels:,} kernels: running {fitted.running:.2f}, compute "
        f"{fitted.compute:.2f}, memory {fitted.memory:.2f}"
    )
    groups = {"all": scored}
    for each in scored:
        groups.setdefault(each.row.series, []).append(each)
    lines = []
    for name, group in groups.items():
        ratios = [[getattr(each, way) for each in group] for way in WAYS]
        lines.append([name, f"{len(group)}", *(f"{error(each):.0%}" for each in ratios)])
    print("\nMedian absolute error of energy per token, nothing fitted to its series\n")
    head = ["series", "rows", "(i) model", "(i) TDP", "(i) one share", "(ii) model", "(ii) TDP"]
    print(lay_out([*head, "(iii) model", "(iii) TDP"], lines))
    each = 1e6 * software_time(rows())
    print(f"\n(iii), fitted to all rows: {each:.0f} us for a sequence in a step")
    worst = [max(abs(getattr(s, way) - 1) for s in scored) for way in ("power", "one_share")]
    print(f"\nworst row of (i): model {worst[0]:.0%}, one share {worst[1]:.0%}")
    print(f"\nclaim: at most {CLAIM:.0%}, and better than TDP times time")
    for words, way in (
        ("with the time known", "power"),
        ("with nothing known", "all_predicted"),
        ("with the software's time of other series", "software"),
    ):
        of = {"power": "full_power", "software": "software_full_power"}.get(way, "all_full_power")
        ours, full = (error([getattr(s, w) for s in scored]) for w in (way, of))
        verdict = "met" if ours <= CLAIM and ours < full else "MISSED"
        print(f"{verdict} {words}: {ours:.0%}; TDP {full:.0%}")


if __name__ == "__main__":
    main()
