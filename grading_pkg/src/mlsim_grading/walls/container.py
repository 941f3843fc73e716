"""Walls by a container engine, where the system gives an ordinary user no namespaces.

The interpreter is that of an image, made once by the command that `build_command` returns; the
program that runs inside comes from here.
"""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from mlsim_grading.limits import Limits
from mlsim_grading.walls.bubblewrap import HOME, variables

IMAGE = "mlsim-walls"
ENGINES = ("podman", "docker")
INSIDE = "/opt/grader"  # where the package with the program inside is seen
_RECIPE = Path(__file__).with_name("Dockerfile")
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
