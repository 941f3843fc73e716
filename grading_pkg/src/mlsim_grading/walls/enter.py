"""Give up what a submission must not have, then become the program that builds its walls.

    python -I -S enter.py SPEC

A file to run, not to import: it knows the standard library alone. SPEC is JSON:

`argv`
    The program and its arguments. An argument that is a list, `["ro", PLACE, DEST]`, stands
    for `--ro-bind` of a place of this machine.
`limits`
    Limits of the system by name, which everything inside inherits.
`groups`
    Folders of control groups to join.

Started as root, it becomes an ordinary user first: for root, a limit on processes is none. That
user may not be able to reach the interpreter (below `/root`, say), so what is shown inside is
bound to a private place before, which no other process sees.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import sys
from typing import Any

_NEW_MOUNTS = 0x00020000  # flag of unshare(2)
_NOSUID_NODEV, _BIND, _ALL, _PRIVATE = 6, 0x1000, 0x4000, 0x40000  # flags of mount(2)
_COVERS = ("/mnt", "/media", "/srv", "/opt", "/tmp")  # noqa: S108 - covered in a private view
_NOBODY = 65534
_PIPE, _LARGE_PIPE = 65_536, 2**20  # bytes
_NICE = 5  # the grader stays ahead of what it watches


def main(spec: dict[str, Any]) -> None:
    """Become the program of a spec."""
    for group in spec.get("groups", ()):
        _write(os.path.join(group, "cgroup.procs"), "0")  # noqa: PTH118
    with contextlib.suppress(OSError):
        _write("/proc/self/oom_score_adj", "1000")  # if memory runs out, this goes first
    os.nice(_NICE)
    places = sorted({each[1] for each in spec["argv"] if isinstance(each, list)} | {*spec["near"]})
    seen = dict(zip(places, places, strict=True))
    if os.geteuid() == 0:
        seen = _stage(places)
        _drop()
    for name, value in spec["limits"].items():
        _limit(getattr(resource, name, None), value)
    argv: list[str] = []
    for each in spec["argv"]:
        argv += ["--ro-bind", seen[each[1]], each[2]] if isinstance(each, list) else [each]
    program, end = _reached(argv[0], seen), argv.index("--")
    told = _pipe_of("".join(f"{each}\0" for each in argv[1:end]).encode())
    os.execv(program, [program, "--args", str(told), *argv[end:]])  # noqa: S606


def _pipe_of(data: bytes) -> int:
    """Return where a program that is become can read some bytes."""
    read, write = os.pipe()
    if len(data) > _PIPE:
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, _LARGE_PIPE)
    os.write(write, data)
    os.close(write)
    os.set_inheritable(read, True)
    return read


def _limit(number: int | None, value: int) -> None:
    if number is None:
        return
    hard = resource.getrlimit(number)[1]
    allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(number, (allowed, allowed))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # noqa: PTH123
        file.write(text)


def _stage(places: list[str]) -> dict[str, str]:
    """Bind places where an ordinary user can reach them; return them by their own names.

    A root that may not (in most containers) leaves them where they are: others may reach them.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def well(result: int, what: str) -> None:
        if result:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")

    def mount(
        source: str | None, target: str, kind: str | None, flags: int, data: str = ""
    ) -> None:
        texts = [None if each is None else os.fsencode(each) for each in (source, target, kind)]
        flag = ctypes.c_ulong(flags)
        well(libc.mount(*texts, flag, data.encode() or None), f"mount {target}")

    if libc.unshare(_NEW_MOUNTS):
        return dict(zip(places, places, strict=True))
    mount(None, "/", None, _PRIVATE | _ALL)
    handles = [os.open(each, os.O_PATH | os.O_CLOEXEC) for each in places]
    cover = next(each for each in _COVERS if os.path.isdir(each))  # noqa: PTH112
    mount("tmpfs", cover, "tmpfs", _NOSUID_NODEV, "mode=755,size=1m")
    seen = {}
    for place, handle in zip(places, handles, strict=True):
        target = seen[place] = f"{cover}/{handle}"
        if os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112
            os.mkdir(target, 0o755)  # noqa: PTH102
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        mount(f"/proc/self/fd/{handle}", target, None, _BIND | _ALL)
    return seen


def _drop() -> None:
    """Become an ordinary user for good."""
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def _reached(program: str, seen: dict[str, str]) -> str:
    """Return where a program is seen, if it lies in a place that was bound.

    >>> _reached("/root/env/bin/bwrap", {"/root/env": "/mnt/3", "/root": "/mnt/4"})
    '/mnt/3/bin/bwrap'
    """
    for place in sorted(seen, key=len, reverse=True):
        if program.startswith(place.rstrip("/") + "/"):
            return seen[place] + program[len(place.rstrip("/")) :]
    return program


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
