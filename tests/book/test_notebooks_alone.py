"""Every notebook runs alone: an empty folder, and nothing but the built wheel."""

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

import measured_form
import pytest

from mlsim_book.render.wheel import build_wheel

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))


@pytest.fixture(scope="session")
def student(tmp_path_factory):
    """A student's Python: the wheel with its notebook extra, and a kernel."""
    folder = tmp_path_factory.mktemp("student")
    made = build_wheel(ROOT / "mlsim_pkg")
    wheel = folder / made.name
    wheel.write_bytes(made.data)
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, f"{wheel}[notebook]", "nbval", "ipykernel"], check=True)
    return python


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_what_is_stored(notebook, student, tmp_path):
    shutil.copy(notebook, tmp_path)
    (tmp_path / "conftest.py").write_text(measured_form.as_conftest())
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "PYTEST", "MLSIM"))
    }
    run = subprocess.run(
        [student, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "-q", notebook.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def test_the_notebooks_are_those_of_the_chapters():
    """A chapter that shows code has a notebook, and no notebook lacks its chapter."""
    shows = re.compile(
        r"^```\{python\}\n(?!(?:#\|.*\n)*#\| *(?:echo|include): *false)", re.MULTILINE
    )
    chapters = {
        path.relative_to(ROOT).with_suffix("")
        for folder in (".", "tutorials", "projects", "zoo")
        for path in (ROOT / folder).glob("*.qmd")
        if shows.search(path.read_text(encoding="utf-8"))
    }
    assert chapters
    assert chapters == {path.relative_to(ROOT / "notebooks").with_suffix("") for path in NOTEBOOKS}
