"""Tables: Markdown for a page of a book, plain words for a notebook and a terminal."""

from __future__ import annotations

import pytest

from mlsim import Engine, Hardware, anatomy, column, show, table
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


def test_rows_of_parts_and_of_what_is_not_there() -> None:
    """Names lead through keys and attributes to figures; what is None is a dash, not an error."""
    gpu = Hardware.Cloud.A100
    rows = {
        "one": {"card": gpu, "answer": Engine.solve(model="ResNet50", hardware=gpu)},
        "none": {"card": gpu, "answer": None, "note": None},
    }
    columns = (
        column("card.sparse.bf16", "Sparse", "TFLOP/s", ".0f"),
        column("card.memory.bandwidth", "GB/s", "GB/s", ",.0f"),
        column("answer.latency", "Time (µs)", "us", ".1f"),
        column("answer.throughput", "Rate", form=",.0f"),
        column(lambda row: row.get("note", "as read"), "Note"),
    )
    assert str(table(rows, ["Row", *columns])).splitlines()[2:] == [
        "one      624  2,039       55.5  18,024  as read",
        "none     624  2,039          -       -        -",
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


def test_a_column_of_parts_and_a_table_turned() -> None:
    alone = {"A100": Hardware.Cloud.A100, "H100": Hardware.Cloud.H100}
    ways = {name: {"device": device, "a.b": 7} for name, device in alone.items()}
    bandwidth = column("device.memory.bandwidth", "TB/s", "TB/s", ".2f")
    made = table(ways, ["Device", bandwidth, column("a.b", "Key")]).turned()
    assert made.header == ("Device", "A100", "H100")
    assert made.rows == (("TB/s", "2.04", "3.35"), ("Key", "7", "7"))
    with pytest.raises(KeyError, match="devise"):
        table(ways, ["Device", column("devise.name")])


def test_rows_by_key_have_a_total_and_columns_print_shapes_and_units() -> None:
    lenet = anatomy("LeNet5_Variant")
    rows = {row["layer"]: row for row in lenet.layers if row["kind"] == "convolution"}
    columns = [
        "Layer",
        column(lambda row: "" if row is lenet else row["shape_out"], "Writes"),
        column("working_set", "Moves (kB)", "kB", ".1f"),
    ]
    made = table(rows, columns, total=lenet)
    assert made.rows[0] == ("conv1", "6\u00a0×\u00a024\u00a0×\u00a024", "17.6")
    assert made.rows[-1] == ("**total**", "", "**251.9**")


def test_a_column_takes_a_cell_of_a_row_by_its_place() -> None:
    rows = [("a", 1.25, 12345), ("b", 2000, 2.5)]
    value, count = column(1, "Value", form=".1f"), column(2, "Count")
    made = table(rows, [column(0, "Name"), value, count])
    assert list(made.rows) == [("a", "1.2", "12,345"), ("b", "2000.0", "2.5")]
    with pytest.raises(InvalidValueError, match="heading"):
        column(0)


def test_keys_that_are_tuples_stand_in_as_many_columns_and_shares_are_spaced_as_values_are() -> (
    None
):
    rows = {("A100", 8): {"use": 0.256}, ("H100", 1): {"use": show(0.5, "use")}}
    found = table(rows, ["Device", "Batch", column("use", "Use", form=".0%")])
    assert found.rows == (("A100", 8, "26 %"), ("H100", 1, "50 %"))
    with pytest.raises(InvalidValueError, match="a heading for the keys"):
        table(rows, [column("use", "Use")])


def test_names_alone_are_columns_and_a_name_that_is_none_is_refused() -> None:
    service = Engine.serve(model="Llama3_8B", hardware="H100")
    made = table([service], ["time_per_output_token", "largest_batch"])
    assert made.header == ("Time per output token", "Largest batch")
    assert made.rows == ((service.time_per_output_token.text, service.largest_batch.text),)
    with pytest.raises(InvalidValueError, match=r"'int' has no 'latency'.*column\(lambda"):
        table([3], [column("latency")])
