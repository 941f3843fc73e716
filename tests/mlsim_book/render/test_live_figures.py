"""Figures that move: their modules as plain scripts, and what of them is on pages and in print."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from kept import book

from mlsim_book.build import build
from mlsim_book.check.built_site import check_site, read_page, read_site
from mlsim_book.errors import Problems, SourceError
from mlsim_book.paper.formats import _GONE
from mlsim_book.read.project import load_project
from mlsim_book.render.live_figures import names_on, scripts_of


def scripts(entry: str = "a.js", **modules: str) -> dict[str, str]:
    return scripts_of({"entry": entry, "modules": {f"{n}.js": text for n, text in modules.items()}})


def test_a_module_becomes_a_script_after_those_that_it_imports() -> None:
    found = scripts(
        a='import { one, two as second } from "./b.js";\nimport {\n  four,\n} from "./c.js";\n'
        "export async function mount() {\n  return [one, second, four];\n}\n",
        b="// a remark\nconst one = 1;\nconst dos = 2;\nexport { one, dos as two };\n",
        c='import { one } from "./b.js";\nexport const three = 3, four = 4;\nexport class Cup {}\n',
        unused="export const nothing = 0;",
    )
    b, c, a = found
    assert [each.rsplit("-", 1)[0] for each in found] == ["b", "c", "a"]
    assert found[b] == (
        f'(globalThis.bookModules ??= {{}})["{b}"] = (() => {{\n"use strict";\n'
        "const one = 1;\nconst dos = 2;\nreturn { one, two: dos };\n})();\n"
    )
    assert f'const {{ one, two: second }} = bookModules["{b}"];' in found[a]
    assert f'const {{ four }} = bookModules["{c}"];' in found[a]
    assert "return { mount };" in found[a]
    assert "return { three, Cup };" in found[c]


def test_a_change_gives_its_module_and_those_that_import_it_new_names() -> None:
    first, second = (
        scripts(a='import { n } from "./b.js";', b=f"export const n = {n};", c="") for n in (1, 2)
    )
    assert not set(first) & set(second)
    assert list(scripts(a="export const n = 1;")) == list(scripts(a="export const n = 1;", b="x"))


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ({"b": ""}, "a figure needs the module 'a.js', which isn't there\n  The figure has: b.js."),
        ({"a": 'import { x } from "./b.js";'}, "a.js needs the module 'b.js'"),
        (
            {"a": 'import { x } from "./b.js";', "b": 'import { y } from "./a.js";'},
            "import each other: a.js -> b.js -> a.js",
        ),
        ({"a": "export default 3;"}, "a.js: `export default 3;` can't be read from disk"),
        ({"a": 'import x from "https://e.org/x.js";'}, "can't be read from disk"),
        ({"a": 'const x = await import("./b.js");'}, "Write `import { a, b } from"),
    ],
)
def test_what_no_script_can_be_made_of_is_refused(modules: dict[str, str], words: str) -> None:
    with pytest.raises(SourceError, match=re.escape(words)):
        scripts(**modules)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a book with two pages of kettles that say how many cups they hold."""
    root = book("moving", tmp_path_factory.mktemp("moving"))
    return build(root, formats=("zip", "epub"), refresh=True)


def test_each_module_is_written_once_and_pages_load_what_they_need(site: Path) -> None:
    written = {path.stem for path in (site / "site_libs/live").glob("*.js")}
    pages = {name: (site / f"{name}.html").read_text("utf-8") for name in ("index", "again")}
    names = {name: names_on(text) for name, text in pages.items()}
    assert names["index"] == names["again"]  # remarks are no difference
    assert [each.rsplit("-", 1)[0] for each in names["index"]] == ["cups", "kettle"]
    assert set(names["index"]) < written  # those of the third page beside them
    for text in pages.values():
        loaded = re.findall(r'<script src="\./site_libs/(live[^"]*?)(?:-\w+)?\.js" defer>', text)
        assert loaded == ["live/cups", "live/kettle", "live"]
    # a stylesheet is linked before anything is drawn
    (sheet,) = (site / "site_libs/live").glob("kettle-*.css")
    head = pages["index"].partition("</head>")[0]
    assert f'<link rel="stylesheet" href="./site_libs/live/{sheet.name}">' in head
    assert sheet.name not in pages["again"]
    assert pages["again"].count('<span class="live-figure"') == 2
    assert not list(site.rglob("*.live.json"))


def test_the_still_figure_stands_inside_with_its_data_below(site: Path) -> None:
    page = (site / "index.html").read_text("utf-8")
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script></span>\n', page)
    assert data
    assert json.loads(data[1]) == {"n": 12, "note": "</script><b>steam"}
    still = re.search(r'<span class="live-still">(.*?)</span><script', page, re.DOTALL)
    assert still
    assert 'alt="A square"' in still[1]
    assert "Data of Figure" in page
    assert "script-src 'self'" in page
    assert not [each for each in read_page(page).loaded if each.startswith(("http", "//"))]


def test_print_shows_the_still_figure_and_search_finds_no_data(site: Path) -> None:
    page = (site / "index.html").read_text("utf-8")
    paper = _GONE.sub("", page)
    assert 'alt="A square"' in paper
    assert "steam" not in paper
    with zipfile.ZipFile(next(site.glob("*.epub"))) as epub:
        texts = "".join(
            epub.read(each).decode() for each in epub.namelist() if each.endswith(".xhtml")
        )
    assert 'alt="A square"' in texts
    assert "steam" not in texts
    for path in (site / "site_libs/search").glob("*.js"):
        assert "steam" not in path.read_text("utf-8")
    css = next((site / "site_libs").glob("book-*.css")).read_text("utf-8")
    assert re.search(r"@media print \{[^@]*\.live-figure > \.live-box \{ display: none; \}", css)


def test_a_number_that_moves_is_text_with_the_name_of_its_handle(site: Path) -> None:
    assert re.search(
        r'<span class="scrub" data-handle="vectors">3</span>', (site / "arrays.html").read_text()
    )


def test_a_number_whose_handle_no_figure_has_is_told(make_book: Callable[..., Path]) -> None:
    text = '# A\n\nA kettle of [2]{.scrub handle="cups"} or [3 l]{.given .scrub handle="l"}.\n'
    said: list[str] = []
    build(make_book(index_qmd=text), lenient=True, progress=said.append)
    told = [each for each in said if "no figure on this page moves" in each]
    assert [each.split("moves ")[1].split(",")[0] for each in told] == ["'cups'", "'l'"]
    assert "index.qmd:3" in told[0]


def test_the_site_passes_its_check(site: Path) -> None:
    problems = Problems()
    project = load_project(site.parent, problems)
    check_site(read_site(project, site, {}, problems))
    assert [each.text() for each in problems.found] == []
