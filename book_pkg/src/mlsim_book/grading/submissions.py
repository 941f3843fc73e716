"""What students handed in: files, what is wrong with them, and who they are from."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mlsim_book.errors import SourceError
from mlsim_book.grading.assignment import file_name
from mlsim_book.grading.process import clean

LARGEST = 64_000_000  # bytes of a notebook that is still read
SUFFIX = ".ipynb"
_DEEPEST = 20  # folders in folders
_SHOWN = 400  # characters of a name


@dataclass(frozen=True)
class Handed:
    """A file that was handed in, or what stands where one should be.

    `name` is how it is shown: its path in the folder of submissions, in characters that can be
    written. `key` tells it from every other, whatever characters its name has. `trouble` says
    why it can't be read, if that is known already.
    """

    path: Path
    name: str
    key: bytes
    trouble: str = ""


def find_submissions(folder: Path) -> list[Handed]:
    """Return the notebooks of a folder and its subfolders, in order of their names.

    What is called a notebook and is none (a pipe, a link) is returned with what it is, and so
    is a folder that can't be opened.

    Raises
    ------
    SourceError
        There is no such folder, or no notebook in it.
    """
    if not folder.is_dir():
        raise SourceError(
            "there is no such folder of submissions",
            file=folder,
            hint="Put the notebooks that students handed in there, or name it: --submissions DIR.",
        )
    found = sorted(_walk(folder, folder, 0), key=lambda each: (each.name, each.key))
    if not found:
        raise SourceError("there is no notebook (.ipynb) in it", file=folder)
    return found


def _handed(path: Path, root: Path, trouble: str = "") -> Handed:
    return Handed(path, _shown(path, root), os.fsencode(path.relative_to(root)), trouble)


def _walk(folder: Path, root: Path, depth: int) -> Iterator[Handed]:
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError as error:
        yield _handed(folder, root, f"the folder can't be opened: {error.strerror}")
        return
    for entry in listed:
        path = Path(entry.path)
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _DEEPEST:
                yield from _walk(path, root, depth + 1)
            else:
                yield _handed(path, root, "too many folders in folders")
        elif entry.name.lower().endswith(SUFFIX):
            link = "a link is not followed: hand in the file itself" if entry.is_symlink() else ""
            yield _handed(path, root, link)


def _shown(path: Path, root: Path) -> str:
    r"""Return how a path is shown; names that are not UTF-8 are taken for Latin-1.

    >>> _shown(Path("in/Jos\udce9.ipynb"), Path("in"))
    'José.ipynb'
    """
    raw = os.fsencode(path.relative_to(root).as_posix())
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return clean(text, _SHOWN)


def read_submission(handed: Handed) -> tuple[bytes, str]:
    """Return the bytes of a file, or what is wrong with it; never wait for anything."""
    if handed.trouble:
        return b"", handed.trouble
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        number = os.open(handed.path, flags | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(number, "rb") as file:
            about = os.fstat(number)
            if not stat.S_ISREG(about.st_mode):
                return b"", "this is no file"
            if about.st_size > LARGEST:
                return b"", f"the file is larger than {LARGEST // 1_000_000} MB"
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or type(error).__name__
        return b"", f"the file can't be read: {said}"
    if len(data) > LARGEST:
        return b"", f"the file is larger than {LARGEST // 1_000_000} MB"
    return data, "" if data.strip() else "the file is empty"


def whose(name: str, inside: str, students: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Return the student, by the file's name before the notebook's own word; and what is odd.

    Parameters
    ----------
    name
        As the file is shown.
    inside
        The student for whom the notebook says that it was made.
    students
        Names that the assignment knows; with none, the file's name is the student.

    >>> whose("week3_ada_late.ipynb", "", ["ada", "alan"])
    ('ada', ())
    """
    path = PurePosixPath(name)
    known = {file_name(each).casefold(): each for each in students}
    if not known:
        return path.stem, ()
    # course systems put words before and after a name: the longest that fits is meant
    whole = "_" + file_name(path.stem).casefold() + "_"
    by_file = [
        known[key]
        for key in sorted(known, key=len, reverse=True)
        if any(f"{left}{key}{right}" in whole for left in "_-." for right in "_-.")
    ]
    if path.parent.name and file_name(path.parent.name).casefold() in known:
        by_file.append(known[file_name(path.parent.name).casefold()])
    if by_file:
        if inside and inside != by_file[0]:
            return by_file[0], (f"the notebook was made for {inside}",)
        return by_file[0], ()
    if inside in known.values():
        return inside, ("known by the notebook alone, not by the file's name",)
    return "", ("no student of the list is named by the file or in it",)
