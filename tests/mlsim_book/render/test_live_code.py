"""What of a page's code feeds something that its notebook shows; in doubt it stays."""

from __future__ import annotations

import textwrap

import pytest
from kept import text

from mlsim_book.render.live_code import Code, idle_lines, live_sources

SHOWN = Code("print(x)", seen=True)


def hidden(source: str) -> Code:
    return Code(textwrap.dedent(source).strip("\n"))


def live(*cells: Code, elsewhere: tuple[str, ...] = ()) -> list[str | None]:
    """Return what stays, after a second look at it found nothing more."""
    kept = live_sources(cells, elsewhere)
    again = [
        Code(text or "", cell.seen, cell.shows, cell.acts)
        for cell, text in zip(cells, kept, strict=True)
    ]
    assert idle_lines(again) == 0
    return kept


# Each a hidden cell before `print(x)`: the lines that end in "# goes" feed nothing there.
CELLS = dict(each.split("\n", 1) for each in f"\n{text('hidden_cells.txt')}".split("\n== ")[1:])


@pytest.mark.parametrize("case", CELLS)
def test_a_hidden_cell(case: str) -> None:
    source = CELLS[case].strip("\n")
    wanted = [line for line in source.splitlines() if not line.endswith("# goes")]
    comments = [line for line in source.splitlines() if line.strip().startswith("#")]
    (kept, _) = live(Code(source), SHOWN)
    assert kept is not None
    assert kept.splitlines() == [line for line in wanted if line not in comments]


def test_comments_and_blank_lines() -> None:
    cell = hidden("""
        # Of all.

        # Of x.
        x = 1

        # Of y,
        # and more of y.
        y = '''
        # no comment
        '''  # behind


        def z():
            # inside
            return 3
        # Of w.
        w = 4
        x += z()  # behind x
    """)
    wanted = hidden("""
        # Of all.

        # Of x.
        x = 1


        def z():
            # inside
            return 3
        x += z()  # behind x
    """)
    assert live(cell, SHOWN) == [wanted.source, "print(x)"]


def test_a_cell_that_loses_everything() -> None:
    gone = [hidden("y = 1\nassert y"), hidden("# nothing but this"), hidden(""), hidden("'a'")]
    assert live(*gone) == [None] * 4
    assert live(*(Code(each.source, seen=True) for each in gone)) == [each.source for each in gone]


def test_cells_are_followed_in_order() -> None:
    """What a cell reads comes from before it, through cells that readers see, too."""
    cells = [
        hidden("a = 1\nunread = 1"),
        Code("b = a\nassert b", seen=True),
        hidden("a = 2"),  # no cell reads this one
        hidden("c = b\nb = 3"),
        hidden("x = c"),
        SHOWN,
        hidden("x = 4"),
    ]
    assert live(*cells) == ["a = 1", "b = a\nassert b", None, "c = b", "x = c", "print(x)", None]


def test_a_student_may_call_a_function_that_is_seen() -> None:
    assert live(hidden("k = 2"), Code("def f(): return k", seen=True))[0] == "k = 2"
    assert live(hidden("k = 2"), hidden("def f(): return k"))[0] is None


def test_loop_variables_are_the_loop_s_own() -> None:
    cells = [
        hidden("for n in range(3):\n    y = n"),
        Code("for n in range(3):\n    print(n)\n[print(m) for m in 'ab']", seen=True),
        hidden("for m in range(3):\n    assert m"),
    ]
    assert live(*cells)[0::2] == [None, None]


def test_what_a_hidden_cell_shows() -> None:
    source = """
        fig, ax = plt.subplots()
        ax.plot([1])
        lines = ax.plot([2])
        size = len("lines")
        print(1)
        size
        table
    """
    kept = {
        "nothing": (0, 1),  # the plot may be of a figure that is shown later
        "value": (0, 1, 6),
        "all": (0, 1, 2, 4, 6),
    }
    lines = hidden(source).source.splitlines()
    for shows, wanted in kept.items():
        (text,) = live(Code("\n".join(lines), shows=shows))  # type: ignore[arg-type]
        assert text is not None
        assert [line.removesuffix(";") for line in text.splitlines()] == [
            lines[each] for each in wanted
        ]


def test_a_value_that_was_not_the_last_is_not_shown() -> None:
    cell = hidden("x = [1]\nx.pop(0)  # one\nassert x")
    assert live(cell, SHOWN)[0] == "x = [1]\nx.pop(0);  # one"


def test_what_prints_text_of_the_page_is_no_action() -> None:
    """Of a cell `asis` only what it binds and changes can be needed."""
    cell = Code("x = {}\nexercise('a')\nx['a'] = 1\nprint(x)", acts=False)
    assert live(cell, SHOWN)[0] == "x = {}\nx['a'] = 1"
    assert live(cell) == [None]


def test_syntax_that_only_ipython_knows() -> None:
    """A cell with it stays whole, and every name in it is read; so does `a = 1; b = 2`."""
    for line in ("%matplotlib inline", "!echo {y}", "files = !ls", "y?", "a = 1; b = 2"):
        cells = [hidden("y = 1\nz = 1\nfiles = 2"), hidden(f"assert z\n{line}")]
        first, second = live(*cells)
        assert second == cells[1].source
        assert first is not None
        assert "z = 1" in first
        assert ("y = 1" in first) == ("y" in line.replace("%matplotlib inline", "").split("=")[0])


def test_imports_lose_names() -> None:
    cell = hidden("""
        from long_name_of_a_package import (
            one, two, three, four, five, six, seven, eight,
            nine as n,
        )
        import json, os
        import loaded_for_what_it_does
        y = one(two, three, json)
        x = four(five, six, seven, eight, n, os)
    """)
    wanted = hidden("""
        from long_name_of_a_package import four, five, six, seven, eight, nine as n
        import os
        import loaded_for_what_it_does
        x = four(five, six, seven, eight, n, os)
    """)
    assert live(cell, SHOWN)[0] == wanted.source
    wide = hidden(f"from p import {', '.join(f'name_{n}' for n in range(20))}, z\nassert z\nx = [")
    names = [f"name_{n}" for n in range(20)]
    (text, _) = live(Code(f"{wide.source}{', '.join(names)}]"), SHOWN)
    assert text is not None
    assert text.startswith("from p import name_0,")  # no wider than it was
    noted = hidden("from p import (\n    x,  # the one\n    y,\n)\nassert y")
    assert live(noted, SHOWN)[0] == noted.source.removesuffix("\nassert y")


def test_an_import_for_a_sentence_goes_and_one_that_nothing_names_stays() -> None:
    cell = hidden("from mlsim import show\nimport registers_a_projection\nx = 1")
    assert live(cell, SHOWN, elsewhere=("show(x)",))[0] == "import registers_a_projection\nx = 1"
