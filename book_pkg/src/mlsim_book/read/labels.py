"""What cross-references read as, counted from the pages' Markdown: fig-x -> Figure 1.1.

A small stand-in for a full build's label index, enough for notebooks: things
count by kind and chapter in the order they stand, sections by their headings.

The words a book puts before its numbers and on its boxes, in its language. `lang:` picks one of
the languages in `words.toml`; `language:` (a mapping, or the name of a YAML file) and
`_language.yml` change single words, by the keys that Quarto uses.
"""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.read.lines import Fences
from mlsim_book.read.yamlfile import read_yaml

WORDS: Mapping[str, str] = {
    "fig": "Figure", "tbl": "Table", "eq": "Equation", "lst": "Listing", "sec": "Section",
    "thm": "Theorem", "lem": "Lemma", "cor": "Corollary", "prp": "Proposition",
    "cnj": "Conjecture", "def": "Definition", "exm": "Example", "exr": "Exercise",
    "alg": "Algorithm", "sol": "Solution", "rem": "Remark",
    "nte": "Note", "tip": "Tip", "wrn": "Warning", "imp": "Important", "cau": "Caution",
}  # fmt: skip
_LABEL = re.compile(r"\{#((" + "|".join(WORDS) + r")-[\w-]+)")
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_DIV = re.compile(r"^\s*:{3,}\s*(\S.*)?$")
_OWN_HEADINGS = re.compile(r"callout-|panel-tabset|#(thm|lem|cor|prp|cnj|def|exm|exr|alg|sol|rem)-")


def label_texts(pages: Sequence[ExecutedPage]) -> dict[str, str]:
    """Return what a reference to each label reads as."""
    texts: dict[str, str] = {}
    for page in pages:
        texts.update(_page_texts(page.markdown, page.chapter))
    return texts


def _page_texts(markdown: str, chapter: Chapter) -> dict[str, str]:
    """Return the label texts of one page."""
    prefix = chapter_number(chapter)
    texts: dict[str, str] = {}
    if chapter.label:
        texts[chapter.label] = chapter_name(chapter)
    counts: Counter[str] = Counter()
    sections = [0] * 7
    fences, divs = Fences(), list[bool]()
    for line in markdown.splitlines():
        if fences.feed(line) != "text":
            continue
        if div := _DIV.match(line):
            divs = [*divs, bool(_OWN_HEADINGS.search(line))] if div.group(1) else divs[:-1]
        heading = _HEADING.match(line)
        if heading and not any(divs) and ".unnumbered" not in line and "{-}" not in line:
            level = len(heading.group(1))
            sections[level] += level > 1
            sections[level + 1 :] = [0] * (6 - level)
        for label, kind in _LABEL.findall(line):
            if label in texts or _add_panel(label, texts):
                continue
            if kind == "sec":
                depth = max((i for i, number in enumerate(sections) if number), default=1)
                number = ".".join([prefix, *(str(each) for each in sections[2 : depth + 1])])
            else:
                counts[kind] += 1
                number = ".".join(each for each in (prefix, str(counts[kind])) if each)
            texts[label] = f"{WORDS[kind]} {number.strip('.')}"
    return texts


def _add_panel(label: str, texts: dict[str, str]) -> bool:
    """Name a panel of a figure already counted: fig-x-1 of fig-x is "Figure 1.1 (a)"."""
    whole, _, number = label.rpartition("-")
    if not number.isdigit() or whole not in texts:
        return False
    texts[label] = f"{texts[whole]} ({chr(ord('a') + int(number) - 1)})"
    return True


def nearest_label(key: str, known: Iterable[str]) -> str | None:
    """Return the label of the same kind whose name `key` may be a slip for.

    >>> nearest_label("eq-sped", ["eq-speed", "sec-sped"])
    'eq-speed'
    >>> nearest_label("sec-capacity", ["sec-api"])
    """
    kind, _, name = key.partition("-")
    names = [each.partition("-")[2] for each in known if each.startswith(f"{kind}-")]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    return f"{kind}-{near[0]}" if near else None


def chapter_number(chapter: Chapter) -> str:
    """Return a chapter's number, a letter for an appendix, nothing if it has none.

    >>> chapter_number(Chapter("a.qmd", "a.html", "A", 2, appendix=True))
    'B'
    """
    if chapter.number is None:
        return ""
    return chr(ord("A") + chapter.number - 1) if chapter.appendix else str(chapter.number)


def chapter_name(chapter: Chapter) -> str:
    """Return what a reference to a chapter reads as."""
    number = chapter_number(chapter)
    if not number:
        return chapter.title
    return f"{'Appendix' if chapter.appendix else 'Chapter'} {number}"


_ENGLISH = "en"
_ALIASES = {"ua": "uk", "no": "nb"}
_FILES = ("_language.yml", "_language.yaml")


@functools.cache
def _languages() -> Mapping[str, Mapping[str, str]]:
    text = (Path(__file__).parent / "words.toml").read_text(encoding="utf-8")
    return {name.lower(): words for name, words in tomllib.loads(text).items()}


def _names(lang: str) -> tuple[str, str]:
    """Return the names under which a language and its variety of a country are listed."""
    name, dash, rest = lang.replace("_", "-").lower().partition("-")
    name = _ALIASES.get(name, name)
    return name, name + dash + rest


def known_language(lang: str) -> bool:
    """Say whether there are words for a language.

    >>> known_language("de-CH"), known_language("xx")
    (True, False)
    """
    return not _languages().keys().isdisjoint(_names(lang))


def is_english(lang: str) -> bool:
    """Say whether a language is English, or has no words and gets the English ones."""
    return _names(lang)[0] == _ENGLISH or not known_language(lang)


def words_of(lang: str, own: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the words of a language by Quarto's keys, changed by a book's own.

    What a language lacks is English.

    >>> words = words_of("de", {"crossref-fig-title": "Abb."})
    >>> words["crossref-fig-title"], words["crossref-tbl-title"]
    ('Abb.', 'Tabelle')
    """
    words = dict(_languages()[_ENGLISH])
    for name in _names(lang):
        words.update(_languages().get(name, {}))
    words.update(
        {key: str(text) for key, text in (own or {}).items() if not isinstance(text, dict)}
    )
    nested = (own or {}).get(lang)
    return {**words, **nested} if isinstance(nested, dict) else words


def own_words(metadata: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return the words that a book gives itself: `_language.yml`, then `language:`."""
    given = metadata.get("language")
    names = [*_FILES, *([given] if isinstance(given, str) else [])]
    words: dict[str, Any] = {}
    for name in names:
        if (root / name).is_file():
            data = read_yaml(root / name, name=name).data
            words.update(data if isinstance(data, dict) else {})
    return {**words, **(given if isinstance(given, dict) else {})}


def kind_words(words: Mapping[str, str]) -> dict[str, str]:
    """Return the word for each kind of label: fig -> Figure.

    >>> kind_words(words_of("fr"))["exr"], kind_words(words_of("fr"))["sol"]
    ('Exercice', 'Solution')
    """
    special = {
        "sec": "crossref-sec-prefix", "eq": "crossref-eq-prefix",
        "sol": "environment-solution-title",
        "rem": "environment-remark-title", "nte": "callout-note-title", "tip": "callout-tip-title",
        "wrn": "callout-warning-title", "imp": "callout-important-title",
        "cau": "callout-caution-title",
    }  # fmt: skip
    return {
        kind: words.get(special.get(kind, f"crossref-{kind}-title"), english)
        for kind, english in WORDS.items()
    }


def appendices_title(project: Project) -> str:
    """Return what the part of the appendices is called."""
    words = words_of(project.lang, own_words(project.metadata, project.root))
    return words["section-title-appendices"]
