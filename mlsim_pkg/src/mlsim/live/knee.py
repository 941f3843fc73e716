"""Where waiting bends: the arrivals of a service against what its users wait for, as a live figure.

Means come from the closed forms of `mlsim.equations.arrivals`, which the page computes for every
rate; only the time of a step and that of a prompt are looked up there, between rates at which they
were asked for. Tails have no closed form: they are those of runs, and lie between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsim.equations import plan
from mlsim.equations.javascript import helpers, planned
from mlsim.errors import InvalidValueError
from mlsim.live.figure import Figure, figure
from mlsim.live.handles import Choice, Handle
from mlsim.solvers.arrivals.loaded import LoadedService

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from mlsim.solvers.arrivals.steady import Typical

# What moves in the closed forms, and what is asked of them.
_MOVING = ("arrival_rate", "decode_step_time", "prompt_time")
_WANTED = ("steady_first_token", "token_interval")
_TIMES = {"first": "time_to_first_token", "each": "time_per_output_token"}
# Rates between which the page looks times up, as parts of the one that saturates: from the first
# to the last, closer together where a line between two would be off by more than a thousandth. A
# step may be longer all at once, where a kernel is another one; there they are as close as may be.
_FIRST, _LAST, _OFF, _CLOSEST = 0.01, 0.99, 1e-3, 1e-3


@dataclass(frozen=True)
class _Compiled:
    """The closed forms as a module."""

    script: str
    data: Mapping[str, Any]


def knee(
    loads: Mapping[str, Mapping[int, Sequence[LoadedService]]],
    *,
    still: Drawing,
    rate: float,
    copies: int,
    goals: tuple[float, float],
    guess: str = "",
) -> Figure:
    """Return a figure of what users wait for, whose rate and copies a reader moves.

    Parameters
    ----------
    loads
        Runs at rising rates, by the number of copies, by what readers see of the requests'
        lengths, such as "All equal".
    still
        The figure that stands where no script runs.
    rate, copies
        Where it starts: requests per second, and copies.
    goals
        For the first token and for each further one, in s.
    guess
        The name of the guess that opens it.

    Raises
    ------
    InvalidValueError
        If there is no run, lengths were not run for the same numbers of copies, or runs of one
        number are not at rising rates.
    """
    counts = sorted({count for runs in loads.values() for count in runs})
    if not counts or any(sorted(runs) != counts for runs in loads.values()):
        raise InvalidValueError(
            "a knee needs runs of each kind of lengths for the same numbers of copies, not of "
            f"{[sorted(runs) for runs in loads.values()]}."
        )
    lengths = {words: _lengths(runs) for words, runs in loads.items()}
    most = max(each["copies"][counts[-1]] for each in lengths.values())
    numbers = ("copies", min(counts), max(counts))
    handles = [
        Handle("rate", 0.5, int(most), start=rate, step=0.5, unit="requests/s", label="Arrivals"),
        Handle(*numbers, start=copies, values=counts, label="Copies of the service"),
    ]
    kinds = {words: words for words in lengths}
    return figure(
        "knee",
        still=still,
        handles=handles,
        choices=[Choice("lengths", kinds, label="Lengths of texts")] if len(kinds) > 1 else [],
        answer=_Compiled(_script(next(iter(loads.values()))[counts[0]][0]), {}),
        data={
            "lengths": lengths,
            "goals": list(goals),
            "rates": most,
            "most": {"first": 2 * goals[0], "each": 3 * goals[1]},
        },
        label="Arrivals and copies",
        guess=guess,
    )


def _typical(load: LoadedService) -> Typical:
    return load.typical


def _script(load: LoadedService) -> str:
    """Return the closed forms of one copy as a module, which exports them as `closed`."""
    typical = _typical(load)
    known = typical.at_rate(float(load.rate or 0) / load.copies)
    steps = plan(typical.equations(users=False), known, _WANTED).steps
    used: set[str] = set()
    text = planned("closed", steps, _MOVING, (), _WANTED, used)
    return f"{helpers(used)}export {text}\n"


def _lengths(runs: Mapping[int, Sequence[LoadedService]]) -> dict[str, Any]:
    """Return what the page knows of requests of some lengths."""
    typical = _typical(next(iter(runs.values()))[0])
    full = float(typical.saturating().value("saturation_rate"))
    asked = _asked(typical, full)
    steps = plan(typical.equations(users=False), asked[0], _WANTED).steps
    made = {step.yields for step in steps}
    needed = {name for step in steps for name in step.inputs} - made - set(_MOVING)
    return {
        "saturation": full,
        "copies": {count: full * count for count in runs},
        "constants": {name: float(asked[0][name]) for name in sorted(needed)},
        "closed": {
            name: [_short(each[quantity]) for each in asked]
            for name, quantity in zip(("rates", "decode", "prompt"), _MOVING, strict=True)
        },
        "tails": {count: _tails(count, loads) for count, loads in runs.items()},
    }


def _asked(typical: Typical, full: float) -> list[Mapping[str, float]]:
    """Return what is known of arrivals at rising rates, up to the one that saturates."""

    def halves(low: Mapping[str, float], high: Mapping[str, float]) -> list[Mapping[str, float]]:
        """Return what lies from one rate to below the next, with rates between as needed."""
        apart = high["arrival_rate"] - low["arrival_rate"]
        middle = typical.at_rate((low["arrival_rate"] + high["arrival_rate"]) / 2)
        off = max(abs((low[name] + high[name]) / 2 / middle[name] - 1) for name in _MOVING[1:])
        if apart < _CLOSEST * full or (off < _OFF and apart < full / 8):
            return [low]
        return halves(low, middle) + halves(middle, high)

    first, last = (typical.at_rate(part * full) for part in (_FIRST, _LAST))
    return [*halves(first, last), last]


def _tails(count: int, loads: Sequence[LoadedService]) -> list[dict[str, Any]]:
    """Return the median and the slowest of a hundred of each run, by rate, in s."""
    rates = [float(each.rate or 0) for each in loads]
    if rates != sorted(set(rates)) or not rates:
        raise InvalidValueError(
            f"runs of {count} copies must be at rising rates, not at {rates}: sort them."
        )
    return [
        {"rate": rate}
        | {
            panel: {part: _short(each.value(f"{name}_{part}")) for part in ("p50", "p99")}
            for panel, name in _TIMES.items()
        }
        for rate, each in zip(rates, loads, strict=True)
    ]


def _short(value: float) -> float:
    """Return six digits of a number: more than a run or a place between two is good for."""
    return float(f"{value:.6g}")
