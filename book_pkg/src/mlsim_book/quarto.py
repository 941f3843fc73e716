"""The other engine: a `quarto` that is on the PATH, or in the environment of this Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mlsim_book.errors import ToolError
from mlsim_book.site.swap import WAIT, hold


class QuartoError(ToolError):
    """Quarto ran and failed; `code` is its exit code."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"quarto failed with exit code {code}")


# The package fetches Quarto itself when it is installed.
INSTALL = (
    "python -m pip install 'mlsim-book[quarto]', or 'quarto-cli>=1.10,<2': it needs the network"
)


def find_quarto() -> str | None:
    """Return the path of quarto, if there is one: on the PATH, or beside this Python."""
    return shutil.which("quarto") or shutil.which("quarto", path=Path(sys.executable).parent)


def render_with_quarto(
    root: Path,
    *,
    out: Path | None = None,
    refresh: bool = False,
    wait: float = WAIT,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """Run `quarto render`, its output as it comes; return the folder of the site.

    Quarto runs the cells with this Python, unless QUARTO_PYTHON names another. With
    `refresh`, what it froze is put away, so that every cell is run again; if it fails,
    that is put back. (Its own --cache-refresh is for a cache that can't be used with
    inline expressions.)

    Raises
    ------
    ToolError
        There is no Quarto, or it failed.
    BusyError
        Another command went on building there for `wait` seconds.
    """
    found = find_quarto()
    if found is None:
        raise ToolError(
            "there is no `quarto` on the PATH",
            hint=f"{INSTALL}.\nOr leave --engine quarto out: the own engine needs none.",
        )
    command = [found, "render", str(root)]
    if out is not None:
        command += ["--output-dir", str(out.resolve())]
    if refresh:
        command.append("--execute")
    target = out.resolve() if out is not None else (root / output_dir(root)).resolve()
    environment = {"QUARTO_PYTHON": sys.executable, **os.environ}
    with hold(target, wait=wait, progress=progress), _without_frozen(root, refresh):
        code = subprocess.run(command, cwd=root, env=environment, check=False).returncode
        if code:
            raise QuartoError(code)
    return target


@contextmanager
def _without_frozen(root: Path, wanted: bool) -> Iterator[None]:
    """Put the results that Quarto froze away, if wanted; back where the render fails."""
    frozen, aside = root / "_freeze", root / "_freeze.before"
    if aside.is_dir() and not frozen.exists():  # a render was killed
        aside.rename(frozen)
    if not wanted or not frozen.is_dir():
        yield
        return
    shutil.rmtree(aside, ignore_errors=True)
    frozen.rename(aside)
    try:
        yield
    except BaseException:
        shutil.rmtree(frozen, ignore_errors=True)
        aside.rename(frozen)
        raise
    shutil.rmtree(aside)


def output_dir(root: Path) -> str:
    """Return where `_quarto.yml` sends the site, without reading the rest of it."""
    text = (root / "_quarto.yml").read_text(encoding="utf-8")
    match = re.search(r"^\s+output-dir:\s*[\"']?([^\"'#\n]+)", text, re.MULTILINE)
    return match[1].strip() if match else "_book"
