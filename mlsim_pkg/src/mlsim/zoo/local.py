"""The machine that runs this, as a device: what `mlsim measure` wrote of it.

Its file lies in the user's own data, in a folder that the variable MLSIM_MACHINES may name. A
home directory may be shared by several machines, so the name of a file says of which it is.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mlsim.errors import NotMeasuredError, unknown_name
from mlsim.hardware.device import Device, load_device
from mlsim.hardware.this_machine import Machine, this_machine

KINDS = ("cpu", "gpu")
_ASK = "run `mlsim measure{flag}` once; it takes a minute"


def machines_folder() -> Path:
    """Return the folder with the files of measured machines.

    >>> machines_folder().name
    'machines'
    """
    given = os.environ.get("MLSIM_MACHINES")
    if given:
        return Path(given)
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "mlsim" / "machines"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "mlsim" / "machines"
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "mlsim" / "machines"


def local_path(kind: str = "cpu", machine: Machine | None = None) -> Path:
    """Return the file of this machine, whether there is one or not.

    Raises
    ------
    UnknownNameError
        If `kind` is neither "cpu" nor "gpu".
    """
    if kind not in KINDS:
        raise unknown_name("kind of local device", kind, KINDS)
    return machines_folder() / f"{(machine or this_machine()).fingerprint}-{kind}.toml"


def local(kind: str = "cpu") -> Device:
    """Return this machine as it was measured.

    Raises
    ------
    NotMeasuredError
        If nobody measured it yet; says how.
    UnknownNameError
        If `kind` is neither "cpu" nor "gpu".
    """
    path = local_path(kind)
    if path.is_file():
        return load_device(path)
    others = sorted(each.stem for each in path.parent.glob(f"*-{kind}.toml"))
    known = f" Other machines were: {', '.join(others)}." if others else ""
    flag = "" if kind == "cpu" else " --device gpu"
    raise NotMeasuredError(
        f"this machine ({path.stem}) was not measured: {_ASK.format(flag=flag)}.{known}"
    )
