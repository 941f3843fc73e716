"""A book of one chapter with questions about boiling, for assignments."""

from __future__ import annotations

from pathlib import Path

from kept import text

QUESTIONS = text("boiling.exercises.toml")
# A question that a person marks.
LID = text("lid.exercises.toml")


def write_book(folder: Path, questions: str = QUESTIONS) -> Path:
    """Write the book into a folder; return its root."""
    root = folder / "book"
    root.mkdir()
    (root / "_quarto.yml").write_text("project: {type: book}\nbook: {chapters: [index.qmd]}\n")
    (root / "index.qmd").write_text("# A\n")
    (root / "index.exercises.toml").write_text(questions)
    return root
