"""The files every page shares: one stylesheet, one script, fonts, icons."""

from __future__ import annotations

import functools
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from mlsim_book.assets import Assets
from mlsim_book.keep import content_hash

FOLDER = Path(__file__).parent / "theme"
LIBS = "site_libs"
_FONTS = (
    ("@fontsource-variable/source-sans-3", "wght.css"),
    ("@fontsource-variable/source-sans-3", "wght-italic.css"),
    ("@fontsource-variable/source-code-pro", "wght.css"),
)
_SUBSETS = ("-latin-wght", "-latin-ext-wght", "-greek-wght")
_PRELOAD = ("source-sans-3-latin-wght-normal.woff2",)
_ICONS = {  # CSS name -> Bootstrap icon
    "note": "info-circle", "tip": "lightbulb", "warning": "exclamation-triangle",
    "important": "exclamation-circle", "caution": "fire", "copy": "copy", "check": "check-lg",
    "chevron": "chevron-right",
}  # fmt: skip
_FACE = re.compile(r"@font-face\s*\{[^}]*\}", re.DOTALL)
_OTHER_FORMATS = re.compile(r",\s*url\([^)]*\)\s*format\(\"(?:woff|truetype)\"\)")


@dataclass(frozen=True)
class Shared:
    """The names of the shared files, below `site_libs/`."""

    stylesheet: str
    script: str
    preload: tuple[str, ...]


def write_shared(assets: Assets, out: Path) -> Shared:
    """Write the shared files into a site."""
    libs = out / LIBS
    (libs / "fonts").mkdir(parents=True, exist_ok=True)
    faces = _copy_fonts(assets, libs)
    css = "\n".join(
        [
            _read(assets.module("bootstrap/dist/css/bootstrap-reboot.min.css")),
            _katex_css(assets, libs),
            faces,
            ":root {" + "".join(_icon_variable(assets, *each) for each in _ICONS.items()) + "}",
            _read(FOLDER / "layout.css"),
            _read(FOLDER / "content.css"),
            _read(FOLDER / "cards.css"),
        ]
    )
    css = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", css)
    script = "".join(_read(FOLDER / f"{name}.js") for name in ("book", "opens", "terms", "search"))
    names = Shared(
        stylesheet=f"book-{content_hash(css)[:8]}.css",
        script=f"book-{content_hash(script)[:8]}.js",
        preload=tuple(f"fonts/{name}" for name in _PRELOAD),
    )
    (libs / names.stylesheet).write_text(css, encoding="utf-8")
    (libs / names.script).write_text(script, encoding="utf-8")
    shutil.copy(FOLDER / "icon.svg", libs / "icon.svg")
    return names


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _copy_fonts(assets: Assets, libs: Path) -> str:
    """Copy the fonts of the scripts a book in a European language needs."""
    faces: list[str] = []
    for package, sheet in _FONTS:
        css = assets.module(f"{package}/{sheet}")
        for face in _FACE.findall(_read(css)):
            name = re.search(r"files/([\w.-]+\.woff2)", face)
            if name is None or not any(each in name[1] for each in _SUBSETS):
                continue
            shutil.copy(css.parent / "files" / name[1], libs / "fonts" / name[1])
            faces.append(re.sub(r"url\([^)]*\)", f"url(fonts/{name[1]})", face))
    return "\n".join(faces)


def _katex_css(assets: Assets, libs: Path) -> str:
    css = assets.module("katex/dist/katex.min.css")
    for font in sorted((css.parent / "fonts").glob("*.woff2")):
        shutil.copy(font, libs / "fonts" / font.name)
    text = _OTHER_FORMATS.sub("", _read(css))
    return re.sub(r",url\(fonts/[\w.-]+\.(?:woff|ttf)\) format\(\"\w+\"\)", "", text)


def _icon_variable(assets: Assets, name: str, icon: str) -> str:
    svg = re.sub(r"\s+", " ", _read(assets.module(f"bootstrap-icons/icons/{icon}.svg"))).strip()
    return f'--icon-{name}: url("data:image/svg+xml,{quote(svg, safe=" =/:,.()-")}");'


@functools.cache
def inline_icon(assets: Assets, name: str) -> str:
    """Return an icon as inline SVG, hidden from screen readers: its button has a label."""
    svg = _read(assets.module(f"bootstrap-icons/icons/{name}.svg"))
    svg = re.sub(r"\s+", " ", svg).strip()
    return svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
