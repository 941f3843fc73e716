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

from kept import text

USER = 65533  # neither root nor the one that a grader of root becomes

_VIEW = text("view_as_user.py.txt")


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
