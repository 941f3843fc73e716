"""Read `_quarto.yml`: the book's settings, and its chapters in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import Project
from mlsim_book.read.chapters import list_chapters
from mlsim_book.read.includes import nearest_file
from mlsim_book.read.options import html_format, merge
from mlsim_book.read.qmd import check_metadata
from mlsim_book.read.schema import did_you_mean
from mlsim_book.read.unsupported import advise_keys
from mlsim_book.read.yamlfile import YamlFile, read_yaml

# Keys that Quarto knows. At the top any other is metadata, and allowed.
_TOP = (
    "project", "book", "format", "execute", "bibliography", "csl", "crossref", "filters", "lang",
    "metadata-files", "title", "author", "date", "editor", "engine", "jupyter", "knitr", "theme",
    "link-citations", "nocite", "number-sections", "number-depth", "toc", "toc-depth",
    "toc-title", "include-in-header", "include-before-body", "include-after-body", "css",
    "resources", "profile", "comments", "google-scholar", "abstract", "license", "citation",
    "shortcodes", "reference-section-title", "code-fold", "code-overflow", "highlight-style",
    "suppress-bibliography", "cite-method", "html-math-method",
)  # fmt: skip
_PROJECT = (
    "type", "output-dir", "title", "render", "execute-dir", "lib-dir", "resources", "preview",
    "pre-render", "post-render", "detect",
)  # fmt: skip
_BOOK = (
    "title", "subtitle", "author", "authors", "date", "date-format", "abstract", "description",
    "license", "doi", "isbn", "edition", "chapters", "appendices", "references", "output-file",
    "cover-image", "cover-image-alt", "image", "image-alt", "image-width", "image-height",
    "favicon", "site-url", "site-path", "repo-url", "repo-branch", "repo-subdir", "repo-actions",
    "repo-link-target", "repo-link-rel", "issue-url", "search", "navbar", "sidebar",
    "page-navigation", "bread-crumbs", "back-to-top-navigation", "page-footer", "body-header",
    "body-footer", "margin-header", "margin-footer", "reader-mode", "downloads", "tools",
    "sharing", "open-graph", "twitter-card", "google-analytics", "plausible-analytics",
    "cookie-consent", "announcement", "comments", "other-links", "code-links", "language",
)  # fmt: skip


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
        favicon=_favicon(book, source, root),
        bibliography=_bibliography(data, source, root),
        csl=_text(data.get("csl")),
        references_chapter=_references(book, [each.source for each in chapters]),
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
            raise SourceError(
                f"the metadata file '{name}' does not exist",
                file=source.file,
                line=source.line("metadata-files", index),
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
        raise SourceError(
            f"the project's type is {kind!r}, which must be `book`",
            file=source.file,
            line=source.line("project", "type"),
        )
    check_metadata(source)
    for block, known in (("project", _PROJECT), ("book", _BOOK)):
        for key in data[block]:
            if key not in known:
                problems.add(
                    f"unknown key '{block}: {key}'",
                    file=source.file,
                    line=source.line(block, key),
                    hint=did_you_mean(key, known) or "Quarto has no such key; take it out.",
                )
    for key in data:
        hint = did_you_mean(key, _TOP) if key not in _TOP else None
        if hint:
            problems.add(f"unknown key '{key}'", file=source.file, line=source.line(key), hint=hint)


def _bibliography(data: Mapping[str, Any], source: YamlFile, root: Path) -> tuple[str, ...]:
    """Return the bibliography files, which must exist."""
    given = data.get("bibliography")
    names = [str(name) for name in (given if isinstance(given, list) else [given] if given else [])]
    for name in names:
        _require("bibliography", name, source, root, "bibliography")
    return tuple(names)


def _favicon(book: Mapping[str, Any], source: YamlFile, root: Path) -> str | None:
    """Return the picture that browsers show beside the title, which must exist."""
    name = _text(book.get("favicon"))
    if name is not None:
        _require("favicon", name, source, root, "book", "favicon")
    return name


def _require(what: str, name: str, source: YamlFile, root: Path, *path: str) -> None:
    """Refuse a name of no file; `path` leads to its line."""
    if not (root / name).is_file():
        raise SourceError(
            f"the {what} '{name}' does not exist",
            file=source.file,
            line=source.line(*path),
            hint=nearest_file(root / name, root),
        )


def _references(book: Mapping[str, Any], sources: list[str]) -> str | None:
    """Return the chapter that lists the references, named or by its usual name."""
    if book.get("references"):
        return str(book["references"])
    return next((each for each in sources if Path(each).stem == "references"), None)


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
