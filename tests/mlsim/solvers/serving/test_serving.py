"""A service, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest
from language_models import tiny
from services import COMPUTE, MEMORY, NETWORK, PAIR, TINY, by_hand

from mlsim import Engine
from mlsim.workloads.blocks import Experts

# By hand.


def test_prefill_by_hand() -> None:
    """Two prompts of 3 tokens: 6 tokens, 2 x 6 pairs, 2 B a number.

                          FLOP                bytes                           longer   times
    embedding             0                   2 x 8 x 6            =  96       2.40 s   2.40
    norms                 0                   2 x (4 + 8 x 6)      = 104       2.60 s  13.00
    queries, keys, values 2 x 32 x 6 = 384    2 x (32 + 8 x 6)     = 160       4.00 s   8.00
    attention             2 x 8 x 12 = 192    2 x 8 x 6 + 2 x 4 x (3 + 3) x 2
                                                                   = 192       4.80 s   9.60
    attention output      2 x 16 x 6 = 192    2 x (16 + 12 x 6)    = 176       4.40 s   8.80
    feed-forward, up      2 x 48 x 6 = 576    2 x (48 + 10 x 6)    = 216       5.76 s  11.52
    feed-forward, down    2 x 24 x 6 = 288    2 x (24 + 14 x 6)    = 216       5.40 s  10.80
    output layer          2 x 40 x 2 = 160    2 x (40 + 14 x 2)    = 136       3.40 s   3.40

    Only "up" computes for longer than it moves bytes.
    """
    serving = by_hand()
    prefill = serving.prefill
    rows = {row["name"]: row for row in prefill.operators}
    assert {name: (row["flops"], row["bytes_moved"]) for name, row in rows.items()} == {
        "embedding": (0, 96),
        "norms": (0, 104),
        "queries, keys, values": (384, 160),
        "attention": (192, 192),
        "attention output": (192, 176),
        "feed-forward, up": (576, 216),
        "feed-forward, down": (288, 216),
        "output layer": (160, 136),
    }
    assert {row["name"] for row in rows.values() if row["bound"] == "compute"} == {
        "feed-forward, up"
    }
    assert prefill.value("latency") == pytest.approx(67.52, rel=1e-12)
    assert prefill.latency.to("s").magnitude == pytest.approx(67.52, rel=1e-12)
    assert serving.time_to_first_token.to("s").magnitude == pytest.approx(67.52, rel=1e-12)
    # 2 x (384 + 192 + 192 + 576 + 288) + 160 FLOP, as the model counts for two prompts.
    assert prefill.value("total_flops") == 3424 == 2 * TINY.flop_count(3)
    assert prefill.value("total_bytes") == 96 + 5 * 104 + 2 * (160 + 192 + 176 + 216 + 216) + 136
    assert prefill.bottleneck == MEMORY
    assert prefill.shares == pytest.approx({MEMORY: 56 / 67.52, COMPUTE: 11.52 / 67.52, NETWORK: 0})


def test_decode_by_hand() -> None:
    """Two sequences with c tokens cached; the new one meets c + 1.

                          bytes                                             times repeats
    embedding             2 x 8 x 2 = 32                                      0.8 s
    norms                 2 x (4 + 8 x 2) = 40                                5.0 s
    queries, keys, values 2 x (32 + 8 x 2) = 96                               4.8 s
    attention             2 x 8 x 2 + 2 x 4 x (c + 1 + 1) x 2 = 64 + 16 c     3.2 s + 0.8 c
    attention output      2 x (16 + 12 x 2) = 80                              4.0 s
    feed-forward, up      2 x (48 + 10 x 2) = 136                             6.8 s
    feed-forward, down    2 x (24 + 14 x 2) = 104                             5.2 s
    output layer          2 x (40 + 14 x 2) = 136                             3.4 s

    33.2 s + 0.8 c: the two steps, with 3 and with 4 cached, take 36.0 s on average.
    """
    serving = by_hand()
    for cached in (1, 3, 4, 20):
        step = serving.decode_at(cached)
        assert step.value("latency") == pytest.approx(33.2 + 0.8 * cached, rel=1e-12)
        assert step.value("total_flops") == 2 * TINY.flop_count(1, cached)
        assert step.bottleneck == MEMORY
    assert serving.value("first_token_time") == pytest.approx(35.6, rel=1e-12)
    assert serving.value("middle_token_time") == pytest.approx(36.0, rel=1e-12)
    assert serving.value("last_token_time") == pytest.approx(36.4, rel=1e-12)
    assert serving.decode.value("latency") == serving.value("middle_token_time")
    assert serving.time_per_output_token.to("s").magnitude == pytest.approx(36.0, rel=1e-12)
    # The prompt's pass makes the first token, two steps the others.
    assert serving.latency.to("s").magnitude == pytest.approx(67.52 + 2 * 36.0, rel=1e-12)
    assert serving.user_token_rate == pytest.approx(1 / 36, rel=1e-12)
    assert serving.decode_throughput == pytest.approx(2 / 36, rel=1e-12)
    assert serving.value("output_throughput") == pytest.approx(6 / 139.52, rel=1e-12)
    assert serving.bottleneck == {"prefill": MEMORY, "decode": MEMORY}


def test_bound_by_hand() -> None:
    """All work, or weights in use and the cache only.

    Weights read: 2 x (5 x 4 + 2 x 120 + 40) = 600 B. Prefill: the cache of 6
    tokens is written, 2 x 2 x 4 x 6 = 96 B: 696 B or 17.4 s, less than 34.24 s
    of work. Decode with c cached: 2 x 2 x 4 x (c + 1) x 2 = 32 (c + 1) B read
    and written; 2 x (560 + 32 (c + 1)) FLOP.
    """
    serving = by_hand(estimate="bound")
    assert serving.prefill.value("total_bytes") == 696
    assert serving.value("time_to_first_token") == pytest.approx(34.24, rel=1e-12)
    assert serving.prefill.bottleneck == COMPUTE
    assert serving.prefill.shares == {MEMORY: 0.0, COMPUTE: 1.0, NETWORK: 0.0}
    assert serving.decode.shares == {MEMORY: 1.0, COMPUTE: 0.0, NETWORK: 0.0}
    step = serving.decode_at(3)
    assert step.value("total_flops") == 1376
    assert step.value("total_bytes") == 728
    assert step.value("latency") == pytest.approx(18.2, rel=1e-12)
    assert serving.time_per_output_token.to("s").magnitude == pytest.approx(18.6, rel=1e-12)
    assert serving.bottleneck == {"prefill": COMPUTE, "decode": MEMORY}


def test_memory_by_hand() -> None:
    """340 parameters of 2 B; 6 tokens in two blocks of 4; 6 tokens of 20 elements alive.

    cache        2 x 2 layers x 4 x 8 tokens x 2 B = 256
    activations  2 x (20 x 6 + 10 scores x 2) = 280
    A tenth of 2,000 B is kept.
    """
    serving = by_hand()
    memory = {name: each.to("B").magnitude for name, each in serving.memory.items()}
    assert memory == pytest.approx(
        {"weight_memory": 680, "cache_memory": 256, "activation_memory": 280, "memory_free": 584}
    )
    assert serving.value("memory_required") == 1216
    assert serving.value("usable_memory") == 1800
    assert serving.value("cache_tokens") == 8
    assert serving.value("cache_per_sequence") == 128
    assert serving.value("cache_bytes_per_token") == 16
    assert serving.feasible
    # (1,800 - 680) / (128 + 20 + 120) = 4.2 sequences.
    assert serving.largest_batch == 4
    # 1,800 - 680 - 2 x 20 of scores: 540 for each. Three blocks of four tokens take 12 x 16 B,
    # which leaves 348 for 40 B of activations: 8 tokens of a prompt, and 3 of the output.
    assert serving.longest_context == 11


def test_tensor_parallel_by_hand() -> None:
    """Two devices, each with one head, three features inside, five tokens; 8 B/s between.

    Decode of two sequences with c cached, bytes of each device:
        embedding 32, norms 5 x 40, queries 2 x (24 + 6 x 2) = 72, attention
        2 x 4 x 2 + 16 (c + 2), output 2 x (8 + 10 x 2) = 56, up 2 x (24 + 7 x 2)
        = 76, down 2 x (12 + 11 x 2) = 68, output layer 2 x (20 + 9 x 2) = 76:
        23.7 s + 0.8 c.
    Five times 2 x 4 x 2 B are added up over both, 2 s each; of ten scores half
    is sent: 2 x 5 x 2 B, 2.5 s.
    """
    serving = by_hand(hardware=PAIR, tensor_parallel=2)
    step = serving.decode_at(3)
    assert step.value("total_network_time") == pytest.approx(12.5, rel=1e-12)
    assert step.value("latency") == pytest.approx(23.7 + 0.8 * 3 + 12.5, rel=1e-12)
    assert serving.time_per_output_token.to("s").magnitude == pytest.approx(39.0, rel=1e-12)
    assert step.shares == pytest.approx({MEMORY: 26.1 / 38.6, COMPUTE: 0.0, NETWORK: 12.5 / 38.6})
    # Embedding and output layer halved; 24 + 8 + 24 + 12 of each layer; all norms.
    assert serving.value("weight_memory") == 2 * (20 + 20 + 2 * 68 + 5 * 4)
    # Both devices hold the one key and value.
    assert serving.value("cache_memory") == 256
    # The bound sends nothing.
    bound = by_hand(hardware=PAIR, tensor_parallel=2, estimate="bound")
    assert bound.decode_at(3).value("latency") == pytest.approx(
        (2 * (5 * 4 + 2 * 68 + 20) + 2 * 2 * 4 * 4 * 2) / 40, rel=1e-12
    )


def test_pipeline_parallel_by_hand() -> None:
    """Two stages with a sequence each in turn; the way through both.

    Decode with c cached: embedding 0.4 s, norms 3.0, queries 4.0, attention
    1.6 + 0.4 c, output 2.8, up 5.8, down 3.8, output layer 2.7; and one vector
    of 8 B between the stages, 1 s.
    Prefill of 3 tokens: 1.2 + 7.0 + 5.6 + 4.8 + 5.2 + 7.8 + 6.6 + 2.7, and
    24 B, 3 s: 43.9 s. The second sequence follows half a way behind.
    """
    serving = by_hand(hardware=PAIR, pipeline_parallel=2)
    assert serving.prefill.value("device_batch") == 1
    assert serving.prefill.value("micro_batches") == 2
    assert serving.decode_at(3).value("latency") == pytest.approx(25.1 + 0.4 * 3, rel=1e-12)
    assert serving.time_per_output_token.to("s").magnitude == pytest.approx(26.5, rel=1e-12)
    assert serving.prefill.value("latency") == pytest.approx(43.9, rel=1e-12)
    assert serving.value("time_to_first_token") == pytest.approx(43.9 * 3 / 2, rel=1e-12)
    # While one stage works on one sequence, the other works on the other.
    assert serving.decode_throughput == pytest.approx(2 / 26.5, rel=1e-12)
    # One layer, half of the five norms, and the output layer: 120 + 10 + 40.
    assert serving.value("weight_memory") == 2 * 170
    # One layer's cache of both sequences.
    assert serving.value("cache_memory") == 128
    assert serving.value("activation_memory") == 2 * (20 * 3 + 10)


def test_a_load_by_hand() -> None:
    """What is worked and moved at full rate, over the time of the estimate; 6 tokens.

    Work of 34.24 s and two steps of 14.08 s, of stages half of each; traffic of 2,672 B and twice
    1,440 B, or of the bound 696 B and twice 744 B, at 40 B/s.
    """
    stages = {"hardware": PAIR, "pipeline_parallel": 2}
    for asked, time, work, traffic in (
        ({}, 139.52, 62.4, 66.8 + 72),
        ({"estimate": "bound"}, 71.44, 62.4, 17.4 + 37.2),
        (stages, 43.9 * 1.5 + 53, 31.2, None),
    ):
        load = by_hand(**asked).load()
        assert load.time == pytest.approx(time)
        assert load.compute_utilisation == pytest.approx(work / time)
        if traffic:
            assert load.memory_utilisation == pytest.approx(traffic / time)
        assert (load.tokens, load.label) == (6, "Tiny, 2 x (3 + 3) tokens")
    assert load.devices == 2


def test_data_parallel_by_hand() -> None:
    """Two copies with one sequence each: as one device with one."""
    both, one = by_hand(hardware=PAIR, data_parallel=2), by_hand(batch_size=1)
    assert both.value("time_per_output_token") == one.value("time_per_output_token")
    assert both.value("time_to_first_token") == one.value("time_to_first_token")
    assert both.decode_throughput == pytest.approx(2 * one.decode_throughput)
    assert both.value("memory_required") == one.value("memory_required")
    assert both.largest_batch == 2 * one.largest_batch


def test_experts_by_hand() -> None:
    """Four experts of 3, two for each token, in both layers, for two sequences.

    Two tokens miss an expert with chance (1 - 2/4)^2 = 1/4: 3/4 of 96 and of 48
    parameters are read. Router 2 x (16 + 8 x 2) = 64 B, 1.6 s, twice; up
    2 x (72 + 10 x 2) = 184 B, 4.6 s; down 2 x (36 + 14 x 2) = 128 B, 3.2 s.
    Without the feed-forward network the rest takes 21.2 s + 0.8 c.
    """
    model = tiny(experts=Experts(count=4, per_token=2, size=3), feed_forward=None)
    serving = by_hand(model=model)
    step = serving.decode_at(3)
    assert step.value("expert_share") == 0.75
    assert step.value("latency") == pytest.approx(21.2 + 2.4 + 2 * (1.6 + 4.6 + 3.2), rel=1e-12)
    alone = by_hand(model=model, batch_size=1)
    assert alone.decode_at(3).value("expert_share") == 0.5
    assert by_hand(model=model, estimate="bound").decode.value("expert_share") == 0.5


def test_an_encoder_by_hand() -> None:
    """Two texts of 3 tokens, without an output layer: 9 pairs each, no cache.

    Attention works 2 x 8 x 18 = 288 FLOP and moves 2 x 12 x 6 = 144 B: 3.6 s;
    keys and values written take queries 2 x (32 + 12 x 6) = 208 B: 5.2 s.
    """
    what = {"model": tiny(decoder=False, output_layer=False), "output_tokens": None}
    serving = by_hand(**what)
    expected = 2.4 + 13.0 + 2 * (5.2 + 3.6 + 4.4 + 5.76 + 5.4)
    assert serving.latency.to("s").magnitude == pytest.approx(expected, rel=1e-12)
    assert serving.time_to_first_token == serving.latency
    assert serving.value("cache_memory") == 0
    assert serving.value("memory_required") == 2 * (300 + 20 * 6)
    # (1,800 - 600) / (2 x 20 x 3) texts fit; it has no chunks.
    assert serving.largest_batch == 10
    assert by_hand(**what, chunk_tokens=1).largest_batch == 10
    assert by_hand(**what, hardware=PAIR, data_parallel=2).largest_batch == 20
    load = serving.load()
    assert (load.tokens, load.label) == (6, "Tiny, 2 x (3) tokens")
    assert load.compute_utilisation == pytest.approx(
        2 * what["model"].flop_count(3) / 100 / expected
    )


# Llama 2 7B on one device, as a reader would reckon.


def test_what_a_program_adds_to_each_operator() -> None:
    """PyTorch starts three kernels of attention and writes its scores: of 32 heads, or 128 / 8.

    A compiled program has seven kernels of latent attention. Devices that send start none.
    """
    asked: dict[str, Any] = {"prompt_tokens": 1000, "output_tokens": 10, "estimate": "calibrated"}
    eight = {"model": "DeepSeek_V3", "hardware": "HGX_H200", "tensor_parallel": 8}
    for layout, program, kernels, heads in (
        ({"model": "Llama3_8B", "hardware": "H100"}, "eager", 3.0, 32.0),
        (eight, "eager", 1.0, 16.0),
        (eight, "torch_engine", 7.0, None),
    ):
        service = Engine.serve(**asked, **layout, software=program).service
        extra, table = service.table.extra, service.table
        started = dict(zip((each.name for each in table), extra["launches"], strict=True))
        assert (started["attention"], started["norms"]) == (kernels, 1)
        assert {started[each.name] for each in table if each.link_group} <= {0.0}
        if heads:
            scores = [heads if each.kind == "attention" else 0.0 for each in table]
            assert list(extra["scores_per_pair"]) == scores


def test_causes_are_those_of_the_step_that_decides_and_a_library_is_no_graph() -> None:
    asked = {"model": "Llama3_8B", "hardware": "H100", "estimate": "calibrated"}
    serving = Engine.serve(**asked, software="early_engine")
    assert serving.prefill.causes != serving.decode.causes
    assert serving.causes_behind("time_to_first_token") == serving.prefill.causes
    assert serving.causes_behind("time_per_output_token") == serving.decode.causes
    why = serving.decode.explain("bottleneck")
    assert (why.about, why.shares) == (serving.decode.about, serving.decode.causes)
    reader = Engine.serve(**{**asked, "model": "BERT_Base"})
    assert reader.causes_behind("latency") == reader.prefill.causes
    assert not serving.service.in_graph
    assert Engine.serve(**asked, software="engine").service.in_graph
    assert by_hand().service.in_graph
