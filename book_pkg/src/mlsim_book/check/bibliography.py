"""The bibliography's entries: where they stand, which are there twice, which are unused.

An entry is used when a chapter cites it, when the built site links to it, or when a file
under `mlsim-book: citation-keys-in:` in `_quarto.yml` holds its key: the data of a
package, say, of which cells make citations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mlsim_book.errors import Problems, SourceError
from mlsim_book.exercises.files import exercise_files
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.includes import nearest_file
from mlsim_book.read.places import sources_of
from mlsim_book.read.settings import named_paths

_BIBTEX = re.compile(
    r"^\s*@(?!string\b|preamble\b|comment\b)\w+\s*[{(]\s*([^,\s{}]+)\s*,", re.IGNORECASE
)
_CROSSREF = re.compile(r"\b(?:crossref|xdata|related)\s*=\s*[{\"]([^}\"]+)[}\"]", re.IGNORECASE)
_ID = {
    ".json": re.compile(r"\"id\"\s*:\s*\"([^\"]+)\""),
    ".yaml": re.compile(r"^[\s-]*id:\s*[\"']?([^\"'\s]+)"),
    ".yml": re.compile(r"^[\s-]*id:\s*[\"']?([^\"'\s]+)"),
    ".bib": _BIBTEX,
    ".bibtex": _BIBTEX,
}
_TOKEN = re.compile(r"\w(?:[\w:.+/-]*\w)?")
_CITED = re.compile(r"@\{?(\w(?:[\w:.#$%&+?~/-]*\w)?|\*)")
_LINKED = re.compile(r"#ref-(.+)$")


@dataclass
class Entries:
    """The entries of a book's bibliography."""

    places: dict[str, tuple[str, int]] = field(default_factory=dict)  # by key: file and line
    inherited: set[str] = field(default_factory=set)  # keys that other entries name
    unread: list[str] = field(default_factory=list)  # files in a format that isn't read here


def read_entries(project: Project, problems: Problems) -> Entries:
    """Read where each entry stands; note keys that two entries have."""
    entries = Entries()
    for name in project.bibliography:
        pattern = _ID.get(Path(name).suffix.lower())
        if pattern is None:
            entries.unread.append(name)
            continue
        text = (project.root / name).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            for key in pattern.findall(line):
                file, first = entries.places.setdefault(key, (name, number))
                if (file, first) != (name, number):
                    problems.add(
                        f"the entry '{key}' is there twice, first at {file}:{first}",
                        file=name, line=number,
                        hint="Take one of them out, or give it another key.",
                    )  # fmt: skip
        for keys in _CROSSREF.findall(text):
            entries.inherited.update(re.split(r"\s*,\s*", keys.strip()))
    return entries


def check_unused(
    project: Project,
    pages: Iterable[ExecutedPage],
    links: Iterable[str],
    entries: Entries,
    problems: Problems,
) -> None:
    """Tell of the entries that nothing uses; `links` are those of the built site.

    They are advice: an entry that a chapter no longer cites is no fault of the book.
    """
    cited, tokens = set(entries.inherited), set[str]()
    for link in links:
        cited.update(_LINKED.findall(link))
    for text in _citing_texts(project, pages):
        cited.update(_CITED.findall(text))
    for text in _key_texts(project):
        tokens.update(_TOKEN.findall(text))
    if "*" in cited:  # nocite: @*
        return
    for key, (file, line) in entries.places.items():
        if key not in cited and key not in tokens:
            problems.advise(
                f"the entry '{key}' is cited nowhere", file=file, line=line,
                hint="Cite it or take it out; if files of data name it, list them in _quarto.yml"
                " under `mlsim-book: citation-keys-in:`.",
            )  # fmt: skip


def _citing_texts(project: Project, pages: Iterable[ExecutedPage]) -> Iterator[str]:
    """Yield the texts in which `@key` is a citation."""
    yield str(project.metadata.get("nocite") or "")
    sources = []
    for page in pages:
        sources.append(page.chapter.source)
        yield str(page.metadata.get("nocite") or "")
        for _, text in sources_of(page, project.root):
            yield text
    for path in exercise_files(project, sources):
        yield path.read_text(encoding="utf-8", errors="replace")


def _key_texts(project: Project) -> Iterator[str]:
    """Yield the texts of the files that hold bare keys, as the book's settings name them.

    Raises
    ------
    SourceError
        The setting is no list of paths, or names one that isn't there.
    """
    hint = "Write the files or folders whose text names entries: [data, tables/sources.csv]."
    given = named_paths(project.metadata, "citation-keys-in", hint)
    own = {(project.root / name).resolve() for name in project.bibliography}
    for name in given:
        path = project.root / name
        if not path.exists():
            raise SourceError(
                f"`mlsim-book: citation-keys-in:` names '{name}', which does not exist",
                file="_quarto.yml",
                hint=nearest_file(path, project.root),
            )
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc" and file.resolve() not in own:
                yield file.read_text(encoding="utf-8", errors="ignore")
