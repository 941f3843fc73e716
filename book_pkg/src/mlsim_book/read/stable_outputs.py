"""Take out of outputs what differs from run to run: addresses, paths, random ids."""

from __future__ import annotations

import hashlib
import re
from typing import Any

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CELL_FILE = re.compile(r"\S*/ipykernel_\d+/\d+\.py")
# the file name that IPython gives a cell, with its process and hash taken out
CELL_FILE = "/tmp/ipykernel_0/0.py"  # noqa: S108 - only shown
# the folders before the last one of a file in a traceback: other ones on each machine
_FOLDERS = re.compile(
    r"~?/(?:[^\s:/\x1b\"']+/)*(?=(?!ipykernel_)[^\s:/\x1b\"']+/[^\s:/\x1b\"']+\.py\b)"
)
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
_STYLER_ID = re.compile(r"\bT_([0-9a-f]{5})(?=[_\"' ])")


def strip_ansi(text: str) -> str:
    r"""Return a text without terminal colours.

    >>> strip_ansi("\x1b[31mred\x1b[0m")
    'red'
    """
    return _ANSI.sub("", text)


def sanitize(output: dict[str, Any]) -> dict[str, Any]:
    """Return an output as every run gives it.

    >>> sanitize({"output_type": "stream", "name": "stdout", "text": "<Cup at 0x7f21aa>"})["text"]
    '<Cup at 0x0>'
    """
    clean = dict(output)
    clean.pop("transient", None)
    if "text" in clean:
        clean["text"] = _text(clean["text"])
    if "data" in clean:
        clean["data"] = {mime: _data(mime, value) for mime, value in clean["data"].items()}
    if "metadata" in clean:
        clean["metadata"] = dict(clean["metadata"])
    if clean.get("output_type") == "error":
        clean["evalue"] = _text(clean["evalue"])
        clean["traceback"] = [_FOLDERS.sub("", _text(line)) for line in clean["traceback"]]
    return clean


def joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    r"""Return outputs with neighbouring pieces of one stream as one.

    A kernel sends what is printed in pieces, cut where its clock says.

    >>> joined([{"output_type": "stream", "name": "stdout", "text": text} for text in ("a", "b\n")])
    [{'output_type': 'stream', 'name': 'stdout', 'text': 'ab\n'}]
    """
    found: list[dict[str, Any]] = []
    for output in outputs:
        last = found[-1] if found else {}
        same = all(last.get(key) == output.get(key) for key in ("output_type", "name"))
        if output.get("output_type") == "stream" and same:
            found[-1] = {**last, "text": last["text"] + output["text"]}
        else:
            found.append(output)
    return found


def _text(text: Any) -> Any:
    if isinstance(text, list):
        text = "".join(text)
    return _ADDRESS.sub("at 0x0", _CELL_FILE.sub(CELL_FILE, text))


def _data(mime: str, value: Any) -> Any:
    if isinstance(value, list):
        value = "".join(value)
    if not isinstance(value, str):
        return value
    if mime == "text/html":
        return _styler_ids(_text(value))
    return _text(value) if mime.startswith("text/") else value


def _styler_ids(html: str) -> str:
    """Replace the random id of a pandas Styler with one drawn from its content."""
    ids = set(_STYLER_ID.findall(html)) if "<style" in html else set()
    if len(ids) != 1:
        return html
    blank = _STYLER_ID.sub("T_", html)
    digest = hashlib.sha256(blank.encode()).hexdigest()[:5]
    return _STYLER_ID.sub(f"T_{digest}", html)
