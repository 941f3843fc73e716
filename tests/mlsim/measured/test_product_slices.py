"""Slices of measured products: what they show, and that the bound holds."""

from __future__ import annotations

import pytest

from mlsim import Engine
from mlsim.measured import measured_formats, measured_stairs


def test_one_row_more_begins_a_tile() -> None:
    """Of 51,200 outputs, 128 rows take as long as one, and 129 as long as 256."""
    times = {row.rows: row.seconds["bf16"] for row in measured_stairs() if row.outputs == 51200}
    assert times[128] < 1.1 * times[1]
    assert times[129] > 1.5 * times[128]
    assert times[256] < 1.1 * times[129]
    assert times[257] > 1.4 * times[256]


def test_short_formats_win_on_large_products_and_lose_on_small_ones() -> None:
    rows = {(row.rows, row.outputs): row for row in measured_formats("Cloud.B200")}
    assert rows[16384, 16384].speedup("fp4") > 2
    assert rows[1024, 1024].speedup("fp4") < 1
    assert rows[16384, 16384].speedup("fp8") > 1.3


@pytest.mark.parametrize("key", ["Cloud.H100", "Cloud.B200"])
def test_no_product_beats_the_bound(key: str) -> None:
    rows = measured_formats(key)
    for name in rows[0].seconds:
        bound = Engine.gemm(
            *([getattr(row, side) for row in rows] for side in ("rows", "outputs", "depth")),
            hardware=key, precision=name, estimate="bound",
        ).value("latency")  # fmt: skip
        assert all(low <= row.seconds[name] * 1.02 for low, row in zip(bound, rows, strict=True))


def test_a_measured_time_says_of_which_product_and_where_it_stands() -> None:
    row = next(row for row in measured_stairs() if (row.rows, row.outputs) == (129, 51200))
    where = "measured on A100, sglang, M=129, N=51,200, K=8,192 [@nvidia2026aiconfigurator]"
    assert row.time().origin.brief == f"measured time in bf16 = 845 µs, {where}"
    cube = next(row for row in measured_formats("Cloud.B200") if row.rows == row.outputs == 1024)
    gain = cube.speedup("fp4")
    assert gain == pytest.approx(cube.seconds["bf16"] / cube.seconds["fp4"])
    assert "fastest backend, M=1,024" in gain.origin.how
