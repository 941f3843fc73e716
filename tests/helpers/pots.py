"""A small package and a book of it, to try how a notebook gets what it imports."""

from __future__ import annotations

from pathlib import Path

from kept import text

from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project
from mlsim_book.render.notebooks import write_notebooks

PROJECT = text("pots_pyproject.toml")
BOOK = text("pots_quarto.yml")
SETTINGS = {"package": "pots", "path": "pots_pkg", "extras": ["all"]}


def write_package(folder: Path, version: str = "1.0") -> Path:
    """Write the package into a folder."""
    (folder / "src" / "pots").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT.replace("1.0", version), encoding="utf-8")
    (folder / "src" / "pots" / "__init__.py").write_text("LITRES = 3\n", encoding="utf-8")
    return folder


def write_book(root: Path, *addresses: str) -> Path:
    """Write a book of the package, with its notebooks; `addresses` are lines of its YAML."""
    write_package(root / "pots_pkg")
    (root / "sub").mkdir()
    lines = "".join(f"  {each}\n" for each in addresses)
    (root / "_quarto.yml").write_text(BOOK.replace("  chapters", f"{lines}  chapters"), "utf-8")
    (root / "index.qmd").write_text("# Welcome\n\nNo code.\n", "utf-8")
    text = "# Glaze\n\nBack to the [start](../index.qmd).\n\n```{python}\nprint(6 * 7)\n```\n"
    (root / "sub" / "glaze.qmd").write_text(text, "utf-8")
    write_notebooks(load_project(root, Problems()), root / "notebooks", Problems())
    return root
