"""Pages made by chance: what they show is the same without the code that feeds nothing."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
from collections.abc import Sequence

from kept import text

from mlsim_book.render.live_code import Code, live_sources

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
PAGES = 500 if os.environ.get("MLSIM_JUDGE") else 120


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


def shown(cells: Sequence[Code]) -> list[str] | None:
    """Return what the cells print that readers see; None if one fails."""
    names: dict[str, object] = {}
    said = []
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(cell.source, names)
            except (AttributeError, IndexError, RecursionError, TypeError):
                return None
        said += [re.sub(r"0x\w+", "", out.getvalue())] if cell.seen else []
    return said


def test_what_a_page_shows_stays_as_it_is() -> None:
    chance = random.Random(32)
    done = before = after = 0
    while done < PAGES:
        cells = [Code(FIRST, seen=True)]
        cells += [
            Code(made(chance, "S\nS\nS" + "\nprint(N)" * seen), seen)
            for seen in chance.choices([False, True], [2, 1], k=4)
        ]
        cells.append(Code(made(chance, "print(N)"), seen=True))
        wanted = shown(cells)
        if wanted is None:
            continue
        live = live_sources(cells)
        kept = [Code(text or "", cell.seen) for cell, text in zip(cells, live, strict=True)]
        assert shown(kept) == wanted, "\n\n".join(cell.source for cell in cells)
        before += sum(cell.source.count("\n") + 1 for cell in cells if not cell.seen)
        after += sum(cell.source.count("\n") + 1 for cell in kept if cell.source and not cell.seen)
        done += 1
    assert after < 0.7 * before  # keeping all would show the same, too
