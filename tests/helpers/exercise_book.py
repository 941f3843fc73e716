"""A small book with an exercise of each kind, and how a reader answers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlsim_book.build import build
from mlsim_exercises.data import load, load_selfchecks
from mlsim_exercises.evaluation import evaluate
from mlsim_exercises.markdown import exercise_markdown, selfcheck_markdown

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
YAML = """project:
  type: book
book:
  title: Kettles
  chapters: [index.qmd, sub/boil.qmd, guesses.qmd]
mlsim-book:
  content-security-policy: true
"""
QUESTIONS = """
[[exercise]]
id = "double"
title = "Twice the water"
kind = "number"
topic = "boiling"
better = "lower"
prompt = "How long does a kettle of 1,000 W take to boil 2 l of water?"
answer = "2 * 334.88"
unit = "s"
hints = ["Energy over power: $t = E / P$.", "Water takes 4,186 J per kg and kelvin."]
solution = "It takes {answer:.0f} s. [Each litre takes as much energy as the first.]{{.why}}"

[[exercise.wrong]]
answer = "334.88"
because = "That is for *one* litre."

[[exercise]]
id = "rate"
title = "Cups a minute"
kind = "number"
topic = "boiling"
better = "higher"
prompt = "How many cups a minute?"
answer = "2"
solution = "Two."

[[exercise]]
id = "count"
title = "Cups a year"
kind = "number"
prompt = "How many cups?"
answer = "2416"
unit = "cups"
solution = "{answer:.0f}."

[[exercise]]
id = "share"
title = "Heat lost"
kind = "number"
prompt = "What part of the heat is lost?"
answer = "40"
unit = "%"
solution = "{answer:.0f} %."

[[exercise]]
id = "metal"
title = "Which metal?"
kind = "choice"
prompt = "Which metal warms fastest?"
choices = ["Copper, $c = 385$", "Iron", "`Lead`"]
answer = "'`Lead`'"
solution = "Lead does."

[[exercise.wrong]]
answer = "'Iron'"
because = "Iron takes the most."

[[exercise]]
id = "sort"
title = "Sort them"
kind = "order"
prompt = "Sort by power, least first."
choices = ["Kettle", "Lamp", "Oven"]
answer = "['Lamp', 'Kettle', 'Oven']"
solution = "Lamp, kettle, oven."

[[exercise.wrong]]
answer = "['Oven', 'Kettle', 'Lamp']"
because = "That is the most first."

[[exercise]]
id = "lid"
title = "Why a lid?"
kind = "text"
prompt = "Why does a lid help?"
solution = "Steam carries heat away."

[[exercise.rubric]]
name = "Reason"
points = 2
full = "Says what carries *the heat* away."
half = "Says only that heat is lost."

[[selfcheck]]
id = "watt"
question = "What is a watt?"
choices = ["A joule", "A joule a second"]
answer = "A joule a second"
because = "Power is energy per second."
"""
EMPTY = "There is no guess here yet."


def build_exercises(root: Path) -> Path:
    """Build the book into a folder, and its zip; return the site."""
    (root / "sub").mkdir()
    file = root / "sub" / "boil.exercises.toml"
    file.write_text(QUESTIONS, encoding="utf-8")
    parts = [exercise_markdown(evaluate(each)) for each in load(file)]
    parts += ["## Check", *(selfcheck_markdown(each) for each in load_selfchecks(file))]
    pages = {
        "_quarto.yml": YAML,
        "index.qmd": "# Welcome\n\nHello.\n",
        "sub/boil.qmd": "# Boiling\n\n## Your turn\n\n" + "\n\n".join(parts),
        "guesses.qmd": f"# Guesses\n\n::: {{.calibration}}\n{EMPTY}\n:::\n",
    }
    for name, text in pages.items():
        (root / name).write_text(text, encoding="utf-8")
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
