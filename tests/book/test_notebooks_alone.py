"""Every notebook runs alone: an empty folder, and nothing but the built wheel."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import measured_form
import pytest
from sampled import sampled

from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project
from mlsim_book.render.live_code import Code, idle_lines
from mlsim_book.render.notebooks import is_shown
from mlsim_book.render.wheel import build_wheel
from mlsim_book.run.pages import parse_pages

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))


@pytest.fixture(scope="session")
def student(tmp_path_factory):
    """A student's Python: the wheel with its notebook extra, and a kernel."""
    folder = tmp_path_factory.mktemp("student")
    made = build_wheel(ROOT / "mlsim_pkg")
    wheel = folder / made.name
    wheel.write_bytes(made.data)
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    # What is imported is compiled then, as in the Makefile.
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-compile"]
    install += ["--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, f"{wheel}[notebook]", "nbval", "ipykernel"], check=True)
    return python


@pytest.mark.slow
@pytest.mark.parametrize("notebook", sampled(NOTEBOOKS, 7, seed=25), ids=lambda path: path.stem)
def test_notebook_prints_what_is_stored(notebook, student, tmp_path):
    shutil.copy(notebook, tmp_path)
    (tmp_path / "conftest.py").write_text(measured_form.as_conftest())
    ours = ("PYTHON", "PYTEST", "MLSIM")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    command = [student, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "-q", notebook.name]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def test_the_notebooks_are_those_of_the_chapters():
    """A chapter that shows code has a notebook, and no notebook lacks its chapter."""
    shows = re.compile(r"(?m)^```\{python\}\n(?!(?:#\|.*\n)*#\| *(?:echo|include): *false)")
    book = (ROOT / "_quarto.yml").read_text(encoding="utf-8")
    chapters = {
        Path(name).with_suffix("")
        for name in re.findall(r"^ +- (\S+\.qmd)$", book, re.MULTILINE)
        if shows.search((ROOT / name).read_text(encoding="utf-8"))
    }
    assert chapters
    assert chapters == {path.relative_to(ROOT / "notebooks").with_suffix("") for path in NOTEBOOKS}


def test_no_line_of_a_notebook_feeds_nothing_in_it():
    """What no reader sees is there for something that the notebook shows, and is folded."""
    idle, open_cells = {}, set()
    for page in parse_pages(load_project(ROOT, Problems()), Problems()):
        path = ROOT / "notebooks" / Path(page.chapter.source).with_suffix(".ipynb")
        if path not in NOTEBOOKS:
            continue
        on_page = page.document.cells
        shown = {cell.source for cell in on_page if is_shown(cell, page.defaults)}
        unseen = {cell.source for cell in on_page} - shown
        cells = []
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] != "code":
                continue
            folded = cell["metadata"].get("jupyter", {}).get("source_hidden", False)
            if source in unseen and not folded:
                open_cells.add((path.stem, cell["id"]))
            seen = source in shown or not (folded or source in unseen)
            untold = "nbval-ignore-output" in cell["metadata"].get("tags", ())  # maybe a figure
            shows = "all" if untold or cell["outputs"] else "nothing"
            cells.append(Code(source, seen=seen, shows=shows))
        idle[path.stem] = idle_lines(cells)
    assert idle == dict.fromkeys((path.stem for path in NOTEBOOKS), 0)
    assert not open_cells
