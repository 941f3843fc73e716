"""What is switched on in a service: by hand, at its limits, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlsim import Engine, LoRA, Models, QLoRA
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError, WrongKindError
from mlsim.workloads import Offload, Speculation

PLAIN: dict[str, Any] = {
    "model": "Llama3_8B",
    "hardware": "H100",
    "batch_size": 8,
    "prompt_tokens": 1024,
    "output_tokens": 128,
}
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


def test_decode_is_as_without_a_prefix() -> None:
    assert serve(prefix_share=0.75).value("time_per_output_token") == serve().value(
        "time_per_output_token"
    )


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


def test_the_longest_context_beside_a_shared_prefix_is_the_last_that_fits() -> None:
    asked = {"batch_size": 64, "prefix_count": 1}
    longest = serve(**asked, prefix_share=0.5).longest_context
    assert longest > serve(batch_size=64).longest_context

    def fits(tokens: int) -> bool:
        # The prefix stays as long as it is: 512 tokens.
        found = serve(**asked, prompt_tokens=tokens - 128, prefix_share=512 / (tokens - 128))
        return bool(found.feasible)

    assert fits(longest)
    assert not fits(longest + 16)


def test_a_whole_prompt_in_the_cache_leaves_one_token() -> None:
    found = serve(prefix_share=1.0)
    assert found.value("prefix_tokens") == 1023
    assert found.prefill.value("total_flops") == 8 * Models.Llama3_8B.flop_count(1, 1023)


def test_the_larger_the_share_the_sooner_the_first_token() -> None:
    shares = np.linspace(0.0, 1.0, 11)
    times = serve(prefix_share=shares).value("time_to_first_token")
    assert times.shape == (11,)
    assert (np.diff(times) < 0).all()
    assert times[0] == pytest.approx(serve().value("time_to_first_token"))
    assert serve(prefix_share=shares)[5].value("time_to_first_token") == pytest.approx(times[5])


def test_a_window_shares_only_what_it_still_holds() -> None:
    asked = {"model": "Mistral_7B", "prompt_tokens": 8000, "prefix_share": 0.25}
    # Mistral 7B sees 4,096 tokens: at the end of 8,128, nothing of the first 2,000 is left.
    assert serve(**asked, prefix_count=1).value("cache_saved") == 0


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


def test_an_endless_link_only_frees_memory() -> None:
    fast = serve(offload=Offload(weights=0.5), host_link_bandwidth="1e9 TB/s")
    assert fast.value("time_per_output_token") < serve().value("time_per_output_token")
    slow = [
        serve(offload=Offload(weights=0.5), host_link_bandwidth=f"{rate} GB/s").value(
            "time_per_output_token"
        )
        for rate in (16, 32, 64)
    ]
    assert slow == sorted(slow, reverse=True)


def test_what_did_not_fit_fits() -> None:
    asked = {"model": "Llama3_70B", "batch_size": 1}
    with pytest.raises(DoesNotFitError):
        serve(**asked).time_to_first_token  # noqa: B018
    assert serve(**asked, offload=Offload(weights=0.6)).feasible


def test_the_bound_is_the_least() -> None:
    offload = Offload(weights=0.3, cache=0.6)
    bound, roofline = (
        serve(offload=offload, estimate=estimate).value("time_per_output_token")
        for estimate in ("bound", "roofline")
    )
    assert bound <= roofline


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


def test_the_bound_reads_one_adapter() -> None:
    found = serve(adapters=LoRA(rank=16), adapter_count=100, estimate="bound")
    assert found.decode.value("distinct_adapters") == 1


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


def test_calibrated_answers_with_switches_have_no_band() -> None:
    assert serve(estimate="calibrated").band() is not None
    assert serve(estimate="calibrated", prefix_share=0.5).band() is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"prefix_share": 1.5}, "at most 1"),
        ({"prefix_share": -0.1}, "positive"),
        ({"prefix_share": float("nan")}, "positive"),
        ({"prefix_share": True}, "positive"),
        ({"prefix_share": "half"}, "not the text"),
        ({"prefix_share": "trace"}, "Engine.load"),
        ({"prefix_share": [0.1, 0.2], "batch_size": [1, 2, 3]}, "broadcast"),
        ({"prefix_count": 3}, "prefix_share above 0"),
        ({"prefix_share": 0.5, "prefix_count": 0}, "whole number from 1"),
        ({"prefix_share": 0.5, "prefix_count": 1.5}, "whole number from 1"),
        ({"offload": 0.3}, "is an Offload"),
        ({"host_link_bandwidth": "64 GB/s"}, "only with offload"),
        ({"offload": Offload(cache=0.1), "host_link_bandwidth": "0 GB/s"}, "positive"),
        ({"offload": Offload(cache=0.1), "hardware": "M1"}, "no link"),
        (
            {
                "model": "bert_large",
                "output_tokens": None,
                "prompt_tokens": 128,
                "prefix_share": 0.5,
            },
            "encoder",
        ),
        ({"adapters": 16}, "LoRA"),
        ({"adapters": QLoRA(rank=16)}, "way to train"),
        ({"adapter_count": 3}, "needs adapters"),
        ({"adapters": LoRA(rank=16), "adapter_count": 0}, "whole number from 1"),
        ({"adapters": LoRA(rank=16), "model": "Mixtral_8x7B", "check_memory": False}, "experts"),
        ({"adapters": LoRA(rank=5000)}, "at most 1,024"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidValueError, WrongKindError, UnknownNameError), match=words):
        serve(**given)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Offload(cache=1.1), "share from 0 to 1"),
        (lambda: Offload(weights=-0.1), "share from 0 to 1"),
        (lambda: Offload(overlap=float("nan")), "share from 0 to 1"),
        (lambda: Speculation(tokens=0, acceptance=0.5, cost=0.1), "whole number from 1"),
        (lambda: Speculation(tokens=2.5, acceptance=0.5, cost=0.1), "whole number from 1"),  # type: ignore[arg-type]
        (lambda: Speculation(tokens=4, acceptance=1.5, cost=0.1), "share from 0 to 1"),
        (lambda: Speculation(tokens=4, acceptance=0.5), "neither"),
        (lambda: Speculation(tokens=4, acceptance=0.5, cost=0.1, draft="Llama3_8B"), "both"),
        (lambda: Speculation(tokens=4, acceptance=0.5, cost=1.0), "below 1"),
        (lambda: Speculation(tokens=4, acceptance=0.5, cost=0.1, precision="fp8"), "leave it"),
    ],
)
def test_a_switch_that_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises((InvalidValueError, WrongKindError), match=words):
        make()
