"""Check what the sources of a book say without running them: labels, references, citations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from mlsim_book.check.bibliography import Entries
from mlsim_book.check.prose import Prose
from mlsim_book.errors import Problems
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.labels import WORDS, nearest_label
from mlsim_book.read.lines import Fences
from mlsim_book.read.places import sources_of
from mlsim_book.run.pages import ParsedPage

_LABEL = re.compile(
    r"\{[^}]*#((?:" + "|".join(WORDS) + r")-[\w-]+)|^#\|\s*(?:lst-)?label:\s*[\"']?([\w-]+)"
)
_REFERENCE = re.compile(r"(?<![\w.\\`@])@((?:" + "|".join(WORDS) + r")-[\w-]*\w)")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_FRONT = re.compile(r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"-?@(?:\{([^}\n]+)\}|(\w(?:[\w:.#$%&+?~/-]*\w)?))")
_CONDITIONAL = re.compile(r"\.content-(?:visible|hidden)\b")


def check_sources(
    project: Project, parsed: Sequence[ParsedPage], problems: Problems
) -> dict[str, ExecutedPage]:
    """Check references against labels, and citations against the bibliography."""
    pages = {
        each.chapter.href: ExecutedPage(each.chapter, "", each.metadata, {}, each.document.source)
        for each in parsed
    }
    labels: set[str] = {each.label for each in project.chapters if each.label}
    labels.update(_check_labels(project, pages.values(), problems))
    lost: dict[str, list[tuple[str, int]]] = {}
    for page in pages.values():
        for name, text in sources_of(page, project.root):
            for number, key in _references(text):
                if key not in labels and not _is_part(key, labels):
                    lost.setdefault(key, []).append((name, number))
    for key, [(name, number), *more] in lost.items():
        near = nearest_label(key, labels)
        otherwise = " If it was taken out, reword what leads there."
        others = ", ".join(f"{name}:{number}" for name, number in dict.fromkeys(more))
        problems.add(
            f"Unable to resolve crossref @{key}", file=name, line=number,
            hint="No source gives this label."
            + (f" Did you mean @{near}?" if near else otherwise)
            + (f" It stands at {others}, too." if others else ""),
        )  # fmt: skip
    return pages


def _check_labels(project: Project, pages: Iterable[ExecutedPage], problems: Problems) -> set[str]:
    """Return the labels that sources give; note those that two places give."""
    given: dict[str, tuple[str, int]] = {}
    for page in pages:
        for name, text in sources_of(page, project.root):
            # of the versions of a thing for several formats, each has its label
            versions = bool(_CONDITIONAL.search(text))
            for number, label in _labels(text):
                first = given.setdefault(label, (name, number))
                if first != (name, number) and not versions and label.split("-")[0] in WORDS:
                    problems.add(
                        f"the label '{label}' is used twice, first at {first[0]}:{first[1]}",
                        file=name, line=number,
                        hint="Give one of them another label; references lead to the last.",
                    )  # fmt: skip
    return set(given)


def _labels(text: str) -> Iterator[tuple[int, str]]:
    """Yield the labels that a source gives, with their lines; not those of shown code."""
    fences = Fences()
    for number, line in enumerate(text.splitlines(), start=1):
        kind = fences.feed(line)
        if kind in {"text", "open"} or (kind == "code" and fences.cell is not None):
            for pair in _LABEL.findall(line):
                yield number, pair[0] or pair[1]


def check_citations(
    project: Project, pages: Iterable[ExecutedPage], entries: Entries, problems: Problems
) -> None:
    """Check the keys cited in prose against the bibliography."""
    files = ", ".join(project.bibliography) or "a file under `bibliography:` in _quarto.yml"
    if entries.unread:
        return  # a format that only pandoc reads: the build reports it
    for page in pages:
        if page.metadata.get("bibliography"):
            continue
        for name, text in sources_of(page, project.root):
            for number, key in cited_keys(text):
                if key not in entries.places:
                    near = difflib.get_close_matches(key, entries.places, n=1, cutoff=0.6)
                    problems.add(
                        f"citation @{key} not found in the bibliography", file=name, line=number,
                        hint=f"Did you mean @{near[0]}?" if near else f"Add it to {files}.",
                    )  # fmt: skip


def cited_keys(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield the keys that the prose of a source cites, with their lines.

    >>> list(cited_keys("# A\n\nAs in [see @ada1843, p. 3; -@hill], @fig-x, `@no` or a@b.org."))
    [(3, 'ada1843'), (3, 'hill')]
    """
    fences = Fences()
    front = _FRONT.match(text)
    skipped = text.count("\n", 0, front.end()) + 1 if front else 0
    lines = [
        line if number > skipped and fences.feed(line) == "text" else ""
        for number, line in enumerate(text.splitlines(), start=1)
    ]
    prose = Prose("\n".join(lines))
    for start in prose.citations:
        key = _KEY.match(prose.source, start)
        if key is not None:
            yield prose.source.count("\n", 0, start) + 1, key[1] or key[2]


def _is_part(key: str, labels: set[str]) -> bool:
    """Say whether a label is a part of a figure: fig-x-2 of fig-x."""
    whole, _, number = key.rpartition("-")
    return number.isdigit() and whole in labels


def _references(text: str) -> Iterable[tuple[int, str]]:
    """Yield the references in the prose of a source, with their lines."""
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        mark = _FENCE.match(line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence or line.lstrip().startswith("#| "):
            prose = re.sub(r"(`+).*?\1", "", line)
            for key in _REFERENCE.findall(prose):
                yield number, key[0].lower() + key[1:]
