"""The files every page shares: one stylesheet, one script, fonts, icons."""

from __future__ import annotations

import functools
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from mlsim_book.caches import content_hash
from mlsim_book.exercises.page_script import exercises_script, exercises_styles
from mlsim_book.render.assets import Assets
from mlsim_book.site.fonts import PRELOAD, without_faces, write_fonts

FOLDER = Path(__file__).parent / "theme"
LIBS = "site_libs"
_ICONS = {  # CSS name -> Bootstrap icon
    "note": "info-circle", "tip": "lightbulb", "warning": "exclamation-triangle",
    "important": "exclamation-circle", "caution": "fire", "copy": "copy", "check": "check-lg",
    "chevron": "chevron-right",
}  # fmt: skip


@dataclass(frozen=True)
class Shared:
    """The names of the shared files, below `site_libs/`."""

    stylesheet: str
    script: str
    preload: tuple[str, ...]
    favicon: str
    # What only a page with tables that sort, filter or compare loads.
    tables_stylesheet: str = ""
    tables_script: str = ""
    # What only a page with exercises loads.
    exercises_stylesheet: str = ""
    exercises_script: str = ""


def write_shared(assets: Assets, out: Path, favicon: Path = FOLDER / "icon.svg") -> Shared:
    """Write the shared files into a site, the picture beside its title among them."""
    libs = out / LIBS
    (libs / "fonts").mkdir(parents=True, exist_ok=True)
    faces = write_fonts(assets, libs)
    css = "\n".join(
        [
            _read(assets.module("bootstrap/dist/css/bootstrap-reboot.min.css")),
            without_faces(_read(assets.module("katex/dist/katex.min.css"))),
            faces,
            ":root {" + "".join(_icon_variable(assets, *each) for each in _ICONS.items()) + "}",
            _read(FOLDER / "layout.css"),
            _read(FOLDER / "content.css"),
            _read(FOLDER / "cards.css"),
            _read(FOLDER / "figures.css"),
            _read(FOLDER / "margins.css"),
            _read(FOLDER / "lightbox.css"),
            _read(FOLDER / "print.css"),
        ]
    )
    css = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", css)
    script = "".join(
        _read(FOLDER / f"{name}.js")
        for name in ("book", "margins", "lightbox", "code-tools", "opens", "terms", "search")
    )
    tables_css, tables_script = _read(FOLDER / "tables.css"), _read(FOLDER / "tables.js")
    exercises = exercises_styles(), exercises_script()
    names = Shared(
        stylesheet=f"book-{content_hash(css)[:8]}.css",
        script=f"book-{content_hash(script)[:8]}.js",
        preload=tuple(f"fonts/{name}" for name in PRELOAD),
        favicon=f"icon{favicon.suffix}",
        tables_stylesheet=f"tables-{content_hash(tables_css)[:8]}.css",
        tables_script=f"tables-{content_hash(tables_script)[:8]}.js",
        exercises_stylesheet=f"exercises-{content_hash(exercises[0])[:8]}.css",
        exercises_script=f"exercises-{content_hash(exercises[1])[:8]}.js",
    )
    (libs / names.tables_stylesheet).write_text(tables_css, encoding="utf-8")
    (libs / names.tables_script).write_text(tables_script, encoding="utf-8")
    (libs / names.exercises_stylesheet).write_text(exercises[0], encoding="utf-8")
    (libs / names.exercises_script).write_text(exercises[1], encoding="utf-8")
    (libs / names.stylesheet).write_text(css, encoding="utf-8")
    (libs / names.script).write_text(script, encoding="utf-8")
    shutil.copy(favicon, libs / names.favicon)
    return names


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _icon_variable(assets: Assets, name: str, icon: str) -> str:
    svg = re.sub(r"\s+", " ", _read(assets.module(f"bootstrap-icons/icons/{icon}.svg"))).strip()
    return f'--icon-{name}: url("data:image/svg+xml,{quote(svg, safe=" =/:,.()-")}");'


@functools.cache
def inline_icon(assets: Assets, name: str) -> str:
    """Return an icon as inline SVG, hidden from screen readers: its button has a label."""
    svg = _read(assets.module(f"bootstrap-icons/icons/{name}.svg"))
    svg = re.sub(r"\s+", " ", svg).strip()
    return svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
