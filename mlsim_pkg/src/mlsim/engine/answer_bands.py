"""Bands around calibrated answers: where results of the kind were measured around predictions.

They are those of `mlsim.engine.predict`, made of published rows to which nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from mlsim.hardware.relatives import Loan
from mlsim.solvers.answer import Answer, Band
from mlsim.solvers.inputs import CALIBRATED
from mlsim.solvers.noted import that_matter

# Of each result that has a band: the kind of case whose band it is, and whether it is a time.
_RESULTS: Mapping[str, Mapping[str, tuple[str, bool]]] = {
    "Profile": {"latency": ("cnn_infer", True), "throughput": ("cnn_infer", False)},
    "Serving": {
        "time_to_first_token": ("prefill", True),
        "time_per_output_token": ("decode", True),
        "generation_latency": ("decode", True),
        "user_token_rate": ("decode", False),
        "decode_throughput": ("decode", False),
        "output_throughput": ("decode", False),
    },
    "Training": {"step_time": ("train_lm", True), "token_rate": ("train_lm", False)},
    "NetworkTraining": {"step_time": ("", True), "throughput": ("", False)},
}
_A_TIME, _A_RATE = "latency_s", "rate"


def band(answer: Answer, name: str) -> Band | None:
    """Return the band around a result; None where none is known.

    None is known of other estimates, of sizes, and of rates that were given.
    """
    from mlsim.engine.bounds import estimate_of

    result = _RESULTS.get(type(answer).__name__, {}).get(name)
    if result is None or estimate_of(answer) != CALIBRATED or _given(answer):
        return None
    from mlsim.engine.predict.bands import KIND, lent

    case, is_time = result
    found = _of_networks() if not case else _of_cases(case)
    if found is None:
        return None
    least, most, words = found
    shelf = KIND[case] if case else "networks"
    wide = lent(shelf, (least, most), mattering(answer, name))
    least, most, words = least * wide.least, most * wide.most, words + wide.words
    value = answer.value(name)
    low, high = (value / most, value / least) if is_time else (value * least, value * most)
    return _within_bound(answer, name, Band(low, high, words), is_time=is_time)


def mattering(answer: Answer, name: str) -> tuple[Loan, ...]:
    """Return the loans of an answer that decide at least a tenth of a result's time."""
    if not answer.loans:
        return ()
    causes = answer.causes_behind(name).items()
    # Of many points, as much as it is of any.
    most = {cause: float(getattr(share, "max", lambda: share)()) for cause, share in causes}  # noqa: B023
    return that_matter(answer.loans, most)


def _given(answer: Any) -> bool:
    """Tell whether no row is like it: quantities were given, or activations stay on chip.

    Nor is any published row one of fine-tuning with adapters, or of a service with a cache of
    prefixes, speculation, offload or adapters, nor of a service on several nodes.
    """
    held = next(
        getattr(answer, each)
        for each in ("configuration", "service", "run")
        if hasattr(answer, each)
    )
    tuned = getattr(getattr(held, "recipe", None), "adapters", None)
    switched = getattr(getattr(held, "switches", None), "on", False)
    told = ("keeps", "beyond_one_node")
    return bool(held.given or tuned or switched) or any(getattr(held, each, False) for each in told)


def _within_bound(answer: Answer, name: str, wide: Band, *, is_time: bool) -> Band:
    """Return the band without what no program could reach."""
    if answer.shape:
        return wide
    from mlsim.engine.bounds import bound_of

    found = bound_of(answer)
    if isinstance(found, float):  # of training, the time of a step
        if not is_time:
            return wide
        limit = found
    else:
        limit = float(found.value(name))
    if is_time:
        return Band(max(wide.low, limit), wide.high, wide.words)
    return Band(wide.low, min(wide.high, limit), wide.words)


@cache
def _of_cases(case: str) -> tuple[float, float, str] | None:
    from mlsim.engine.predict import bands

    found = bands.band(case, _A_RATE, CALIBRATED)
    return None if found is None else (found.least, found.most, _words(found.words))


def _words(words: str) -> str:
    return words.removeprefix("band: ")


@cache
def _of_networks() -> tuple[float, float, str]:
    """Return measured over predicted speed of published training of networks."""
    from mlsim.engine.predict.bands import SHARE, quantile
    from mlsim.measured.training import network_steps

    speeds = sorted(
        row.value / row.train(CALIBRATED).value("throughput") for row in network_steps()
    )
    outside = (1 - SHARE) / 2
    words = f"{SHARE:.0%} of {len(speeds)} published rows of training of networks, none fitted"
    return quantile(speeds, outside), quantile(speeds, 1 - outside), words
