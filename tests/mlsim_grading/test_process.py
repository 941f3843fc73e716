"""What is taken in of a submission: bounded, whatever it sends."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace

from made_up_class import handed, made

from mlsim_grading.gradebook import gradebook_csv, make_gradebook
from mlsim_grading.overview import results_csv
from mlsim_grading.process import Ran, run_notebook
from mlsim_grading.walls.supervise import Heard, Limits


class Said:
    """Walls of which these lines come out, after what the program inside says first."""

    def __init__(
        self, *lines: dict[str, object], seconds: float = 1.0, ended: str = "",
        first: Sequence[dict[str, object]] = ({"ready": True}, {"student": "Ada"}),
    ) -> None:  # fmt: skip
        channel = "".join(f"{json.dumps(each)}\n" for each in [*first, *lines]).encode()
        self.heard = Heard(channel, "", ended, seconds)
        self.left: list[float] = []
        self.then = self  # what comes out when it is run again

    def run(
        self, _task: object, _notebook: bytes, _limits: Limits, left: float, _: object
    ) -> Heard:
        self.left.append(left)
        return self.heard if len(self.left) == 1 else self.then.heard


def ran(said: Said) -> Ran:
    return run_notebook(b"", {"a": ""}, Limits(seconds=30), said)  # type: ignore[arg-type]


def test_notes_end_with_and_more() -> None:
    many = [{"ends": n, "kind": "ValueError", "text": f"{n}"} for n in range(9000)]
    found = ran(Said(*many))
    assert len(found.trouble) == len(found.told) == 21
    assert found.trouble[-1] == found.told[-1] == "and more"


def test_lines_that_nobody_needs_are_not_read() -> None:
    said: list[dict[str, object]] = [{"name": "a", "value": {"number": 1}}]
    said += [{}] * 100_000
    found = ran(Said(*said, {"name": "a", "value": {"number": 2}}))
    assert found.values == {"a": {"number": 1.0}}
    assert found.trouble == ("it sent more than is read",)


def test_an_attempt_has_the_time_that_those_before_it_left() -> None:
    """Of the time of an attempt, what its interpreter took to start counts for nothing."""
    said = Said({"begins": 0}, seconds=12.0, ended="was killed")
    found = ran(said)
    assert said.left == [30.0, 18.0]
    assert found.trouble == ("code cell 1 was killed; it was left out",)


def test_an_attempt_with_no_time_left_loses_nothing() -> None:
    """A busy machine may not start a notebook again, which lost a cell, before its time is over."""
    late = Said(ended="ran for more than 8 s", first=())
    lost = Said({"begins": 0}, {"name": "a", "value": {"number": 2}}, ended="was killed")
    lost.then = late
    found = ran(lost)
    assert (found.failed, found.values["a"], found.student) == ("", {"number": 2.0}, "Ada")
    assert ran(late).failed == late.heard.ended


def test_what_is_written_can_be_read_again() -> None:
    """Whatever a note or a name holds, the tables are ones that a spreadsheet and `csv` read."""
    task = made(["Ada"])
    long = replace(handed(task, "Ada"), notes=("x" * 2_400_000, "y;=HYPERLINK(1);z"))
    others = [replace(long, file=f"{n:0300}.ipynb", notes=()) for n in range(900)]
    book = make_gradebook([long, *others], task)
    for text in (gradebook_csv(book), results_csv(book.results, task, {})):
        for row in csv.reader(io.StringIO(text)):
            assert all(len(cell) < 32_767 for cell in row)
    (row,) = csv.DictReader(io.StringIO(gradebook_csv(make_gradebook([long], task))))
    assert row["notes"].endswith("characters)")
    short = replace(long, notes=long.notes[1:])
    (row,) = csv.DictReader(io.StringIO(gradebook_csv(make_gradebook([short], task))))
    assert row["notes"].endswith("y;'=HYPERLINK(1);z")
