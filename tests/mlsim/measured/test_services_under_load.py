"""Services measured with a number of users: what they show, and how near `Engine.load` comes."""

from __future__ import annotations

import statistics

import pytest

from mlsim import Engine
from mlsim.errors import UnknownNameError
from mlsim.measured import MeasuredLoad, measured_loads


def _of(tensor_parallel: int) -> list[MeasuredLoad]:
    return [
        row
        for row in measured_loads("H100")
        if (row.tensor_parallel, row.prompt_tokens, row.output_tokens)
        == (tensor_parallel, 1024, 1024)
    ]


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_more_users_wait_longer(devices: int) -> None:
    rows = _of(devices)
    assert [row.users for row in rows] == [4, 8, 16, 32, 64]
    for times in ([row.first_token for row in rows], [row.per_token for row in rows]):
        assert times == sorted(times)


def test_the_estimate_is_near_in_both_times() -> None:
    rows = _of(2)
    found = [Engine.load(**row.asked, estimate="calibrated") for row in rows]
    tokens, firsts = (
        [each.value(name) / getattr(row, said) for each, row in zip(found, rows, strict=True)]
        for name, said in (
            ("time_per_output_token", "per_token"),
            ("time_to_first_token", "first_token"),
        )
    )
    assert 0.85 < statistics.median(tokens) < 1.05
    assert 0.85 < statistics.median(firsts) < 1.15


def test_a_full_memory_is_seen() -> None:
    """64 users with long answers wait half a minute on two H100s, since not all of them fit."""
    (row,) = (
        row
        for row in measured_loads("H100")
        if (row.tensor_parallel, row.users, row.output_tokens) == (2, 64, 8192)
    )
    narrow = Engine.load(**(row.asked | {"kv_cache": "fp8"}), estimate="calibrated")
    found = Engine.load(**row.asked, estimate="calibrated")
    assert found.value("time_to_first_token") == pytest.approx(row.first_token, rel=0.2)
    assert narrow.value("time_to_first_token") < row.first_token / 20


def test_no_service_beats_the_bound() -> None:
    for row in _of(8):
        alone = Engine.serve(
            model=row.model, hardware="hgx_h100", tensor_parallel=8, precision="fp8",
            kv_cache="bf16", prompt_tokens=row.prompt_tokens, output_tokens=2, estimate="bound",
        )  # fmt: skip
        assert alone.value("time_per_output_token") < row.per_token


def test_a_measured_time_is_a_value_with_its_service_and_source() -> None:
    """Named as the prediction's, so that one column shows both; the float stays in s."""
    row = _of(2)[0]
    for name, seconds in {
        "time_to_first_token": row.first_token,
        "time_per_output_token": row.per_token,
    }.items():
        value = getattr(row, name)
        assert value.si == pytest.approx(seconds, rel=1e-12)
        assert value.name == f"measured {name.replace('_', ' ')}"
        assert f"{row.users} users" in value.origin.how
        assert f"[@{row.source}]" in value.origin.how
    with pytest.raises(UnknownNameError, match="time_to_first_token"):
        row.by_name("first_token_time")


def test_lengths_are_drawn_as_the_client_draws_them() -> None:
    assert _of(2)[0].asked["output_tokens"] == "uniform 819 1024"
