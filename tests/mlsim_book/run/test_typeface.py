"""The typeface in which Matplotlib draws a page's figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlsim_book.caches import assets_folder
from mlsim_book.run import typeface


class Manager:
    """Matplotlib's list of fonts, as far as fonts are added to it."""

    def __init__(self) -> None:
        self.files: list[Path] = []

    def addfont(self, file: Path) -> None:
        self.files.append(file)


@pytest.mark.usefixtures("with_assets")
def test_the_sites_fonts_are_written_as_matplotlib_reads_them_twice_the_same(
    tmp_path: Path,
) -> None:
    font = pytest.importorskip("matplotlib.ft2font").FT2Font
    manager, settings = Manager(), {"font.family": ["sans-serif"]}
    typeface.add_fonts(manager, settings)
    read = [font(str(each)) for each in manager.files]
    assert {each.family_name for each in read} == {settings["font.family"][0]} == {typeface.FAMILY}
    assert [each.style_name for each in read] == ["Bold", "Italic", "Regular"]
    assert all(set(map(ord, "Aµ×–")) <= set(each.get_charmap()) for each in read)
    (tmp_path / "node_modules").symlink_to(assets_folder() / "node_modules")
    again = typeface.write_fonts(tmp_path)
    for each in manager.files:
        assert (again / each.name).read_bytes() == each.read_bytes()


@pytest.mark.parametrize("family", [["sans-serif"], ["serif"]])
def test_a_page_keeps_its_own_choice_and_needs_no_packages(
    family: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if family == ["sans-serif"]:
        monkeypatch.setattr(typeface, "assets_folder", lambda: tmp_path)
    manager: Any = Manager()
    settings = {"font.family": family}
    typeface.add_fonts(manager, settings)
    assert (manager.files, settings) == ([], {"font.family": family})
