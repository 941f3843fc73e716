"""The glossary: no definition goes in a circle, every word is met in a chapter, old addresses hold."""

import re
from itertools import chain
from pathlib import Path

import pytest

from mlsim.quantities import VOCABULARY
from mlsim_book.render.glossary import Entry, Terms
from mlsim_book.render.postprocess import parse

ROOT = Path(__file__).parents[2]
CHAPTERS = ("tutorials/*.html", "getting_started.html", "will_it_run.html", "zoo/*.html")


@pytest.fixture(scope="module")
def words():
    """The glossary's rows: word, other spellings, place, definition."""
    page = (ROOT / "glossary.qmd").read_text(encoding="utf-8")
    cell = next(
        each for each in re.findall(r"^```\{python\}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    )
    names = {}
    exec(compile(cell, "glossary.qmd", "exec"), names)
    return names["WORDS"]


def circles(words):
    """The words whose definition rests on them: in its first sentence, or by way of others.

    "GB: Gigabyte: a billion bytes" spells a word out, and may.
    """
    terms = Terms([Entry(word, said, (word, *also)) for word, also, _, said in words])
    rests = {}
    for word, also, _, said in words:
        used = set(terms.hint(f"<p>{said}</p>", "")[1])
        spelled_out, _, rest = said.partition(": ")
        first = (rest if spelled_out.lower() in map(str.lower, also) else said).split(". ")[0]
        if word not in terms.hint(f"<p>{first}</p>", "")[1]:
            used.discard(word)
        rests[word] = used
    while free := [word for word, used in rests.items() if not used & rests.keys()]:
        for word in free:
            del rests[word]
    return sorted(rests)


def test_no_definition_goes_in_a_circle(words):
    """Over no number of other words: what the definitions rest on can be put in an order."""
    made_up = [
        ("pot", [], "", "A pot for tea."), ("lid", [], "", "It covers. A lid fits."),
        ("TP", ["tea pot"], "", "Tea pot: a thing."), ("jar", [], "", "Few caps."),
        ("cap", [], "", "A cup."), ("cup", [], "", "Like a jar."),
    ]  # fmt: skip
    assert circles(made_up) == ["cap", "cup", "jar", "pot"]
    assert circles(words) == []


def test_definitions_are_short_and_every_word_is_met_in_a_chapter(words, built_book):
    assert 110 <= len(words) <= 140
    for word, _, _, said in words:
        sentences = re.findall(r"[.:](?=\s|$)", re.sub(r"\d\.\d", "", said))
        assert 1 <= len(sentences) <= 4, word
        assert len(said.split()) <= 50, word
    pages = chain.from_iterable(map(built_book.glob, CHAPTERS))
    html = "".join(page.read_text("utf-8") for page in pages)
    met = set(re.findall(r'class="term" [^>]*data-term="([^"]*)"', html))
    assert {word for word, *_ in words} - met == set()


def test_every_term_says_where_it_is_explained_and_that_place_exists(built_book):
    page = (built_book / "tutorials" / "llm_serving.html").read_text(encoding="utf-8")
    terms = [each for each in parse(page).all("term") if each.tag == "a"]
    assert len(terms) > 20
    for each in terms:
        file, _, anchor = each.attribute("data-at").partition("#")
        there = (built_book / "tutorials" / file).read_text(encoding="utf-8")
        assert not anchor or f'id="{anchor}"' in there
        assert each.attribute("data-place").startswith(("Chapter", "Section"))


def test_addresses_of_quantities_are_on_their_page_or_still_in_the_glossary(built_book):
    listed = (built_book / "quantities.html").read_text(encoding="utf-8")
    ids = set(re.findall(r'id="term-([^"]+)"', listed))
    assert ids == {name.replace("_", "-").lower() for name in VOCABULARY}
    glossary = (built_book / "glossary.html").read_text(encoding="utf-8")
    assert '<a href="quantities.html" class="elsewhere"' in glossary
