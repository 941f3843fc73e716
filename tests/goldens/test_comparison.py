"""The golden files notice what moves, and say it; the pages they are made of are read whole."""

from __future__ import annotations

from pathlib import Path

import goldens
import kept_questions
import page_numbers
import pytest
import shell_examples
from page_numbers import Entry
from what_moved import moves, other_leaves

TIME = Entry("sentence", "55.5 µs", "5.55e-05", "s", "latency", "latency = 55.5 µs", "1a2b3c4d")
SHARE = Entry("sentence", "84 %", "0.84", "1", "share", "share = 0.84, of the sum", "2b3c4d5e")
RATE = Entry("table", "2,039 GB/s", "2039000000000.0", "B/s", "A100 bandwidth", "datasheet", "3c")
WORD = Entry("table", "A100 80 GB", "", "", "", "", "")
PAGE = [TIME, SHARE, RATE, WORD, TIME]

MOVED = {
    "the magnitude": (
        SHARE._replace(value="0.85", text="85 %"),
        {"value", "text"},
        "0.84 1 -> 0.85 1",
    ),
    "the unit": (SHARE._replace(unit="s"), {"unit"}, "0.84 1 -> 0.84 s"),
    "the origin": (SHARE._replace(origin="share = 0.84, read"), {"origin"}, "of the sum' -> "),
    "the rest of the origin": (SHARE._replace(rest="ffffffff"), {"origin"}, "below its first line"),
    "the text": (SHARE._replace(text="0.84"), {"text"}, "84 % -> 0.84: other text"),
    "the name": (SHARE._replace(name="part"), {"name"}, "name: 'share' -> 'part'"),
    "one part in a billion": (SHARE._replace(value="0.84000000084"), {"value"}, "0.84000000084"),
}


@pytest.mark.parametrize("case", MOVED)
def test_what_changed_is_said(case: str) -> None:
    new, what, said = MOVED[case]
    [move] = moves(PAGE, [TIME, new, RATE, WORD, TIME])
    assert (move.old, move.new, set(move.what)) == (SHARE, new, what)
    assert said in str(move)


def test_a_missing_and_an_added_number_are_said_where_they_stand() -> None:
    [gone] = moves(PAGE, PAGE[:4])
    assert (gone.old, gone.new, gone.what) == (TIME, None, ("removed",))
    assert str(gone) == "removed: 55.5 µs (5.55e-05 s) sentence latency"
    twice = SHARE._replace(value="0.42", text="42 %", name="half", origin="half = 0.42")
    [more] = moves(PAGE, [twice, *PAGE])
    assert (more.old, more.new, more.what) == (None, twice, ("added",))
    assert {move.what for move in moves(PAGE, [])} == {("removed",)}
    assert len(moves([], PAGE)) == len(PAGE)


def test_a_changed_order_is_a_move() -> None:
    assert [move.what for move in moves(PAGE, [TIME, RATE, SHARE, WORD, TIME])] == [
        ("added",),
        ("removed",),
    ]


def test_a_text_that_becomes_a_value_is_one_change() -> None:
    value = WORD._replace(value="85899345920.0", unit="B", name="capacity")
    [move] = moves(PAGE, [TIME, SHARE, RATE, value, TIME])
    assert set(move.what) == {"value", "unit", "name"}
    assert "no value -> 85899345920.0 B" in str(move)


def test_another_rounding_is_no_move() -> None:
    near = RATE._replace(value=repr(2039000000000.0 * (1 + 3e-13)))
    assert near.value != RATE.value
    assert moves(PAGE, [TIME, SHARE, near, WORD, TIME]) == []
    far = RATE._replace(value=repr(2039000000000.0 * (1 + 3e-12)))
    assert len(moves(PAGE, [TIME, SHARE, far, WORD, TIME])) == 1


def test_answers_of_the_command_line_are_compared_leaf_by_leaf() -> None:
    old = {"exit": 0, "json": {"t": {"value": 0.1, "unit": "s"}, "rows": [1, 2.0], "note": None}}
    assert list(other_leaves(old, old)) == []
    near = {
        "exit": 0,
        "json": {"t": {"value": 0.1 + 1e-15, "unit": "s"}, "rows": [1, 2.0], "note": None},
    }
    assert list(other_leaves(old, near)) == []
    new = {"exit": 3, "json": {"t": {"value": 0.1001, "unit": "ms"}, "rows": [1.0], "more": True}}
    assert list(other_leaves(old, new)) == [
        "exit: 0 -> 3",
        "json.t.value: 0.1 -> 0.1001",
        "json.t.unit: 's' -> 'ms'",
        "json.rows: a list of 2 -> a list of 1",
        "json.note: None -> nothing",
        "json.more: nothing -> True",
    ]
    assert list(other_leaves([1, True], [1.0, 1])) == ["[0]: 1 -> 1.0", "[1]: True -> 1"]


BOOK = """project:
  type: book
book:
  title: Pots
  chapters: [pots.qmd]
"""
POTS = """# Pots

```{python}
import time
from mlsim import show, table
from mlsim.values import quantity
pot = show(2.5, "size of a pot", because="its label")
"not this 1"
```

```{python}
time.time() > 0
```

```{python}
#| classes: measured
time.time()
```

```{python}
quantity(1500.0, "ms")
```

A pot has `{python} pot` and costs `{python} 3 + 4`, or `{python} "seven"`.

```{python}
table([{"Pot": "a", "Size": pot, "Twice": f"{(pot * 2).markdown()} big", "Cups": "12"}])
```

```{python}
#| classes: measured
table([{"Pot": pot, "Time": 1.25}])
```

```{python}
#| eval: false
table([{"Pot": 1 / 0}])
```

```{python}
#| output: asis
print(f"This one has {pot.markdown()}.")
```

At last `{python} pot - 1`.
"""


def test_a_page_gives_sentences_tables_and_print_and_leaves_out_what_is_measured(
    tmp_path: Path,
) -> None:
    (tmp_path / "_quarto.yml").write_text(BOOK, encoding="utf-8")
    (tmp_path / "pots.qmd").write_text(POTS, encoding="utf-8")
    [page] = page_numbers.pages(tmp_path).values()
    found = page_numbers.entries_of(page, tmp_path)
    brief = "size of a pot = 2.5, its label"
    assert [each[:6] for each in found] == [
        ("shown", "True", "", "", "", ""),
        ("shown", "1.50 s", "1.5", "s", "1.5 s", ""),
        ("sentence", "2.5", "2.5", "1", "size of a pot", brief),
        ("sentence", "7", "", "", "", ""),
        ("sentence", "seven", "", "", "", ""),
        ("table", "2.5", "2.5", "1", "size of a pot", brief),
        ("table", "5 big", "", "", "", "size of a pot × 2 = 2.5 × 2 = 5"),
        ("table", "12", "", "", "", ""),
        ("printed", "2.5", "", "", "", brief),
        ("sentence", "1.5", "1.5", "1", "size of a pot − 1", "size of a pot − 1 = 2.5 − 1 = 1.5"),
    ]
    assert len({each.rest for each in found if each.origin == brief}) == 1


@pytest.fixture
def pots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the page of a book of its own, whose golden files lie beside it."""
    (tmp_path / "_quarto.yml").write_text(BOOK, encoding="utf-8")
    (tmp_path / "pots.qmd").write_text(POTS, encoding="utf-8")
    monkeypatch.setattr(goldens, "ROOT", tmp_path)
    monkeypatch.setattr(goldens, "FOLDER", tmp_path / "kept")
    monkeypatch.setattr(shell_examples, "examples", lambda _: ("mlsim zoo A100",))
    monkeypatch.setattr(kept_questions, "FOLDER", tmp_path / "no_questions")
    return tmp_path / "pots.qmd"


def renew(page: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Write a page, and the golden files anew; return the exit status and what it prints."""
    page.write_text(text, encoding="utf-8")
    page_numbers.pages.cache_clear()
    return (goldens.main(), *capsys.readouterr())


def test_what_is_written_is_read_again_and_what_moved_is_listed(
    pots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said, _ = renew(pots, POTS, capsys)
    assert (status, said.count("added: ")) == (0, 10)
    assert "mlsim zoo A100\n  example: nothing -> " in said
    status, said, _ = renew(pots, POTS, capsys)
    assert (status, said.splitlines()) == (
        0,
        [
            "Numbers of pages: 0 moved.",
            "Command line: 0 values of answers moved.",
            "Questions: 0 answers moved.",
        ],
    )
    status, said, _ = renew(pots, POTS.replace("2.5", "3.5", 1), capsys)
    assert status == 0
    assert said.startswith("pots.qmd\n  2.5 -> 3.5: other text, value, origin\n    2.5 1 -> 3.5 1")
    assert "Numbers of pages: 5 moved (5 text, 5 origin, 3 value).\n" in said


def test_a_page_that_raises_keeps_its_file_and_fails_the_command(
    pots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renew(pots, POTS, capsys)
    kept = goldens.kept_numbers(goldens.page_file("pots.qmd"))
    status, said, failed = renew(pots, POTS.replace("pot - 1`", "pan - 1`"), capsys)
    assert status == 1
    assert "0 moved" in said
    assert "pots.qmd" in failed
    assert "name 'pan' is not defined" in failed
    assert goldens.kept_numbers(goldens.page_file("pots.qmd")) == kept


def test_a_page_that_is_gone_takes_its_file_along(
    pots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renew(pots, POTS, capsys)
    assert goldens.page_file("pots.qmd").is_file()
    status, said, _ = renew(pots, "# Pots\n", capsys)
    assert (status, said.count("removed: ")) == (0, 10)
    assert not goldens.page_file("pots.qmd").exists()
