"""What links were measured to reach: published rows, the atlas, and what a program asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import pytest
from own_chips import chip

from mlsim import Engine, Hardware, System, Systems
from mlsim.errors import InvalidValueError, NotMeasuredError
from mlsim.hardware.kernel_constants import kernel_series
from mlsim.hardware.kernel_times import exchanged_time
from mlsim.hardware.measured_kernels import all_reduces
from mlsim.systems import link_calibration as module, published_exchanges
from mlsim.systems.link_calibration import (
    _line,
    all_reduce_seconds,
    exchange_constants,
    exchange_or_roofline,
    link_calibration,
)

EIGHT = Systems.HGX_A100


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """Each test works out what it asks, whoever asked before."""
    for kept in (link_calibration, published_exchanges):
        kept.cache_clear()
    yield
    published_exchanges.cache_clear()


def of(count: int, device: str, rate: str = "300 GB/s") -> System:
    return System("Mine", Hardware.get(f"Cloud.{device}"), devices=count, link_bandwidth=rate)


# ---- a line through what was measured ----


def test_a_line_through_two_points_is_bounded() -> None:
    """10 us to start, and 1 us for each 1,000 bytes."""
    assert _line([1000.0, 9000.0], [11e-6, 19e-6], 1e-12) == pytest.approx((10e-6, 1e-9))
    # A start below zero becomes zero: the slope is then the mean of time over size.
    start, per_byte = _line([1.0, 2.0], [1.0, 3.0], 1e-12)
    assert start == 0
    assert 1.0 < per_byte < 1.5
    # Faster than the link: its rate, and what is left to start. One size only has no slope.
    assert _line([1.0, 2.0], [5.0, 5.0], 0.1) == (pytest.approx(4.85), 0.1)
    assert _line([1.0, 1.0], [5.0, 5.0], 0.1) == (pytest.approx(4.9), 0.1)
    # Nor has an odd one, of 3, 5 and 7 ms; each weighs as the square of its rate.
    middle = 1e-3 * (1 / 3 + 1 / 5 + 1 / 7) / (1 / 9 + 1 / 25 + 1 / 49)
    start, per_byte = _line([1e9 / 3] * 3, [3e-3, 5e-3, 7e-3], 1e-12)
    assert (start, per_byte) == (pytest.approx(middle - 1e-3 / 3), 1e-12)


@pytest.mark.parametrize("system", ["HGX_A100", "HGX_H100", "HGX_H200"])
def test_no_other_line_is_nearer(system: str) -> None:
    """The sum of squares grows to either side of both numbers, unless one is at its limit."""
    found = link_calibration(Systems.find(system))
    assert {row.devices for row in found.rows} == {8}
    assert 0 < median(abs(each) for each in found.residuals().values()) < 0.12

    def squares(start: float, part: float) -> float:
        return math.fsum(
            ((start + row.ring_bytes / (part * found.link_bandwidth)) / row.seconds - 1) ** 2
            for row in found.rows
        )

    start, part = found.link_latency, found.link_fraction
    for factor in (0.99, 1.01):
        assert squares(start * factor, part) > squares(start, part)
        assert part == 1 or squares(start, part * factor) > squares(start, part)


def test_the_nearest_number_of_devices_is_used_up_to_twice_as_many() -> None:
    """All-reduces of A100s were measured among 8, so 16 are answered, and 17 are not."""
    two, three, eight = (link_calibration(EIGHT, each) for each in (2, 3, 8))
    assert {row.devices for row in two.rows} == {2}
    assert {row.devices for row in three.rows} in ({2}, {4})
    assert "assumed for 3" in three.origins["link_latency"]
    assert two.link_latency < eight.link_latency
    assert "assumed" not in eight.origins["link_fraction"]
    assert link_calibration(of(16, "A100")).devices == 8
    assert link_calibration(of(64, "A100"), 8).rows
    for count in (17, 64):
        with pytest.raises(NotMeasuredError, match=f"at most 8 devices, and {count}"):
            link_calibration(of(count, "A100"))
    # A link is the one that was measured if its rate differs by less than a hundredth.
    for rate in ("297.1 GB/s", "302.9 GB/s"):
        assert link_calibration(of(2, "A100", rate)).rows
    for rate in ("20 GB/s", "296.9 GB/s", "303.1 GB/s"):
        with pytest.raises(NotMeasuredError, match="over nvlink, but a device of Mine sends"):
            link_calibration(of(2, "A100", rate))
    with pytest.raises(InvalidValueError, match="group must be from 2 to 8"):
        link_calibration(EIGHT, 9)


def test_links_of_the_atlas_are_a_line_through_its_times() -> None:
    """As numpy finds it for messages of 1 KiB to 512 MiB, of which a ring of five sends 8/5."""
    c = kernel_series("Cloud.B200", "exchange", "all_reduce").values
    sent = [1.6 * 2**power for power in range(10, 30)]
    times = [float(exchanged_time(5.0, each, 900e9, c)) for each in sent]
    slope, start = np.polyfit(sent, times, 1, w=[1 / each for each in times])
    found = link_calibration(of(5, "B200", "900 GB/s"))
    assert found.link_latency == pytest.approx(start, rel=1e-6)
    assert found.link_fraction == pytest.approx(1 / (slope * 900e9), rel=1e-6)
    found = link_calibration(Systems.HGX_B200)
    assert (found.kin.level, found.rows, found.devices) == ("own", (), 8)
    assert "a line through the atlas's times" in found.origins["link_fraction"]
    # They are borrowed from those of their kind.
    found = link_calibration(of(2, "L4", "31.5 GB/s"))
    assert found.kin.level == "family"
    assert "borrowed from Cloud.L40S, of its family" in found.origins["link_latency"]
    assert found.link_fraction < 0.5


def test_without_kernels_the_published_line_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlsim.systems.link_calibration.measured_devices", lambda kind: ())
    found, line = exchange_constants.__wrapped__(EIGHT, 8, "all-reduce"), link_calibration(EIGHT, 8)
    assert (found.link_fraction, found.link_latency) == (line.link_fraction, line.link_latency)
    assert (found.kin, found.origin) == (line.kin, line.origins["link_latency"])
    assert (found.peer_start, found.own_steps, found.ramp_start) == (0, 0, 0)
    assert (found.ramp_bytes, found.direct_fraction, found.direct_mark) == (1, 1, 0)


def test_those_over_pcie_lend_to_those_over_pcie_and_others_to_others() -> None:
    over_pcie = ("Cloud.L40S", "Cloud.RTXPRO6000_Server")
    for name, keys in (
        ("L40S_PCIe_8", over_pcie[:1]),
        ("A30_PCIe_8", over_pcie),
        ("HGX_A100", ("Cloud.A100",)),
        ("HGX_H20", ("Cloud.H100", "Cloud.H200")),
    ):
        kin = exchange_constants(getattr(Systems, name), 8, "all-reduce").kin
        assert kin is not None
        assert kin.keys == keys, name


def test_only_an_engines_kernel_reads_other_devices() -> None:
    """In a captured graph; NCCL's kernels and a line of published rows have no such way."""
    asked = (("all-reduce", True), ("all-reduce", False), ("stage to stage", True))
    found = [exchange_constants(EIGHT, 8, operator, graph=graph) for operator, graph in asked]
    assert [each.direct_mark for each in found] == [1, 0, 0]
    own = System("Pair", chip(fp16="1 TFLOP/s"), devices=2, link_bandwidth="20 GB/s")
    roofline = exchange_or_roofline(own, 2, "all-reduce")
    assert (roofline.link_fraction, roofline.link_latency, roofline.direct_mark) == (1, 0, 0)
    assert "since the estimate needs" in roofline.origin
    assert "no start" in roofline.origin


# ---- switches that add up ----


def test_measured_rates_pass_the_link_and_the_bound_counts_no_sending() -> None:
    """450 GB/s each way; from 512 MiB up the ring's bytes would have come faster than that."""
    line = Systems.HGX_H200.device_bandwidth_si
    rows = [row for row in all_reduces() if row.device == "Cloud.H200"]
    passing = [row for row in rows if row.ring_bytes / row.seconds > line]
    assert line == 450e9
    assert min(row.message_bytes for row in passing) == 512 * 2**20
    assert max(row.value for row in passing) == 482.26
    # The calibrated line takes at most the full rate, so it is some percent too slow.
    late = link_calibration(Systems.HGX_H200).residuals()
    assert all(0 < late[row.id] < 0.1 for row in passing)
    asked = {"model": "Llama3_70B", "hardware": "HGX_H200", "tensor_parallel": 8}
    asked |= {"batch_size": 256, "prompt_tokens": 512, "output_tokens": 16}
    serve: Any = partial(Engine.serve, **asked)
    bound, roofline = serve(estimate="bound"), serve(estimate="roofline")
    fast = serve(estimate="bound", link_bandwidth="1e6 GB/s")
    for phase in ("prefill", "decode"):
        found, sent = getattr(bound, phase).value("latency"), getattr(roofline, phase)
        assert found == getattr(fast, phase).value("latency")
        assert 0 < sent.value("total_network_time") <= sent.value("latency") - found


# ---- all-reduces that a program asks of a library ----


def test_two_factors_by_hand() -> None:
    """Times are twice the starts and 1.5 times the bytes; the hold at 1 pulls a little."""
    parts = [(1.0, 0.01), (1.0, 1.0), (1.0, 100.0)]
    times = [2 * start + 1.5 * sending for start, sending in parts]
    assert module._fitted(parts, times) == pytest.approx((2, 1.5), rel=0.02)


def test_few_bytes_take_the_start_and_many_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    found = exchange_constants(EIGHT, 8, "all-reduce", graph=False)
    start = found.link_latency + 6 * found.peer_start
    known = published_exchanges(8)
    later = geometric_mean([each.of_starts for each in known if each.of_starts])
    assert all_reduce_seconds(EIGHT, 8, 1.0).seconds == pytest.approx(later * start, rel=0.01)
    # Of a terabyte only the rate and the own part are left.
    own = [each.of_bytes for each in known if each.device == "Cloud.A100" and each.of_bytes]
    assert len(own) == 2
    seconds = 1.75e12 / 300e9 * (1 / found.link_fraction + found.own_steps / 7)
    expected = seconds * geometric_mean(own)
    assert all_reduce_seconds(EIGHT, 8, 1e12).seconds == pytest.approx(expected, rel=1e-4)
    times = [all_reduce_seconds(EIGHT, 8, 2.0**power).seconds for power in range(8, 34)]
    assert times == sorted(times)
    with pytest.raises(NotMeasuredError, match="TPU v4"):
        all_reduce_seconds(Systems.TPUv4_64, 4, 1e6)
    # Without publications the atlas answers.
    monkeypatch.setattr(module, "all_reduces", tuple)
    published_exchanges.cache_clear()
    assert all_reduce_seconds(EIGHT, 8, 1.0).seconds == pytest.approx(start, rel=0.01)


def test_who_sent_only_few_or_only_many_bytes_says_nothing_of_the_other() -> None:
    """Most sent both: of 8, from KiB to GiB. Five machines start about twice as late as kernels."""
    known = {each.series: each for each in published_exchanges(8)}
    assert known["marin_h100"].device == "Cloud.H100"
    both = {each.device for each in known.values() if each.of_starts and each.of_bytes}
    assert both >= {"Cloud.A100", "Cloud.H200"}
    assert known["nccl_issue_2094"].of_bytes is None
    assert known["marin_h100"].of_starts is None
    # One has rows of 2, 4 and 8: the nearest by ratio are asked.
    two, three, four, six, eight = (
        next(each for each in published_exchanges(members) if each.series == "vidur_allreduce_a100")
        for members in (2, 3, 4, 6, 8)
    )
    assert three == four not in (two, eight)
    assert six == eight == known["vidur_allreduce_a100"]
    starts = [each.of_starts for each in known.values() if each.of_starts]
    assert len(starts) >= 4
    assert 1.5 < min(starts) < max(starts) < 2.5
