"""What a run of the scheduler comes to: means, percentiles, rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlsim.equations import arrivals
from mlsim.solvers.arrivals.residents import Run
from mlsim.solvers.calibrated import TENTH
from mlsim.workloads.requests import Requests

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
TIMES = ("time_to_first_token", "time_per_output_token", "request_latency")


def each_request(runs: Sequence[tuple[Requests, Run]]) -> dict[str, Any]:
    """Return the times of each request that counts, as arrays in s, by name."""
    import numpy as np

    columns = (np.concatenate(column) for column in zip(*map(_times, runs), strict=True))
    return {name: values[~np.isnan(values)] for name, values in zip(TIMES, columns, strict=True)}


def results(runs: Sequence[tuple[Requests, Run]]) -> dict[str, float]:
    """Return the results of one or several copies, in base units, by name."""
    import numpy as np

    found: dict[str, float] = {}
    for name, known in each_request(runs).items():
        if not len(known):
            continue
        found[name] = float(known.mean())
        for key, share in PERCENTILES.items():
            found[f"{name}_{key}"] = float(np.quantile(known, share))
    return found | _rates([run for _, run in runs])


def binding(runs: Sequence[tuple[Requests, Run]], first_token: float) -> list[str]:
    """Return what held requests back for a tenth of the mean wait for a token, the longest first.

    Of `running_limit`, `tokens_per_step` and `cache`, whatever had no room for those who waited.
    """
    held: dict[str, float] = {}
    for _, run in runs:
        for name, seconds in run.held.items():
            held[name] = held.get(name, 0.0) + seconds
    least = TENTH * first_token * sum(_answered(run) for _, run in runs)
    return sorted((name for name in held if held[name] >= least), key=lambda each: -held[each])


def _times(pair: tuple[Requests, Run]) -> tuple[Any, Any, Any]:
    """Return the times of those requests of one copy that count."""
    import numpy as np

    requests, run = pair
    counted = slice(requests.settled, None)
    arrived, first, ended = (
        np.array(each)[counted] for each in (run.arrived, run.first, run.finished)
    )
    steps = arrivals.output_steps(requests.output_tokens[counted].astype(float), 1.0)
    # Of those whom nobody follows to their end, what is seen counts.
    first, ended = (np.where(each < 0, np.nan, each) for each in (first, ended))
    with np.errstate(divide="ignore", invalid="ignore"):
        # One token alone has no time between tokens.
        between = np.where(steps > 0, (ended - first) / steps, np.nan)
    return first - arrived, between, ended - arrived


def _rates(runs: Sequence[Run]) -> dict[str, float]:
    """Return what the service did as a whole, from its first request to its last token.

    Of users who go on asking: from when it was in its usual state until nobody follows any more,
    the mean of its copies.
    """
    answered = float(sum(map(_answered, runs)))
    begun = [run.began for run in runs if run.began is not None]
    if len(begun) == len(runs):
        lasted = (sum(max(run.finished) for run in runs) - sum(begun)) / len(runs)
    else:
        lasted = max(max(run.finished) for run in runs) - min(min(run.arrived) for run in runs)
    return {
        "answered_requests": answered,
        "run_span": lasted,
        "request_rate": arrivals.request_rate(answered, lasted),
        "output_throughput": arrivals.request_rate(sum(run.tokens for run in runs), lasted),
        "running_requests": arrivals.observed_running_requests(
            sum(run.running_time for run in runs), lasted
        ),
        "waiting_requests": arrivals.waiting_requests(
            sum(run.waiting_time for run in runs), lasted
        ),
        "server_use": arrivals.server_use(sum(run.busy for run in runs) / len(runs), lasted),
    }


def _answered(run: Run) -> int:
    """Return how many were answered in the time that counts."""
    since = -1.0 if run.began is None else run.began
    return sum(each > since for each in run.finished)
