"""The other engine: a `quarto` that is on the PATH, or in the environment of this Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
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
    wait: float = WAIT,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """Run `quarto render`, its output as it comes; return the folder of the site.

    Quarto runs the cells with this Python, unless QUARTO_PYTHON names another.

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
    target = out.resolve() if out is not None else (root / output_dir(root)).resolve()
    environment = {"QUARTO_PYTHON": sys.executable, **os.environ}
    with hold(target, wait=wait, progress=progress):
        code = subprocess.run(command, cwd=root, env=environment, check=False).returncode
        if code:
            raise QuartoError(code)
    return target


def output_dir(root: Path) -> str:
    """Return where `_quarto.yml` sends the site, without reading the rest of it."""
    text = (root / "_quarto.yml").read_text(encoding="utf-8")
    match = re.search(r"^\s+output-dir:\s*[\"']?([^\"'#\n]+)", text, re.MULTILINE)
    return match[1].strip() if match else "_book"
