"""What links were measured to reach: a line through published rows, or through the atlas."""

from __future__ import annotations

import math
from statistics import median

import numpy as np
import pytest

from mlsim import Hardware, System, Systems
from mlsim.errors import InvalidValueError, NotMeasuredError
from mlsim.hardware.kernel_constants import kernel_series
from mlsim.hardware.kernel_times import exchanged_time
from mlsim.systems.link_calibration import _line, exchange_constants, link_calibration

MEASURED_LINKS = (Systems.HGX_A100, Systems.HGX_H100, Systems.HGX_H200)
each_system = pytest.mark.parametrize("system", MEASURED_LINKS, ids=lambda system: system.key)


@pytest.fixture(autouse=True)
def anew() -> None:
    """Each test works out what it asks, whoever asked before."""
    link_calibration.cache_clear()


def test_a_line_through_two_points() -> None:
    """10 us to start, and 1 us for each 1,000 bytes."""
    start, per_byte = _line([1000.0, 9000.0], [11e-6, 19e-6], 1e-12)
    assert start == pytest.approx(10e-6)
    assert per_byte == pytest.approx(1e-9)


def test_a_line_is_bounded() -> None:
    # A start below zero becomes zero: the slope is then the mean of time over size.
    start, per_byte = _line([1.0, 2.0], [1.0, 3.0], 1e-12)
    assert start == 0
    assert 1.0 < per_byte < 1.5
    # Faster than the link: its rate, and what is left to start.
    start, per_byte = _line([1.0, 2.0], [5.0, 5.0], 0.1)
    assert per_byte == 0.1
    assert start == pytest.approx(4.85)
    # One size only has no slope.
    assert _line([1.0, 1.0], [5.0, 5.0], 0.1) == (pytest.approx(4.9), 0.1)


@each_system
def test_no_other_line_is_nearer(system: System) -> None:
    """The sum of squares grows to either side of both numbers, unless one is at its limit."""
    found = link_calibration(system)
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


def test_the_nearest_number_of_devices_is_used() -> None:
    two, three, eight = (link_calibration(Systems.HGX_A100, each) for each in (2, 3, 8))
    assert {row.devices for row in two.rows} == {2}
    assert {row.devices for row in three.rows} in ({2}, {4})
    assert "assumed for 3" in three.origins["link_latency"]
    assert two.link_latency < eight.link_latency
    assert "assumed" not in eight.origins["link_fraction"]


def test_links_that_were_not_measured_are_refused() -> None:
    slow = System("Two", Hardware.Cloud.A100, devices=2, link_bandwidth="20 GB/s")
    with pytest.raises(NotMeasuredError, match="measured over nvlink, but a device of Two sends"):
        link_calibration(slow)
    many = System("Many", Hardware.Cloud.A100, devices=64, link_bandwidth="300 GB/s")
    with pytest.raises(NotMeasuredError, match="at most 8 devices, and 64"):
        link_calibration(many)
    assert link_calibration(many, 8).rows
    with pytest.raises(InvalidValueError, match="group must be from 2 to 8"):
        link_calibration(Systems.HGX_A100, 9)


def test_twice_as_many_devices_as_were_measured_are_answered() -> None:
    """All-reduces of A100s were measured among 8, so 16 are answered, and 17 are not."""
    more = [
        System("More", Hardware.Cloud.A100, devices=devices, link_bandwidth="300 GB/s")
        for devices in (16, 17)
    ]
    assert link_calibration(more[0]).devices == 8
    with pytest.raises(NotMeasuredError, match="at most 8 devices, and 17"):
        link_calibration(more[1])


def test_numpy_finds_the_same_line_through_the_times_of_the_atlas() -> None:
    """Messages of 1 KiB to 512 MiB, of which a ring of five sends 2 x 4 / 5."""
    system = System("Five", Hardware.Cloud.B200, devices=5, link_bandwidth="900 GB/s")
    c = kernel_series("Cloud.B200", "exchange", "all_reduce").values
    sent = [1.6 * 2**power for power in range(10, 30)]
    times = [float(exchanged_time(5.0, each, 900e9, c)) for each in sent]
    slope, start = np.polyfit(sent, times, 1, w=[1 / each for each in times])
    found = link_calibration(system)
    assert found.link_latency == pytest.approx(start, rel=1e-6)
    assert found.link_fraction == pytest.approx(1 / (slope * 900e9), rel=1e-6)


def test_without_kernels_the_published_line_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlsim.systems.link_calibration.measured_devices", lambda kind: ())
    found = exchange_constants.__wrapped__(Systems.HGX_A100, 8, "all-reduce")
    line = link_calibration(Systems.HGX_A100, 8)
    assert (found.link_fraction, found.link_latency, found.kin) == (
        *(line.link_fraction, line.link_latency, line.kin),
    )
    assert found.origin == line.origins["link_latency"]
    assert (found.peer_start, found.own_steps, found.ramp_start) == (0, 0, 0)
    assert (found.ramp_bytes, found.direct_fraction, found.direct_mark) == (1, 1, 0)


def test_links_of_the_atlas_are_a_line_through_its_times() -> None:
    """8 x B200: 32 MiB by the constants, and by the line, within a quarter."""
    found = link_calibration(Systems.HGX_B200)
    assert (found.kin.level, found.rows, found.devices) == ("own", (), 8)
    c = kernel_series("Cloud.B200", "exchange", "all_reduce").values
    for size in (2**12, 2**25, 2**29):
        sent = 1.75 * size
        line = found.link_latency + sent / (found.link_fraction * found.link_bandwidth)
        assert line == pytest.approx(exchanged_time(8.0, sent, found.link_bandwidth, c), rel=0.35)
    assert "a line through the atlas's times" in found.origins["link_fraction"]


def test_links_are_borrowed_from_those_of_their_kind() -> None:
    pair = System("Two L4", Hardware.Cloud.L4, devices=2, link_bandwidth="31.5 GB/s")
    found = link_calibration(pair)
    assert found.kin.level == "family"
    assert "borrowed from Cloud.L40S, of its family" in found.origins["link_latency"]
    assert found.link_fraction < 0.5
