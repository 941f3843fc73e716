"""What a course platform writes about who handed a file in, and when.

Moodle (mod/assign/classes/downloader.php, and feedback/file/importziplib.php, which reads it back):
a folder `Full name_4711_assignsubmission_file`, until version 4.0 with a `_` behind; without
folders, a file `Full name_4711_assignsubmission_file_hw1.ipynb`. The number is the `Identifier` of
its grading worksheet. With blind marking the name is `Participant`. Where students submit in
groups, name and number are those of the group. The times in its zip are those of the download.

Canvas (instructure/canvas-lms, lib/content_zipper.rb): one folder of files
`lovelaceada_LATE_4711_815_hw1-2.ipynb`: the surname first, in small letters, without what is no
letter; the numbers of the student and of the file, which grow with time; `-2` of a second
resubmission. With anonymous grading, `anon_ab1cd` takes the place of name and number. Where groups
are graded together, the name is the group's, the number a member's.

Gradescope ("Download Submissions"): folders `submission_123`, and beside them
`submission_metadata.yml`, which says for each folder the name, sid and email of its `:submitters:`,
and when it was `:created_at:`. Several may have handed one submission in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

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
