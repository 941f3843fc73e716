"""What stands around a page's text: navigation, policy, fonts, favicon, and what it offers."""

from __future__ import annotations

import base64
import errno
import hashlib
import html
import json
import os
import re
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import kept
import pytest
from pots import write_book

from mlsim_book.build import StrictError, build
from mlsim_book.check.book import check_book
from mlsim_book.cli import main
from mlsim_book.errors import BookError, Problems, SourceError, ToolError
from mlsim_book.model import Chapter, Project
from mlsim_book.read.labels import words_of
from mlsim_book.read.project import load_project
from mlsim_book.read.yamlfile import web_address
from mlsim_book.render.assets import load_assets
from mlsim_book.render.postprocess import Opened
from mlsim_book.render.to_html import Heading
from mlsim_book.site import shared_files, swap, template, titles
from mlsim_book.site.shared_files import cards_place, cards_script, with_cards, write_shared
from mlsim_book.site.swap import hold, lock_path, take_turns
from mlsim_book.site.template import policy, refused

MakeBook = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("with_assets")

# -------------------------------------------------------------------------- navigation
CHAPTERS = (
    Chapter("index.qmd", "index.html", "Preface", None),
    Chapter("a.qmd", "a.html", "Clay & *pots*", 1, part="Ground"),
    Chapter("sub/b.qmd", "sub/b.html", "Water", 2, part="Ground"),
    Chapter("c.qmd", "c.html", "Tools", 1, appendix=True),
)
PROJECT = Project(Path(), "Book", CHAPTERS)


def heading(level: int, name: str, **more: bool) -> Heading:
    return Heading(level, name, "", f'<a href="x">{name}</a>', name, **more)


def test_navigation_leads_through_parts_neighbours_and_headings() -> None:
    entries = titles.sidebar(PROJECT, CHAPTERS[2])
    assert [entry.text for entry in entries] == ["Preface", "Ground", "Appendices"]
    assert [each.href for each in entries[1].items] == ["../a.html", "b.html"]
    assert [each.active for each in entries[1].items] == [False, True]
    assert "Clay &amp; *pots*" in entries[1].items[0].text
    assert entries[2].items[0].text == titles.chapter_text(CHAPTERS[3])
    assert 'class="chapter-number">A<' in entries[2].items[0].text
    plain = Project(Path(), "Book", CHAPTERS, metadata={"number-sections": False})
    assert titles.sidebar(plain, CHAPTERS[0])[2].items[0].text == "Tools"

    around = [
        [each and each.href for each in titles.neighbours(PROJECT, chapter)] for chapter in CHAPTERS
    ]
    assert around == [
        [None, "a.html"], ["index.html", "sub/b.html"], ["../a.html", "../c.html"],
        ["sub/b.html", None],
    ]  # fmt: skip
    crumbs = [each.href for each in titles.breadcrumb(PROJECT, CHAPTERS[2])]
    assert crumbs == ["../a.html", "b.html"]
    assert len(titles.breadcrumb(PROJECT, CHAPTERS[0])) == 1

    tree = titles.contents(
        [heading(2, "a"), heading(3, "b"), heading(4, "deep"), heading(2, "c", unlisted=True),
         heading(2, "d")]
    )  # fmt: skip
    assert [(each.heading.id, [i.heading.id for i in each.items]) for each in tree] == [
        ("a", ["b"]), ("d", []),
    ]  # fmt: skip
    assert tree[0].html == "a"


def test_a_page_shows_what_its_book_and_its_own_head_ask_for(tmp_path: Path) -> None:
    """And nothing that only another page asks for, or another format."""
    book = kept.book("frame", tmp_path)
    said: list[str] = []
    site = build(book, formats=("epub", "figures"), lenient=True, progress=said.append)
    assert [each.name for each in site.glob("*.zip")] == ["Pots-pans-figures.zip"]
    assert any(each.startswith("wrote 3 pages (") for each in said)
    with zipfile.ZipFile(site / "Pots-pans.epub") as epub:
        told = "".join(epub.read(each).decode() for each in epub.namelist() if "ch00" in each)
    assert "For paper." in told
    assert "For screens." not in told
    wanted = kept.blocks("frame_pages.txt")
    every = {line for lines in wanted.values() for line in lines}
    for name, lines in wanted.items():
        page = (site / name).read_text("utf-8")
        assert [each for each in lines if each.replace("\\n", "\n") not in page] == [], name
        assert [each for each in every.difference(lines) if each in page] == [], name


@pytest.mark.parametrize(
    ("given", "folds", "caption", "items", "box"), kept.cases("code_tools.toml")
)
def test_the_menu_of_code_has_what_is_asked_for(
    given: object, folds: bool, caption: str, items: list[str], box: bool
) -> None:
    words = words_of("en", {})
    menu, source = template.code_tools(
        given, '<details class="code-fold"' if folds else "", words, repo_source="repo.qmd",
        source="a < b",
    )  # fmt: skip
    assert bool(menu) == bool(items)
    if menu:
        found = re.findall(r'<li><\w+ .*?id="quarto-([a-z-]+)"(?:.*?href="(.*?)")?', menu)
        assert [" ".join(each).strip() for each in found] == items
        name = "" if caption else ' aria-label="Code"'
        assert f"{name}>{caption}</summary>" in menu
        assert ("<code>a &lt; b</code>" in source, not source) == (box, not box)


def test_a_page_tells_previews_what_it_is_and_readers_its_version(tmp_path: Path) -> None:
    """And an address without a page leads back, at any depth: its links begin at the root."""
    book = write_book(tmp_path, "site-url: https://a.org/clay/", "author: Ada")
    glaze = book / "sub" / "glaze.qmd"
    text = "# Glaze\n\n::: {.callout-note}\nA box, which says little of the page.\n:::\n\n"
    glaze.write_text(f"{text}Which *glaze* does a pot need, and why?\n", "utf-8")
    site = build(book, progress=str)
    page = (site / "sub" / "glaze.html").read_text("utf-8")
    for each in (
        'name="description" content="Which glaze does a pot need, and why?"',
        'property="og:title" content="2 Glaze"',
        'property="og:url" content="https://a.org/clay/sub/glaze.html"',
        '<div class="edition">Version 1.0</div>',
        "<p>Ada. “Clay”. Version 1.0. https://a.org/clay/</p>",
    ):
        assert each in page, each
    lost = (site / "404.html").read_text("utf-8")
    found = [link for _, link in re.findall(r'\s(href|src|data-base)="([^"#]+)"', lost)]
    assert all(each.startswith(("/clay/", "https://")) for each in found), found
    assert "/clay/sub/glaze.html" in found
    for each in found:
        if each.startswith("/clay/"):
            assert (site / each.removeprefix("/clay/")).exists(), each
    assert "og:url" not in lost
    told = check_book(book, progress=str).found
    assert not [each.message for each in told if "404" in each.text()]


# ------------------------------------------------------------------------------- fonts
def letters(face: str) -> set[int]:
    """Return the letters that a face is asked for."""
    found = re.search(r"unicode-range:([^;}]+)", face)
    assert found
    pairs = [part.strip().upper()[2:].split("-") for part in found[1].split(",")]
    return {each for pair in pairs for each in range(int(pair[0], 16), int(pair[-1], 16) + 1)}


def test_a_face_is_asked_for_each_of_its_letters_once(tmp_path: Path) -> None:
    """An arrow on a button must not load a whole face, nor what stands unseen in formulas."""
    known = load_assets()
    assets = replace(known, folder=tmp_path / "npm")  # where no font has been cut before
    assets.folder.mkdir()
    (assets.folder / "node_modules").symlink_to(known.folder / "node_modules")
    shared = write_shared(assets, tmp_path)
    libs = tmp_path / "site_libs"
    assert all((libs / each).is_file() for each in shared.preload)
    css = (libs / shared.stylesheet).read_text("utf-8")
    assert "@media print" in css
    assert ".katex" in css
    faces = re.findall(r"@font-face\s*\{[^}]*\}", css)
    assert all(
        (libs / "fonts" / re.findall(r"fonts/([\w.-]+)", each)[0]).is_file() for each in faces
    )
    for name in ("KaTeX_Main-Regular", "source-sans-3-latin-wght-normal"):
        core, rest = (
            letters(next(face for face in faces if f"/{name}{part}.woff2" in face))
            for part in ("-core", "")
        )
        assert not core & rest
        assert set(map(ord, "Az09+")) <= core
        whole, part = libs / f"fonts/{name}.woff2", libs / f"fonts/{name}-core.woff2"
        assert part.stat().st_size < 0.7 * whole.stat().st_size
        assert 0x200B not in rest
    package = Path(shared_files.__file__).parents[1]
    for path in (package / "exercises/theme/fields.js", package / "site/theme/tables.css"):
        arrows = set("←→↑↓") & set(path.read_text("utf-8"))
        assert arrows
        assert set(map(ord, arrows)) <= core


def test_without_font_tools_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)
    with pytest.raises(ToolError, match="there is no brotli") as caught:
        shared_files._font_tools()
    assert "fonttools[woff]" in str(caught.value.hint)


# -------------------------------------------------------------- favicon and the policy
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><circle r="1"/></svg>'
SETTING = "mlsim-book:\n  content-security-policy: true\n"
RAW = "# A\n\n```{{=html}}\n{}\n```\n"


def test_a_book_has_its_own_favicon_or_ours_and_a_policy_if_it_asks_for_one(
    make_book: MakeBook,
) -> None:
    pages = {
        "index_qmd": RAW.format('<script>alert("mine")</script>'),
        "sub__b_qmd": "# B\n\n$x$\n",
    }
    own = {**pages, "index_qmd": "# A\n", "logos/mine.svg": SVG}
    for extra, files in (("", pages), ("  favicon: logos/mine.svg\n" + SETTING, own)):
        said: list[str] = []
        site = build(make_book(extra, **files), progress=said.append)
        assert not any("favicon" in each for each in said)
        for path in (site / "index.html", site / "sub" / "b.html"):
            page = path.read_text("utf-8")
            (name,) = re.findall(r'<link rel="icon" href="([^"]+)"', page)
            shown = (path.parent / name).read_text("utf-8")
            assert shown.startswith("<svg")
            assert (shown == SVG) == bool(extra)
            given = re.findall(
                r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page
            )
            if not extra:
                assert not given
                continue
            (inline,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
            assert given == [policy(inline)]
            digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in given[0]
            assert page.index("Content-Security-Policy") < page.index("<script")


def test_the_policy_allows_the_own_origin_only_and_tells_what_it_would_silence(
    make_book: MakeBook,
) -> None:
    rules = dict(rule.split(" ", 1) for rule in policy("x").split("; "))
    assert rules["default-src"] == rules["frame-src"] == "'none'"
    assert rules["connect-src"] == "'self'"
    assert rules["script-src"].startswith("'self' 'sha256-")
    assert "unsafe-" not in rules["script-src"]
    assert not re.search(r"https?:|\*", policy("x"))
    for silenced in (
        "<script>x()</script>", '<p class="a" onclick="x()">', "<a href='javascript:x()'>a</a>",
    ):  # fmt: skip
        assert refused(silenced)
        lines: list[str] = []
        with pytest.raises(StrictError):
            build(make_book(SETTING, index_qmd=RAW.format(silenced)), progress=lines.append)
        assert any("index.qmd:4: the book's content-security-policy" in line for line in lines)
    for passed in (
        '<script src="a.js"></script>', '<script type="application/json">{}</script>',
        "<!-- <script>x()</script> -->", "<p>an onclick=x in text</p>", '<p title="online = x">',
    ):  # fmt: skip
        assert refused(passed) is None
    with pytest.raises(SourceError, match=r"_quarto.yml: .*'strict', which must be `true`"):
        build(make_book(SETTING.replace("true", "strict"), index_qmd="# A\n"), progress=str)


def test_what_numbers_open_to_comes_back_from_its_script(tmp_path: Path) -> None:
    script = cards_script([Opened("a", "5 s", " </script>é "), Opened("b", "1", "2 < 3")])
    assert script == 'bookCards = {"a": "<\\/script>é", "b": "2 < 3"};\n'
    where, place = cards_place("part/a b.html", script)
    assert where == "site_libs/cards/part/a b.js"
    assert 'data-from="../site_libs/cards/part/a%20b.js?v=' in place
    html, page = f"<p>A</p>{place}", tmp_path / "part" / "a b.html"
    assert with_cards(html, page) == html
    for path in (page, tmp_path / where):
        path.parent.mkdir(parents=True)
    (tmp_path / where).write_text(script, "utf-8")
    cards = (f'\n<template id="{key}">\n{card}\n</template>'
             for key, card in (("a", "</script>é"), ("b", "2 < 3")))  # fmt: skip
    assert with_cards(html, page) == f"<p>A</p>{''.join(cards)}"


# ------------------------------------------- what it offers, by the addresses it has
WHEEL = "notebooks/pots-1.0-py3-none-any.whl"
GLAZE = "notebooks/sub/glaze.ipynb"


def links(site: Path) -> dict[str, str]:
    """Return what the page of the notebook offers: addresses by text."""
    page = (site / "sub" / "glaze.html").read_text("utf-8")
    nav = re.search(r'<nav class="notebook-links".*?</nav>', page, re.DOTALL)
    assert nav is not None
    found = re.findall(r'href="([^"]*)".*?(?:</svg>)(.*?)</a>', nav[0], re.DOTALL)
    line = re.search(r"<code>(.*)</code>", nav[0])
    return {text: where for where, text in found} | ({"": html.unescape(line[1])} if line else {})


def first_cell(path: Path) -> str:
    return "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])


def files(site: Path) -> set[str]:
    found = (site / "notebooks").rglob("*")
    return {path.relative_to(site).as_posix() for path in found if path.is_file()}


def test_a_book_without_addresses_offers_a_zip(tmp_path: Path) -> None:
    book = write_book(tmp_path)
    site = build(book, progress=str)
    assert links(site) == {"Download notebook and package": "../notebooks/sub/glaze.zip"}
    assert files(site) == {WHEEL, GLAZE, "notebooks/sub/glaze.zip"}
    with zipfile.ZipFile(site / "notebooks/sub/glaze.zip") as archive:
        assert archive.namelist() == ["glaze/glaze.ipynb", f"glaze/{Path(WHEEL).name}"]
        assert archive.read(archive.namelist()[1]) == (site / WHEEL).read_bytes()
    assert check_book(book).found == []


def test_a_site_with_an_address_offers_a_line_for_pip_unless_there_is_no_package(
    tmp_path: Path,
) -> None:
    book = write_book(tmp_path, "site-url: https://a.org/clay/")
    site = build(book, progress=str)
    assert links(site) == {
        "Download notebook": f"../{GLAZE}",
        "": f'pip install "pots[all] @ https://a.org/clay/{WHEEL}"',
    }
    assert files(site) == {WHEEL, GLAZE, "notebooks/pots.txt"}
    named = (site / "notebooks/pots.txt").read_text("utf-8")
    assert named == f"pots[all] @ https://a.org/clay/{WHEEL}\n"
    assert "https://a.org/clay/notebooks/pots.txt" in first_cell(site / GLAZE)
    text = (book / "_quarto.yml").read_text("utf-8")
    (book / "_quarto.yml").write_text(re.sub(r"  (?:package|path|extras):.*\n", "", text), "utf-8")
    assert main(["notebooks", str(book)]) == 0
    site = build(book, progress=str)
    assert links(site) == {"Download notebook": f"../{GLAZE}"}
    assert files(site) == {GLAZE}


def test_a_repository_is_opened_in_colab(tmp_path: Path, kettle_site: Path) -> None:
    lines = "repo-url: https://github.com/a/clay", "repo-branch: v1"
    site = build(write_book(tmp_path, *lines), progress=str)
    assert links(site) == {
        "Download notebook": f"../{GLAZE}",
        "Open in Colab": f"https://colab.research.google.com/github/a/clay/blob/v1/{GLAZE}",
    }
    assert "github.com/a/clay@v1#subdirectory=pots_pkg" in first_cell(site / GLAZE)
    page = (kettle_site / "lesson.html").read_text("utf-8")
    assert "github/example/kettle/blob/main/notebooks/lesson.ipynb" in page
    assert "colab" not in (kettle_site / "index.html").read_text("utf-8")


def test_an_address_that_is_given_to_a_build_leaves_the_repository_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = write_book(tmp_path / "book")
    site, before = book / "_book", (book / GLAZE).read_bytes()
    assert main(["build", str(book), "--site-url", "https://b.org/x/"]) == 0
    assert (book / GLAZE).read_bytes() == before
    offered = (site / GLAZE).read_text("utf-8")
    assert "https://b.org/x/notebooks/pots.txt" in offered
    assert "[start](https://b.org/x/index.html)" in offered
    assert links(site)[""] == f'pip install "pots[all] @ https://b.org/x/{WHEEL}"'
    assert 'rel="canonical" href="https://b.org/x/' in (site / "index.html").read_text("utf-8")
    assert check_book(book).found == []

    command = ["notebooks", str(book), "--site-url", "https://b.org/x"]
    assert main(command) == 1
    assert "notebooks/ belongs to the repository" in capsys.readouterr().err
    assert main([*command, "--output-dir", str(tmp_path / "there")]) == 0
    assert "https://b.org/x/notebooks/pots.txt" in first_cell(tmp_path / "there/sub/glaze.ipynb")
    assert main(["notebooks", str(book), "--check"]) == 0


def test_a_site_goes_nowhere_where_something_would_be_lost(make_book: MakeBook) -> None:
    book = make_book(index_qmd="# A\n", **{"diary/may.txt": "", "site/index.html": ""})
    project = load_project(book, Problems())
    swap.check_target(project, book / "new")
    swap.check_target(project, book / "site")
    (book / "site" / ".git").mkdir()
    for target, said in {
        "diary": "holds files that are no site", "diary/may.txt": "which is a file",
        "site": "holds files that are no site", ".": "the book's sources are there",
        "/": "a mount point",
    }.items():  # fmt: skip
        with pytest.raises(SourceError, match=said):
            swap.check_target(project, book / target)


def test_a_swap_that_is_cut_short_is_restored_and_the_disk_tells_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "_book"
    said: list[str] = []
    for text in ("one", "two"):
        with swap.fresh_folder(target) as new:
            (new / "sub").mkdir()
            (new / "sub" / "a.html").write_text(text)
            swap.swap(target)
        assert (target / "sub" / "a.html").read_text() == text
    work = swap.work_folder(target)
    assert not work.exists()
    work.mkdir()
    target.rename(work / "old")  # killed between two renames
    swap.recover(target, said.append)
    assert said == ["restored _book: the build before this one was killed"]
    for gone in ("old/sub", "gone/sub"):  # killed when it was done
        (work / gone).mkdir(parents=True)
    with hold(target, wait=0):
        swap.recover(target, said.append)
    assert (work / "old").is_dir()  # it is the other's
    swap.restore(target, said.append)
    assert not work.exists()
    work.mkdir()
    with pytest.raises(FileNotFoundError):  # nothing new
        swap.swap(target)
    assert len(said) == 1
    with take_turns(target, said.append):
        assert lock_path(target).is_file()
        monkeypatch.setattr(os, "access", lambda *_: False)
        with take_turns(target, said.append):  # what nobody can write needs no turns
            assert len(said) == 1
    (target / "sub" / "round").symlink_to(target)
    swap.carry(target / "sub" / "round", tmp_path)
    assert (tmp_path / "round").is_symlink()
    swap.carry(target, tmp_path / "new")
    assert (tmp_path / "new/_book/sub/round").is_symlink()
    swap.carry(target / "sub" / "a.html", tmp_path)
    for path in ("_book/sub", "new/_book/sub", "."):
        assert (tmp_path / path / "a.html").read_text() == "two"
    for number, hint in ((errno.ENOSPC, "Free some space"), (errno.EACCES, "Make that folder")):
        with pytest.raises(swap.DiskError, match="no way: /a") as caught, swap.disk_errors(target):
            raise OSError(number, "no way", "/a")
        assert str(caught.value.hint).startswith(hint)


def test_an_address_that_would_break_a_command_is_refused(tmp_path: Path) -> None:
    for given in (
        "a.org/clay", "https://a.org/my clay", 'https://a.org/"; x', "https://a.org/$(x)", "",
    ):  # fmt: skip
        with pytest.raises(BookError, match=r"(?s)no address.*https://me\.github\.io/book"):
            web_address(given)
    with pytest.raises(BookError, match="for our own engine"):
        build(tmp_path, engine="quarto", site_url="https://a.org")


@pytest.mark.parametrize("address", [(), ("site-url: https://a.org/clay",)])
def test_the_zip_of_a_site_has_the_wheel_once(tmp_path: Path, address: tuple[str, ...]) -> None:
    site = build(write_book(tmp_path, *address), formats=("zip",), progress=str)
    with zipfile.ZipFile(site / "Clay.zip") as archive:
        archive.extractall(tmp_path / "disk")
    disk = tmp_path / "disk" / "Clay"
    assert [each for each in files(disk) if each.endswith((".whl", ".zip"))] == [WHEEL]
    (name, where), *_ = links(disk).items()
    assert name in {"Open notebook", "Download notebook"}
    opened = disk / "sub" / urlsplit(where).path
    assert opened.resolve().name == "glaze.ipynb"
    assert opened.is_file()
