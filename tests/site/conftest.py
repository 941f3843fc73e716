"""A browser for the tests of a site."""

from __future__ import annotations

import functools
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exercise_book import WIDE, build_exercises
from kept import book

from mlsim_book.build import build


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium driven by Playwright; skips where there is none.

    It ends with each file: the driver keeps an event loop running, beside which tests of
    kernels, which may be next in this process, can't have theirs.
    """
    api = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium on the PATH or in $CHROMIUM")
    with api.sync_playwright() as driver:
        # fonts and rasters don't depend on the sandbox, which containers refuse
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def exercise_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a small book with an exercise of each kind, and its zip."""
    return build_exercises(tmp_path_factory.mktemp("exercises"))


@pytest.fixture(scope="session")
def exercise_url(
    exercise_site: Path, serve_folder: Callable[[Path], Iterator[str]]
) -> Iterator[str]:
    """The address of the small book with exercises."""
    yield from serve_folder(exercise_site)


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Open an address in a context of its own; nothing may complain on its page."""
    contexts, complaints = [], []

    def opened(
        url: str, viewport: dict[str, int] = WIDE, *, init: str = "", no_scripts: str = "",
        **options: Any,
    ) -> Any:  # fmt: skip
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        if init:
            context.add_init_script(init)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and complaints.append(m.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if no_scripts:
            page.route(no_scripts, lambda route: route.fulfill(body=""))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The site of a small book of `tests/fixtures/books`, by its name; each is built once."""

    @functools.cache
    def built(name: str) -> Path:
        root = book(name, tmp_path_factory.mktemp(name))
        # figures that move are the package's, whose code is no part of a page's key there
        return build(root, refresh=name == "moving", lenient=True, progress=str)

    return built


@pytest.fixture(scope="session")
def small_url(
    small_site: Callable[[str], Path], serve_folder: Callable[[Path], Iterator[str]]
) -> Iterator[Callable[[str], str]]:
    """The address of a small book, by its name."""
    served: list[Iterator[str]] = []

    @functools.cache
    def address(name: str) -> str:
        served.append(serve_folder(small_site(name)))
        return next(served[-1])

    yield address
    for each in served:
        next(each, None)


@pytest.fixture
def visit_exercises(visit: Any, exercise_url: str) -> Any:
    """Open a page of the book with exercises; it may not complain."""

    def opened(path: str = "sub/boil.html", **options: Any) -> Any:
        return visit(f"{exercise_url}/{path}", reduced_motion="reduce", **options)

    return opened


@pytest.fixture(scope="session")
def looked_at(built_book: Path) -> list[str]:
    """The pages of the book that tests open, by their paths.

    `MLSIM_JUDGE=1` (or `make judge`) opens all. A plain run opens those with most tables,
    figures, exercises and numbers that open, and four of the lighter two thirds that a seed
    chooses: what makes the heaviest heavy is more of the same formulas.
    """
    texts = {
        each.relative_to(built_book).as_posix(): each.read_text("utf-8")
        for each in built_book.rglob("*.html")
    }
    if os.environ.get("MLSIM_JUDGE") or len(texts) <= 12:
        return sorted(texts)
    marks = ("<table", "<figure", 'class="theorem exercise checked"', 'class="opens"')
    most = {max(sorted(texts), key=lambda path: texts[path].count(mark)) for mark in marks}
    others = sorted(texts.keys() - most - {"index.html"}, key=lambda path: len(texts[path]))
    lighter = sorted(others[: 2 * len(others) // 3])
    return sorted({"index.html", *most, *random.Random(33).sample(lighter, 4)})
