"""Exams: where private questions may not lie, and with which version their answers were made."""

from __future__ import annotations

import importlib.metadata
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_grading.assignment import SUFFIX
from mlsim_grading.walls.environment import environment

_ELSEWHERE = "Put it into a folder of yours that is neither published nor installed."


def check_private(path: Path, project: Project, out: Path) -> str:
    """Return where a private file lies, if nobody else comes by it there.

    Raises
    ------
    SourceError
        There is no such file, or it lies in the book, in what submissions see, or in what is
        handed out or in.
    """
    real = path.resolve()
    if not real.is_file():
        raise SourceError("there is no such file", file=path)
    places: dict[str, Sequence[str | Path]] = {
        "the book's folder, which is published": [project.root],
        "the folder of the assignment, part of which is handed out": [out],
        "the environment of the interpreter, which submissions see": environment().shown,
    }
    for place, folders in places.items():
        for folder in folders:
            if real.is_relative_to(Path(folder).resolve()):
                raise SourceError(f"this file is private, but lies in {place}: {folder}",
                                  file=path, hint=_ELSEWHERE)  # fmt: skip
    return str(real)


def private_files(wanted: Iterable[str], project: Project, files: Iterable[Path]) -> Iterator[Path]:
    """Yield what is named like a chapter, and is a file of questions from outside the book.

    Parameters
    ----------
    files
        The files of questions that the book publishes, which may lie in its package.
    """
    public = {each.resolve() for each in files}
    for each in wanted:
        real = Path(each).resolve()
        if each.endswith(SUFFIX) and not (
            real in public or real.is_relative_to(project.root.resolve())
        ):
            yield Path(each)


def made_with(project: Project) -> tuple[str, str, str] | None:
    """Return the package that computes the answers: its name, version and commit.

    The commit is "" where the book is no checkout, or one with changes that no commit has.
    """
    settings = project.metadata.get("mlsim-book")
    package = settings.get("package") if isinstance(settings, Mapping) else None
    if not isinstance(package, str):
        return None
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    changed = _git(project.root, "status", "--porcelain", "--untracked-files=no")
    commit = "" if changed is None or changed else _git(project.root, "rev-parse", "HEAD") or ""
    return package, version, commit


def _git(folder: Path, *command: str) -> str | None:
    try:
        ran = subprocess.run(
            ["git", "-C", str(folder), *command], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return ran.stdout.strip() if ran.returncode == 0 else None


def other_version(made: tuple[str, str, str] | None) -> str:
    """Return a warning if the package here is not the one that the answers were made with."""
    if made is None:
        return ""
    package, version, _ = made
    try:
        here = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        here = "not installed"
    if here == version:
        return ""
    return (
        f"the key was made with {package} {version}; here it is {here}. Submissions run with the"
        f" one that is here: install {package} {version} to run what students were given."
    )
