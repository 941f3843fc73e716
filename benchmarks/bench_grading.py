"""Grade a class: 200 submissions of ten questions, 25 of them hostile; and what walls cost.

    python benchmarks/bench_grading.py [NUMBER OF SUBMISSIONS]
    python benchmarks/bench_grading.py --gradebook [NUMBER OF STUDENTS]

The notebooks are those of an assignment of the book's own questions with numbers for
each student. Honest ones solve it with `mlsim`, or leave it blank, or take a wrong path;
hostile ones loop, exit, print 200 MB, fill the memory, or reach for the key.

The second makes up what came out of the walls, and times all that comes after: judging, the
gradebook, texts and overrides, what is alike, tables, exports, pages.
"""

from __future__ import annotations

import csv
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlsim_course import bank
from mlsim_grading.assignment import Assignment, make_assignment
from mlsim_grading.class_lists import Roster, Student
from mlsim_grading.decisions import LateRule, read_due, read_hand, read_overrides, write_hand
from mlsim_grading.grade import Result, _result as grade_result
from mlsim_grading.gradebook import Rules, export, gradebook_csv, make_gradebook
from mlsim_grading.matching import Matcher
from mlsim_grading.overview import (
    alike_table,
    find_alike,
    mistakes_table,
    overview,
    questions_table,
)
from mlsim_grading.process import Ran, run_notebook
from mlsim_grading.report import publish_results
from mlsim_grading.submissions import Handed
from mlsim_grading.tables import csv_text
from mlsim_grading.walls.choose import TRUST, NoWallsError, choose
from mlsim_grading.walls.supervise import Limits

ROOT = Path(__file__).parents[1]
REPEATS = 9
HOSTILE = [
    "while True: pass",
    "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass",
    "raise SystemExit",
    "import os; os._exit(1)",
    "print('x' * 2 * 10**8)",
    "x = ' ' * 10**11",
    "import subprocess; subprocess.run(['sleep', '1000'])",
    "import socket; socket.create_connection(('192.0.2.1', 80))",
    "import os\nwhile True: os.fork()",
    "import pathlib; print(pathlib.Path('{key}').read_text())",
]
TEN = [
    "t4-share", "ridge-order", "tensor-cores", "kv-70b", "decode-floor", "users-h200",
    "cache-bits", "experts-read", "state-70b", "days-six",
]  # fmt: skip
TEXT = "twice-the-peak"


def main(count: int) -> None:
    """Make the class, grade it, and print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        names = [f"student{number:03}" for number in range(count)]
        (home / "class.csv").write_text("student\n" + "\n".join(names) + "\n")
        command = [sys.executable, "-m", "mlsim_book.cli"]
        out = home / "week"
        started = time.perf_counter()
        assign = ["assign", *TEN, "--out", str(out), "--variant-by", str(home / "class.csv")]
        subprocess.run([*command, *assign], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        print(f"assign, {count} students: {time.perf_counter() - started:.1f} s")
        for number, name in enumerate(names):
            hand_in(out, name, number)
        started = time.perf_counter()
        subprocess.run([*command, "grade", str(out)], cwd=ROOT, check=True)
        took = time.perf_counter() - started
        with (out / "results" / "results.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert sorted(row["student"] for row in rows) == names
        right = sum(row["points"] == row["of"] for row in rows)
        print(f"grade, {count} submissions: {took:.1f} s, {took / count:.2f} s each;")
        print(f"  {len(rows)} results, {right} with all points")
        started = time.perf_counter()
        subprocess.run([*command, "grade", str(out)], cwd=ROOT, check=True, capture_output=True)
        print(f"again, nothing new: {time.perf_counter() - started:.1f} s")


def gradebook(count: int) -> None:
    """Make up what a large class handed in, and print what each step after the walls takes."""
    rng = random.Random(10_000)
    names = [f"Student {number:05}" for number in range(count)]
    exercises = [bank.exercises[each] for each in (*TEN, TEXT)]
    columns = ("First name", "Last name", "ID number", "Email address")
    people = tuple(
        Student(name, columns=dict(zip(columns, (*name.split(), f"00{n}", f"{n}@x"), strict=True)))
        for n, name in enumerate(names)
    )
    steps: list[tuple[str, float, float]] = []

    def timed(step: str, call: Callable[[], Any]) -> Any:
        started, before = time.perf_counter(), time.process_time()
        found = call()
        steps.append((step, time.perf_counter() - started, time.process_time() - before))
        return found

    made = timed("questions and numbers", lambda: make_assignment("Week", exercises, names))
    made = replace(made, roster=Roster(people, columns))
    handed = [
        (name, number, *made_up(made, name, rng))
        for name in names
        for number in range(1 + (rng.random() < 0.1))
    ]
    matcher = timed("class list", lambda: Matcher(made.students, made.roster, made.title))
    results = timed("judge", lambda: [judged(made, matcher, *each) for each in handed])
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        own = [each.id for each in exercises]
        (home / "overrides.csv").write_text(
            "student,question,points,why\n"
            + "".join(f"{name},{rng.choice(own)},1,asked\n" for name in names[::50])
        )
        called = {name: name for name in names}
        points = {each.id: each.points for each in exercises}
        empty = read_hand(home, exercises)
        timed("texts to be marked", lambda: write_hand(home / "hand", empty, results))
        sheet = home / "hand" / f"{TEXT}.csv"
        sheet.write_text(sheet.read_text("utf-8-sig").replace(",,,,", ",2,1,0,"), encoding="utf-8")
        hand = timed("texts read back", lambda: read_hand(home / "hand", exercises))
        own_points = timed(
            "overrides", lambda: read_overrides(home / "overrides.csv", called, points)
        )
        due = LateRule(read_due("2026-11-30T12:00+00:00"))
        rules = Rules("latest", due, own_points, hand)
        book = timed("gradebook", lambda: make_gradebook(results, made, rules))
        alike = timed("alike", lambda: find_alike(book, made))
        texts = timed("tables", lambda: {
            "gradebook.csv": gradebook_csv(book), "alike.csv": csv_text(alike_table(alike)),
            "questions.csv": csv_text(questions_table(book)),
            "mistakes.csv": csv_text(mistakes_table(book)),
        })  # fmt: skip
        for kind in ("canvas", "moodle", "csv"):
            texts |= timed(f"export {kind}", lambda kind=kind: export(book, kind)).files
        texts["overview.html"] = timed("the instructor's page", lambda: overview(book, alike))
        timed("pages for students, written and swapped", lambda: publish_results(
            book.results, made, home / "results", extra=texts
        ))  # fmt: skip
        written = (home / "results" / "overview.html").stat().st_size
    assert len(book.entries) == count
    assert not any(each.open for each in book.entries)
    print(f"{count} students, {len(results)} submissions, {len(exercises)} questions:")
    whole = ("in all", sum(each[1] for each in steps), sum(each[2] for each in steps))
    for step, seconds, work in (*steps, whole):
        print(f"  {step:40} {seconds:6.2f} s, {work:6.2f} s of a processor")
    print(f"  {len(alike)} signs that work is alike; overview.html {written / 1e6:.1f} MB")


def made_up(made: Assignment, name: str, rng: random.Random) -> tuple[dict[str, Any], str]:
    """What somebody answered: mostly right, else blank, a wrong path, or another's answer."""
    values: dict[str, Any] = {}
    for index, question in enumerate(made.questions):
        version = question.versions[made.students[name][index]]
        chance = rng.random()
        if question.exercise.kind == "text":
            given: Any = f"Because of {rng.random():.9f}: the bytes come as fast as before."
        elif chance < 0.6:
            given = version.answer
        elif chance < 0.8 and version.wrong:
            given = rng.choice(version.wrong)
        elif chance < 0.9:
            continue
        else:
            given = rng.choice(question.versions).answer
        kind = (
            "text" if isinstance(given, str) else "list" if isinstance(given, tuple) else "number"
        )
        values[question.variable] = {kind: list(given) if kind == "list" else given}
    return values, f"{rng.randrange(10**7):032x}"


def judged(  # noqa: PLR0917 - what a submission is
    made: Assignment,
    matcher: Matcher,
    name: str,
    number: int,
    values: dict[str, Any],
    sources: str,
) -> Result:
    """Judge it as a grading does, with nothing left but the walls."""
    file = f"{name}-{number}.ipynb"
    handed = Handed(Path(file), file, file.encode())
    result = grade_result(handed, made, Ran(values, student=name, sources=sources), matcher)
    at = f"2026-{11 + number}-30T{number + 10}:00:00+00:00"
    return replace(result, handed_at=at, attempt=number)


def cost_of_walls() -> None:
    """Run one notebook with and without walls, in turn, and print the medians."""
    code = (
        "from mlsim import Engine, Hardware, Models\nanswer = Models.ResNet50.parameters.magnitude"
    )
    notebook = json.dumps({"cells": [{"cell_type": "code", "source": code}]}).encode()
    kinds = {"without walls": choose(TRUST)}
    for kind in ("bubblewrap", "podman", "docker"):
        try:
            kinds[kind] = choose(kind)
        except NoWallsError:
            continue
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(REPEATS):
        for name, walls in kinds.items():
            started = time.perf_counter()
            ran = run_notebook(notebook, {"answer": ""}, Limits(), walls)
            seconds[name].append(time.perf_counter() - started)
            assert ran.values["answer"]["number"] > 0, ran
    print(f"one submission, median of {REPEATS}:")
    for name, times in seconds.items():
        print(f"  {name:14} {statistics.median(times) * 1e3:.0f} ms")


def hand_in(out: Path, name: str, number: int) -> None:
    """Write one student's notebook: every eighth is hostile, every fifth of the others blank."""
    solved = number % 5 != 1
    text = (out / ("solutions" if solved else "students") / f"{name}.ipynb").read_text()
    if number % 8 == 0:
        notebook = json.loads(text)
        code = HOSTILE[number // 8 % len(HOSTILE)].replace("{key}", str(out / "key.json"))
        cell = {"cell_type": "code", "id": "hostile", "metadata": {}, "outputs": []}
        notebook["cells"].insert(3, {**cell, "execution_count": None, "source": code})
        text = json.dumps(notebook)
    (out / "submissions" / f"{name}.ipynb").write_text(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--gradebook"]:
        gradebook(int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
    else:
        cost_of_walls()
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
