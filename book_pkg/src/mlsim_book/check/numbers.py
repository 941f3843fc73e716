"""Check a book's numbers: chapters, captions, front matter, and exercises beside chapters.

The rules are in `numbers`; here is where texts come from, and how findings are reported.
Nothing is run: an inline expression counts as computed because it is one.

Numerals with a unit and multiples in prose: which are bare, cited, or given. A result stands in
the text in one of two ways: computed by an inline expression, or cited in the same sentence. What
the author chose or defined is marked as given,

    a batch of [64 images]{.given kind="example"}

where `kind` says what it is; "result" is no such kind. `_quarto.yml` adds to the units, replaces
the kinds, and lists names that hold a numeral with a unit:

    mlsim-book:
      numbers:
        units: [cups, J/K]
        given-kinds: [example, definition]
        names: ["Kettle 2 kW"]

`numbers: false` switches the check off for a book. A numeral without a unit is free, and so is the
name of a kind ("8-bit", "a 7-day week").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mlsim_book.check.prose import COMPUTED, NO_PROSE, Passage, Prose, passages, table_cells
from mlsim_book.errors import Problems, SourceError
from mlsim_book.exercises.files import exercise_files
from mlsim_book.model import Project
from mlsim_book.read.lines import SourceLine, read_lines, split_lines
from mlsim_book.read.qmd import Cell, Markdown, split_front_matter
from mlsim_book.read.yamlfile import YamlFile, book_settings, did_you_mean, read_yaml
from mlsim_book.run.inline import find_inline
from mlsim_book.run.pages import ParsedPage
from mlsim_exercises.data import read_texts

_UNITS = """
% ‰ percent s ms µs μs us ns ps min h
seconds milliseconds microseconds nanoseconds minute minutes hour hours day days week weeks
B kB KB MB GB TB PB EB KiB MiB GiB TiB PiB bit bits byte bytes
kilobytes megabytes gigabytes terabytes
W mW kW MW GW Wh kWh MWh GWh J kJ MJ watt watts joules Hz kHz MHz GHz kg km °C
USD EUR dollars euros $ € £
"""
UNITS = tuple(_UNITS.split())
KINDS = ("assumption", "convention", "definition", "example", "requirement")
_CURRENCIES = r"[$€£]|USD|EUR"
_UP_TO_TWENTY = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    "|sixteen|seventeen|eighteen|nineteen|twenty"
)
_GAPS = ",\u00a0\u2009\u202f"  # between groups of three digits
_NUMBER = (
    rf"(?:(?:\d{{1,3}}(?:[{_GAPS}]\d{{3}})+|\d+)(?:\.\d+)?|\.\d+)(?:/\d+)?"
    r"(?:[eE][-+−]?\d+)?(?:\s?[×·]\s?10(?:\^[-−]?\d+\^|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+))?(?:\^[-−]?\d+\^)?"
)
_RANGE = rf"{_NUMBER}(?:\s*(?:[-–—]{{1,3}}|\bto\b|±)\s*{_NUMBER})?"
_APART = r"\s*"  # markup between a numeral and its unit is blanked out
_STARTS = rf"(?<![\w{COMPUTED}])(?<![\w{COMPUTED}][.,/:×‑-])"
_PRODUCT = rf"(?!\s*[\d{COMPUTED}{NO_PROSE}])"  # 224 × 224 is a product, no multiple
_DECADE = re.compile(r"(?:1[0-9]|20)\d0s|[01]s")
_NAME_OF_A_KIND = re.compile(r"[-‑](?!times|fold)[a-z]{3,}$")


@dataclass(frozen=True)
class Rules:
    """What counts as a unit, a name, and a kind of given number in a book."""

    units: tuple[str, ...] = UNITS
    kinds: tuple[str, ...] = KINDS
    names: tuple[str, ...] = ()

    @cached_property
    def unit(self) -> str:
        """A pattern for any of the units, the longest first."""
        ordered = sorted(set(self.units), key=len, reverse=True)
        return "|".join(
            r"\s+".join(map(re.escape, each.split())) + (r"(?!\w)" if each[-1].isalnum() else "")
            for each in ordered
        )

    @cached_property
    def quantity(self) -> re.Pattern[str]:
        """A pattern for a numeral with a unit, and for a multiple."""
        multiple = rf"×{_PRODUCT}|x(?!\w){_PRODUCT}|times\b|[-‑ ]?fold\b|per\s+cent\b"
        return re.compile(
            rf"{_STARTS}{_RANGE}(?:{_APART}|[-‑])(?:{multiple}|{self.unit})"
            rf"|(?<![\w$€£])(?:{_CURRENCIES})\s?{_NUMBER}"
            rf"|(?<![\d{COMPUTED}{NO_PROSE}]\s)(?<![\w{COMPUTED}{NO_PROSE})\]])×{_NUMBER}"
            rf"|\b(?i:{_UP_TO_TWENTY})[-\s]\s*(?:times|fold)\b"
            rf"|\b[Ff]actor\s+of\s+(?:about\s+)?{_NUMBER}"
        )

    @cached_property
    def name(self) -> re.Pattern[str] | None:
        """A pattern for the names that hold a numeral with a unit."""
        ordered = sorted(self.names, key=len, reverse=True)
        words = "|".join(r"\s+".join(map(re.escape, each.split())) for each in ordered)
        return re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None

    @cached_property
    def heading_unit(self) -> re.Pattern[str]:
        """A pattern for a column's heading that gives the unit of what stands below it."""
        return re.compile(rf"(?:[(\[,]|\bin)\s*({self.unit})\S*\s*$|^({self.unit})(?:/\w+)?$")

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where numerals with a unit and multiples stand in a text.

        >>> text = "In 8-bit numbers 3x3 took 0.5 ms, ten times as long."
        >>> [text[a:b] for a, b in Rules().find(text)]
        ['0.5 ms', 'ten times']
        """
        if self.name:
            text = self.name.sub(lambda match: NO_PROSE * len(match.group()), text)
        for match in self.quantity.finditer(text):
            if not (_DECADE.fullmatch(match.group()) or _NAME_OF_A_KIND.search(match.group())):
                yield match.span()


def read_rules(metadata: Mapping[str, Any]) -> Rules | None:
    """Return a book's rules, None if it switches the check off.

    Raises
    ------
    SourceError
        A setting under `mlsim-book: numbers:` is unknown or no list of texts.
    """
    given = book_settings(metadata).get("numbers", {})
    if given is False:
        return None
    if not isinstance(given, Mapping):
        raise SourceError(
            f"`mlsim-book: numbers:` is {given!r}, which must hold `units`, `given-kinds` or"
            " `names`, or be false",
            file="_quarto.yml",
        )
    known = ("units", "given-kinds", "names")
    for name, value in given.items():
        if name not in known:
            raise SourceError(
                f"unknown key 'mlsim-book: numbers: {name}'", file="_quarto.yml",
                hint=did_you_mean(str(name), known) or f"Known are: {', '.join(known)}.",
            )  # fmt: skip
        if not isinstance(value, list) or not all(isinstance(i, str) and i.strip() for i in value):
            raise SourceError(
                f"`mlsim-book: numbers: {name}:` is {value!r}, which must be a list of texts",
                file="_quarto.yml",
            )
    kinds = tuple(given.get("given-kinds", KINDS))
    if "result" in kinds:
        raise SourceError(
            "`given-kinds` may not hold 'result': a result is computed or cited",
            file="_quarto.yml",
        )
    return Rules((*UNITS, *given.get("units", ())), kinds, tuple(given.get("names", ())))


@dataclass
class Counts:
    """How the numbers of a page come to be there."""

    computed: int = 0
    cited: int = 0
    given: int = 0
    bare: int = 0

    def text(self) -> str:
        """Return the counts as a line of text."""
        return f"{self.computed} computed, {self.cited} cited, {self.given} given, {self.bare} bare"


@dataclass
class Check:
    """The check of one file by a book's rules."""

    rules: Rules
    problems: Problems
    counts: Counts = field(default_factory=Counts)

    def passage(self, passage: Passage, *, cited: bool = False, option: str = "") -> None:
        """Judge a passage; `cited` says that a citation covers all of it."""
        prose = Prose(passage.source)
        cited = cited or passage.covered
        for each in prose.given:
            if each.kind in self.rules.kinds:
                self.counts.given += 1
            else:
                self.counts.bare += 1
                text = prose.source[each.start + 1 : each.end]
                self._tell(passage, each.start, text, option, each.kind or "")
        # in a row, a source may stand in a cell of its own
        whole = [(0, len(prose.text))]
        for start, end in whole if passage.kind == "row" else prose.sentences():
            sentence_cited = cited or any(start <= at < end for at in prose.citations)
            for a, b in self._quantities(prose, passage, start, end):
                if any(each.start <= a < each.end for each in prose.given):
                    continue
                # an attribute can't cite: the caption beside it may
                beside = any(s <= a < e for s, e in prose.attributes) and bool(prose.citations)
                if sentence_cited or beside:
                    self.counts.cited += 1
                    continue
                self.counts.bare += 1
                self._tell(passage, a, passage.source[a:b], option)

    def _quantities(
        self, prose: Prose, passage: Passage, start: int, end: int
    ) -> Iterator[tuple[int, int]]:
        if passage.kind != "row":
            for a, b in self.rules.find(prose.text[start:end]):
                yield start + a, start + b
            return
        for cell in table_cells(prose, passage.headings):
            text = prose.text[cell.start : cell.end]
            found = list(self.rules.find(text))
            bare = re.fullmatch(rf"\s*[~≈<>≤≥±+−-]?\s*({_RANGE})\s*", text)
            if bare and not cell.given and self.rules.heading_unit.search(cell.heading):
                found = [bare.span(1)]
            for a, b in found:
                yield cell.start + a, cell.start + b

    def page(self, project: Project, page: ParsedPage) -> None:
        """Judge a chapter: its front matter, its Markdown, the captions of its cells."""
        source = page.chapter.source
        front, _ = split_front_matter(read_lines(project.root / source, name=source), file=source)
        self.metadata(front)
        in_list = False
        for block in page.document.blocks:
            if isinstance(block, Markdown):
                self.counts.computed += len(find_inline(block))
                for passage in passages(block.lines, in_list=in_list):
                    self.passage(passage)
            else:
                self._captions(block)
                in_list = bool(block.indent)

    def metadata(self, front: YamlFile, *path: str) -> None:
        """Judge the texts of a YAML block that a page shows."""
        data: Any = front.data
        for key in path:
            data = data.get(key) if isinstance(data, Mapping) else None
        for key in _FRONT:
            text = data.get(key) if isinstance(data, Mapping) else None
            if isinstance(text, str):
                line = SourceLine("", front.file, front.line(*path, key) or 1)
                self._text(text, line)

    def _captions(self, cell: Cell) -> None:
        """Judge a cell's captions; a source that one of them cites covers all."""
        texts = [
            (name, str(text))
            for name in _CAPTIONS
            if (given := cell.options.get(name)) is not None
            for text in (given if isinstance(given, list) else [given])
        ]
        cited = any(Prose(text).citations for name, text in texts if not name.endswith("alt"))
        for name, text in texts:
            place = SourceLine("", cell.file, cell.option_line(name))
            self._text(text, place, cited=cited, option=name)

    def _text(self, text: str, place: SourceLine, *, cited: bool = False, option: str = "") -> None:
        """Judge a text that stands, as far as is known, on one line."""
        lines = [
            SourceLine(each.text, place.file, place.line) for each in split_lines(text, file="")
        ]
        for passage in passages(lines):
            self.passage(passage, cited=cited, option=option)

    def exercises(self, path: Path, name: str) -> None:
        """Judge the texts of an exercise file."""
        raw = path.read_text(encoding="utf-8").splitlines()
        for text in read_texts(path):
            shown = text.text
            if text.computed:
                shown, count = blank_fields(shown)
                self.counts.computed += count
            first = text.line + (1 if text.text.count("\n") else 0)
            lines = [
                SourceLine(each.text, name, _find_line(raw, written.text, text.line, first + index))
                for index, (each, written) in enumerate(
                    zip(
                        split_lines(shown, file=name),
                        split_lines(text.text, file=name),
                        strict=True,
                    )
                )
            ]
            for passage in passages(lines):
                self.passage(passage)

    def _tell(
        self, passage: Passage, start: int, text: str, option: str, kind: str | None = None
    ) -> None:
        """Note a number that may not stand as it does; `kind` is the wrong one of a given one."""
        place, text = passage.line(start), " ".join(text.split())
        kinds = ", ".join(self.rules.kinds)
        mark = f'[{text}]{{.given kind="{self.rules.kinds[0] if self.rules.kinds else "..."}"}}'
        message = f"bare number '{text}'{f' in {option}' if option else ''}"
        hint = (
            "Compute it inline, `{python} ...`; or cite its source in the same sentence, [@key];"
            f" or, if it is no result, mark it as given: {mark} (kinds: {kinds})."
        )
        if kind == "result":
            message = f"'{text}' is marked as given, of kind 'result': a result can't be given"
            hint = "Compute it inline, `{python} ...`, or cite its source in its sentence, [@key]."
        elif kind is not None:
            what = f"kind '{kind}', which is none" if kind else "no kind"
            message = f"'{text}' is marked as given with {what}"
            hint = f'Write {{.given kind="..."}} with one of: {kinds}.'
        elif option.endswith("alt"):
            hint = "Say it without the number, or cite its source in the caption, [@key]."
        self.problems.add(message, file=place.file, line=place.line, hint=hint)


_CAPTIONS = ("fig-cap", "fig-subcap", "tbl-cap", "tbl-subcap", "lst-cap", "fig-alt", "fig-scap")
_FRONT = ("title", "subtitle", "description", "abstract")


def check_numbers(
    project: Project, pages: Iterable[ParsedPage], problems: Problems
) -> dict[str, Counts]:
    """Note every bare number of a book; return the counts of each page and exercise file."""
    rules = read_rules(project.metadata)
    if rules is None:
        return {}
    counts: dict[str, Counts] = {}
    pages = list(pages)
    for page in pages:
        check = Check(rules, problems)
        check.page(project, page)
        counts[page.chapter.source] = check.counts
    for path in exercise_files(project, [page.chapter.source for page in pages]):
        name = path.relative_to(project.root).as_posix()
        check = Check(rules, problems)
        check.exercises(path, name)
        counts[name] = check.counts
    check = Check(rules, problems)
    check.metadata(read_yaml(project.root / "_quarto.yml", name="_quarto.yml"), "book")
    if check.counts != Counts():
        counts["_quarto.yml"] = check.counts
    return counts


def blank_fields(text: str) -> tuple[str, int]:
    """Blank out the `{...}` fields of a text; return the text and how many there were.

    Double braces, which stand for one each, become one brace and a space.

    >>> blank_fields("{x:.0f} s of {{a}}")[0].replace(COMPUTED, "#")
    '####### s of { a }'
    """
    pieces: list[str] = []
    at = count = 0
    while at < len(text):
        pair = text[at : at + 2]
        if pair in {"{{", "}}"}:
            pieces.append("{ " if pair == "{{" else " }")
            at += 2
        elif text[at] == "{":
            end = _field_end(text, at)
            pieces.append("".join("\n" if char == "\n" else COMPUTED for char in text[at:end]))
            count += 1
            at = end
        else:
            pieces.append(text[at])
            at += 1
    return "".join(pieces), count


def _field_end(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def _find_line(raw: Sequence[str], text: str, key: int, guess: int) -> int:
    """Return the line of a TOML file on which a line of one of its texts stands.

    A text may begin on the line of its key or below it, so the line is looked for.
    """
    order: Iterator[int] = iter((guess, *range(key, min(len(raw), key + 200) + 1)))
    wanted = text.strip()
    return next((n for n in order if wanted and n <= len(raw) and wanted in raw[n - 1]), guess)
