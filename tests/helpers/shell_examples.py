"""Examples of the command `mlsim` in what people read, each run with `--json` in this process."""

from __future__ import annotations

import io
import json
import re
import shlex
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlsim import cli
from mlsim.records import DATA

# An example begins its line, and may go on after a backslash; or it is a span of code.
_LINE = re.compile(r"^ *(mlsim (?:[^\n]*\\\n)*[^\n]*)$", re.MULTILINE)
_FENCE = re.compile(r"^ *```[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`(mlsim [^`]+)`")
_COMMAND = re.compile(r"[a-z][a-z-]+")
_READ = ("README.md", "mlsim_pkg/README.md", "CONTRIBUTING.md", "*.qmd", "[a-z]*/*.qmd")
# What measures the machine that runs it, or reads what a profiler wrote there.
_OWN = ("measure", "time", "profile", "profile-command")
# Words of an example that stand for what its reader has: a file, a folder, a machine.
_READERS = re.compile(r"FILE|NEW|OLD|.*\.(?:csv|toml|json|CSV)|.*/.*|local|.*\.\.\.\]?")


def examples(root: Path) -> tuple[str, ...]:
    """Return the examples that need no file and no machine of one's own, without `--json`."""
    found = {
        " ".join(each.replace("\\\n", " ").split()).removesuffix(" --json")
        for each in _written(root)
    }
    return tuple(sorted(each for each in found if _runs_anywhere(shlex.split(each)[1:])))


def _written(root: Path) -> Iterator[str]:
    for pattern in _READ:
        for path in root.glob(pattern):
            text = path.read_text(encoding="utf-8")
            yield from _SPAN.findall(text)
            for block in _FENCE.findall(text):
                yield from _LINE.findall(block)
    commands = tomllib.loads((DATA / "commands.toml").read_text(encoding="utf-8"))
    yield from _LINE.findall(commands["epilog"])


def _runs_anywhere(words: list[str]) -> bool:
    """Say whether an example asks something, and of nothing that only its reader has."""
    name, rest = words[0] if words else "", words[1:]
    if not rest or not _COMMAND.fullmatch(name) or name in _OWN or rest[-1] in ("check", "--help"):
        return False
    return not any(_READERS.fullmatch(each) for each in rest)


def answer(example: str) -> dict[str, Any]:
    """Run an example with `--json`, in an empty folder; return its exit status and its JSON.

    Raises
    ------
    ValueError
        If it prints no JSON.
    """
    words = [*shlex.split(example)[1:], "--json"]
    with (
        TemporaryDirectory() as folder,
        chdir(folder),
        warnings.catch_warnings(),
        redirect_stdout(io.StringIO()) as printed,
        redirect_stderr(io.StringIO()) as said,
    ):
        whole = f"{Path.cwd()}/"  # names what a command writes
        try:
            status = cli.main(words)
        except SystemExit as stop:  # of what is not understood
            status = int(stop.code or 0)
    try:
        return {"exit": status, "json": json.loads(printed.getvalue().replace(whole, ""))}
    except ValueError:
        what = said.getvalue().strip() or printed.getvalue()[:200]
        raise ValueError(f"{shlex.join(['mlsim', *words])} gave no JSON: {what}") from None
