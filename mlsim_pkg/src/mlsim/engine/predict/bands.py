"""Bands around predictions: how far results of the same kind were from theirs, on the shelf.

A band is made of published rows to which no constant is fitted. It says where eight in ten of
them lie, so it is as wide as what the predictions leave out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from mlsim.engine.accuracy import shelf

# The shelf's kind for each kind of case that has one.
KIND = {
    "cnn_infer": "networks",
    "enc_infer": "prompts",
    "prefill": "prompts",
    "ttft": "prompts",
    "decode": "generation",
    "gen_e2e": "generation",
    "static_gen": "generation",
    "serve_offline": "generation",
    "serve_steady": "generation",
    "train_lm": "training",
}
# Metrics of which less is better.
TIMES = ("latency_s", "TTFT_s", "kernel_time_s", "step_s", "allreduce_time_s", "accelerator_hours")
# Share of the rows that a band holds, and the fewest rows and series of which one is made.
SHARE, FEWEST, SERIES = 0.8, 8, 2


@dataclass(frozen=True, slots=True)
class Band:
    """Limits of measured over predicted speed, and of which rows they are made."""

    least: float
    most: float
    times: bool
    words: str

    def around(self, value: float) -> tuple[float, float]:
        """Return the lower and upper limit around a prediction.

        >>> Band(0.5, 0.9, False, "").around(100.0), Band(0.5, 0.8, True, "").around(4.0)
        ((50.0, 90.0), (5.0, 8.0))
        """
        if self.times:
            return value / self.most, value / self.least
        return value * self.least, value * self.most


@cache
def band(kind: str, metric: str, estimate: str) -> Band | None:
    """Return the band of a kind of case and an estimate; None without enough rows.

    >>> found = band("decode", "decode_tokens_per_s_total", "calibrated")
    >>> 0 < found.least < found.most
    True
    """
    if kind not in KIND:
        return None
    rows = [row for row in shelf(KIND[kind]) if getattr(row, estimate) is not None]
    if estimate == "roofline":
        # As it is used: where there is no calibrated answer.
        alone = [row for row in rows if row.calibrated is None]
        rows = alone if _enough(alone) else rows
    if not _enough(rows):
        return None
    speeds = sorted(1 / row.ratio(estimate) for row in rows)
    outside = (1 - SHARE) / 2
    return Band(
        least=quantile(speeds, outside),
        most=quantile(speeds, 1 - outside),
        times=metric in TIMES,
        words=f"band: {SHARE:.0%} of {len(rows)} published rows of {KIND[kind]}, none fitted",
    )


def _enough(rows: list) -> bool:  # type: ignore[type-arg]
    return len(rows) >= FEWEST and len({row.series for row in rows}) >= SERIES


def quantile(ordered: list[float], share: float) -> float:
    """Return the value below which a share of ordered values lies, between two of them.

    >>> quantile([1.0, 2.0, 3.0], 0.25)
    1.5
    """
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
