"""What references read as in notebooks, and the words of a book's language."""

from __future__ import annotations

from pathlib import Path

from kept import text

from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.read.labels import (
    appendices_title,
    is_english,
    kind_words,
    known_language,
    label_texts,
    nearest_label,
    own_words,
    words_of,
)

PAGE = text("labels.qmd.txt")
KINDS = ("fig-a", "fig-b", "fig-b-1", "fig-b-3", "fig-c-2", "tbl-x", "eq-y", "lst-z", "thm-t")
SECTIONS = ("start", "pots", "lids", "rims", "cups", "ears", "spoons")


def texts(number: int | None, *, appendix: bool = False) -> dict[str, str]:
    chapter = Chapter("a.qmd", "a.html", "Tea", number, appendix=appendix, label="sec-tea")
    return label_texts([ExecutedPage(chapter, PAGE, {}, {}, PAGE)])


def test_labels_count_by_kind_and_chapter() -> None:
    """Headings of tabs, boxes and theorems are no sections, and without a number none counts."""
    found = texts(3)
    assert found.pop("sec-tea") == "Chapter 3"
    assert [found.pop(each) for each in KINDS] == [
        "Figure 3.1", "Figure 3.2", "Figure 3.2 (a)", "Figure 3.2 (c)", "Figure 3.3", "Table 3.1",
        "Equation 3.1", "Listing 3.1", "Theorem 3.1",
    ]  # fmt: skip
    assert [found.pop(f"sec-{each}").removeprefix("Section ") for each in SECTIONS] == [
        "3", "3.1", "3.1.1", "3.1.2", "3.2", "3.2.1", "3.3",
    ]  # fmt: skip
    assert found == {}


def test_appendices_have_letters_and_the_preface_nothing() -> None:
    found = texts(2, appendix=True)
    wanted = {"sec-tea": "Appendix B", "fig-b-1": "Figure B.2 (a)", "sec-rims": "Section B.1.2"}
    assert {each: found[each] for each in wanted} == wanted
    found = texts(None)
    wanted = {"sec-tea": "Tea", "fig-b-1": "Figure 2 (a)", "sec-rims": "Section 1.2"}
    assert {each: found[each] for each in wanted} == wanted
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
