"""Golden files: the numbers of the pages, examples of the command line, questions to every door.

`make goldens` runs this: it writes them anew, and lists what moved since they were written. With
names of pages, such as `goldens.py math.qmd`, it does so for the numbers of these pages alone.
Questions are those of their files; `goldens.py --draw` asks those that `question_grid` draws.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kept_questions
import page_numbers
import question_grid
import shell_examples
from kept_questions import Moved
from page_numbers import Entry
from questions import Question
from what_moved import Move, moves, other_leaves

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "goldens"


def page_file(source: str) -> Path:
    """Return where the numbers of a page are kept."""
    return (FOLDER / "pages" / source).with_suffix(".csv")


def example_file(example: str) -> Path:
    """Return where the answer to an example is kept."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", example.removeprefix("mlsim ")).strip("-")
    return FOLDER / "cli" / f"{name}.json"


def kept_numbers(path: Path) -> list[Entry]:
    """Return the numbers of a page as they were; none if it is new."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Entry(**row) for row in csv.DictReader(file)]


def kept_answer(path: Path) -> dict[str, Any]:
    """Return the answer to an example as it was; nothing if it is new."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return found


def renew_pages(failed: list[str], only: Sequence[str] = ()) -> list[Move]:
    """Write the numbers of each page, or of some, whose numbers moved; print and return what did.

    A page that raises keeps its file, and is added to `failed`.
    """
    found: list[Move] = []
    wanted = set()
    for source, page in page_numbers.pages(ROOT).items():
        path = page_file(source)
        if only and source not in only:
            wanted.add(path)
            continue
        try:
            new = page_numbers.entries_of(page, ROOT)
        except Exception:  # noqa: BLE001 - a page may raise anything
            failed.append(f"{source}\n{traceback.format_exc(limit=-2)}")
            wanted.add(path)
            continue
        if new:
            wanted.add(path)
        found += _tell(source, moved := moves(kept_numbers(path), new))
        if moved and new:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerows([Entry._fields, *new])
    for path in sorted({*FOLDER.rglob("pages/**/*.csv")} - wanted):
        source = path.relative_to(FOLDER / "pages").with_suffix(".qmd").as_posix()
        if source not in page_numbers.pages(ROOT):
            found += _tell(source, moves(kept_numbers(path), []))
        path.unlink()
    return found


def _tell(source: str, moved: Sequence[Move]) -> Sequence[Move]:
    if moved:
        print(source, *moved, sep="\n  ")
    return moved


def renew_examples(failed: list[str]) -> int:
    """Write the answers that moved; print what did, and return how many values of them.

    An example that gives no answer keeps its file, and is added to `failed`.
    """
    count, wanted = 0, set()
    for example in shell_examples.examples(ROOT):
        path = example_file(example)
        wanted.add(path)
        try:
            new = {"example": example, **shell_examples.answer(example)}
        except ValueError as error:
            failed.append(f"{example}\n{error}")
            continue
        other = list(other_leaves(kept_answer(path), new))
        if other:
            print(example, *other, sep="\n  ")
            path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(new, indent=1, ensure_ascii=False)
            path.write_text(text + "\n", encoding="utf-8")
        count += len(other)
    for path in sorted({*FOLDER.rglob("cli/*.json")} - wanted):
        print(kept_answer(path)["example"], "is no example any more", sep="\n  ")
        path.unlink()
        count += 1
    return count


def renew_questions() -> int:
    """Write the answers to all questions anew; print what moved, and return of how many answers."""
    count = 0
    for door in kept_questions.doors():
        old = kept_questions.kept(door)
        answers = {}
        found: list[Moved] = []
        for question, new, other in kept_questions.differences(old, old):
            # What is as good as before stays to the last digit.
            answers[question] = new.cells if other else old[question]
            found += other
        if found:
            kept_questions.keep(door, answers)
            print(f"{door}: {kept_questions.summary(found)}")
        count += len({each.question for each in found})
    return count


def draw_questions() -> None:
    """Ask what the grid draws now, in place of what is kept; say how many came and went."""
    for door, many in question_grid.COUNTS.items():
        old = kept_questions.kept(door)
        answers: dict[Question, dict[str, str]] = {}

        def refused(question: Question, known: dict[Question, dict[str, str]] = answers) -> bool:
            known[question] = kept_questions.asked(question).cells
            return kept_questions.REFUSED in known[question]

        new = {each: answers[each] for each in question_grid.grid(door, many, refused)}
        kept_questions.keep(door, new)
        print(
            f"{door}: {len(new)} questions, {len(new.keys() - old)} new, {len(old - new.keys())} gone"
        )


def main(*words: str) -> int:
    """Renew all golden files; list what moved, how much of each kind, and what failed."""
    if words == ("--draw",):
        draw_questions()
        return 0
    if unknown := set(words) - page_numbers.pages(ROOT).keys():
        print(f"No pages: {', '.join(sorted(unknown))}. Name pages, or --draw.", file=sys.stderr)
        return 2
    failed: list[str] = []
    moved = renew_pages(failed, words)
    kinds = Counter(each for move in moved for each in move.what)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    print(f"Numbers of pages: {len(moved)} moved" + (f" ({counts})." if counts else "."))
    if not words:
        print(f"Command line: {renew_examples(failed)} values of answers moved.")
        print(f"Questions: {renew_questions()} answers moved.")
    for each in failed:
        print(f"FAILED, and left as it was: {each}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
