"""The files every page shares: one stylesheet, one script, fonts, icons.

The fonts of a site, cut so that a first visit loads little of them. A face of the text or of
formulas is two files: the letters and signs that nearly every page needs, and the face as it came,
which a browser fetches for a page that has any other letter (`unicode-range`). fontTools cuts
them, once for a version of the npm packages; the result is kept beside those. Formulas' fonts lose
their hints, which no browser of today needs at the sizes of formulas.

What a page's numbers open to, as a script that is loaded when a reader comes near. What a page's
numbers open to may weigh several times the page itself. So it is a file of its own, a plain
script: that loads from disk, too, and a strict policy allows it.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mlsim_book.caches import content_hash, filled
from mlsim_book.errors import ToolError
from mlsim_book.exercises.files import exercises_script, exercises_styles
from mlsim_book.render.assets import Assets
from mlsim_book.render.postprocess import Opened

_FONTS: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("fonts.toml").read_text(encoding="utf-8")
)
# by file what its first part holds; "" for all
_CORE = {
    name: "".join(_FONTS["letters"][each] for each in parts)
    for name, parts in _FONTS["core"].items()
}
_FACE = re.compile(r"@font-face\s*\{[^}]*\}", re.DOTALL)
_FILE = re.compile(r"([\w.-]+)\.woff2")
_RANGE = re.compile(r"unicode-range:\s*([^;}]*)")


def write_fonts(assets: Assets, libs: Path) -> str:
    """Copy the fonts that a book in a European language needs; return their faces as CSS."""
    cut = _cut_fonts(assets)
    faces: list[str] = []
    for sheet in _FONTS["sheets"]:
        css = assets.module(sheet)
        for face in _FACE.findall(css.read_text(encoding="utf-8")):
            if any(each in face for each in _FONTS["subsets"]):
                faces += _faces(face, css.parent / "files", cut, libs / "fonts")
    sheet_ = assets.module("katex/dist/katex.min.css")
    for face in _FACE.findall(sheet_.read_text(encoding="utf-8")):
        faces += _faces(face, sheet_.parent / "fonts", cut, libs / "fonts")
    return "\n".join(faces)


def without_faces(css: str) -> str:
    """Return a stylesheet less its fonts.

    >>> without_faces("a{b:c}@font-face{font-family:X}d{e:f}")
    'a{b:c}d{e:f}'
    """
    return _FACE.sub("", css)


def _faces(face: str, source: Path, cut: Path, fonts: Path) -> Iterator[str]:
    """Copy the files of a face; yield it, in one part or two."""
    found = _FILE.search(face)
    if found is None:
        return
    name = found[1]
    rule = re.sub(r"src:[^;}]*", f"src:url(fonts/{name}.woff2) format('woff2')", face)
    core = _CORE.get(name)
    if core != "":
        shutil.copy(source / f"{name}.woff2", fonts)
    if core is None:
        yield rule
        return
    shutil.copy(cut / f"{name}-core.woff2", fonts)
    first = rule.replace(f"{name}.woff2", f"{name}-core.woff2")
    if core == "":
        yield first
        return
    # a face is asked for no letter that it doesn't have: the browser would load it in vain
    for part, letters in zip(
        (first, rule), (cut / f"{name}.txt").read_text("ascii").split("\n"), strict=True
    ):
        wanted = f"unicode-range:{_range_text(int(each, 16) for each in letters.split())}"
        bare = f"{part[:-1].rstrip().rstrip(';')};{wanted}}}"
        yield _RANGE.sub(wanted, part) if _RANGE.search(part) else bare


def _range_text(letters: Iterable[int]) -> str:
    """Return letters as a `unicode-range`.

    >>> _range_text([65, 66, 67, 97])
    'U+41-43,U+61'
    """
    runs: list[list[int]] = []
    for each in sorted(letters):
        if runs and runs[-1][1] == each - 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return ",".join(f"U+{a:x}" + (f"-{b:x}" if b > a else "") for a, b in runs)


def _cut_fonts(assets: Assets) -> Path:
    """Return the folder of the first parts, made once and kept beside the packages."""
    key = content_hash(repr(_CORE), repr(tuple(_FONTS["features"])), "2")[:8]
    folder = assets.folder / f"fonts-{key}"
    if folder.is_dir():
        return folder
    with filled(folder) as scratch:
        for name, core in _CORE.items():
            package = name.partition("-latin")[0]
            place = f"@fontsource-variable/{package}/files"
            if formulas := name.startswith("KaTeX"):
                place = "katex/dist/fonts"
            source = assets.module(f"{place}/{name}.woff2")
            _cut(source, scratch / name, core, hints=not formulas)
    return folder


def _cut(source: Path, target: Path, letters: str, *, hints: bool) -> None:
    """Write the part of a font that has some letters, all of its letters for none."""
    subset, open_font = _font_tools()
    options = subset.Options()
    options.flavor, options.hinting, options.notdef_outline = "woff2", hints, True
    options.layout_features = _FONTS["features"]
    # two builds of one commit are byte-equal: no time of making goes in
    font = open_font(source, recalcTimestamp=False)
    has = set(font.getBestCmap())
    held = has & set(map(ord, letters)) if letters else has
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=held)
    cutter.subset(font)
    font.flavor = "woff2"
    font.save(target.with_name(f"{target.name}-core.woff2"))
    parts = (held, has - held)
    text = "\n".join(" ".join(f"{each:x}" for each in sorted(part)) for part in parts)
    target.with_name(f"{target.name}.txt").write_text(text, encoding="ascii")


def _font_tools() -> tuple[Any, Any]:
    try:
        # fontTools writes WOFF2 with brotli
        import brotli  # type: ignore[import-untyped]  # noqa: F401
        from fontTools import subset  # type: ignore[import-untyped]
        from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
    except ImportError as error:
        raise ToolError(
            f"the fonts can't be cut: there is no {error.name}",
            hint='Install what the builder needs again: python -m pip install "fonttools[woff]"',
        ) from None
    return subset, TTFont


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
    # What starts the figures of a page that move.
    live_script: str = ""


def write_shared(assets: Assets, out: Path, favicon: Path = FOLDER / "icon.svg") -> Shared:
    """Write the shared files into a site, the picture beside its title among them."""
    libs = out / LIBS
    (libs / "fonts").mkdir(parents=True, exist_ok=True)
    faces = write_fonts(assets, libs)
    sheets = ("layout", "content", "cards", "figures", "margins", "lightbox", "print")
    icons = (_icon_variable(assets, *each) for each in _ICONS.items())
    css = "\n".join([
        _read(assets.module("bootstrap/dist/css/bootstrap-reboot.min.css")),
        without_faces(_read(assets.module("katex/dist/katex.min.css"))),
        faces,
        f":root {{{''.join(icons)}}}",
        *(_read(FOLDER / f"{name}.css") for name in sheets),
    ])  # fmt: skip
    css = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", css)
    scripts = ("book", "margins", "lightbox", "code-tools", "card", "opens", "terms", "search")
    script = "".join(_read(FOLDER / f"{name}.js") for name in scripts)

    def write(stem: str, text: str, suffix: str) -> str:
        name = f"{stem}-{content_hash(text)[:8]}.{suffix}"
        (libs / name).write_text(text, encoding="utf-8")
        return name

    names = Shared(
        write("book", css, "css"),
        write("book", script, "js"),
        tuple(f"fonts/{name}" for name in _FONTS["preload"]),
        f"icon{favicon.suffix}",
        write("tables", _read(FOLDER / "tables.css"), "css"),
        write("tables", _read(FOLDER / "tables.js"), "js"),
        write("exercises", exercises_styles(), "css"),
        write("exercises", exercises_script(), "js"),
        write("live", _read(FOLDER / "live.js"), "js"),
    )
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


_PLACE = re.compile(r'\n<template id="opens-cards" data-from="([^"?]*)\?[^"]*"></template>')


def cards_script(opened: Iterable[Opened]) -> str:
    """Return the script that holds what a page's numbers open to, by id.

    >>> cards_script([Opened("opens-1", "5 s", "A & B")]).strip()
    'bookCards = {"opens-1": "A & B"};'
    """
    cards = {each.id: each.html.strip() for each in opened}
    # "</script>" can't stand in it, wherever the script may be put
    return f"bookCards = {json.dumps(cards, ensure_ascii=False)};\n".replace("</", "<\\/")


def cards_place(href: str, script: str) -> tuple[str, str]:
    """Return where the script of a page goes, from the root, and the element that names it.

    The address holds a hash of the content: a browser may keep the file for long.

    >>> cards_place("part/a.html", "x")[0]
    'site_libs/cards/part/a.js'
    """
    path = f"{LIBS}/cards/{href.removesuffix('.html')}.js"
    base = "../" * href.count("/")
    address = quote(f"{base}{path}") + f"?v={content_hash(script)[:8]}"
    return path, f'\n<template id="opens-cards" data-from="{address}"></template>'


def with_cards(html: str, page: Path) -> str:
    """Return a page with what its numbers open to in templates, to be checked as a whole."""

    def fill(match: re.Match[str]) -> str:
        path = page.parent / unquote(match[1])
        if not path.is_file():
            return match[0]
        cards = json.loads(path.read_text("utf-8").removeprefix("bookCards = ").rstrip(";\n"))
        return "".join(
            f'\n<template id="{key}">\n{card}\n</template>' for key, card in cards.items()
        )

    return _PLACE.sub(fill, html)
