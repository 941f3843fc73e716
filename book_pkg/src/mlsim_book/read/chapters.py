"""The chapters of a book, in reading order: which files, which titles, which numbers.

Numbers go on across parts, skip unnumbered chapters, and start again (as
letters, which the page writes) for appendices.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import Chapter
from mlsim_book.read.includes import expand_includes, nearest_file
from mlsim_book.read.ipynb import read_source
from mlsim_book.read.lines import Fences, SourceLine
from mlsim_book.read.qmd import split_front_matter
from mlsim_book.read.yamlfile import YamlFile

_SUFFIXES = {".qmd", ".md", ".ipynb"}
# How a path begins that doesn't start at the book's folder; Windows has drives besides.
_ABSOLUTE = re.compile(r"[A-Za-z]:|/")
_HEADING = re.compile(r"^#\s+(.*?)\s*#*\s*(\{[^{}]*\})?\s*$")


@dataclass(frozen=True)
class Heading:
    """A chapter's title as its file gives it."""

    title: str
    label: str | None = None
    numbered: bool = True


@dataclass(frozen=True)
class _Entry:
    """A file named in `_quarto.yml`."""

    name: str
    line: int | None
    appendix: bool = False
    part: str | None = None
    part_file: str | None = None


def list_chapters(source: YamlFile, root: Path, problems: Problems) -> tuple[Chapter, ...]:
    """Return the chapters that `_quarto.yml` lists, numbered and titled.

    A part that names a file has a page of its own: an unnumbered chapter whose
    `href` is its `part_href`.
    """
    _check_references(source, root)
    chapters: list[Chapter] = []
    counts = {False: 0, True: 0}
    seen: set[str] = set()
    for entry in _entries(source, root):
        heading = _heading_of(entry, source, root, problems)
        if entry.name in seen:
            raise SourceError(
                f"the chapter '{entry.name}' is listed twice", file=source.file, line=entry.line
            )
        seen.add(entry.name)
        own_part = entry.part_file == entry.name
        number = None
        if heading.numbered and not own_part:
            counts[entry.appendix] += 1
            number = counts[entry.appendix]
        part = entry.part
        if entry.part_file is not None:
            part_entry = _Entry(entry.part_file, entry.line)
            part = _heading_of(part_entry, source, root, problems).title
        chapters.append(
            Chapter(
                source=entry.name,
                href=_href(entry.name),
                title=heading.title,
                number=number,
                appendix=entry.appendix,
                part=part,
                part_href=_href(entry.part_file) if entry.part_file else None,
                label=heading.label,
            )
        )
    if not chapters:
        raise SourceError(
            "the book has no chapters",
            file=source.file,
            line=source.line("book"),
            hint="List files under `book: chapters:`, index.qmd first.",
        )
    return tuple(chapters)


def _href(name: str) -> str:
    return PurePosixPath(name).with_suffix(".html").as_posix()


def own_path(name: str, *, what: str, root: Path, file: str, line: int | None) -> str:
    """Return the path of a file of the book from the book's folder, in its shortest form.

    Raises
    ------
    SourceError
        The path is absolute or leads out of the book's folder: the page of such a file
        would be written outside of the site, beside sources or over them.

    >>> own_path("a/../b.qmd", what="chapter", root=Path("."), file="_quarto.yml", line=1)
    'b.qmd'
    """
    plain = posixpath.normpath(name.replace("\\", "/"))
    absolute = _ABSOLUTE.match(plain)
    if not absolute and plain.split("/")[0] != "..":
        return posixpath.normpath(name)
    fault = "is an absolute path" if absolute else "is outside the book's folder"
    raise SourceError(
        f"the {what} '{name}' {fault}: a book's files are in its folder, and named from there",
        file=file,
        line=line,
        hint=_instead(plain, root),
    )


def _instead(plain: str, root: Path) -> str:
    """Say what to write for a file outside, or for one of the book's by a wrong path."""
    meant = Path(os.path.normpath(root.absolute() / plain))
    below = re.sub(r"^(?:[A-Za-z]:)?(?:/|\.\./)*", "", plain)
    if meant.is_relative_to(root.absolute()):
        below = meant.relative_to(root.absolute()).as_posix()
    if below and (root / below).is_file():
        return f"Write '{below}': paths start from the folder of _quarto.yml."
    moved = "Move the file into the folder of _quarto.yml, and name it from there"
    if _ABSOLUTE.match(plain):
        return f"{moved}."
    return f"{moved}; or write a chapter there that holds {{{{< include {plain} >}}}}."


def _check_references(source: YamlFile, root: Path) -> None:
    """Refuse a page of references that is outside the book."""
    name = source.data["book"].get("references")
    if isinstance(name, str) and "://" not in name:
        line = source.line("book", "references")
        own_path(name, what="page of references", root=root, file=source.file, line=line)


def _entries(source: YamlFile, root: Path) -> Iterator[_Entry]:
    """Yield the files under `chapters` and `appendices`, parts opened."""
    for key, appendix in (("chapters", False), ("appendices", True)):
        items = source.data["book"].get(key) or []
        if not isinstance(items, list):
            raise SourceError(
                f"`book: {key}:` must be a list", file=source.file, line=source.line("book", key)
            )
        for index, item in enumerate(items):
            yield from _open_item(item, source, ("book", key, index), appendix, root)


def _open_item(
    item: Any, source: YamlFile, path: tuple[str | int, ...], appendix: bool, root: Path
) -> Iterator[_Entry]:
    line = source.line(*path)

    def own(name: str, what: str) -> str:
        return own_path(name, what=what, root=root, file=source.file, line=line)

    if isinstance(item, dict) and "part" in item:
        title = str(item["part"])
        is_file = PurePosixPath(title).suffix in _SUFFIXES
        part_file = own(title, "part") if is_file else None
        part = None if part_file else title
        if part_file:
            yield _Entry(part_file, line, appendix, None, part_file)
        for index, inner in enumerate(item.get("chapters") or []):
            for entry in _open_item(inner, source, (*path, "chapters", index), appendix, root):
                yield _Entry(entry.name, entry.line, appendix, part, part_file)
        return
    name = item.get("file") or item.get("href") if isinstance(item, dict) else item
    if name is None and isinstance(item, dict) and "text" in item:
        return  # a line or a heading of the sidebar
    if not isinstance(name, str):
        raise SourceError(
            f"a chapter must be a file name, or a mapping with `file` or `part`; got {item!r}",
            file=source.file,
            line=line,
        )
    if "://" not in name:
        yield _Entry(own(name, "chapter"), line, appendix)


def _heading_of(entry: _Entry, source: YamlFile, root: Path, problems: Problems) -> Heading:
    path = root / entry.name
    if PurePosixPath(entry.name).suffix not in _SUFFIXES:
        raise SourceError(
            f"the chapter '{entry.name}' is no .qmd, .md or .ipynb file",
            file=source.file,
            line=entry.line,
            hint="Write the chapter as one of these.",
        )
    if not path.is_file():
        raise SourceError(
            f"the chapter '{entry.name}' does not exist",
            file=source.file,
            line=entry.line,
            hint=nearest_file(path.resolve(), root),
        )
    heading = read_heading(path, name=entry.name, root=root)
    if heading is None:
        problems.add("the chapter has no title", file=entry.name, line=1, hint="Begin with '# '.")
        return Heading(PurePosixPath(entry.name).stem)
    return heading


def read_heading(path: Path, *, name: str, root: Path) -> Heading | None:
    """Return a chapter's title: from its YAML block, or its first level-1 heading."""
    front, body = split_front_matter(read_source(path, name=name), file=name)
    numbered = front.data.get("number-sections") is not False
    if front.data.get("title"):
        return Heading(str(front.data["title"]).strip(), numbered=numbered)
    return first_heading(expand_includes(body, path=path, root=root)[0])


def first_heading(lines: tuple[SourceLine, ...]) -> Heading | None:
    """Return the first level-1 heading among lines.

    >>> from mlsim_book.read.lines import split_lines
    >>> first_heading(split_lines("# Hello, *roofline* {#sec-hello .unnumbered}", file="a.qmd"))
    Heading(title='Hello, *roofline*', label='sec-hello', numbered=False)
    """
    fences = Fences()
    above = ""
    for line in lines:
        kind = fences.feed(line.text)
        match = _HEADING.match(line.text) if kind == "text" else None
        title, braces = match.groups() if match else ("", None)
        if kind == "text" and above.strip() and re.fullmatch(r"=+\s*", line.text):
            title, braces = re.fullmatch(r"(.*?)\s*(\{[^{}]*\})?\s*", above).groups()  # type: ignore[union-attr]
        if title:
            words = (braces or "{}")[1:-1].split()
            label = next((word[1:] for word in words if word.startswith("#")), None)
            return Heading(title, label, not {"-", ".unnumbered"} & set(words))
        above = line.text if kind == "text" else ""
    return None
