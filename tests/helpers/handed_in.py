"""Notebooks as students hand them in, and the tables that come back."""

from __future__ import annotations

import csv
import json
import textwrap
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
