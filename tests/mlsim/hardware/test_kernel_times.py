"""Times of kernels: by hand, and what holds for any constants."""

from __future__ import annotations

import itertools
import math

import pytest

from mlsim.hardware.kernel_times import (
    PATHS,
    Rates,
    exchanged_time,
    experts_time,
    product_time,
    state_time,
)

RATES = Rates(1e15, 2e12, 128.0)
C = {"compute_fraction": 0.8, "memory_fraction": 0.8}


def product(rows: float, outputs: float, depth: float, path: str = "bf16", **c: float) -> float:
    return product_time(rows, outputs, depth, path=PATHS[path], rates=RATES, c={**C, **c})


def test_a_large_product_by_hand() -> None:
    """8192 cubed: 4,096 tiles are 32 full rounds, so 1.0995 PFLOP at 0.8 PFLOP/s."""
    computing = 2 * 8192**3 / 0.8e15
    moving = 3 * 2 * 8192**2 / 1.6e12
    assert product(8192.0, 8192.0, 8192.0) == pytest.approx((computing**4 + moving**4) ** 0.25)


def test_one_row_takes_as_long_as_its_weights() -> None:
    """16 x 8192 x 8192: 134 MB at 1.6 TB/s are 84 us, whatever the tiles."""
    moved = 2 * (16 * 8192 + 8192**2 + 16 * 8192)
    assert product(16.0, 8192.0, 8192.0) == pytest.approx(moved / 1.6e12, rel=1e-3)


def test_a_depth_is_divided_where_cores_are_idle() -> None:
    """One tile of 128 x 128 at depth 8192: in 16 parts of 512, which take as long as one."""
    only = {"memory_fraction": 1e9, "small_tile_fraction": 1e-3}
    alone = product(128.0, 128.0, 512.0, **only)
    divided = product(128.0, 128.0, 8192.0, **only)
    # 512 deep is one part; 8192 deep is 16 parts of 512 on as many cores.
    assert divided == pytest.approx(alone)
    late = product(128.0, 128.0, 8192.0, **only, split_start=1e-6)
    assert late - divided == pytest.approx(1e-6 * 15 / 16, rel=1e-6)


def test_a_last_round_is_lost_in_part() -> None:
    """129 tiles on 128 cores: two rounds, or 1 + 1/128 + half of 127/128."""
    only = {"memory_fraction": 1e9, "small_tile_fraction": 1e-3}
    whole, half = (
        product(129 * 128.0, 128.0, 65536.0, **only, last_round_share=share) for share in (1.0, 0.5)
    )
    assert half / whole == pytest.approx((129 / 128 + 0.5 * 127 / 128) / 2, rel=1e-3)


def test_what_is_quantized_is_moved_before() -> None:
    plain, quantized = (product(64.0, 64.0, 4096.0, "fp8", quantized_bytes=q) for q in (0.0, 4.0))
    assert quantized - plain == pytest.approx(4 * 64 * 4096 / 1.6e12)


@pytest.mark.parametrize("path", ["int8_weights", "int4_weights", "mxfp4_weights"])
def test_fewer_bytes_of_weights_never_take_longer(path: str) -> None:
    for rows in (1.0, 64.0, 4096.0):
        assert product(rows, 4096.0, 4096.0, path) <= product(rows, 4096.0, 4096.0)


def experts(tokens: float, devices: float = 1.0, **c: float) -> float:
    constants = {"spread": 1.0, "data_passes": 1e-12, **C, **c}
    layer = {"hidden": 4096.0, "width": 2048.0, "chosen": 8.0, "experts_of_layer": 128.0}
    return experts_time(
        tokens, **layer, devices=devices, path=PATHS["bf16"], rates=RATES, c=constants
    )


def test_one_token_reads_its_experts() -> None:
    """8 x 3 x 4096 x 2048 weights of 2 bytes: 403 MB at 1.6 TB/s; 8 x 33 rows, 8 x 32 empty."""
    weights = 8 * 3 * 4096 * 2048 * 2 / 1.6e12
    computing = 8 * 33 * 6 * 4096 * 2048 / 0.8e15
    assert experts(1.0, expert_tile=65.0) == pytest.approx(math.hypot(weights, computing))


def test_half_of_each_last_tile_is_empty_by_hand() -> None:
    """4096 tokens choose 8 of 128: 32,768 rows, and 31.5 empty ones for each expert."""
    alone = {"memory_fraction": 1e12}
    whole, padded = (experts(4096.0, expert_tile=tile, **alone) for tile in (1.0, 64.0))
    assert whole == pytest.approx(32768 * 6 * 4096 * 2048 / 0.8e15)
    assert padded / whole == pytest.approx((32768 + 128 * 31.5) / 32768)


def test_larger_tiles_and_more_tokens_never_take_less() -> None:
    times = [[experts(n, expert_tile=t) for n in (1.0, 16.0, 256.0, 4096.0)] for t in (1, 16, 256)]
    for few, many in itertools.pairwise(times):
        assert all(a <= b for a, b in zip(few, many, strict=True))
    for each in times:
        assert each == sorted(each)


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


def test_many_tokens_read_all_experts_once() -> None:
    """4096 tokens meet all 128: more tokens read no more weights, and alike ones read fewer."""
    all_read = 128 * 3 * 4096 * 2048 * 2 / 1.6e12
    assert experts(256.0, compute_fraction=1e6) == pytest.approx(all_read, rel=1e-3)
    assert experts(16.0, spread=0.5) < experts(16.0)


def test_imbalance_slows_the_busiest_device() -> None:
    even, uneven = (experts(8192.0, 8.0, memory_fraction=1e9, imbalance=g) for g in (0.0, 0.5))
    assert uneven / even == pytest.approx(8**0.5, rel=0.05)


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


def test_few_bytes_take_the_start_and_many_the_rate() -> None:
    """At one byte it is 20 us; at 1 TB the start is lost beside 1 TB at 50 GB/s and own parts."""
    assert exchanged_time(8.0, 1.0, 1e11, LIBRARY) == pytest.approx(20e-6, rel=1e-3)
    assert exchanged_time(8.0, 1e12, 1e11, LIBRARY) == pytest.approx(20.0 + 1.0, rel=1e-5)


# An engine's kernel that reads others at 40 GB/s; its library takes up to 60 us more.
DIRECT = {
    **LIBRARY,
    "direct_fraction": 0.4,
    "link_latency": 1e-6,
    "peer_start": 5e-7,
    "ramp_start": 6e-5,
}


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        # One step: 7 KB of each of 7 others, 1.75 KB x 4 in all, after a start of 4 us.
        (1.75e3, 4e-6 + 4 * 1.75e3 / 4e10),
        # Two steps: a ring's 175 KB and one more start.
        (1.75e5, 4e-6 + 4e-6 + 1.75e5 / 4e10),
        # The library: 17.5 MB at 50 GB/s, 0.7 sevenths of it at 100 GB/s, most of 60 us.
        (1.75e7, 4e-6 + 3.5e-4 + 0.1 * 1.75e-4 + 6e-5 * math.sqrt(17.5 / 20.5)),
    ],
)
def test_an_engines_all_reduce_takes_the_shortest_way(sent: float, seconds: float) -> None:
    assert exchanged_time(8.0, sent, 1e11, DIRECT) == pytest.approx(seconds)


@pytest.mark.parametrize("constants", [LIBRARY, DIRECT])
def test_more_bytes_never_take_less(constants: dict[str, float]) -> None:
    sizes = [2.0**power for power in range(8, 34)]
    times = [exchanged_time(8.0, size, 1e11, constants) for size in sizes]
    assert times == sorted(times)


def test_two_devices_read_one_another_whole() -> None:
    """Of two, one step takes as many bytes as a ring, so the second start never pays."""
    found = exchanged_time(2.0, 1e5, 1e11, DIRECT)
    assert found == pytest.approx(1e-6 + 1e5 / 4e10)


def test_few_heads_wait_for_chunks_and_many_compute_by_hand() -> None:
    """8,192 tokens are 128 chunks of 2 us each; 6 FLOP for each of a head's 16,384 elements."""
    c = {"compute_fraction": 0.05, "scan_step_time": 2e-6, "kernel_overhead": 1e-5}
    few, many = (
        state_time(1.0, 8192.0, heads, elements=16384.0, rates=RATES, c=c) for heads in (4.0, 64.0)
    )
    assert few == pytest.approx(1e-5 + 128 * 2e-6)
    assert many == pytest.approx(1e-5 + 8192 * 64 * 16384 * 6 / 0.05e15)
    side_by_side = state_time(8.0, 1024.0, 4.0, elements=16384.0, rates=RATES, c=c)
    assert side_by_side == pytest.approx(1e-5 + 8192 * 4 * 16384 * 6 / 0.05e15)
