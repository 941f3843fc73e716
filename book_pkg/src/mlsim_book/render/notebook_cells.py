"""The cells of a reader notebook, as plain data."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mlsim_book.read.ipynb import strip_ansi
from mlsim_book.read.qmd import MEASURED, Cell, Defaults, form_of, is_measured
from mlsim_book.render.live_code import Code
from mlsim_book.run.outputs import is_display
from mlsim_book.run.results import Output

# How a notebook folds a cell's code: for JupyterLab, and for Colab.
FOLDED: Mapping[str, Any] = {"cellView": "form", "jupyter": {"source_hidden": True}}
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_shown(cell: Cell, defaults: Defaults) -> bool:
    """Say whether readers of the page see a cell's code, and it runs."""
    return (
        defaults.of(cell.options, "include") is not False
        and defaults.of(cell.options, "echo") is not False
        and defaults.of(cell.options, "eval") is not False
    )


def is_asis(cell: Cell, defaults: Defaults) -> bool:
    """Say whether a cell stands for the Markdown it prints."""
    hides = defaults.of(cell.options, "echo") is False
    return hides and defaults.of(cell.options, "output") == "asis"


def is_folded(cell: Cell, defaults: Defaults) -> bool:
    """Say whether readers have to open a cell's code: the page hides it, or folds it."""
    return not is_shown(cell, defaults) or defaults.of(cell.options, "code-fold") in {True, "true"}


def page_code(cell: Cell, outputs: Sequence[Output], defaults: Defaults) -> Code:
    """Return a cell's code, with what the page shows of it."""
    if defaults.of(cell.options, "eval") is False:
        return Code("")
    whole = {"error"} if defaults.of(cell.options, "warning") is False else {"error", "stderr"}
    kinds = {each.get("name", each["output_type"]) for each in outputs}
    if _is_silent(cell, defaults):
        return Code(cell.source, acts=not is_asis(cell, defaults))
    if is_shown(cell, defaults) or kinds & whole:
        return Code(cell.source, seen=True)
    kinds -= {"stderr"}
    only_value = kinds == {"execute_result"}
    return Code(cell.source, shows="value" if only_value else "all" if kinds else "nothing")


def _is_silent(cell: Cell, defaults: Defaults) -> bool:
    """Say whether a page shows neither a cell's code nor, as an output, what it gives."""
    output = defaults.of(cell.options, "output")
    return defaults.of(cell.options, "include") is False or (
        not is_shown(cell, defaults) and output in {False, "asis"}
    )


def markdown_cell(text: str) -> dict[str, Any]:
    """Return a Markdown cell."""
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip("\n")}


def own_cell(source: str) -> dict[str, Any]:
    """Return a code cell that no chapter runs: nbval sees that it runs, not what it says."""
    metadata = {"tags": ["nbval-ignore-output"]}
    return {"cell_type": "code", "id": "", "metadata": metadata, "outputs": [], "source": source}


def code_cell(
    cell: Cell, source: str, outputs: Sequence[Output], defaults: Defaults
) -> dict[str, Any]:
    """Return a code cell with the outputs that are text; of measured ones, their form.

    `source` is what the notebook needs of the cell's code.
    """
    kept, comparable = _kept_outputs(outputs, defaults, cell)
    if _is_silent(cell, defaults):
        kept, comparable = [], not outputs
    tags = [str(tag) for tag in cell.options.get("tags") or []]
    if is_measured(cell):
        kept, comparable = [_form(each) for each in kept], False
        tags += [MEASURED] if kept else []
    if defaults.of(cell.options, "error") is True:
        tags.append("raises-exception")
    if not comparable and "nbval-ignore-output" not in tags:
        tags.append("nbval-ignore-output")
    metadata: dict[str, Any] = {**FOLDED} if is_folded(cell, defaults) else {}
    if tags:
        metadata["tags"] = tags
    return {
        "cell_type": "code",
        "id": cell.label or "",
        "metadata": metadata,
        "outputs": kept,
        "source": source,
    }


def _kept_outputs(
    outputs: Sequence[Output], defaults: Defaults, cell: Cell
) -> tuple[list[dict[str, Any]], bool]:
    """Return the outputs a notebook keeps, and whether nbval will see just these."""
    kept: list[dict[str, Any]] = []
    comparable = True
    for output in outputs:
        text = None
        if output["output_type"] == "stream":
            text = output["text"]
            comparable = comparable and output["name"] == "stdout"
            if output["name"] == "stdout" or defaults.of(cell.options, "warning") is not False:
                kept.append({"name": output["name"], "output_type": "stream", "text": text})
        elif output["output_type"] == "error":
            text = strip_ansi(output["evalue"])
            kept.append(
                {
                    "ename": output["ename"],
                    "evalue": text,
                    "output_type": "error",
                    "traceback": [f"{output['ename']}: {text}"],
                }
            )
        elif is_display(output):
            text = output["data"].get("text/plain")
            comparable = comparable and set(output["data"]) == {"text/plain"}
            if text is not None and not any(mime.startswith("image/") for mime in output["data"]):
                kept.append(_text_output(output, text))
        comparable = comparable and "at 0x0" not in (text or "")
    return kept, comparable


def _text_output(output: Output, text: str) -> dict[str, Any]:
    kept = {
        "data": {"text/plain": strip_ansi(text)},
        "metadata": {},
        "output_type": output["output_type"],
    }
    if output["output_type"] == "execute_result":
        kept["execution_count"] = None  # set when the cells are numbered
    return kept


def _form(output: dict[str, Any]) -> dict[str, Any]:
    """Return a kept output with a sign for each number."""
    if "data" in output:
        return output | {"data": {kind: form_of(text) for kind, text in output["data"].items()}}
    return output | {name: form_of(output[name]) for name in ("text", "evalue") if name in output}


def number_cells(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give cells unique ids and counts, and split their text into lines.

    An id is the label, or a hash of the source; a repeated one gets a number.
    """
    used: set[str] = set()
    count = 0
    numbered = []
    for cell in cells:
        source = cell["source"]
        wanted = cell.get("id") or ""
        if not _ID.fullmatch(wanted):
            wanted = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()[:8]
        name, again = wanted, 1
        while name in used:
            again += 1
            name = f"{wanted}-{again}"
        used.add(name)
        done = {**cell, "id": name, "source": source.splitlines(keepends=True)}
        if cell["cell_type"] == "code":
            count += 1
            done["execution_count"] = count
            done["outputs"] = [_numbered(output, count) for output in cell["outputs"]]
        numbered.append(done)
    return numbered


def _numbered(output: Mapping[str, Any], count: int) -> dict[str, Any]:
    done = dict(output)
    if "execution_count" in done:
        done["execution_count"] = count
    if "text" in done:
        done["text"] = str(done["text"]).splitlines(keepends=True)
    if "data" in done:
        data = done["data"]
        done["data"] = {mime: text.splitlines(keepends=True) for mime, text in data.items()}
    return done
