"""Control groups around submissions, where the system lets this user make them (Linux).

With one of its own, a submission's bounds on memory and processes are the kernel's and exact. Where
systemd runs it is asked for a group, which is what

    systemd-run --user --scope -p Delegate=yes mlsim-book grade DIR

does by hand. No group is taken that nobody delegated, though root could: whoever manages it counts
on finding its processes there. Without one, the one who watches (`tree`) ends what takes too much.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
import uuid
from pathlib import Path

from mlsim_grading.limits import Limits

ROOT = Path("/sys/fs/cgroup")
_NEEDED = ("memory", "pids")
_TRIES = 20
_PATIENCE = 5  # seconds for systemd to answer
BY_HAND = "systemd-run --user --scope -p Delegate=yes mlsim-book grade ..."
_OWN = Path("/proc/self/cgroup")


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
    before = _OWN.read_text(encoding="utf-8")
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
        if _OWN.read_text(encoding="utf-8") != before:
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
            own = _OWN.read_text(encoding="utf-8")
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


class Group:
    """A group for one submission, while it runs; none where the parent is ""."""

    def __init__(self, parent: str, limits: Limits) -> None:
        self._limits = limits
        self._path = Path(parent) / f"submission-{uuid.uuid4().hex[:12]}" if parent else None

    def __enter__(self) -> list[str]:
        """Return the groups to join."""
        if self._path is None:
            return []
        self._path.mkdir()
        bounds = {
            "memory.max": self._limits.memory, "memory.swap.max": 0, "memory.oom.group": 1,
            # the walls themselves take a few
            "pids.max": self._limits.processes + 4,
        }  # fmt: skip
        for name, value in bounds.items():
            # a kernel without swap has no file for it
            with contextlib.suppress(FileNotFoundError):
                (self._path / name).write_text(str(value), encoding="ascii")
        return [str(self._path)]

    def __exit__(self, *_: object) -> None:
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            (self._path / "cgroup.kill").write_text("1", encoding="ascii")
        for _try in range(_TRIES):
            with contextlib.suppress(OSError):
                self._path.rmdir()
                return
            time.sleep(0.02)
