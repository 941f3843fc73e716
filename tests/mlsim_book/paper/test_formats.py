"""EPUB, PDF and the zips: made of the executed book, the same each time, and sound."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import kept
import pytest

from mlsim_book.build import build, site_hash
from mlsim_book.caches import cache_folder
from mlsim_book.errors import BookError, ToolError
from mlsim_book.model import Chapter, Project
from mlsim_book.paper import formats
from mlsim_book.paper.document import Paper, PaperPage, make_paper
from mlsim_book.paper.figures_zip import pictures, write_figures
from mlsim_book.paper.open_numbers import with_numbers
from mlsim_book.render.opens import Opened

pytest.importorskip("typst")
PROJECT = Project(Path(), "T", ())


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a book that was built with all formats."""
    root = kept.book("clay", tmp_path_factory.mktemp("formats"))
    with pytest.MonkeyPatch.context() as patch:
        # the folder that conftest names, too
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
        build(root, formats=("pdf", "epub", "zip"), lenient=True, progress=str)
    return root


def files_of(archive: Path) -> dict[str, str]:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name).decode("utf-8", "replace") for name in opened.namelist()}


def test_the_site_links_to_what_was_made_and_a_plain_one_to_nothing(
    book: Path, tmp_path: Path
) -> None:
    page = (book / "_book/sub/clay.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="([^"]+)" download>', page)
    assert links == ["../Clay-pots.pdf", "../Clay-pots.epub", "../Clay-pots.zip"]
    assert all((book / "_book/sub" / each).is_file() for each in links)
    assert (book / "_book/Clay-pots.pdf").read_bytes().startswith(b"%PDF-")
    build(book, out=tmp_path / "site", lenient=True, progress=str)
    page = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert 'class="downloads"' not in page
    assert not list((tmp_path / "site").glob("Clay-pots*"))


def test_twice_the_same_and_other_formats_stay(book: Path, tmp_path: Path) -> None:
    """In another folder, asked for one: the formats that are there are made anew, byte-equal."""
    shutil.copytree(book, tmp_path / "elsewhere")
    shutil.rmtree(cache_folder() / "formats")
    said: list[str] = []
    again = build(tmp_path / "elsewhere", formats=("epub",), lenient=True, progress=said.append)
    assert site_hash(again) == site_hash(book / "_book")
    assert any(line.startswith("made pdf and epub") for line in said)


def test_epub_is_sound_and_shows_what_the_page_shows(book: Path) -> None:
    files = files_of(book / "_book/Clay-pots.epub")
    pages = {name.rsplit("/", 1)[-1]: text for name, text in sorted(files.items())
             if name.endswith(".xhtml")}  # fmt: skip
    ids = {}
    for name, text in pages.items():
        ET.fromstring(text)
        found = re.findall(r'\sid="([^"]+)"', text)
        assert len(found) == len(set(found)), name
        ids[name] = set(found)
    for name, text in pages.items():
        for link in re.findall(r'href="([^":]+)"', text):
            path, _, place = link.rsplit("/", 1)[-1].partition("#")
            assert not place or place in ids[path or name], link
    assert "Ground" in pages["nav.xhtml"]
    assert "Clay" in pages["nav.xhtml"]
    text = "".join(pages.values())
    assert text.count("<math") == 2
    for shown in (
        '<span class="equation-number">(2.1)</span>', "Smith", 'alt="A round pot."',
        "fired &lt;hot&gt;", "<strong>White</strong>", "By hand.",
        'href="https://example.org/pot.png"',
    ):  # fmt: skip
        assert shown in text
    assert re.search(r"Equation(&#160;|\u00a0)2.1</a>", text)
    assert re.search(r'callout-tip">\s*<div class="callout-title">\s*Knead', text)
    assert any(name.endswith(".svg") for name in files)
    assert "<button" not in text
    assert '<img src="https' not in text


def paper_of(
    body: str, folder: Path, project: Project = PROJECT, chapter: str = "a", title: str = "1 A"
) -> Paper:
    place = Chapter(f"{chapter}.qmd", f"{chapter}.html", "A", 1)
    return make_paper(project, [PaperPage(place, title, body)], folder)


def test_typst_source(tmp_path: Path) -> None:
    """Links to files lead to the site, where it has an address; macros are written out."""
    body = (
        '<p><span class="math display">a \\sqcap b \\tag{1.1}</span></p>'
        '<div class="callout callout-note"><div class="callout-header">Watch</div>'
        "<div>out</div></div><p><a href='a.html'>here</a> <a href='#gone'>gone</a></p>"
        '<figure id="fig-x"><img src="no.png" alt="Nothing"><figcaption>Figure 1: x</figcaption>'
        "</figure>"
    )
    source = formats.typst_source(paper_of(body, tmp_path), print)
    for said in (
        '#numbered("(1.1)")[', "inter.sq", '#callout("note")[', "#link(<page-1--top>)[here]",
        "\\[Nothing\\]", "gone", "Figure 1: x",
    ):  # fmt: skip
        assert said in source
    body = "<p><a href='../data/pots.csv'>data</a></p>"
    for url, expected in (("https://example.org/", '#link("https://example.org/data/pots.csv")'),
                          (None, ">\ndata\n")):  # fmt: skip
        project = Project(Path(), "T", (), site_url=url)
        paper = paper_of(body, tmp_path, project, "sub/a")
        assert expected in formats.typst_source(paper, print)
    metadata = {"mlsim-book": {"macros": {"\\rate": "\\mathrm{#1}_{s}", "\\ra": "q"}}}
    project = Project(Path(), "T", (), metadata=metadata)
    math = '<p><span class="math inline">\\rate{kg} + \\ra</span></p>'
    source = formats.typst_source(paper_of(math, tmp_path, project), print)
    assert "$upright(k g)_s + q$" in source


def test_a_formula_that_typst_refuses_is_shown_as_tex(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    formulas = (f'<span class="math inline">{each}</span> ' for each in ("x", "y", "z_9", "w"))
    paper = paper_of(f"<p>{''.join(formulas)}</p>", tmp_path)
    typst = formats._typst()
    real = typst.compile

    def picky(source: str | bytes, **more: object) -> object:
        text = source.decode() if isinstance(source, bytes) else Path(source).read_text()
        if "$z_9$" in text:
            raise typst.TypstError("unknown z", "")
        return real(source, **more)

    monkeypatch.setattr(typst, "compile", picky)
    said: list[str] = []
    assert formats.make_pdf(PROJECT, paper, said.append).startswith(b"%PDF")
    assert said == ["WARN: PDF: a formula is shown as TeX: z_9"]


def test_images_are_taken_by_content(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a b.png").write_bytes(b"png")
    body = '<p><img src="a%20b.png"><svg width="3"><rect/></svg><img src="../../etc/x.png"></p>'
    paper = paper_of(body, tmp_path, chapter="sub/a")
    assert paper.files["sub/a b.png"] == b"png"
    assert sum(name.startswith("paper-images/") for name in paper.files) == 1
    assert len(paper.files) == 2


def test_zip_opens_from_disk(book: Path) -> None:
    with zipfile.ZipFile(book / "_book/Clay-pots.zip") as archive:
        entries = archive.infolist()
    assert {each.date_time[0] for each in entries} == {1980}
    files = files_of(book / "_book/Clay-pots.zip")
    assert all(name.startswith("Clay-pots/") for name in files)
    assert not any(name.endswith((".pdf", ".epub", ".zip")) for name in files)
    html = files["Clay-pots/sub/clay.html"]
    assert "Clay-pots/site_libs/search/index.js" in files
    assert 'class="downloads"' not in html
    assert "preload" not in html
    for link in re.findall(r'(?:href|src)="([^"#:]+)', html):
        assert not link.startswith("/"), link


def test_formats_that_do_not_exist_or_lack_their_package(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert formats.parse_formats("html") == ()
    assert formats.parse_formats("zip,PDF") == ("pdf", "zip")
    with pytest.raises(BookError, match=r"'docx' is no format.*\n.*html, pdf, epub, zip"):
        formats.parse_formats("pdf,docx")
    with pytest.raises(BookError, match="quarto render"):
        build(book, engine="quarto", formats=("pdf",), progress=str)

    def gone() -> object:
        raise ToolError("a PDF needs the package typst, which is missing", hint="python -m pip")

    monkeypatch.setattr(formats, "_typst", gone)
    with pytest.raises(ToolError, match="typst, which is missing"):
        build(book, formats=("pdf",), progress=str)


def test_the_zip_of_figures_has_each_that_has_a_label(tmp_path: Path) -> None:
    """With its caption, and the same bytes twice."""
    page = kept.text("figures_zip_page.md")
    found = {each.name: each for each in pictures("part/a.html", page)}
    assert sorted(found) == ["a/fig-pot.svg", "a/fig-two-1.png", "a/fig-two-2.png"]
    pot = found["a/fig-pot.svg"]
    assert (pot.path, pot.caption, pot.alt, pot.link) == (
        "part/a_files/pot.svg", "Figure 1.1: A pot", "A <pot>", "part/a.html#fig-pot",
    )  # fmt: skip
    assert found["a/fig-two-1.png"].path == "x/1.png"
    for name in ("part/a_files/pot.svg", "x/1.png"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name)
    target, time = "B-figures.zip", (1980, 1, 1, 0, 0, 0)
    written = []
    for _ in range(2):
        count = write_figures(
            tmp_path, target, "B & C", [("part/a.html", page)], address="https://b.org/", time=time
        )
        assert count == 2  # the third lies nowhere
        written.append((tmp_path / target).read_bytes())
    assert written[0] == written[1]
    files = files_of(tmp_path / target)
    assert sorted(files) == [
        "B-figures/a/fig-pot.svg", "B-figures/a/fig-two-1.png", "B-figures/figures.html",
    ]  # fmt: skip
    listed = files["B-figures/figures.html"]
    assert "B &amp; C" in listed
    assert '<img src="a/fig-pot.svg" alt="A &lt;pot&gt;">' in listed
    assert '<a href="https://b.org/part/a.html#fig-pot">In the book</a>' in listed


def test_a_number_that_opens_links_to_an_entry_at_the_end() -> None:
    """In tables, links and headings numbers stay plain; what says nothing is no entry."""
    math = '<span class="math display">T = t</span>'
    card = Opened("o1", "5 s", f"<p>time = 5 s</p><p>{math}</p><p>More.</p>")
    cards = [card, Opened("o2", "1", "")]
    number = '<span class="opens" data-opens="{}">5 s</span>'
    first = number.format("o1")
    html = with_numbers(f"<p>{first} and {first}</p>", cards)
    assert html.count('<a href="#o1-source">5 s</a>') == 2
    assert html.count('id="o1-source"') == 1
    inline = math.replace("display", "inline")
    assert html.endswith(f"<p>5 s: time = 5 s {inline}</p></div>\n</section>")
    for plain in (
        f"<table><tr><td>{first}</td></tr></table>", f'<a href="#a">{first}</a>',
        f"<h2>{first}</h2>", f"<p>{number.format('o2')}</p>", f"<p>{number.format('unknown')}</p>",
    ):  # fmt: skip
        assert with_numbers(plain, cards) == plain
