"""Pages drawn from the code: quantities, how the package works, API reference."""

import ast
import contextlib
import importlib
import io
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

import mlsim
from mlsim.quantities import VOCABULARY
from mlsim_book.caches import TextCache
from mlsim_book.docstrings import reference, signature
from mlsim_book.render.assets import load_assets
from mlsim_book.render.to_html import Formula, typeset

ROOT = Path(__file__).parents[2]
CHAPTERS = [
    path
    for folder in (".", "tutorials", "projects", "zoo")
    for path in (ROOT / folder).glob("*.qmd")
]
# Public, and not among the names of their package, which would load them.
DEEPER = ("mlsim.workloads.huggingface", "mlsim.zoo.review")
CELL = re.compile(r"^```\{python\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(
    r"^\| \[([^\]]+)\]\{#term-([\w-]+)\} \| \$(.+?)\$ \| (.+?) \| (.+?) \| (\w+) \|$", re.MULTILINE
)


def test_the_citation_names_the_title_and_the_authors_that_the_book_has(tmp_path, capsys):
    """A copy of the book with a title of its own doesn't cite ours."""
    cell = CELL.findall((ROOT / "teaching.qmd").read_text(encoding="utf-8"))[-1]
    book = tmp_path / "_quarto.yml"
    for authors, said in (("Ada Brook", "Ada Brook"), ("[{name: Ada}, Bo Hill]", "Ada, Bo Hill")):
        book.write_text(f"book:\n  title: Own\n  author: {authors}\n", encoding="utf-8")
        exec(compile(cell, "teaching.qmd", "exec"), {"BOOK": book, "yaml": yaml})
        assert capsys.readouterr().out.startswith(f"> {said}. *Own*. ")


@pytest.fixture
def run(monkeypatch):
    """Run a page's cells in one namespace; what they print, and what they leave."""

    def run_page(name):
        monkeypatch.chdir(ROOT)
        names, printed = {}, io.StringIO()
        with contextlib.redirect_stdout(printed):
            for cell in CELL.findall((ROOT / name).read_text(encoding="utf-8")):
                exec(compile(cell, name, "exec"), names)
        return printed.getvalue(), names

    return run_page


def test_the_list_of_quantities_has_each_once(run, tmp_path):
    printed, _ = run("quantities.qmd")
    rows = ROW.findall(printed)
    assert len(rows) == printed.count("\n") - 2
    ids = [row[1] for row in rows]
    assert ids == sorted(set(ids))
    found = {name.replace(" ", "_").lower(): (symbol, said) for name, _, symbol, _, said, _ in rows}
    assert found == {each.name: (each.symbol, each.definition) for each in VOCABULARY.values()}
    symbols = [Formula(symbol, display=False) for symbol, _ in found.values()]
    made = typeset(symbols, load_assets(), TextCache(tmp_path), {})
    assert not [each for each in symbols if made[each].error]


def test_api_reference_has_every_public_name(run):
    printed, _ = run("api.qmd")
    headings = re.findall(r"^## (\w+) \{#api-", printed, re.MULTILINE)
    assert headings == list(mlsim.__all__)
    ids = re.findall(r"\{#(api-[\w-]+)\}", printed)
    assert len(set(ids)) == len(ids)
    assert "### Engine.solve {#api-engine-solve}" in printed


def test_chapters_import_only_public_names():
    for path in CHAPTERS:
        trees = map(ast.parse, CELL.findall(path.read_text(encoding="utf-8")))
        for node in (each for tree in trees for each in ast.walk(tree)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mlsim":
                assert node.module.count(".") <= 1 or node.module in DEEPER, node.module
                module = importlib.import_module(node.module)
                for name in (alias.name for alias in node.names):
                    assert hasattr(module, name) or find_spec(f"{node.module}.{name}"), name
                    assert not name.startswith("_")


class Pot:
    """A pot, such as Pot(2).

    Attributes
    ----------
    cups
        How much it holds.

    >>> Pot(2).cups
    2
    """

    def __init__(self, cups: int = 1, *, lid: "str | None" = None) -> None:
        self.cups = cups

    @property
    def full(self) -> bool:
        """Whether nothing more goes in.

        Raises
        ------
        ValueError
            If there is a lid_of *glass*.
        """
        return False

    @staticmethod
    def pour(*cups: int, into: "Pot") -> None:
        """Pour."""


def test_reference_of_a_class():
    """`Profile` has `value` of `Answer`, and `report` and `to_dict` of what is written by a form."""
    text = reference("Pot", Pot, prefix="kettle")
    begin = "## Pot {#kettle-pot}\n\nA pot, such as Pot(2).\n\n```python\nPot(cups: int"
    assert text.startswith(begin)
    output = "::: {.cell-output .cell-output-stdout}\n```\n2\n```"
    for part in (
        "[`cups`]{#kettle-pot-cups}\n:   How much it holds.",
        r"Raises `ValueError` if there is a lid\_of \*glass\*.",
        f"```python\nPot(2).cups\n```\n\n{output}",
        "### Pot.pour {#kettle-pot-pour}",
    ):
        assert part in text
    assert signature("pour", Pot.pour) == "pour(*cups: int, into: Pot) -> None"
    assert signature("Pot", Pot) == "Pot(cups: int = 1, *, lid: str | None = None)"
    written = reference("Profile", mlsim.Profile)
    lines = re.findall(r"As any \[`(\w+)`\]\(#api-\w+\), it also has (.+)\.", written)
    of = {base: set(re.findall("`([a-z_]+)`", names)) for base, names in lines}
    assert {"value", "feasible"} <= of["Answer"]
    assert of["Written"] == {"report", "to_dict"}
    assert "As any" not in reference("Device", mlsim.Device)
