"""The site's fonts: two parts of a face, cut once, with nothing asked for in vain."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import ToolError
from mlsim_book.render.assets import load_assets
from mlsim_book.site import fonts
from mlsim_book.site.shared_files import write_shared


def letters(face: str) -> set[int]:
    """Return the letters that a face is asked for."""
    found = re.search(r"unicode-range:([^;}]+)", face)
    assert found
    pairs = [part.strip().upper()[2:].split("-") for part in found[1].split(",")]
    return {each for pair in pairs for each in range(int(pair[0], 16), int(pair[-1], 16) + 1)}


def test_a_face_is_asked_for_each_of_its_letters_once(with_assets: Path, tmp_path: Path) -> None:
    (tmp_path / "fonts").mkdir()
    css = fonts.write_fonts(load_assets(), tmp_path)
    faces = re.findall(r"@font-face\s*\{[^}]*\}", css)
    named = {each: next(f for f in faces if f"/{each}.woff2" in f) for each in (
        "KaTeX_Main-Regular-core", "KaTeX_Main-Regular",
        "source-sans-3-latin-wght-normal-core", "source-sans-3-latin-wght-normal",
    )}  # fmt: skip
    for name in ("KaTeX_Main-Regular", "source-sans-3-latin-wght-normal"):
        core, rest = letters(named[f"{name}-core"]), letters(named[name])
        assert not core & rest
        assert set(map(ord, "Az09+")) <= core
        whole, part = tmp_path / f"fonts/{name}.woff2", tmp_path / f"fonts/{name}-core.woff2"
        assert part.stat().st_size < 0.7 * whole.stat().st_size
    # what stands in every formula without being seen loads nothing
    assert 0x200B not in letters(named["KaTeX_Main-Regular"])
    for each in faces:
        file = re.search(r"fonts/([\w.-]+)", each)
        assert file
        assert (tmp_path / "fonts" / file[1]).is_file()


def test_the_preloaded_font_is_there_and_all_styles_are_in(
    with_assets: Path, tmp_path: Path
) -> None:
    shared = write_shared(load_assets(), tmp_path)
    libs = tmp_path / "site_libs"
    assert all((libs / each).is_file() for each in shared.preload)
    css = (libs / shared.stylesheet).read_text("utf-8")
    assert "@media print" in css
    assert ".katex" in css
    assert css.count("@font-face") == len(re.findall(r"src:url\(fonts/", css))


def test_without_font_tools_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "brotli":
            raise ImportError(name="brotli")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ToolError, match="there is no brotli") as caught:
        fonts._font_tools()
    assert "fonttools[woff]" in str(caught.value.hint)


def test_arrows_of_buttons_are_in_the_first_part(with_assets: Path, tmp_path: Path) -> None:
    """An arrow on a button must not load a whole face."""
    (tmp_path / "fonts").mkdir()
    css = fonts.write_fonts(load_assets(), tmp_path)
    faces = re.findall(r"@font-face\s*\{[^}]*\}", css)
    core = next(f for f in faces if "source-sans-3-latin-wght-normal-core" in f)
    package = Path(fonts.__file__).parents[1]
    for path in (package / "exercises/theme/fields.js", package / "site/theme/tables.css"):
        arrows = set("←→↑↓") & set(path.read_text("utf-8"))
        assert arrows
        assert set(map(ord, arrows)) <= letters(core)
