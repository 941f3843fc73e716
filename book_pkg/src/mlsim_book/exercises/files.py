"""The exercise files of a book: beside its chapters, and where settings say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_book.read.settings import named_paths
from mlsim_exercises.bank import PATTERN


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
