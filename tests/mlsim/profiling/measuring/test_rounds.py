"""Intervals of a machine that drifts: they hold the long-run value, and the next run agrees.

The machine runs one kernel of 10 ms and then something else for the rest of a round of 3 s, so a
run of 18 rounds is a minute, cut into stretches of 9 s.
"""

from __future__ import annotations

import itertools
from statistics import median

import pytest
from made_machine import MadeMachine

from mlsim.profiling import Spread
from mlsim.profiling.measuring.rounds import CLOCK_STEP, judged, run_rounds, split

WORK, ROUND = 0.010, 3.0


def run(made: MadeMachine, rounds: int = 18) -> list[float]:
    """Return what each stretch found: how fast the kernel was, 1 where nothing disturbs it."""

    def work() -> dict[str, float]:
        begin = made.now
        made.take(WORK)
        return {"compute.fp32": WORK / (made.now - begin)}

    def rest() -> dict[str, float]:
        made.now += ROUND
        return {}

    parts = {"work": work, "rest": rest}
    return run_rounds(parts, made.clock, 1e9, most=rounds).stretches()["compute.fp32"]


def spread(values: list[float]) -> Spread:
    """Return the spread as a measurement makes it."""
    return Spread.across(values, CLOCK_STEP / 2)


def long_run(drift: float, memory: float) -> float:
    """Return the median of very many stretches."""
    made = MadeMachine(noise=0.01, seed=1, drift=drift, memory=memory)
    return median(each for _ in range(400) for each in run(made))


@pytest.mark.parametrize("drift", [0.01, 0.02])
@pytest.mark.parametrize("memory", [1.0, 5.0, 10.0, 20.0])
def test_nine_of_ten_intervals_hold_the_long_run_value(drift: float, memory: float) -> None:
    """Each of 200 runs knows one minute of a machine whose speed it has forgotten in `memory`."""
    truth = long_run(drift, memory)
    found = [
        spread(run(MadeMachine(0.01, seed, drift=drift, memory=memory))) for seed in range(200)
    ]
    inside = sum(each.low <= truth <= each.high for each in found)
    assert inside >= 180
    # And not by being boundless: three times the true spread to either side at most.
    assert median(each.high - each.low for each in found) < 6 * max(drift, CLOCK_STEP / 4)


def test_the_median_of_one_stretch_of_time_would_not() -> None:
    """Coins that know of one another: what the interval was made of before there were stretches."""
    truth = long_run(0.02, 20.0)
    inside = 0
    for seed in range(200):
        made = MadeMachine(0.01, seed, drift=0.02, memory=20.0)
        found = Spread.of(value for _ in range(3) for value in run(made, rounds=6))
        inside += found.low <= truth <= found.high
    assert inside < 140


@pytest.mark.parametrize("memory", [10.0, 60.0, 300.0])
def test_three_runs_one_after_the_other_agree(memory: float) -> None:
    """Also where the drift outlasts a run: then the runs share most of it."""
    agree = 0
    for seed in range(100):
        made = MadeMachine(0.01, seed, drift=0.02, memory=memory)
        runs = [spread(run(made)) for _ in range(3)]
        agree += all(a.agrees(b) for a, b in itertools.combinations(runs, 2))
    assert agree >= 95


def test_a_steady_machine_has_a_narrow_interval() -> None:
    for seed in range(20):
        found = spread(run(MadeMachine(0.01, seed)))
        assert found.low < 1.0 < found.high
        assert found.high - found.low <= 1.001 * CLOCK_STEP


def test_two_steps_of_the_clock_agree() -> None:
    """A run may see one step of the processor's clock only, and the next run its neighbor."""
    slower, faster = spread([3.7] * 6), spread([3.8] * 6)
    assert slower.agrees(faster)
    assert not slower.agrees(spread([3.9] * 6))


def test_a_steady_rate_may_be_half_a_step_of_the_clock_elsewhere_in_another_run() -> None:
    """Half of 3 % of 200, to either side."""
    figures, refused = judged({"compute.fp32": [200.0] * 6}, str, 6)
    found = figures["compute.fp32"].spread
    assert ((found.low, found.high), refused) == ((pytest.approx(197), pytest.approx(203)), {})


def test_noise_is_refused_however_wide_the_interval() -> None:
    wild = [1.0, 1.05, 0.9, 1.0, 1.02, 1.08]
    figures, refused = judged({"compute.fp32": wild, "compute.fp64": wild[1:]}, str, 6)
    assert figures == {}
    assert refused["compute.fp32"].startswith("too noisy: its stretches of time differ by 18 %")
    assert refused["compute.fp64"] == "measured in 5 of 6 rounds only"


def test_every_round_is_in_one_stretch() -> None:
    for count in range(6, 30):
        parts = split(range(count))
        assert [each for part in parts for each in part] == list(range(count))
        assert len(parts) == 6
        assert {len(part) for part in parts} <= {count // 6, count // 6 + 1}


def test_a_time_is_best_where_it_is_least() -> None:
    ticks = itertools.count(1)
    parts = {"": lambda: dict.fromkeys(("starts.call", "disk.read"), float(next(ticks)))}
    found = run_rounds(parts, lambda: 0.0, 1.0, most=12).stretches()
    assert found["starts.call"] == [1, 3, 5, 7, 9, 11]
    assert found["disk.read"] == [2, 4, 6, 8, 10, 12]
