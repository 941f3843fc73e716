"""Formulas: typeset once, kept, with their TeX; broken ones told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim_book.caches import TextCache
from mlsim_book.render import katex
from mlsim_book.render.assets import Assets, load_assets


@pytest.fixture
def assets(with_assets: Path) -> Assets:
    return load_assets()


def typeset(assets: Assets, folder: Path, tex: str, **macros: str) -> katex.Typeset:
    formula = katex.Formula(tex, display=True)
    return katex.typeset([formula], assets, TextCache(folder), macros)[formula]


def test_html_and_mathml_with_the_tex(assets: Assets, tmp_path: Path) -> None:
    made = typeset(assets, tmp_path, r"a < b \tag{1.2}")
    assert made.error is None
    assert '<annotation encoding="application/x-tex">a &lt; b \\tag{1.2}</annotation>' in made.html
    assert 'aria-hidden="true"' in made.html
    assert "katex-display" in made.html


def test_a_broken_formula_says_why(assets: Assets, tmp_path: Path) -> None:
    made = typeset(assets, tmp_path, r"\frac{1}{")
    assert made.error is not None
    assert "expected '}'" in made.error


def test_macros_of_the_book(assets: Assets, tmp_path: Path) -> None:
    assert typeset(assets, tmp_path, r"\SI{3}{m}").error is not None
    assert typeset(assets, tmp_path, r"\SI{3}{m}", **{r"\SI": r"#1\,\mathrm{#2}"}).error is None


def test_known_formulas_need_no_node(assets: Assets, tmp_path: Path) -> None:
    typeset(assets, tmp_path, "x")
    without = Assets("/nowhere/node", assets.folder)
    assert typeset(without, tmp_path, "x").error is None


def test_placed_in_the_page() -> None:
    formula = katex.Formula("a", display=False)
    html = '<p><span class="math inline">a</span></p>'
    assert katex.formulas(html) == [formula]
    placed = katex.place_formulas(html, {formula: katex.Typeset("<b>A</b>")})
    assert placed == '<p><span class="math inline"><b>A</b></span></p>'
    failed = katex.place_formulas(html, {formula: katex.Typeset("", "no")})
    assert 'class="math inline math-error">a<' in failed
