"""Notebooks as chapters: a stored .ipynb -> the lines of a .qmd, and its stored outputs.

A notebook is read as if it had been written as .qmd: text cells as they are, code
cells in fences, tags such as `remove-input` and options in a cell's metadata as
`#|` lines. Its stored outputs are shown; it runs only where `execute:` says so.

Take out of outputs what differs from run to run: addresses, paths, random ids.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.read.lines import SourceLine, fence_for, read_lines, split_lines
from mlsim_book.read.yamlfile import OPTIONS

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
    r"""Return a text without terminal colors.

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
    r"""Return outputs with neighboring pieces of one stream as one.

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
    value = _text(value) if mime.startswith("text/") else value
    if mime == "text/html" and "<style" in value and len(set(_STYLER_ID.findall(value))) == 1:
        # the random id of a pandas Styler, drawn from its content instead
        digest = hashlib.sha256(_STYLER_ID.sub("T_", value).encode()).hexdigest()[:5]
        return _STYLER_ID.sub(f"T_{digest}", value)
    return value


Output = dict[str, Any]  # as nbformat has it

_OPTIONS = (
    "label", "echo", "output", "warning", "include", "error", "fig-cap", "fig-alt", "tbl-cap",
    "fig-subcap", "tbl-subcap", "layout-ncol", "layout-nrow", "lst-cap", "lst-label", "code-fold",
    "code-summary", "column",
)  # fmt: skip
_RAW = {"text/html": "html", "text/latex": "latex", "text/restructuredtext": "rst"}
_IMAGES = ("image/png", "image/jpeg", "image/svg+xml", "image/gif")


@dataclass(frozen=True)
class Notebook:
    """A notebook's cells as the text of a .qmd, and what it holds beside text."""

    lines: tuple[SourceLine, ...]
    outputs: tuple[tuple[Output, ...], ...] = ()  # of each code cell
    files: Mapping[str, bytes] = field(default_factory=dict)  # attachments, from its page


def is_notebook(path: Path | str) -> bool:
    """Say whether a file is a notebook, by its name."""
    return PurePosixPath(path).suffix == ".ipynb"


def read_source(path: Path, *, name: str) -> tuple[SourceLine, ...]:
    """Return a chapter's lines, whether it is a text file or a notebook."""
    return (
        read_notebook(path, name=name).lines if is_notebook(name) else read_lines(path, name=name)
    )


def read_notebook(path: Path, *, name: str) -> Notebook:
    """Read a notebook of format 4.

    Raises
    ------
    SourceError
        The file is no notebook, or one of an older format.
    """
    cells = _cells(path, name)
    pieces: list[str] = []
    outputs: list[tuple[Output, ...]] = []
    files: dict[str, bytes] = {}
    for index, cell in enumerate(cells):
        source = _joined(cell.get("source"))
        kind = cell.get("cell_type")
        if kind == "code":
            pieces.append(_code_cell(cell, source))
            stored = cell.get("outputs") or ()
            found = [sanitize(dict(each)) for each in stored if "output_type" in each]
            outputs.append(tuple(joined(found)))
        elif kind == "markdown":
            folder = f"{path.stem}_files/figure-html"
            pieces.append(_with_attachments(cell, source, f"{folder}/cell-{index}", files))
        else:
            about = cell.get("metadata") or {}  # passed through if it names a format
            form = _RAW.get(str(about.get("raw_mimetype") or about.get("format")))
            ticks = fence_for(source, least=3)
            pieces.append(f"{ticks}{{={form}}}\n{source}\n{ticks}" if form else source)
    # front matter has to open a file: blank cells above it go
    text = "\n\n".join(each.strip("\n") for each in pieces).lstrip("\n") + "\n"
    return Notebook(split_lines(text, file=name), tuple(outputs), files)


def _cells(path: Path, name: str) -> list[dict[str, Any]]:
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise SourceError(
            f"is no notebook: {error}",
            file=name,
            line=line,
            hint="Open and save it in Jupyter; a merge may have left conflict marks in it.",
        ) from None
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list) or data.get("nbformat") != 4:
        given = data.get("nbformat") if isinstance(data, dict) else None
        raise SourceError(
            f"is a notebook of format {given!r}, which must be 4",
            file=name,
            hint="Convert it with: jupyter nbconvert --to notebook --inplace FILE",
        )
    return [cell for cell in cells if isinstance(cell, dict)]


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text or "")


def _code_cell(cell: Mapping[str, Any], source: str) -> str:
    """Return a code cell in its fence, with what its metadata says as options."""
    given = [line for line in source.split("\n") if line.startswith("#|")]
    own = {line.removeprefix("#|").split(":")[0].strip() for line in given}
    metadata = cell.get("metadata") or {}
    said: dict[str, Any] = {}
    for tag in metadata.get("tags") or ():
        said |= OPTIONS["tags"].get(tag, {})
    said |= {key: metadata[key] for key in _OPTIONS if key in metadata}
    lines = [
        f"#| {key}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in said.items()
        if key not in own
    ]
    ticks = fence_for(source, least=3)
    body = "\n".join([*lines, source.rstrip("\n")])
    return f"{ticks}{{python}}\n{body}\n{ticks}"


def _with_attachments(
    cell: Mapping[str, Any], source: str, prefix: str, files: dict[str, bytes]
) -> str:
    """Return a text cell with the images attached to it as files beside the page."""
    for name, forms in (cell.get("attachments") or {}).items():
        for mime in _IMAGES:
            if mime in forms:
                data = _joined(forms[mime])
                svg = data.lstrip().startswith("<svg")
                path = f"{prefix}-{name.replace(' ', '-')}"
                files[path] = data.encode() if svg else base64.b64decode(data)
                source = source.replace(f"attachment:{name}", path)
                break
    return source
