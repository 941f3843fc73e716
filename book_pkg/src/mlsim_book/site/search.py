"""The search of a book: what of its pages is indexed, and the files that the site gets.

Section ids stand on `<section>`; the variant of a page that is indexed has them on
headings, and neither navigation nor displayed formulas. An element with `data-search-ignore` is
left out, folded code too, and what an exercise or a self-check folds: hints, answers, solutions.
`theme/search-index.js` answers from these files, over a server as from disk.

The index of a book's sections, cut into small scripts of which a query loads a few. Sections are
pieces of text, long ones several. For each word there stands in which pieces it is, and what
follows for each: `12Q3b` is piece 12 with weight Q, and the third piece after it with weight b.
These are cut by the alphabet. What a result shows, the pieces' titles and texts, is cut by the
order of the book. All are plain scripts, since a page that is read from disk may load nothing
else; the name of each contains the hash of its content.

A term with several spellings, or of several words, is a word of its own, `~7`, in each piece
that holds one of its spellings: "KV cache" is found as these words together, and "OOM" where
"out of memory" stands. Spellings are those of the glossary and of `search: synonyms:`. Words for
guessing what was mistyped are one more part, the commonest first.

Words are folded: case, accents and other ways to write a letter make no difference. Signs that are
part of a letter (the vowels of Devanagari) stay. Chinese, Japanese, Thai and their like are cut
into pairs of characters. `theme/search-index.js` does the same to what a reader types.
"""

from __future__ import annotations

import fnmatch
import html as htmllib
import json
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mlsim_book.caches import content_hash
from mlsim_book.errors import SourceError
from mlsim_book.model import Project
from mlsim_book.read.yamlfile import book_settings
from mlsim_book.render.glossary import plain_text, tex_text
from mlsim_book.render.postprocess import Element, Text, edited, parse
from mlsim_book.site.shared_files import FOLDER, LIBS

WORDS_PART = 12_000  # characters: of these, a query loads one or two for each of its words
TEXTS_PART = 5_000  # of these it loads up to twelve, one for each result that is shown
PASSAGE = 2_000  # characters: a longer section is cut, so that a result needs but a piece
LEVELS = string.ascii_uppercase + string.ascii_lowercase
_FULL = 3.5  # the weight that the last level stands for
_TITLE_WEIGHT, _HEADING_WEIGHT = 2.5, 1.5
_SATURATION, _LENGTH = 1.2, 0.6  # the two parameters of BM25, k1 and b
_TYPED = 4  # letters: shorter words are another word too easily
_SEEN, _COMMON = 3, 20  # pieces in which a word stands that may have been meant
# Accents and points that one may leave out: Latin, Greek, Cyrillic; Hebrew; Arabic.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]"
)
# Scripts without spaces between words: Thai and Lao, Burmese, Khmer, Japanese, Chinese.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"([{_SPACELESS}]+)|[^{_SPACELESS}]+")


Phrase = tuple[str, ...]


@dataclass(frozen=True)
class Wording:
    """What a book says of its search: how much a page's hits count, and what means the same."""

    weights: Mapping[str, float] = field(default_factory=dict)  # by page; 1 if not given
    synonyms: Sequence[Sequence[str]] = ()


def search_wording(project: Project) -> Wording:
    """Return what `_quarto.yml` says under `mlsim-book: search:`.

    Raises
    ------
    SourceError
        It is not `weights:`, numbers by pattern of a page's source, and `synonyms:`, lists.
    """
    settings = book_settings(project.metadata).get("search") or {}
    known = isinstance(settings, dict) and not settings.keys() - {"weights", "synonyms"}
    weights = settings.get("weights") or {} if known else {}
    synonyms = settings.get("synonyms") or [] if known else []
    if not (
        known and isinstance(weights, dict) and isinstance(synonyms, list)
        and all(isinstance(each, (int, float)) and each > 0 for each in weights.values())
        and all(isinstance(each, list) and len(each) > 1 for each in synonyms)
    ):  # fmt: skip
        raise SourceError(
            f"`mlsim-book: search:` is {settings!r}, which the search can't use",
            file="_quarto.yml",
            hint="Write `weights: {'math*.qmd': 0.2}` and `synonyms: [[out of memory, OOM]]`.",
        )
    return Wording(
        {
            chapter.href: next(
                (float(weights[each]) for each in weights if fnmatch.fnmatch(chapter.source, each)),
                1.0,
            )
            for chapter in project.chapters
        },
        [[str(word) for word in group] for group in synonyms],
    )


@dataclass(frozen=True)
class Section:
    """A section of a page, or what stands above the first: it has the page's title."""

    url: str
    page: str
    title: str
    text: str
    goes_on: bool = False  # whether this is a further piece of the section before
    asks: bool = False  # whether it is an exercise, which counts less than what explains


def index_files(
    sections: Iterable[Section],
    weights: Mapping[str, float] | None = None,
    terms: Sequence[Sequence[Phrase]] = (),
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the head of the index, and its parts by name.

    Parameters
    ----------
    weights
        What a hit counts, by the address of its page; 1 if not given.
    terms
        The spellings of each term.

    >>> long = [Section(name, "A", "A", "x" * size) for name, size in (("a", 7000), ("b", 2))]
    >>> heads, parts = index_files(long)
    >>> heads["pieces"], heads["goesOn"], [at for at, _ in heads["texts"]], len(parts)
    (5, [1, 2, 3], [0, 2], 4)
    """
    pieces = [piece for each in sections for piece in cut_long(each)]
    parts: dict[str, str] = {}
    heads: dict[str, Any] = {"pieces": len(pieces), "words": [], "texts": [], "pages": []}
    heads["goesOn"] = [number for number, each in enumerate(pieces) if each.goes_on]
    heads["asks"] = [number for number, each in enumerate(pieces) if each.asks]
    heads["terms"] = [";".join(map(" ".join, each)) for each in terms]
    page = None
    for number, each in enumerate(pieces):
        href = each.url.partition("#")[0]
        if href != page:
            heads["pages"].append([number, (weights or {}).get(href, 1)])
            page = href
    ordered = postings(pieces, terms)
    heads["known"] = _add(parts, "k", _json(known_words(ordered)))
    for lines in cut(ordered, WORDS_PART):
        first = lines[0].split(" ")[0]
        heads["words"].append([first, _add(parts, "w", _json("\n".join(lines)))])
    shown = (_json([each.url, each.page, each.title, each.text]) for each in pieces)
    at = 0
    for records in cut(shown, TEXTS_PART):
        heads["texts"].append([at, _add(parts, "t", f"[{','.join(records)}]")])
        at += len(records)
    return heads, parts


def cut_long(section: Section) -> Iterator[Section]:
    """Yield a section in pieces that are no longer than a passage, cut between words.

    >>> def lengths(text):
    ...     return [len(each.text) for each in cut_long(Section("a", "A", "A", text))]
    >>> lengths("one " * 700), lengths(" " + "x" * 2000 + " "), lengths("x" * 4500)
    ([1999, 799], [2000], [2000, 2000, 500])

    A space of the first half is none to cut at.

    >>> lengths("x" * 1000 + " " + "y" * 1500), lengths("x" * 999 + " " + "y" * 1500)
    ([1000, 1500], [2000, 500])
    >>> lengths("x" * 2000 + " y")
    [2000, 1]
    """
    text, goes_on = section.text.strip(), False
    while True:
        end = len(text)
        if end > PASSAGE:
            end = text.rfind(" ", PASSAGE // 2, PASSAGE + 1)
            end = PASSAGE if end < 0 else end
        yield replace(section, text=text[:end].rstrip(), goes_on=goes_on)
        text, goes_on = text[end:].lstrip(), True
        if not text:
            return


def cut(entries: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield groups of entries, so many as fit into a part but at least one.

    >>> list(cut(["ab", "c", "def", "gh", "i", "jklm"], 3))
    [['ab', 'c'], ['def'], ['gh', 'i'], ['jklm']]
    """
    group: list[str] = []
    long = 0
    for each in entries:
        if group and long + len(each) > size:
            yield group
            group, long = [], 0
        group.append(each)
        long += len(each)
    if group:
        yield group


def known_words(lines: Iterable[str]) -> list[str]:
    """Return what may have been meant by a mistyped word: words of common pieces, and the others.

    >>> known_words(["clay 0A1B2C", "kiln 0A", "pot 0A1B2C", "~0 0A1B2C"])
    ['', 'clay']
    """
    counted = [(len(re.findall("[A-Za-z]", each.partition(" ")[2])), each) for each in lines]
    counted.sort(key=lambda each: -each[0])
    found = [(count, line.partition(" ")[0]) for count, line in counted if count >= _SEEN]
    kept = [(count, each) for count, each in found if len(each) >= _TYPED and each.isalpha()]
    common = " ".join(each for count, each in kept if count >= _COMMON)
    return [common, " ".join(each for count, each in kept if count < _COMMON)]


def spelled(variants: Iterable[str], synonyms: Iterable[Sequence[str]] = ()) -> list[list[Phrase]]:
    """Return the terms whose spellings are looked up together: the glossary's, and synonyms.

    What shares a spelling is one term. A term of one word alone needs no entry.

    >>> entry = '<p><span class="term-entry" id="t" data-also="kilns; big oven">kiln</span>'
    >>> spelled([entry + '<span class="term-entry" id="u">clay</span>'], [["big oven", "BO"]])
    [[('big', 'oven'), ('bo',), ('kiln',)]]
    """
    groups = [list(each) for each in synonyms]
    for variant in variants:
        if "term-entry" in variant:
            for entry in parse(variant).all("term-entry"):
                also = re.split(r"\s*[;,]\s*", entry.attribute("data-also") or "")
                groups.append([plain_text(variant, entry), *also])
    terms: list[dict[Phrase, None]] = []
    for group in groups:
        term = {_phrase(words(each)): None for each in group if words(each)}
        for other in [each for each in terms if each.keys() & term.keys()]:
            terms.remove(other)
            term = {**other, **term}
        terms.append(term)
    return [list(each) for each in terms if len(each) > 1 or len(next(iter(each), ())) > 1]


def _phrase(found: Sequence[str]) -> Phrase:
    """Return words in the singular, as far as their endings tell.

    >>> _phrase(["batches", "intensities", "weights", "loss", "gas"])
    ('batch', 'intensity', 'weight', 'loss', 'gas')
    """
    return tuple(
        each
        if len(each) < _TYPED or each[-1] != "s" or each[-2] == "s"
        else f"{each[:-3]}y"
        if each.endswith("ies")
        else each[:-2]
        if each.endswith(("ches", "shes", "sses", "xes"))
        else each[:-1]
        for each in found
    )


def _terms_in(found: Sequence[str], begins: Mapping[str, list[tuple[Phrase, str]]]) -> list[str]:
    """Return the terms in a run of words, each as often as it stands there."""
    singular = _phrase(found)
    return [
        next(
            (term for phrase, term in begins[word] if singular[at : at + len(phrase)] == phrase), ""
        )
        for at, word in enumerate(singular)
        if word in begins
    ]


def postings(pieces: Sequence[Section], terms: Sequence[Sequence[Phrase]] = ()) -> list[str]:
    """Return a line for each word, in the order in which a browser compares words.

    >>> postings([Section("a", "Tea", "Tea", "Hot"), Section("a#b", "Tea", "Hot tea", "")])
    ['hot 0F1R', 'tea 0l1R']
    >>> postings([Section("a", "A", "B", "Hot teas")], [[("hot", "tea")]])[-1]
    '~0 0G'
    """
    begins: dict[str, list[tuple[Phrase, str]]] = {}
    for number, spellings in enumerate(terms):
        for phrase in spellings:
            begins.setdefault(phrase[0], []).append((phrase, f"~{number}"))
    for each in begins.values():
        each.sort(key=lambda one: -len(one[0]))

    def told(text: str) -> list[str]:
        found = words(text)
        return found + [each for each in _terms_in(found, begins) if each]

    texts = [Counter(told(each.text)) for each in pieces]
    lengths = [counts.total() for counts in texts]
    mean = sum(lengths) / max(len(lengths), 1) or 1
    lines: dict[str, list[str]] = {}
    last: dict[str, int] = {}
    for number, (piece, counts, length) in enumerate(zip(pieces, texts, lengths, strict=True)):
        title = [] if piece.goes_on else told(piece.title)
        named = (_HEADING_WEIGHT if "#" in piece.url else _TITLE_WEIGHT) * (
            0.6 + 0.4 / max(sum(each[0] != "~" for each in title), 1)
        )
        spread = _SATURATION * (1 - _LENGTH + _LENGTH * length / mean)
        for word in {*counts, *title}:
            weight = counts[word] / (counts[word] + spread) + (named if word in title else 0)
            level = LEVELS[min(int(weight / _FULL * len(LEVELS)), len(LEVELS) - 1)]
            lines.setdefault(word, []).append(f"{number - last.get(word, 0)}{level}")
            last[word] = number
    ordered = sorted(lines, key=lambda word: word.encode("utf-16-be"))
    return [f"{word} {''.join(lines[word])}" for word in ordered]


def _add(parts: dict[str, str], kind: str, data: str) -> str:
    """Add a part; return its name."""
    name = f"{kind}-{content_hash(data)[:8]}"
    parts[f"{name}.js"] = f'bookSearch.part("{name}",{data});\n'
    return name


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def fold(text: str) -> str:
    """Return a text without capitals and accents.

    >>> fold("Séance ΟΔΟΣ"), fold("ﬁt")
    ('seance οδοσ', 'fit')
    """
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).lower().replace("ς", "σ")
    return unicodedata.normalize("NFC", plain)


def words(text: str) -> list[str]:
    """Return the words of a text in order; the last character of a run without spaces, too.

    >>> words("Peak_flops: 312 TFLOP/s")
    ['peak', 'flops', '312', 'tflop', 's']
    >>> words("GPU上的模型")
    ['gpu', '上的', '的模', '模型', '型']
    """
    folded = fold(text)
    table = {ord(sign): " " for sign in set(folded) if unicodedata.category(sign)[0] not in "LMN"}
    spaced = folded.translate(table)
    if spaced.isascii():
        return spaced.split()
    return [
        word
        for chunk in spaced.split()
        for run in _RUN.finditer(chunk)
        for word in ([run[1][at : at + 2] for at in range(len(run[1]))] if run[1] else [run[0]])
    ]


SEARCH = f"{LIBS}/search"
IGNORE = "data-search-ignore"
_SECTION = re.compile(r'<section id="([^"]+)"([^>]*)>(\s*)<(h[1-6])\b')
_HEADING = re.compile(r'<h[1-6]\b[^>]*?\sid="([^"]+)"[^>]*>(.*?)</h[1-6]>', re.DOTALL)
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_EXERCISE = re.compile(  # what begins one, which is a section of its own in the index
    r'<div id="(exr-[^"]+)" class="theorem exercise\b[^>]*>\s*<p>'
    r'<span class="theorem-title"><strong>(.*?)</strong></span>',
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]*>")
_WITHIN = re.compile(  # tags at which no word ends
    r"</?(?:a|abbr|b|bdi|cite|code|em|i|kbd|mark|q|s|small|span|strong|sub|sup|u|var|wbr)\b[^>]*>"
)
_NOISE = re.compile(
    r'<span class="math display">.*?</span>|<button\b.*?</button>|<svg\b.*?</svg>'
    r'|<span class="(?:header-section-number|screen-reader-only)">.*?</span>',
    re.DOTALL,
)
_FORMULA = re.compile(r'<span class="math inline">(.*?)</span>', re.DOTALL)
# What waits until a reader asks for it.
_FOLDED = frozenset({"code-fold", "exercise-folds"})


def search_page(title: str, body: str) -> str:
    r"""Return the variant of a page that is indexed (formulas not yet typeset).

    >>> search_page("T", '<section id="a" class="x"><h2>A</h2></section>')
    '<title>T</title><section class="x"><h2 id="a">A</h2></section>'
    """
    body = edited(body, [(*each, " ") for each in _ignored(parse(body))])
    body = _NOISE.sub(" ", _EXERCISE.sub(r'<div><h6 id="\1">\2</h6><p>', body))
    body = _FORMULA.sub(lambda found: htmllib.escape(tex_text(htmllib.unescape(found[1]))), body)
    return f"<title>{title}</title>" + _SECTION.sub(r'<section\2>\3<\4 id="\1"', body)


def write_search(pages: Mapping[str, str], out: Path, wording: Wording | None = None) -> None:
    """Write the index of the variants (by page) into a site."""
    wording = wording or Wording()
    found = (each for href, html in pages.items() for each in sections(href, html))
    weights = {quote(href): weight for href, weight in wording.weights.items()}
    heads, parts = index_files(found, weights, spelled(pages.values(), wording.synonyms))
    engine = (FOLDER / "search-index.js").read_text(encoding="utf-8")
    data = json.dumps(heads, ensure_ascii=False, separators=(",", ":"))
    folder = out / SEARCH
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"index.js": f"{engine}bookSearch.start({data});\n", **parts}.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def sections(href: str, html: str) -> Iterator[Section]:
    """Yield the sections of a variant; what stands above the first has the page's title.

    >>> [each.url for each in sections("a b.html", '<title>A</title><h2 id="b">B</h2>Text')]
    ['a%20b.html', 'a%20b.html#b']
    """
    found = _TITLE.match(html)
    page = _text(found[1]) if found else href
    body = html[found.end() :] if found else html
    address = quote(href)
    url, title, start = address, page, 0

    def section(end: int) -> Section:
        asks = "#exr-" in url or 'class="selfcheck"' in body[start:end]
        return Section(url, page, title, _text(body[start:end]), asks=asks)

    for match in _HEADING.finditer(body):
        yield section(match.start())
        url = f"{address}#{htmllib.unescape(match[1])}"
        title, start = _text(match[2]), match.end()
    yield section(len(body))


def _text(html: str) -> str:
    """Return the text of some HTML, without line breaks.

    >>> _text("<p>A <b>b</b>, c</p><p>d")
    'A b, c d'
    """
    return " ".join(htmllib.unescape(_TAG.sub(" ", _WITHIN.sub("", html))).split())


def _ignored(element: Element) -> Iterator[tuple[int, int]]:
    """Yield where the contents are that search leaves out."""
    before: frozenset[str] = frozenset()
    for child in element.children:
        if isinstance(child, Text):
            continue
        answers = "selfcheck" in before and "callout" in child.classes
        if answers or child.classes & _FOLDED or IGNORE in child.source:
            yield child.inner, child.inner_end
        else:
            yield from _ignored(child)
        before = frozenset(child.classes)
