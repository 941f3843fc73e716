"""What of a page's code feeds something that its notebook shows; in doubt it stays."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import textwrap
from collections.abc import Sequence

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


# Each a hidden cell before `print(x)`, and what stays of it.
KEPT = dict(each.split("\n", 1) for each in f"\n{text('kept_of_cells.txt')}".split("\n== ")[1:])


@pytest.mark.parametrize("case", KEPT)
def test_what_stays_of_a_hidden_cell(case: str) -> None:
    given, wanted = KEPT[case].strip("\n").split("\n--\n")
    assert live(Code(given), SHOWN, elsewhere=("show(x)",)) == [wanted, "print(x)"]


def test_a_cell_that_loses_everything() -> None:
    gone = [hidden("y = 1\nassert y"), hidden("# nothing but this"), hidden(""), hidden("'a'")]
    assert live(*gone) == [None] * 4
    assert live(*(Code(each.source, seen=True) for each in gone)) == [each.source for each in gone]
    # of a cell `asis`, which prints text of the page, only what it binds and changes is needed
    cell = Code("x = {}\nexercise('a')\nx['a'] = 1\nprint(x)", acts=False)
    assert live(cell, SHOWN)[0] == "x = {}\nx['a'] = 1"


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


def test_variables_of_a_comprehension_are_its_own() -> None:
    cells = [
        hidden("for m in range(3):\n    assert m"),
        Code("[print(m) for m in 'ab']", seen=True),
    ]
    assert live(*cells)[0] is None


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


def test_syntax_that_only_ipython_knows() -> None:
    """A cell with it stays whole, and every name in it is read; so does `a = 1; b = 2`."""
    for line in (
        "%matplotlib inline",
        "!echo {y}",
        "files = !ls",
        "y?",
        "a = 1; b = 2",
        "return y",
    ):
        cells = [hidden("y = 1\nz = 1\nfiles = 2"), hidden(f"assert z\n{line}")]
        first, second = live(*cells)
        assert second == cells[1].source
        assert first is not None
        assert "z = 1" in first
        assert ("y = 1" in first) == ("y" in line.replace("%matplotlib inline", "").split("=")[0])


# ----------------------------------------------------- pages made by chance
FIRST = text("live_first_cell.py.txt")
# N is a name, V a value, S a statement; there are five names, so that they meet.
VALUES = (
    "N", "N", "1", "[N, V]", "{'k': V}", "first(V)", "[q for q in seq(N)]", "(lambda: V)",
    "call(N)", "seq(N)", "iter(seq(N))", "next(N, 0)", "f(N)", "g(N)", "(N, N)", "rng.random()",
)  # fmt: skip
STATEMENTS = (
    "N = V", "N = V", "N = V", "N, N = N, V", "N.append(V)", "N['k'] = V", "N += [N]", "f(N)",
    "g(N)", "assert 1 or V", "for N in seq(N)[:2]:\n    S\n    S", "if N:\n    S\nelse:\n    S",
    "def f(z):\n    return V", "def g(z):\n    z.append(N)\n    return z", "def N():\n    return V",
    "def f(z):\n    y = seq(z)\n    y.append(N)\n    return N", "N = N = []",
    "def g(z):\n    N.append(z)\n    return 1",
)  # fmt: skip
PAGES = 500 if os.environ.get("MLSIM_JUDGE") else 60


def made(chance: random.Random, text: str, depth: int = 0) -> str:
    """Return a text with something put in for each N, V and S."""

    def statement(place: re.Match[str]) -> str:
        inside = made(chance, chance.choice(STATEMENTS[: 9 if depth else None]), depth + 1)
        return place[1] + inside.replace("\n", f"\n{place[1]}")

    def value(_: re.Match[str]) -> str:
        return made(chance, chance.choice(VALUES if depth < 4 else "N"), depth + 1)

    text = re.sub(r"(?m)^( *)S$", statement, text)
    text = re.sub(r"\bV\b", value, text)
    return re.sub(r"\bN\b", lambda _: chance.choice("abcde"), text)


def said(cells: Sequence[Code]) -> list[str] | None:
    """Return what the cells print that readers see; None if one fails."""
    names: dict[str, object] = {}
    printed = []
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(cell.source, names)
            except (AttributeError, IndexError, RecursionError, TypeError):
                return None
        printed += [re.sub(r"0x\w+", "", out.getvalue())] if cell.seen else []
    return printed


def test_what_a_page_shows_stays_as_it_is() -> None:
    """Pages made by chance show the same without the code that feeds nothing."""
    chance = random.Random(32)
    done = before = after = 0
    while done < PAGES:
        cells = [Code(FIRST, seen=True)]
        cells += [
            Code(made(chance, "S\nS\nS" + "\nprint(N)" * seen), seen)
            for seen in chance.choices([False, True], [2, 1], k=4)
        ]
        cells.append(Code(made(chance, "print(N)"), seen=True))
        wanted = said(cells)
        if wanted is None:
            continue
        live = live_sources(cells)
        kept = [Code(text or "", cell.seen) for cell, text in zip(cells, live, strict=True)]
        assert said(kept) == wanted, "\n\n".join(cell.source for cell in cells)
        before += sum(cell.source.count("\n") + 1 for cell in cells if not cell.seen)
        after += sum(cell.source.count("\n") + 1 for cell in kept if cell.source and not cell.seen)
        done += 1
    assert after < 0.7 * before  # keeping all would show the same, too
