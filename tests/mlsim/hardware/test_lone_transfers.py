"""Streams through a memory and copies over PCI Express, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlsim import Hardware
from mlsim.hardware import lone_transfers
from mlsim.hardware.lone_transfers import host_link_rate, stream_rate, turnaround
from mlsim.hardware.measured_kernels import streams


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One publication: an A100 copies 1.6 TB/s and reads 1.76, so that copies lose a tenth."""
    row = next(row for row in streams() if row.id == "BW-001")
    rows: list[object] = [
        replace(row, value=1.6, kernel="copy"),
        replace(row, value=1.76, kernel="dot"),
    ]
    monkeypatch.setattr(lone_transfers, "streams", lambda: rows)
    turnaround.cache_clear()
    yield rows
    turnaround.cache_clear()


def test_turning_around_by_hand(published: list[object]) -> None:
    assert turnaround() == pytest.approx(0.1)


def test_a_devices_own_streams(published: list[object]) -> None:
    """A triad writes a third, so it loses two thirds of a tenth of what reading reaches."""
    device = Hardware.Cloud.A100
    assert stream_rate(device, "dot").rate == pytest.approx(1.76e12)
    assert stream_rate(device, "copy").rate == pytest.approx(1.6e12)
    assert stream_rate(device, "triad").rate == pytest.approx(1.76e12 / (1 + 0.1 * 2 / 3))
    # All writes turn as little as all reads.
    assert stream_rate(device, "init").rate == pytest.approx(1.76e12)


def test_another_device_takes_the_middle(published: list[object]) -> None:
    """1.76 of 2.039 TB/s is a part of 0.863; a device without streams takes it of its own."""
    device = Hardware.Cloud.B200
    found = stream_rate(device, "dot")
    assert found.rate == pytest.approx(1.76 / 2.039 * device.bandwidth_si)
    assert found.words == "the middle of published streams of 1 devices"


def test_streams_that_do_not_fill_the_memory_are_no_measure() -> None:
    """The H200's published streams are slower than its products read weights."""
    device = Hardware.Cloud.H200
    rows = [row.rate for row in streams() if row.device == device.key]
    assert stream_rate(device, "copy").rate > 1.1 * max(rows)
    assert "middle" in stream_rate(device, "copy").words


def test_packets_by_hand() -> None:
    """Of 32 GB/s, 128 of 130 bits and 128 of 152 bytes are data."""
    assert host_link_rate(32e9).rate == pytest.approx(32e9 * 128 / 130 * 128 / 152)


def test_without_publications_nothing_is_lost_by_turning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lone_transfers, "streams", tuple)
    turnaround.cache_clear()
    assert turnaround() == 0.0
    turnaround.cache_clear()
