"""Read `_quarto.yml`: the book's settings, and its chapters in reading order.

Keys that Quarto honors and this builder doesn't: each is reported by name. They are no mistakes,
so they don't stop a strict build. Filters and themes below a path of `mlsim-book: for-quarto:
[...]` are meant for Quarto alone: only a missing one is reported.

The chapters of a book, in reading order: which files, which titles, which numbers. Numbers go on
across parts, skip unnumbered chapters, and start again (as letters, which the page writes) for
appendices.
"""

from __future__ import annotations

import functools
import os
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import Chapter, Project
from mlsim_book.read.ipynb import read_source
from mlsim_book.read.labels import known_language
from mlsim_book.read.lines import Fences, SourceLine, expand_includes, nearest_file
from mlsim_book.read.qmd import check_metadata, html_format, merge, split_front_matter
from mlsim_book.read.yamlfile import YamlFile, did_you_mean, named_paths, read_yaml


@functools.cache
def _quarto_keys() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("keys.toml").read_text(encoding="utf-8"))


def advise_keys(source: YamlFile, root: Path, problems: Problems) -> None:
    """Tell of keys in `_quarto.yml` that have no effect here, and of files that are missing."""
    own = _OfQuarto(source, root, problems)
    for name, keys in _quarto_keys()["unread"].items():
        path = tuple(filter(None, name.split(".")))
        block = _block(source.data, path)
        for key in keys:
            if block.get(key) in (None, False, []):
                continue
            if key == "filters" and own.have(block[key], *path, key):
                continue
            why = _quarto_keys()["why"].get(key, "it is left out")
            problems.advise(
                f"`{': '.join((*path, key))}` has no effect here: {why}",
                file=source.file,
                line=source.line(*path, key),
            )
    html = _block(source.data, ("format", "html"))
    for theme in _themes(html.get("theme")):
        if theme.endswith(".scss") and not own.has(theme, "format", "html", "theme"):
            problems.advise(
                f"the theme '{theme}' has no effect here: Sass is not compiled",
                file=source.file,
                line=source.line("format", "html", "theme"),
                hint="Write plain CSS, and name it under `css:`.",
            )
    lang = source.data.get("lang")
    if isinstance(lang, str) and not known_language(lang):
        problems.advise(
            f"there are no words for the language '{lang}': Figure, Table and others stay English",
            file=source.file,
            line=source.line("lang"),
            hint="Give your own under `language:`, such as `crossref-fig-title: Figur`.",
        )
    kernel = source.data.get("jupyter")
    if isinstance(kernel, str) and kernel not in {"python3", "python"}:
        problems.advise(
            f"the kernel '{kernel}' is not used: chapters run in the Python that builds the book",
            file=source.file,
            line=source.line("jupyter"),
        )


class _OfQuarto:
    """Knows which files are meant for Quarto alone."""

    def __init__(self, source: YamlFile, root: Path, problems: Problems) -> None:
        hint = "Name the folders with what only Quarto reads."
        self._paths = [PurePosixPath(p) for p in named_paths(source.data, "for-quarto", hint)]
        self._source, self._root, self._problems = source, root, problems

    def have(self, names: Any, *key: str) -> bool:
        """Say whether all of a list are such files."""
        return isinstance(names, list) and all(self.has(each, *key) for each in names)

    def has(self, name: Any, *key: str) -> bool:
        """Say whether a file is one of them, and note it if there is no such file."""
        if not any(PurePosixPath(str(name)).is_relative_to(path) for path in self._paths):
            return False
        if not (self._root / name).is_file():
            self._problems.add(
                f"`{': '.join(key)}` names '{name}', and there is no such file",
                file=self._source.file,
                line=self._source.line(*key),
            )
        return True


def _block(data: Any, path: tuple[str, ...]) -> Mapping[str, Any]:
    for part in path:
        data = data.get(part) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def _themes(theme: Any) -> Iterator[str]:
    """Yield the names of a theme: one, a list, or one each for light and dark.

    >>> list(_themes({"light": ["cosmo", "a.scss"], "dark": "darkly"}))
    ['cosmo', 'a.scss', 'darkly']
    """
    if isinstance(theme, str):
        yield theme
    elif isinstance(theme, Mapping | list):
        for each in theme.values() if isinstance(theme, Mapping) else theme:
            yield from _themes(each)


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
    references = source.data["book"].get("references")
    if isinstance(references, str) and "://" not in references:
        line = source.line("book", "references")
        own_path(references, what="page of references", root=root, file=source.file, line=line)
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
        raise source.error(
            "the book has no chapters",
            "book",
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


def load_project(root: Path, problems: Problems) -> Project:
    """Read a book's `_quarto.yml`.

    Parameters
    ----------
    root
        The folder that holds `_quarto.yml`.
    problems
        Takes what a strict build refuses: unknown keys, an untitled chapter.

    Raises
    ------
    SourceError
        The file is missing or wrong; with file and line.
    """
    root = root.resolve()
    path = root / "_quarto.yml"
    if not path.is_file():
        raise SourceError(
            "there is no _quarto.yml here",
            file=str(root),
            hint="Run this in the folder of a Quarto book, or name it with --root.",
        )
    source = read_yaml(path, name="_quarto.yml")
    _check_keys(source, problems)
    advise_keys(source, root, problems)
    data = _with_metadata_files(source, root)
    book = data["book"]
    chapters = list_chapters(source, root, problems)
    favicon = _text(book.get("favicon"))
    if favicon is not None:
        _require("favicon", favicon, source, root, "book", "favicon")
    given = data.get("bibliography") or []
    bibliography = [str(name) for name in (given if isinstance(given, list) else [given])]
    for name in bibliography:
        _require("bibliography", name, source, root, "bibliography")
    usual = (each.source for each in chapters if Path(each.source).stem == "references")
    references = iter([str(book["references"])]) if book.get("references") else usual
    output_dir = (data.get("project") or {}).get("output-dir") or "_book"
    return Project(
        root=root,
        title=str(book.get("title") or "Untitled"),
        chapters=chapters,
        output_dir=str(output_dir),
        subtitle=_text(book.get("subtitle")),
        author=_authors(book.get("author") or book.get("authors")),
        description=_text(book.get("description")),
        repo_url=_text(book.get("repo-url")),
        repo_branch=str(book.get("repo-branch") or "main"),
        site_url=_text(book.get("site-url")),
        favicon=favicon,
        bibliography=tuple(bibliography),
        csl=_text(data.get("csl")),
        references_chapter=next(references, None),
        execute=data.get("execute") or {},
        html=html_format(data),
        metadata=data,
        lang=str(data.get("lang") or "en"),
    )


def folder_metadata(root: Path, source: str) -> dict[str, Any]:
    """Return what the `_metadata.yml` files say, from the book's folder down to a chapter's."""
    merged: dict[str, Any] = {}
    folder = root
    for part in ("", *Path(source).parent.parts):
        folder = folder / part
        for name in ("_metadata.yml", "_metadata.yaml"):
            if (folder / name).is_file():
                label = (folder / name).relative_to(root).as_posix()
                merged = merge(merged, _checked(folder / name, label).data)
    return merged


def _checked(path: Path, name: str) -> YamlFile:
    source = read_yaml(path, name=name)
    if not isinstance(source.data, dict):
        raise SourceError("must hold `name: value` lines", file=name, line=1)
    check_metadata(source)
    return source


def _with_metadata_files(source: YamlFile, root: Path) -> dict[str, Any]:
    """Lay `_quarto.yml` over the files it names under `metadata-files`."""
    below: dict[str, Any] = {}
    names = source.data.get("metadata-files") or []
    for index, name in enumerate(names if isinstance(names, list) else [names]):
        path = root / str(name)
        if not path.is_file():
            raise source.error(
                f"the metadata file '{name}' does not exist",
                "metadata-files",
                index,
                hint=nearest_file(path, root),
            )
        below = merge(below, _checked(path, str(name)).data)
    return merge(below, source.data)


def _check_keys(source: YamlFile, problems: Problems) -> None:
    """Refuse what is no book; note keys that Quarto doesn't know."""
    data = source.data
    if not isinstance(data, dict) or not isinstance(data.get("book"), dict):
        raise SourceError(
            "has no `book:` block",
            file=source.file,
            line=1,
            hint="Only books are built: write `project: {type: book}` and `book: {chapters: ...}`.",
        )
    project = data.get("project") or {}
    kind = project.get("type") if isinstance(project, dict) else None
    if kind != "book":
        raise source.error(
            f"the project's type is {kind!r}, which must be `book`", "project", "type"
        )
    check_metadata(source)
    every = _quarto_keys()["known"]
    for block in ("project", "book"):
        known = every[block]
        for key in data[block]:
            if key not in known:
                problems.add(
                    f"unknown key '{block}: {key}'",
                    file=source.file,
                    line=source.line(block, key),
                    hint=did_you_mean(key, known) or "Quarto has no such key; take it out.",
                )
    for key in data:
        hint = did_you_mean(key, every["top"]) if key not in every["top"] else None
        if hint:
            problems.add(f"unknown key '{key}'", file=source.file, line=source.line(key), hint=hint)


def _require(what: str, name: str, source: YamlFile, root: Path, *path: str) -> None:
    """Refuse a name of no file; `path` leads to its line."""
    if not (root / name).is_file():
        raise source.error(
            f"the {what} '{name}' does not exist", *path, hint=nearest_file(root / name, root)
        )


def _authors(given: Any) -> tuple[str, ...]:
    """Return authors' names, however they are written.

    >>> _authors([{"name": "Ada Brook"}, "Bo Hill"])
    ('Ada Brook', 'Bo Hill')
    """
    names: list[str] = []
    for author in given if isinstance(given, list) else [given] if given else []:
        name = author.get("name") if isinstance(author, dict) else author
        if isinstance(name, dict):  # name: {given:, family:}
            name = name.get("literal") or f"{name.get('given', '')} {name.get('family', '')}"
        names.append(str(name).strip())
    return tuple(names)


def _text(value: Any) -> str | None:
    return None if value is None else str(value).strip()
