"""The stopwatch, with a clock that says what it is told."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from mlsim.errors import InvalidValueError
from mlsim.profiling import Stopwatch, time_command, time_function, timed
from mlsim.profiling.stopwatch import Reading, Run


class Clocks:
    """Clocks that go on by what each run takes: wall, user and system."""

    def __init__(self, *runs: tuple[float, float, float]) -> None:
        self.now = Reading(100.0, 10.0, 1.0)
        self.readings = self.read(runs)

    def read(self, runs: tuple[tuple[float, float, float], ...]) -> Iterator[Reading]:
        for wall, user, system in runs:
            yield self.now
            before = self.now
            self.now = Reading(before.wall + wall, before.user + user, before.system + system)
            yield self.now

    def __call__(self) -> Reading:
        return next(self.readings)


def test_the_parts_of_a_run() -> None:
    # The times of seed 002: 2.45 s on the clock, 0.43 s in the program.
    watch = Stopwatch(clock=Clocks((2.45, 0.43, 0.0)))
    with watch:
        pass
    assert watch.last.wall == pytest.approx(2.45)
    assert watch.last.waiting == pytest.approx(2.02)
    assert watch.last.cores == pytest.approx(0.43 / 2.45)
    assert str(watch) == "wall 2.45 s; user 430 ms; system 0 s; waiting 2.02 s; cores 0.18"


def test_several_cores_at_once_leave_no_waiting() -> None:
    run = Run(wall=1.0, user=1.9, system=0.1)
    assert run.waiting == 0.0
    assert run.cores == 2.0


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


def test_a_failed_block_is_no_run() -> None:
    watch = Stopwatch()
    with pytest.raises(KeyError), watch:
        raise KeyError
    with pytest.raises(InvalidValueError, match="nothing was timed"):
        _ = watch.last
    with watch:
        pass
    assert len(watch.runs) == 1


def test_a_watch_that_runs_is_not_started_again() -> None:
    watch = Stopwatch()
    with watch, pytest.raises(InvalidValueError, match="runs already"), watch:
        pass


def test_a_device_is_waited_for_on_both_sides() -> None:
    order: list[str] = []

    def clock() -> Reading:
        order.append("clock")
        return Reading(0.0, 0.0, 0.0)

    with Stopwatch(wait=lambda: order.append("wait"), clock=clock):
        order.append("work")
    assert order == ["wait", "clock", "work", "wait", "clock"]


def test_every_call_of_a_timed_function_is_a_run() -> None:
    @timed
    def factorial(n: int) -> int:
        return n * factorial(n - 1) if n else 1

    assert factorial(5) == 120
    assert factorial.__name__ == "factorial"
    # Calls within a call belong to it.
    assert len(factorial.watch.runs) == 1


@pytest.mark.parametrize(("repeat", "warm_up"), [(0, 1), (-1, 0), (2.0, 1), (True, 0), (1, -1)])
def test_counts_are_whole_numbers(repeat: int, warm_up: int) -> None:
    with pytest.raises(InvalidValueError, match="is a whole number from"):
        time_function(len, "abc", repeat=repeat, warm_up=warm_up)


def test_a_part_is_named() -> None:
    timing = time_function(len, "abc", repeat=1)
    with pytest.raises(InvalidValueError, match="part must be one of wall, user"):
        timing.spread("cpu")


def test_a_program_is_timed_with_its_own_work() -> None:
    # The work is that of another process: this one only waits.
    found = time_command([sys.executable, "-c", "sum(range(2_000_000))"], repeat=2, warm_up=1)
    assert len(found.runs) == 2
    assert len(found.warm_up) == 1
    assert all(run.user > 0 for run in found.runs)


def test_a_failed_program_is_no_measurement() -> None:
    with pytest.raises(InvalidValueError, match="ended with status 3 in run 1"):
        time_command([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(InvalidValueError, match="can't be run"):
        time_command(["no-such-program-anywhere"])
    with pytest.raises(InvalidValueError, match="no command"):
        time_command([])


def test_what_a_program_prints_may_be_thrown_away(capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-c", "print('hello')"]
    time_command(command, quiet=True)
    assert capfd.readouterr().out == ""
    time_command(command)
    assert capfd.readouterr().out.strip() == "hello"
