"""Tables: Markdown for a page of a book, plain words for a notebook and a terminal."""

from __future__ import annotations

import pytest

from mlsim import Hardware, show, table
from mlsim.errors import InvalidValueError


@pytest.fixture
def devices():
    bandwidth = show(Hardware.Cloud.A100, "memory.bandwidth").without_unit()
    return table([{"Device": "A\\_100", "GB/s": bandwidth, "From": "[-@nvidia2022a100]"}],
                 align="lrl")  # fmt: skip


def test_a_page_gets_numbers_that_open_and_citations(devices, monkeypatch) -> None:
    monkeypatch.setenv("QUARTO_FIG_WIDTH", "7")
    head, rule, row = devices._repr_markdown_().splitlines()
    assert head == "| Device | GB/s | From |"
    assert [each[-1] for each in rule.strip("|").split("|")] == ["-", ":", "-"]
    assert row.count("|") == 4  # nothing in a number breaks the row
    assert "popovertarget" in row
    assert "{.opens opens=" in row
    assert "[-@nvidia2022a100]" in row


def test_a_notebook_gets_words(devices, monkeypatch) -> None:
    monkeypatch.delenv("QUARTO_FIG_WIDTH", raising=False)
    row = devices._repr_markdown_().splitlines()[-1]
    assert row == "| A\\_100 | 2,039 | NVIDIA 2022 |"
    inside = table([("*" + devices.rows[0][1].markdown() + "*",)], ("GB/s",), align="r")
    assert inside._repr_markdown_().splitlines()[-1] == "| *2,039* |"


def test_a_terminal_gets_columns(devices) -> None:
    assert str(devices).splitlines() == [
        "Device   GB/s  From",
        "------  -----  -----------",
        "A_100   2,039  NVIDIA 2022",
    ]


def test_what_is_no_table_is_refused() -> None:
    for rows, header, said in (
        ([], None, "a table needs a row"),
        ([(1, 2)], None, r"table\(rows, header\)"),
        ([(1, 2)], ("a",), "a row has 2 cells, and the header 1"),
        ([{"a": 1}, {"b": 1, "c": 2}], None, "a row has 2 cells, and the header 1"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            table(rows, header)
    with pytest.raises(InvalidValueError, match="letters l and r"):
        table([{"a": 1}], align="lc")
    assert str(table([], ("a", "b"))) == "a  b\n-  -"
