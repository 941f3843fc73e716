"""Times of attention: by hand, and what holds for any constants."""

from __future__ import annotations

import math

import pytest

from mlsim.hardware.attention_times import decode_time, prefill_time
from mlsim.hardware.kernel_times import Rates

RATES = Rates(1e15, 2e12, 128.0)


def prefill(tokens: float, window: float = 1e12, **c: float) -> float:
    widths, constants = (128.0, 128.0), {"compute_fraction": 0.5, "data_passes": 1.0, **c}
    return prefill_time(
        *(4.0, tokens, 32.0), widths=widths, moved=1e6, rates=RATES, c=constants, window=window
    )


def test_attention_over_a_prompt_by_hand() -> None:
    """4 x 32 heads, 2048 x 2049 / 2 pairs, 512 FLOP each: 137.5 GFLOP at 0.5 PFLOP/s."""
    pairs = 4 * 32 * 2048 * 2049 / 2
    assert prefill(2048.0) == pytest.approx(pairs * 512 / 0.5e15 + 1e6 / 2e12)
    slow = prefill(2048.0, exponential_time=1e-12)
    assert slow - prefill(2048.0) == pytest.approx(pairs * 1e-12)


def test_a_window_saves_pairs() -> None:
    """Of 2048 tokens, 128 see fewer than 128: 128 x 2048 - 128 x 127 / 2 pairs."""
    pairs = 4 * 32 * (128 * 2048 - 128 * 127 / 2)
    assert prefill(2048.0, 128.0) == pytest.approx(pairs * 512 / 0.5e15 + 1e6 / 2e12)


def test_attention_of_one_token_by_hand() -> None:
    """64 pieces, 4096 tokens: two parts each, one round of 1 us and 2048 tokens of 1 ns."""
    c = {"compute_fraction": 1.0, "memory_fraction": 0.5, "task_time": 1e-6, "token_time": 1e-9}
    found = decode_time(64.0, 4096.0, 0.0, 4e6, rates=RATES, c={**c, "least_context": 512.0})
    assert found == pytest.approx(math.hypot(4e6 / 1e12, 1e-6 + 2048e-9))


def test_keys_and_values_cross_the_memory_as_often_as_is_said() -> None:
    """1 MB of queries twice and half of keys and values thirty times: 17 MB at 2 TB/s."""
    counted, alone = (
        prefill_time(
            *(4.0, 2048.0, 32.0),
            widths=(128.0, 128.0),
            moved=1e6,
            cached=cached,
            rates=RATES,
            c={"compute_fraction": 0.5, "data_passes": 2.0, "cache_passes": 30.0},
        )
        for cached in (5e5, 0.0)
    )
    assert counted - alone == pytest.approx(30 * 5e5 / 2e12)


def test_heads_are_filled_up_to_whole_steps() -> None:
    """A head of 192 numbers in steps of 128 takes as long as one of 256; in steps of 1 it doesn't."""

    def time(width: float, step: float) -> float:
        c = {"compute_fraction": 0.5, "data_passes": 1e-9, "width_step": step}
        return prefill_time(
            *(4.0, 2048.0, 32.0), widths=(width, width), moved=1.0, rates=RATES, c=c
        )

    assert time(192.0, 128.0) == pytest.approx(time(256.0, 1.0))
    assert time(192.0, 1.0) == pytest.approx(time(256.0, 1.0) * 192 / 256)


def test_a_window_is_computed_with_its_edge() -> None:
    """Of 2048 tokens in a window of 128, each query takes 64 tokens more: 64 x 2048 pairs."""
    plain, edged = (prefill(2048.0, 128.0, edge_tokens=edge) for edge in (0.0, 64.0))
    assert edged - plain == pytest.approx(4 * 32 * 64 * 2048 * 512 / 0.5e15)
    assert prefill(2048.0, edge_tokens=64.0) == prefill(2048.0)


def decode(moved: float, **c: float) -> float:
    constants = {"compute_fraction": 1.0, "memory_fraction": 0.5, **c}
    return decode_time(256.0, 4096.0, 0.0, moved, rates=RATES, c=constants)


def test_reads_lose_once_until_they_run_at_full_rate() -> None:
    """40 MB of 10 MB lose 4/5 of 5 us; many bytes lose all of it and few next to nothing."""
    c = {"longest_filling": 5e-6, "filling_bytes": 1e7}
    assert decode(4e7, **c) - decode(4e7) == pytest.approx(4e-6)
    assert decode(1e12, **c) - decode(1e12) == pytest.approx(5e-6, rel=1e-4)
    assert decode(1e3, **c) - decode(1e3) < 1e-9


def test_a_cache_that_is_converted_before_takes_passes_of_its_own() -> None:
    """1 GB ten times at 2 TB/s: 5 ms beside attention."""
    plain, converted = (
        decode_time(
            *(64.0, 4096.0, 0.0, 1e9),
            rates=RATES,
            c={"compute_fraction": 1.0, "memory_fraction": 0.5, "converted_passes": passes},
            cached=1e9,
        )
        for passes in (0.0, 10.0)
    )
    assert converted - plain == pytest.approx(10e9 / 2e12)


def test_one_query_a_head_may_have_a_kernel_of_its_own() -> None:
    """Alone it has the lone constants, in any group the others; queries of a group cost each."""
    shared = {"memory_fraction": 0.8, "kernel_overhead": 1e-6, "task_time": 1e-6}
    lone = {"memory_fraction": 0.4, "kernel_overhead": 3e-6, "task_time": 2e-6}
    c = {"compute_fraction": 1.0, "token_time": 1e-9, "lone_token_time": 2e-9, **shared}
    c |= {f"lone_{name}": value for name, value in lone.items()}
    own = {"compute_fraction": 1.0, "token_time": 2e-9, **lone}
    where = {"pieces": 64.0, "context": 4096.0, "flops": 0.0, "moved": 1e8, "rates": RATES}
    assert decode_time(**where, c=c, group=1.0) == pytest.approx(decode_time(**where, c=own))
    assert decode_time(**where, c=c, group=2.0) == decode_time(**where, c=c, group=16.0)
    queries = [
        decode_time(**{**where, "moved": 1e-9}, c={**own, "query_time": 1e-7}, group=g)
        for g in (8.0, 24.0)
    ]
    assert queries[1] - queries[0] == pytest.approx(16 * 1e-7)


def test_a_narrow_head_is_walked_along_faster() -> None:
    """Tokens of 64 numbers take half the time of 128; 4096 in two parts, 1 ns each."""
    c = {"compute_fraction": 1.0, "memory_fraction": 1.0, "token_time": 1e-9}
    wide, narrow = (
        decode_time(64.0, 4096.0, 0.0, 1e-9, rates=RATES, c=c, width=width) for width in (128.0, 64)
    )
    assert wide == pytest.approx(2048e-9)
    assert narrow == pytest.approx(1024e-9)
