"""Run a command as an ordinary user, where tests run as root.

Root's interpreter and packages may lie where nobody else can go (below `/root`, or in a clone of
mode 0700). The command then runs in a view of the machine of its own, in which such folders are
open, and empty but for what the interpreter imports from.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

USER = 65533  # neither root nor the one that a grader of root becomes

_VIEW = """
import ctypes, json, os, sys
command, opened, needed, user = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, flags, data=None):
    if libc.mount(*[each and each.encode() for each in (source, target, kind)], ctypes.c_ulong(flags), data and data.encode()):
        raise OSError(ctypes.get_errno(), target)
libc.unshare(0x20000)
mount(None, "/", None, 0x44000)
handles = {each: os.open(each, os.O_PATH) for each in needed}
for each in opened:
    mount("tmpfs", each, "tmpfs", 6, "mode=755,size=1m")
for each, handle in handles.items():
    os.makedirs(each, mode=0o755, exist_ok=True)
    mount(f"/proc/self/fd/{handle}", each, None, 0x5000)
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
os.environ["HOME"] = "/nonexistent"
os.execv(command[0], command)
"""


def closed_folders(path: Path) -> list[Path]:
    """The folders on the way to a path through which others may not go."""
    return [each for each in reversed(path.resolve().parents) if not each.stat().st_mode & 0o001]


def as_ordinary_user(command: Sequence[str], own: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of this interpreter as an ordinary user, who has a folder of their own."""
    named = [str(own), sys.prefix, sys.base_prefix, *filter(os.path.isabs, sys.path)]
    places = {path.resolve() for path in map(Path, named) if path.is_dir() and closed_folders(path)}
    opened = sorted({str(closed_folders(each)[0]) for each in places})
    needed = sorted(str(each) for each in places if not places & {*each.parents})
    spec = json.dumps([list(command), opened, needed, USER])
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", _VIEW, spec],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
