"""What `time` prints: of bash, of zsh, of GNU, of POSIX and of macOS."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlsim.errors import DataFileError
from mlsim.profiling.stopwatch import Run

_N = r"\d+(?:[.,]\d+)?"
# Each as a pattern with wall, user and system; the first that fits a text is its form.
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "GNU time -v",
        re.compile(
            rf"User time \(seconds\): (?P<user>{_N})\s+System time \(seconds\): (?P<system>{_N})"
            rf".*?Elapsed \(wall clock\) time[^:]*(?::mm:ss or m:ss\))?: (?P<wall>[\d:.,]+)"
            r"(?:.*?Maximum resident set size \(kbytes\): (?P<kib>\d+))?",
            re.DOTALL,
        ),
    ),
    (
        "GNU time",
        re.compile(
            rf"(?P<user>{_N})user (?P<system>{_N})system (?P<wall>[\d:.,]+)elapsed"
            r"(?: \S+CPU)?(?: \(\S+avgtext\+\S+avgdata (?P<kib>\d+)maxresident\)k)?"
        ),
    ),
    (
        "zsh",
        re.compile(
            rf"(?P<user>{_N})s user\s+(?P<system>{_N})s system\s+\S+ cpu\s+(?P<wall>[\d:.,]+) total"
        ),
    ),
    (
        "bash",
        re.compile(
            rf"real\s+(?P<wall>\d+m{_N})s\s+user\s+(?P<user>\d+m{_N})s\s+sys\s+(?P<system>\d+m{_N})s"
        ),
    ),
    (
        "POSIX time -p",
        re.compile(
            rf"^real (?P<wall>{_N})$\s+^user (?P<user>{_N})$\s+^sys (?P<system>{_N})$", re.MULTILINE
        ),
    ),
    (
        "macOS",
        re.compile(rf"(?P<wall>{_N}) real\s+(?P<user>{_N}) user\s+(?P<system>{_N}) sys"),
    ),
)


@dataclass(frozen=True, slots=True)
class CommandTime:
    """What `time` said of a command.

    Attributes
    ----------
    run
        Wall, user, system and waiting time in s.
    form
        Which program printed it: "bash", "zsh", "GNU time -v", ...
    most_memory
        The most main memory that it held at a time in B, where the program says so.
    """

    run: Run
    form: str
    most_memory: int | None = None


def read_time(printed: str) -> CommandTime:
    r"""Return what the text of `time` says.

    Raises
    ------
    DataFileError
        If it is in no form that is known, or has the times of several commands.

    >>> found = read_time("real\t0m2.450s\nuser\t0m0.430s\nsys\t0m0.020s\n")
    >>> found.form, found.run.wall, round(found.run.waiting, 3)
    ('bash', 2.45, 2.0)
    >>> read_time("./a.out  0,43s user 0,02s system 18% cpu 2,450 total").run.user
    0.43
    """
    for form, pattern in _FORMS:
        found = list(pattern.finditer(printed))
        if len(found) > 1:
            raise DataFileError(
                f"the text has the times of {len(found)} commands ({form}): give those of one."
            )
        if found:
            parts = found[0].groupdict()
            run = Run(*(_seconds(parts[each]) for each in ("wall", "user", "system")))
            kib = parts.get("kib")
            return CommandTime(run, form, int(kib) * 2**10 if kib else None)
    known = ", ".join(form for form, _ in _FORMS)
    begin = " ".join(printed.split())[:60]
    raise DataFileError(f"{begin!r} has no times in a form that is known: {known}.")


def _seconds(said: str) -> float:
    """Return seconds from "2.45", "0m2.450", "1:02.5" or "1:00:02".

    >>> _seconds("1m2.5"), _seconds("1:02.5"), _seconds("1:00:02"), _seconds("2,45")
    (62.5, 62.5, 3602.0, 2.45)
    """
    total = 0.0
    for part in re.split("[m:]", said):
        try:
            total = 60 * total + float(part.replace(",", "."))
        except ValueError:
            raise DataFileError(f"a time: {said!r} is no number.") from None
    return total
