"""Running pages: order, state, errors at their line, and the same bytes every time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import kept
import pytest

from mlsim_book.errors import CellError, Problems
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import page_defaults, read_document
from mlsim_book.run.execute import _stoppable, run_document
from mlsim_book.run.page_cache import PageCache
from mlsim_book.run.pages import execute_pages
from mlsim_book.run.results import Results, Stop

PAGE = (Path(__file__).parents[2] / "fixtures" / "texts" / "run_twice.qmd.txt").read_text("utf-8")

MakeBook = Callable[..., Path]


def run(folder: Path, text: str, timeout: float = 60) -> Results:
    path = folder / "page.qmd"
    path.write_text(text, encoding="utf-8")
    document = read_document(path, root=folder, problems=Problems())
    defaults = page_defaults(document.front_matter)
    return run_document(document, defaults, folder=folder, name="page.qmd", cell_timeout=timeout)


def test_a_page_twice(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    first = run(tmp_path / "here", PAGE)
    assert first == run(tmp_path / "here", PAGE)  # ids, dates, paths, addresses
    one, never, error, printed, figure, size, empty = first.cells
    assert one[0]["data"] == {"text/plain": "1"}
    assert never == empty == ()
    assert error[0]["ename"] == "ValueError"
    texts = {each["name"]: each["text"] for each in printed if "name" in each}
    assert texts["stdout"] == "here 0 False\n"
    assert texts["stderr"].startswith("/tmp/ipykernel_0/0.py:3: UserWarning: careful")
    assert printed[-1]["data"]["text/plain"] == "<object at 0x0>"
    svg = figure[-1]["data"]["image/svg+xml"]
    assert 'width="1' in svg  # two inches are 144 pt, less the trimmed margin
    assert "<dc:date>2000-01-01" in svg
    assert size[0]["data"]["text/plain"] == "[7.0, 5.0]"
    assert [value["text/plain"] for value in first.values] == ["False", "1", "<object at 0x0>"]


# a page, the line that is told, and what else
FAILING = {
    "index.qmd": (
        "```{python}\n#| label: bad\n\ndef f():\n    return 1 / 0\n\n\nf()\n```\n", 5,
        ["the cell 'bad' raised ZeroDivisionError: division by zero\n", "f()", "#| error: true"],
    ),
    "b.qmd": ("Text `{python} 1 +` here.\n", 1, ["`1 +` raised SyntaxError"]),
    "c.qmd": (
        "A\n\nsum `{python} 1 +\n1` of\n", 3, ["`1 + 1` raised SyntaxError", "Write it on one line"],
    ),
    "d.qmd": (
        "a\n\n`{python} 1` and\n`{python} not_here + 1`\n", 4,
        ["`not_here + 1` raised NameError: name 'not_here'", "in a cell above it"],
    ),
}  # fmt: skip


def test_all_failing_pages_are_told_of_by_their_lines(make_book: MakeBook) -> None:
    texts = {name.replace(".", "_"): text for name, (text, _, _) in FAILING.items()}
    root = make_book(**texts, fine_qmd="# Fine\n")
    with pytest.raises(CellError) as caught:
        execute_pages(load_project(root, Problems()), Problems(), cache=PageCache(root / "cache"))
    told = str(caught.value)
    assert told.startswith("4 pages failed\n")
    assert "\x1b" not in told
    places = [f"{name}:{line}: " for name, (_, line, _) in FAILING.items()]
    by_name = [place for place in sorted(places) if place in told]
    assert len(by_name) == 4
    starts = [*(told.index(place) for place in by_name), len(told)]
    assert starts == sorted(starts)  # one behind the other, by name
    for place, start, end in zip(by_name, starts, starts[1:], strict=False):
        words = FAILING[place.split(":")[0]][2]
        assert [each for each in words if each not in told[start:end]] == [], place


def test_a_cell_that_takes_too_long(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(CellError, match=r"^page\.qmd:1: the cell ran longer than 1 s"):
        run(tmp_path, "```{python}\nimport time; time.sleep(60)\n```\n", timeout=1)
    assert time.monotonic() - started < 20


def test_a_kernel_that_dies_is_tried_again(tmp_path: Path) -> None:
    code = (
        "import os, pathlib\n"
        "mark = pathlib.Path('died')\n"
        "if not mark.exists():\n    mark.write_text('x')\n    os._exit(3)\n"
        "print('alive')\n"
    )
    assert run(tmp_path, f"```{{python}}\n{code}```\n").cells[0][0]["text"] == "alive\n"
    with pytest.raises(CellError, match="died twice"):
        run(tmp_path, "```{python}\nimport os\nos._exit(3)\n```\n")


def test_no_kernel_for_prose(tmp_path: Path) -> None:
    started = time.monotonic()
    assert run(tmp_path, "# A\n\n```{python}\n#| eval: false\n1\n```\n") == Results(((),))
    assert time.monotonic() - started < 0.3


def test_a_stop_that_a_wait_swallows_is_said_again() -> None:
    """As `asyncio.wait_for` does in Python 3.11 if what it waits for comes just then."""

    async def deaf_once() -> Results:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)
        return Results(())

    stop = Stop()
    stop.wish()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_stoppable(deaf_once(), stop))
    assert time.monotonic() - started < 30


WIDGET = kept.text("widget_output.txt")


def test_what_an_output_widget_catches_stays_on_the_page(tmp_path: Path) -> None:
    """Of ipywidgets' Output, which only a script draws, Quarto shows nothing."""
    results = run(tmp_path, WIDGET)
    assert [each["text"] for each in results.cells[0]] == ["inside\nafter\n"]
