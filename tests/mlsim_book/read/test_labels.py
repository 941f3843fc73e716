"""Labels that are misspelt, and the words of a book's language."""

from __future__ import annotations

from pathlib import Path

from mlsim_book.model import Project
from mlsim_book.read.labels import (
    appendices_title,
    is_english,
    kind_words,
    known_language,
    nearest_label,
    own_words,
    words_of,
)


def test_the_nearest_label_is_of_the_same_kind() -> None:
    known = ("fig-kettle", "sec-kettles", "fig-pot")
    near = {
        "fig-ketle": "fig-kettle",
        "sec-ketle": "sec-kettles",
        "tbl-kettle": None,
        "fig-kiln": None,
    }
    assert {label: nearest_label(label, known) for label in near} == near


def test_words_of_a_language_and_of_its_country() -> None:
    """What a country's list lacks is its language's, and what that lacks is English."""
    titles = {
        lang: (words_of(lang)["crossref-fig-title"], words_of(lang)["crossref-eq-prefix"])
        for lang in ("de", "de-CH", "DE_at", "no", "xx", "en-GB")
    }
    german, english = ("Abbildung", "Gleichung"), ("Figure", "Equation")
    assert titles == {
        "de": german, "de-CH": german, "DE_at": german, "no": ("Figur", "Ligning"),
        "xx": english, "en-GB": english,
    }  # fmt: skip
    assert words_of("pt-BR") != words_of("pt") != words_of("en")
    assert [known_language(each) for each in ("de-CH", "ua", "xx")] == [True, True, False]
    assert [is_english(each) for each in ("en", "en-GB", "xx", "de")] == [True, True, True, False]
    own = {"crossref-fig-title": "Plate", "de": {"crossref-tbl-title": "Tafel"}}
    german_words, plain = words_of("de", own), words_of("en", own)
    assert (german_words["crossref-fig-title"], german_words["crossref-tbl-title"]) == (
        "Plate", "Tafel",
    )  # fmt: skip
    assert plain["crossref-tbl-title"] == "Table"
    assert "de" not in plain
    found = kind_words(words_of("de"))
    wanted = {
        "fig": "Abbildung", "tbl": "Tabelle", "lst": "Listing", "sec": "Kapitel",
        "eq": "Gleichung", "thm": "Theorem", "sol": "Lösung", "rem": "Anmerkung", "nte": "Hinweis",
        "tip": "Tipp", "wrn": "Warnung", "imp": "Wichtig", "cau": "Vorsicht",
    }  # fmt: skip
    assert {kind: found[kind] for kind in wanted} == wanted
    assert kind_words({})["cau"] == "Caution"
    assert words_of("ja-JP")["section-title-appendices"] == "付録"


def test_a_book_s_own_words(tmp_path: Path) -> None:
    """A file of the usual name, then a file that is named, then a mapping."""
    (tmp_path / "_language.yml").write_text("a: usual\nb: usual\n", "utf-8")
    (tmp_path / "own.yml").write_text("b: named\n", "utf-8")
    assert own_words({}, tmp_path) == {"a": "usual", "b": "usual"}
    assert own_words({"language": "own.yml"}, tmp_path) == {"a": "usual", "b": "named"}
    assert own_words({"language": {"a": "given"}}, tmp_path) == {"a": "given", "b": "usual"}
    assert own_words({"language": "gone.yml"}, tmp_path / "sub") == {}
    project = Project(tmp_path, "T", (), metadata={}, lang="fr")
    assert appendices_title(project) == "Annexes"
    (tmp_path / "_language.yml").write_text("section-title-appendices: Extra\n", "utf-8")
    assert appendices_title(project) == "Extra"
