"""A guard inside Python: it tells a notebook, in words, what is not allowed.

It refuses the network, other programs and signals, and writing outside the working folder, by an
audit hook of the interpreter. Code that looks for a way around it finds one, in a line of plain
Python: the walls that hold are those of the operating system, in `walls`. With
`--trust-submissions` this guard is all there is.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000  # flags of unshare(2)
_NAME = "socket.gethostname"  # of this machine: sends no request
_UNIX = 1  # a family of sockets: `await` needs a pair of them
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Events of Python's audit hooks.
_PATHS = frozenset(
    """
    os.remove os.rename os.rmdir os.mkdir os.chmod os.chown os.chflags os.link os.symlink
    os.truncate os.utime os.setxattr os.removexattr
    shutil.rmtree shutil.move shutil.copyfile shutil.copymode shutil.copystat shutil.chown
    shutil.make_archive
    """.split()  # noqa: SIM905 - words read better than quoted words
)
_LISTS = frozenset(["os.listdir", "os.scandir", "os.walk", "glob.glob", "os.chdir"])
_REFUSED = frozenset(
    """
    subprocess.Popen os.system os.exec os.posix_spawn os.spawn os.startfile os.fork os.forkpty
    pty.spawn os.kill os.killpg signal.pthread_kill resource.setrlimit resource.prlimit
    ctypes.dlopen ctypes.dlsym ctypes.cdata ctypes.call_function sqlite3.enable_load_extension
    ftplib.connect http.client.connect smtplib.connect urllib.Request webbrowser.open
    """.split()  # noqa: SIM905
)


class WallError(PermissionError):
    """A submission tried what its walls don't allow."""


def close_network() -> bool:
    """Move this process into a network with nothing in it; say whether the system did."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (OSError, AttributeError):
        return False
    # the second needs no right, where the system lets users have namespaces
    return bool(unshare(_NEW_NET) == 0 or unshare(_NEW_USER | _NEW_NET) == 0)


def limit(limits: Mapping[str, int]) -> None:
    """Have the system refuse more of something, by the names of module `resource`."""
    try:
        import resource
    except ImportError:  # Windows has none; the guard and the parent's clock remain
        return
    for name, value in limits.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        hard = resource.getrlimit(number)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (allowed, allowed))


def guard(home: str, hidden: Sequence[str]) -> None:
    """Refuse, from now on, what a submission has no business with.

    Parameters
    ----------
    home
        The folder in which it may write.
    hidden
        Folders and files in which it may not even read.
    """
    sys.addaudithook(_hook(os.path.realpath(home), tuple(map(os.path.realpath, hidden))))


def _hook(home: str, hidden: tuple[str, ...]) -> Callable[[str, tuple[Any, ...]], None]:
    files = [0]

    def within(path: Any, folder: str) -> bool:
        real = os.path.realpath(os.fsdecode(path))
        return real == folder or real.startswith(folder + os.sep)

    def refuse(what: str) -> None:
        raise WallError(f"{what} is not allowed while a submission is graded")

    def see(path: Any) -> None:
        if not isinstance(path, int) and path is not None and any(within(path, h) for h in hidden):
            refuse("reading other people's files")

    def change(path: Any) -> None:
        if isinstance(path, int) or path is None or os.fsdecode(path) == os.devnull:
            return
        if not within(path, home):
            refuse("writing outside the notebook's own folder")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = args
            see(path)
            if (isinstance(flags, int) and flags & _WRITES) or set(str(mode or "")) & set("wax+"):
                change(path)
                files[0] += not isinstance(path, int)
                if files[0] > 500:
                    refuse("writing more than 500 files")
        elif event == "socket.__new__" and args[1] == _UNIX:
            return
        elif event in _REFUSED or (event.startswith("socket.") and event != _NAME):
            refuse(event)
        elif event in _PATHS:
            for each in args:
                if isinstance(each, str | bytes | os.PathLike):
                    change(each)
        elif event in _LISTS and args and isinstance(args[0], str | bytes | os.PathLike):
            see(args[0])

    return hook
