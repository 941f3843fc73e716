"""Start the subprocess that runs a notebook, listen to it, and end it in time."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlsim_book.errors import ToolError

_MOST = 8_000_000  # bytes that a subprocess may send
_ATTEMPTS = 3
_GRACE = 1.0  # seconds


@dataclass(frozen=True)
class Limits:
    """What a submission may take: seconds for a cell and in all, bytes of memory and of a file."""

    cell_seconds: int = 20
    seconds: int = 60
    memory: int = 4 * 2**30
    file_size: int = 64 * 2**20


@dataclass
class Ran:
    """What became of a notebook: the last value of each name that wasn't blank."""

    values: dict[str, Any] = field(default_factory=dict)
    trouble: tuple[str, ...] = ()
    seconds: float = 0.0
    network_closed: bool = True


def run_cells(
    cells: Sequence[str],
    answers: Mapping[str, str],
    home: Path,
    hidden: Sequence[str],
    limits: Limits,
) -> Ran:
    """Run cells in a subprocess, and return what the names of `answers` held.

    A cell that ends the process is left out, and the others run again.

    Raises
    ------
    ToolError
        The subprocess doesn't start.
    """
    started = time.monotonic()
    ran = Ran()
    skip: list[int] = []
    trouble: list[str] = []
    for _ in range(_ATTEMPTS):
        left = limits.seconds - (time.monotonic() - started)
        if left <= 0:
            break
        task = {
            "cells": list(cells), "answers": dict(answers), "skip": skip, "hidden": list(hidden),
            "cell_seconds": limits.cell_seconds, "seconds": limits.seconds,
            "memory": limits.memory, "file_size": limits.file_size,
        }  # fmt: skip
        lines, complaint, in_time = _listen(task, home, left, limits.cell_seconds)
        guilty = _read(lines, ran, trouble)
        if not any("ready" in each for each in lines):
            raise ToolError(
                "the process that runs submissions doesn't start", hint=complaint[-500:] or None
            )
        if guilty is None or guilty in skip:
            break
        why = "ended the process" if in_time else "did not end"
        trouble.append(f"code cell {guilty + 1} {why}; it was left out")
        skip.append(guilty)
    ran.trouble = tuple(dict.fromkeys(trouble))
    ran.seconds = round(time.monotonic() - started, 2)
    return ran


def _read(lines: Sequence[Mapping[str, Any]], ran: Ran, trouble: list[str]) -> int | None:
    """Take in what was sent; return the cell that began last and did not end."""
    running: int | None = None
    for line in lines:
        if line.get("ready"):
            ran.network_closed = bool(line.get("network_closed"))
        if isinstance(line.get("begins"), int):
            running = line["begins"]
        if isinstance(line.get("ends"), int):
            running = None
            if line.get("error"):
                trouble.append(f"code cell {line['ends'] + 1}: {str(line['error'])[:300]}")
            if isinstance(line.get("values"), dict):
                ran.values.update(line["values"])
    return running


def _listen(
    task: Mapping[str, Any], home: Path, seconds: float, cell_seconds: float
) -> tuple[list[dict[str, Any]], str, bool]:
    """Run the subprocess; return what it sent, its errors, and whether it ended in time."""
    read, write = os.pipe()
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as given:
        given.write(json.dumps(task).encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-m", "mlsim_book.grading.runner", str(write)],
                stdin=given, stdout=subprocess.DEVNULL, stderr=said, pass_fds=[write],
                cwd=home, env=_environment(home), start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(write)
        try:
            # a cell ends itself in its time; one that can't be ended is silent for longer
            silence = 2 * cell_seconds + _GRACE
            text, in_time = _receive(read, time.monotonic() + seconds, silence)
        finally:
            os.close(read)
            _end(process)
        size = said.seek(0, os.SEEK_END)
        said.seek(max(0, size - 2000))
        complaint = said.read().decode(errors="replace")
    return _lines(text), complaint, in_time


def _receive(read: int, deadline: float, silence: float) -> tuple[bytes, bool]:
    """Return what comes in until the end, the deadline, or too long a silence."""
    pieces: list[bytes] = []
    total = 0
    while (left := deadline - time.monotonic()) > 0:
        wait = min(left, silence) if pieces else left
        if not select.select([read], [], [], wait)[0]:
            break
        piece = os.read(read, 65536)
        if not piece:
            return b"".join(pieces), True
        total += len(piece)
        if total > _MOST:
            return b"".join(pieces), True
        pieces.append(piece)
    return b"".join(pieces), False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process with whatever it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()


def _lines(text: bytes) -> list[dict[str, Any]]:
    """Return the lines that can be read; a submission may have written others."""
    found = []
    for line in text.decode(errors="replace").splitlines():
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            found.append(data)
    return found


def _environment(home: Path) -> dict[str, str]:
    (home / "tmp").mkdir(exist_ok=True)
    return {
        "PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8", "HOME": str(home),
        "TMPDIR": str(home / "tmp"), "IPYTHONDIR": str(home / ".ipython"),
        "MPLBACKEND": "agg", "MPLCONFIGDIR": str(home / ".matplotlib"),
        "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    }  # fmt: skip


def font_cache(folder: Path) -> list[Path]:
    """Return Matplotlib's list of fonts, made once: each submission would make it again."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    subprocess.run(
        [sys.executable, "-I", "-c", "import matplotlib.font_manager"],
        env={**_environment(folder), "MPLCONFIGDIR": str(folder)},
        capture_output=True,
        check=False,
    )
    return sorted(folder.glob("fontlist*.json"))
