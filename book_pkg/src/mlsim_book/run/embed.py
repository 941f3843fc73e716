"""Embed cells of another notebook or page: `{{< embed FILE#CELL >}}`.

FILE is an .ipynb, whose stored outputs are shown, or a .qmd, which is run. CELL is
a label, a tag or the id of a cell (several with commas); `FILE[1,3]` counts all
cells from 1; without either, the whole file is embedded. Only outputs are shown,
and no warnings, unless the call says `echo=true` or `warning=true`.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.model import ExecutedPage
from mlsim_book.read.lines import Fences, nearest_file
from mlsim_book.read.qmd import Cell, Document, page_defaults
from mlsim_book.run.intermediate import figure_folder, write_blocks
from mlsim_book.run.results import Results

_EMBED = re.compile(r"^\s*\{\{<\s+embed\s+(.+?)\s+>\}\}\s*$")
_ADDRESS = re.compile(r"(?P<path>[^#\[]+?)(?:#(?P<names>.+)|\[(?P<counts>[\d,\s-]+)\])?")
_SUFFIXES = (".ipynb", ".qmd")

# Reads a file by its path from the book's folder, and runs it if it has to be run.
Load = Callable[[str], tuple[Document, Results]]


@dataclass(frozen=True)
class _Call:
    """One call of the shortcode."""

    path: str
    names: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""  # the page it stands in
    line: int | None = None

    def error(self, message: str, hint: str | None = None) -> SourceError:
        """Return an error at the call."""
        return SourceError(message, file=self.file, line=self.line, hint=hint)


def expand_embeds(page: ExecutedPage, root: Path, load: Load) -> ExecutedPage:
    """Return a page with its embedded cells in their places, and their figures.

    Raises
    ------
    SourceError
        The file or the cell is not there.
    """
    if "embed" not in page.markdown:
        return page
    fences, files = Fences(), dict(page.files)
    lines: list[str] = []
    for line in page.markdown.split("\n"):
        match = _EMBED.match(line) if fences.feed(line) == "text" else None
        if match is None:
            lines.append(line)
            continue
        call = _parse(match.group(1), line, page)
        text, drawn = _embedded(call, page, root, load)
        lines.append(text)
        files.update(drawn)
    return replace(page, markdown="\n".join(lines), files=files)


def _parse(call: str, line: str, page: ExecutedPage) -> _Call:
    number = next((i for i, each in enumerate(page.source.split("\n"), 1) if each == line), None)
    file = page.chapter.source
    try:
        address, *given = shlex.split(call)
    except ValueError:
        address, given = call, []
    match = _ADDRESS.fullmatch(address)
    if match is None or PurePosixPath(match["path"]).suffix not in _SUFFIXES:
        raise SourceError(
            f"'{address}' can't be embedded",
            file=file,
            line=number,
            hint="Name a notebook or page, as in nb.ipynb#fig-a or page.qmd.",
        )
    options = dict(each.split("=", 1) for each in given if "=" in each)
    names = tuple(name.strip() for name in (match["names"] or "").split(",") if name.strip())
    return _Call(
        match["path"], names, _range(match["counts"] or ""),
        {name: options.get(name, "").lower() == "true" for name in ("echo", "warning")},
        file, number,
    )  # fmt: skip


def _range(text: str) -> tuple[int, ...]:
    """Return the numbers of a range.

    >>> _range("1,3-5")
    (1, 3, 4, 5)
    """
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            found.extend(range(int(first), int(last if last.isdigit() else first) + 1))
    return tuple(found)


def _embedded(
    call: _Call, page: ExecutedPage, root: Path, load: Load
) -> tuple[str, dict[str, bytes]]:
    """Return the Markdown of what a call names, and the figures in it."""
    here = PurePosixPath(page.chapter.source).parent
    base = PurePosixPath() if call.path.startswith("/") else here
    source = posixpath.normpath((base / call.path.lstrip("/")).as_posix())
    if not (root / source).is_file():
        raise call.error(
            f"the embedded file '{call.path}' does not exist", nearest_file(root / source, root)
        )
    document, results = load(source)
    defaults = page_defaults(document.front_matter)
    prefix = posixpath.splitext(posixpath.relpath(source, here.as_posix()))[0]
    folder = figure_folder(PurePosixPath(page.chapter.source))
    figures = f"{folder}/{re.sub(r'[^A-Za-z0-9]+', '-', prefix).strip('-')}"
    forced = replace(
        document, blocks=tuple(_with(block, call.options) for block in document.blocks)
    )
    pieces, files = write_blocks(forced, results, defaults, figures=figures)
    text = "\n\n".join(_chosen(call, document, pieces)).strip("\n")
    placed = {(here / path).as_posix(): data for path, data in files.items()}
    return f'\n::: {{.quarto-embed-nb-cell notebook="{source}"}}\n\n{text}\n\n:::\n', placed


def _with(block: Any, options: Mapping[str, Any]) -> Any:
    """Lay the call's options over those of a cell."""
    if not isinstance(block, Cell):
        return block
    return replace(block, options={**block.options, **options})


def _chosen(call: _Call, document: Document, pieces: list[str]) -> list[str]:
    """Return the Markdown of the cells that a call names."""
    if call.counts:
        places = _places(document)
        wrong = [count for count in call.counts if not 1 <= count <= len(places)]
        if wrong:
            raise call.error(f"'{call.path}' has {len(places)} cells, not {wrong[0]}")
        return [pieces[places[count - 1]] for count in call.counts]
    if not call.names:
        return pieces
    known = _known(document)
    chosen = []
    for name in call.names:
        at = known.get(name)
        if at is None:
            at = next((i for i, text in enumerate(pieces) if f"{{#{name}" in text), None)
        if at is None:
            listed = ", ".join(sorted(known)[:12]) or "none"
            raise call.error(
                f"the cell '{name}' does not exist in '{call.path}'", f"Its cells are: {listed}."
            )
        if not pieces[at].strip():
            raise call.error(
                f"the cell '{name}' of '{call.path}' has nothing to show",
                "Run the notebook and save it with its outputs.",
            )
        chosen.append(pieces[at])
    return chosen


def _known(document: Document) -> dict[str, int]:
    """Return where each name of a cell leads: its label, its id, its tags."""
    known: dict[str, int] = {}
    names = iter(document.notebook.names if document.notebook else ())
    for index, block in enumerate(document.blocks):
        if isinstance(block, Cell):
            for name in (block.label, *next(names, ()), *(block.options.get("tags") or ())):
                known.setdefault(str(name), index) if name else None
    return known


def _places(document: Document) -> list[int]:
    """Return the block that each cell of a notebook is in; of a page, the blocks with text."""
    first = [
        block.line if isinstance(block, Cell) else block.lines[0].line for block in document.blocks
    ]
    if document.notebook:
        starts = document.notebook.starts
        return [max(sum(line <= start for line in first) - 1, 0) for start in starts]
    return [
        index
        for index, block in enumerate(document.blocks)
        if isinstance(block, Cell) or block.text.strip()
    ]
