"""What a chapter is made of: front matter, runs of Markdown, code cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_book.read.ipynb import Notebook
from mlsim_book.read.lines import SourceLine


@dataclass(frozen=True)
class Markdown:
    """A run of lines that are not cells."""

    lines: tuple[SourceLine, ...]

    @property
    def text(self) -> str:
        """The lines as one text, each with its end."""
        return "".join(line.text + "\n" for line in self.lines)


@dataclass(frozen=True)
class Cell:
    """A code cell.

    `code` are its lines without options and indent; `number` counts cells and
    non-blank runs of Markdown from 1, as Quarto does to name figure files.
    """

    options: Mapping[str, Any]
    option_lines: tuple[SourceLine, ...]
    code: tuple[SourceLine, ...]
    indent: str
    opening: SourceLine
    number: int

    @property
    def source(self) -> str:
        """The code as the kernel runs it."""
        return "\n".join(line.text for line in self.code)

    @property
    def file(self) -> str:
        """The file the cell is written in."""
        return self.opening.file

    @property
    def line(self) -> int:
        """The line of its opening fence."""
        return self.opening.line

    @property
    def label(self) -> str | None:
        """Its label, without a leading `#`."""
        label = self.options.get("label")
        return str(label).removeprefix("#") if label is not None else None

    def option_line(self, name: str) -> int:
        """Return the line on which an option is written."""
        for line in self.option_lines:
            if line.text.removeprefix("#|").strip().startswith(f"{name}:"):
                return line.line
        return self.line


@dataclass(frozen=True)
class Document:
    """A parsed chapter."""

    front_matter: Mapping[str, Any]
    blocks: tuple[Markdown | Cell, ...]
    source: str  # the chapter's own text, includes not expanded
    included: tuple[Path, ...] = ()
    notebook: Notebook | None = None  # what it was read from, if that is a notebook

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The code cells, in order."""
        return tuple(block for block in self.blocks if isinstance(block, Cell))
