"""Run a page: its cells and inline expressions, in the order they are written.

One kernel per page, in the chapter's folder. What comes back is plain data
(`Results`), the same for the same page on every run, so it can be cached.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode, from_dict

from mlsim_book.errors import BookError, CellError, ToolError
from mlsim_book.read.ipynb import joined, sanitize, strip_ansi
from mlsim_book.read.qmd import Cell, Defaults, Document, Markdown
from mlsim_book.run.figures import STYLE
from mlsim_book.run.inline import Inline, find_inline
from mlsim_book.run.opened_files import EVERYTHING
from mlsim_book.run.results import Output, Results, Stop, needs_kernel
from mlsim_exercises.data import ExerciseError

# 1 January 2000, unless the caller says otherwise: what drawings are dated with.
_EPOCH = "946684800"

_LAUNCH = (sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher")

_FORMATS = 'get_ipython().config.InlineBackend.figure_formats = {{"{}"}}'
_DATA = '__import__("mlsim_book.run.figures").run.figures.publish(get_ipython())'
_FILES = '__import__("mlsim_book.run.opened_files").run.opened_files'
_WATCH = f"{_FILES}.watch()"
_FONTS = '__import__("mlsim_book.run.typeface").run.typeface.offer()'
OPENED = f"{_FILES}.opened()"


def set_up(defaults: Mapping[str, Any]) -> str:
    """Return the code that a kernel runs before the first cell; it leaves no name behind.

    >>> print(set_up({"fig-format": "svg"}))
    __import__("mlsim_book.run.opened_files").run.opened_files.watch()
    get_ipython().config.InlineBackend.figure_formats = {"svg"}
    """
    lines = [_FONTS] * bool(defaults.get("figure-theme"))
    lines += [_WATCH, _FORMATS.format(defaults["fig-format"])]
    return "\n".join(lines + [_DATA] * bool(defaults.get("figure-data")))


class KernelManager(AsyncKernelManager):
    """Starts the running Python's own ipykernel, whatever kernels are installed."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """The kernel to start; jupyter would look one up by name."""
        return KernelSpec(
            argv=[*_LAUNCH, "-f", "{connection_file}"],
            display_name="Python 3",
            language="python",
        )


@contextmanager
def kernel_folder() -> Iterator[Path]:
    """Yield a new folder whose path is short enough for sockets (108 characters)."""
    short = Path("/tmp")  # noqa: S108 - macOS' own is too long; mkdtemp makes it private
    parent = short if short.is_dir() and os.access(short, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="qb-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name)


def kernel_manager(folder: Path) -> KernelManager:
    """Return a manager that keeps its sockets and connection file in a folder."""
    manager = KernelManager(connection_file=str(folder / "kernel.json"))
    if sys.platform != "win32":  # Windows has no IPC
        manager.transport = "ipc"
        manager.ip = str(folder / "k")
    return manager


def kernel_environment(folder: Path, defaults: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a kernel; writes its matplotlibrc.

    The chapter's folder may hold a matplotlibrc of its own, which then wins.
    """
    matplotlibrc = folder / "matplotlibrc"
    matplotlibrc.write_text(
        f"figure.figsize: {defaults['fig-width']}, {defaults['fig-height']}\n"
        f"figure.dpi: {defaults['fig-dpi']}\n"
        "svg.hashsalt: mlsim-book\n" + (STYLE if defaults.get("figure-theme") else ""),
        encoding="utf-8",
    )
    return {
        **os.environ,
        "IPYTHONDIR": str(folder / "ipython"),
        "MATPLOTLIBRC": str(matplotlibrc),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", _EPOCH),
        "DO_NOT_TRACK": "1",
        # as Quarto sets them: a cell can tell that it runs for a page, and how large
        "QUARTO_FIG_WIDTH": str(defaults["fig-width"]),
        "QUARTO_FIG_HEIGHT": str(defaults["fig-height"]),
        "QUARTO_FIG_DPI": str(defaults["fig-dpi"]),
        "QUARTO_FIG_FORMAT": str(defaults["fig-format"]),
    }


def figure_size(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return code to run before and after a cell that sets its own figure size.

    The code leaves no name behind, and keeps what the page itself has set.
    """
    own = {"fig-width", "fig-height", "fig-dpi"} & set(options)
    if not own:
        return None
    size = tuple(options.get(name, defaults[name]) for name in ("fig-width", "fig-height"))
    new = {"figure.figsize": size, "figure.dpi": options.get("fig-dpi", defaults["fig-dpi"])}
    keep = '__import__("builtins").__dict__["_book_figure"]'
    params = '__import__("matplotlib").rcParams'
    before = (
        f'{keep} = {{name: {params}[name] for name in ("figure.figsize", "figure.dpi")}}\n'
        f"{params}.update({new!r})"
    )
    return before, f"{params}.update({keep})"


async def end_start(client: NotebookClient) -> None:
    """End a kernel that was stopped while it started; nbclient ends only what has started.

    Left alone, it would find its folder gone, make it again, and stay there.
    """
    if client.kc is not None:
        client.kc.stop_channels()
    if client.km is not None and client.km.has_kernel:
        ended: Any = client.km.shutdown_kernel(now=True)  # of our manager, a coroutine
        await ended


class KernelGoneError(DeadKernelError):
    """The kernel died while it ran what stands at a place."""

    def __init__(self, what: str, file: str, line: int | None, code: int | None = None) -> None:
        self.what, self.file, self.line, self.code = what, file, line, code
        super().__init__(what)

    @property
    def place(self) -> str:
        """Where it died, as `file:line`."""
        return f"{self.file}:{self.line}" if self.line else self.file


async def gone(
    client: NotebookClient, what: str, file: str, line: int | None = None
) -> KernelGoneError:
    """Return the error of a kernel that is gone, with its exit code if that is known."""
    provisioner = client.km.provisioner if client.km else None
    code = await provisioner.poll() if provisioner else None
    return KernelGoneError(what, file, line, code)


def located(error: DeadKernelError, name: str) -> KernelGoneError:
    """Return where a kernel died; before the first cell there is only the page."""
    if isinstance(error, KernelGoneError):
        return error
    return KernelGoneError(f"its start ({error})", name, None)


def died_twice(dead: KernelGoneError) -> CellError:
    """Return the error of a page whose kernel died again when it was run again."""
    return CellError(
        f"the kernel died twice, in {dead.what}{ending(dead.code)}",
        file=dead.file,
        line=dead.line,
        hint="It may need more memory than there is, call os._exit() or crash a library: "
        "run fewer pages at a time with --jobs 1, or make it smaller.",
    )


def ending(code: int | None) -> str:
    """Say how a process ended, from its exit code.

    >>> ending(3), ending(-9), ending(None)
    (' (exit code 3)', ' (signal 9: killed, as when out of memory)', '')
    """
    if code is None:
        return ""
    if code >= 0:
        return f" (exit code {code})"
    return f" (signal {-code}{': killed, as when out of memory' if code == -9 else ''})"


_FRAME = re.compile(r"Cell In\[(\d+)\], line (\d+)")
_SLOW = "Make it faster, or set `mlsim-book: {cell-timeout: <seconds>}` in _quarto.yml."


@dataclass
class _Page:
    """A page being run."""

    client: NotebookClient
    defaults: Defaults
    place: str  # the chapter's name, for errors
    cells: list[tuple[Output, ...]] = field(default_factory=list)
    values: list[Mapping[str, str]] = field(default_factory=list)


def run_document(
    document: Document,
    defaults: Defaults,
    *,
    folder: Path,
    name: str,
    cell_timeout: float = 600,
    startup_timeout: float = 60,
    progress: Callable[[str], None] = lambda _: None,
    stop: Stop | None = None,
) -> Results:
    """Run a parsed page in a fresh kernel, and once more if the kernel dies.

    Parameters
    ----------
    folder
        Where the kernel runs: the chapter's folder.
    name
        What errors call the page when they can't name a cell.
    cell_timeout, startup_timeout
        Seconds to wait for one cell, and for the kernel.
    progress
        Called when a kernel died and the page is run again.
    stop
        Its wish ends the page, wherever it is.

    Raises
    ------
    asyncio.CancelledError
        The page was stopped.
    CellError
        A cell or expression raised, ran too long, or killed its kernel twice.
    """
    if not needs_kernel(document, defaults):
        return Results(tuple(() for _ in document.cells))
    attempt = functools.partial(
        _attempt, document, defaults, folder, name,
        timeouts=(cell_timeout, startup_timeout), stop=stop or Stop(),
    )  # fmt: skip
    try:
        return attempt()
    except DeadKernelError as error:  # once is bad luck: memory may have been short
        dead = located(error, name)
        progress(f"WARN: {dead.place}: the kernel died in {dead.what}; running the page again")
    try:
        return attempt()
    except DeadKernelError as error:
        raise died_twice(located(error, name)) from None


def _attempt(
    document: Document,
    defaults: Defaults,
    folder: Path,
    name: str,
    *,
    timeouts: tuple[float, float],
    stop: Stop,
) -> Results:
    """Run a page in a new kernel; DeadKernelError if the kernel dies or doesn't start."""
    try:
        run = _run(document, defaults, folder, name, timeouts=timeouts)
        return asyncio.run(_stoppable(run, stop))
    except RuntimeError as error:
        if isinstance(error, BookError | DeadKernelError):
            raise
        raise DeadKernelError(str(error)) from error  # "Kernel died before replying", and such


async def _stoppable(run: Coroutine[Any, Any, Results], stop: Stop) -> Results:
    """Run a page as a task that a wish cancels."""
    task = asyncio.ensure_future(run)
    loop = asyncio.get_running_loop()

    def cancel() -> None:  # until it is done: a wait that just ended may swallow it
        if not task.done():
            task.cancel()
            loop.call_later(2, cancel)

    with stop.by(lambda: loop.call_soon_threadsafe(cancel)):
        try:
            return await task
        except RuntimeError:  # what nbclient makes of a kernel or cell that is stopped
            if stop.wished:
                raise asyncio.CancelledError from None
            raise


async def _run(
    document: Document,
    defaults: Defaults,
    folder: Path,
    name: str,
    *,
    timeouts: tuple[float, float],
) -> Results:
    code = [
        {"cell_type": "code", "source": cell.source, "outputs": [], "metadata": {}}
        for cell in document.cells
    ]
    notebook: NotebookNode = from_dict({"cells": code, "metadata": {}})  # type: ignore[no-untyped-call]
    with kernel_folder() as temporary:
        client = NotebookClient(
            notebook,
            km=kernel_manager(temporary),
            allow_errors=True,  # errors are found in the outputs, with their line
            timeout=math.ceil(timeouts[0]),  # nbclient takes whole seconds
            startup_timeout=math.ceil(timeouts[1]),
            shell_timeout_interval=1,  # seconds until a dead kernel is seen
            shutdown_kernel="immediate",
            ipython_hist_file=":memory:",
            store_widget_state=False,
        )
        # nbclient plays the browser's part of ipywidgets' Output: a KeyError without the state,
        # and with it a race for the socket. So what that widget catches stays on the page.
        client.widget_registry = {}
        environment = kernel_environment(temporary, defaults.values)
        start = client.async_setup_kernel(cleanup_kc=True, cwd=str(folder), env=environment)
        try:
            async with start:
                page = _Page(client, defaults, name)
                await _silently(page, set_up(defaults.values))
                for block in document.blocks:
                    if isinstance(block, Markdown):
                        await _evaluate(page, find_inline(block))
                    else:
                        await _run_cell(page, block)
                files = await _opened(page)
        finally:
            await end_start(client)
    return Results(tuple(page.cells), tuple(page.values), files)


async def _run_cell(page: _Page, cell: Cell) -> None:
    """Run one cell and keep its outputs; a failure that isn't wanted ends the page."""
    index = len(page.cells)
    if page.defaults.of(cell.options, "eval") is False or not cell.code:
        page.cells.append(())
        return
    size = figure_size(cell.options, page.defaults.values)
    if size:
        await _silently(page, size[0])
    node = page.client.nb.cells[index]
    try:
        await page.client.async_execute_cell(node, index)
    except CellTimeoutError:
        raise CellError(
            f"{_what(cell)} ran longer than {page.client.timeout:g} s",
            file=cell.file,
            line=cell.line,
            hint=_SLOW,
        ) from None
    except DeadKernelError as error:
        raise await gone(page.client, _what(cell), cell.file, cell.line) from error
    if size:
        await _silently(page, size[1])
    outputs = joined([sanitize(dict(output)) for output in node.outputs])
    failed = next((each for each in outputs if each["output_type"] == "error"), None)
    if failed is not None and page.defaults.of(cell.options, "error") is not True:
        raise _cell_error(cell, failed, node.get("execution_count"))
    page.cells.append(tuple(outputs))


def _what(cell: Cell) -> str:
    return f"the cell '{cell.label}'" if cell.label else "the cell"


def _cell_error(cell: Cell, output: Output, count: int | None) -> CellError:
    """Say what a cell raised, at the author's line; a wrong exercise, at its own."""
    traceback = strip_ansi("\n".join(output.get("traceback", ())))
    frames = [int(line) for number, line in _FRAME.findall(traceback) if int(number) == count]
    place = cell.opening
    if frames and 0 < frames[-1] <= len(cell.code):
        place = cell.code[frames[-1] - 1]
    raised = strip_ansi(output["evalue"])
    if output["ename"] == ExerciseError.__name__:
        return CellError(f"{raised}\n  The page asks for it at {place.file}:{place.line}.")
    short = traceback.strip().splitlines()[-20:]
    return CellError(
        f"{_what(cell)} raised {output['ename']}: {raised}",
        file=place.file,
        line=place.line,
        hint="\n  ".join(short) + "\n  If the error is meant, add `#| error: true`.",
    )


async def _silently(page: _Page, code: str) -> None:
    """Run code of ours that leaves no trace in the page."""
    reply = await _request(page, code, {})
    if reply["status"] != "ok":
        raise ToolError(
            f"the kernel could not be set up: {reply.get('ename')}: {reply.get('evalue')}",
            file=page.place,
            hint="Run `mlsim-book doctor` to see which packages are missing.",
        )


async def _opened(page: _Page) -> tuple[str, ...]:
    """Return the files and folders that the page's code opened."""
    reply = await _request(page, "", {"opened": OPENED}, what="the last cell", file=page.place)
    result = reply["user_expressions"]["opened"]
    if result["status"] != "ok":  # a page may break its kernel: then nothing is known
        return (EVERYTHING,)
    return tuple(json.loads(ast.literal_eval(result["data"]["text/plain"])))


async def _evaluate(page: _Page, expressions: Sequence[Inline]) -> None:
    """Evaluate expressions one after the other, where they stand in the page."""
    if not expressions:
        return
    wanted = {str(index): each.expression for index, each in enumerate(expressions)}
    first = expressions[0]
    what = f"the inline expression `{first.expression}`" + " or one after it" * (len(wanted) > 1)
    reply = await _request(page, "", wanted, what=what, file=first.file, line=first.line)
    for index, each in enumerate(expressions):
        result = reply["user_expressions"][str(index)]
        if result["status"] != "ok":
            raise _inline_error(each, result)
        output = sanitize({"output_type": "display_data", "data": dict(result["data"])})
        page.values.append(
            {mime: text for mime, text in output["data"].items() if isinstance(text, str)}
        )


def _inline_error(place: Inline, result: Mapping[str, Any]) -> CellError:
    """Say what an expression raised, at its line."""
    hint = None
    if result["ename"] == "SyntaxError" and "\n" in place.written:
        hint = "Write it on one line, as Quarto wants it too."
    elif result["ename"] == "NameError":
        hint = "Define what it uses in a cell above it."
    return CellError(
        f"the inline expression `{' '.join(place.expression.split())}` raised "
        f"{result['ename']}: {strip_ansi(result['evalue'])}",
        file=place.file,
        line=place.line,
        hint=hint,
    )


async def _request(
    page: _Page,
    code: str,
    expressions: Mapping[str, str],
    *,
    what: str = "what sets a cell up",
    file: str = "",
    line: int | None = None,
) -> dict[str, Any]:
    client = page.client.kc
    if client is None:
        raise DeadKernelError("the kernel is gone")
    message = client.execute(
        code, silent=True, store_history=False, user_expressions=dict(expressions)
    )
    file = file or page.place
    try:
        # what nbclient quotes in a time-out
        asked: NotebookNode = from_dict({"source": what})  # type: ignore[no-untyped-call]
        reply = await page.client.async_wait_for_reply(message, asked)
    except CellTimeoutError:
        reply = None
    except DeadKernelError as error:
        raise await gone(page.client, what, file, line) from error
    if reply is None:
        seconds = f"{page.client.timeout:g} s"
        raise CellError(f"{what} ran longer than {seconds}", file=file, line=line, hint=_SLOW)
    content: dict[str, Any] = reply["content"]
    return content
