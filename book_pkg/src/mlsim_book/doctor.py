"""`mlsim-book doctor`: what the own engine needs, what is there, what to do about the rest."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from mlsim_book.caches import assets_folder, cache_folder
from mlsim_book.errors import BookError
from mlsim_book.quarto import INSTALL, find_quarto
from mlsim_book.render.assets import find_node, node_version
from mlsim_book.render.pandoc import find_pandoc, pandoc_version


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `needed` ones must be well for the own engine to work."""

    name: str
    well: bool
    found: str
    advice: str = ""
    needed: bool = True

    def text(self) -> str:
        """Return a line of the report, with advice on a second.

        >>> print(Finding("quarto", False, "not found", "optional", needed=False).text())
        --    quarto   not found
                       optional
        """
        mark = "OK" if self.well else "BAD" if self.needed else "--"
        line = f"{mark:5} {self.name:8} {self.found}"
        return f"{line}\n{'':15}{self.advice}" if self.advice and not self.well else line


def examine(say: Callable[[str], None], more: Iterable[Finding] = ()) -> int:
    """Look at everything; return 1 if the own engine can't work.

    `more` is what other distributions found that add commands.
    """
    findings = [
        Finding(
            "Python", sys.version_info >= (3, 11),
            f"{_dotted(sys.version_info[:3])} at {sys.executable}", "Install Python 3.11 or newer.",
        ),
        _tool("pandoc", find_pandoc, pandoc_version),
        _tool("node", find_node, node_version), _assets(), _kernel(), _cache(), _typst(), _quarto(),
        *more,
    ]  # fmt: skip
    for each in findings:
        say(each.text())
    return int(any(each.needed and not each.well for each in findings))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _tool(name: str, find: Callable[[], str], version: Callable[[str], tuple[int, ...]]) -> Finding:
    try:
        path = find()
    except BookError as error:
        return Finding(name, False, error.message, error.hint or "")
    return Finding(name, True, f"{_dotted(version(path))} at {path}")


def _assets() -> Finding:
    folder = assets_folder()
    if (folder / "node_modules").is_dir():
        return Finding("assets", True, str(folder))
    # a first build fetches them, so this alone doesn't stop the engine
    return Finding(
        "assets", False, "not fetched yet",
        "The first build fetches fonts and KaTeX; that needs the network once.",
        needed=False,
    )  # fmt: skip


def _kernel() -> Finding:
    if importlib.util.find_spec("ipykernel") is None:
        return Finding(
            "kernel", False, "ipykernel is missing", "python -m pip install 'ipykernel>=6.29,<8'"
        )
    run = subprocess.run(
        [sys.executable, "-c", "import ipykernel; print(ipykernel.__version__)"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = run.stdout.strip() or run.stderr.strip().splitlines()[-1]
    advice = "python -m pip install --force-reinstall ipykernel"
    return Finding("kernel", run.returncode == 0, f"ipykernel {said}", advice)


def _cache() -> Finding:
    folder = cache_folder()
    nearest: Path = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    well = os.access(nearest, os.W_OK)
    advice = "Set XDG_CACHE_HOME to a folder you can write to."
    return Finding("cache", well, f"{folder}{'' if well else ' (not writable)'}", advice)


def _typst() -> Finding:
    found = importlib.util.find_spec("typst") is not None
    shown = f"typst {importlib.metadata.version('typst')}" if found else "not found"
    advice = "Only needed for --to pdf: python -m pip install 'typst>=0.15'"
    return Finding("typst", found, shown, advice, needed=False)


def _quarto() -> Finding:
    found = find_quarto()
    advice = f"Only needed for --engine quarto: {INSTALL}."
    return Finding("quarto", found is not None, found or "not found", advice, needed=False)
