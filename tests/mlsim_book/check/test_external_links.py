"""Links to other servers, asked for on this machine only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mlsim_book.check.book import check_book
from mlsim_book.check.external_links import ask

MakeBook = Callable[..., Path]
CODES = {"/well": 200, "/gone": 404, "/shy": 403}


class _Server(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self._answer(405 if self.path == "/headless" else CODES.get(self.path, 500))

    def do_GET(self) -> None:
        self._answer(200 if self.path == "/headless" else CODES.get(self.path, 500))

    def _answer(self, code: int) -> None:
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

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
        ("/well", None, True),
        ("/headless", None, True),
        ("/gone", "404", True),
        ("/shy", "403", False),
        ("/broken", "500", False),
    ],
)
def test_answers(server: str, path: str, fault: str | None, sure: bool) -> None:
    answer = ask(server + path, timeout=5)
    assert answer.sure is sure
    assert (answer.fault is None) if fault is None else (fault in str(answer.fault))


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    answer = ask("http://127.0.0.1:9/", timeout=1)
    assert "can't be reached" in str(answer.fault)
    assert not answer.sure


def test_only_on_request(make_book: MakeBook, server: str) -> None:
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
