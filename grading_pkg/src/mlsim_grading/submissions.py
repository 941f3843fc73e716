"""What was handed in: the notebooks of a folder or a zip, and every file that is none.

A platform's zip may hold the zips of students. What a platform wrote is told from what a student
wrote by where it stands: the outermost folder or name is the platform's.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from mlsim_book.errors import SourceError
from mlsim_grading.archives import ArchiveError, open_archive
from mlsim_grading.lms import METADATA, Claim, canvas, gradescope, moodle
from mlsim_grading.process import clean
from mlsim_grading.search import (
    MOST_NOTEBOOKS,
    Found,
    files_of_folder,
    files_of_zip,
    odd,
    why_passed,
)

LARGEST = 64_000_000  # bytes of a notebook that is still read
_SHOWN = 400  # characters of a name
_LISTED = 30  # files of one folder that are passed over and still listed one by one


@dataclass(frozen=True)
class Handed:
    """A file that was handed in, or what stands where one should be.

    `name` is how it is shown: its path in the folder of submissions, in characters that can be
    written; `parts` are the parts of this path, whole. `key` tells it from every other, whatever
    characters its name has. `inside` are its numbers in a zip, and in a zip in that. `trouble`
    says why it can't be read, if that is known already.

    `claim` is what a platform says of it, by the part of its path with the number `claimed_at`.
    `shared` is how many folders it has in common with all others, `label` whose it seems where
    there is no class list. `packed_at` is its time in a zip, which may be that of the download.
    """

    path: Path
    name: str
    key: bytes
    trouble: str = ""
    parts: tuple[str, ...] = ()
    inside: tuple[int, ...] = ()
    claim: Claim | None = None
    claimed_at: int = 0
    shared: int = 0
    label: str = ""
    packed_at: str = ""


@dataclass(frozen=True)
class Passed:
    """A file that is no submission, and why.

    `handed` is what a platform says of it, if a person may have handed it in; `students` whose it
    then is, and `candidates` whose it may be.
    """

    name: str
    reason: str
    handed: tuple[Handed, ...] = ()
    students: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Collected:
    """All that was found, in order of the names."""

    handed: tuple[Handed, ...]
    passed: tuple[Passed, ...] = ()


def find_submissions(place: Path) -> Collected:
    """Return the notebooks of a folder or zip, of folders and zips in it; and what else is there.

    What is called a notebook and is none (a pipe, a link) is returned with what it is, and so is
    a folder or a zip that can't be opened.

    Raises
    ------
    SourceError
        There is no such folder or zip, or no notebook in it.
    """
    if place.is_file():
        found = list(files_of_zip(Found(place, (), b""), whole=True))
        if found and not found[0].parts:
            raise SourceError(
                found[0].trouble, file=place, hint="Name a folder of submissions, or a zip of them."
            )
    elif place.is_dir():
        found = list(files_of_folder(place))
    else:
        raise SourceError(
            "there is no such folder or zip of submissions",
            file=place,
            hint="Put what students handed in there, or name it: --submissions DIR or FILE.zip.",
        )
    passed: dict[str, Passed] = {}
    notebooks = []
    other = []
    for each in found:
        path, reason = why_passed(each)
        if not path:
            notebooks.append(each)
            continue
        name = _name(path)
        passed[name] = Passed(name, reason)
        if not odd(each) and each.name != METADATA:
            other.append(each)
    handed = _limited(_claimed(notebooks, notebooks, found))
    if not handed:
        few = "; ".join(f"{each.name}: {each.reason}" for each in list(passed.values())[:5])
        raise SourceError(
            "there is no notebook (.ipynb) in it", file=place,
            hint=f"Passed over: {few}." if few else None,
        )  # fmt: skip
    for file in _claimed(other, notebooks, found):
        own = passed[file.name]
        passed[file.name] = replace(own, handed=(*own.handed, file))
    handed.sort(key=lambda each: (each.name, each.key))
    return Collected(tuple(handed), tuple(_shortened(passed)))


def _shortened(passed: Mapping[str, Passed]) -> Iterator[Passed]:
    """Yield what was passed over, of each folder at most some, and how many more there were."""
    folders: dict[str, list[Passed]] = defaultdict(list)
    for name, each in sorted(passed.items()):
        folder = name.partition("/")[0] if "/" in name.rstrip("/") else ""
        folders[folder].append(each)
    for folder, within in folders.items():
        yield from within[: _LISTED if folder else None]
        if folder and len(within) > _LISTED:
            more = f"{folder}/ and {len(within) - _LISTED:,} more files"
            yield Passed(more, "no notebooks (.ipynb)")


def _claimed(
    wanted: Sequence[Found], notebooks: Sequence[Found], everything: Sequence[Found]
) -> list[Handed]:
    """Return files with what a platform says of each; one for each who handed it in.

    How the platform names files is told from the notebooks among them.
    """
    base = _shared(notebooks)
    told = _metadata(everything, notebooks)
    first = {each.parts[: base + 1] for each in notebooks}
    guesses = [next(filter(None, map(canvas, parts)), None) for parts in first]
    names = Counter(each.name for each in guesses if each is not None)
    # one name like Canvas's proves nothing; "hw_2024_11_ada" and "hw_2024_11_bo" look like it, too
    many = sum(names.values())
    sure = 2 * many > len(first) and (many == 1 or len(names) > 1 or "" in names)
    stems = Counter(_stem(each) for each in notebooks)
    found: list[Handed] = []
    for each in wanted:
        shared = min(base, len(each.parts) - 1) if len(first) > 1 else 0
        at, claims = _claims(each, told, base if sure else -1)
        for number, claim in enumerate(claims or (None,)):
            key = each.key + (b"\0%d" % number if number else b"")
            name = _name("/".join(each.parts))
            found.append(
                Handed(
                    each.path, name, key, each.trouble, each.parts, each.inside, claim, at,
                    shared, _label(each, claim, base, stems), each.packed_at,
                )
            )  # fmt: skip
    return found


def _name(path: str) -> str:
    return clean(unicodedata.normalize("NFC", path), _SHOWN)


def _stem(found: Found) -> str:
    return PurePosixPath(found.parts[-1]).stem


def _label(found: Found, claim: Claim | None, base: int, stems: Mapping[str, int]) -> str:
    """Return whose a file seems: the platform's word, its own name, or its folder's."""
    if claim is not None and (claim.name or claim.ids):
        return claim.name or claim.ids[0]
    own = found.parts[base:] or found.parts[-1:]
    if len(own) == 1 or stems[_stem(found)] == 1:
        return _stem(found)
    return own[0][:-4] if own[0].lower().endswith(".zip") else own[0]


def _shared(notebooks: Sequence[Found]) -> int:
    """Return how many folders all notebooks have in common."""
    folders = [each.parts[:-1] for each in notebooks]
    if not folders:
        return 0
    least, most = min(folders), max(folders)
    return next(
        (at for at, (one, other) in enumerate(zip(least, most, strict=False)) if one != other),
        min(len(least), len(most)),
    )


def _claims(
    found: Found, told: Mapping[tuple[str, ...], tuple[Claim, ...]], deepest: int
) -> tuple[int, tuple[Claim, ...]]:
    """Return what the outermost part of a path that a platform wrote says, and its place.

    A file of Canvas lies at most `deepest` folders deep.
    """
    for depth, part in enumerate(found.parts):
        if found.parts[: depth + 1] in told:
            return depth, told[found.parts[: depth + 1]]
        if claim := moodle(part):
            return depth, (claim,)
        if depth <= deepest and (claim := canvas(part)):
            return depth, (claim,)
    return 0, ()


def _metadata(
    found: Sequence[Found], notebooks: Sequence[Found]
) -> dict[tuple[str, ...], tuple[Claim, ...]]:
    """Return what Gradescope says of each folder, in a list that lies beside them all."""
    told: dict[tuple[str, ...], tuple[Claim, ...]] = {}
    for each in found:
        beside = each.parts[:-1]
        if each.name != METADATA or each.trouble:
            continue
        if all(other.parts[: len(beside)] == beside for other in notebooks):  # not a student's
            data, trouble = _read(each.path, each.inside)
            if not trouble:
                told |= {(*beside, folder): claims for folder, claims in gradescope(data).items()}
    return told


def _limited(handed: Sequence[Handed]) -> list[Handed]:
    """Return what was handed in; of a platform's student with too many notebooks, that alone."""
    groups: dict[tuple[object, ...], list[Handed]] = defaultdict(list)
    for each in handed:
        group = (each.claim.system, each.claim.name, each.claim.ids) if each.claim else (each.key,)
        groups[group].append(each)
    found = []
    for within in groups.values():
        if len(within) > MOST_NOTEBOOKS:
            reason = f"{len(within):,} notebooks were handed in: hand in one"
            found.append(replace(within[0], trouble=reason))
        else:
            found += within
    return found


# ------------------------------------------------------------------------- reading
def read_submission(handed: Handed) -> tuple[bytes, str]:
    """Return the bytes of a file, or what is wrong with it; never wait for anything."""
    if handed.trouble:
        return b"", handed.trouble
    data, trouble = _read(handed.path, handed.inside)
    if trouble:
        return b"", trouble
    return data, "" if data.strip() else "the file is empty"


def _read(path: Path, inside: tuple[int, ...]) -> tuple[bytes, str]:
    if inside:
        try:
            return open_archive(path, inside[:-1]).read(inside[-1], LARGEST), ""
        except ArchiveError as error:
            return b"", str(error)
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        number = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
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
    return data, ""
