"""Run a notebook's cells and report the values of names: the process inside the walls.

    python -I -B -c 'from mlsim_grading.runner import main; main()' < task

The task is a line of JSON, and after it the notebook as it was handed in. Standard input is closed
before any of it runs. What happens goes to what was standard output, as lines of JSON, one when a
cell begins, one when it ends and one for each value that is new, so that nothing sent is lost if
the process dies. It knows no answers. `answers` are the names to look at, each with the unit in
which its exercise is answered.

A guard tells a notebook, in words, what is not allowed: the network, other programs and signals,
and writing outside the working folder, by an audit hook of the interpreter. Code that looks for a
way around it finds one, in a line of plain Python: the walls that hold are those of the operating
system, in `walls`. With `--trust-submissions` this guard is all there is.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import hashlib
import io
import json
import os
import signal
import sys
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from mlsim_exercises.evaluation import is_quantity, plain_number
from mlsim_grading.walls.supervise import LONGEST

MOST_CELLS = 5000
LONGEST_NAME = 200  # characters
_LEAST_WORK = 60  # characters of code, without blanks: less may be alike by chance
_MOST_COMPARED = 400_000  # characters of code
_BARE = 5  # words of an answer that is only given: a name, =, a sign, a number
_SPARE = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_NO_WORK = {"import", "from", "%", "!"}  # and what installs the package
_MOST_NESTED = 1_000_000  # lists and objects; many more take memory and time, and hold nothing


@dataclass(frozen=True)
class Notebook:
    """The sources of a notebook's code cells; `trouble` says why there are none.

    `student` is what its metadata say, which its owner can change.
    """

    cells: tuple[str, ...] = ()
    student: str = ""
    trouble: str = ""


def read_notebook(data: bytes) -> Notebook:
    r"""Read a notebook; what is wrong with it stands in the result and is not raised.

    >>> read_notebook(b'{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "x"]}]}').cells
    ('x = 1\nx',)
    >>> read_notebook(b"<html>").trouble
    'the file is no notebook that can be read'
    """
    if data.count(b"[") + data.count(b"{") > _MOST_NESTED:
        return Notebook(trouble="the file is no notebook that can be read: too many brackets")
    try:
        read = json.loads(data)
    except (ValueError, RecursionError, MemoryError):
        return Notebook(trouble="the file is no notebook that can be read")
    try:
        cells = tuple(_code(read))
    except (TypeError, KeyError, AttributeError, RecursionError, MemoryError):
        return Notebook(trouble="the file is JSON, but no notebook")
    if len(cells) > MOST_CELLS:
        return Notebook(trouble=f"the notebook has more than {MOST_CELLS:,} code cells")
    student = ""
    with contextlib.suppress(KeyError, TypeError, AttributeError):
        told = read["metadata"]["assignment"]["student"]
        student = told if isinstance(told, str) and len(told) <= LONGEST_NAME else ""
    return Notebook(cells, student)


def fingerprint(cells: Iterable[str], answers: Iterable[str]) -> str:
    r"""Return a text that is the same for notebooks with the same code, "" where there is little.

    Remarks, blanks and the order of cells don't count, nor do bare answers (`answer_x = 3`): what
    is compared is the work, and two students may well come to the same number.

    >>> work = "for n in range(10):\n    total = total + sizes[n] * 2\nfraction = total / 3e9 / 80"
    >>> fingerprint([work], []) == fingerprint(["# mine\n" + work.replace(" * ", "*")], [])
    True
    >>> fingerprint(["answer_a = 3.5"], ["answer_a"])
    ''
    """
    names = set(answers)
    cells = list(cells)
    if sum(map(len, cells)) > _MOST_COMPARED:
        return ""
    work = sorted(filter(None, (_work(cell, names) for cell in cells)))
    if sum(map(len, work)) < _LEAST_WORK:
        return ""
    return hashlib.sha256("\n\n".join(work).encode("utf-8", "replace")).hexdigest()[:32]


def _work(cell: str, answers: set[str]) -> str:
    """Return the code of a cell without remarks, blanks, what it imports and bare answers."""
    lines: list[list[str]] = [[]]
    try:
        for token in tokenize.generate_tokens(io.StringIO(cell).readline):
            if token.type == tokenize.NEWLINE:
                lines.append([])
            elif token.type not in _SPARE and token.string.strip():
                lines[-1].append(token.string)
    except (tokenize.TokenError, SyntaxError, ValueError):
        lines = [line.split("#")[0].split() for line in cell.splitlines()]
    return "\n".join(
        "".join(line)
        for line in lines
        if line and line[0] not in _NO_WORK and not (line[0] in answers and len(line) <= _BARE)
    )


def _code(data: dict[str, Any]) -> Iterable[str]:
    """Yield the sources of the code cells, of the older format, too."""
    if "cells" not in data and "worksheets" not in data:
        raise KeyError("cells")
    sheets = [data] if "cells" in data else data["worksheets"]
    for cell in (cell for sheet in sheets for cell in sheet["cells"]):
        if cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            text = source if isinstance(source, str) else "".join(source)
            # half of a pair of UTF-16, which no program can compile or write
            yield text.encode("utf-8", "replace").decode()


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


_LONGEST = 300  # characters of a text
_ITEMS, _ITEM = 50, 100  # of a list that are sent, and characters of one

Send = Callable[..., None]


class CellTimeout(BaseException):
    """A cell ran for longer than it may."""


def main() -> None:
    """Run what the task says."""
    task = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    send = _channel()
    sys.dont_write_bytecode = True
    if task["close_network"]:
        close_network()
    for name, text in task["files"].items():
        path = Path.cwd() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shell = _shell()
    if task["look_around"]:
        send(ready=True, files=_fonts(Path.cwd()))
        return
    limit(task["limits"])
    guard(str(Path.cwd()), task["hidden"])
    send(ready=True)
    _silence(2)
    notebook = read_notebook(data)
    del data
    sources = fingerprint(notebook.cells, task["answers"])
    send(student=notebook.student, trouble=notebook.trouble, sources=sources)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _too_long)
    seen: dict[str, Any] = {}
    for index, source in enumerate(notebook.cells):
        if index in task["skip"]:
            continue
        send(begins=index)
        kind, text = _run(shell, source, task["cell_seconds"])
        send(ends=index, kind=kind, text=text)
        _look(shell.user_ns, task, seen, send)
    os._exit(0)  # nothing that it left behind is waited for


def _channel() -> Send:
    """Take standard output for the channel, and leave nothing where it and standard input were."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    _silence(0, 1)

    def send(**what: Any) -> None:
        channel.write(json.dumps(what) + "\n")

    return send


def _silence(*descriptors: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in descriptors:
        os.dup2(nothing, each)
    os.close(nothing)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise CellTimeout("took too long")


def _shell() -> Any:
    """Return what runs cells as a notebook does, magics and all; it shows nothing."""
    import ctypes  # noqa: F401 - loaded before the guard, which allows no library to be

    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    shell: Any = InteractiveShell.instance(config=config)
    shell.showtraceback = lambda *_, **__: None
    shell.display_pub.publish = lambda *_, **__: None
    return shell


def _fonts(home: Path) -> dict[str, str]:
    """Return Matplotlib's list of fonts: made once, as each submission would make it again."""
    try:
        import matplotlib.font_manager  # noqa: F401 - importing it writes the list
    except Exception:  # noqa: BLE001 - there need be no Matplotlib, or not one that works
        return {}
    found = (home / ".matplotlib").glob("fontlist*.json")
    return {f".matplotlib/{each.name}": each.read_text(encoding="utf-8") for each in found}


def _alarm(seconds: float) -> None:
    # it rings again every second: code that catches everything is interrupted again
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0 if seconds else 0.0)


def _run(shell: Any, source: str, seconds: float) -> tuple[str, str]:
    """Run one cell; return the kind of what went wrong, if anything, and its text."""
    try:
        _alarm(seconds)
        try:
            result = shell.run_cell(source, silent=True)
            raised = result.error_before_exec or result.error_in_exec
        finally:
            _alarm(0)
    except BaseException as error:  # noqa: BLE001 - whatever a stranger's code raises
        raised = error
    if raised is None:
        return "", ""
    try:
        return _kind(raised), f"{type(raised).__name__}: {raised}"[:_LONGEST]
    except BaseException:  # noqa: BLE001 - its own text may fail, too
        return _kind(raised), ""


def _kind(error: Any) -> str:
    """Return the name of an error that Python or this module knows: the nearest of its bases.

    A name is a text, too: a class of the submission's own could carry anything in it.
    """
    for each in type(error).__mro__:
        if each in {CellTimeout, WallError}:
            return str(each.__name__)
        if getattr(builtins, each.__name__, None) is each:
            return str(each.__name__)
    return "error"


def _look(names: dict[str, Any], task: dict[str, Any], seen: dict[str, Any], send: Send) -> None:
    """Send the values of the names that are new, leaving out what is blank."""
    answers = task["answers"]
    for name, unit in answers.items():
        try:
            _alarm(min(1.0, max(0.2, task["cell_seconds"] / len(answers))))
            try:
                value = _as_json(names.get(name), unit)
            finally:
                _alarm(0)
        except BaseException as error:  # noqa: BLE001 - a stranger's object was asked
            value = {"other": type(error).__name__[:40]}
        if value is not None and seen.get(name) != value:
            seen[name] = value
            send(name=name, value=value)


def _as_json(value: Any, unit: str) -> dict[str, Any] | None:
    """Return a value as `{"number": 2.0}`, `text`, `list`, `unit` (that doesn't fit) or `other`."""
    if value is None or value is Ellipsis or (isinstance(value, str) and not value.strip(" .\n")):
        return None
    if isinstance(value, str):
        return {"text": value[: LONGEST + 1]}  # one more says that it was longer
    if isinstance(value, bool | complex | bytes):
        return {"other": repr(value)[:_LONGEST]}
    if isinstance(value, list | tuple):
        items = [str(each)[:_ITEM] for each in value[:_ITEMS]]
        return {"list": items} if items else None
    try:
        return {"number": plain_number(value, unit)}
    except Exception as error:  # noqa: BLE001 - any library, any object
        if is_quantity(value) and isinstance(error, TypeError) and "array" not in str(error):
            return {"unit": str(value.units)[:_LONGEST] or "no unit"}
        plain = isinstance(value, int | float)
        return {"other": repr(value)[:40] if plain else type(value).__name__[:40]}
