"""Questions and their answers as they are kept, a file for each door; and what moved since.

A file is a table with tabs between its cells and a question in each line: its arguments in JSON,
and its answer's cells (`answer_digest`) or its refusal. A line hangs on no other line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from answer_digest import SUM, Digest, digest, weight
from questions import FILES, Question
from what_moved import CLOSE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "goldens" / "questions"
CHECK_SUMS = ("words", "printed")
ASKED, REFUSED = "asked", "refused"
# Beyond their own last digits, sums are the same within as much as one number may move.
_ROUNDED = 1e-15
Cells = Mapping[str, str]


def file_of(door: str) -> Path:
    """Return where the questions to a door are kept."""
    return FOLDER / f"{door}.tsv"


def doors() -> list[str]:
    """Return the doors that have questions."""
    return sorted(path.stem for path in FOLDER.glob("*.tsv"))


def kept(door: str) -> dict[Question, dict[str, str]]:
    """Return the questions to a door, and their answers as they were; none if it is new."""
    path = file_of(door)
    if not path.is_file():
        return {}
    first, *lines = path.read_text("utf-8").splitlines()
    names = first.split("\t")
    found = {}
    for line in lines:
        text, *cells = line.split("\t")
        row = {name: cell for name, cell in zip(names[1:], cells, strict=False) if cell}
        found[Question(door, text)] = row
    return found


def keep(door: str, answers: Mapping[Question, Cells]) -> None:
    """Write the questions to a door with their answers, ordered by the questions' texts."""
    names = [REFUSED, *sorted({name for each in answers.values() for name in each} - {REFUSED})]
    lines = ["\t".join((ASKED, *names))]
    for question in sorted(answers, key=lambda each: each.text):
        cells = answers[question]
        lines.append("\t".join((question.text, *(cells.get(name, "") for name in names))).rstrip())
    path = file_of(door)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def asked(question: Question) -> Digest:
    """Ask a question; a refusal is an answer of one cell."""
    try:
        found = digest(question.answer())
    except Exception as error:  # noqa: BLE001 - whatever a door raises is what it answers
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return Digest({REFUSED: words.replace(f"{FILES}/", "").replace(str(ROOT), "")}, {})
    stated = question.asked
    cells = {
        name: " ".join(cell.split())
        for name, cell in found.cells.items()
        if name.partition(" [")[0].removeprefix(SUM) not in stated
    }
    return Digest(cells, found.numbers)


class Moved(NamedTuple):
    """What is other in an answer: which cell, in words, and by which share where that is known."""

    question: Question
    cell: str
    words: str
    change: float | None = None

    def __str__(self) -> str:
        return f"{self.question}: {self.words}"


def moved(question: Question, old: Cells, new: Digest) -> list[Moved]:
    """Return what moved in an answer since it was kept."""
    found = []
    for name in sorted({*old, *new.cells}):
        before, after = old.get(name), new.cells.get(name)
        if before == after:
            continue
        if before is None or after is None:
            words = f"{name}: {_told(before)} -> {_told(after)}"
            found.append(Moved(question, name, words))
        elif name.startswith(SUM):
            found += _moved_sum(question, name, (before, after), new)
        else:
            found += _moved_cell(question, name, before, after)
    return found


def _told(cell: str | None) -> str:
    return "nothing" if cell is None else cell


def _moved_cell(question: Question, name: str, before: str, after: str) -> Iterator[Moved]:
    plain, _, unit = name.rstrip("]").partition(" [")
    unit = "" if unit in ("", "1") else f" {unit}"
    if name in CHECK_SUMS:
        yield Moved(question, name, f"{plain} {before} -> {after}")
        return
    try:
        olds, news = ([float(each) for each in _list(cell)] for cell in (before, after))
    except ValueError:
        yield Moved(question, name, f"{plain} {before} -> {after}")
        return
    if len(olds) != len(news):
        yield Moved(question, name, f"{plain} {before} -> {after}")
        return
    for at, (old, new) in enumerate(zip(olds, news, strict=True)):
        if not _same(old, new):
            where = f"{plain}[{at}]" if before.startswith("[") else plain
            change = new / old - 1 if old else None
            far = "" if change is None else f" ({change:+.3g})"
            if change is not None and abs(change) >= 1e-4:
                far = f" ({100 * change:+.3g} %)"
            words = f"{where} {old:.6g}{unit} -> {new:.6g}{unit}{far}"
            yield Moved(question, name, words, change)


def _list(cell: str) -> list[str]:
    return cell.strip("[]").split(", ")


def _same(old: float, new: float) -> bool:
    return math.isclose(old, new, rel_tol=CLOSE, abs_tol=0.0) or (old != old and new != new)


def _moved_sum(
    question: Question, name: str, cells: tuple[str, str], new: Digest
) -> Iterator[Moved]:
    """Say what moved behind a sum: by its name, if it is one number alone."""
    (count, plain, weighted, *odd), (count2, plain2, weighted2, *odd2) = map(str.split, cells)
    what = name.removeprefix(SUM)
    if count != count2:
        yield Moved(question, name, f"{what}: {count} numbers -> {count2}")
        return
    if odd != odd2:
        yield Moved(question, name, f"{what}: another number is zero, negative or none")
        return
    change, tilted = float(plain2) - float(plain), float(weighted2) - float(weighted)
    if (
        max(
            abs(each) - _ROUNDED * abs(float(size))
            for each, size in ((change, plain2), (tilted, weighted2))
        )
        <= CLOSE
    ):
        return
    one = _the_one(change, tilted, new.numbers.get(what, {}))
    if one:
        value = new.numbers[what][one]
        words = f"{what} {one} {value / math.exp(change):.6g} -> {value:.6g}"
        yield Moved(
            question, name, f"{words} ({100 * math.expm1(change):+.3g} %)", math.expm1(change)
        )
    else:
        mean = change / int(count)
        words = f"several of {count} numbers moved, by {100 * math.expm1(mean):+.3g} % in the mean"
        yield Moved(question, name, f"{what}: {words}")


def _the_one(change: float, tilted: float, numbers: Mapping[str, float]) -> str | None:
    """Return the name of the number that explains both sums by itself."""
    if abs(change) < 1e-9:
        return None
    near = [each for each in numbers if abs(weight(each) - tilted / change) < 1e-6]
    return near[0] if len(near) == 1 else None


def differences(
    questions: Iterable[Question], old: Mapping[Question, Cells]
) -> Iterator[tuple[Question, Digest, list[Moved]]]:
    """Ask questions, and yield their answers and what moved in each."""
    for question in questions:
        new = asked(question)
        if question not in old:
            yield question, new, [Moved(question, "", "is asked for the first time")]
        else:
            yield question, new, moved(question, old[question], new)


def summary(found: Sequence[Moved], most: int = 12) -> str:
    """Say how many answers moved, how far the farthest did, and list some that moved most."""
    far = [each for each in found if each.change is not None]
    farthest = max((abs(each.change or 0.0) for each in far), default=None)
    many = len({each.question for each in found})
    words = f"{many} answers moved"
    words += "" if farthest is None else f", the farthest by {100 * farthest:.3g} %"
    # One line of each answer: what it says first, before sums.
    lines = {each.question: each for each in sorted(found, key=_importance, reverse=True)}
    shown = sorted(lines.values(), key=_importance)[:most]
    more = [f"and {many - len(shown)} other answers"] if many > len(shown) else []
    return "\n  ".join([words, *map(str, shown), *more])


def _importance(each: Moved) -> tuple[bool, bool, float]:
    """Return what sorts refusals before results, results before sums, and the farthest first."""
    return (
        each.cell != REFUSED,
        each.cell.startswith(SUM) or each.cell in CHECK_SUMS,
        -abs(each.change or 0.0),
    )
