"""Prices of tokens behind APIs: as published, of one request, and refused where they can't be."""

from __future__ import annotations

import pytest

from mlsim.measured import api_prices


def test_a_request_is_worked_by_hand() -> None:
    (row,) = api_prices(model="Llama3_70B", provider="Groq")
    assert (row.input_price, row.output_price) == (0.59, 0.79)
    # 2,000 tokens in, 500 out.
    assert row.of_request(2000, 500).to("USD").magnitude == pytest.approx(0.001575)
    told = row.of_request(2000, 500).origin
    assert told.name == "price of a request of 2,000 + 500 tokens from Groq"
    assert f"0.59 and 0.79 USD per million in and out, as asked on {row.date}" in told.brief
    assert row.source in told.how


def test_prices_are_dated_and_of_one_kind() -> None:
    rows = api_prices(model="Llama3_70B")
    assert len({row.provider for row in rows}) == len(rows) >= 8
    for row in rows:
        assert row.input_price <= row.output_price < 2, row.id
        assert str(row.input_price) in row.quote
        assert str(row.output_price) in row.quote
        assert row.date.year == 2026
