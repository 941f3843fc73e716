"""Every file of a folder or a zip, of the zips in it, and why one of them is nobody's work."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlsim_grading.archives import ArchiveError, open_archive
from mlsim_grading.lms import METADATA, moodle

MOST_NOTEBOOKS = 20  # of one student's zip, or of one student's folder of a platform
SUFFIX, ZIP = ".ipynb", ".zip"
_DEEPEST = 20  # folders in folders
_ZIPS_IN_ZIPS = 2
_PACKED = (".tar", ".gz", ".tgz", ".7z", ".rar", ".bz2", ".xz", ".zst")
_SYSTEM = {
    ".ds_store": "macOS's own file", "__macosx": "macOS's own folder",
    "thumbs.db": "Windows's own file", "desktop.ini": "Windows's own file",
    ".ipynb_checkpoints": "Jupyter's own copies",
}  # fmt: skip


@dataclass(frozen=True)
class Found:
    """A file of any kind: where it is, the parts of its path, what is wrong with it.

    `inside` are its numbers in a zip, and in a zip in that; `zips` is how many it lies in.
    """

    path: Path
    parts: tuple[str, ...]
    key: bytes
    trouble: str = ""
    inside: tuple[int, ...] = ()
    packed_at: str = ""
    zips: int = 0
    folder: bool = False  # one that can't be opened

    @property
    def name(self) -> str:
        """The last part, in small letters."""
        return self.parts[-1].lower() if self.parts else ""


def files_of_folder(place: Path) -> Iterator[Found]:
    """Yield the files of a folder, of its folders, and of zips in them."""
    files = list(_walk(place, place, 0))
    notebooks = [each for each in files if each.name.endswith((SUFFIX, ZIP)) and not odd(each)]
    alone = len(notebooks) == 1  # a platform's zip, put there as it came
    for each in files:
        if _is_zip(each):
            yield from files_of_zip(each, whole=alone)
        else:
            yield each


def _walk(folder: Path, root: Path, depth: int) -> Iterator[Found]:
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError as error:
        reason = f"the folder can't be opened: {error.strerror}"
        yield replace(_file(folder, root, reason), folder=True)
        return
    for entry in listed:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False) and not system(_text(entry.name)):
            if depth < _DEEPEST:
                yield from _walk(path, root, depth + 1)
            else:
                yield replace(_file(path, root, "too many folders in folders"), folder=True)
        elif entry.is_symlink():
            yield _file(path, root, "a link is not followed: hand in the file itself")
        else:
            yield _file(path, root)


def _file(path: Path, root: Path, trouble: str = "") -> Found:
    relative = path.relative_to(root)
    parts = tuple(_text(part) for part in relative.parts)
    return Found(path, parts or (".",), os.fsencode(relative), trouble)


def _text(name: str) -> str:
    r"""Return a name as text; one that is not UTF-8 is taken for Latin-1.

    >>> _text("Jos\udce9.ipynb")
    'José.ipynb'
    """
    raw = os.fsencode(name)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def files_of_zip(outer: Found, *, whole: bool = False) -> Iterator[Found]:
    """Yield the files of a zip; what is wrong with all of it stands in its place.

    `whole` says that it holds a class's work, not a student's.
    """
    zips = outer.zips + 1
    if outer.trouble or zips > _ZIPS_IN_ZIPS:
        yield replace(outer, trouble=outer.trouble or "a zip in a zip in a zip is not opened")
        return
    try:
        entries = open_archive(outer.path, outer.inside).entries
    except ArchiveError as error:
        yield replace(outer, trouble=str(error))
        return
    found = [
        Found(
            outer.path, outer.parts + each.parts, outer.key + b"\0" + each.key, each.trouble,
            (*outer.inside, each.number), each.saved_at, zips,
        )
        for each in entries
    ]  # fmt: skip
    if not whole and (reason := _too_much(found, len(outer.parts), nested=outer.zips > 0)):
        yield replace(outer, trouble=reason)
        return
    for each in found:
        if _is_zip(each):
            yield from files_of_zip(each)
        else:
            yield each


def _too_much(found: Sequence[Found], start: int, *, nested: bool) -> str:
    """Return why a student's zip is not looked into, if it isn't.

    One that lies in no other may be a platform's, put beside others: all but a few files in it are
    then in folders that Moodle named.
    """
    work = [each for each in found if each.name.endswith((SUFFIX, ZIP)) and not odd(each)]
    if not nested:
        work = [
            each for each in work if not any(map(moodle, each.parts[start : start + 2]))
        ] or work[:1]  # fmt: skip
    zips = sum(each.name.endswith(ZIP) for each in work)
    if not work:
        return "there is no notebook (.ipynb) in this zip"
    if zips and len(work) > 1:
        return "there are zips in this zip: hand in the notebook"
    if len(work) > MOST_NOTEBOOKS:
        more = "" if nested else "; if it is a class's, name it by --submissions"
        return f"the zip holds {len(work):,} notebooks: hand in one{more}"
    return ""


def _is_zip(found: Found) -> bool:
    return found.name.endswith(ZIP) and not odd(found)


def odd(found: Found) -> str:
    """Return the path of a file or folder that a system made, up to its name; "" if it's none."""
    for place, part in enumerate(found.parts, start=1):
        if system(part):
            return "/".join(found.parts[:place]) + ("/" if place < len(found.parts) else "")
    return ""


def system(name: str) -> str:
    """Return why a file or folder is nobody's work, by its name; "" if it may be somebody's.

    >>> system("__MACOSX"), system("._hw1.ipynb"), system("hw1.ipynb")
    ("macOS's own folder", "macOS's own file", '')
    """
    if known := _SYSTEM.get(name.lower()):
        return known
    if name.startswith("._"):
        return "macOS's own file"
    return "hidden" if name.startswith(".") and name != "." else ""


def why_passed(found: Found) -> tuple[str, str]:
    """Return what of a file is passed over, and why; nothing if it is to be graded."""
    if path := odd(found):
        return path, next(filter(None, map(system, found.parts)))
    if found.name.endswith((SUFFIX, ZIP)) or found.folder:
        return "", ""
    reason = found.trouble or "no notebook (.ipynb)"
    if found.name == METADATA:
        reason = "Gradescope's list of who handed in"
    elif found.name.endswith(_PACKED):
        reason = "this kind of archive is not opened: make a zip"
    return "/".join(found.parts), reason
