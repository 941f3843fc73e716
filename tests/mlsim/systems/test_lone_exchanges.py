"""All-reduces that a program asks of a library: starts of publications, bytes of a device."""

from __future__ import annotations

import pytest

from mlsim import Systems
from mlsim.errors import NotMeasuredError
from mlsim.hardware.measured_kernels import all_reduces
from mlsim.systems import lone_exchanges
from mlsim.systems.link_calibration import exchange_constants
from mlsim.systems.lone_exchanges import all_reduce_seconds, published_exchanges

EIGHT = Systems.HGX_A100


def test_two_factors_by_hand() -> None:
    """Times are twice the starts and 1.5 times the bytes; the hold at 1 pulls a little."""
    parts = [(1.0, 0.01), (1.0, 1.0), (1.0, 100.0)]
    times = [2 * start + 1.5 * sending for start, sending in parts]
    starts, sending = lone_exchanges._fitted(parts, times)
    assert starts == pytest.approx(2, rel=0.02)
    assert sending == pytest.approx(1.5, rel=0.02)


def test_few_bytes_take_the_start_and_many_the_rate() -> None:
    found = exchange_constants(EIGHT, 8, "all-reduce", graph=False)
    start = found.link_latency + 6 * found.peer_start
    known = published_exchanges(8)
    starts = [each.of_starts for each in known if each.of_starts]
    product = 1.0
    for each in starts:
        product *= each
    later = product ** (1 / len(starts))
    assert all_reduce_seconds(EIGHT, 8, 1.0).seconds == pytest.approx(later * start, rel=0.01)
    # Of a terabyte only the rate and the own part are left.
    own = [each.of_bytes for each in known if each.device == "Cloud.A100" and each.of_bytes]
    assert len(own) == 2
    seconds = 1.75e12 / 300e9 * (1 / found.link_fraction + found.own_steps / 7)
    expected = seconds * (own[0] * own[1]) ** 0.5
    assert all_reduce_seconds(EIGHT, 8, 1e12).seconds == pytest.approx(expected, rel=1e-4)


def test_more_bytes_never_take_less() -> None:
    times = [all_reduce_seconds(EIGHT, 8, 2.0**power).seconds for power in range(8, 34)]
    assert times == sorted(times)


def test_who_sent_only_few_or_only_many_bytes_says_nothing_of_the_other() -> None:
    known = {each.series: each for each in published_exchanges(8)}
    assert known["nccl_issue_2094"].of_bytes is None
    assert known["marin_h100"].of_starts is None


def test_starts_are_of_programs_and_not_of_devices() -> None:
    """Five machines with three devices start about twice as late as kernels."""
    starts = [each.of_starts for each in published_exchanges(8) if each.of_starts]
    assert len(starts) >= 4
    assert 1.5 < min(starts) < max(starts) < 2.5


def test_without_publications_the_atlas_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lone_exchanges, "all_reduces", tuple)
    published_exchanges.cache_clear()
    found = exchange_constants(EIGHT, 8, "all-reduce", graph=False)
    start = found.link_latency + 6 * found.peer_start
    assert all_reduce_seconds(EIGHT, 8, 1.0).seconds == pytest.approx(start, rel=0.01)
    published_exchanges.cache_clear()


def test_published_rates_are_of_the_bus() -> None:
    """1 GiB at 228.10 GB/s of bus bandwidth: 2 x 7 / 8 of it cross each link."""
    row = next(row for row in all_reduces() if row.id == "azure-A100-1G")
    assert row.seconds == pytest.approx(1.75 * 2**30 / 228.10e9)


def test_a_device_without_relatives_has_no_answer() -> None:
    with pytest.raises(NotMeasuredError, match="TPU v4"):
        all_reduce_seconds(Systems.TPUv4_64, 4, 1e6)
