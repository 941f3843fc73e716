"""A class of the book's own questions with hostile students in it, graded in one go.

The plain run grades a small one; `MLSIM_JUDGE=1` (or `make judge`) the whole: 200 submissions, 25
hostile among them, in ten minutes.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attacks import ATTACKS

ROOT = Path(__file__).parents[3]
WHOLE = bool(os.environ.get("MLSIM_JUDGE"))
COUNT, HOSTILE = (200, 25) if WHOLE else (16, 4)
MINUTES = 10
CHAPTER = "llm_serving"
QUESTIONS = ["t4-share", "kv-70b", "decode-floor", "users-h200"]


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "mlsim_book.cli", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_hostile_students_cost_nobody_a_grade(tmp_path: Path) -> None:
    seed = random.Random(2222)
    names = [f"student{number:03}" for number in range(COUNT)]
    hostile = dict(
        zip(seed.sample(names, HOSTILE), seed.sample(list(ATTACKS), HOSTILE), strict=True)
    )
    (tmp_path / "class.csv").write_text("student\n" + "\n".join(names) + "\n")
    week = tmp_path / "week"
    run("assign", *QUESTIONS, "--out", str(week), "--variant-by", str(tmp_path / "class.csv"))
    for name in names:
        text = (week / "solutions" / f"{name}.ipynb").read_text()
        if name in hostile:
            notebook = json.loads(text)
            code = (
                ATTACKS[hostile[name]]
                .replace("KEY", str(week / "key.json"))
                .replace("HOME", str(week))
            )
            cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": code}
            notebook["cells"] = [cell]
            text = json.dumps(notebook)
        (week / "submissions" / f"{name}.ipynb").write_text(text)
    started = time.monotonic()
    run("grade", str(week))
    took = time.monotonic() - started
    with (week / "results" / "results.csv").open(encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(names)
    for name, row in rows.items():
        points = "0" if name in hostile else row["of"]
        assert row["points"] == points, (name, hostile.get(name), row)
    if WHOLE:
        print(f"{COUNT} submissions, {HOSTILE} hostile: {took:.0f} s")
        assert took < 60 * MINUTES
