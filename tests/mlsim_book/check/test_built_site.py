"""What `mlsim-book check` tells of a built site: links, headings, markup, requests, terms."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import kept
import pytest

from mlsim_book.caches import TextCache
from mlsim_book.check.book import check_book
from mlsim_book.check.built_site import ask, find_faults, read_page
from mlsim_book.errors import SourceError

MakeBook = Callable[..., Path]
Check = Callable[..., list[str]]
PAGE = "<!DOCTYPE html>\n<html lang='en'><head><title>T</title>{head}</head><body>\n{body}\n</body></html>\n"
GLOSSARY = kept.text("glossary_page.html")
WITH_GLOSSARY = "mlsim-book:\n  glossary: index.qmd\n"


def told(root: Path) -> list[str]:
    return [problem.text() for problem in check_book(root).found]


def cases(part: str) -> list[tuple[str, ...]]:
    return kept.cases("built_pages.toml", part)


@pytest.fixture
def site(make_book: MakeBook) -> Check:
    """Return a function that writes a book and a site of one page, and checks them."""

    def check(body: str, *, source: str = "", head: str = "", extra: str = "") -> list[str]:
        book = make_book(extra, index_qmd="# T\n\n" + source)
        (book / "_book").mkdir(exist_ok=True)
        page = PAGE.format(head=head, body=f"<main><h1>T</h1>\n{body}</main>")
        (book / "_book" / "index.html").write_text(page, encoding="utf-8")
        return told(book)

    return check


@pytest.mark.usefixtures("with_assets")
def test_a_good_book_and_then_one_with_faults(kettle_site: Path, tmp_path: Path) -> None:
    """Cells may run for minutes, so a check that runs them for notebooks may not be silent."""
    kettle, page = tmp_path / "book", tmp_path / "book" / "_book" / "lesson.html"
    ignored = shutil.ignore_patterns("notebooks")
    shutil.copytree(kettle_site.parent, kettle, ignore=ignored)
    shutil.copytree(kettle_site, kettle / "_book", dirs_exist_ok=True)
    assert told(kettle) == []
    text = page.read_text("utf-8")
    for old, new, *_ in cases("of_the_site"):
        assert old in text
        text = text.replace(old, new)
    page.write_text(text, encoding="utf-8")
    style = "a { background: url(https://cdn.example.org/a.png) }"
    (kettle / "_book" / "more.css").write_text(style)
    (kettle / "notebooks").mkdir()
    said: list[str] = []
    found = [each.text() for each in check_book(kettle, progress=said.append).found]
    of_page = [line for line in found if line.startswith("lesson.qmd")]
    for words in (each for _, _, *wanted in cases("of_the_site") for each in wanted):
        assert any(words in line for line in of_page), words
    assert any("more.css" in line and "cdn.example.org" in line for line in found)
    assert any("lesson.ipynb" in line for line in found)
    (begins,) = (n for n, line in enumerate(said) if line.startswith("comparing notebooks"))
    assert any(line.startswith("executed lesson.qmd") for line in said[begins:])


def test_headings_in_order(site: Check, make_book: MakeBook) -> None:
    assert any("no built site" in line for line in told(make_book(index_qmd="# A\n")))
    assert site("<h2>A</h2><h3>B</h3><h2>C</h2><p>Well.</p>") == []
    (said,) = site("<h2>A</h2><h4>Too deep</h4>", source="## A\n\n#### Too deep\n")
    assert said.startswith("index.qmd:5: the heading 'Too deep' of level 4 comes after")
    assert "Make it level 3, ###" in said
    assert "has no text" in site("<h2> </h2>")[0]
    html = "<nav><h5>N</h5></nav><main><h1>A</h1><template><h6>T</h6></template></main><h4>F</h4>"
    assert read_page(html).headings == [(1, "A")]


def test_faults_of_markup_and_what_is_valid(site: Check, tmp_path: Path) -> None:
    for html, said in cases("faults"):
        found = find_faults(PAGE.format(head="", body=html))
        assert any(said in each.message and each.line == 3 for each in found), html
    assert "Missing end tag (div)" in find_faults(PAGE.format(head="", body="<div>a"))[0].message
    for (html,) in cases("valid"):
        assert find_faults(PAGE.format(head="", body=html)) == [], html
    keep, page = TextCache(tmp_path / "kept"), PAGE.format(head="", body="<p>a</i></p>")
    first = find_faults(page, keep)
    assert first
    assert list((tmp_path / "kept").iterdir())
    assert find_faults(page, keep) == first
    (told,) = site("<div><td>1</div>", source="Raw:\n\n<td>1\n")
    assert told.startswith("index.qmd:5: index.html:4 is no valid HTML, near <td>: Unexpected")


def test_requests_to_others_which_links_are_not(site: Check) -> None:
    for head, body in cases("requests"):
        found = site(body, head=head)
        assert any("somebody else's server (cdn.example.org)" in each for each in found), head
    body = '<p><a href="https://example.org/a">a</a></p><script>let a = "https://b.org"</script>'
    assert site(body) == []


def test_terms_spelled_otherwise_are_told_unless_they_are_none(site: Check) -> None:
    for text, said in cases("misspelt"):
        source = f"Words.\n\n{text}\n"
        (found,) = site(f"{GLOSSARY}<p>{text}</p>", source=source, extra=WITH_GLOSSARY)
        assert said in found
        assert found.startswith("index.qmd:5:")
    for (text,) in cases("fair"):
        assert site(f"{GLOSSARY}<p>{text}</p>", extra=WITH_GLOSSARY) == [], text
    body = f"{GLOSSARY}<p>A relu.</p>"
    assert site(body, extra=WITH_GLOSSARY + "  not-terms: [relu]\n") == []
    with pytest.raises(SourceError, match="not-terms"):
        site(body, extra=WITH_GLOSSARY + "  not-terms: relu\n")


# ------------------------------------- links to other servers, asked for on this machine only
CODES = {"/well": 200, "/gone": 404, "/shy": 403}


class _Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        codes = {**CODES, "/headless": 405 if self.command == "HEAD" else 200}
        self.send_response(codes.get(self.path, 500))
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815 - as the server calls it

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.mark.parametrize(
    ("path", "fault", "sure"),
    [
        ("/well", "None", True),
        ("/headless", "None", True),
        ("/gone", "404", True),
        ("/shy", "403", False),
        ("/broken", "500", False),
        (None, "can't be reached", False),
    ],
)
def test_answers_of_other_servers(server: str, path: str | None, fault: str, sure: bool) -> None:
    answer = ask(server + path if path else "http://127.0.0.1:9/", timeout=5)
    assert answer.sure is sure
    assert fault in str(answer.fault)


def test_other_servers_are_asked_only_on_request(make_book: MakeBook, server: str) -> None:
    book = make_book(index_qmd=f"# T\n\n[a]({server}/gone)\n[b]({server}/shy)\n")
    (book / "_book").mkdir()
    (book / "_book" / "index.html").write_text(
        f"<!DOCTYPE html><title>T</title><h1>T</h1>"
        f"<a href='{server}/gone#x'>a</a><a href='{server}/shy'>b</a><a href='{server}/well'>c</a>"
    )
    assert check_book(book).found == []
    said: list[str] = []
    (problem,) = check_book(book, external=True, progress=said.append).found
    assert problem.text().startswith(f"index.qmd:3: the link {server}/gone: the server says 404")
    assert any("not sure" in line and "/shy" in line for line in said)
    assert "asking for 3 addresses on other servers" in said
