"""The questions of a book: asked on its pages, checked in its notebooks.

A book's package makes one `Bank` of its exercise files and hands on its methods:

    bank = Bank(Path(__file__).parent / "questions", module=__name__)
    check, hint, reveal, questions = bank.check, bank.hint, bank.reveal, bank.show

so that `check("kv-1", 3.2)` works wherever the package is installed, with no file
beside the notebook. Standard library only.
"""

from __future__ import annotations

import difflib
import functools
from pathlib import Path
from typing import Any

from mlsim_exercises.data import (
    Exercise,
    ExerciseError,
    SelfCheck,
    load,
    load_selfchecks,
    rubric_list,
)
from mlsim_exercises.evaluation import Evaluation, evaluate
from mlsim_exercises.markdown import (
    answer_text,
    exercise_markdown,
    plain_text,
    selfcheck_markdown,
)
from mlsim_exercises.verdicts import Verdict, judge

PATTERN = "*.exercises.toml"


class Bank:
    """The exercises and self-checks of one file, or of all such files of a folder.

    Files are read, and answers computed, when they are first asked for.

    Raises
    ------
    ExerciseError
        From its methods: a file has a fault (with file and line), an id stands in two
        files, or nothing has the id that was asked for (with the nearest).
    """

    def __init__(self, path: str | Path, *, module: str = "") -> None:
        self.path = Path(path)
        self.module = module
        self._hints: dict[str, int] = {}

    @functools.cached_property
    def files(self) -> tuple[Path, ...]:
        """The exercise files, in alphabetical order."""
        if self.path.is_dir():
            return tuple(sorted(self.path.glob(PATTERN)))
        return (self.path,)

    @functools.cached_property
    def exercises(self) -> dict[str, Exercise]:
        """All exercises, by id."""
        return _by_id([each for file in self.files for each in load(file)])

    @functools.cached_property
    def selfchecks(self) -> dict[str, SelfCheck]:
        """All self-checks, by id."""
        return _by_id([each for file in self.files for each in load_selfchecks(file)])

    def evaluate(self, name: str) -> Evaluation:
        """Return an exercise with everything in it computed; once in a session."""
        if name not in self._computed:
            self._computed[name] = evaluate(self._find(self.exercises, name, "exercise"))
        return self._computed[name]

    @functools.cached_property
    def _computed(self) -> dict[str, Evaluation]:
        return {}

    def show(self, name: str, *more: str) -> None:
        """Print exercises and self-checks as Markdown, for a cell with `output: asis`.

        They come in the order of their ids, those of either kind.
        """
        print("\n".join([self._markdown(each) for each in (name, *more)]))

    def _markdown(self, name: str) -> str:
        found = self._find(self._questions, name, "exercise or self-check")
        if isinstance(found, SelfCheck):
            return selfcheck_markdown(found)
        return exercise_markdown(self.evaluate(name), module=self.module)

    @functools.cached_property
    def _questions(self) -> dict[str, Exercise | SelfCheck]:
        return _by_id([*self.exercises.values(), *self.selfchecks.values()])

    def verdict(self, name: str, answer: Any = ...) -> Verdict:
        """Return the verdict on an answer.

        Parameters
        ----------
        answer
            A number in the exercise's unit, a quantity in any unit that fits, one of
            the choices, a list of all of them in order, or a text that a person is to read.
        """
        return judge(self.evaluate(name), answer)

    def check(self, name: str, answer: Any = ...) -> None:
        """Print the verdict on an answer; `verdict` returns it."""
        verdict = self.verdict(name, answer)
        if verdict.kind == "right":
            print(f"✓ {plain_text(verdict.message)} reveal({name!r}) explains.")
        else:
            sign = "·" if verdict.kind in {"not attempted", "unmarked"} else "✗"
            print(f"{sign} {plain_text(verdict.message)}")

    def hint(self, name: str) -> None:
        """Print the next hint of an exercise; one more each time."""
        hints = self.evaluate(name).hints
        number = self._hints.get(name, 0)
        if number < len(hints):
            self._hints[name] = number + 1
            print(f"Hint {number + 1} of {len(hints)}: {plain_text(hints[number])}")
        else:
            print(f"There are no more hints: reveal({name!r}) shows the solution.")

    def reveal(self, name: str) -> None:
        """Print the answer and the solution of an exercise; of a text, what earns its points."""
        found = self.evaluate(name)
        if found.exercise.kind == "text":
            print(f"Points for:\n{plain_text(rubric_list(found.exercise.rubric))}\n")
        else:
            print(f"Answer: {answer_text(found.exercise, found.answer)}\n")
        print(plain_text(found.solution))

    def _find(self, items: dict[str, Any], name: str, kind: str) -> Any:
        if name in items:
            return items[name]
        near = difflib.get_close_matches(str(name), items, n=1)
        raise ExerciseError(
            f"there is no {kind} '{name}'",
            file=str(self.path),
            hint=f"Did you mean '{near[0]}'?"
            if near
            else f"There are: {', '.join(items) or 'none'}.",
        )


def _by_id(items: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in items:
        if each.id in found:
            other = found[each.id]
            raise ExerciseError(
                f"the id '{each.id}' is used twice (also in {other.file}, line {other.line})",
                file=each.file,
                line=each.line,
                hint="Give one of them another id: readers check their answers by it.",
            )
        found[each.id] = each
    return found
