"""Chains of tasks and the balance of lanes, against values worked by hand; their figures."""

from __future__ import annotations

import itertools
import math
import random
import threading

import pytest

from mlsim.errors import InvalidValueError, MlsimError, UnknownNameError
from mlsim.plots import data_of, plot_regions, plot_tasks
from mlsim.profiling import Task, Trace, balance, critical_path, lanes

PLAN = [
    Task("join", 1, ("left", "right")),
    Task("load", 1),
    Task("left", 4, ("load",)),
    Task("right", 2, ("load",)),
]


def test_the_longest_chain_by_hand_and_what_halving_a_task_brings() -> None:
    """Beside the chain nothing; on it, until another chain is the longest."""
    path = critical_path(PLAN)
    assert (path.names, path.seconds) == (("load", "left", "join"), 6)
    assert path.slack == {"load": 0, "left": 0, "right": 2, "join": 0}
    for faster, seconds in (({"right": 0}, 6), ({"left": 0.5}, 4), ({"left": 0}, 4)):
        assert critical_path(PLAN, faster=faster).seconds == seconds
    assert critical_path(PLAN, faster={"left": 0}).names == ("load", "right", "join")


def test_it_is_the_longest_of_all_chains() -> None:
    """Against every chain of small random plans."""
    chance = random.Random(7)
    for _ in range(30):
        names = "abcdef"
        plan = [
            Task(name, chance.randint(0, 5), tuple(n for n in names[:at] if chance.random() < 0.4))
            for at, name in enumerate(names)
        ]
        waits = {(each, task.name) for task in plan for each in task.after}
        took = {task.name: task.seconds for task in plan}
        chains = [
            chain
            for length in range(1, 7)
            for chain in itertools.combinations(names, length)
            if all(pair in waits for pair in itertools.pairwise(chain))
        ]
        longest = max(sum(took[name] for name in chain) for chain in chains)
        path = critical_path(plan)
        assert path.seconds == longest == sum(took[name] for name in path.names)
        assert all(pair in waits for pair in itertools.pairwise(path.names))
        slower = {name: slack for name, slack in path.slack.items() if slack}
        for name, slack in slower.items():
            wider = [t if t.name != name else Task(name, t.seconds + slack, t.after) for t in plan]
            assert critical_path(wider).seconds == pytest.approx(longest)


def test_plans_that_are_none_are_refused() -> None:
    wrong: list[tuple[list[Task], type[MlsimError], str]] = [
        ([], InvalidValueError, "at least one"),
        ([Task("a", 1), Task("a", 2)], InvalidValueError, "two tasks are called 'a'"),
        (
            [Task("a", 1, ("b",)), Task("b", 1, ("a",)), Task("c", 1)],
            *(InvalidValueError, "in a circle: a -> b -> a"),
        ),
        ([Task("load", 1), Task("left", 1, ("laod",))], UnknownNameError, "load"),
        *(([Task("a", each)], InvalidValueError, "0 or more") for each in (-1, math.nan, math.inf)),
    ]
    for plan, kind, words in wrong:
        with pytest.raises(kind, match=words):
            critical_path(plan)
    with pytest.raises(UnknownNameError, match="left"):
        critical_path(PLAN, faster={"lef": 0.5})


def test_a_trace_knows_what_ran_before_in_its_thread() -> None:
    trace = Trace()
    with trace("load"):
        pass

    def work(name: str) -> None:
        with trace(name, after="load"):
            pass
        with trace(f"{name} again"):
            pass

    threads = [threading.Thread(target=work, args=(name,)) for name in ("left", "right")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with trace("join", after=["left again", "right again"]):
        pass
    found = {task.name: set(task.after) for task in trace.tasks}
    assert found == {
        "load": set(),
        "left": {"load"},
        "left again": {"left"},
        "right": {"load"},
        "right again": {"right"},
        "join": {"load", "left again", "right again"},
    }
    assert len(lanes(trace.tasks)) == 3
    assert trace.tasks[0].start == 0
    with pytest.raises(InvalidValueError, match="two tasks are called 'load'"), trace("load"):
        pass
    # An error passes through, and what it ended is a task.
    with pytest.raises(ZeroDivisionError), trace("divide"):
        _ = 1 / 0
    assert trace.tasks[-1].name == "divide"


def test_balance_by_hand() -> None:
    assert balance([2.0, 2.0]) == 1
    assert balance([4.0, 0.0]) == 0.5
    for times in ([], [0.0, 0.0]):
        with pytest.raises(InvalidValueError, match="above 0"):
            balance(times)


def test_figures_carry_what_they_show() -> None:
    figure, _ = plot_tasks([Task(t.name, t.seconds, t.after, "main", 0.0) for t in PLAN])
    rows = {row["Task"]: row["Longest chain"] for row in data_of(figure)}
    assert rows == {"join": "yes", "load": "yes", "left": "yes", "right": "no"}
    figure, _ = plot_regions(1000.0, 100.0, {"p": (1.0, 90.0)})
    (row,) = data_of(figure)
    assert tuple(row.values()) == ("p", 1.0, 90.0, 100.0)
    with pytest.raises(InvalidValueError, match="join has no beginning"):
        plot_tasks(PLAN)
