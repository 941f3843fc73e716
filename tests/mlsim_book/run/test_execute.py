"""Running pages: order, state, errors at their line, and the same bytes every time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.errors import BookError, CellError, Problems
from mlsim_book.read.options import page_defaults
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import read_document
from mlsim_book.run.execute import _stoppable, run_document
from mlsim_book.run.page_cache import PageCache
from mlsim_book.run.pages import execute_pages
from mlsim_book.run.results import Results
from mlsim_book.run.stop import Stop

PAGE = """\
# Title

Before: `{python} "x" in globals()`.

```{python}
x = 1
x
```

After: `{python} x` and `{python} object()`.

```{python}
#| eval: false
raise RuntimeError("never")
```

```{python}
#| error: true
int("no")
```

```{python}
import os, sys, warnings
print(os.path.basename(os.getcwd()), os.environ["PYTHONHASHSEED"], "matplotlib" in sys.modules)
warnings.warn("careful")
object()
```

```{python}
#| fig-width: 2
#| fig-height: 1
import matplotlib.pyplot as plt
plt.plot([1, 2]);
```

```{python}
plt.rcParams["figure.figsize"]
```

```{python}
```
"""

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


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            "```{python}\n#| label: bad\n\ndef f():\n    return 1 / 0\n\n\nf()\n```\n",
            5,
            ["the cell 'bad' raised ZeroDivisionError", "f()", "#| error: true"],
        ),
        ("Text `{python} 1 +` here.\n", 1, ["`1 +`", "SyntaxError"]),
        (
            "a\n\n`{python} not_defined_here + 1`\n",
            3,
            ["NameError: name 'not_defined_here'", "`not_defined_here + 1`"],
        ),
    ],
)
def test_failures_name_the_line(tmp_path: Path, text: str, line: int, words: list[str]) -> None:
    with pytest.raises(CellError) as caught:
        run(tmp_path, text)
    assert (caught.value.file, caught.value.line) == ("page.qmd", line)
    for each in words:
        assert each in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_cell_that_takes_too_long(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(CellError, match=r"page\.qmd:1: .*longer than 1 s"):
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


def test_pages_of_a_book(make_book: MakeBook, tmp_path: Path) -> None:
    root = make_book(
        index_qmd="# Number `{python} 6 * 7`\n",
        sub__b_qmd="---\nlang: de\n---\n\n# B\n\n```{python}\nimport os\nos.path.basename(os.getcwd())\n```\n",
    )
    (root / "sub" / "_metadata.yml").write_text("flavour: lime\n")
    said: list[str] = []
    cache = PageCache(tmp_path / "cache")
    project = load_project(root, Problems())
    pages = execute_pages(project, Problems(), progress=said.append, cache=cache)
    assert [page.chapter.source for page in pages] == ["index.qmd", "sub/b.qmd"]
    assert pages[0].chapter.title == "Number 42"
    assert pages[1].metadata == {"flavour": "lime", "lang": "de"}
    assert "'sub'" in pages[1].markdown
    assert sorted(line.split(" in ")[0] for line in said) == [
        "executed index.qmd",
        "executed sub/b.qmd",
    ]
    said.clear()
    again = execute_pages(project, Problems(), progress=said.append, cache=cache)
    assert again == pages
    assert sorted(said) == ["unchanged index.qmd", "unchanged sub/b.qmd"]
    only = execute_pages(project, Problems(), chapters=["sub/b.qmd"], cache=cache, refresh=True)
    assert only == pages[1:]


def test_all_failing_pages_are_told_of(make_book: MakeBook, tmp_path: Path) -> None:
    root = make_book(
        index_qmd="# A\n\n```{python}\nraise KeyError('one')\n```\n",
        b_qmd="# B\n\n```{python}\n1\n```\n\n`{python} two`\n",
        c_qmd="# C\n",
    )
    project = load_project(root, Problems())
    with pytest.raises(CellError) as caught:
        execute_pages(project, Problems(), cache=PageCache(tmp_path / "cache"))
    assert "2 pages failed" in str(caught.value)
    assert "index.qmd:4" in str(caught.value)
    assert "b.qmd:7" in str(caught.value)


def test_conformance_errors(conformance: Path) -> None:
    for name, words in (("error-cell", "the kettle is dry"), ("error-inline", "not_defined_here")):
        project = load_project(conformance / name / "src", Problems())
        with pytest.raises(BookError, match=words):
            execute_pages(project, Problems())


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


WIDGET = """\
```{python}
from comm import create_comm
kind = {"_model_module": "@jupyter-widgets/output", "_model_name": "OutputModel"}
state = {**kind, "msg_id": "", "outputs": []}
out = create_comm(target_name="jupyter.widget", data={"state": state})
header = get_ipython().kernel.get_parent()["header"]
out.send({"method": "update", "state": {"msg_id": header["msg_id"]}})
print("inside", flush=True)
out.send({"method": "update", "state": {"msg_id": ""}})
print("after")
```
"""


def test_an_output_widget_takes_what_it_catches_and_no_more(tmp_path: Path) -> None:
    """As ipywidgets' Output does: its text is drawn by scripts only, as in Quarto."""
    results = run(tmp_path, WIDGET)
    assert [each["text"] for each in results.cells[0]] == ["after\n"]
