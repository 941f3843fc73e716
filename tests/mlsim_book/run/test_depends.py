"""What a page depends on: an edit runs the pages again that used what was edited, and no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.project import load_project
from mlsim_book.run.depends import read_depends
from mlsim_book.run.opened_files import EVERYTHING
from mlsim_book.run.page_cache import PageCache
from mlsim_book.run.pages import execute_pages

MakeBook = Callable[..., Path]
Build = Callable[[], set[str]]

START = "import sys; sys.path.insert(0, '../code')\nsys.dont_write_bytecode = {}\n"
PAGES = {
    "ch__one_qmd": "# One\n\n```{python}\n" + START.format(True) + "import tools.steam\n"
    "tools.steam.heat()\n```\n",
    "ch__two_qmd": "# Two\n\n```{python}\n" + START.format(False) + "from tools import pots\n"
    "pots.names()\n```\n",
    "ch__three_qmd": "# Three\n\n```{python}\n" + START.format(False) + "import subprocess\n"
    "subprocess.run([sys.executable, '-c', 'pass'], check=True).returncode\n```\n",
    "ch__four_qmd": "# Four\n\n```{python}\n1 + 1\n```\n",
}  # fmt: skip
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


@pytest.fixture
def built(make_book: MakeBook) -> tuple[Path, Build]:
    """A book whose pages use modules and data below `code`, and how to run it."""
    root = make_book("mlsim-book:\n  depends: [code, 'code/*.csv']\n", **PAGES)
    for name, text in CODE.items():
        (root / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "code" / name).write_text(text)

    def build() -> set[str]:
        said: list[str] = []
        cache = PageCache(root / "cache")
        execute_pages(load_project(root, Problems()), Problems(), progress=said.append, cache=cache)
        return {line.split("/")[1].split(".")[0] for line in said if line.startswith("executed")}

    assert build() == {"one", "two", "three", "four"}  # nothing is known of them yet
    assert build() == set()
    return root / "code", build


EDITS = {
    "a module": ("tools/steam.py", {"one"}),
    "a module that a function imports": ("tools/late.py", {"one"}),
    "a package": ("tools/__init__.py", {"one", "two"}),
    "a module that no page uses": ("tools/unused.py", set()),
    "a data file that is read": ("tools/data/copper.toml", {"two"}),
    "a data file that is not": ("tools/other/iron.toml", set()),
    "a file that is named by itself": ("wind.csv", {"one", "two", "four"}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_runs_the_pages_that_use_it(built: tuple[Path, Build], edit: str) -> None:
    (code, build), (name, pages) = built, EDITS[edit]
    before = (code / name).read_text()
    (code / name).write_text(before + "\n")
    assert build() == pages | {"three"}  # a page that starts a program may use anything
    assert build() == set()
    (code / name).write_text(before)
    assert build() == set()  # known from before


def test_files_that_come_and_go(built: tuple[Path, Build]) -> None:
    code, build = built
    (code / "tools" / "data" / "brass.toml").write_text("brass")
    assert build() == {"two", "three"}
    (code / "tools" / "data" / "brass.toml").unlink()
    assert build() == set()  # known from before
    (code / "tools" / "data" / "tin.txt").write_text("tin")  # listed, too
    assert build() == {"two", "three"}
    (code / "tools" / "other" / "steel.toml").write_text("steel")
    assert build() == {"three"}
    (code / "tools" / "steam").mkdir()  # a package hides the module of its name
    (code / "tools" / "steam" / "__init__.py").write_text("def heat():\n    return 1\n")
    assert build() == {"one", "two", "three"}
    (code / "coal.csv").write_text("1")
    assert build() == {"one", "two", "three", "four"}
    (code / "tools" / "unused.py").unlink()
    assert build() == {"one", "two", "three"}


def test_a_page_that_runs_other_code_than_the_books_is_refused(
    make_book: MakeBook, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere"
    page = "# A\n\n```{python}\n" + f"import sys; sys.path.insert(0, {str(copy)!r})\n"
    root = make_book(
        "mlsim-book:\n  depends: [code]\n",
        ch__one_qmd=page + "import tools\n```\n",
        ch__two_qmd=page + "import plain.tools\n```\n",
    )
    for name in ("tools", "plain", "plain/tools"):
        (copy / name).mkdir(parents=True, exist_ok=True)
        (copy / name / "__init__.py").write_text("")
    (root / "code" / "tools").mkdir(parents=True)
    (root / "code" / "tools" / "__init__.py").write_text("")
    project, cache = load_project(root, Problems()), PageCache(root / "cache")
    with pytest.raises(SourceError, match="elsewhere/tools") as refused:
        execute_pages(project, Problems(), chapters=["ch/one.qmd"], cache=cache)
    assert "pip install -e" in str(refused.value)
    execute_pages(project, Problems(), chapters=["ch/two.qmd"], cache=cache)  # of another package


def test_compiled_files_count_as_their_source(built: tuple[Path, Build]) -> None:
    code, build = built
    assert list(code.rglob("*.pyc"))  # page two is read from these from now on
    (code / "tools" / "data" / "copper.toml").write_text("bright copper")
    assert build() == {"two", "three"}
    (code / "tools" / "pots.py").write_text(CODE["tools/pots.py"].replace("sorted", "list"))
    assert build() == {"two", "three"}


def test_a_file_edited_while_a_page_runs(make_book: MakeBook) -> None:
    cell = "text = open('../code/a.txt').read()\nopen('../code/a.txt', 'w').write('later')\ntext"
    root = make_book(
        "mlsim-book:\n  depends: code\n",
        ch__a_qmd=f"# A\n\n```{{python}}\n{cell}\n```\n",
        **{"code/a.txt": "at first"},
    )
    project, cache = load_project(root, Problems()), PageCache(root / "cache")
    (first,) = execute_pages(project, Problems(), cache=cache)
    assert "at first" in first.markdown
    (second,) = execute_pages(project, Problems(), cache=cache)
    assert "later" in second.markdown


def test_listing_the_fonts_starts_a_program_that_does_not_count(make_book: MakeBook) -> None:
    for name in ("fc-list", "wc"):
        cell = f"import subprocess\ntry: subprocess.run(['./{name}'])\nexcept OSError: pass"
        root = make_book(
            "mlsim-book:\n  depends: code\n", a_qmd=f"# A\n\n```{{python}}\n{cell}\n```\n"
        )
        (root / "code").mkdir(exist_ok=True)
        project, cache = load_project(root, Problems()), PageCache(root / "cache")
        said: list[str] = []
        execute_pages(project, Problems(), cache=cache)
        (root / "code" / f"{name}.txt").write_text("new")
        execute_pages(project, Problems(), cache=cache, progress=said.append)
        assert said[0].startswith("unchanged" if name == "fc-list" else "executed")


def test_what_counts(tmp_path: Path) -> None:
    (tmp_path / "pkg" / "__pycache__").mkdir(parents=True)
    for name in ("pkg/a.py", "pkg/__pycache__/a.pyc", "x.toml", "other.txt"):
        (tmp_path / name).write_text("1")
    found = read_depends(tmp_path, ("pkg", "*.toml"))
    assert set(found.files) == {"pkg/a.py", "x.toml", "*.toml"}
    here = os.path.realpath(tmp_path)
    assert found.uses([f"{here}/pkg/a.py", f"{here}/other.txt"]) == (
        "*.toml", "pkg/", "pkg/a.py", "x.toml",
    )  # fmt: skip
    assert found.uses([f"{here}/pkg/gone.py"]) == ("*.toml", "pkg/", "pkg/gone.py", "x.toml")
    assert found.uses([f"{here}/pkg/a.py", EVERYTHING]) == (EVERYTHING,)
    with pytest.raises(SourceError, match="'nowhere', which does not exist"):
        read_depends(tmp_path, ("nowhere",))
