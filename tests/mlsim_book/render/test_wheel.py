"""The wheel of a book's package: its name, its bytes, when it is built again, what stops it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pots import PROJECT, SETTINGS, write_package

from mlsim_book.errors import BookError
from mlsim_book.model import Project
from mlsim_book.render import wheel
from mlsim_book.render.wheel import book_wheel, build_wheel


def test_the_same_sources_make_the_same_wheel_and_others_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = write_package(tmp_path / "a"), write_package(tmp_path / "deep" / "b")
    for name in ("src/pots/__pycache__/a.pyc", "src/pots/.hidden", "build/lib/pots/old.py"):
        (second / name).parent.mkdir(parents=True, exist_ok=True)
        (second / name).write_text("left over")
    made = []
    for each in (first, second):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / each.name / "cache"))
        made.append(build_wheel(each))
    assert made[0] == made[1]
    assert made[0].name == "pots-1.0-py3-none-any.whl"
    with zipfile.ZipFile(io.BytesIO(made[0].data)) as archive:
        assert "pots/__init__.py" in archive.namelist()
    assert not [each for each in second.iterdir() if each.name in {"dist", "pots.egg-info"}]
    with monkeypatch.context() as patch:
        patch.delattr(wheel, "_build")
        assert build_wheel(second) == made[1]
    (second / "src" / "pots" / "__init__.py").write_text("LITRES = 4\n")
    assert build_wheel(second).data != made[1].data


def test_a_backend_of_its_own(tmp_path: Path) -> None:
    folder = write_package(tmp_path / "pots")
    own = 'build-backend = "oven:bake"\nbackend-path = ["tools"]'
    (folder / "pyproject.toml").write_text(
        PROJECT.replace('build-backend = "hatchling.build"', own)
    )
    (folder / "tools").mkdir()
    (folder / "tools" / "oven.py").write_text("import hatchling.build as bake\n")
    assert build_wheel(folder).name == "pots-1.0-py3-none-any.whl"


def broken(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "pyproject.toml").write_text(text)


FAULTS = {
    "no package": (
        lambda folder: (folder / "pyproject.toml").unlink(),
        "`mlsim-book: path:` is 'pots_pkg', where there is no pyproject.toml",
    ),
    "no TOML": (broken("[project"), "pyproject.toml: can't be read"),
    "another name": (
        broken(PROJECT.replace('"pots"', '"pans"').replace(
            "[project]", '[tool.hatch.build.targets.wheel]\npackages = ["src/pots"]\n[project]')),
        "is 'pots', and pots_pkg makes pans-1.0-py3-none-any.whl",
    ),
    "no backend": (
        broken(PROJECT.replace("hatchling", "kiln")),
        "No module named 'kiln'\n  What builds it must be installed here: python -m pip install 'kiln'",
    ),
    "no version": (broken(PROJECT.replace('version = "1.0"\n', "")), "`project.version`"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_stops_it(tmp_path: Path, fault: str) -> None:
    harm, said = FAULTS[fault]
    harm(write_package(tmp_path / "pots_pkg"))
    with pytest.raises(BookError) as caught:
        book_wheel(Project(tmp_path, "Clay", (), metadata={"mlsim-book": SETTINGS}))
    assert said in str(caught.value)
    for settings in ({}, {"package": "json"}):  # no package, none whose place is known
        assert book_wheel(Project(Path(), "T", (), metadata={"mlsim-book": settings})) is None
