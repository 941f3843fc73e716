"""What is switched on in a service: by hand, at its limits, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from refusals import answered

from mlsim import Engine, LoRA, Models, QLoRA
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError, WrongKindError
from mlsim.units import held, text
from mlsim.workloads import Offload, Speculation

PLAIN: dict[str, Any] = {
    "model": "Llama3_8B",
    "hardware": "H100",
    "batch_size": 8,
    "prompt_tokens": 1024,
    "output_tokens": 128,
}
DRAFTED = Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7)
ENCODER: dict[str, Any] = {"model": "bert_large", "output_tokens": None, "prompt_tokens": 128}
TIMES = ("time_to_first_token", "time_per_output_token", "generation_latency")


def serve(**changed: Any) -> Any:
    return Engine.serve(**(PLAIN | changed))


# Prefix caching.


def test_prefill_works_on_what_is_not_cached_and_looks_at_what_is() -> None:
    model = Models.Llama3_8B
    found = serve(prefix_share=0.5)
    assert found.value("prefix_tokens") == 512
    # Two operations for each parameter of the layers and token; of attention, 512 new tokens
    # look at 512 cached ones and at half of themselves; the output layer scores one token.
    assert found.prefill.value("total_flops") == 8 * model.flop_count(512, 512)
    assert found.prefill.value("total_flops") > 8 * model.flop_count(512)
    rows = {each["name"]: each for each in found.prefill.operators}
    # 1024 positions are read and 512 written, of 8 KV heads with 128 numbers twice, in 16 bits.
    cache = 2 * 2 * 8 * 128 * (1024 + 512) * 8
    # Queries and mixed values: 32 heads of 128 each, read or written for each new token.
    assert rows["attention"]["bytes_moved"] == cache + 2 * (2 * 32 * 128) * 512 * 8
    # A whole prompt in the cache leaves one token.
    whole = serve(prefix_share=1.0)
    assert whole.value("prefix_tokens") == 1023
    assert whole.prefill.value("total_flops") == 8 * model.flop_count(1, 1023)


def test_sequences_that_share_a_prefix_keep_it_once() -> None:
    token = 131_072  # bytes of cache of a token in all 32 layers
    # As many prefixes as sequences, or more: nothing is shared.
    for count, kept in ((None, 8), (1, 1), (2, 2), (50, 8)):
        found = serve(prefix_share=0.5, prefix_count=count)
        assert found.value("cache_memory") == (kept * 512 + 8 * 640) * token


@pytest.mark.parametrize("count", [1, 40, 10_000])
def test_the_largest_sharing_batch_is_the_last_that_fits(count: int) -> None:
    asked = serve(prefix_share=0.9, prefix_count=count)
    most = asked.largest_batch
    assert most >= serve(prefix_share=0.9).largest_batch
    fits = serve(prefix_share=0.9, prefix_count=count, batch_size=most)
    assert fits.feasible
    assert not serve(prefix_share=0.9, prefix_count=count, batch_size=most + 1).feasible


# Offload.


def test_offloaded_weights_come_over_the_link_in_each_step() -> None:
    found = serve(batch_size=1, offload=Offload(weights=0.25))
    whole = serve(batch_size=1)
    read = sum(
        each["repeats"] * (each["bytes_moved"] if each["kind"] == "projection" else 0)
        for each in whole.decode.operators
    )
    assert found.value("host_link_bandwidth") == 64e9  # 128 GB/s of PCIe 5.0 count both ways
    assert found.service.known.origin("host_link_bandwidth").endswith(", half of it each way")
    assert found.value("weight_memory") == pytest.approx(0.75 * whole.value("weight_memory"))
    assert found.value("host_memory") == pytest.approx(0.25 * whole.value("weight_memory"))
    step = found.value("time_per_output_token")
    # The embedding is looked up, not read; activations are small beside weights.
    assert step == pytest.approx(0.25 * read / 64e9, rel=0.1)
    assert step > 5 * whole.value("time_per_output_token")


def test_offloaded_cache_is_read_from_the_host() -> None:
    asked = {"batch_size": 64, "prompt_tokens": 4096}
    found, whole = serve(**asked, offload=Offload(cache=0.5)), serve(**asked)
    assert found.value("cache_memory") == pytest.approx(whole.value("cache_memory") / 2)
    assert found.value("host_memory") == pytest.approx(whole.value("cache_memory") / 2)
    moved = found.decode.value("total_offload_bytes")
    # 64 sequences with 4096 + 63 cached tokens on average, a new one read and one written.
    assert moved == pytest.approx(0.5 * 64 * (4096 + 63 + 2) * 131_072)
    assert found.largest_batch > 1.9 * whole.largest_batch
    assert found.longest_context > whole.longest_context


@pytest.mark.parametrize("estimate", ["roofline", "bound", "calibrated"])
def test_nothing_offloaded_changes_nothing(estimate: str) -> None:
    found = serve(offload=Offload(), estimate=estimate)
    whole = serve(estimate=estimate)
    for name in (*TIMES, "memory_required"):
        assert found.value(name) == pytest.approx(whole.value(name), rel=1e-12)
    assert found.largest_batch == whole.largest_batch
    assert found.longest_context == whole.longest_context


def test_times_add_up_where_nothing_overlaps() -> None:
    longer, added, half = (
        serve(offload=Offload(weights=0.02, overlap=overlap)).value("time_per_output_token")
        for overlap in (1.0, 0.0, 0.5)
    )
    assert longer < half < added
    assert half == pytest.approx((longer + added) / 2)
    assert added <= 2 * longer


# Adapters.


def test_adapters_hold_what_peft_counts() -> None:
    # PEFT tells of 13,631,488 trainable parameters for Llama 3 8B, rank 16, all of attention:
    # 16 (4096 + 4096) for queries and outputs, 16 (4096 + 1024) for keys and values, 32 layers.
    found = serve(adapters=LoRA(rank=16, targets="attention"), adapter_count=10)
    assert found.value("adapter_memory") == 10 * 2 * 13_631_488
    assert found.value("weight_memory") == serve().value("weight_memory") + 20 * 13_631_488


def test_each_adapter_in_use_is_read_once() -> None:
    whole = serve().decode
    for count, distinct in ((1, 1.0), (2, 2 * (1 - 0.5**8)), (10**6, 8.0)):
        found = serve(
            adapters=LoRA(rank=16, targets="attention"), adapter_count=count, check_memory=False
        ).decode
        assert found.value("distinct_adapters") == pytest.approx(distinct, rel=1e-5)
        added = found.value("total_bytes") - whole.value("total_bytes")
        weights = 2 * 13_631_488 * distinct
        # And for each of 8 sequences what goes in and out of four adapters in 32 layers.
        moved = 2 * 8 * 32 * sum(i + 16 + 16 + 2 * o for i, o in SIZES)
        assert added == pytest.approx(weights + moved, rel=1e-5)
    assert found.value("total_flops") - whole.value("total_flops") == 2 * 8 * 13_631_488


SIZES = ((4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096))


def test_adapters_are_divided_like_the_matrices_beside_them() -> None:
    asked = {"hardware": "HGX_H100", "tensor_parallel": 4}
    found = serve(**asked, adapters=LoRA(rank=16, targets="attention"))
    # A matrix divided by what it writes has a whole first matrix; one by what it reads, a second.
    whole = 16 * 32 * (4096 + 1024 + 2 * (4096 + 256) + 1024 + 4096)
    assert found.value("adapter_memory") == 2 * whole


# All of them.


def test_nothing_switched_on_says_nothing_of_it() -> None:
    plain = serve()
    assert "switched_on" not in plain.to_dict()
    assert str(serve(prefix_share=0.0)) == str(plain)
    assert serve(prefix_share=0.0).to_dict() == plain.to_dict()
    with pytest.raises(UnknownNameError):
        plain.value("host_memory")


def test_what_is_switched_on_is_told_with_its_numbers() -> None:
    """1 + 0.8 + 0.64 + 0.512 + 0.4096 tokens in a round; a quarter of 8 caches lies on the host."""
    drafted = Speculation(cost=0.1, tokens=4, acceptance=0.8)
    asked = {"adapters": LoRA(rank=16, targets="attention"), "adapter_count": 2}
    found = serve(**asked, offload=Offload(cache=0.25), speculation=drafted)
    rows = found.report().rows
    said, spoken = dict(rows), found.speculation
    assert said["rounds"] == (
        f"3.36 tokens in {text(spoken.value('round_time'), 's')}, "
        f"{spoken.value('speculative_speedup'):.2f} times as fast; pays from an acceptance of "
        f"{spoken.break_even_acceptance:.2f} on, up to a batch of {spoken.break_even_batch:,}"
    )
    assert said["on the host"] == f"{held(2 * 1152 * 131_072)} for each device"
    # Two adapters of 13,631,488 parameters, both of which eight sequences use but for 1 in 128.
    assert ("", f"adapters {held(54_525_952)} of the weights; 2.0 of them in a step") in rows
    never = serve(
        speculation=Speculation(cost=0.99, tokens=8, acceptance=0.1),
        batch_size=1024,
        check_memory=False,
    )
    assert "; pays at no acceptance, at no batch" in dict(never.report().rows)["rounds"]


def test_answers_with_switches_tell_of_them_and_have_no_band() -> None:
    asked = {"prefix_share": 0.5, "prefix_count": 1, "offload": Offload(cache=0.25)}
    found = serve(**asked, adapters=LoRA(rank=8), adapter_count=3, estimate="calibrated")
    told = found.to_dict()["switched_on"]
    assert set(told) == {"prefix", "offload", "adapters"}
    assert all(words in str(found) for words in told.values())
    assert "host_link_bandwidth" in str(found.decode.explain("latency"))
    assert found.band() is None
    plain = serve(estimate="calibrated")
    band, told = plain.band("time_per_output_token"), plain.to_dict()
    assert band is not None
    assert told["time_per_output_token"]["low"] == band.low < told["time_per_output_token"]["high"]
    assert told["formats_assumed"] == "bf16, since no other was given"
    assert plain.decode.explain("bottleneck").roofline == "Memory Bound"


MADE: dict[str, Any] = {"adapters": LoRA, "offload": Offload, "speculation": Speculation}


def asked(**given: Any) -> Any:
    """A service with what is switched on of the fields that a table has of it."""
    tables = {name: each for name, each in given.items() if isinstance(each, dict)}
    return serve(**given | {name: MADE[name](**fields) for name, fields in tables.items()})


def test_what_cannot_be_is_refused() -> None:
    drafted = partial(Speculation, tokens=4, acceptance=0.5, cost=0.1)
    for part, door in (("switches", asked), ("offload", Offload), ("speculation", drafted)):
        assert answered(door, "serving", part) == []
    with pytest.raises(WrongKindError, match="way to train"):
        serve(adapters=QLoRA(rank=16))


# Speculation.

LARGE: dict[str, Any] = {"model": "Llama3_70B", "hardware": "HGX_H100", "tensor_parallel": 8}
LARGE |= {"batch_size": 16, "prompt_tokens": 2048, "output_tokens": 256}


def speculate(**changed: Any) -> Any:
    return Engine.serve(**(LARGE | changed))


def test_a_round_is_its_drafts_and_its_check() -> None:
    served = speculate(speculation=DRAFTED)
    found, step, middle = served.speculation, served.decode, 2048 + 127
    draft = speculate(model="Llama3_8B").decode_at(middle).value("latency")
    assert found.value("draft_step_time") == pytest.approx(draft)
    # Of what is given, the rates of the device hold for both.
    rate, size = {"memory_bandwidth": "1 TB/s"}, {"bytes_per_parameter": "1 B/parameter"}
    slow = speculate(model="Llama3_8B", **rate).decode_at(middle).value("latency")
    given = speculate(speculation=DRAFTED, **rate, **size).speculation
    assert given.value("draft_step_time") == pytest.approx(slow)
    plain = speculate().decode_at(middle).value("latency")
    assert found.value("plain_step_time") == pytest.approx(plain)
    assert (step.new_tokens, step.cached_tokens) == (5, middle)
    assert found.value("verification_time") == step.value("latency")
    made = (1 - 0.7**5) / 0.3
    time = (4 * draft + step.value("latency")) / made
    assert found.value("speculative_token_time") == pytest.approx(time)
    # The mean over the output, not its middle.
    assert served.value("time_per_output_token") == pytest.approx(time, rel=1e-3)


def test_a_check_scores_each_drafted_token() -> None:
    model = {"model": "Llama3_8B", "hardware": "H100", "tensor_parallel": 1}
    free = Speculation(cost=0.0, tokens=4, acceptance=0.5)
    plain, spoken = speculate(**model), speculate(**model, speculation=free)
    rows = {each["name"]: each for each in spoken.decode.operators}
    assert rows["output layer"]["flops"] == 2 * 4096 * 128_256 * 5 * 16
    # In memory their scores are beside the activations of a chunk: 5 * 16 rows of 128,256 numbers.
    more = spoken.value("activation_memory") - plain.value("activation_memory")
    assert more == 2 * 4 * 16 * 128_256


def test_the_draft_takes_memory_and_reads_prompts() -> None:
    plain, found, draft = speculate(), speculate(speculation=DRAFTED), speculate(model="Llama3_8B")
    for name in ("weight_memory", "cache_memory"):
        assert found.value(name) == pytest.approx(plain.value(name) + draft.value(name))
    asked = {"speculation": DRAFTED, "batch_size": 100}
    longest = speculate(**asked).longest_context
    assert longest < speculate(batch_size=100).longest_context < 131_072
    assert speculate(**asked, prompt_tokens=longest - 256).feasible
    assert not speculate(**asked, prompt_tokens=longest - 240).feasible
    most = found.largest_batch
    assert speculate(speculation=DRAFTED, batch_size=most).feasible
    assert not speculate(speculation=DRAFTED, batch_size=most + 1).feasible


def test_a_draft_keeps_what_a_window_drops_and_has_nearly_the_vocabulary_of_its_model() -> None:
    """6,080 tokens of 131,072 bytes each beside a model that keeps 4,096; of 129,551 words one in
    a hundred are 1,295.51: 128,256 are near enough, and of 129,552 they are not.
    """
    windowed = replace(Models.Mistral_7B, vocabulary=129_551, layers=40)
    asked = {"prompt_tokens": 6000, "output_tokens": 80, "batch_size": 2}
    plain = speculate(model=windowed, **asked).value("cache_memory")
    drafted = speculate(model=windowed, speculation=DRAFTED, **asked).value("cache_memory")
    assert 8 * (drafted - plain) == 2 * 6080 * 131_072
    many = {"model": windowed, "speculation": DRAFTED, "batch_size": 1000}
    longest = speculate(**many).longest_context
    assert speculate(**many, prompt_tokens=longest - 256).feasible
    assert not speculate(**many, prompt_tokens=longest - 240).feasible
    with pytest.raises(InvalidValueError, match="knows 128,256 tokens"):
        speculate(model=replace(windowed, vocabulary=129_552), speculation=DRAFTED, **asked)


def test_the_break_even_acceptance_is_where_both_are_as_fast() -> None:
    rate = speculate(speculation=DRAFTED).speculation.break_even_acceptance
    even = speculate(speculation=Speculation(draft="Llama3_8B", tokens=4, acceptance=rate))
    assert even.speculation.value("speculative_speedup") == pytest.approx(1)
    assert even.speculation.value("break_even_tokens") == pytest.approx(
        even.speculation.value("expected_tokens")
    )


def test_speculation_pays_up_to_a_batch_and_no_further() -> None:
    last = speculate(speculation=DRAFTED).speculation.break_even_batch
    assert 16 < last < speculate(speculation=DRAFTED).largest_batch
    for batch, pays in ((last, True), (last + 1, False), (4 * last, False)):
        faster = speculate(speculation=DRAFTED, batch_size=batch).speculation
        assert (faster.value("speculative_speedup") >= 1) == pays
    # There checking is bound by arithmetic, while a plain step waits for memory.
    late = speculate(speculation=DRAFTED, batch_size=4 * last)
    assert late.decode.bottleneck == "Compute Bound"
    assert speculate(batch_size=4 * last).decode.bottleneck == "Memory Bound"


def test_where_nothing_pays_it_says_so() -> None:
    slow = Speculation(cost=0.9, tokens=8, acceptance=0.1)
    found = speculate(speculation=slow).speculation
    assert found.break_even_batch is None
    assert found.break_even_acceptance == pytest.approx(0.99, abs=0.1)
    # Where a check takes as long as a step, and guesses are free, they need not even be right.
    one = {"model": "Llama3_8B", "hardware": "H100", "tensor_parallel": 1, "roofline_time": "1 us"}
    equal = speculate(**one, speculation=Speculation(cost=0.0, tokens=4, acceptance=0.5))
    assert equal.speculation.break_even_acceptance == 0.0
    never = Speculation(cost=0.99, tokens=8, acceptance=0.1)
    worst = speculate(speculation=never, batch_size=1024, prompt_tokens=512)
    assert worst.speculation.break_even_acceptance is None
    assert "no acceptance" in str(worst.speculation)
    # Where few long sequences fit, a free draft pays up to the last of them.
    free = Speculation(cost=0.0, tokens=4, acceptance=0.9)
    long = speculate(speculation=free, batch_size=1, prompt_tokens=100_000)
    assert long.speculation.break_even_batch == long.largest_batch > 1
    asked = {"speculation": free, "batch_size": 1, "prompt_tokens": 130_000, "check_memory": False}
    for reserve, room, pays in ((0.7, 1, 1), (0.85, 0, None)):
        few = speculate(**asked, reserve=reserve)
        assert (few.largest_batch, few.speculation.break_even_batch) == (room, pays)


def test_it_works_for_arrays_of_points() -> None:
    found = speculate(speculation=DRAFTED, batch_size=[1, 16, 256])
    faster = found.speculation.value("speculative_speedup")
    assert faster.shape == (3,)
    assert "break_even_acceptance" not in found.speculation.to_dict()
    alone = speculate(speculation=DRAFTED).speculation
    assert alone.to_dict()["break_even_acceptance"] == alone.break_even_acceptance
    assert alone.to_dict()["draft"] == "Llama 3.1 8B"
    assert (np.diff(faster) < 0).all()
    assert found[1].speculation.value("speculative_speedup") == pytest.approx(faster[1])
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
    found = speculate(**own, speculation=drafted)
    target, draft = speculate(**own), speculate(model="Llama3_8B", precision="fp8", **asked)
    firsts = [each.value("time_to_first_token") for each in (target, draft)]
    assert found.value("time_to_first_token") == pytest.approx(sum(firsts), rel=1e-12)
    if share:
        whole = speculate(model="Llama3_8B", precision="fp8", estimate=estimate, output_tokens=2)
        assert 0.2 < firsts[1] / whole.value("time_to_first_token") < 0.5
    round_time = 3 * draft.decode_at(2048).value("latency") + found.decode.value("latency")
    assert found.decode.new_tokens == 4
    assert found.value("time_per_output_token") == pytest.approx(round_time / 2.176)
    assert found.load().time == pytest.approx(found.value("generation_latency"))
    assert found.to_dict()["switched_on"]["speculation"].startswith("3 tokens from")


def test_it_explains_a_step_and_says_what_it_needs() -> None:
    found = speculate(speculation=DRAFTED)
    told = str(found.explain("first_token_time"))
    for words in ("round_time", "draft_step_time", "verification_time", "leviathan2023"):
        assert words in told
    with pytest.raises(WrongKindError, match="speculation=Speculation"):
        speculate().speculation  # noqa: B018
    with pytest.raises(DoesNotFitError):
        speculate(model="Llama3_405B", hardware="HGX_A100", speculation=DRAFTED).speculation  # noqa: B018
