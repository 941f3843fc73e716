"""The settings of this builder: `mlsim-book:` in `_quarto.yml` or in front matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_book.question_bank import PATTERN


def book_settings(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what stands under `mlsim-book:`, nothing if it is no mapping.

    >>> book_settings({"mlsim-book": {"terms": False}}), book_settings({})
    ({'terms': False}, {})
    """
    given = metadata.get("mlsim-book")
    return given if isinstance(given, Mapping) else {}


def named_paths(metadata: Mapping[str, Any], key: str, hint: str) -> list[str]:
    """Return a setting that is a list of paths.

    Raises
    ------
    SourceError
        It is anything else; `hint` says what to write.

    >>> named_paths({"mlsim-book": {"exercises": ["questions"]}}, "exercises", "")
    ['questions']
    """
    given = book_settings(metadata).get(key, [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise SourceError(
            f"`mlsim-book: {key}:` is {given!r}, which must be a list of paths",
            file="_quarto.yml",
            hint=hint,
        )
    return given


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
