"""The first cell of a notebook: it gets the package where that is missing, as in Colab.

It looks in this order: a wheel beside the notebook or in the folder above, the site of the
book, its repository. It is plain Python, so that a failure is seen: `%pip` goes on after one.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from mlsim_book.model import Project
from mlsim_book.read.yamlfile import BookPackage, book_package, web_address

FOLDER = "notebooks"  # of notebooks and the wheel, in the repository and on the site

_CELL = """\
# {about}, this cell does nothing.
import importlib.{needed}
import subprocess
import sys
from pathlib import Path

if {missing}:
    ways = [[f"{{wheel}}{extras}"] for up in (".", "..") for wheel in Path(up).glob("{wheels}")]
{elsewhere}    for way in ways:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", *way]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode == 0:
            break
        print(done.stderr)
    importlib.invalidate_caches()
    if {missing}:
        raise ModuleNotFoundError(
{message}
        )"""


def install_cell(project: Project, *, version: str = "", commit: str = "") -> dict[str, Any] | None:
    """Return the cell that gets the book's package; None if the book names none.

    With a version it gets that one, of that commit if one is given, and says so where it can't:
    numbers that were computed with one version are asked for with the same.
    """
    package = book_package(project.metadata)
    if package is None:
        return None
    missing = f'importlib.util.find_spec("{package.name}") is None'
    about, needed = f"Where {package.name} is installed", "util"
    if version:
        about = f"The questions were made with {package.name} {version}. Where that is installed"
        needed = "metadata\nimport importlib.util"
        missing += f' or importlib.metadata.version("{package.name}") != "{version}"'
    ways = [
        ["-r", f"{site}/{requirements_path(package)}"] if where == "site" else [site]
        for where, site in _addresses(project, package, version=version, commit=commit)
    ]
    source = _CELL.format(
        about=about,
        needed=needed,
        missing=missing,
        extras=package.with_extras,
        wheels=f"{package.name.lower()}-{version or '*'}{'-*' if version else ''}.whl",
        elsewhere="".join(f"    ways.append({json.dumps(way)})\n" for way in ways),
        message="\n".join(
            f"            {json.dumps(line + chr(10))}"
            for line in _message(project, package, version)
        ),
    )
    return {"cell_type": "code", "id": "install", "metadata": {}, "outputs": [], "source": source}


def requirements_path(package: BookPackage) -> str:
    """Return the file that names the site's wheel: its own name never changes, the wheel's does.

    >>> requirements_path(BookPackage("kettle", None, ()))
    'notebooks/kettle.txt'
    """
    return f"{FOLDER}/{package.name.lower()}.txt"


def carries_wheel(project: Project) -> bool:
    """Say whether the site of a book has the wheel of a package: one whose place is known."""
    package = book_package(project.metadata)
    return package is not None and package.path is not None


def has_address(project: Project) -> bool:
    """Say whether a notebook can get the package by itself."""
    return bool(project.repo_url or (project.site_url and carries_wheel(project)))


def _addresses(
    project: Project, package: BookPackage, *, version: str, commit: str
) -> Iterator[tuple[str, str]]:
    """Yield where the package is to be had: the quick way first, or with a version the sure one."""
    found = []
    if project.site_url and carries_wheel(project):
        found.append(("site", web_address(project.site_url)))
    if project.repo_url:
        where = f"git+{web_address(project.repo_url)}@{commit or project.repo_branch}"
        where += f"#subdirectory={package.path}" if package.path else ""
        found.append(("repository", f"{package.wanted} @ {where}"))
    yield from reversed(found) if version else found


def _message(project: Project, package: BookPackage, version: str) -> Iterator[str]:
    """Yield the lines that say what a student can do."""
    name = f"{package.name} {version}".strip()
    site = project.site_url if carries_wheel(project) else None
    yield f"{name} is not installed, and this cell could not install it."
    yield "If it called pip, what pip said stands above. Try one of these:"
    ways = []
    if has_address(project):
        ways.append("Connect to the network, and run this cell again.")
    if site:
        ways.append(
            f"On {web_address(site)}/, copy the line that begins with `pip install` from the top of"
            " a chapter, run it in a terminal, and restart the notebook."
        )
    if package.path is not None:
        wheel = f"{package.name.lower()}-{version + '-' if version else ''}...whl"
        here = f"Put the file {wheel} into the folder of this notebook (in Colab: into Files), and"
        here += " run this cell again."
        if version:
            here += " Your teacher has it."
        elif site:
            here += " That line has its address."
        elif not project.repo_url:
            here += f" The chapter's page offers both in a zip. For what {name} uses, pip needs a"
            here += " network."
        clone = f'run pip install "./{package.path}{package.with_extras}" in a terminal'
        ways += [here, f"In a copy of the book's repository, {clone}, and restart the notebook."]
    elif not project.repo_url:
        ways.append(f"Run pip install {name} in a terminal, and restart the notebook.")
    for way in ways:
        yield from textwrap.wrap(
            f"- {way}", 84, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
