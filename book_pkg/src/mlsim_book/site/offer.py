"""What a site offers to students: notebooks, the wheel of their package, both in a zip.

| the book has | a page offers | the notebook's first cell takes the package from |
|---|---|---|
| `site-url` | the notebook, a line for pip | the site |
| `repo-url` | the notebook, Colab where that can open it | the repository |
| neither | a zip of the notebook and the wheel | the wheel beside it |

The wheel lies among the notebooks, so that in a copy of the site on a disk they find it.
"""

from __future__ import annotations

import html as htmllib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, Project
from mlsim_book.paper.formats import zip_time
from mlsim_book.paper.site_zip import pack
from mlsim_book.read.settings import book_package, web_address
from mlsim_book.render.install import FOLDER, has_address, requirements_path
from mlsim_book.render.notebooks import make_notebooks, notebook_path
from mlsim_book.render.wheel import Wheel

_GITHUB = re.compile(r"https?://github\.com/([^/]+/[^/]+?)(?:\.git)?/?")


@dataclass(frozen=True)
class Offer:
    """The notebooks of a site, and the wheel that it carries.

    Attributes
    ----------
    notebooks
        Their texts, by path from the folder of notebooks.
    """

    notebooks: Mapping[str, str]
    wheel: Wheel | None = None


@dataclass(frozen=True)
class Offered:
    """What of it lies on the site, by path from its root."""

    notebooks: frozenset[str] = frozenset()
    zipped: bool = False
    install: str = ""  # the line for pip

    @property
    def zips(self) -> list[str]:
        """The zips of a notebook and the wheel."""
        return [_zip_name(each) for each in self.notebooks] if self.zipped else []

    def links(self, project: Project, chapter: Chapter, base: str) -> dict[str, Any]:
        """Return what a page's template needs; "" for what the page hasn't."""
        name = f"{FOLDER}/{notebook_path(chapter.source)}"
        if name not in self.notebooks:
            return {"notebook": "", "zipped": False, "colab": "", "install": ""}
        match = _GITHUB.fullmatch(project.repo_url or "")
        colab = (
            f"https://colab.research.google.com/github/{match[1]}/blob/{project.repo_branch}/{name}"
            if match
            else ""
        )
        return {
            "notebook": htmllib.escape(base + (_zip_name(name) if self.zipped else name)),
            "zipped": self.zipped,
            "colab": htmllib.escape(colab),
            "install": htmllib.escape(self.install, quote=False),
        }


def committed_notebooks(project: Project) -> dict[str, str]:
    """Return the notebooks that lie in the repository, as Colab opens them."""
    names = [notebook_path(chapter.source) for chapter in project.chapters]
    folder = project.root / FOLDER
    return {
        name: (folder / name).read_text(encoding="utf-8")
        for name in names
        if (folder / name).is_file()
    }


def notebooks_for(project: Project, site_url: str | None, *, jobs: int = 2) -> Mapping[str, str]:
    """Return the notebooks for a site: those in the repository, if they have its address.

    Else they are made again from results that are kept; those in the repository stay as they are.
    """
    there = committed_notebooks(project)
    if (site_url or "").rstrip("/") == (project.site_url or "").rstrip("/") or not there:
        return there
    made = make_notebooks(replace(project, site_url=site_url), Problems(), jobs=jobs)
    return {name: text for name, text in made.items() if name in there}


def write_offer(offer: Offer, project: Project, out: Path) -> Offered:
    """Write notebooks, wheel and zips into a site."""
    for name, text in offer.notebooks.items():
        path = out / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    names = frozenset(f"{FOLDER}/{name}" for name in offer.notebooks)
    package, wheel = book_package(project.metadata), offer.wheel
    if package is None or wheel is None or not names:
        return Offered(names)
    (out / FOLDER / wheel.name).write_bytes(wheel.data)
    if project.site_url:
        line = f"{package.wanted} @ {web_address(project.site_url)}/{FOLDER}/{wheel.name}"
        (out / requirements_path(package)).write_text(f"{line}\n", encoding="utf-8")
        return Offered(names, install=f'pip install "{line}"')
    if not has_address(project):
        for name, text in offer.notebooks.items():
            both = [(posixpath.basename(name), text.encode()), (wheel.name, wheel.data)]
            pack(out / FOLDER / _zip_name(name), both, zip_time(), compress=False)
        return Offered(names, zipped=True)
    return Offered(names)


def _zip_name(notebook: str) -> str:
    return f"{posixpath.splitext(notebook)[0]}.zip"
