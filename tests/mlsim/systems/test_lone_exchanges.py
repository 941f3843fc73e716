"""All-reduces that a program asks of a library: starts of publications, bytes of a device."""

from __future__ import annotations

import pytest

from mlsim import Device, System, Systems
from mlsim.errors import NotMeasuredError
from mlsim.systems import lone_exchanges
from mlsim.systems.link_calibration import exchange_constants, exchange_or_roofline
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
    """Worked out anew, since answers are kept. Most sent both: of 8, from KiB to GiB."""
    known = {each.series: each for each in published_exchanges.__wrapped__(8)}
    assert known["marin_h100"].device == "Cloud.H100"
    both = {each.device for each in known.values() if each.of_starts and each.of_bytes}
    assert both >= {"Cloud.A100", "Cloud.H200"}
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


def test_only_an_engines_kernel_reads_other_devices() -> None:
    """In a captured graph; NCCL's kernels and a line of published rows have no such way."""
    marks = [
        exchange_constants(EIGHT, 8, operator, graph=graph).direct_mark
        for operator, graph in (
            ("all-reduce", True),
            ("all-reduce", False),
            ("stage to stage", True),
        )
    ]
    assert marks == [1, 0, 0]
    own = System(
        "Pair",
        Device(
            "Mine",
            peak_flops={"fp16": "1 TFLOP/s"},
            memory_bandwidth="1 TB/s",
            memory_capacity="1 GB",
        ),
        devices=2,
        link_bandwidth="20 GB/s",
    )
    found = exchange_or_roofline(own, 2, "all-reduce")
    assert (found.link_fraction, found.link_latency, found.direct_mark) == (1, 0, 0)
    assert "since the estimate needs" in found.origin
    assert "no start" in found.origin


def test_a_device_without_relatives_has_no_answer() -> None:
    with pytest.raises(NotMeasuredError, match="TPU v4"):
        all_reduce_seconds(Systems.TPUv4_64, 4, 1e6)
