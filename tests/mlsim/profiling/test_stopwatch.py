"""The stopwatch, with a clock that says what it is told; and the spread of what it measured."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from mlsim.errors import InvalidValueError
from mlsim.profiling import Spread, Stopwatch, stopwatch, time_command, time_function
from mlsim.profiling.stopwatch import Run, coverage


class Clocks:
    """Clocks that go on by what each run takes: wall, user and system."""

    def __init__(self, *runs: tuple[float, float, float]) -> None:
        self.now = Run(100.0, 10.0, 1.0)
        self.readings = self.read(runs)

    def read(self, runs: tuple[tuple[float, float, float], ...]) -> Iterator[Run]:
        for wall, user, system in runs:
            yield self.now
            before = self.now
            self.now = Run(before.wall + wall, before.user + user, before.system + system)
            yield self.now

    def __call__(self) -> Run:
        return next(self.readings)


def test_the_parts_of_a_run() -> None:
    # The times of seed 002: 2.45 s on the clock, 0.43 s in the program.
    watch = Stopwatch(clock=Clocks((2.45, 0.43, 0.0)))
    with watch:
        pass
    assert (watch.last.wall, watch.last.waiting) == pytest.approx((2.45, 2.02))
    assert watch.last.cores == pytest.approx(0.43 / 2.45)
    assert str(watch) == "wall 2.45 s; user 430 ms; system 0 s; waiting 2.02 s; cores 0.18"
    # Several cores at once leave no waiting.
    run = Run(wall=1.0, user=1.9, system=0.1)
    assert (run.waiting, run.cores) == (0.0, 2.0)


def test_warm_up_does_not_count() -> None:
    clocks = Clocks((9.0, 9.0, 0.0), (1.0, 0.5, 0.0), (3.0, 0.5, 0.0), (2.0, 0.5, 0.0))
    found = time_function(len, "abc", repeat=3, warm_up=1, clock=clocks)
    assert [run.wall for run in found.warm_up] == [9.0]
    assert found.wall == 2.0
    assert (found.spread().low, found.spread().high) == (1.0, 3.0)
    assert found.to_dict()["waiting"]["median"] == 1.5
    said = str(found)
    assert said.startswith("len: 3 runs after 1 to warm up\n  wall")
    assert "2 s   1 s to 3 s" in said
    with pytest.raises(InvalidValueError, match="part must be one of wall, user"):
        found.spread("cpu")
    for repeat, warm_up in ((0, 1), (-1, 0), (2.0, 1), (True, 0), (1, -1)):
        with pytest.raises(InvalidValueError, match="is a whole number from"):
            time_function(len, "abc", repeat=repeat, warm_up=warm_up)  # type: ignore[arg-type]


def test_a_failed_block_is_no_run_and_a_watch_that_runs_is_not_started_again() -> None:
    watch = Stopwatch()
    with pytest.raises(KeyError), watch:
        raise KeyError
    with pytest.raises(InvalidValueError, match="nothing was timed"):
        _ = watch.last
    with watch, pytest.raises(InvalidValueError, match="runs already"), watch:
        pass
    assert len(watch.runs) == 1


def test_a_device_is_waited_for_on_both_sides() -> None:
    order: list[str] = []

    def clock() -> Run:
        order.append("clock")
        return Run(0.0, 0.0, 0.0)

    with Stopwatch(wait=lambda: order.append("wait"), clock=clock):
        order.append("work")
    assert order == ["wait", "clock", "work", "wait", "clock"]


def test_a_program_is_timed_with_its_own_work(capfd: pytest.CaptureFixture[str]) -> None:
    """The work is that of another process: this one only waits."""
    command = [sys.executable, "-c", "print(sum(range(2_000_000)))"]
    found = time_command(command, repeat=2, warm_up=1, quiet=True)
    assert (len(found.runs), len(found.warm_up)) == (2, 1)
    assert all(run.user > 0 for run in found.runs)
    assert capfd.readouterr().out == ""
    time_command([sys.executable, "-c", "print('hello')"])
    assert capfd.readouterr().out.strip() == "hello"
    for wrong, words in (
        ([sys.executable, "-c", "raise SystemExit(3)"], "ended with status 3 in run 1"),
        (["no-such-program-anywhere"], "can't be run"),
        ([], "no command"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            time_command(wrong)


def test_a_reading_adds_what_ended_children_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """User 2 + 5 and system 3 + 11, from either source."""
    usage = [SimpleNamespace(ru_utime=u, ru_stime=s) for u, s in ((2, 3), (5, 11))]
    unix = SimpleNamespace(RUSAGE_SELF=0, RUSAGE_CHILDREN=1, getrusage=usage.__getitem__)
    taken = SimpleNamespace(user=2, system=3, children_user=5, children_system=11)
    monkeypatch.setattr(stopwatch, "os", SimpleNamespace(times=lambda: taken))
    for source in (unix, None):
        monkeypatch.setattr(stopwatch, "resource", source)
        found = stopwatch.now()
        assert (found.user, found.system) == (7, 14), source


# ---- the spread ----


def test_coverage_by_hand_and_ranks_of_tables() -> None:
    """Of 5 coins all alike 2/32; of 6 all alike 2/64; of 8 at most one head 2 * 9/256."""
    hands = [(5, 1, 30 / 32), (6, 1, 62 / 64), (8, 2, 1 - 18 / 256), (1, 1, 0.0)]
    for count, rank, chance in hands:
        assert coverage(count, rank) == pytest.approx(chance)
    for count, rank in ((6, 1), (8, 1), (9, 2), (12, 3), (15, 4)):
        found = Spread.of(range(count))
        assert (found.low, found.high) == (rank - 1, count - rank)
        assert found.confidence >= 0.95 > coverage(count, rank + 1)
    # Few values say how sure they are, and the median does not follow a slow run.
    assert Spread.of([1.0, 2.0, 3.0]).confidence == pytest.approx(0.75)
    assert Spread.of([10, 11, 12, 11, 10, 11, 90]).median == 11


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    random_ = random.Random(7)
    inside = 0
    for _ in range(2000):
        found = Spread.of(random_.expovariate(1.0) for _ in range(9))
        inside += found.low <= math.log(2) <= found.high
    assert inside / 2000 == pytest.approx(coverage(9, 2), abs=0.015)
    for values in ([], [1.0, math.nan], [math.inf]):
        with pytest.raises(InvalidValueError, match="finite values"):
            Spread.of(values)
