"""What was handed in: the notebooks of a folder or a zip, and every file that is none.

A platform's zip may hold the zips of students. What a platform wrote is told from what a student
wrote by where it stands: the outermost folder or name is the platform's.

What platforms write about who handed a file in, and when:

Moodle (mod/assign/classes/downloader.php, and feedback/file/importziplib.php, which reads it
back): a folder `Full name_4711_assignsubmission_file`, until version 4.0 with a `_` behind;
without folders, a file `Full name_4711_assignsubmission_file_hw1.ipynb`. The number is the
`Identifier` of its grading worksheet. With blind marking the name is `Participant`. Where students
submit in groups, name and number are those of the group. The times in its zip are those of the
download.

Canvas (instructure/canvas-lms, lib/content_zipper.rb): one folder of files
`lovelaceada_LATE_4711_815_hw1-2.ipynb`: the surname first, in small letters, without what is no
letter; the numbers of the student and of the file, which grow with time; `-2` of a second
resubmission. With anonymous grading, `anon_ab1cd` takes the place of name and number. Where groups
are graded together, the name is the group's, the number a member's.

Gradescope ("Download Submissions"): folders `submission_123`, and beside them
`submission_metadata.yml`, which says for each folder the name, sid and email of its
`:submitters:`, and when it was `:created_at:`. Several may have handed one submission in.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from mlsim_book.errors import SourceError
from mlsim_grading.archives import ArchiveError, open_archive
from mlsim_grading.process import clean

METADATA = "submission_metadata.yml"
LARGEST_METADATA = 32_000_000  # bytes
_MOODLE = re.compile(
    r"(?P<name>[^/]+?)(?:_(?P<id>\d+))?_assignsubmission_[a-z]+(?:_(?P<rest>.*))?", re.DOTALL
)
_CANVAS = re.compile(
    r"(?:(?!LATE_)(?P<name>[^\W\d_][^\W_]*)_)?(?P<late>LATE_)?(?P<id>\d+|anon_[^\W_]+)_(?P<file>\d+)_"
    r"(?P<rest>.+?)(?:-(?P<again>\d{1,3}))?(?:\.[^.]*)?",
    re.DOTALL,
)
_LONGEST = 500  # characters of a name; a file system has fewer
_NAMELESS = {"participant", "teilnehmer/in", "participante", "partecipante", "deelnemer"}
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d*)? ?(Z|UTC|[+-]\d\d:?\d\d)?", re.ASCII
)


@dataclass(frozen=True)
class Claim:
    """What a platform says of a file: the student's name and numbers, and its place in time.

    `order` grows with time, `attempt` counts resubmissions where the name does, `handed_at` is
    as ISO 8601 has it.
    """

    system: str
    name: str = ""
    ids: tuple[str, ...] = ()
    late: bool = False
    attempt: int = 0
    order: int = 0
    handed_at: str = ""


def moodle(part: str) -> Claim | None:
    """Return what Moodle says by the name of a folder or file.

    >>> found = moodle("Ada Lovelace_4711_assignsubmission_file_")
    >>> found.system, found.name, found.ids
    ('Moodle', 'Ada Lovelace', ('4711',))
    """
    found = _MOODLE.fullmatch(part) if len(part) <= _LONGEST else None
    if found is None:
        return None
    name = "" if found["name"].casefold() in _NAMELESS else found["name"]
    return Claim("Moodle", name, (found["id"],) if found["id"] else ())


def canvas(file: str) -> Claim | None:
    """Return what Canvas says by the name of a file.

    >>> found = canvas("lovelaceada_LATE_4711_815_hw1-2.ipynb")
    >>> found.name, found.ids, found.late, found.attempt, found.order
    ('lovelaceada', ('4711',), True, 2, 815)
    """
    found = _CANVAS.fullmatch(file) if len(file) <= _LONGEST else None
    if found is None or not (found["name"] or found["id"].startswith("anon_")):
        return None
    return Claim(
        "Canvas",
        found["name"] or "",
        () if found["id"].startswith("anon_") else (found["id"],),
        late=bool(found["late"]),
        attempt=int(found["again"] or 0),
        order=int(found["file"][:18]),
    )


def gradescope(data: bytes) -> dict[str, tuple[Claim, ...]]:
    r"""Return what Gradescope says of each folder; nothing, if that can't be read.

    >>> found = gradescope(b"submission_1:\n  :submitters:\n  - :name: Ada\n    :sid: '007'\n")
    >>> [(each.name, each.ids) for each in found["submission_1"]]
    [('Ada', ('007',))]
    """
    if len(data) > LARGEST_METADATA:
        return {}
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # only texts: 007 stays what it is
    try:
        read = yaml.load(data, Loader=loader)  # noqa: S506 - a base loader makes no objects
    except (yaml.YAMLError, ValueError, RecursionError, MemoryError):
        return {}
    if not isinstance(read, dict):
        return {}
    return {
        folder: tuple(claims)
        for folder, about in read.items()
        if isinstance(folder, str) and (claims := list(_submitters(about)))
    }


def _submitters(about: Any) -> list[Claim]:
    submitters = about.get(":submitters") if isinstance(about, dict) else None
    found = []
    for each in submitters if isinstance(submitters, list) else ():
        said = each if isinstance(each, dict) else {}
        name, *ids = (said.get(key) for key in (":name", ":sid", ":email"))
        texts = tuple(clean(one) for one in ids if isinstance(one, str) and one.strip())
        if isinstance(name, str) or texts:
            handed_at = _time(about.get(":created_at"))
            shown = clean(name) if isinstance(name, str) else ""
            found.append(Claim("Gradescope", shown, texts, handed_at=handed_at))
    return found[:20]


def _time(text: Any) -> str:
    found = _TIME.match(text) if isinstance(text, str) else None
    if found is None:
        return ""
    zone = {"Z": "+00:00", "UTC": "+00:00", None: ""}.get(found[3], found[3] or "")
    zone = zone if not zone or ":" in zone else f"{zone[:3]}:{zone[3:]}"
    return f"{found[1]}T{found[2]}{zone}"


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
    `packed_at` is its time there, which may be that of the download.
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
    def last(self) -> str:
        """The last part, in small letters."""
        return self.parts[-1].lower() if self.parts else ""


def files_of_folder(place: Path) -> Iterator[Found]:
    """Yield the files of a folder, of its folders, and of zips in them."""
    files = list(_walk(place, place, 0))
    notebooks = [each for each in files if each.last.endswith((SUFFIX, ZIP)) and not odd(each)]
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
    work = [each for each in found if each.last.endswith((SUFFIX, ZIP)) and not odd(each)]
    if not nested:
        work = [
            each for each in work if not any(map(moodle, each.parts[start : start + 2]))
        ] or work[:1]  # fmt: skip
    zips = sum(each.last.endswith(ZIP) for each in work)
    if not work:
        return "there is no notebook (.ipynb) in this zip"
    if zips and len(work) > 1:
        return "there are zips in this zip: hand in the notebook"
    if len(work) > MOST_NOTEBOOKS:
        more = "" if nested else "; if it is a class's, name it by --submissions"
        return f"the zip holds {len(work):,} notebooks: hand in one{more}"
    return ""


def _is_zip(found: Found) -> bool:
    return found.last.endswith(ZIP) and not odd(found)


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
    if found.last.endswith((SUFFIX, ZIP)) or found.folder:
        return "", ""
    reason = found.trouble or "no notebook (.ipynb)"
    if found.last == METADATA:
        reason = "Gradescope's list of who handed in"
    elif found.last.endswith(_PACKED):
        reason = "this kind of archive is not opened: make a zip"
    return "/".join(found.parts), reason


LARGEST = 64_000_000  # bytes of a notebook that is still read
_SHOWN = 400  # characters of a name
_LISTED = 30  # files of one folder that are passed over and still listed one by one


@dataclass(frozen=True)
class Handed(Found):
    """A file that was handed in, or what stands where one should be.

    `name` is how it is shown: its path in the folder of submissions, in characters that can be
    written. `key` tells it from every other, whatever characters its name has.

    `claim` is what a platform says of it, by the part of its path with the number `claimed_at`.
    `shared` is how many folders it has in common with all others, `label` whose it seems where
    there is no class list.
    """

    name: str = ""
    claim: Claim | None = None
    claimed_at: int = 0
    shared: int = 0
    label: str = ""


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
        if not odd(each) and each.last != METADATA:
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
                    **{**vars(each), "key": key}, name=name, claim=claim, claimed_at=at,
                    shared=shared, label=_label(each, claim, base, stems),
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
        if each.last != METADATA or each.trouble:
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
