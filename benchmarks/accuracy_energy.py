"""How far predicted energy per token is from published measurements.

    python benchmarks/accuracy_energy.py

Two questions about each service whose power and throughput were measured. (i) The
throughput is known: is the power right? (ii) Nothing is known: are time and power right
together? Both beside full power (TDP) times the same time; (i) also beside one share of
TDP for all, the mean of the other series, since a model should beat that. The constants
of the power model are fitted to such rows, so each row is predicted with constants that
were fitted without its series. Power is that of the devices alone, by their own meters.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean, median

from tables import lay_out

from mlsim import Engine
from mlsim.errors import NotMeasuredError
from mlsim.power import PowerRow, fit, limits, predict, rows, weights
from mlsim.solvers import Load

CLAIM = 0.40


@dataclass(frozen=True)
class Scored:
    """A row, and predicted over measured energy per token in four ways."""

    row: PowerRow
    power: float
    full_power: float
    one_share: float
    all_predicted: float
    all_full_power: float
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
            tensor_parallel=service.layout.tensor,
            estimate="calibrated",
        )
        return row.served("calibrated").load(), "calibrated"
    except NotMeasuredError:
        return row.serving.load(), "roofline"


def score(row: PowerRow, fitted: tuple[float, float], share: float) -> Scored:
    """Predict a row with constants of other series."""
    _, most = limits(row.load.device)
    load, estimate = predicted(row)
    of_time = load.devices * load.time / load.tokens / row.energy_per_token
    return Scored(
        row=row,
        power=predict(row.load, fitted) / row.power,
        full_power=most.low / row.power,
        one_share=share * most.low / row.power,
        all_predicted=predict(load, fitted) * of_time,
        all_full_power=most.low * of_time,
        estimate=estimate,
    )


def all_scored() -> list[Scored]:
    """Score each row with the constants of the other series."""
    found, scored = rows(), []
    for series in dict.fromkeys(row.series for row in found):
        others = [row for row in found if row.series != series]
        share = mean(row.power / limits(row.load.device)[1].low for row in others)
        own = [row for row in found if row.series == series]
        scored += [score(row, fit(others), share) for row in own]
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
        f"\nweights fitted to all {fitted.rows} rows: compute {fitted.compute:.2f}, "
        f"memory {fitted.memory:.2f}"
    )
    groups = {"all": scored}
    for each in scored:
        groups.setdefault(each.row.series, []).append(each)
    lines = []
    for name, group in groups.items():
        ratios = [
            [getattr(each, way) for each in group]
            for way in ("power", "full_power", "one_share", "all_predicted", "all_full_power")
        ]
        lines.append([name, f"{len(group)}", *(f"{error(each):.0%}" for each in ratios)])
    print("\nMedian absolute error of energy per token, each series left out of the fit\n")
    head = ["series", "rows", "(i) model", "(i) TDP", "(i) one share", "(ii) model", "(ii) TDP"]
    print(lay_out(head, lines))
    worst = [max(abs(getattr(s, way) - 1) for s in scored) for way in ("power", "one_share")]
    print(f"\nworst row of (i): model {worst[0]:.0%}, one share {worst[1]:.0%}")
    known, full = (error([getattr(s, w) for s in scored]) for w in ("power", "full_power"))
    met = known <= CLAIM and known < full
    print(
        f"\nclaim, at most {CLAIM:.0%} and better than TDP times time: "
        f"{'met' if met else 'MISSED'} with the time known ({known:.0%}; TDP {full:.0%})"
    )
    blind, full = (
        error([getattr(s, w) for s in scored]) for w in ("all_predicted", "all_full_power")
    )
    met = blind <= CLAIM and blind < full
    print(f"{'met' if met else 'MISSED'} with nothing known ({blind:.0%}; TDP {full:.0%})")


if __name__ == "__main__":
    main()
