"""A browser for the tests of a site."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exercise_book import WIDE, build_exercises


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
def visit_exercises(browser: Any, exercise_url: str) -> Iterator[Any]:
    """Open a page of the book; it may not complain."""
    contexts, complaints = [], []

    def opened(path: str = "sub/boil.html", viewport: dict[str, int] = WIDE, **options: Any) -> Any:
        init = options.pop("init", None)
        context = browser.new_context(viewport=viewport, reduced_motion="reduce", **options)
        contexts.append(context)
        if init:
            context.add_init_script(init)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and complaints.append(m.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{exercise_url}/{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
