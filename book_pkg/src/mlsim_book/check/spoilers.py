"""Find answers that a reader sees before the question: of guesses, and of exercises.

A guess (`mlsim_book.exercises.guesses`) or an exercise is told by what stands above it on its page
and by all pages before it; a guess by its page's headings, too, which the contents list. Looked at
is the built site: text, headings, tables, printed output, code, data of figures, alternative texts;
besides, the search index and the notebooks. `answers` and `chosen` say what
tells an answer. What is marked as given tells none. A link to the figure that settles a guess tells
it, and so does the inline expression that settles a choice.

What may stand is exempt in `spoilers.toml`, at the book's root:

    [[exempt]]
    page = "tutorials/tea.qmd"   # the page that tells
    tells = "gss-users"          # the guess or exercise; left out, all that this page tells
    because = "This chapter will be rewritten."
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlsim_book.check.answers import Found, Words, find_told
from mlsim_book.check.built_site import BuiltSite
from mlsim_book.check.chosen import find_chosen
from mlsim_book.check.told import Page, Question, Told, read_told
from mlsim_book.errors import SourceError
from mlsim_book.exercises.guesses import bracketed
from mlsim_book.read.lines import label_patterns, place, reference_patterns, sources_of
from mlsim_book.render.notebooks import notebook_path
from mlsim_exercises.data import toml_lines

FILE = "spoilers.toml"
_INDEX, _NOTEBOOK = "the search index", "the notebook"
_LEAST = 3  # words that find a line near by


def check_spoilers(site: BuiltSite) -> None:
    """Note each answer that stands before its question, but for those that are exempt.

    Raises
    ------
    SourceError
        `spoilers.toml` is no TOML, or an exemption has no page or no reason.
    """
    exempt, used = _read_exempt(site), set[int]()
    order = [each.href for each in site.project.chapters if each.href in site.html]
    while order and ' data-answer="' not in site.html[order[-1]]:
        order.pop()  # nothing is asked from there on
    pages = {name: read_told(site.html[name], name) for name in order}
    book = _Book(site, pages, _indexed(site), Words(pages.values()))

    def note(question: Question, name: str, found: Iterator[Found]) -> None:
        source, seen = site.pages[name].chapter.source, set[str]()
        for told, at, shown, how in found:
            # what the text tells stands in the index and the notebook as well
            keys = {told.kind + shown, shown}
            if (shown if told.kind in {_INDEX, _NOTEBOOK} else told.kind + shown) in seen:
                continue
            seen |= keys
            asks = {"page": source, "tells": question.name}
            excused = [
                number for number, each in enumerate(exempt)
                if all(each.get(key, value) == value for key, value in asks.items())
            ]  # fmt: skip
            used.update(excused)
            if excused:
                continue
            file, line = _line(site, name, pages[name], told, at)
            site.problems.add(
                f"{told.kind} tells '{shown}' ({how}): the answer of the {question.what}"
                f" '{question.name}', which stands later in"
                f" {site.pages[question.page].chapter.source}",
                file=file, line=line,
                hint=f"Say it below the question or not at all; if it may stand, say why in {FILE}",
            )  # fmt: skip

    for at, name in enumerate(order):
        for question in pages[name].questions:
            for where in order[: at + 1]:
                note(question, where, _before(question, where, book))
    for number, each in enumerate(exempt):
        if number not in used:
            site.problems.advise(
                f"this exempts what {each['page']} does not tell",
                file=FILE, line=int(each["line"]), hint="Take it out.",
            )  # fmt: skip


def _read_exempt(site: BuiltSite) -> list[dict[str, str]]:
    path = site.project.root / FILE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    try:
        entries = tomllib.loads(text).get("exempt", [])
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"invalid TOML: {error}", file=FILE) from None
    lines = toml_lines(text)
    for number, each in enumerate(entries):
        line = lines.get(("exempt", number), 1)
        needed = {"page", "because"}
        if not (needed <= set(each) <= {*needed, "tells"} and each["because"]):
            raise SourceError(
                f"this exemption has {', '.join(each) or 'nothing'}", file=FILE, line=line,
                hint="It needs `page` and `because`, and may have `tells`: a guess or an exercise.",
            )  # fmt: skip
        each["line"] = str(line)
    return list(entries)


@dataclass(frozen=True)
class _Book:
    """What is looked at."""

    site: BuiltSite
    pages: Mapping[str, Page]
    index: Mapping[str, list[list[str]]]  # the pieces of the search index, by page
    words: Words


def _before(question: Question, name: str, book: _Book) -> Iterator[Found]:
    """Yield what a page tells of an answer before its question."""
    site, page, words = book.site, book.pages[name], book.words
    own, source = name == question.page, site.pages[name].source
    guess = question.what == "guess"
    above = [
        each for each in page.told
        if not own or each.start < question.start or (guess and each.kind == "a heading")
    ]  # fmt: skip

    def find(stretches: list[Told]) -> Iterator[Found]:
        for each in stretches:
            yield from find_told(question, each, page, words, own=own)
        yield from find_chosen(question, stretches, words)

    yield from find(above)
    code = _settling(question.name, source) if own and math.isnan(question.answer) else ""
    if code and (at := source.find(code, 0, source.find(f"#{question.name}"))) > 0:
        yield Told(0, "the text", source[:at]), at, code.strip("`"), "the same result"
    for start, label in page.links if own else ():
        if start < question.start and label in question.figures:
            yield Told(start, "a link", "", label=label), 0, f"@{label}", "it settles the guess"
    besides = [*_in_index(question, page, book.index.get(name, []), own=own)]
    besides += _in_notebook(question, site.project.root / _notebook(site, name)) if own else []
    judged = " ".join(each.text for each in above)
    for found in find(besides):  # what the page shows is judged where it is known what it opens to
        if not re.search(rf"(?<![\w.,]){re.escape(found[2])}(?![\d])", judged):
            yield found


def _in_index(
    question: Question, page: Page, pieces: list[list[str]], *, own: bool
) -> Iterator[Told]:
    """Yield what the search index has of a page before a question."""
    places = [
        page.html.find(f'id="{url.partition("#")[2]}"') if "#" in url else 0 for url, *_ in pieces
    ]
    for section, (_, title, text) in zip(places, pieces, strict=True):
        shown = _up_to(question, text) if own else text
        # a section is above the question if the next one begins there
        after = min((each for each in places if each > section), default=len(page.html))
        if shown is not text or not own or after <= question.start:
            yield Told(section, _INDEX, f"{title}. {shown}")


def _in_notebook(question: Question, file: Path) -> Iterator[Told]:
    """Yield the lines of a notebook before a question."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"] if file.is_file() else []
    for cell in cells:
        outputs = [
            each.get("text", each.get("data", {}).get("text/plain", ""))
            for each in cell.get("outputs", [])
        ]
        texts = ["".join(each) for each in (cell["source"], *outputs)]
        parts = [_up_to(question, each) for each in texts]
        yield from (Told(0, _NOTEBOOK, line) for line in "\n".join(parts).split("\n"))
        if parts != texts:
            return


def _settling(name: str, source: str) -> str:
    """Return the inline expression in what settles a guess: a box, or a span that ends there."""
    mark = re.search(rf"\{{[^}}\n]*\.settles[^}}]*{re.escape(name)}\b[^}}]*\}}", source)
    if mark is None:
        return ""
    box = source[: mark.start()].rstrip().endswith(":::")
    text = source[mark.end() :].partition("\n:::")[0] if box else bracketed(source[: mark.start()])
    found = re.findall(r"`\{python\} [^`]+`", text)
    return (found[0] if box else found[-1]) if found else ""


def _up_to(question: Question, text: str) -> str:
    """Return what of a text stands before a question; all of it if that is not there."""
    words = re.findall(r"\w+", question.text)[1:9]  # but for its number
    found = re.search(r"\W+".join(map(re.escape, words)), text) if words else None
    return text[: found.start()] if found else text


def _indexed(site: BuiltSite) -> dict[str, list[list[str]]]:
    """Return the pieces of the search index by page: address, title and text."""
    pieces: dict[str, list[list[str]]] = {}
    for path in sorted(site.folder.glob("site_libs/search/t-*.js")):
        data = path.read_text(encoding="utf-8").partition(",")[2].rstrip().removesuffix(");")
        for url, _, title, text in json.loads(data):
            pieces.setdefault(url.partition("#")[0], []).append([url, title, text])
    return pieces


def _line(site: BuiltSite, name: str, page: Page, told: Told, at: int) -> tuple[str, int | None]:
    """Return where in the sources a stretch comes from: by its label, its words, those before."""
    source = site.pages[name]
    if told.kind == _NOTEBOOK:
        file = _notebook(site, name)
        raw = (site.project.root / file).read_text(encoding="utf-8")
        found = raw.find(json.dumps(told.text, ensure_ascii=False)[1:-1])
        return file, raw.count("\n", 0, max(0, found)) + 1
    if told.label:
        patterns = reference_patterns if told.kind == "a link" else label_patterns
        return place(source, site.project.root, *patterns(told.label))
    shown = re.findall(r"\w+", told.text[at:])[:1]
    heads = [[each, *shown] for each in re.findall(r"\w+", told.around)]
    above = [each for each in page.told if each.start < told.start][-20:]
    for each, upto in ((told, at), *((one, len(one.text)) for one in reversed(above))):
        before, after = (re.findall(r"\w+", one) for one in (each.text[:upto], each.text[upto:]))
        tries = [before[-5:], before[-3:], after[1:5]]
        if each is told:
            written = re.search("code|printed|data|heading", told.kind) is not None
            lines = [before + after] * written
            tries = [*lines, *tries, *(heads if told.kind == "a table" else [])]
        for words in tries:
            if len(words) < (2 if each is told else _LEAST):
                continue
            pattern = r"(?<!\w)" + r"\W+".join(map(re.escape, words)) + r"(?!\w)"
            for file, text in sources_of(source, site.project.root):
                if match := re.search(pattern, text):
                    return file, text.count("\n", 0, match.end()) + 1
    return source.chapter.source, 1


def _notebook(site: BuiltSite, name: str) -> str:
    return f"notebooks/{notebook_path(site.pages[name].chapter.source)}"
