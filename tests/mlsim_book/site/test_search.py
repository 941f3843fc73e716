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

from mlsim_book.render.assets import find_node
from mlsim_book.site import search
from mlsim_book.site.search import fold, words

Ask = Callable[..., list[dict[str, Any]]]

POTS = """<section id="clay" class="level2"><h2>Clay</h2><p>Kaolin is a white clay, &lt;b&gt; &amp; dry.</p>
<p>A kiln of batches and glazes; Séverin's kiln.</p></section>
<section id="kilns" class="level2"><h2>Kilns</h2><p>A kiln is hot. <span class="math inline">zeta</span></p>
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
    assert kilns.text == "A kiln is hot. fire(kiln)"  # no formula, nothing that is ignored
    signs = search.search_page("Why a&lt;b&gt;c holds", "<p>Text</p>")
    assert [each.page for each in search.sections("a.html", signs)] == ["Why a<b>c holds"]
    number = '<span class="header-section-number">1.1</span>'
    body = f'<section id="s" class="level2">\n<h2>{number} Sum</h2></section>'
    found = search.search_page("T", body)
    assert '<h2 id="s"' in found
    assert "1.1" not in found


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
    assert many["count"] == 2
    assert marked(batch) == ["batches"]
    assert marked(accent) == ["Séverin"]
    assert letter["count"] == 2  # nothing is "k", so what begins so


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
    assert (broad["count"], len(broad["results"])) == (60, 12)
    assert len(list((tmp_path / search.SEARCH).iterdir())) > 20
    weigh = sum(len(gzip.compress(Path(name).read_bytes())) for name in broad["files"])
    assert weigh < 60_000
    assert len(narrow["files"]) <= 3
    assert hrefs(narrow) == ["59.html"]


def test_a_part_that_cannot_be_loaded_is_told(tmp_path: Path, ask: Ask) -> None:
    (nothing,) = ask({}, "kiln")  # a book without a word has a search
    assert nothing["count"] == 0
    search.write_search(PAGES, tmp_path)
    for path in (tmp_path / search.SEARCH).glob("w-*.js"):
        path.unlink()
    assert "could not be loaded" in run(tmp_path, "kiln")[0]["error"]
