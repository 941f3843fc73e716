"""What somebody claims: figures with units, and the names under which they are claimed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mlsim.equations import serving
from mlsim.errors import InvalidValueError
from mlsim.solvers.inputs import validate


@dataclass(frozen=True)
class Metric:
    """One kind of claim.

    Attributes
    ----------
    name, words, unit
        The argument, what it means, and the unit in which it is kept.
    asked
        The quantity of the engine that answers it.
    rate
        Whether more is better; of a time, less is.
    shared
        Whether all users together are meant, so that a larger batch helps.
    decodes
        Whether it speaks of generating, after the prompt was read.
    """

    name: str
    words: str
    unit: str
    asked: str
    rate: bool = True
    shared: bool = False
    decodes: bool = False


_ALL = (
    Metric(
        "tokens_per_second",
        "tokens per second, all users together",
        "token/s",
        "decode_throughput",
        shared=True,
        decodes=True,
    ),
    Metric(
        "tokens_per_second_per_user",
        "tokens per second for each user",
        "token/s",
        "user_token_rate",
        decodes=True,
    ),
    Metric(
        "time_per_output_token",
        "time per output token",
        "s",
        "time_per_output_token",
        rate=False,
        decodes=True,
    ),
    Metric("time_to_first_token", "time to first token", "s", "time_to_first_token", rate=False),
    Metric(
        "samples_per_second",
        "samples per second",
        "sample/s",
        "throughput",
        shared=True,
    ),
    Metric("mfu", "model FLOPs utilization of training", "1", "total_flops"),
)
METRICS: Mapping[str, Metric] = {each.name: each for each in _ALL}
SAMPLES, MFU, FIRST = "samples_per_second", "mfu", "time_to_first_token"


@dataclass(frozen=True)
class Claim:
    """One claimed figure: its metric, and its value in the metric's unit."""

    metric: Metric
    value: float

    def excess(self, limit: float) -> float:
        """Return the claimed speed over a limit: above 1 means faster than the limit.

        >>> Claim(METRICS["tokens_per_second"], 300.0).excess(100.0)
        3.0
        >>> Claim(METRICS["time_per_output_token"], 0.01).excess(0.03)
        3.0
        """
        pair = (self.value, limit) if self.metric.rate else (limit, self.value)
        return float(serving.claim_excess(*pair))


def claims(given: Mapping[str, Any]) -> tuple[Claim, ...]:
    """Return the figures that are claimed, checked; those that are None are not.

    Raises
    ------
    InvalidValueError, UnitError
        If one is not a positive number, or has the wrong unit.

    >>> [each.value for each in claims({"tokens_per_second": 314, "mfu": None})]
    [314.0]
    """
    return tuple(
        Claim(METRICS[name], _figure(METRICS[name], value))
        for name, value in given.items()
        if value is not None
    )


def _figure(metric: Metric, value: Any) -> float:
    if getattr(value, "ndim", 0) or isinstance(value, (list, tuple, set, dict)):
        raise InvalidValueError(
            f"{metric.name} must be one figure, not {value!r}: check one claim at a time."
        )
    if metric.name == MFU:
        return _share(value)
    if not metric.rate:
        return float(validate(metric.name, value))
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not usable or not 0 < value < math.inf:
        raise InvalidValueError(
            f"{metric.name} must be a positive number, which counts per second, such as 314; "
            f"not {value!r}."
        )
    return float(value)


def _share(value: Any) -> float:
    """Return a utilization as a share of one; it may be above one, which is then judged."""
    if isinstance(value, str) and value.strip().endswith("%"):
        with suppress(ValueError):
            value = float(value.strip()[:-1]) / 100
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not usable or not 0 < value < 100:
        raise InvalidValueError(
            f"mfu must be a share such as 0.45, or text such as '45%'; not {value!r}."
        )
    return float(value)
