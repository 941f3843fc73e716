"""The exercise files of a book: beside its chapters, and where settings say.

The script and the styles of exercises on a page, which only a page with exercises loads. The
script is made of the files `theme/guesses.js` (what is kept in the browser), `theme/verdicts.js`
(the verdict on an answer), `theme/fields.js`, `theme/exercises.js`, `theme/opening.js` (guesses at
the head of a chapter) and `theme/calibration.js` (the page of all guesses). Its rules are those of
`mlsim_exercises.verdicts`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_book.read.yamlfile import named_paths
from mlsim_exercises.bank import PATTERN
from mlsim_exercises.verdicts import rules


def exercise_files(project: Project, sources: Iterable[str]) -> list[Path]:
    """Return the exercise files of a book: beside its chapters, and where settings say.

        mlsim-book:
          exercises: [package/questions]   # folders

    Raises
    ------
    SourceError
        The setting is no list of folders, or names one that isn't there.
    """
    hint = "Name the folders that hold .exercises.toml files: [package/questions]."
    given = named_paths(project.metadata, "exercises", hint)
    for name in given:
        if not (project.root / name).is_dir():
            raise SourceError(
                f"`mlsim-book: exercises:` names '{name}', which is no folder",
                file="_quarto.yml",
                hint=hint,
            )
    folders = dict.fromkeys((project.root / source).parent for source in sources)
    folders.update(dict.fromkeys(project.root / name for name in given))
    return [path for folder in folders for path in sorted(folder.glob(PATTERN))]


FOLDER = Path(__file__).parent / "theme"
PARTS = ("guesses", "verdicts", "fields", "exercises", "opening", "calibration")

_EXERCISES = re.compile(
    r'\sclass="(?:[^"]*\s)?(?:exercise checked|selfcheck|guess|calibration)[\s"]'
)
# Remarks, on lines of their own or at the end of one, and indents.
_SPARE = re.compile(r"^\s*(?://.*\n|/\*\*.*\*/\n)|(?<=[;{},)]) +// [^\n\"'`]*$|^\s+", re.MULTILINE)
_CALIBRATION = re.compile(r'\sclass="(?:[^"]*\s)?calibration[\s"]')


def exercises_script(parts: Iterable[str] = PARTS) -> str:
    """Return the script; its functions see each other, and nothing else sees them."""
    own = "".join((FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in parts)
    own = _SPARE.sub("", own)
    given = json.dumps(rules(), ensure_ascii=False, separators=(",", ":"))
    return f'(() => {{\n"use strict";\nconst RULES = {given};\n{own}}})();\n'


def exercises_styles() -> str:
    """Return the stylesheet."""
    return (FOLDER / "exercises.css").read_text(encoding="utf-8")


def has_exercises(body: str) -> bool:
    """Say whether a page needs the script and the styles.

    >>> has_exercises('<div id="exr-a" class="theorem exercise checked">')
    True
    >>> has_exercises('<div class="theorem exercise"> <p class="unchecked">')
    False
    """
    return bool(_EXERCISES.search(body))


def guesses_page(pages: Iterable[tuple[str, str]]) -> str:
    """Return the address of the page that shows a reader's guesses, "" where there is none.

    >>> guesses_page([("a.html", "<p>"), ("b.html", '<div class="calibration">')])
    'b.html'
    """
    return next((href for href, body in pages if _CALIBRATION.search(body)), "")
