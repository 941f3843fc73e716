"""Search: what is indexed, how it is cut, and what the browser's part finds in it."""

from __future__ import annotations

import gzip
import json
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kept import script

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.project import load_project
from mlsim_book.render.assets import find_node
from mlsim_book.site import search
from mlsim_book.site.search import fold, words

Ask = Callable[..., list[dict[str, Any]]]

POTS = """<section id="clay" class="level2"><h2>Clay</h2><p>Kaolin is a white clay, &lt;b&gt; &amp; dry.</p>
<p>A kiln of batches and glazes; Séverin's kiln.</p></section>
<section id="kilns" class="level2"><h2>Kilns</h2><p>A kiln is hot. <span class="math inline">\\zeta_\\text{max}</span></p>
<details data-search-ignore><summary>hidden</summary><p>hidden <b>rows</b></p></details>
<pre><span>fire</span>(<span>kiln</span>)</pre></section>"""
PAGES = {"pots.html": search.search_page("Pots", POTS)}


def run(folder: Path, *queries: str) -> list[dict[str, Any]]:
    """Answer queries from the index in a folder."""
    (folder / "ask.js").write_text(script("ask_search.js"), encoding="utf-8")
    command = [find_node(), "ask.js", str(folder / search.SEARCH), json.dumps(queries)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return list(json.loads(done.stdout))


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Answer queries about pages: addresses, variants."""

    def asked(pages: dict[str, str], *queries: str) -> list[dict[str, Any]]:
        search.write_search(pages, tmp_path)
        return run(tmp_path, *queries)

    return asked


def hrefs(answer: dict[str, Any]) -> list[str]:
    return [each["href"] for each in answer["results"]]


def marked(answer: dict[str, Any], key: str = "excerpt") -> list[str]:
    return [text for text, mark in answer["results"][0][key] if mark]


def shown(answer: dict[str, Any]) -> str:
    return "".join(text for text, _ in answer["results"][0]["excerpt"])


def test_words_of_many_languages() -> None:
    assert words("Größe, naïve Œuvre Ёлка") == ["große", "naive", "œuvre", "елка"]
    assert words("किताब हिन्दी") == [unicodedata.normalize("NFC", w) for w in ("किताब", "हिन्दी")]
    assert words("서울 한국어") == ["서울", "한국어"]
    assert words("ภาษาไทย")[:2] == ["ภา", "าษ"]
    assert words("memory_bandwidth=1.5e9 (GB/s)") == ["memory", "bandwidth", "1", "5e9", "gb", "s"]
    assert fold("ＦＵＬＬ") == "full"
    assert words("—…!") == []


def test_what_is_indexed_of_a_page() -> None:
    page = search.search_page("1 Pots", f"<p>About</p>{POTS}")
    top, clay, kilns = search.sections("sub/pots é.html", page)
    assert (top.url, top.title, top.text) == ("sub/pots%20%C3%A9.html", "1 Pots", "About")
    assert (clay.url, clay.page) == ("sub/pots%20%C3%A9.html#clay", "1 Pots")
    assert "<b> & dry" in clay.text
    assert kilns.text == "A kiln is hot. ζ_max fire(kiln)"  # nothing that is ignored
    signs = search.search_page("Why a&lt;b&gt;c holds", "<p>Text</p>")
    assert [each.page for each in search.sections("a.html", signs)] == ["Why a<b>c holds"]
    number = '<span class="header-section-number">1.1</span>'
    body = f'<section id="s" class="level2">\n<h2>{number} Sum</h2></section>'
    found = search.search_page("T", body)
    assert '<h2 id="s"' in found
    assert "1.1" not in found


EXERCISES = """<section id="try" class="level2"><h2>Your turn</h2>
<div id="exr-fire" class="theorem exercise checked" data-answer="7">
<p><span class="theorem-title"><strong>Exercise 1 (How hot)</strong></span> Ask <em>it</em>.</p></div>
<div class="exercise-folds"><div class="callout"><p>Hint and answer</p></div></div>
<div class="selfcheck"><p>Check?</p><ul><li>Yes</li></ul></div>
<div class="callout callout-note"><p>Answer: no</p></div><div class="callout"><p>Box</p></div>
<details class="code-fold"><summary>Code</summary><pre>folded</pre></details><pre>shown</pre></section>"""


def test_no_answer_and_no_folded_code_is_indexed_and_an_exercise_is_a_section(ask: Ask) -> None:
    page = search.search_page("T", EXERCISES)
    found = {each.url: (each.title, each.text) for each in search.sections("a.html", page)}
    assert found == {
        "a.html": ("T", ""),
        "a.html#try": ("Your turn", ""),
        "a.html#exr-fire": ("Exercise 1 (How hot)", "Ask it. Check? Yes Box shown"),
    }
    (hot,) = ask({"a.html": page, "b.html": search.search_page("T", "<p>It is hot.</p>")}, "hot")
    assert hrefs(hot) == ["b.html", "a.html#exr-fire"]


def test_pages_count_as_the_book_says(tmp_path: Path) -> None:
    pages = {f"{name}.html": search.search_page("T", "<p>A kiln.</p>") for name in "abc"}
    search.write_search(pages, tmp_path, search.Wording({"a.html": 0.2, "c.html": 3}))
    assert hrefs(*run(tmp_path, "kiln")) == ["c.html", "b.html", "a.html"]


def test_words_for_the_same_and_terms_of_several_words(tmp_path: Path) -> None:
    entry = '<p><span class="term-entry" id="t" data-also="TS">thermal shock</span> cracks.</p>'
    pages = {
        "a.html": search.search_page("A", "<p>After the shock, thermal paste.</p>"),
        "b.html": search.search_page("B", "<p>Thermal shocks; out of clay.</p>"),
        "c.html": search.search_page("C", "<p>One TS is enough.</p>"),
        "glossary.html": search.search_page("Glossary", entry),
    }
    search.write_search(pages, tmp_path, search.Wording({}, [["out of clay", "empty"]]))
    whole, short, empty, more = run(tmp_path, "thermal shock", "ts", "empty", "clay shock")
    assert sorted(hrefs(whole)) == sorted(hrefs(short)) == ["b.html", "c.html", "glossary.html"]
    assert {text for each in whole["results"] for text, mark in each["excerpt"] if mark} == {
        "Thermal shocks", "TS", "thermal shock",
    }  # fmt: skip
    assert (hrefs(empty), marked(empty)) == (["b.html"], ["out of clay"])
    assert hrefs(more) == ["b.html"]


def test_one_letter_may_be_wrong(tmp_path: Path) -> None:
    text = "".join(f'<section id="s{n}"><h2>S</h2><p>A glaze.</p></section>' for n in range(25))
    pages = {
        "a.html": search.search_page("A", text),
        "b.html": search.search_page("B", "<p>He wrote glase, and glazing.</p>"),
    }
    search.write_search(pages, tmp_path)
    queries = ("glzae", "glaz", "glase", "galzes", "gaze s", "glaciers", "qqqqqq")
    swapped, begun, written, two, long, near, none = run(tmp_path, *queries)
    assert (swapped["meant"], hrefs(swapped)) == (["glaze"], ["a.html#s0"])
    assert begun["meant"] == []  # more of it is to come
    assert (written["meant"], hrefs(written)) == (["glaze"], ["a.html#s0", "b.html"])
    assert (long["meant"], two["count"], two["near"]) == (["glaze"], 0, ["glaze"])
    assert (near["count"], near["near"]) == (0, [])
    assert (none["count"], none["near"]) == (0, [])


@pytest.mark.parametrize(
    "said", ["[a]", "{weight: {}}", "{weights: {a.qmd: 0}}", "{synonyms: [[one]]}"]
)
def test_settings_that_search_can_not_use(make_book: Callable[..., Path], said: str) -> None:
    book = make_book(f"mlsim-book:\n  search: {said}\n", index_qmd="# One\n")
    with pytest.raises(SourceError, match="mlsim-book: search:"):
        search.search_wording(load_project(book, Problems()))


def test_titles_before_headings_before_texts(ask: Ask) -> None:
    pages = {
        "a.html": search.search_page("Bowls", "<p>Of glaze, glaze and glaze.</p>"),
        "b.html": search.search_page("Cups", '<section id="g"><h2>Glaze</h2><p>No.</p></section>'),
        "c.html": search.search_page("Glaze", "<p>It is here.</p>"),
        "d.html": search.search_page("Jars", "<p>Only clay.</p>"),
    }
    glaze, none = ask(pages, "glaze", "zeppelin")
    assert hrefs(glaze) == ["c.html", "b.html#g", "a.html"]
    assert (glaze["count"], glaze["all"]) == (3, True)
    assert marked(glaze, "marked") == ["Glaze"]
    assert (none["count"], none["results"]) == (0, [])


def test_all_words_and_else_some_of_them(ask: Ask) -> None:
    both, some, odd, empty = ask(PAGES, "kaolin KILN", "kaolin zebra", "<b>", " ")
    assert (hrefs(both), both["all"]) == (["pots.html#clay"], True)
    assert (hrefs(some), some["all"]) == (["pots.html#clay"], False)
    assert "<b>" in shown(odd)  # text, which the page shows as it stands
    assert empty["count"] == 0


def test_beginnings_plurals_and_accents(ask: Ask) -> None:
    begun, ended, earlier, one, many, batch, accent, letter = ask(
        PAGES, "kao", "kao ", "kao kiln", "glaze", "kilns", "batch ", "SEVERIN", "k"
    )
    assert marked(begun) == ["Kaolin"]
    assert hrefs(ended) == hrefs(earlier) == ["pots.html#clay"]  # else nothing would be found
    assert marked(one) == ["glazes"]
    assert hrefs(many) == ["pots.html#kilns"]  # of a page the best section
    assert marked(batch) == ["batches"]
    assert marked(accent) == ["Séverin"]
    assert letter["count"] == 1  # nothing is "k", so what begins so


def test_scripts_without_spaces(ask: Ask) -> None:
    pages = {
        "a.html": search.search_page("模型", "<p>大语言模型在GPU上运行。</p>"),
        "b.html": search.search_page("語", "<p>日本語のテキスト</p>"),
    }
    pair, single, run, mixed, apart = ask(pages, "语言", "語", "テキスト", "gpu上", "型模")
    assert marked(pair) == ["语言"]
    assert hrefs(single) == ["b.html"]
    assert marked(run) == ["テキスト"]
    assert hrefs(mixed) == ["a.html"]
    assert apart["count"] == 0


def test_a_long_section_is_one_result_that_shows_the_right_piece(ask: Ask) -> None:
    filler = " ".join(f"word{n}" for n in range(3000))
    body = f'<section id="s"><h2>Long</h2><p>first {filler} needle {filler} haystack</p></section>'
    needle, both = ask({"a.html": search.search_page("A", body)}, "needle", "first haystack")
    assert (needle["count"], hrefs(needle)) == (1, ["a.html#s"])
    assert "needle word0" in shown(needle)
    assert shown(needle).startswith("… ")
    assert (both["count"], both["all"]) == (1, True)


def test_a_query_takes_few_and_small_files(ask: Ask, tmp_path: Path) -> None:
    text = " ".join(f"{a}{b}{c}ing" for a in "bcdfgklm" for b in "aeiou" for c in "nprstvwz")
    pages = {
        f"{n}.html": search.search_page(f"Page {n}", f"<p>common {text} unique{n}</p>")
        for n in range(60)
    }
    broad, narrow = ask(pages, "common", "unique59")
    assert (broad["count"], len(broad["results"])) == (60, 8)
    assert len(list((tmp_path / search.SEARCH).iterdir())) > 20
    weigh = sum(len(gzip.compress(Path(name).read_bytes())) for name in broad["files"])
    assert weigh < 40_000
    assert len(narrow["files"]) <= 3
    assert hrefs(narrow) == ["59.html"]


def test_a_part_that_cannot_be_loaded_is_told(tmp_path: Path, ask: Ask) -> None:
    (nothing,) = ask({}, "kiln")  # a book without a word has a search
    assert nothing["count"] == 0
    search.write_search(PAGES, tmp_path)
    for path in (tmp_path / search.SEARCH).glob("w-*.js"):
        path.unlink()
    assert "could not be loaded" in run(tmp_path, "kiln")[0]["error"]
