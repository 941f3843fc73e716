"""Switches that add up: measured all-reduces pass the rate of the link, and what follows."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine, Serving, Systems
from mlsim.hardware.measured_kernels import all_reduces
from mlsim.systems.link_calibration import link_calibration

LINE = Systems.HGX_H200.device_bandwidth_si
PASSING = [
    row
    for row in all_reduces()
    if row.device == "Cloud.H200" and row.ring_bytes / row.seconds > LINE
]


def test_measured_rates_pass_the_link() -> None:
    """450 GB/s each way; from 512 MiB up the ring's bytes would have come faster than that."""
    assert LINE == 450e9
    assert min(row.message_bytes for row in PASSING) == 512 * 2**20
    assert max(row.value for row in PASSING) == 482.26


@pytest.mark.parametrize("row", PASSING, ids=lambda row: str(row.id))
def test_the_roofline_of_a_ring_is_no_limit_there(row: Any) -> None:
    assert row.seconds < row.ring_bytes / LINE
    # The calibrated line takes at most the full rate, so it is some percent too slow.
    late = link_calibration(Systems.HGX_H200).residuals()[row.id]
    assert 0 < late < 0.1


def serve(estimate: str, **given: Any) -> Serving:
    return Engine.serve(
        model="Llama3_70B",
        hardware="HGX_H200",
        tensor_parallel=8,
        batch_size=256,
        prompt_tokens=512,
        output_tokens=16,
        estimate=estimate,
        **given,
    )


def test_the_bound_counts_no_sending() -> None:
    """So it stays one, whoever adds up."""
    bound, roofline = serve("bound"), serve("roofline")
    fast = serve("bound", link_bandwidth="1e6 GB/s")
    for phase in ("prefill", "decode"):
        found = getattr(bound, phase).value("latency")
        assert found == getattr(fast, phase).value("latency")
        sending = getattr(roofline, phase).value("total_network_time")
        assert sending > 0
        assert found <= getattr(roofline, phase).value("latency") - sending
