"""The words a book puts before its numbers and on its boxes, in its language.

`lang:` picks one of the languages in `words.toml`; `language:` (a mapping, or the name of a YAML
file) and `_language.yml` change single words, by the keys that Quarto uses.
"""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mlsim_book.model import Chapter, Project
from mlsim_book.read.yamlfile import read_yaml

WORDS: Mapping[str, str] = {
    "fig": "Figure", "tbl": "Table", "eq": "Equation", "lst": "Listing", "sec": "Section",
    "thm": "Theorem", "lem": "Lemma", "cor": "Corollary", "prp": "Proposition",
    "cnj": "Conjecture", "def": "Definition", "exm": "Example", "exr": "Exercise",
    "alg": "Algorithm", "sol": "Solution", "rem": "Remark",
    "nte": "Note", "tip": "Tip", "wrn": "Warning", "imp": "Important", "cau": "Caution",
}  # fmt: skip


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
