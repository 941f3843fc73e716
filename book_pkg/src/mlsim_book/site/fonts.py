"""The fonts of a site, cut so that a first visit loads little of them.

A face of the text or of formulas is two files: the letters and signs that nearly
every page needs, and the face as it came, which a browser fetches for a page that
has any other letter (`unicode-range`). fontTools cuts them, once for a version of the
npm packages; the result is kept beside those. Formulas' fonts lose their hints, which
no browser of today needs at the sizes of formulas.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mlsim_book.caches import content_hash
from mlsim_book.errors import ToolError
from mlsim_book.render.assets import Assets

_TEXT = (
    ("@fontsource-variable/source-sans-3", "wght.css"),
    ("@fontsource-variable/source-sans-3", "wght-italic.css"),
    ("@fontsource-variable/source-code-pro", "wght.css"),
)
_SUBSETS = ("-latin-wght", "-latin-ext-wght", "-greek-wght")
PRELOAD = ("source-sans-3-latin-wght-normal-core.woff2",)

_ASCII = "".join(map(chr, range(0x20, 0x7F)))
_COMMON = (
    f"{_ASCII}\u00a0–—‘’“”…·×÷±−≤≥≈→←°µ¹²³₂‑•′″™\u200b\u2009½©®€£↑↓éèêàâãçîôõûüöäÖÜÄßñáíóúåøæý"
)
# Letters of names from Prague to Istanbul, in a reference or two; and the dagger of a table.
_NAMES = "ąćčďěęğıłńňőřśšşťůűźżžČŁŘŚŠŞŻŽ†"
_GREEK = "ΓΔΘΛΞΠΣΥΦΨΩαβγδεζηθικλμνξοπρστυφχψωϑϕϖϱϵ"
_SIGNS = "\u00a0\u200b×÷±·ˉˆ˙˜−∗∘∙√∞∫∑∏∂∇∈∉∀∃∧∨∩∪≤≥≠≈≡∼∝→←↔⇒⇔↦⋅⋯…′∣∥ℓ⌈⌉⌊⌋⟨⟩⊤⊥†‖"
_CORE = {  # file -> what its first part holds; "" for all
    "source-sans-3-latin-wght-normal": _COMMON,
    "source-sans-3-latin-wght-italic": _COMMON,
    "source-code-pro-latin-wght-normal": _COMMON,
    "source-sans-3-latin-ext-wght-normal": _NAMES,
    "source-sans-3-latin-ext-wght-italic": _NAMES,
    "KaTeX_Main-Regular": _ASCII + _GREEK + _SIGNS,
    "KaTeX_Math-Italic": _ASCII + _GREEK,
    "KaTeX_AMS-Regular": _ASCII + _SIGNS,
    **{f"KaTeX_Size{size}-Regular": "" for size in range(1, 5)},
}
# What the variable fonts bring that is used: kerning, ligatures, marks, both kinds of figures.
_FEATURES = ("kern", "liga", "ccmp", "locl", "mark", "mkmk", "pnum", "tnum")
_FACE = re.compile(r"@font-face\s*\{[^}]*\}", re.DOTALL)
_FILE = re.compile(r"([\w.-]+)\.woff2")
_RANGE = re.compile(r"unicode-range:\s*([^;}]*)")


def write_fonts(assets: Assets, libs: Path) -> str:
    """Copy the fonts that a book in a European language needs; return their faces as CSS."""
    cut = _cut_fonts(assets)
    faces: list[str] = []
    for package, sheet in _TEXT:
        css = assets.module(f"{package}/{sheet}")
        for face in _FACE.findall(css.read_text(encoding="utf-8")):
            if any(each in face for each in _SUBSETS):
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
        yield _with_range(part, (int(each, 16) for each in letters.split()))


def _with_range(rule: str, letters: Iterable[int]) -> str:
    wanted = f"unicode-range:{_range_text(letters)}"
    if _RANGE.search(rule):
        return _RANGE.sub(wanted, rule)
    return f"{rule[:-1].rstrip().rstrip(';')};{wanted}}}"


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
    key = content_hash(repr(_CORE), repr(_FEATURES), "2")[:8]
    folder = assets.folder / f"fonts-{key}"
    if folder.is_dir():
        return folder
    try:
        scratch = Path(tempfile.mkdtemp(dir=assets.folder, prefix=".fonts-"))
    except OSError as error:
        raise ToolError(
            f"can't write to the cache folder {assets.folder}: {error.strerror}",
            hint="Set XDG_CACHE_HOME to a folder you can write to.",
        ) from None
    try:
        for name, core in _CORE.items():
            _cut(_source(assets, name), scratch / name, core, hints="KaTeX" not in name)
        try:
            scratch.replace(folder)
        except OSError:
            if not folder.is_dir():  # else another build was faster
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _source(assets: Assets, name: str) -> Path:
    if name.startswith("KaTeX"):
        return assets.module(f"katex/dist/fonts/{name}.woff2")
    package = name.partition("-latin")[0]
    return assets.module(f"@fontsource-variable/{package}/files/{name}.woff2")


def _cut(source: Path, target: Path, letters: str, *, hints: bool) -> None:
    """Write the part of a font that has some letters, all of its letters for none."""
    subset, open_font = _font_tools()
    options = subset.Options()
    options.flavor, options.hinting, options.notdef_outline = "woff2", hints, True
    options.layout_features = list(_FEATURES)
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
