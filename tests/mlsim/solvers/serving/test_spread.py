"""Sequences that devices share, and experts that are chosen unevenly."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import answered

from mlsim import Engine, Systems
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.solvers.serving.levels import columns
from mlsim.solvers.serving.serving import Serving

NODE = Systems.HGX_H100
RESULTS = ("time_to_first_token", "time_per_output_token", "memory_required")


def shared(devices: int = 4, **arguments: Any) -> Serving:
    asked = {"model": "Llama3_8B", "hardware": NODE, "prompt_tokens": 1024, "precision": "bf16"}
    return Engine.serve(**{**asked, **arguments}, context_parallel=devices)


def routed(imbalance: Any = 1.0, **arguments: Any) -> Serving:
    asked = {
        "model": "DeepSeek_V3",
        "hardware": "DeepSeek_H800",
        "batch_size": 4096,
        "data_parallel": 32,
        "expert_parallel": 32,
        "check_memory": False,
    }
    return Engine.serve(**{**asked, **arguments}, expert_imbalance=imbalance)


# Context parallelism.


def test_a_sequence_on_one_device_is_as_it_was() -> None:
    one, plain = (
        shared(1),
        Engine.serve(model="Llama3_8B", hardware=NODE, prompt_tokens=1024, precision="bf16"),
    )
    for name in RESULTS:
        assert one.value(name) == plain.value(name)


def test_keys_and_values_go_round_in_prefill_by_hand() -> None:
    found = shared(4).prefill
    # 8 heads of 128, keys and values, 2 bytes: three quarters of 1024 tokens, in 32 layers.
    one_way = 0.75 * 1024 * 2 * 8 * 128 * 2
    assert found.value("total_network_time") == pytest.approx(32 * one_way / 450e9)


def test_queries_go_round_in_decode_by_hand() -> None:
    found = shared(4).decode
    # 32 heads of 128, queries and results.
    one_way = 0.75 * 2 * 32 * 128 * 2
    assert found.value("total_network_time") == pytest.approx(32 * one_way / 450e9)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_the_work_is_divided(devices: int) -> None:
    one, several = shared(1, prompt_tokens=8192), shared(devices, prompt_tokens=8192)
    # The scores of the last token are made once.
    scores = 2 * 4096 * 128_256
    whole = one.prefill.value("total_flops") - scores
    each = several.prefill.value("total_flops") - scores
    assert each * devices == pytest.approx(whole, rel=1e-12)
    assert several.value("cache_memory") * devices == pytest.approx(one.value("cache_memory"))
    assert several.value("weight_memory") == one.value("weight_memory")
    assert several.value("time_to_first_token") < one.value("time_to_first_token")
    # Several times as long a sequence fits, as far as the model reads it.
    assert several.largest_batch > devices * one.largest_batch / 2


def test_decode_reads_a_part_of_the_cache_and_all_weights() -> None:
    one, several = (shared(each, prompt_tokens=100_000) for each in (1, 4))
    weights = one.value("weight_memory") - 128_256 * 4096 * 2
    more = one.decode.value("total_bytes") - several.decode.value("total_bytes")
    cache = one.value("cache_memory")
    assert several.decode.value("total_bytes") > weights
    assert more == pytest.approx(0.75 * cache, rel=0.01)


def test_a_ring_through_nodes_goes_at_the_outer_rate() -> None:
    inside = shared(2, hardware="DGX_H100_SuperPOD")
    across = shared(2, hardware="DGX_H100_SuperPOD", tensor_parallel=8)
    assert not any(each.between_nodes for each in inside.service.table)
    rings = [each for each in across.service.table if "ring" in each.name]
    assert rings
    assert all(each.between_nodes for each in rings)


def test_sequences_that_are_not_shared() -> None:
    for model, why in (
        ("BERT_Large", "is an encoder"),
        ("Nemotron_H_56B", "layers with a state"),
        ("Gemma4_E2B", "cache of an earlier"),
    ):
        with pytest.raises(WrongKindError, match=why):
            shared(2, model=model, prompt_tokens=128, precision=None)
    sizes: tuple[Any, ...] = (0, -1, 1.0, True, "2")
    for size in sizes:
        with pytest.raises(InvalidValueError, match="context_parallel must be a whole number"):
            shared(size)


# Experts that are chosen unevenly.


def test_the_busiest_device_by_hand() -> None:
    even, uneven = routed(), routed(1.5)
    rows = {each["name"]: each for each in even.decode.operators}
    hot = {each["name"]: each for each in uneven.decode.operators}
    for name, row in hot.items():
        factor = 1.5 if name.startswith("experts") else 1.0
        assert row["flops"] == pytest.approx(factor * rows[name]["flops"])
    assert uneven.decode.value("total_network_time") == pytest.approx(
        1.5 * even.decode.value("total_network_time")
    )
    assert uneven.value("memory_required") == even.value("memory_required")


def test_uniform_routing_is_what_a_drawing_of_lots_gives() -> None:
    import numpy as np

    random = np.random.default_rng(0)
    for tokens, tolerance in ((2048, 0.02), (64, 0.1)):
        most = []
        for _ in range(20):
            chosen = random.random((tokens, 256)).argpartition(8, axis=1)[:, :8]
            most.append(np.bincount(chosen.ravel() // 8, minlength=32).max() / (tokens * 8 / 32))
        found = routed("uniform", batch_size=tokens).decode.value("expert_imbalance")
        assert found == pytest.approx(np.mean(most), rel=tolerance)


def test_the_bound_knows_no_imbalance() -> None:
    plain, uneven = (routed(each, estimate="bound") for each in (1.0, 2.0))
    assert plain.value("time_per_output_token") == uneven.value("time_per_output_token")


def test_the_imbalance_is_in_the_answer() -> None:
    assert "by chance" in str(routed("uniform"))
    assert "tokens of the busiest device with experts: 1.5 times the mean" in str(routed(1.5))
    assert shared(4).to_dict()["layout"]["context_parallel"] == 4
    assert "context_parallel" not in routed().to_dict()["layout"]
    assert routed(1.5).to_dict()["expert_imbalance"] == 1.5
    assert "greatest(expert_parallel)" in str(routed("uniform").decode.explain("load_factor"))


def test_an_imbalance_that_cannot_be() -> None:
    assert answered(routed, "serving", "imbalance") == []


def test_what_goes_round_and_what_is_chosen_by_the_row_of_each_operator() -> None:
    """Keys and values of 8 heads of 128, or queries and results of 32; nothing of other rows."""
    service = shared(4, prompt_tokens=1000).service
    found = columns(service, tuple(service.table))
    places = {each.name: at for at, each in enumerate(service.table)}
    ring = places["keys and values round the ring"]
    for name, elements in (("ring_cached_elements", 2048.0), ("ring_query_elements", 8192.0)):
        wanted = [0.0] * len(places)
        wanted[ring] = elements
        assert list(found[name]) == wanted
    uneven = routed(1.5).service
    share = columns(uneven, tuple(uneven.table))["routed_share"]
    chosen = ("experts", "tokens to their experts")
    assert list(share) == [float(each.name.startswith(chosen)) for each in uneven.table]
