"""Where waiting bends: the arrivals of a service against what its users wait for, as a live figure.

Means come from the closed forms of `mlsim.equations.arrivals`, which are compiled. Tails have no
closed form: they are those of runs, and lie between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError
from mlsim.live.compiled import Compiled, compiled
from mlsim.live.figure import Figure, figure
from mlsim.live.handles import Choice, Handle
from mlsim.solvers.arrivals.loaded import LoadedService
from mlsim.solvers.arrivals.steady import Steady

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_TIMES = {"first": "time_to_first_token", "each": "time_per_output_token"}


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

    >>> from matplotlib import pyplot
    >>> from mlsim import Engine
    >>> service = {"model": "Llama3_8B", "hardware": "HGX_H100", "requests": 20}
    >>> runs = {
    ...     copies: [Engine.load(**service, rate=rate, data_parallel=copies) for rate in (2, 8)]
    ...     for copies in (1, 2)
    ... }
    >>> knee({"All": runs}, still=pyplot.figure(), rate=4, copies=1, goals=(0.5, 0.02))
    <live figure knee: rate, copies>
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
        answer=_closed({words: runs[counts[0]][0] for words, runs in loads.items()}),
        data={
            "lengths": lengths,
            "goals": list(goals),
            "rates": most,
            "most": {"first": 2 * goals[0], "each": 3 * goals[1]},
        },
        label="Arrivals and copies",
        guess=guess,
    )


def _closed(loads: Mapping[str, LoadedService]) -> Compiled:
    """Compile the closed forms of one copy, of each kind of lengths."""
    full = max(_saturation(each) for each in loads.values())

    def question(*, rate: float, lengths: str = next(iter(loads))) -> Steady:
        load = copy(loads[lengths])
        load.rate = rate * load.copies
        return Steady(load)

    return compiled(
        question,
        results=("steady_first_token", "token_interval"),
        handles=[Handle("rate", full / 1000, full, start=full / 2)],
        choices=[Choice("lengths", {each: each for each in loads})] if len(loads) > 1 else [],
    )


def _saturation(load: LoadedService) -> float:
    return float(load.typical.saturating().value("saturation_rate"))


def _lengths(runs: Mapping[int, Sequence[LoadedService]]) -> dict[str, Any]:
    """Return what the page knows of requests of some lengths."""
    full = _saturation(next(iter(runs.values()))[0])
    return {
        "saturation": full,
        "copies": {count: full * count for count in runs},
        "tails": {count: _tails(count, loads) for count, loads in runs.items()},
    }


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
