"""The kernel a page runs in: a fresh Python, the same wherever it is started.

The kernel speaks over files in a short temporary folder (IPC), so pages that
run side by side can't race for ports; it reads neither the user's IPython
profile nor their matplotlibrc, and draws SVG with fixed ids and dates. If a kernel
dies, the error says what it ran and how it ended.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from mlsim_book.errors import CellError
from mlsim_book.run.figure_theme import STYLE

# 1 January 2000, unless the caller says otherwise: what drawings are dated with.
_EPOCH = "946684800"

_LAUNCH = (sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher")

_FORMATS = 'get_ipython().config.InlineBackend.figure_formats = {{"{}"}}'
_DATA = '__import__("mlsim_book.run.figure_data").run.figure_data.publish(get_ipython())'
_FILES = '__import__("mlsim_book.run.opened_files").run.opened_files'
_WATCH = f"{_FILES}.watch()"
OPENED = f"{_FILES}.opened()"


def set_up(defaults: Mapping[str, Any]) -> str:
    """Return the code that a kernel runs before the first cell; it leaves no name behind.

    >>> print(set_up({"fig-format": "svg"}))
    __import__("mlsim_book.run.opened_files").run.opened_files.watch()
    get_ipython().config.InlineBackend.figure_formats = {"svg"}
    """
    lines = [_WATCH, _FORMATS.format(defaults["fig-format"])]
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
