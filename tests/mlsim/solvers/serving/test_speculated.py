"""Speculative decoding: rounds by hand, limits, and from where on it pays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlsim import Engine, Models
from mlsim.equations import speculation as rounds
from mlsim.errors import DoesNotFitError, InvalidValueError, WrongKindError
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


def test_tokens_of_a_round_are_those_of_a_coin_that_is_thrown() -> None:
    random = np.random.default_rng(1)
    accepted = random.random((200_000, 5)) < 0.7
    made = 1 + np.cumprod(accepted, axis=1).sum(axis=1)
    assert made.mean() == pytest.approx(rounds.expected_tokens(0.7, 5), rel=0.005)


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
    # In memory their scores are beside the activations of a chunk: 5 * 16 rows of 128,256 numbers.
    plain = Engine.serve(**model)
    spoken = Engine.serve(**model, speculation=Speculation(cost=0.0, tokens=4, acceptance=0.5))
    more = spoken.value("activation_memory") - plain.value("activation_memory")
    assert more == 2 * 4 * 16 * 128_256


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


def test_a_draft_keeps_what_a_window_drops_and_has_nearly_the_vocabulary_of_its_model() -> None:
    """6,080 tokens of 131,072 bytes each beside a model that keeps 4,096; of 129,551 words one in
    a hundred are 1,295.51: 128,256 are near enough, and of 129,552 they are not.
    """
    windowed = replace(Models.Mistral_7B, vocabulary=129_551, layers=40)
    asked = {"prompt_tokens": 6000, "output_tokens": 80, "batch_size": 2}
    plain = serve(model=windowed, **asked).value("cache_memory")
    drafted = serve(model=windowed, speculation=DRAFTED, **asked).value("cache_memory")
    assert 8 * (drafted - plain) == 2 * 6080 * 131_072
    with pytest.raises(InvalidValueError, match="knows 128,256 tokens"):
        serve(model=replace(windowed, vocabulary=129_552), speculation=DRAFTED, **asked)


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
    assert "break_even_acceptance" not in found.speculation.to_dict()
    alone = serve(speculation=DRAFTED).speculation
    assert alone.to_dict()["break_even_acceptance"] == alone.break_even_acceptance
    assert alone.to_dict()["draft"] == "Llama 3.1 8B"
    assert (np.diff(faster) < 0).all()
    assert found[1].value("time_per_output_token") == pytest.approx(
        serve(speculation=DRAFTED).value("time_per_output_token")
    )
    with pytest.raises(InvalidValueError, match="pick one"):
        found.speculation.break_even_batch  # noqa: B018


@pytest.mark.parametrize("estimate", ["bound", "roofline", "calibrated"])
@pytest.mark.parametrize("share", [0.0, 0.75])
def test_a_draft_reads_what_is_not_cached_and_checks_beside_other_switches(
    estimate: str, share: float
) -> None:
    """Of 2,048 tokens both models read 512, with 1,536 before them, one after the other.

    A round is three steps of the draft in fp8, and a check of four tokens of the model, a tenth of
    whose cache lies on the host: 1 + 0.6 + 0.36 + 0.216 tokens.
    """
    asked = {"estimate": estimate, "output_tokens": 2}
    asked |= {"prefix_share": share} if share else {}
    one_copy = {"prefix_count": 1} if share else {}
    own = asked | one_copy | {"offload": Offload(cache=0.1)}
    drafted = Speculation(draft="Llama3_8B", tokens=3, acceptance=0.6, precision="fp8")
    found = serve(**own, speculation=drafted)
    target, draft = serve(**own), serve(model="Llama3_8B", precision="fp8", **asked)
    firsts = [each.value("time_to_first_token") for each in (target, draft)]
    assert found.value("time_to_first_token") == pytest.approx(sum(firsts), rel=1e-12)
    if share:
        whole = serve(model="Llama3_8B", precision="fp8", estimate=estimate, output_tokens=2)
        assert 0.2 < firsts[1] / whole.value("time_to_first_token") < 0.5
    round_time = 3 * draft.decode_at(2048).value("latency") + found.decode.value("latency")
    assert found.decode.new_tokens == 4
    assert found.value("time_per_output_token") == pytest.approx(round_time / 2.176)
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
