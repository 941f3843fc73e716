"""The typeface of figures: that of the text around them.

Matplotlib reads no WOFF2 and no variable fonts, so the site's fonts are written as it wants them,
once for a version of the npm packages, and kept beside those. A kernel hands them over as soon as
a page imports Matplotlib. Letters that they lack, such as Greek, come from Matplotlib's own.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from mlsim_book.caches import assets_folder, filled

FAMILY = "Source Sans 3"
_FILES = "node_modules/@fontsource-variable/source-sans-3/files/source-sans-3-latin-wght-{}.woff2"
_STYLES = (("Regular", "normal", 400), ("Bold", "normal", 700), ("Italic", "italic", 400))
_SLANTED = f"{FAMILY}:italic"
_FORMULAS = {"rm": FAMILY, "sf": FAMILY, "bf": f"{FAMILY}:bold", "it": _SLANTED, "cal": _SLANTED}


def offer() -> None:
    """Let Matplotlib draw in the site's typeface, should this process ever import it."""
    sys.meta_path.insert(0, _Fonts())


class _Fonts(MetaPathFinder):
    """Adds the fonts when Matplotlib's own have been found."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "matplotlib.font_manager":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            run = loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                add_fonts(module.fontManager, sys.modules["matplotlib"].rcParams)

            loader.exec_module = exec_module
        return spec


def add_fonts(manager: Any, settings: Any) -> None:
    """Add the fonts to Matplotlib's and choose them, unless the page chose others."""
    folder = assets_folder()
    if settings["font.family"] != ["sans-serif"] or not (folder / "node_modules").is_dir():
        return
    for file in sorted(write_fonts(folder).iterdir()):
        manager.addfont(file)
    settings["font.family"] = [FAMILY, "DejaVu Sans"]
    settings["mathtext.fontset"] = "custom"
    settings["mathtext.fallback"] = "stixsans"
    settings.update({f"mathtext.{name}": font for name, font in _FORMULAS.items()})


def write_fonts(assets: Path) -> Path:
    """Return the folder of the fonts as Matplotlib reads them; makes it the first time."""
    folder = assets / "figure-fonts-1"
    if folder.is_dir():
        return folder
    with filled(folder) as scratch:
        for style, file, weight in _STYLES:
            _write(assets / _FILES.format(file), scratch / f"{style}.ttf", style, weight)
    return folder


def _write(source: Path, target: Path, style: str, weight: int) -> None:
    """Write one weight of a variable font, under names by which Matplotlib finds it."""
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
    from fontTools.varLib import instancer  # type: ignore[import-untyped]

    font = TTFont(source, recalcTimestamp=False)
    font = instancer.instantiateVariableFont(font, {"wght": weight})
    plain = FAMILY.replace(" ", "")
    said = {1: FAMILY, 2: style, 4: f"{FAMILY} {style}", 6: f"{plain}-{style}"}
    font["name"].names = [each for each in font["name"].names if each.nameID in (0, 5, 14)]
    for number, words in said.items():
        font["name"].setName(words, number, 3, 1, 0x409)
        font["name"].setName(words, number, 1, 0, 0)
    font["OS/2"].usWeightClass = weight
    font.flavor = None
    font.save(target)
