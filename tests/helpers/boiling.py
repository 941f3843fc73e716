"""A book of one chapter with questions about boiling, for assignments."""

from __future__ import annotations

from pathlib import Path

QUESTIONS = """\
[[exercise]]
id = "boil"
title = "Boil"
kind = "number"
points = 2
prompt = "How long for {litres} l at 2 kW? See [*the kettle*]{{.mark}}."
setup = "power = 2000"
answer = "litres * 334880 / power"
unit = "s"
hints = ["Energy over power."]
solution = "{answer:.2f} s."

[exercise.given]
litres = [2, 3, 5, 7]

[[exercise.wrong]]
answer = "334880 / power"
because = "That is for one litre."

[[exercise]]
id = "unit-of-power"
title = "The unit"
kind = "choice"
prompt = "What is a watt?"
choices = ["J", "J/s", "J s"]
answer = "'J/s'"
solution = "{answer}."

[[exercise]]
id = "sort-them"
title = "Sort"
kind = "order"
prompt = "Smallest first."
choices = ["cup", "bath", "kettle"]
answer = "['cup', 'kettle', 'bath']"
solution = "So."

[[exercise.wrong]]
answer = "['bath', 'kettle', 'cup']"
because = "That is largest first."
"""
# A question that a person marks.
LID = """
[[exercise]]
id = "why-a-lid"
title = "Why a lid?"
kind = "text"
prompt = "Why does a lid help?"
solution = "Steam carries heat away. A lid keeps it."

[[exercise.rubric]]
name = "Reason"
points = 2
full = "Says what carries the heat away."
half = "Says only that heat is lost."
"""


def write_book(folder: Path, questions: str = QUESTIONS) -> Path:
    """Write the book into a folder; return its root."""
    root = folder / "book"
    root.mkdir()
    (root / "_quarto.yml").write_text("project: {type: book}\nbook: {chapters: [index.qmd]}\n")
    (root / "index.qmd").write_text("# A\n")
    (root / "index.exercises.toml").write_text(questions)
    return root
