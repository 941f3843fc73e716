"""What tests of the book and its site share: the built book, a server, a browser."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from mlsim_book.caches import cache_folder

ROOT = Path(__file__).parents[1]
FIXTURES = Path(__file__).parent / "fixtures"
_HOME = os.environ.get("XDG_CACHE_HOME")
# Run by `goldens/test_pages.py`, with the names of their pages.
collect_ignore_glob = ["book/claims/*"]


@pytest.fixture
def with_assets(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let a build with a cache of its own use the npm packages the user already has."""
    from mlsim_book.render import assets

    own = cache_folder()
    with monkeypatch.context() as patch:
        patch.delenv("XDG_CACHE_HOME", raising=False)
        if _HOME is not None:
            patch.setenv("XDG_CACHE_HOME", _HOME)
        theirs = assets.load_assets().folder
    target = own / "assets" / theirs.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(theirs)
    return own


@pytest.fixture(scope="session")
def conformance() -> Path:
    """Return the folder of conformance books; skips where there is none."""
    given = os.environ.get("MLSIM_REFERENCE")
    folder = Path(given) / "conformance" / "open" if given else None
    if folder is None or not folder.is_dir():
        pytest.skip("MLSIM_REFERENCE names no reference folder")
    return folder.resolve()


@pytest.fixture(scope="session")
def built_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this repository's book, built once; the small fixture book before there is one.

    Processes that test side by side share it, so tests only read it. Set MLSIM_SITE to the folder
    of a site that is already built.
    """
    given = os.environ.get("MLSIM_SITE")
    if given:
        return Path(given)
    build = pytest.importorskip("mlsim_book.build").build
    if (ROOT / "_quarto.yml").is_file():
        own = tmp_path_factory.getbasetemp()
        # a process of several has its folder in that of the run
        run = own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own
        with FileLock(run / "book.lock"):
            out = run / "site" / "_book"
            return out if out.is_dir() else Path(build(ROOT, out=out, progress=str))
    book = tmp_path_factory.mktemp("kettle") / "book"
    shutil.copytree(FIXTURES / "kettle", book)
    return Path(build(book, progress=str))


@pytest.fixture(scope="session")
def kettle_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the small fixture book, with its notebooks."""
    from mlsim_book.build import build
    from mlsim_book.errors import Problems
    from mlsim_book.read.project import load_project
    from mlsim_book.render.notebooks import write_notebooks

    book = tmp_path_factory.mktemp("kettle") / "book"
    shutil.copytree(FIXTURES / "kettle", book)
    write_notebooks(load_project(book, Problems()), book / "notebooks", Problems())
    return build(book, progress=str)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing."""


def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port, for as long as the fixture lives."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def serve_folder() -> Callable[[Path], Iterator[str]]:
    """What serves a folder, for fixtures of a module."""
    return serve


@pytest.fixture(scope="session")
def book_url(built_book: Path) -> Iterator[str]:
    """The address of the built book."""
    yield from serve(built_book)


@pytest.fixture(scope="session")
def kettle_url(kettle_site: Path) -> Iterator[str]:
    """The address of the small fixture book."""
    yield from serve(kettle_site)
