"""What a page depends on: an edit runs the pages again that used what was edited, and no other.

The four pages of `ran` run once, in kernels. From then on a page that would run again gives
what it gave then, and the files that it opened then: what is tested is when that happens.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.project import load_project
from mlsim_book.run import execute, opened_files
from mlsim_book.run.opened_files import EVERYTHING
from mlsim_book.run.page_cache import PageCache, read_depends
from mlsim_book.run.pages import execute_pages
from mlsim_book.run.results import Results

MakeBook = Callable[..., Path]
RUN = execute.run_document

START = "import sys; sys.path.insert(0, '../code')\nsys.dont_write_bytecode = {}\n"
PAGES = {
    "one": START.format(True) + "import tools.steam\ntools.steam.heat()",
    "two": START.format(False) + "from tools import pots\npots.names()",
    "three": "import subprocess, sys\n"
    "subprocess.run([sys.executable, '-c', 'pass'], check=True).returncode",
    "four": "1 + 1",
}
CODE = {
    "tools/__init__.py": "",
    "tools/steam.py": "def heat():\n    from tools import late\n    return late.HEAT\n",
    "tools/late.py": "HEAT = 2257\n",
    "tools/unused.py": "",
    "tools/pots.py": (
        "from pathlib import Path\nDATA = Path(__file__).parent / 'data'\n"
        "def names():\n    return [each.read_text() for each in sorted(DATA.glob('*.toml'))]\n"
    ),
    "tools/data/copper.toml": "copper",
    "tools/other/iron.toml": "iron",
    "wind.csv": "1",
}


class Book:
    """A book whose pages use modules and data below `code`; it knows what its pages gave."""

    def __init__(self, root: Path) -> None:
        self.root, self.code = root, root / "code"
        self.gave: dict[str, Results] = {}
        self.caches = 0
        chapters = [f"ch/{name}.qmd" for name in PAGES]
        files = {f"ch/{name}.qmd": f"# A\n\n```{{python}}\n{PAGES[name]}\n```\n" for name in PAGES}
        files |= {f"code/{name}": text for name, text in CODE.items()}
        files["_quarto.yml"] = (
            f"project: {{type: book}}\nbook: {{title: T, chapters: [{', '.join(chapters)}]}}\n"
            "mlsim-book:\n  depends: [code, 'code/*.csv']\n"
        )
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, "utf-8")

    def run(self, *pages: str) -> set[str]:
        """Run pages of the book, all if none is named; return those that weren't kept."""
        said: list[str] = []
        chapters = [f"ch/{name}.qmd" for name in pages or PAGES]
        cache = PageCache(self.root / f"cache-{self.caches}")
        project = load_project(self.root, Problems())
        execute_pages(project, Problems(), chapters=chapters, progress=said.append, cache=cache)
        return {line.split("/")[1].split(".")[0] for line in said if line.startswith("executed")}

    def keeps(self, *given: Any, name: str, **more: Any) -> Results:
        """Run a page in a kernel, and keep what it gives."""
        self.gave[name] = RUN(*given, name=name, **more)
        return self.gave[name]

    def again(self, *given: Any, name: str, **more: Any) -> Results:
        """Give what the page gave."""
        return self.gave[name]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """The book, after its pages ran."""
    book = Book(tmp_path_factory.mktemp("used"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "run_document", book.keeps)
        assert book.run() == set(PAGES)  # nothing is known of them yet
    return book


@pytest.fixture
def book(ran: Book, monkeypatch: pytest.MonkeyPatch) -> Book:
    """The book as it was, with a cache of its own in which each page is once."""
    for name, text in CODE.items():
        (ran.code / name).parent.mkdir(parents=True, exist_ok=True)
        (ran.code / name).write_text(text)
    monkeypatch.setattr(execute, "run_document", ran.again)
    ran.caches += 1
    assert ran.run() == set(PAGES)
    assert ran.run() == set()
    return ran


def test_an_edit_runs_the_pages_that_use_it(book: Book) -> None:
    """A page that starts a program (three) may use anything."""
    edits = {
        "tools/steam.py": {"one"},  # a module
        "tools/late.py": {"one"},  # one that a function imports
        "tools/__init__.py": {"one", "two"},
        "tools/unused.py": set(),
        "tools/data/copper.toml": {"two"},  # a file that is read
        "tools/other/iron.toml": set(),
        "wind.csv": {"one", "two", "four"},  # a file that is named by itself
    }
    for name, pages in edits.items():
        (book.code / name).write_text(CODE[name] + "\n")
        assert book.run() == pages | {"three"}, name
        assert book.run() == set(), name
        (book.code / name).write_text(CODE[name])
        assert book.run() == set(), name  # known from before


def test_files_that_come_and_go(book: Book) -> None:
    code = book.code
    (code / "tools" / "data" / "brass.toml").write_text("brass")
    assert book.run() == {"two", "three"}
    (code / "tools" / "data" / "brass.toml").unlink()
    assert book.run() == set()  # known from before
    (code / "tools" / "data" / "tin.txt").write_text("tin")  # listed, too
    assert book.run() == {"two", "three"}
    (code / "tools" / "other" / "steel.toml").write_text("steel")
    assert book.run() == {"three"}
    (code / "tools" / "steam").mkdir()  # a package hides the module of its name
    (code / "tools" / "steam" / "__init__.py").write_text("def heat():\n    return 1\n")
    assert book.run() == {"one", "two", "three"}
    (code / "coal.csv").write_text("1")
    assert book.run() == {"one", "two", "three", "four"}
    (code / "tools" / "unused.py").unlink()
    assert book.run() == {"one", "two", "three"}
    for name in ("coal.csv", "tools/data/tin.txt", "tools/other/steel.toml"):
        (code / name).unlink()
    shutil.rmtree(code / "tools" / "steam")


def test_compiled_files_count_as_their_source(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "run_document", book.keeps)
    assert list(book.code.rglob("*.pyc"))  # page two is read from these from now on
    for name in ("tools/data/copper.toml", "tools/pots.py"):
        (book.code / name).write_text(
            CODE[name].replace("copper", "zinc").replace("sorted", "list")
        )
        assert book.run("two") == {"two"}
    assert not any(each.endswith(".pyc") for each in book.gave["ch/two.qmd"].opened)


def results(*opened: Path) -> Callable[..., Results]:
    """Return what runs a page of one cell that opens these files and prints nothing."""
    return lambda *_, **__: Results(((),), (), tuple(map(str, opened)))


def test_a_page_that_runs_other_code_than_the_books_is_refused(
    make_book: MakeBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_book("mlsim-book:\n  depends: [code]\n", a_qmd="# A\n\n```{python}\n1\n```\n")
    copy = tmp_path / "elsewhere"
    for folder in (copy / "tools", copy / "plain", copy / "plain/tools", root / "code/tools"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
    project, cache = load_project(root, Problems()), PageCache(root / "cache")
    monkeypatch.setattr(execute, "run_document", results(copy / "tools" / "__init__.py"))
    with pytest.raises(SourceError, match=r"a\.qmd: .*elsewhere/tools,") as refused:
        execute_pages(project, Problems(), cache=cache)
    assert "pip install -e" in str(refused.value)
    for fine in (
        copy / "tools" / "other.py",  # no package
        copy / "plain" / "__init__.py",  # of which the book has none
        copy / "plain" / "tools" / "__init__.py",  # of another package
        root / "code" / "tools" / "__init__.py",
    ):
        monkeypatch.setattr(execute, "run_document", results(fine))
        execute_pages(project, Problems(), cache=cache, refresh=True)


def test_a_file_edited_while_a_page_runs_is_no_file_of_the_results(
    make_book: MakeBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's own `depends:` counts more than the book's."""
    root = make_book(
        "mlsim-book:\n  depends: other\n",
        a_qmd="---\nmlsim-book: {depends: code}\n---\n\n# A\n\n```{python}\n1\n```\n",
        **{"code/a.txt": "at first", "other/b.txt": "b"},
    )
    read: list[str] = []

    def run(*_: Any, **__: Any) -> Results:
        read.append((root / "code/a.txt").read_text())
        (root / "code/a.txt").write_text("later")
        return Results(((),), (), (str(root / "code/a.txt"),))

    monkeypatch.setattr(execute, "run_document", run)
    project, cache = load_project(root, Problems()), PageCache(root / "cache")
    for _ in range(3):
        execute_pages(project, Problems(), cache=cache)
    assert read == ["at first", "later"]  # the second run's results hold


def noted(monkeypatch: pytest.MonkeyPatch, *events: tuple[str, Sequence[Any]]) -> set[str]:
    """Return what a kernel notes of events that Python announces."""
    monkeypatch.setattr(opened_files, "_noted", set())
    for event, given in events:
        opened_files._note(event, tuple(given))
    return opened_files._noted


NOTED: list[tuple[str, Sequence[Any], str | None]] = [
    ("open", ("/p/a.csv", "r", 0), "/p/a.csv"),
    ("open", ("/p/a.csv", "r+b", 0), "/p/a.csv"),  # it may be read first
    ("open", ("/p/a.csv", "w", 0), None),
    ("open", ("/p/a.csv", None, os.O_RDONLY | os.O_CLOEXEC), "/p/a.csv"),
    ("open", ("/p/a.csv", None, os.O_WRONLY), None),
    ("open", ("/p/a.csv", None, os.O_RDWR), None),
    ("open", ("/p/a.csv", None, None), "/p/a.csv"),
    ("open", (b"/p/../q/b", "rb", 0), "/q/b"),
    ("open", (3, "r", 0), None),  # a file that is open already
    ("os.listdir", ("/p/data",), "/p/data/"),
    ("os.scandir", ("/p/data/",), "/p/data/"),
    ("os.listdir", (None,), f"{os.path.abspath('.')}/"),  # noqa: PTH100 - links stay
    ("os.listdir", (3,), None),
    ("sqlite3.connect", ("/p/a.db",), "/p/a.db"),
    ("sqlite3.connect/handle", ("/p/a.db",), None),
    ("subprocess.Popen", ("/usr/bin/wc", [], None, None), EVERYTHING),
    ("os.system", (b"wc",), EVERYTHING),
    ("os.fork", (), EVERYTHING),
    ("subprocess.Popen", ("/usr/bin/fc-list", [], None, None), None),  # lists fonts
    ("os.posix_spawn", ("system_profiler", [], {}), None),
    ("socket.connect", ("/p/a.csv",), None),
]


def test_what_a_kernel_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    for event, given, name in NOTED:
        assert noted(monkeypatch, (event, given)) == ({name} if name else set()), (event, given)
    compiled = f"/p/__pycache__/a.{sys.implementation.cache_tag}.pyc"
    noted(monkeypatch, ("open", (compiled, "r", 0)), ("open", ("/p/b.pyc", "r", 0)))
    found = json.loads(opened_files.opened())  # with the loaded modules
    assert found == sorted(found)
    assert {"/p/a.py", "/p/b.pyc", os.path.abspath(opened_files.__file__)} <= set(found)  # noqa: PTH100
    assert compiled not in found


def test_what_counts(tmp_path: Path) -> None:
    (tmp_path / "pkg" / "__pycache__").mkdir(parents=True)
    for name in ("pkg/a.py", "pkg/__pycache__/a.pyc", "x.toml", "other.txt"):
        (tmp_path / name).write_text("1")
    found = read_depends(tmp_path, ("pkg/", "*.toml"))
    assert set(found.files) == {"pkg/a.py", "x.toml", "*.toml"}
    here = os.path.realpath(tmp_path)
    assert found.uses([f"{here}/pkg/a.py", f"{here}/other.txt", f"{here}/pkg-2/a.py"]) == (
        "*.toml", "pkg/", "pkg/a.py", "x.toml",
    )  # fmt: skip
    assert found.uses([f"{here}/pkg/gone.py"]) == ("*.toml", "pkg/", "pkg/gone.py", "x.toml")
    assert found.uses([f"{here}/pkg/", f"{here}/pkg/__pycache__/a.pyc"]) == (
        "*.toml", "pkg/", "x.toml",
    )  # fmt: skip
    assert found.uses([f"{here}/pkg/a.py", EVERYTHING]) == (EVERYTHING,)
    with pytest.raises(SourceError, match="'nowhere', which does not exist"):
        read_depends(tmp_path, ("nowhere",))


def test_a_key_of_what_is_used(tmp_path: Path) -> None:
    """Of a file its content, of a folder the names in it, of a pattern what matches it."""
    (tmp_path / "pkg" / "deep").mkdir(parents=True)
    for name in ("pkg/a.py", "pkg/deep/b.py", "x.toml"):
        (tmp_path / name).write_text("1")

    def keys() -> list[str]:
        found = read_depends(tmp_path, ("pkg", "*.toml"))
        return [found.key([each]) for each in ("pkg/a.py", "pkg/", "pkg/gone.py", "*.toml", "*")]

    def differ() -> list[bool]:
        nonlocal before
        before, old = keys(), before
        return [a != b for a, b in zip(before, old, strict=True)]

    before = keys()
    assert len(set(before)) == 5
    (tmp_path / "pkg/a.py").write_text("2")
    assert differ() == [True, False, False, False, True]
    (tmp_path / "pkg/deep/c.py").write_text("1")  # the name of the folder stands for what is in it
    assert differ() == [False, False, False, False, True]
    (tmp_path / "pkg/gone.py").write_text("1")
    assert differ() == [False, True, True, False, True]
    (tmp_path / "y.toml").write_text("1")
    assert differ() == [False, False, False, True, True]
