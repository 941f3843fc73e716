"""A notebook's first cell: each way to the package, none where it is there, words where all fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kept import blocks
from pots import SETTINGS, write_package

from mlsim_book.model import Project
from mlsim_book.render.notebooks import install_cell
from mlsim_book.render.wheel import build_wheel
from mlsim_book.site.template import Offer, write_offer

CLOSED = "http://127.0.0.1:9/book"


def project(**more: str | None) -> Project:
    return Project(Path(), "Clay", (), metadata={"mlsim-book": SETTINGS}, **more)


class Student:
    """A student's folder and Python; nothing is asked of any index."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.packages = folder / "work", folder / "packages"
        self.folder.mkdir()
        self.packages.mkdir()

    def run(self, project: Project, **pinned: str) -> subprocess.CompletedProcess[str]:
        cell = install_cell(project, **pinned)
        assert cell is not None
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.packages),
            "PIP_TARGET": str(self.packages),
            "PIP_NO_INDEX": "1",
            "PIP_RETRIES": "0",
            "PIP_NO_BUILD_ISOLATION": "0",  # which switches isolation off
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        tried = f"{cell['source']}\nimport pots\nprint(pots.LITRES, 'litres')"
        return subprocess.run(
            [sys.executable, "-P", "-c", tried],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    return " ".join(done.stderr.split("ModuleNotFoundError: ")[1].split())


@pytest.fixture
def student(tmp_path: Path) -> Student:
    return Student(tmp_path)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path / "repository" / "pots_pkg")


@pytest.fixture
def site(
    tmp_path: Path, package: Path, serve_folder: Callable[[Path], Iterator[str]]
) -> Iterator[str]:
    folder = tmp_path / "site"
    for address in serve_folder(folder):
        write_offer(Offer({"a.ipynb": ""}, build_wheel(package)), project(site_url=address), folder)
        yield address


@pytest.mark.parametrize("place", [".", ".."])
def test_a_wheel_beside_it(student: Student, package: Path, place: str) -> None:
    wheel = build_wheel(package)
    (student.folder / place / wheel.name).write_bytes(wheel.data)
    assert student.run(project()).stdout == "3 litres\n"


def test_from_the_repository_where_the_site_is_gone(
    student: Student, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(package.parent), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q", "-b", "v1"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    address = "https://example.org/clay"  # for git, this folder
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{package.parent.as_uri()}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", address)
    done = student.run(project(site_url=CLOSED, repo_url=address, repo_branch="v1"))
    assert done.stdout.endswith("3 litres\n")


def test_from_the_site_past_a_broken_wheel(student: Student, site: str) -> None:
    (student.folder / "pots-1.0-py3-none-any.whl").write_bytes(b"half a download")
    done = student.run(project(site_url=f"{site}/"))
    assert "invalid" in done.stdout
    assert done.stdout.endswith("3 litres\n")


def test_where_it_is_installed_nothing_happens(student: Student, package: Path) -> None:
    (student.packages / "pots.py").write_text("LITRES = 5\n")
    (student.packages / "pip.py").write_text("open('called', 'w')\n")
    wheel = build_wheel(package)
    (student.folder / wheel.name).write_bytes(wheel.data)
    assert student.run(project(site_url=CLOSED)).stdout == "5 litres\n"
    assert not (student.folder / "called").exists()
    (student.packages / "pots.py").unlink()
    student.run(project())
    assert (student.folder / "called").exists()


ADDRESSES = {"neither": {}, "site": {"site_url": CLOSED}, "repository": {"repo_url": "file:///no"}}


@pytest.mark.parametrize("where", ADDRESSES)
def test_where_all_fails_it_says_what_to_do(student: Student, where: str) -> None:
    begin = "pots is not installed, and this cell could not install it. If it called pip, what pip said stands above. Try one of these:"
    done = student.run(project(**ADDRESSES[where]))
    assert said(done) == f"{begin} {' '.join(blocks('install_words.txt')[where])}"
    assert bool(done.stdout) == (where != "neither")  # the words of pip


def test_a_version_that_is_asked_for(student: Student, package: Path) -> None:
    old, wanted = build_wheel(package), {"version": "2.0"}
    (student.folder / old.name).write_bytes(old.data)
    words = said(student.run(project(), **wanted))
    assert words.startswith("pots 2.0 is not installed")
    assert "pots-2.0-...whl" in words
    assert "Your teacher has it." in words
    assert student.run(project(), version="1.0").stdout == "3 litres\n"
    assert "pots 2.0 is not" in said(student.run(project(), **wanted))  # another one is there
    new = build_wheel(write_package(package.parent / "new", "2.0"))
    (student.folder / new.name).write_bytes(new.data)
    done = student.run(project(), **wanted)
    assert (done.returncode, done.stdout) == (0, "3 litres\n"), done.stderr


def test_a_version_comes_from_its_commit_before_the_newest() -> None:
    cell = install_cell(
        project(site_url="https://a.org/b", repo_url="https://c.org/d/"), version="1.0", commit="e5"
    )
    assert cell is not None
    ways = re.findall(r"ways\.append\((.*)\)", cell["source"])
    assert ways == [
        '["pots[all] @ git+https://c.org/d@e5#subdirectory=pots_pkg"]',
        '["-r", "https://a.org/b/notebooks/pots.txt"]',
    ]
