"""The math page, the vocabulary and the code can't drift apart."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import kept
import pytest

from mlsim.equations import EQUATIONS
from mlsim.plots.diagrams import describe_equations, equation_layers, leading_to
from mlsim.quantities import VOCABULARY
from mlsim.solvers import SOLVERS
from mlsim_book.build import build

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with all equations, drawn as the book draws them."""
    book = kept.book("mathematics", tmp_path_factory.mktemp("math"))
    for name in ("_equations.qmd", "references.bib"):
        shutil.copy(ROOT / name, book)
    (book / "index.qmd").write_text(kept.text("mathematics.qmd.txt"), encoding="utf-8")
    # Results of before are kept by the code of the page, which is the same for other equations.
    return (build(book, refresh=True, progress=str) / "index.html").read_text(encoding="utf-8")


def test_every_question_has_its_place_on_one_page() -> None:
    pages = [path.read_text(encoding="utf-8") for path in ROOT.glob("math*.qmd")]
    answered = [each for text in pages for each in re.findall(r'print_question\("(.*)"\)', text)]
    assert sorted(answered) == sorted({each.topic.question for each in EQUATIONS.values()})


def test_every_equation_is_on_its_page(page: str) -> None:
    """Once, with its formula, the symbol and meaning of each name, and the worked example."""
    found = re.findall(
        r'<annotation encoding="application/x-tex">(.*?)</annotation>', page, re.DOTALL
    )
    formulas = {re.sub(r"\s+", "", html.unescape(each)) for each in found}
    places = Counter(re.findall(r'id="math-([a-z0-9-]+)"', page))
    assert places == Counter(each.name.replace("_", "-") for each in EQUATIONS.values())
    names = {name for each in EQUATIONS.values() for name in (each.yields, *each.inputs)}
    tex = [each.tex for each in EQUATIONS.values()] + [VOCABULARY[name].symbol for name in names]
    assert [each for each in tex if re.sub(r"\s+", "", each) not in formulas] == []
    # Pandoc sets an apostrophe as typographers do.
    meanings = {name: VOCABULARY[name].definition.replace("'", "’") for name in names}
    assert [name for name, meaning in meanings.items() if meaning not in page] == []
    copies = sum([*e.example[0].values()] == [e.example[1]] for e in EQUATIONS.values())
    assert 0 < copies < 20
    assert page.count("<em>By hand:</em>") == len(EQUATIONS) - copies
    # They are no headings, which would stand before the chapters in the search.
    assert not re.search(r'<h[1-6][^>]*id="math-', page)


def test_the_graph_has_inputs_above_results() -> None:
    equations = SOLVERS["Engine.solve"]
    rows = equation_layers(equations)
    for each in equations:
        assert all(rows[name] < rows[each.yields] for name in each.inputs)
    words = describe_equations(leading_to("throughput"))
    assert "throughput from batch size and latency." in words
    assert "ridge" not in words


def test_a_changed_equation_changes_formula_and_numbers_alike(tmp_path: Path) -> None:
    command = [sys.executable, "-c", kept.text("changed_equation.py.txt")]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    formula, latency = run.stdout.splitlines()
    assert formula == r"t_\mathrm{mem} = \frac{2 \, D}{\beta}"
    assert latency != "55.5 µs"
