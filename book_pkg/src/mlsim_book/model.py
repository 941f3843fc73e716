"""The nouns of a build: Project, Chapter, ExecutedPage.

They are plain data, passed from step to step; nothing here does work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Chapter:
    """One page of the book, in reading order.

    `source` and `href` are posix paths relative to the book's root, e.g.
    `tutorials/hello_world.qmd` and `tutorials/hello_world.html`.
    """

    source: str
    href: str
    title: str  # Markdown, without number and attributes
    number: int | None  # None for an unnumbered chapter
    appendix: bool = False
    part: str | None = None  # title of the part it stands in (Markdown)
    part_href: str | None = None  # the part's own page, when a file introduces it
    label: str | None = None  # the id written on its level-1 heading, e.g. "sec-hello"


@dataclass(frozen=True)
class Project:
    """A book as `_quarto.yml` describes it."""

    root: Path
    title: str  # Markdown
    chapters: tuple[Chapter, ...]
    output_dir: str = "_book"
    subtitle: str | None = None
    author: tuple[str, ...] = ()
    description: str | None = None
    repo_url: str | None = None
    repo_branch: str = "main"
    site_url: str | None = None
    favicon: str | None = None  # relative to root
    bibliography: tuple[str, ...] = ()  # likewise
    csl: str | None = None
    references_chapter: str | None = None
    execute: Mapping[str, Any] = field(default_factory=dict)
    html: Mapping[str, Any] = field(default_factory=dict)  # format.html
    metadata: Mapping[str, Any] = field(default_factory=dict)  # all of _quarto.yml
    lang: str = "en"


@dataclass(frozen=True)
class ExecutedPage:
    """A chapter after its cells have run.

    `markdown` is Quarto's own intermediate Markdown (see `run.intermediate`), with
    includes and inline expressions resolved and the YAML block taken off into
    `metadata`. `files` holds what the cells drew, by path relative to the
    book's root; `source` is the chapter as written, to find lines in.
    """

    chapter: Chapter
    markdown: str
    metadata: Mapping[str, Any]
    files: Mapping[str, bytes]
    source: str
