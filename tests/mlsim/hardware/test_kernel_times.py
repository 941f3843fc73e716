"""Times of kernels: by hand, and what holds for any constants."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mlsim import Hardware
from mlsim.hardware.device_calibration import expert_constants
from mlsim.hardware.kernel_times import (
    PATHS,
    Rates,
    decode_time,
    exchanged_time,
    experts_time,
    prefill_time,
    product_time,
    state_time,
    tile_time,
)
from mlsim.hardware.lone_kernels import _columns, fastest

RATES = Rates(1e15, 2e12, 128.0)
C = {"compute_fraction": 0.8, "memory_fraction": 0.8}


def product(rows: float, outputs: float, depth: float, path: str = "bf16", **c: float) -> float:
    return product_time(rows, outputs, depth, path=PATHS[path], rates=RATES, c={**C, **c})


def test_a_product_by_hand() -> None:
    """8192 cubed: 4,096 tiles are 32 full rounds, so 1.0995 PFLOP at 0.8 PFLOP/s."""
    computing = 2 * 8192**3 / 0.8e15
    moving = 3 * 2 * 8192**2 / 1.6e12
    assert product(8192.0, 8192.0, 8192.0) == pytest.approx((computing**4 + moving**4) ** 0.25)
    # 16 x 8192 x 8192: 134 MB at 1.6 TB/s are 84 us, whatever the tiles.
    moved = 2 * (16 * 8192 + 8192**2 + 16 * 8192)
    assert product(16.0, 8192.0, 8192.0) == pytest.approx(moved / 1.6e12, rel=1e-3)
    # What is quantized is moved before.
    plain, quantized = (product(64.0, 64.0, 4096.0, "fp8", quantized_bytes=q) for q in (0.0, 4.0))
    assert quantized - plain == pytest.approx(4 * 64 * 4096 / 1.6e12)


ONLY = {"memory_fraction": 1e9, "small_tile_fraction": 1e-3}


def test_a_depth_is_divided_where_cores_are_idle() -> None:
    """One tile of 128 x 128 at depth 8192: in 16 parts of 512, which take as long as one."""
    alone, divided = (product(128.0, 128.0, depth, **ONLY) for depth in (512.0, 8192.0))
    assert divided == pytest.approx(alone)
    late = product(128.0, 128.0, 8192.0, **ONLY, split_start=1e-6)
    assert late - divided == pytest.approx(1e-6 * 15 / 16, rel=1e-6)
    # 129 tiles on 128 cores: two rounds, or 1 + 1/128 + half of 127/128.
    sides = (129 * 128.0, 128.0, 65536.0)
    whole, half = (product(*sides, **ONLY, last_round_share=share) for share in (1.0, 0.5))
    assert half / whole == pytest.approx((129 / 128 + 0.5 * 127 / 128) / 2, rel=1e-3)


def test_bytes_of_a_path_by_hand() -> None:
    """Scales beside 4 bits: a byte for 16 numbers (NVFP4) or 32 (MXFP4), two for 128 (int4)."""
    bytes_of = {
        "bf16": ("bf16", 2, 2),
        "fp8": ("fp8", 1, 1),
        "fp8_block": ("fp8", 1, 1),
        "fp4": ("fp4", 1 / 2 + 1 / 16, 1 / 2 + 1 / 16),
        "int8": ("int8", 1, 1),
        "int8_weights": ("bf16", 2, 1),
        "int4_weights": ("bf16", 2, 1 / 2 + 2 / 128),
        "mxfp4_weights": ("bf16", 2, 1 / 2 + 1 / 32),
        "mxfp4_fp8": ("fp8", 1, 1 / 2 + 1 / 32),
    }
    assert set(bytes_of) == set(PATHS)
    for path, (peak, left, right) in bytes_of.items():
        moved = 96 * 4096 * left + 4096 * 160 * right + 96 * 160 * 2
        found = product(96.0, 160.0, 4096.0, path, compute_fraction=1e9)
        assert found == pytest.approx(moved / 1.6e12), path
        assert PATHS[path].peak == peak


def test_a_small_tile_is_full_where_a_large_one_is_not() -> None:
    """64 x 64 x 512 on one core of 128: half the rate of a full tile, not a quarter of all."""
    only = {"memory_fraction": 1e9, "small_tile_fraction": 0.5}
    computing = 2 * 64 * 64 * 512 / (0.8e15 / 128)
    assert product(64.0, 64.0, 512.0, **only) == pytest.approx(computing / 0.5)
    only["small_tile_fraction"] = 0.2
    assert product(64.0, 64.0, 512.0, **only) == pytest.approx(computing * 4)


def test_three_products_at_once_take_their_cores_and_bytes_by_hand() -> None:
    """128 x 256 x 512, three times: six tiles on 128 cores, three times the bytes, 2 us to start."""
    c = {**C, "memory_fraction": 1e9, "kernel_overhead": 2e-6}
    shape, rest = (128.0, 256.0, 512.0, 128.0), {"path": PATHS["fp8"], "rates": RATES}
    computing = tile_time(*shape, **rest, c=c, products=3.0)
    assert computing == pytest.approx(2e-6 + 2 * 128 * 128 * 512 / (0.8e15 / 128))
    c = {**C, "compute_fraction": 1e9, "quantized_bytes": 4.0}
    moved = 128 * 512 + 512 * 256 + 2 * 128 * 256 + 4 * 128 * 512
    assert tile_time(*shape, **rest, c=c, products=3.0) == pytest.approx(3 * moved / 1.6e12)


def test_a_cache_keeps_half_of_as_many_bytes_as_it_has() -> None:
    """Four times as fast where they stay: 1 - 3/4 / 2 of the time."""
    moved = 2 * (96 * 4096 + 4096 * 160 + 96 * 160)
    cache = {"resident_bytes": float(moved), "cache_speedup": 4.0}
    found = product(96.0, 160.0, 4096.0, compute_fraction=1e9, **cache)
    assert found == pytest.approx(moved / 1.6e12 * 0.625)


LAYER: Any = {"hidden": 4096.0, "width": 2048.0, "chosen": 8.0, "experts_of_layer": 128.0}
LAYER |= {"path": PATHS["bf16"], "rates": RATES}


def experts(tokens: float, devices: float = 1.0, even: float = 0.0, **c: float) -> float:
    constants = {"spread": 1.0, "data_passes": 1e-12, **C, **c}
    return experts_time(tokens, **LAYER, devices=devices, even=even, c=constants)


# FLOP of a row, and bytes of an expert: three matrices of 4096 x 2048.
ROW, EXPERT = 6 * 4096 * 2048, 3 * 4096 * 2048 * 2


def test_even_choices_by_hand() -> None:
    """64 tokens choose 8 of 128 on 4 devices: 128 rows for 32 experts; one pass over their data."""
    computing, weights = 128 * ROW / 0.8e15, 32 * EXPERT / 1.6e12
    data = 2 * 128 * (2 * 4096 + 3 * 2048) / 2e12
    found = experts_time(64.0, **LAYER, devices=4.0, even=1.0, c=C)
    assert found == pytest.approx(data + math.hypot(computing, weights))
    # Half a row for each of 16 devices: the busiest has one, and reads one expert for it.
    one = math.hypot(ROW / 0.8e15, EXPERT / 1.6e12)
    assert experts(1.0, 16.0, even=1.0) == pytest.approx(one)


def test_choices_are_by_chance_unless_they_are_said_to_be_even() -> None:
    """16 tokens choose 8 of 128: 128 rows; an expert is left out by all with (15/16)^16."""
    met = 128 * (1 - (15 / 16) ** 16)
    found = experts_time(16.0, **LAYER, devices=1.0, c={**C, "data_passes": 1e-12})
    assert found == pytest.approx(math.hypot(128 * ROW / 0.8e15, met * EXPERT / 1.6e12))
    # 4 tokens, 64 devices with 2 experts each: at worst 8 rows, though imbalance says 32.
    found = experts(4.0, 64.0, imbalance=1.0, memory_fraction=1e12)
    assert found == pytest.approx(8 * ROW / 0.8e15)
    # One token reads 8 experts: 403 MB at 1.6 TB/s; 8 x 33 rows, 8 x 32 empty.
    computing = 8 * 33 * ROW / 0.8e15
    expected = math.hypot(8 * EXPERT / 1.6e12, computing)
    assert experts(1.0, expert_tile=65.0) == pytest.approx(expected)
    even, uneven = (experts(8192.0, 8.0, memory_fraction=1e9, imbalance=g) for g in (0.0, 0.5))
    assert uneven / even == pytest.approx(8**0.5, rel=0.05)
    # 4096 tokens: 32,768 rows, and 31.5 empty ones for each expert.
    whole, padded = (experts(4096.0, expert_tile=t, memory_fraction=1e12) for t in (1.0, 64.0))
    assert whole == pytest.approx(32768 * ROW / 0.8e15)
    assert padded / whole == pytest.approx((32768 + 128 * 31.5) / 32768)


def test_choices_of_experts_elsewhere_are_passed_by_hand() -> None:
    """1,024 tokens choose 8: 8,192 rows, an eighth of them here; of the others a quarter is passed.

    Each row is 2 x (2 x 4096 + 3 x 2048) bytes, twice over 2 TB/s.
    """
    c = {"data_passes": 2.0, "imbalance": 1e-9}
    none, quarter = (experts(1024.0, 8.0, elsewhere_share=w, **c) for w in (0.0, 0.25))
    row = 2 * (2 * 4096 + 3 * 2048)
    assert quarter - none == pytest.approx(2 * 0.25 * (8192 - 1024) * row / 2e12)
    one = [experts(1024.0, 1.0, elsewhere_share=w, **c) for w in (0.0, 1.0)]
    assert one[0] == pytest.approx(one[1])


# An exchange by a library: half of 100 GB/s, 8 us and 2 more for each further device, 0.7 steps
# of its own part, and up to 6 us more, of which half at a third of 3 MB.
LIBRARY = {
    "link_fraction": 0.5,
    "link_latency": 8e-6,
    "peer_start": 2e-6,
    "own_steps": 0.7,
    "ramp_start": 6e-6,
    "ramp_bytes": 3e6,
}


def test_an_exchange_by_hand() -> None:
    """8 devices, 1 MB: 8 us + 6 x 2, 20 us to send, 0.7 sevenths of 10 us, half of 6 us."""
    found = exchanged_time(8.0, 1e6, 1e11, LIBRARY)
    assert found == pytest.approx(20e-6 + 20e-6 + 1e-6 + 3e-6)
    # At one byte it is 20 us; at 1 TB the start is lost beside 1 TB at 50 GB/s and own parts.
    assert exchanged_time(8.0, 1.0, 1e11, LIBRARY) == pytest.approx(20e-6, rel=1e-3)
    assert exchanged_time(8.0, 1e12, 1e11, LIBRARY) == pytest.approx(20.0 + 1.0, rel=1e-5)
    # Without a mark of bytes all channels are used at once: the root of three quarters of 6 us.
    c = {name: value for name, value in LIBRARY.items() if name != "ramp_bytes"}
    found = exchanged_time(8.0, 3.0, 1e11, c)
    assert found == pytest.approx(20e-6 + 6e-6 * math.sqrt(3 / 4), rel=1e-4)


def test_an_engines_all_reduce_takes_the_shortest_way() -> None:
    """It reads others at 40 GB/s; its library takes up to 60 us more."""
    direct = {**LIBRARY, "direct_fraction": 0.4, "link_latency": 1e-6}
    direct |= {"peer_start": 5e-7, "ramp_start": 6e-5}
    for sent, seconds in (
        # One step: 7 KB of each of 7 others, 1.75 KB x 4 in all, after a start of 4 us.
        (1.75e3, 4e-6 + 4 * 1.75e3 / 4e10),
        # Two steps: a ring's 175 KB and one more start.
        (1.75e5, 4e-6 + 4e-6 + 1.75e5 / 4e10),
        # The library: 17.5 MB at 50 GB/s, 0.7 sevenths of it at 100 GB/s, most of 60 us.
        (1.75e7, 4e-6 + 3.5e-4 + 0.1 * 1.75e-4 + 6e-5 * math.sqrt(17.5 / 20.5)),
    ):
        assert exchanged_time(8.0, sent, 1e11, direct) == pytest.approx(seconds)
    # Of two, one step takes as many bytes as a ring, so the second start never pays.
    assert exchanged_time(2.0, 1e5, 1e11, direct) == pytest.approx(1e-6 + 1e5 / 4e10)


def test_few_heads_wait_for_chunks_and_many_compute_by_hand() -> None:
    """8,192 tokens are 128 chunks of 2 us each; 6 FLOP for each of a head's 16,384 elements."""
    c = {"compute_fraction": 0.05, "scan_step_time": 2e-6, "kernel_overhead": 1e-5}
    for batch, tokens, heads, seconds in (
        (1.0, 8192.0, 4.0, 128 * 2e-6),
        (1.0, 8192.0, 64.0, 8192 * 64 * 16384 * 6 / 0.05e15),
        (8.0, 1024.0, 4.0, 8192 * 4 * 16384 * 6 / 0.05e15),
    ):
        found = state_time(batch, tokens, heads, elements=16384.0, rates=RATES, c=c)
        assert found == pytest.approx(1e-5 + seconds)


# ---- attention ----


def prefill(tokens: float = 2048.0, **given: float) -> float:
    """Return the time of 4 prompts with 32 heads of 128 numbers, and a megabyte of operands."""
    c = {"compute_fraction": 0.5, "data_passes": 1.0}
    width, window = given.pop("width", 128.0), given.pop("window", 1e12)
    moved, cached = given.pop("moved", 1e6), given.pop("cached", 0.0)
    where: Any = {"widths": (width, width), "moved": moved, "cached": cached, "window": window}
    return prefill_time(*(4.0, tokens, 32.0), **where, rates=RATES, c={**c, **given})


def test_attention_over_a_prompt_by_hand() -> None:
    """4 x 32 heads, 2048 x 2049 / 2 pairs, 512 FLOP each: 137.5 GFLOP at 0.5 PFLOP/s."""
    heads, pair, moving = 4 * 32, 512 / 0.5e15, 1e6 / 2e12
    pairs = heads * 2048 * 2049 / 2
    assert prefill() == pytest.approx(pairs * pair + moving)
    assert prefill(exponential_time=1e-12) - prefill() == pytest.approx(pairs * 1e-12)
    # Of 2048 tokens, 128 see fewer than a window of 128: 128 x 2048 - 128 x 127 / 2 pairs.
    narrow = heads * (128 * 2048 - 128 * 127 / 2)
    assert prefill(window=128.0) == pytest.approx(narrow * pair + moving)
    # It is computed with its edge: each query takes 64 tokens more.
    plain, edged = (prefill(window=128.0, edge_tokens=edge) for edge in (0.0, 64.0))
    assert edged - plain == pytest.approx(heads * 64 * 2048 * pair)
    assert prefill(edge_tokens=64.0) == prefill()
    # 1 MB of queries twice and half of keys and values thirty times: 17 MB at 2 TB/s.
    passes = {"data_passes": 2.0, "cache_passes": 30.0}
    counted, alone = (prefill(cached=cached, **passes) for cached in (5e5, 0.0))
    assert counted - alone == pytest.approx(30 * 5e5 / 2e12)
    assert alone - prefill() == pytest.approx(moving)


def test_heads_are_filled_up_to_whole_steps() -> None:
    """A head of 192 numbers in steps of 128 takes as long as one of 256; in steps of 1 it doesn't."""

    def time(width: float, step: float) -> float:
        return prefill(width=width, width_step=step, moved=1.0, data_passes=1e-9)

    assert time(192.0, 128.0) == pytest.approx(time(256.0, 1.0))
    assert time(192.0, 1.0) == pytest.approx(time(256.0, 1.0) * 192 / 256)


def decode(moved: float, pieces: float = 64.0, **given: float) -> float:
    """Return the time of a token each behind 4,096."""
    where = {name: given.pop(name) for name in ("cached", "group", "width") if name in given}
    c = {"compute_fraction": 1.0, "memory_fraction": 0.5, **given}
    return decode_time(pieces, 4096.0, 0.0, moved, rates=RATES, c=c, **where)


def test_attention_of_one_token_by_hand() -> None:
    """64 pieces, 4096 tokens: two parts each, one round of 1 us and 2048 tokens of 1 ns."""
    found = decode(4e6, task_time=1e-6, token_time=1e-9, least_context=512.0)
    assert found == pytest.approx(math.hypot(4e6 / 1e12, 1e-6 + 2048e-9))
    # Tokens of 64 numbers take half the time of 128.
    wide, narrow = (decode(1e-9, token_time=1e-9, width=width) for width in (128.0, 64.0))
    assert (wide, narrow) == pytest.approx((2048e-9, 1024e-9))
    # A cache that is converted before takes passes of its own: 1 GB ten times at 2 TB/s.
    plain, converted = (decode(1e9, cached=1e9, converted_passes=p) for p in (0.0, 10.0))
    assert converted - plain == pytest.approx(10e9 / 2e12)
    # 40 MB of 10 MB lose 4/5 of 5 us; many bytes lose all of it and few next to nothing.
    c = {"longest_filling": 5e-6, "filling_bytes": 1e7}
    lost = [decode(moved, 256.0, **c) - decode(moved, 256.0) for moved in (4e7, 1e12, 1e3)]
    assert lost[:2] == [pytest.approx(4e-6), pytest.approx(5e-6, rel=1e-4)]
    assert lost[2] < 1e-9


def test_one_query_a_head_may_have_a_kernel_of_its_own() -> None:
    """Alone it has the lone constants, in any group the others; queries of a group cost each."""
    shared = {"memory_fraction": 0.8, "kernel_overhead": 1e-6, "task_time": 1e-6}
    lone = {"memory_fraction": 0.4, "kernel_overhead": 3e-6, "task_time": 2e-6}
    c = {"token_time": 1e-9, "lone_token_time": 2e-9, **shared}
    c |= {f"lone_{name}": value for name, value in lone.items()}
    own = {"token_time": 2e-9, **lone}
    assert decode(1e8, **c, group=1.0) == pytest.approx(decode(1e8, **own))
    assert decode(1e8, **c, group=2.0) == decode(1e8, **c, group=16.0)
    eight, many = (decode(1e-9, **own, query_time=1e-7, group=group) for group in (8.0, 24.0))
    assert many - eight == pytest.approx(16 * 1e-7)


# ---- whose kernel ----


def test_an_engine_answers_on_sides_that_it_was_timed_with() -> None:
    """FP8 in blocks on an H100: vLLM from 32 rows and 64 columns up, others from 1 and 128."""
    shapes = [(1.0, 4096.0), (64.0, 64.0), (8192.0, 8192.0)]
    ask: dict[str, Any] = {"device": Hardware.Cloud.H100, "path": "fp8_block", "products": 1.0}
    alone = [fastest(**ask, rows=m, outputs=n, depth=4096.0) for m, n in shapes]
    assert "vllm" not in alone[0].words.lower()
    assert "vllm" in alone[1].words.lower()
    rows, outputs = np.array(shapes).T
    many = fastest(**ask, rows=rows, outputs=outputs, depth=4096.0).columns
    for name, values in many.items():
        assert list(values) == [each.columns[name] for each in alone], name


def test_what_a_series_lacks_changes_nothing() -> None:
    """A share of one, no start, no bytes; the small tile reaches 0.7 of 0.5."""
    known = {"compute_fraction": 0.5, "memory_fraction": 0.6, "small_tile_fraction": 0.7}
    series: Any = SimpleNamespace(values=known, cores=132)
    assert _columns(series, 64.0) == {
        "last_round_share": 1,
        "depth_start": 0,
        "split_start": 0,
        "kernel_overhead": 0,
        "resident_bytes": 1,
        "cache_speedup": 1,
        "quantized_element_bytes": 0,
        "compute_fraction": 0.35,
        "memory_fraction": 0.6,
        "tile_size": 64,
        "device_cores": 132,
    }


def test_experts_are_whole_unless_they_are_said_to_be_sliced() -> None:
    """vLLM's kernel for blocks of FP8 on Hopper was timed on whole ones only."""
    asked = ("Cloud.H200", "vllm", "fp8", "fp8")
    assert expert_constants(*asked) == expert_constants(*asked, sliced=False)
    assert expert_constants(*asked) != expert_constants(*asked, sliced=True)


def test_whose_experts_count() -> None:
    """The engine's own, else the first that was measured; a path before an engine."""
    for device, engine, wide, sliced, words in (
        ("H100", "trtllm", "bf16", False, "bf16 of trtllm"),
        ("H100", "sglang", "bf16", True, "bf16 of sglang"),
        ("H100", "somebody", "bf16", False, "bf16 of vllm"),
        ("H200", "vllm", "fp8", True, "fp8_block of trtllm"),
        ("L40S", "sglang", "fp8", False, "fp8_block of vllm"),
        ("RTXPRO6000_Server", "vllm", "fp8", False, "fp8_block of trtllm"),
    ):
        _, told, _ = expert_constants(f"Cloud.{device}", engine, wide, wide, sliced=sliced)
        assert told.startswith(f"fitted to experts in {words}; "), (device, engine)
    # Half of each of two siblings; of another class there are none.
    lent, *own = (
        expert_constants(f"Cloud.{each}", "vllm", "bf16", "bf16")
        for each in ("H100_PCIe", "H100", "H200")
    )
    for name, value in lent[0].items():
        assert value == pytest.approx(sum(each[0][name] for each in own) / 2)
    assert expert_constants("Cloud.MI300X", "vllm", "bf16", "bf16") is None
    assert expert_constants("Cloud.A100", "vllm", "fp8", "fp8") is None
    # A program's own path goes before that of its formats.
    found = expert_constants("Cloud.H100", "vllm", "fp8", "fp8", "int4_weights")
    assert "in int4_weights of vllm" in found[1]
