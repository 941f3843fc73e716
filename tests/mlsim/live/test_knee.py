"""The knee of a service: its closed forms in JavaScript against Python, and what is refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from matplotlib import pyplot
from scripts import CLOSE, ask_node, view_of

from mlsim import Engine, live
from mlsim.equations import plan
from mlsim.errors import InvalidValueError

SERVICE: dict[str, Any] = {"model": "Llama3_8B", "hardware": "HGX_H100", "estimate": "calibrated"}
LENGTHS = {
    "All equal": {"prompt_tokens": 500, "output_tokens": 100},
    "As people write": {"prompt_tokens": "lognormal 500 0.5", "output_tokens": "lognormal 100 0.5"},
}


def runs(
    copies: int, kind: dict[str, Any], rates: tuple[float, ...] = (2.0, 8.0, 20.0)
) -> list[Any]:
    given = SERVICE | kind | {"data_parallel": copies, "requests": 60}
    return [Engine.load(rate=copies * rate, **given) for rate in rates]


@pytest.fixture(scope="module")
def loads() -> dict[str, dict[int, list[Any]]]:
    return {words: {n: runs(n, kind) for n in (1, 2)} for words, kind in LENGTHS.items()}


def drawn(loads: Any, **given: Any) -> live.Figure:
    asked = {"rate": 4, "copies": 1, "goals": (0.5, 0.02)} | given
    return live.knee(loads, still=pyplot.figure(), **asked)


def test_means_are_those_of_the_closed_forms_and_tails_those_of_the_runs(
    loads: Any, tmp_path: Any
) -> None:
    made = drawn(loads)
    seed = random.Random(35)
    lengths = made.data["lengths"]
    full = {words: each["saturation"] for words, each in lengths.items()}
    rates = [
        (words, seed.uniform(0.02, 0.98) * full[words]) for words in LENGTHS for _ in range(30)
    ]
    states = [
        {"lengths": "As people write", "copies": 2, "rate": rate} for rate in (4, 16, 28, 1e4)
    ]
    asks = [
        *(("ask", ["means", made.data, words, rate]) for words, rate in rates),
        *(("ask", ["known", made.data, state]) for state in states),
    ]
    answers = ask_node(view_of(made), asks, tmp_path)
    found = {"means": answers[: len(rates)], "known": answers[len(rates) :]}
    for (words, rate), means in zip(rates, found["means"], strict=True):
        # the same requests at another rate: the closed forms know their means alone
        steady = loads[words][1][0].typical.at_rate(rate)
        equations = loads[words][1][0].typical.equations(users=False)
        truth = plan(equations, steady, ("steady_first_token", "token_interval")).run(dict(steady))
        assert means["first"] == pytest.approx(truth["steady_first_token"], rel=CLOSE)
        assert means["each"] == pytest.approx(truth["token_interval"], rel=CLOSE)
    at_runs = [loads["As people write"][2][at] for at in (0, 1)]
    for load, known in zip(at_runs, found["known"], strict=False):
        for part in ("p50", "p99"):
            wanted = load.value(f"time_to_first_token_{part}")
            assert known["first"][part] == pytest.approx(wanted, rel=1e-5)
    # halfway between the runs at 16 and 40 requests a second
    ends = [loads["As people write"][2][at].value("time_per_output_token_p99") for at in (1, 2)]
    assert found["known"][2]["each"]["p99"] == pytest.approx(sum(ends) / 2, rel=1e-5)
    assert found["known"][3] == {"first": dict.fromkeys(("mean", "p50", "p99")),
                                 "each": dict.fromkeys(("mean", "p50", "p99"))}  # fmt: skip


def test_it_moves_arrivals_copies_and_lengths_and_is_light(loads: Any) -> None:
    made = drawn(loads)
    assert repr(made) == "<live figure knee: lengths, rate, copies>"
    rate, copies = made.data["handles"]
    assert (rate["start"], copies["values"]) == (4, [1, 2])
    assert rate["high"] <= made.data["rates"]
    assert len(json.dumps(made.data)) < 10_000
    alone = drawn({"All equal": loads["All equal"]})
    assert [each["name"] for each in alone.data["choices"]] == []


def test_runs_that_make_no_line_are_refused(loads: Any) -> None:
    equal = loads["All equal"]
    with pytest.raises(InvalidValueError, match="runs of each kind"):
        drawn({"All equal": equal, "Other": {1: equal[1]}})
    with pytest.raises(InvalidValueError, match="runs of each kind"):
        drawn({})
    with pytest.raises(InvalidValueError, match=r"rising rates, not at \[20.0, 8.0, 2.0\]"):
        drawn({"All equal": {**equal, 1: equal[1][::-1]}})
