"""A small book with an exercise of each kind, and how a reader answers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kept import book

from mlsim_book.build import build
from mlsim_exercises.data import load, load_selfchecks
from mlsim_exercises.evaluation import evaluate
from mlsim_exercises.markdown import exercise_markdown, selfcheck_markdown

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
EMPTY = "There is no guess here yet."


def build_exercises(root: Path) -> Path:
    """Build the book into a folder, and its zip; return the site."""
    file = book("kettles", root) / "sub" / "boil.exercises.toml"
    parts = [exercise_markdown(evaluate(each)) for each in load(file)]
    parts += ["## Check", *(selfcheck_markdown(each) for each in load_selfchecks(file))]
    page = "# Boiling\n\n## Your turn\n\n" + "\n\n".join(parts)
    (root / "sub" / "boil.qmd").write_text(page, encoding="utf-8")
    return build(root, formats=("zip",), lenient=True, progress=str)


def task(page: Any, name: str) -> Any:
    return page.locator(f"#exr-{name}")


def press(place: Any, name: str) -> None:
    place.get_by_role("button", name=name).click()


def said(place: Any) -> str:
    return str(place.locator(".exercise-feedback").inner_text())


def give(page: Any, name: str, answer: str, guess: str | None = None) -> str:
    """Answer an exercise with a number, after a guess or none; return what is said."""
    place = task(page, name)
    if guess is not None:
        place.get_by_label("Your guess").fill(guess)
        press(place, "Keep my guess")
    elif place.get_by_label("Your guess").is_visible():
        press(place, "Skip the guess")
    place.get_by_label("Your answer").fill(answer)
    press(place, "Check")
    return said(place)
