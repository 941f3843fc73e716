"""Formulas, made static while the book is built: HTML for the eye, MathML for the ear.

All new formulas of a book go through one Node process; known ones are kept. The
TeX itself stays in the MathML's annotation, where copying finds it.
"""

from __future__ import annotations

import html as htmllib
import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlsim_book.caches import TextCache, content_hash
from mlsim_book.errors import ToolError
from mlsim_book.model import ExecutedPage
from mlsim_book.read.lines import Reporter, text_pattern
from mlsim_book.render.assets import Assets

_SCRIPT = Path(__file__).parent / "node" / "render-math.js"
_MATH = re.compile(r'<span class="math (inline|display)">(.*?)</span>', re.DOTALL)


@dataclass(frozen=True)
class Formula:
    """TeX, and whether it stands on a line of its own."""

    tex: str
    display: bool


@dataclass(frozen=True)
class Typeset:
    """What KaTeX made of a formula; `error` says why it could not."""

    html: str
    error: str | None = None


def formulas(html: str) -> list[Formula]:
    """Return the formulas of a page, as the filter left them.

    >>> formulas('<span class="math inline">a &lt; b</span>')
    [Formula(tex='a < b', display=False)]
    """
    return [Formula(htmllib.unescape(m[2]), m[1] == "display") for m in _MATH.finditer(html)]


def typeset(
    wanted: Iterable[Formula], assets: Assets, keep: TextCache, macros: Mapping[str, str]
) -> dict[Formula, Typeset]:
    """Typeset formulas, each once."""
    shared = content_hash(
        assets.key, _SCRIPT.read_bytes(), json.dumps(dict(macros), sort_keys=True)
    )
    done: dict[Formula, Typeset] = {}
    fresh: list[Formula] = []
    book_key = content_hash("math", shared)
    kept: dict[str, list[str | None]] = json.loads(keep.load(book_key) or "{}")
    for formula in dict.fromkeys(wanted):
        known = kept.get(_key(formula))
        if known is None:
            fresh.append(formula)
        else:
            done[formula] = Typeset(str(known[0]), known[1])
    if fresh:
        done.update(zip(fresh, _run(fresh, assets, macros), strict=True))
        kept.update({_key(each): [done[each].html, done[each].error] for each in fresh})
        keep.store(book_key, json.dumps(kept))
    return done


def _key(formula: Formula) -> str:
    return ("d:" if formula.display else "i:") + formula.tex


def _run(fresh: list[Formula], assets: Assets, macros: Mapping[str, str]) -> list[Typeset]:
    request = {
        "katex": str(assets.module("katex/dist/katex.js")),
        "macros": dict(macros),
        "formulas": [{"tex": each.tex, "display": each.display} for each in fresh],
    }
    run = subprocess.run(
        [assets.node, str(_SCRIPT)], input=json.dumps(request).encode(), capture_output=True,
        check=False,
    )  # fmt: skip
    if run.returncode:
        raise ToolError(f"KaTeX could not be run:\n{run.stderr.decode('utf-8', 'replace').strip()}")
    return [Typeset(each["html"], each.get("error")) for each in json.loads(run.stdout)]


def place_formulas(html: str, done: Mapping[Formula, Typeset]) -> str:
    """Put the typeset formulas into a page."""

    def fill(match: re.Match[str]) -> str:
        tex, display = htmllib.unescape(match[2]), match[1] == "display"
        made = done[Formula(tex, display)]
        if made.error:
            return f'<span class="math {match[1]} math-error">{htmllib.escape(tex)}</span>'
        return f'<span class="math {match[1]}">{made.html}</span>'

    return _MATH.sub(fill, html)


def note_broken(
    page: ExecutedPage,
    found: Iterable[Formula],
    done: Mapping[Formula, Typeset],
    reporter: Reporter,
    behind: Mapping[Formula, str] | None = None,
) -> None:
    """Tell of the formulas of a page that KaTeX refuses.

    `behind` names the number that opens to a formula: such a formula is computed,
    so it stands on no line of the source.
    """
    for formula in found:
        if error := done[formula].error:
            number = (behind or {}).get(formula)
            where = f" (in what '{number}' opens to)" if number else ""
            tex = " ".join(formula.tex.split())
            reporter.note(
                page,
                f"KaTeX can't typeset the formula  {tex}{where}\n  {error}",
                text_pattern(formula.tex),
                hint="See katex.org/docs/supported.html for what KaTeX knows, or define a macro"
                " under `mlsim-book: {macros: {...}}` in _quarto.yml.",
            )
