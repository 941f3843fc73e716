"""Notebooks as students hand them in, and the tables that come back."""

from __future__ import annotations

import csv
import json
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Two right answers of `boiling.QUESTIONS`, without numbers of one's own.
RIGHT = "answer_boil = 334.88\nanswer_unit_of_power = 'J/s'"


def notebook(*sources: str, **metadata: Any) -> str:
    """Return a notebook with these code cells."""
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": textwrap.dedent(each)}
        for each in sources
    ]
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def rows(path: Path) -> dict[str, dict[str, str]]:
    """Return the rows of a table by their first cell."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return {next(iter(row.values())): row for row in csv.DictReader(file)}


def running_notebooks() -> set[int]:
    """Return the processes of gradings that still run, by the mark that their task carries."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            alive = (folder / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            continue
        if b"mlsim_grading.runner" in words and alive:
            found.add(int(folder.name))
    return found


def wait_for(true: Callable[[], object], seconds: float = 30) -> bool:
    """Wait until something is true; return whether it is."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(true())
