"""Where in the sources something stands, and what of outputs is other on each machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage
from mlsim_book.read.ipynb import joined, sanitize
from mlsim_book.read.lines import (
    Reporter,
    find_lines,
    label_patterns,
    place,
    reference_patterns,
    sources_of,
    split_lines,
    text_pattern,
)
from mlsim_book.read.qmd import Cell, form_of, is_measured, parse_blocks

SOURCE = """# A {#sec-fig-x}

See @fig-xy, @Fig-x and @fig-x.
{{< include _b.qmd >}}
{{< include "/shared/_c.qmd" >}}
$$ a =  b
+ c \\tag{1.2} $$
"""


def page(root: Path) -> ExecutedPage:
    """A page in a folder, which includes a file beside it, one of the root's, and those again."""
    files = {
        "ch/a.qmd": SOURCE,
        "ch/_b.qmd": "one\n#| label: fig-x\n{{< include _gone.qmd >}}\n",
        "shared/_c.qmd": "::: {.wide #fig-x}\n{{< include ../ch/_b.qmd >}}\n{#fig-x-y}\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, "utf-8")
    chapter = Chapter("ch/a.qmd", "ch/a.html", "A", 1)
    return ExecutedPage(chapter, "", {}, {}, SOURCE)


def test_places_in_a_page_and_in_what_it_includes(tmp_path: Path) -> None:
    one = page(tmp_path)
    names = [name for name, _ in sources_of(one, tmp_path)]
    assert names == ["ch/a.qmd", "ch/_b.qmd", "shared/_c.qmd", "ch/_b.qmd"]

    def found(*patterns: str) -> list[tuple[str, int]]:
        return list(dict.fromkeys(find_lines(one, tmp_path, *patterns)))

    assert found(*label_patterns("fig-x")) == [("ch/_b.qmd", 2), ("shared/_c.qmd", 1)]
    assert found(*reference_patterns("fig-x")) == [("ch/a.qmd", 3)]
    assert found(*reference_patterns("FIG-XY")) == [("ch/a.qmd", 3)]
    assert found(text_pattern("\n a = b\n")) == [("ch/a.qmd", 6)]
    assert found(text_pattern("+  c \\tag{1.2}")) == [("ch/a.qmd", 7)]
    assert found("nowhere") == []
    assert place(one, tmp_path, "nowhere") == ("ch/a.qmd", None)
    assert place(one, tmp_path, "nowhere", "one") == ("ch/_b.qmd", 1)
    problems = Problems()
    Reporter(problems, tmp_path).note(one, "odd", "one", hint="so")
    [told] = problems.found
    assert (told.file, told.line, told.message, told.hint) == ("ch/_b.qmd", 1, "odd", "so")


def test_a_measured_text_has_a_form() -> None:
    forms = {
        "12.1 GB/s": "# B/s",
        "900 us": "# s",
        "1.1 ms": "# s",
        "3 kW of 3 kWh": "# W of # kWh",
        "5 KiB in L3, FP32": "# B in L3, FP32",
        "-1,234.5e-3  x\t2": "# x #",
        "3 min": "# min",  # no prefix
        "a ---- b": "a --- b",
        " 1\n2 ": "#\n#",
    }
    assert {text: form_of(text) for text in forms} == forms


def test_a_cell_is_marked_as_measured() -> None:
    given = {"measured": True, "wide .measured": True, "measured-too": False, "''": False}
    for classes, wanted in given.items():
        text = f"```{{python}}\n#| classes: {classes}\n1\n```\n"
        [cell] = parse_blocks(split_lines(text, file="a.qmd"))
        assert isinstance(cell, Cell)
        assert is_measured(cell) == wanted, classes


def stream(text: Any, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def test_pieces_of_a_stream_are_one() -> None:
    shown = {"output_type": "display_data", "data": {}}
    given = [
        stream("a"),
        stream("b"),
        stream("c", "stderr"),
        shown,
        shown,
        stream("d"),
        stream("e"),
    ]
    assert joined(given) == [stream("ab"), stream("c", "stderr"), shown, shown, stream("de")]


def test_what_is_other_on_each_run_is_made_the_same() -> None:
    def data(**forms: Any) -> Any:
        return sanitize({"output_type": "display_data", "data": forms, "transient": {"id": 1}})

    assert "transient" not in data()
    assert sanitize(stream(["<A at 0x7f", "21aabb>"])) == stream("<A at 0x0>")
    assert sanitize(stream("at 0x7f")) == stream("at 0x7f")  # too short for an address
    path = stream("/tmp/ipykernel_77/1234.py:2: UserWarning: x")
    assert sanitize(path)["text"] == "/tmp/ipykernel_0/0.py:2: UserWarning: x"
    found = data(**{"text/plain": ["<A at 0x7f21aa>"], "image/png": ["YXQg", "MHg="]})["data"]
    assert found == {"text/plain": "<A at 0x0>", "image/png": "YXQgMHg="}
    assert data(**{"application/json": {"a": 1}})["data"] == {"application/json": {"a": 1}}
    style = '<style type="text/css">\n#T_{0}_row0 {{}}\n</style><table id="T_{0}">{1}'
    one, two, other, *no_style = (
        data(**{"text/html": text})["data"]["text/html"]
        for text in (
            style.format("0a1b2", "x"), style.format("ffeed", "x"), style.format("0a1b2", "y"),
            '<p id="T_0a1b2">', f"{style.format('0a1b2', 'x')}<p id='T_ffeed'>",
        )
    )  # fmt: skip
    assert one == two != other.replace("y", "x")  # the id is drawn from what the table says
    assert "0a1b2" not in one
    assert no_style == ['<p id="T_0a1b2">', f"{style.format('0a1b2', 'x')}<p id='T_ffeed'>"]


def test_a_traceback_names_no_folder_of_a_machine() -> None:
    lines = {
        "File \x1b[32m/home/a/book/pkg/zoo.py:10\x1b[39m": "File \x1b[32mpkg/zoo.py:10\x1b[39m",
        "File ~/b/pkg/zoo.py:10, in f()": "File pkg/zoo.py:10, in f()",
        "File /tmp/ipykernel_0/0.py:2": "File /tmp/ipykernel_0/0.py:2",
    }
    error = {"output_type": "error", "ename": "E", "evalue": "<A at 0x7f21aa>"}
    found = sanitize({**error, "traceback": list(lines)})
    assert found["traceback"] == list(lines.values())
    assert found["evalue"] == "<A at 0x0>"
