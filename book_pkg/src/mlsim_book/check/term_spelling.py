"""Find terms of the glossary that a page spells otherwise than the glossary does.

"relu", "allreduce" and "optimiser" are reported where the glossary says "ReLU", "all-reduce"
and "optimizer". It would rather miss one than report what is right: a capital at the
start, a plural and "memory-bandwidth limit" pass, and so does what may be a name of
something else: "Memory Bandwidth", and capitals only for a term of small letters. Looked
at is running text, as for hints: no headings, code, quotes, tables or links.

Where a term looks like an everyday word (ZeRO, MAC), `_quarto.yml` lists the words that
are not meant: `mlsim-book: {not-terms: [zero, Mac]}`.
"""

from __future__ import annotations

import html as htmllib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from mlsim_book.errors import Problems, SourceError
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.places import Reporter
from mlsim_book.read.settings import book_settings
from mlsim_book.render.glossary import FilledPage, glossary_source, read_entries
from mlsim_book.render.html_tree import parse
from mlsim_book.render.terms import running_text

_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_MAIN = re.compile(r"<main\b.*?</main>", re.DOTALL)
_BRITISH = re.compile(r"(?<=[a-z]{2})is(?=(?:e|ed|er|ers|es|ing|ation|ations)\b)")
_QUOTE = re.compile(r"“[^“”]*”|\"[^\"\n]*\"")
_SHORTEST = 3  # letters: what is shorter is another word too easily

Misspelled = tuple[str, str, str, tuple[str, ...]]  # page, message, hint, patterns of its place


class Speller:
    """How a glossary spells its terms.

    >>> speller = Speller(["all-reduce", "batch size", "FLOPs"])
    >>> list(speller.find("An allreduce for a batch Size; all-reduces, batch-size sweep, flops"))
    [('allreduce', 'all-reduce'), ('batch Size', 'batch size'), ('flops', 'FLOPs')]
    """

    def __init__(self, spellings: Sequence[str], words: Sequence[str] = ()) -> None:
        self._words = frozenset(words)  # that are no terms
        self._known: dict[str, list[str]] = {}
        for each in spellings:
            if len(_bare(each)) >= _SHORTEST:
                self._known.setdefault(_bare(each), []).append(each)
        self._longest = max((len(each.split()) for each in spellings), default=0)

    def find(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield what a text spells otherwise, and how the glossary spells it."""
        words = list(_WORD.finditer(text))
        at = 0
        while at < len(words):
            taken = 1
            for count in range(min(self._longest, len(words) - at), 0, -1):
                start, end = words[at].start(), words[at + count - 1].end()
                if not _is_one(text, words[at : at + count]):
                    continue
                written = text[start:end]
                if known := self._spellings(written):
                    taken = count
                    fair = written in self._words or any(_same(written, each) for each in known)
                    if not fair:
                        yield " ".join(written.split()), known[0]
                    break
            at += taken

    def _spellings(self, written: str) -> list[str]:
        bare = _bare(written)
        return self._known.get(bare) or self._known.get(bare.removesuffix("s")) or []


def _bare(text: str) -> str:
    """Return a spelling without case, spaces and hyphens, and with z for the British s."""
    return re.sub(r"[\s-]+", "", _BRITISH.sub("iz", text.lower()))


def _is_one(text: str, words: Sequence[re.Match[str]]) -> bool:
    """Say whether only spaces stand between words, and they aren't part of something else."""
    pairs = itertools.pairwise(words)
    start, end = words[0].start(), words[-1].end()
    before, after = text[max(start - 1, 0) : start], text[end : end + 2]
    return (
        all(text[a.end() : b.start()].isspace() for a, b in pairs)
        and before not in {"_", "/", ".", "@", "#", "&", "\\", "$"}
        and not re.match(r"[_/]|[.@]\w", after)
    )


def _same(written: str, term: str) -> bool:
    """Say whether a text is a fair way to write a term, a plural among them."""
    ours, theirs = re.split(r"[\s-]+", written), re.split(r"[\s-]+", term)
    if len(ours) != len(theirs):  # "through put" may be two words of a sentence
        return len(ours) > len(theirs) and "-" not in written
    if written.isupper() and term.islower():
        return True
    if len(ours) > 1 and all(each[:1].isupper() for each in ours) and term.islower():
        return _bare(written).removesuffix("s") == _bare(term).removesuffix("s")
    plural = ours[-1] in {f"{theirs[-1]}s", theirs[-1][:1].swapcase() + f"{theirs[-1][1:]}s"}
    if plural:
        ours[-1] = ours[-1][:-1]
    first = ours[0][:1].lower() == theirs[0][:1].lower() and ours[0][1:] == theirs[0][1:]
    return first and ours[1:] == theirs[1:]


def find_misspelled(
    project: Project, html: Mapping[str, str], pages: Mapping[str, ExecutedPage]
) -> Iterator[Misspelled]:
    """Yield the terms that pages of a built site spell otherwise, each once a page."""
    speller = _read_speller(project, html, pages)
    if speller is None:
        return
    for name, page in pages.items():
        if name not in html or book_settings(page.metadata).get("terms", True) is False:
            continue
        for written, term in dict.fromkeys(speller.find(_text(html[name]))):
            pattern = r"\s+".join(map(re.escape, written.split()))
            message = f"'{written}' is a term of the glossary, which spells it '{term}'"
            hint = f"Write '{term}', or give its entry the other spelling: also=\"{written}\"."
            yield name, message, hint, (rf"(?<![\w-]){pattern}(?![\w-])", re.escape(written))


def _read_speller(
    project: Project, html: Mapping[str, str], pages: Mapping[str, ExecutedPage]
) -> Speller | None:
    source = glossary_source(project)
    home = next((href for href, page in pages.items() if page.chapter.source == source), None)
    if home is None or home not in html:
        return None
    unused = Reporter(Problems(), project.root)  # the build reports faults of the entries
    entries = read_entries(FilledPage(pages[home], "", html[home]), unused)
    spellings = [spelling for entry in entries for spelling in entry.spellings]
    return Speller(spellings, _not_terms(project))


def _not_terms(project: Project) -> list[str]:
    given = book_settings(project.metadata).get("not-terms", [])
    if isinstance(given, list) and all(isinstance(each, str) for each in given):
        return given
    raise SourceError(
        f"`mlsim-book: not-terms:` is {given!r}, which must be a list of words",
        file="_quarto.yml",
        hint="Write [word, other]: words that look like a term of the glossary and are none.",
    )


def _text(html: str) -> str:
    """Return the running text of a page, one piece a paragraph break apart from the next."""
    main = _MAIN.search(html)
    body = main.group() if main else html
    pieces = [htmllib.unescape(body[a:b]) for a, b in running_text(parse(body), prose=False)]
    return _QUOTE.sub(" \u2029 ", " \u2029 ".join(pieces))
