"""The tank: what the page computes against Python, at its rim too, and what is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot
from scripts import CLOSE, TRIED, ask_chromium, ask_node, view_of

from mlsim import Engine, Models, live
from mlsim.errors import InvalidValueError
from mlsim.measured import serving_measurements
from mlsim.solvers.serving.serving import Serving

RUNS = [row for row in serving_measurements()
        if (row.series, row.hardware) == ("mlenergy_Llama-3.1-8B-Instruct", "Cloud.H100")]  # fmt: skip
SIZES = ("weight_memory", "activation_memory", "cache_memory", "memory_free", "largest_batch")
RATES = ("time_per_output_token", "user_token_rate", "decode_throughput", "output_throughput")
State = dict[str, Any]


def drawn(model: str = "Llama3_8B", hardware: str = "H100", **given: Any) -> live.Figure:
    start = {"users": 64, "prompt_tokens": 2048, "output_tokens": 256} | given
    return live.tank(model, hardware, still=pyplot.figure(), **start)


@pytest.fixture(scope="module")
def made() -> live.Figure:
    return drawn(software="vllm", measured=RUNS, guess="gss-users")


def served(state: State, estimate: str) -> Serving:
    own = {"software": "vllm"} if estimate == "calibrated" else {}
    model = Models.Llama3_8B
    heads = {"kv_heads": int(state["kv_heads"])}
    if heads["kv_heads"] == 32:
        model = replace(model, name="MHA", attention=replace(model.attention, **heads))
    asked = {name: value for name, value in state.items() if name != "kv_heads"}
    return Engine.serve(model, "H100", estimate=estimate, check_memory=False, **own, **asked)


def states(made: live.Figure) -> list[State]:
    """Return states drawn at random, and those at the rim and one user above."""
    of = random.Random(35)
    drawn = [
        {each["name"]: of.choice(each["options"])[0] for each in made.data["choices"]}
        | {each["name"]: of.choice(each.get("values") or range(each["low"], each["high"] + 1))
           for each in made.data["handles"]}
        for _ in range(TRIED)
    ]  # fmt: skip
    highest = made.data["handles"][0]["high"]
    most = [(each, int(served(each, "bound").value("largest_batch"))) for each in drawn[:30]]
    return drawn + [
        {**each, "batch_size": users}
        for each, n in most
        for users in (n, n + 1)
        if 0 < users <= highest
    ]


def agree(made: live.Figure, asked: list[State], answers: list[Any]) -> None:
    near = {"rel": CLOSE, "abs": 1e-3}  # a thousandth of a byte
    for state, found in zip(asked, answers, strict=True):
        truth, limit = served(state, "calibrated"), served(state, "bound")
        for name in SIZES:
            assert found[name] == pytest.approx(truth.value(name), **near), (state, name)
        assert ("refusal" in found) is not truth.feasible, state
        if "refusal" in found:
            assert (found["refusal"], found["memory_free"] < 0) == ("does_not_fit", True)
            continue
        for name in RATES:
            assert found[name] == pytest.approx(truth.value(name), rel=CLOSE)
            assert found["bound"][name] == pytest.approx(limit.value(name), rel=CLOSE)
        band = truth.band("time_per_output_token")
        assert band is not None
        assert found["band"] == pytest.approx([band.low, band.high], rel=CLOSE)


@pytest.mark.parametrize("where", ["node", pytest.param("chromium", marks=pytest.mark.browser)])
def test_the_page_has_the_memory_and_the_rates_that_the_package_has(
    made: live.Figure, tmp_path: Path, where: str
) -> None:
    asked = states(made)
    asks = [("ask", ["known", made.data, state]) for state in asked]
    source = view_of(made)
    agree(
        made,
        asked,
        ask_node(source, asks, tmp_path) if where == "node" else ask_chromium(source, asks),
    )


def test_it_starts_where_it_is_told_and_its_handles_reach_what_was_measured(
    made: live.Figure, tmp_path: Path
) -> None:
    assert repr(made) == (
        "<live figure tank: kv_heads, weights, kv_cache, batch_size, prompt_tokens, output_tokens>"
    )
    assert made.data["choices"][0]["options"][1] == ["32", "32, one for each query head"]
    users, prompt, answer = made.data["handles"]
    assert (users["high"], prompt["values"][:3]) == (700, [128, 200, 256])
    start = {each["name"]: each["start"] for each in made.data["choices"]}
    for row, run in zip(RUNS, made.data["measured"], strict=True):
        assert users["high"] >= row.batch_size
        assert answer["low"] <= row.output_tokens <= answer["high"]
        state = {name: run[name] for name in ("batch_size", "prompt_tokens", "output_tokens")}
        (found,) = ask_node(view_of(made), [("ask", ["known", made.data, start | state])], tmp_path)
        assert found["measured"] == {"output_throughput": row.value}


def test_a_model_may_share_no_heads_and_read_few_tokens() -> None:
    small = drawn("GPT2", prompt_tokens=200, output_tokens=100)
    assert [each["name"] for each in small.data["choices"]] == ["weights", "kv_cache"]
    assert small.data["handles"][1]["values"] == [128, 200, 256, 512]


@pytest.mark.parametrize(
    "change",
    [{"model": "Llama2_7B"}, {"hardware": "Cloud.H200"}, {"weights": "fp8"}, {"devices": 2},
     {"metric": "time_to_first_token"}],
)  # fmt: skip
def test_what_was_measured_of_anything_else_is_refused(change: dict[str, Any]) -> None:
    other = replace(RUNS[0], **change)
    with pytest.raises(InvalidValueError, match=r"is not of Llama 3\.1 8B on one NVIDIA H100"):
        drawn(measured=[other])
