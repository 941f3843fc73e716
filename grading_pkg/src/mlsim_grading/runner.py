"""Run a notebook's cells and report the values of names: the process inside the walls.

    python -I -B -c 'from mlsim_grading.runner import main; main()' < task

The task is a line of JSON, and after it the notebook as it was handed in. Standard input is
closed before any of it runs. What happens goes to what was standard output, as lines of JSON, one
when a cell begins, one when it ends and one for each value that is new, so that nothing sent is
lost if the process dies. It knows no answers. `answers` are the names to look at, each with the
unit in which its exercise is answered.
"""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from mlsim_exercises.evaluation import is_quantity, plain_number
from mlsim_grading import sandbox
from mlsim_grading.limits import LONGEST
from mlsim_grading.notebook import fingerprint, read_notebook

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
        sandbox.close_network()
    for name, text in task["files"].items():
        path = Path.cwd() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shell = _shell()
    if task["look_around"]:
        send(ready=True, files=_fonts(Path.cwd()))
        return
    sandbox.limit(task["limits"])
    sandbox.guard(str(Path.cwd()), task["hidden"])
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
        if each in {CellTimeout, sandbox.WallError}:
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


if __name__ == "__main__":
    main()
