"""EPUB, PDF and the zip: made of the executed book, the same each time, and sound."""

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
from mlsim_book.paper.document import PaperPage, make_paper

pytest.importorskip("typst")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a book that was built with all formats."""
    root = kept.book("clay", tmp_path_factory.mktemp("formats"))
    with pytest.MonkeyPatch.context() as patch:
        # the folder that conftest names, too
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
        build(root, formats=("pdf", "epub", "zip"), lenient=True, progress=lambda line: None)
    return root


def files_of(archive: Path) -> dict[str, str]:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name).decode("utf-8", "replace") for name in opened.namelist()}


def test_the_site_links_to_what_was_made(book: Path) -> None:
    page = (book / "_book/sub/clay.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="([^"]+)" download>', page)
    assert links == ["../Clay-pots.pdf", "../Clay-pots.epub", "../Clay-pots.zip"]
    assert all((book / "_book/sub" / each).is_file() for each in links)


def test_a_plain_site_has_no_downloads(book: Path, tmp_path: Path) -> None:
    build(book, out=tmp_path / "site", lenient=True, progress=lambda line: None)
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


def test_epub_is_sound(book: Path) -> None:
    files = files_of(book / "_book/Clay-pots.epub")
    pages = {name: text for name, text in files.items() if name.endswith(".xhtml")}
    ids = {}
    for name, text in pages.items():
        ET.fromstring(text)
        found = re.findall(r'\sid="([^"]+)"', text)
        assert len(found) == len(set(found)), name
        ids[name.rsplit("/", 1)[-1]] = set(found)
    for name, text in pages.items():
        for link in re.findall(r'href="([^":]+)"', text):
            path, _, place = link.rsplit("/", 1)[-1].partition("#")
            if path.endswith(".css"):
                continue
            assert not place or place in ids[path or name.rsplit("/", 1)[-1]], link
    assert "Ground" in files["EPUB/nav.xhtml"]
    assert "Clay" in files["EPUB/nav.xhtml"]


def test_epub_shows_what_the_page_shows(book: Path) -> None:
    files = files_of(book / "_book/Clay-pots.epub")
    text = "".join(files[name] for name in sorted(files) if name.endswith(".xhtml"))
    assert text.count("<math") == 2
    assert '<span class="equation-number">(2.1)</span>' in text
    assert re.search(r"Equation(&#160;|\u00a0)2.1</a>", text)
    assert "Smith" in text
    assert 'alt="A round pot."' in text
    assert "fired &lt;hot&gt;" in text
    assert re.search(r'callout-tip">\s*<div class="callout-title">\s*Knead', text)
    assert "<strong>White</strong>" in text
    assert "By hand." in text
    assert any(name.endswith(".svg") for name in files)
    assert "<button" not in text
    assert '<img src="https' not in text
    assert 'href="https://example.org/pot.png"' in text


def test_pdf_is_a_pdf_and_its_source_says_it_all(book: Path) -> None:
    assert (book / "_book/Clay-pots.pdf").read_bytes().startswith(b"%PDF-")


def page(body: str, **more: str) -> PaperPage:
    return PaperPage(Chapter("a.qmd", "a.html", "A", 1), more.get("title", "1 A"), body)


def test_typst_source(tmp_path: Path) -> None:
    body = (
        '<p><span class="math display">a \\sqcap b \\tag{1.1}</span></p>'
        '<div class="callout callout-note"><div class="callout-header">Watch</div>'
        "<div>out</div></div><p><a href='a.html'>here</a> <a href='#gone'>gone</a></p>"
        '<figure id="fig-x"><img src="no.png" alt="Nothing"><figcaption>Figure 1: x</figcaption>'
        "</figure>"
    )
    paper = make_paper(Project(Path(), "T", ()), [page(body)], tmp_path)
    source = formats.typst_source(paper, print)
    assert '#numbered("(1.1)")[' in source
    assert "inter.sq" in source
    assert '#callout("note")[' in source
    assert "#link(<page-1--top>)[here]" in source
    assert "\\[Nothing\\]" in source
    assert "gone" in source
    assert "Figure 1: x" in source


def test_links_to_files_lead_to_the_site(tmp_path: Path) -> None:
    body = "<p><a href='../data/pots.csv'>data</a></p>"
    chapter = Chapter("sub/a.qmd", "sub/a.html", "A", 1)
    for url, expected in (("https://example.org/", '#link("https://example.org/data/pots.csv")'),
                          (None, ">\ndata\n")):  # fmt: skip
        project = Project(Path(), "T", (), site_url=url)
        paper = make_paper(project, [PaperPage(chapter, "A", body)], tmp_path)
        assert expected in formats.typst_source(paper, print)


def test_macros_are_written_out(tmp_path: Path) -> None:
    metadata = {"mlsim-book": {"macros": {"\\rate": "\\mathrm{#1}_{s}", "\\ra": "q"}}}
    project = Project(Path(), "T", (), metadata=metadata)
    math = '<p><span class="math inline">\\rate{kg} + \\ra</span></p>'
    source = formats.typst_source(make_paper(project, [page(math)], tmp_path), print)
    assert "$upright(k g)_s + q$" in source


def test_a_formula_that_typst_refuses_is_shown_as_tex(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    math = "<p>" + "".join(
        f'<span class="math inline">{each}</span> ' for each in ("x", "y", "z_9", "w")
    )
    paper = make_paper(Project(Path(), "T", ()), [page(math)], tmp_path)
    typst = formats._typst()
    real = typst.compile

    def picky(source: str | bytes, **more: object) -> object:
        text = source.decode() if isinstance(source, bytes) else Path(source).read_text()
        if "$z_9$" in text:
            raise typst.TypstError("unknown z", "")
        return real(source, **more)

    monkeypatch.setattr(typst, "compile", picky)
    said: list[str] = []
    assert formats.make_pdf(Project(Path(), "T", ()), paper, said.append).startswith(b"%PDF")
    assert said == ["WARN: PDF: a formula is shown as TeX: z_9"]


def test_images_are_taken_by_content(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a b.png").write_bytes(b"png")
    body = '<p><img src="a%20b.png"><svg width="3"><rect/></svg><img src="../../etc/x.png"></p>'
    chapter = Chapter("sub/a.qmd", "sub/a.html", "A", 1)
    paper = make_paper(Project(Path(), "T", ()), [PaperPage(chapter, "A", body)], tmp_path)
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


def test_formats_that_do_not_exist(book: Path) -> None:
    assert formats.parse_formats("html") == ()
    assert formats.parse_formats("zip,PDF") == ("pdf", "zip")
    with pytest.raises(BookError, match=r"'docx' is no format.*\n.*html, pdf, epub, zip"):
        formats.parse_formats("pdf,docx")
    with pytest.raises(BookError, match="quarto render"):
        build(book, engine="quarto", formats=("pdf",), progress=lambda line: None)


def test_a_missing_typst_is_told_first(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> object:
        raise ToolError("a PDF needs the package typst, which is missing", hint="python -m pip")

    monkeypatch.setattr(formats, "_typst", gone)
    with pytest.raises(ToolError, match="typst, which is missing"):
        build(book, formats=("pdf",), progress=lambda line: None)
