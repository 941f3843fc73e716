"""Speculative decoding: rounds by hand, limits, and from where on it pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlsim import Engine
from mlsim.equations import speculation as rounds
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError, WrongKindError
from mlsim.workloads import Offload, Speculation

PLAIN: dict[str, Any] = {
    "model": "Llama3_70B",
    "hardware": "HGX_H100",
    "tensor_parallel": 8,
    "batch_size": 16,
    "prompt_tokens": 2048,
    "output_tokens": 256,
}
DRAFTED = Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7)


def serve(**changed: Any) -> Any:
    return Engine.serve(**(PLAIN | changed))


def test_tokens_of_a_round_by_hand() -> None:
    # One for certain, a second with 0.8, a third with 0.8 twice: 1 + 0.8 + 0.64.
    assert rounds.expected_tokens(0.8, 2) == pytest.approx(2.44)
    assert rounds.expected_tokens(0.0, 5) == 1
    assert rounds.expected_tokens(1.0, 5) == 6
    near = rounds.expected_tokens(1 - 1e-9, 5)
    assert near == pytest.approx(6, rel=1e-6)
    assert rounds.expected_tokens(np.array([0.0, 0.8, 1.0]), 2).tolist() == pytest.approx(
        [1, 2.44, 3]
    )


def test_tokens_of_a_round_are_those_of_a_coin_that_is_thrown() -> None:
    random = np.random.default_rng(1)
    accepted = random.random((200_000, 5)) < 0.7
    made = 1 + np.cumprod(accepted, axis=1).sum(axis=1)
    assert made.mean() == pytest.approx(rounds.expected_tokens(0.7, 5), rel=0.005)


@pytest.mark.parametrize(
    ("acceptance", "tokens", "cost", "factor"),
    [(0.75, 7, 0.02, 3.158), (0.6, 5, 0.0, 2.383), (0.8, 5, 0.04, 3.074), (0.5, 2, 0.1, 1.458)],
)
def test_the_speedup_is_that_of_the_closed_form_where_checks_are_free(
    acceptance: float, tokens: int, cost: float, factor: float
) -> None:
    made = rounds.expected_tokens(acceptance, float(tokens))
    drafted = rounds.draft_time_by_cost(cost, 0.02)
    time = rounds.round_time(float(tokens), drafted, 0.02)
    faster = rounds.speculative_speedup(0.02, rounds.speculative_token_time(time, made))
    by_hand = (1 - acceptance ** (tokens + 1)) / ((1 - acceptance) * (tokens * cost + 1))
    assert faster == pytest.approx(by_hand)
    assert faster == pytest.approx(factor, rel=1e-3)


def test_a_round_is_its_drafts_and_its_check() -> None:
    found = serve(speculation=DRAFTED).speculation
    middle = 2048 + 127
    draft = serve(model="Llama3_8B").decode_at(middle).value("latency")
    assert found.value("draft_step_time") == pytest.approx(draft)
    assert found.value("plain_step_time") == pytest.approx(
        serve().decode_at(middle).value("latency")
    )
    step = serve(speculation=DRAFTED).decode
    assert (step.new_tokens, step.cached_tokens) == (5, middle)
    assert found.value("verification_time") == step.value("latency")
    made = (1 - 0.7**5) / 0.3
    time = (4 * draft + step.value("latency")) / made
    assert found.value("speculative_token_time") == pytest.approx(time)
    each = serve(speculation=DRAFTED).value("time_per_output_token")
    assert each == pytest.approx(time, rel=1e-3)  # the mean over the output, not its middle


def test_a_check_scores_each_drafted_token() -> None:
    model = PLAIN | {"model": "Llama3_8B", "hardware": "H100", "tensor_parallel": 1}
    step = Engine.serve(**model, speculation=Speculation(cost=0.0, tokens=4, acceptance=0.5)).decode
    rows = {each["name"]: each for each in step.operators}
    assert rows["output layer"]["flops"] == 2 * 4096 * 128_256 * 5 * 16


def test_the_draft_takes_memory_and_reads_prompts() -> None:
    plain, found, draft = serve(), serve(speculation=DRAFTED), serve(model="Llama3_8B")
    for name in ("weight_memory", "cache_memory"):
        assert found.value(name) == pytest.approx(plain.value(name) + draft.value(name))
    assert found.value("time_to_first_token") == pytest.approx(
        plain.value("time_to_first_token") + draft.value("time_to_first_token")
    )
    assert found.longest_context < plain.longest_context
    most = found.largest_batch
    assert serve(speculation=DRAFTED, batch_size=most).feasible
    assert not serve(speculation=DRAFTED, batch_size=most + 1).feasible


def test_the_context_that_fits_counts_the_drafts_cache() -> None:
    found = serve(speculation=DRAFTED, batch_size=64)
    longest = found.longest_context
    fits = {"batch_size": 64, "speculation": DRAFTED}
    assert serve(**fits, prompt_tokens=longest - 256).feasible
    assert not serve(**fits, prompt_tokens=longest - 256 + 64).feasible


def test_nothing_accepted_costs_time_and_all_accepted_saves_most() -> None:
    plain = serve().value("time_per_output_token")
    times = [
        serve(speculation=Speculation(cost=0.1, tokens=4, acceptance=rate)).value(
            "time_per_output_token"
        )
        for rate in (0.0, 0.3, 0.6, 0.9, 1.0)
    ]
    assert times == sorted(times, reverse=True)
    assert times[0] > plain > times[-1]
    assert times[0] / times[-1] == pytest.approx(5)


def test_the_break_even_acceptance_is_where_both_are_as_fast() -> None:
    rate = serve(speculation=DRAFTED).speculation.break_even_acceptance
    even = serve(speculation=Speculation(draft="Llama3_8B", tokens=4, acceptance=rate))
    assert even.speculation.value("speculative_speedup") == pytest.approx(1)
    assert even.speculation.value("break_even_tokens") == pytest.approx(
        even.speculation.value("expected_tokens")
    )


def test_speculation_pays_up_to_a_batch_and_no_further() -> None:
    last = serve(speculation=DRAFTED).speculation.break_even_batch
    assert 16 < last < serve(speculation=DRAFTED).largest_batch
    for batch, pays in ((last, True), (last + 1, False), (4 * last, False)):
        faster = serve(speculation=DRAFTED, batch_size=batch).speculation
        assert (faster.value("speculative_speedup") >= 1) == pays
    # There checking is bound by arithmetic, while a plain step waits for memory.
    late = serve(speculation=DRAFTED, batch_size=4 * last)
    assert late.decode.bottleneck == "Compute Bound"
    assert serve(batch_size=4 * last).decode.bottleneck == "Memory Bound"


def test_where_nothing_pays_it_says_so() -> None:
    slow = Speculation(cost=0.9, tokens=8, acceptance=0.1)
    found = serve(speculation=slow).speculation
    assert found.break_even_batch is None
    assert found.break_even_acceptance == pytest.approx(0.99, abs=0.1)
    never = Speculation(cost=0.99, tokens=8, acceptance=0.1)
    worst = serve(speculation=never, batch_size=1024, prompt_tokens=512)
    assert worst.speculation.break_even_acceptance is None
    assert "no acceptance" in str(worst.speculation)


def test_it_works_for_arrays_of_points() -> None:
    found = serve(speculation=DRAFTED, batch_size=[1, 16, 256])
    faster = found.speculation.value("speculative_speedup")
    assert faster.shape == (3,)
    assert (np.diff(faster) < 0).all()
    assert found[1].value("time_per_output_token") == pytest.approx(
        serve(speculation=DRAFTED).value("time_per_output_token")
    )
    with pytest.raises(InvalidValueError, match="pick one"):
        found.speculation.break_even_batch  # noqa: B018


def test_a_window_and_experts_take_part() -> None:
    drafted = Speculation(cost=0.1, tokens=3, acceptance=0.6)
    windowed = Engine.serve(
        model="Mistral_7B", hardware="H100", prompt_tokens=6000, speculation=drafted
    )
    assert windowed.speculation.value("speculative_speedup") > 1
    mixed = Engine.serve(
        model="Mixtral_8x7B", hardware="HGX_H100", tensor_parallel=2, speculation=drafted
    )
    # Four tokens choose more experts than one, so checking is far from free.
    assert mixed.speculation.value("verification_time") > 2 * mixed.speculation.value(
        "plain_step_time"
    )


@pytest.mark.parametrize("estimate", ["bound", "calibrated"])
def test_other_estimates_and_switches_go_with_it(estimate: str) -> None:
    found = serve(
        estimate=estimate,
        speculation=Speculation(draft="Llama3_8B", tokens=3, acceptance=0.6, precision="fp8"),
        prefix_share=0.5,
        prefix_count=1,
        offload=Offload(cache=0.1),
    )
    assert found.value("time_per_output_token") > 0
    assert found.load().time == pytest.approx(found.value("generation_latency"))
    assert found.to_dict()["switched_on"]["speculation"].startswith("3 tokens from")


def test_it_explains_a_step_and_says_what_it_needs() -> None:
    found = serve(speculation=DRAFTED)
    told = str(found.explain("first_token_time"))
    for words in ("round_time", "draft_step_time", "verification_time", "leviathan2023"):
        assert words in told
    with pytest.raises(WrongKindError, match="speculation=Speculation"):
        serve().speculation  # noqa: B018
    with pytest.raises(DoesNotFitError):
        serve(model="Llama3_405B", hardware="HGX_A100", speculation=DRAFTED).speculation  # noqa: B018


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"speculation": 4}, "is a Speculation"),
        ({"speculation": Speculation(draft="Qwen3_8B", tokens=4, acceptance=0.7)}, "vocabulary"),
        ({"speculation": Speculation(draft="bert_large", tokens=4, acceptance=0.7)}, "encoder"),
        (
            {"speculation": Speculation(draft="Llama3_70B", tokens=4, acceptance=0.7)},
            "not smaller",
        ),
        ({"speculation": Speculation(draft="Lama3_8B", tokens=4, acceptance=0.7)}, "Llama3_8B"),
        (
            {"speculation": DRAFTED, "tensor_parallel": 4, "pipeline_parallel": 2},
            "pipeline_parallel",
        ),
        ({"speculation": DRAFTED, "model": "bert_large", "tensor_parallel": 1}, "encoder"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    asked = PLAIN | given
    if asked["model"] == "bert_large":
        asked |= {"prompt_tokens": 128, "output_tokens": None}
    with pytest.raises((InvalidValueError, WrongKindError, UnknownNameError), match=words):
        Engine.serve(**asked)
