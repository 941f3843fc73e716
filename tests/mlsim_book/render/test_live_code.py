"""What of a page's code feeds something that its notebook shows; in doubt it stays."""

from __future__ import annotations

import textwrap

import pytest

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
CELLS = {
    "a binding that nothing reads": """
        x = 1
        y = 2  # goes
    """,
    "an assertion, and what only it needs": """
        x = 1
        limit = 3  # goes
        assert x < limit  # goes
        np.testing.assert_allclose(x, limit)  # goes
    """,
    "a binding that is overwritten": """
        x = expensive()  # goes
        x = 2
    """,
    "a chain": """
        a = 1
        b = a + 1
        c = a + 2  # goes
        x = b
    """,
    "a change through a method": """
        x = []
        y = []  # goes
        x.append(1)
        y.append(1)  # goes
    """,
    "a change of an item, an attribute, by an operator": """
        x, y = {}, Thing()
        x["a"] = 1
        x["y"] = y
        y.size = 3
        n = 0  # goes
        n += 1  # goes
        x |= {}
    """,
    "a loop that fills a dict": """
        x = {}
        y = {}  # goes
        for key in "ab":
            size = len(key)
            half = size / 2  # goes
            # of two letters
            assert size  # goes
            x[key] = size
        for key in "ab":  # goes
            y[key] = 1  # goes
    """,
    "what one turn of a loop binds, the next reads": """
        last = 0
        x = []
        for each in range(3):
            x.append(last)
            last = each
            unread = each  # goes
    """,
    "a loop that is left early stays whole": """
        for x in range(3):
            y = x
            if x > 1:
                break
    """,
    "a block in which everything goes": """
        x = 1
        if x > 1:
            x = 2
            y = 2  # goes
        with open("a") as file:  # goes
            y = file.read()  # goes
        if x:  # goes
            raise ValueError  # goes
    """,
    "another name of the same object": """
        x = {"rows": [[]]}
        row = x["rows"][0]
        row.append(1)
        for each in x["rows"]:
            each.append(2)
    """,
    "an object that was put into another": """
        row = []
        x = {"row": row}
        row.append(1)
        rows = [row]
        rows[0].append(2)
    """,
    "functions, and what they read when they are called": """
        k = 0  # goes
        def f(n):
            inner = k * n
            return inner
        def g(n):  # goes
            return k + n  # goes
        k = 2
        x = f(1)
        k = 3  # goes
    """,
    "functions inside other values": """
        k, m, n = 2, 3, 4
        def f(a): return a * k
        ways = {"f": f, "l": lambda a: a + m}
        l = 1  # goes
        x = [way(1) + n for way in ways.values() if (l := 1)]
    """,
    "functions that are put into other values": """
        k, m = 2, 3
        ways = {}
        ways["l"] = lambda a: a + k
        ways["m"] = lambda a: a + m
        k = 4
        x = [way(1) for way in ways.values()]
    """,
    "a name that is a function first, and data later": """
        k = 1  # goes
        def f(): return k  # goes
        f = 2
        k = 3  # goes
        x = f
    """,
    "a function that changes what it is given, or a global": """
        x, seen, other = [], [], []
        def fill(rows): rows.append(1)
        def note(n):
            seen.append(n)
            return n
        def count(rows): return len(rows)  # goes
        fill(x)
        note(1)
        note(2)
        size = count(x)  # goes
        x.append(seen)
    """,
    "a class": """
        step = 1
        class Counter:
            def __init__(self): self.n = 0
            def up(self):
                self.n += step
                return self.n
        c = Counter()
        first = c.up()
        x = c.up()
        class Unused: pass  # goes
    """,
    "what changes as one uses it": """
        it = iter("abc")
        first = next(it)
        rng = random.Random(1)
        rolled = rng.random()
        lone = next(each for each in "abc")  # goes
        x = next(it), rng.random()
    """,
    "the random numbers of a module": """
        import numpy as np
        np.random.seed(0)
        thrown = np.random.normal()
        x = np.random.normal()
    """,
    "settings": """
        import matplotlib.pyplot as plt
        plt.rcParams["figure.dpi"] = 100
        plt.rcParams.update({"a": 1})
        rc = plt.rcParams
        rc["b"] = 2
        warnings.filterwarnings("ignore")
        x = 1
    """,
    "a call whose result nobody takes may do anything": """
        frame = make()
        frame.to_csv("a.csv")
        prepare()
        len(frame)  # goes
        print(frame)  # goes
        "a text"  # goes
        x = read("a.csv")
    """,
    "methods that change their object, although one takes what they return": """
        net = Net()
        log = net.fit([1])
        size = net.size()  # goes
        rows, other, sums = [], [], np.zeros(3)
        done = list(map(lambda n: rows.append(n), [1]))
        added = np.add(1, 2, out=sums)
        x = net, rows, sums
    """,
    "what is drawn": """
        import matplotlib.pyplot as plt
        fig, axes = plt.subplots(2)
        for ax in axes:
            bars = ax.bar([1], [2])
            each = 3  # goes
        n = len("axes")  # goes
        x = fig
        _ = axes[0].set_title("t")
    """,
    "what registers itself": """
        @register
        def f(): return 1
        @lru_cache(maxsize=None)  # goes
        def g(): return 1  # goes
        x = 1
    """,
    "imports": """
        from __future__ import annotations
        import json  # goes
        import unused_but_loaded_for_what_it_does
        import os.path
        import os.log
        from tools import *
        y = json.dumps({})  # goes
        x = os.getcwd()
    """,
    "del": """
        sum = max
        y = sum(1, 2)  # goes
        del sum
        x = sum([1])
        del y  # goes
    """,
    "names in strings": """
        cut = 3
        x = frame.query("size > @cut")
    """,
    "all names": """
        a = 1
        b = 2
        x = eval("a")
        c = 3  # goes
    """,
}


@pytest.mark.parametrize("case", CELLS)
def test_a_hidden_cell(case: str) -> None:
    source = textwrap.dedent(CELLS[case]).strip("\n")
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
