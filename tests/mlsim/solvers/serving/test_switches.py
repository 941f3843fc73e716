"""What is switched on in a service: by hand, at its limits, and what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from refusals import answered

from mlsim import Engine, LoRA, Models, QLoRA
from mlsim.errors import UnknownNameError, WrongKindError
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


def test_sequences_that_share_a_prefix_keep_it_once() -> None:
    token = 131_072  # bytes of cache of a token in all 32 layers
    own, shared = serve(prefix_share=0.5), serve(prefix_share=0.5, prefix_count=1)
    assert own.value("cache_memory") == 8 * 1152 * token
    assert shared.value("cache_memory") == (512 + 8 * 640) * token
    two = serve(prefix_share=0.5, prefix_count=2)
    assert two.value("cache_memory") == (2 * 512 + 8 * 640) * token
    # As many prefixes as sequences, or more: nothing is shared.
    assert serve(prefix_share=0.5, prefix_count=50).value("cache_memory") == own.value(
        "cache_memory"
    )


@pytest.mark.parametrize("count", [1, 40, 10_000])
def test_the_largest_sharing_batch_is_the_last_that_fits(count: int) -> None:
    asked = serve(prefix_share=0.9, prefix_count=count)
    most = asked.largest_batch
    assert most >= serve(prefix_share=0.9).largest_batch
    fits = serve(prefix_share=0.9, prefix_count=count, batch_size=most)
    assert fits.feasible
    assert not serve(prefix_share=0.9, prefix_count=count, batch_size=most + 1).feasible


def test_a_whole_prompt_in_the_cache_leaves_one_token() -> None:
    found = serve(prefix_share=1.0)
    assert found.value("prefix_tokens") == 1023
    assert found.prefill.value("total_flops") == 8 * Models.Llama3_8B.flop_count(1, 1023)


# Offload.


def test_offloaded_weights_come_over_the_link_in_each_step() -> None:
    found = serve(batch_size=1, offload=Offload(weights=0.25))
    whole = serve(batch_size=1)
    read = sum(
        each["repeats"] * (each["bytes_moved"] if each["kind"] == "projection" else 0)
        for each in whole.decode.operators
    )
    assert found.value("host_link_bandwidth") == 64e9  # 128 GB/s of PCIe 5.0 count both ways
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


def test_an_answer_tells_what_is_switched_on() -> None:
    found = serve(
        prefix_share=0.5,
        prefix_count=1,
        offload=Offload(cache=0.25),
        adapters=LoRA(rank=8),
        adapter_count=3,
    )
    told = found.to_dict()["switched_on"]
    assert set(told) == {"prefix", "offload", "adapters"}
    text = str(found)
    for words in (*told.values(), "on the host"):
        assert words in text
    assert "host_link_bandwidth" in str(found.decode.explain("latency"))
    assert found.band("time_per_output_token") is None


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


def test_calibrated_answers_with_switches_have_no_band() -> None:
    assert serve(estimate="calibrated").band() is not None
    assert serve(estimate="calibrated", prefix_share=0.5).band() is None


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
