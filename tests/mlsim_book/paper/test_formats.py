"""EPUB, PDF and the zips: made of the executed book, the same each time, and sound."""

from __future__ import annotations

import re
import shutil
import tomllib
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import replace
from pathlib import Path

import kept
import pytest

from mlsim_book.build import build, site_hash
from mlsim_book.caches import cache_folder, content_hash
from mlsim_book.errors import BookError, ToolError
from mlsim_book.model import Chapter, Project
from mlsim_book.paper import formats
from mlsim_book.paper.formats import Paper, PaperPage, make_paper
from mlsim_book.paper.zips import pack, pictures, with_numbers, write_figures
from mlsim_book.render.postprocess import Opened

pytest.importorskip("typst")
PROJECT, Patch = Project(Path(), "T", ()), pytest.MonkeyPatch


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
    paper = paper_of("<p>7</p>", tmp_path, replace(PROJECT, author=("Å B", 'C "D"')))
    assert 'author: ("Å B", "C \\"D\\"", )' in formats.typst_source(paper, print)


def test_a_formula_that_typst_refuses_is_shown_as_tex(tmp_path: Path, monkeypatch: Patch) -> None:
    formulas = (f'<span class="math inline">{each}</span> ' for each in ("x", "y", "z_9", "w"))
    paper = paper_of(f"<p>{''.join(formulas)}</p>", tmp_path)
    typst = formats._typst()
    real, refused = typst.compile, ["$z_9$"]

    def picky(source: str | bytes, **more: object) -> object:
        assert more["ignore_system_fonts"]
        text = source.decode() if isinstance(source, bytes) else Path(source).read_text()
        if any(each in text for each in refused):
            raise typst.TypstError("unknown z", "")
        return real(source, **more)

    monkeypatch.setattr(typst, "compile", picky)
    said: list[str] = []
    assert formats.make_pdf(PROJECT, paper, said.append).startswith(b"%PDF")
    assert said == ["WARN: PDF: a formula is shown as TeX: z_9"]
    refused[:] = ["$z_9$", "$w$"]
    assert formats.refused_formulas(paper) == ["z_9", "w"]
    refused[:] = ["Clay"]  # no formula
    with pytest.raises(ToolError, match="could not set the book"):
        formats.make_pdf(PROJECT, paper_of("<p>Clay</p>", tmp_path), print)
    said.clear()
    unknown = paper_of('<p><span class="math inline">\\frac{3</span></p>', tmp_path)
    formats.make_epub(PROJECT, unknown, said.append)
    formats.typst_source(unknown, said.append)
    warned = "WARN: {}: a formula is shown as TeX: \\frac{{3"
    assert said == [warned.format("EPUB"), warned.format("PDF")]


def test_what_was_made_of_the_same_is_not_made_again(tmp_path: Path, monkeypatch: Patch) -> None:
    paper, made = paper_of("<p>7</p>", tmp_path), list[str]()
    other = replace(PROJECT, site_url="https://b.org")
    monkeypatch.setattr(formats, "make_epub", lambda *_: made.append("epub") or b"epub 2")
    monkeypatch.setattr(formats, "make_pdf", lambda *_: made.append("pdf") or b"pdf 2")
    monkeypatch.setattr(formats, "pandoc_version", lambda _: (3, 5, 7))
    for project in (PROJECT, PROJECT, other):
        formats.write_paper(project, paper, ("epub",), tmp_path, print)
        assert (tmp_path / "T.epub").read_bytes() == b"epub 2"
    assert (made, (tmp_path / "T.pdf").exists()) == (["epub", "epub"], False)
    formats.write_paper(PROJECT, paper, ("pdf", "zip"), tmp_path, print)
    assert (made.pop(), (tmp_path / "T.pdf").read_bytes()) == ("pdf", b"pdf 2")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000007")
    formats.write_paper(PROJECT, paper, ("epub",), tmp_path, print)
    assert made == ["epub", "epub", "epub"]
    assert formats.zip_time() == (2001, 9, 9, 1, 46, 47)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "2")
    assert formats.zip_time() == (1980, 1, 1, 0, 0, 0)  # where the times of zips begin


def test_a_zip_is_the_same_on_each_system(tmp_path: Path) -> None:
    """Its own name is the folder inside; what is packed already is stored."""
    time = (2001, 2, 3, 5, 7, 22)
    for given, kind in (({}, zipfile.ZIP_DEFLATED), ({"compress": False}, zipfile.ZIP_STORED)):
        pack(tmp_path / "b.zip", [("c.txt", b"5"), ("d.whl", b"7")], time, **given)
        with zipfile.ZipFile(tmp_path / "b.zip") as archive:
            found = [(each.filename, each.compress_type, each.date_time, each.create_system,
                      each.external_attr) for each in archive.infolist()]  # fmt: skip
        assert found == [("b/c.txt", kind, time, 3, 0o644 << 16),
                         ("b/d.whl", zipfile.ZIP_STORED, time, 3, 0o644 << 16)]  # fmt: skip


def test_images_are_taken_by_content(tmp_path: Path) -> None:
    """From the site, or else from the book; by the path of the page, or from the site's root."""
    for name, data in kept.cases("images_on_paper.toml", "files"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(data)
    local = kept.cases("images_on_paper.toml")
    first, second = '<svg aria-label="Pot"><rect></rect></svg>', '<svg xmlns="x" width="3"></svg>'
    coded = ("data:image/svg+xml;base64,PDU+", "data:image/png;base64,NQ==")
    body = "".join(f'<img src="{each}">' for each in (*coded, *(given for given, _ in local)))
    paper = paper_of(first + second + body, tmp_path / "site", Project(tmp_path, "T", ()), "sub/a")
    spaced = first.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"')
    made = {
        f"paper-images/{content_hash(data)[:16]}.{kind}": data.encode()
        for data, kind in ((spaced, "svg"), (second, "svg"), ("<5>", "svg"), ("5", "png"))
    }
    assert re.findall(r'<img src="([^"]*)"', paper.html) == [*made, *(name for _, name in local)]
    assert re.findall(r'alt="([^"]*)"', paper.html) == ["Pot", ""]
    widths = {"own.svg": 40.0, "c.svg": 7.0, "d.svg": 8.0, [*made][1]: 4.0}
    found = {name: each.get("width") for name, each in paper.config["images"].items()}
    assert {**found, **widths} == found
    assert sum(width is not None for width in found.values()) == 4
    assert set(paper.files) == {*made, *widths, "sub/a b.png", "top/b.PNG"}
    assert {**paper.files, **made, "sub/a b.png": b"png"} == paper.files
    paper.write_files(tmp_path / "out")
    assert (tmp_path / "out/top/b.PNG").read_bytes() == b"PNG"


def test_a_page_on_paper_keeps_what_paper_shows(tmp_path: Path) -> None:
    read = tomllib.loads((kept.FIXTURES / "cases/pages_on_paper.toml").read_text("utf-8"))["cases"]
    hrefs = [f"{each['name']}.html" for each in read]
    pages = [
        PaperPage(Chapter("", href, "", 1, **each.get("chapter", {})), each.get("title", ""),
                  each.get("body", ""), each.get("label", ""))
        for href, each in zip(hrefs, read, strict=True)
    ]  # fmt: skip
    settings = {"mlsim-book": {"macros": {"\\r": "q"}}, "book": {"date": 2027}, "date": 2001}
    project = Project(tmp_path, "T", (), site_url="https://b.org/", metadata=settings)
    paper = make_paper(project, pages, tmp_path)
    assert paper.html == "\n".join(
        (f'<h1 class="part">{each["part"]}</h1>\n' if "part" in each else "")
        + f'<div class="paper-page" data-page="{href.replace("&", "&amp;")}">{each["paper"]}</div>'
        for href, each in zip(hrefs, read, strict=True)
    )
    assert paper.config == {
        "pages": {name: f"page-{number}" for number, name in enumerate(hrefs, 1)},
        "tops": {href: each["top"] for href, each in zip(hrefs, read, strict=True)},
        "images": {}, "macros": {"\\r": "q"}, "site": "https://b.org",
    }  # fmt: skip
    assert paper.metadata == {"title": "T", "lang": "en", "date": "2027"}
    plain = make_paper(Project(tmp_path, "T", (), metadata={"date": 2001}), [], tmp_path)
    assert (plain.metadata["date"], plain.config["macros"]) == ("2001", {})
    same = replace(paper, config=dict(reversed(paper.config.items())))
    assert same.key == replace(paper, metadata=dict(reversed(paper.metadata.items()))).key
    others = [{"html": ""}, {"config": {}}, {"metadata": {}}, {"files": {"a": b"2"}},
              {"files": {"a": b"3"}}, {"files": {"b": b"3"}}, {}]  # fmt: skip
    assert len({replace(paper, **each).key for each in others}) == len(others)


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


def test_formats_that_do_not_exist_or_lack_a_package(book: Path, monkeypatch: Patch) -> None:
    assert formats.parse_formats("html") == ()
    assert formats.parse_formats("zip,PDF") == ("pdf", "zip")
    with pytest.raises(BookError, match=r"'docx' is no format.*\n.*html, pdf, epub, zip"):
        formats.parse_formats("pdf,docx")
    with pytest.raises(BookError, match="quarto render"):
        build(book, engine="quarto", formats=("pdf",), progress=str)

    def gone() -> object:
        raise ToolError("a PDF needs the package typst, which is missing", hint="python -m pip")

    monkeypatch.setattr(formats, "_typst", gone)
    formats.require_tools(("epub", "zip"))
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
    write_figures(tmp_path, target, "B", [("part/a.html", page)], address=None, time=time)
    assert "In the book" not in files_of(tmp_path / target)["B-figures/figures.html"]


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
    assert with_numbers(first, [replace(card, html=f"<p>{math}</p>")]).count("T = t") == 1
    for plain in (
        f"<table><tr><td>{first}</td></tr></table>", f'<a href="#a">{first}</a>',
        f"<h2>{first}</h2>", f"<p>{number.format('o2')}</p>", f"<p>{number.format('unknown')}</p>",
    ):  # fmt: skip
        assert with_numbers(plain, cards) == plain
