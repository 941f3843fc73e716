"""The math page, the vocabulary and the code can't drift apart."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mlsim.equations import EQUATIONS, Equation
from mlsim.plots.diagrams import describe_equations, equation_layers, leading_to
from mlsim.quantities import VOCABULARY
from mlsim.solvers import SOLVERS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page(built_book: Path) -> str:
    """The pages with the equations, one after the other."""
    pages = ("math", "math_serving", "math_training", "math_kernels", "math_formats")
    pages += (
        "math_links",
        "math_networks",
        "math_arrivals",
        "math_pools",
        "math_adapters",
        "math_energy",
    )
    names = [f"{page}.html" for page in pages]
    return "\n".join((built_book / name).read_text(encoding="utf-8") for name in names)


@pytest.fixture(scope="module")
def formulas(page: str) -> set[str]:
    """The TeX of every formula on the page, spaces squeezed out."""
    found = re.findall(
        r'<annotation encoding="application/x-tex">(.*?)</annotation>', page, re.DOTALL
    )
    return {re.sub(r"\s+", "", html.unescape(each)) for each in found}


@pytest.mark.parametrize("each", EQUATIONS.values(), ids=list(EQUATIONS))
def test_every_equation_is_on_the_page(each: Equation, page: str, formulas: set[str]) -> None:
    assert page.count(f'id="math-{each.name.replace("_", "-")}"') == 1
    assert re.sub(r"\s+", "", each.tex) in formulas
    for name in (each.yields, *each.inputs):
        assert re.sub(r"\s+", "", VOCABULARY[name].symbol) in formulas
        # Pandoc sets an apostrophe as typographers do.
        assert VOCABULARY[name].definition.replace("'", "’") in page


def test_the_graph_has_inputs_above_results() -> None:
    equations = SOLVERS["Engine.solve"]
    rows = equation_layers(equations)
    for each in equations:
        assert all(rows[name] < rows[each.yields] for name in each.inputs)
    words = describe_equations(leading_to("throughput"))
    assert "throughput from batch size and latency." in words
    assert "ridge" not in words


CHANGE = """
import dataclasses, sys
from mlsim.equations import EQUATIONS, roofline
from mlsim.equations import registry

# The same equation, written otherwise: half the bandwidth.
def memory_time(bytes_moved, memory_bandwidth):
    return 2 * bytes_moved / memory_bandwidth

changed = dataclasses.replace(EQUATIONS["memory_time"], function=memory_time)
EQUATIONS["memory_time"] = changed
from mlsim import Engine, show
from mlsim.equations.symbols import tex
print(tex(changed))
print(show(Engine.solve(model="ResNet50", hardware="A100"), unit="us", form=".1f"))
"""


def test_a_changed_equation_changes_formula_and_numbers_alike(tmp_path: Path) -> None:
    script = tmp_path / "change.py"
    script.write_text(CHANGE, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    formula, latency = run.stdout.splitlines()
    assert formula == r"t_\mathrm{mem} = \frac{2 \, D}{\beta}"
    assert latency != "55.5 µs"
