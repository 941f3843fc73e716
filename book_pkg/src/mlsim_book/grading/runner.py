"""Run a notebook's cells and report the values of names: the subprocess of `grade`.

    python -I -m mlsim_book.grading.runner FD < task.json

The task comes as JSON on standard input; what happens goes to the file descriptor as
lines of JSON, one when a cell begins and one when it ends, so that nothing sent is lost
if the process dies. It knows no answers. `answers` are the names to look at, each with
the unit in which its exercise is answered.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from mlsim_book.grading import sandbox
from mlsim_exercises.evaluation import is_quantity, plain_number

_LONGEST = 300  # characters of a text, items of a list that are sent


class CellTimeout(BaseException):
    """A cell ran for longer than it may."""


def main() -> None:
    """Run what the task says."""
    task = json.load(sys.stdin)
    channel = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8", buffering=1)

    def send(**what: Any) -> None:
        channel.write(json.dumps(what) + "\n")

    sys.dont_write_bytecode = True
    network = sandbox.close_network()
    shell = _shell()
    sandbox.limit(memory=task["memory"], seconds=task["seconds"], file_size=task["file_size"])
    sandbox.guard(str(Path.cwd()), task["hidden"])
    send(ready=True, network_closed=network)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _too_long)
    for index, source in enumerate(task["cells"]):
        if index in task["skip"]:
            continue
        send(begins=index)
        error = _run(shell, source, task["cell_seconds"])
        values = _look(shell.user_ns, task["answers"], task["cell_seconds"])
        send(ends=index, error=error, values=values)
    send(done=True)


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


def _alarm(seconds: float) -> None:
    # it rings again every second: code that catches everything is interrupted again
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0 if seconds else 0.0)


def _run(shell: Any, source: str, seconds: float) -> str | None:
    """Run one cell; return what went wrong, if anything."""
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
        return None
    try:
        return f"{type(raised).__name__}: {raised}"[:_LONGEST]
    except BaseException:  # noqa: BLE001 - its own text may fail, too
        return type(raised).__name__


def _look(names: dict[str, Any], answers: dict[str, str], seconds: float) -> dict[str, Any]:
    """Return the values of the names as JSON, leaving out what is blank."""
    found: dict[str, Any] = {}
    for name, unit in answers.items():
        try:
            _alarm(max(0.2, seconds / len(answers)))
            try:
                sent = _as_json(names.get(name), unit)
            finally:
                _alarm(0)
        except BaseException as error:  # noqa: BLE001 - a stranger's object was asked
            sent = {"other": type(error).__name__}
        if sent is not None:
            found[name] = sent
    return found


def _as_json(value: Any, unit: str) -> dict[str, Any] | None:
    """Return a value as `{"number": 2.0}`, `text`, `list`, `unit` (that doesn't fit) or `other`."""
    if value is None or value is Ellipsis or (isinstance(value, str) and not value.strip(" .")):
        return None
    if isinstance(value, str):
        return {"text": value[:_LONGEST]}
    if isinstance(value, bool | complex | bytes):
        return {"other": repr(value)[:_LONGEST]}
    if isinstance(value, list | tuple):
        items = [str(each)[:_LONGEST] for each in value[:_LONGEST]]
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
