"""Numerals with a unit and multiples in prose: which are bare, cited, or given.

A result stands in the text in one of two ways: computed by an inline expression, or
cited in the same sentence. What the author chose or defined is marked as given,

    a batch of [64 images]{.given kind="example"}

where `kind` says what it is; "result" is no such kind. `_quarto.yml` adds to the
units, replaces the kinds, and lists names that hold a numeral with a unit:

    mlsim-book:
      numbers:
        units: [cups, J/K]
        given-kinds: [example, definition]
        names: ["Kettle 2 kW"]

`numbers: false` switches the check off for a book. A numeral without a unit is free,
and so is the name of a kind ("8-bit", "a 7-day week").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlsim_book.check.passages import Passage
from mlsim_book.check.prose import COMPUTED, NO_PROSE, Prose, table_cells
from mlsim_book.errors import SourceError
from mlsim_book.read.schema import did_you_mean
from mlsim_book.read.settings import book_settings

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


@dataclass(frozen=True)
class Finding:
    """A number that may not stand as it does."""

    start: int  # in the source of its passage
    text: str
    wrong_kind: str | None = None  # of a given one; "" if it names none


@dataclass
class Judge:
    """Judges passages by a book's rules."""

    rules: Rules
    counts: Counts = field(default_factory=Counts)

    def judge(self, passage: Passage, *, cited: bool = False) -> list[Finding]:
        """Return what is wrong with a passage; `cited` says that a citation covers all of it."""
        prose = Prose(passage.source)
        cited = cited or passage.covered
        found = self._wrong_kinds(prose)
        for start, end in self._sentences(prose, passage):
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
                found.append(Finding(a, " ".join(passage.source[a:b].split())))
        return found

    def _wrong_kinds(self, prose: Prose) -> list[Finding]:
        found = []
        for each in prose.given:
            if each.kind in self.rules.kinds:
                self.counts.given += 1
            else:
                self.counts.bare += 1
                text = " ".join(prose.source[each.start + 1 : each.end].split())
                found.append(Finding(each.start, text, each.kind or ""))
        return found

    def _sentences(self, prose: Prose, passage: Passage) -> Iterator[tuple[int, int]]:
        if passage.kind == "row":  # a source may stand in a cell of its own
            yield 0, len(prose.text)
        else:
            yield from prose.sentences()

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
