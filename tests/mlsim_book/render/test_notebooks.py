"""Reader notebooks: plain Markdown, comparable outputs, no drift, and nbval passes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured_form
import nbformat
import pytest
from kept import cases, text

from mlsim_book.errors import Problems
from mlsim_book.read.lines import split_lines
from mlsim_book.read.project import load_project
from mlsim_book.read.qmd import Cell, page_defaults, parse_blocks
from mlsim_book.render.live_code import Code
from mlsim_book.render.notebooks import check_notebooks, make_notebooks, page_code, write_notebooks

PAGE, FOLDS, MEASURED = (text(f"notebook_{name}.qmd.txt") for name in ("page", "folds", "measured"))
BIB = "@article{pour2015, author={Pour, Ina}, title={Spouts}, journal={K}, year={2015}}\n"
EXTRA = "bibliography: r.bib\nmlsim-book: {package: json, path: pkg, extras: [all]}\n"

MakeBook = Callable[..., Path]


@pytest.fixture
def book(make_book: MakeBook) -> Path:
    root = make_book(
        EXTRA, index_qmd="# Hello {.unnumbered}\n", t__a_qmd=PAGE, b_qmd="# B {#sec-other}\n"
    )
    (root / "r.bib").write_text(BIB)
    return root


def made(root: Path) -> dict[str, Any]:
    project = load_project(root, Problems())
    return {name: json.loads(text) for name, text in make_notebooks(project, Problems()).items()}


def source(cell: Any) -> str:
    return "".join(cell["source"])


def test_a_notebook(book: Path) -> None:
    notebooks = made(book)
    assert list(notebooks) == ["t/a.ipynb"]
    notebook = notebooks["t/a.ipynb"]
    nbformat.validate(nbformat.from_dict(notebook))
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, 10))
    install, setup, printed, figure, error, warning, thing, one, two = code
    assert 'find_spec("json")' in source(install)
    assert "ModuleNotFoundError" in source(install)
    assert setup["id"] == "set-up"
    assert source(setup) == "power = 2000"
    assert printed["outputs"][0]["text"] == ["2000\n"]
    assert printed["outputs"][1]["data"] == {"text/plain": ["2001"]}
    assert (figure["id"], figure["outputs"]) == ("fig-boil", [])
    assert figure["metadata"]["tags"] == ["nbval-ignore-output"]
    assert error["metadata"]["tags"] == ["raises-exception"]
    assert error["outputs"][0]["ename"] == "ValueError"
    assert warning["outputs"] == []
    assert thing["metadata"]["tags"] == ["nbval-ignore-output"]
    assert two["id"] == f"{one['id']}-2"
    assert "#|" not in json.dumps(notebook)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    markdown = "\n\n".join(source(cell) for cell in cells)
    assert [part for (part,) in cases("notebook_markdown.toml") if part not in markdown] == []
    for gone in (":::", "{#", "{.", "Only on paper", "{python}", "@fig", "callout"):
        assert gone not in markdown


def test_links_and_install_when_the_book_has_addresses(book: Path) -> None:
    yaml = (book / "_quarto.yml").read_text()
    addresses = (
        "  repo-url: https://e.org/r\n  repo-branch: v1\n  site-url: https://site.org/book\n"
    )
    (book / "_quarto.yml").write_text(yaml.replace("  title: T\n", f"  title: T\n{addresses}"))
    text = make_notebooks(load_project(book, Problems()), Problems())["t/a.ipynb"]
    assert "[there](https://site.org/book/b.html#x)" in text
    assert "(https://site.org/book/t/kettle.svg)" in text
    assert "https://site.org/book/notebooks/json.txt" in text
    assert "json[all] @ git+https://e.org/r@v1#subdirectory=pkg" in text


def test_write_check_and_drift(book: Path) -> None:
    project = load_project(book, Problems())
    out = book / "notebooks"
    problems = Problems()
    assert check_notebooks(project, out, problems) == ["notebooks/t/a.ipynb"]
    message = "notebooks/t/a.ipynb is out of date: run 'mlsim-book notebooks'"
    assert problems.found[0].text() == message
    (path,) = write_notebooks(project, out, Problems())
    assert write_notebooks(project, out, Problems()) == []
    problems = Problems()
    assert check_notebooks(project, out, problems) == []
    assert len(problems) == 0
    path.write_text(path.read_text().replace("2000", "2001"))
    (out / "old.ipynb").write_text("{}")
    assert check_notebooks(project, out, problems) == ["notebooks/old.ipynb", "notebooks/t/a.ipynb"]
    assert "belongs to no chapter" in problems.found[0].message
    assert "2001" in problems.found[1].message.partition("the chapter gives")[0]


def test_nbval_passes_on_a_copy_elsewhere_and_sees_what_differs(
    book: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Cells: 9 of a page, 8 of one whose code is left out in part, 3 of which one measures."""
    for name, page in {"folds": FOLDS, "measured": MEASURED}.items():
        (book / f"{name}.qmd").write_text(page)
    yaml = book / "_quarto.yml"
    yaml.write_text(
        yaml.read_text().replace("- b.qmd", "- b.qmd\n    - folds.qmd\n    - measured.qmd")
    )
    elsewhere = tmp_path_factory.mktemp("empty")
    write_notebooks(load_project(book, Problems()), elsewhere, Problems())
    (elsewhere / "conftest.py").write_text(measured_form.as_conftest())
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "."]

    def run() -> str:
        done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
        return done.stdout

    assert "20 passed" in run()
    for name, old, new in [
        ("t/a", "2000\\n", "2001\\n"), ("measured", "took # s", "took # B"), ("measured", "42", "43"),
    ]:  # fmt: skip
        path = elsewhere / f"{name}.ipynb"
        path.write_text(path.read_text().replace(old, new))
    said = run()
    assert "3 failed, 17 passed" in said
    assert "another form" in said


def test_front_matter_decides(make_book: MakeBook) -> None:
    cell = "```{python}\n#| echo: false\nprint(1)\n```\n"
    root = make_book(
        index_qmd=f"# A\n\n{cell}",
        b_qmd=f"---\nmlsim-book: {{notebook: true}}\ntitle: From YAML\n---\n\n{cell}",
        c_qmd="---\nmlsim-book: {notebook: false}\n---\n\n# C\n\n```{python}\n1\n```\n",
    )
    notebooks = made(root)
    assert list(notebooks) == ["b.ipynb"]
    assert source(notebooks["b.ipynb"]["cells"][0]) == "# From YAML"


def test_shortcodes_that_stay_are_noted(make_book: MakeBook) -> None:
    text = "# A\n\nVersion {{< var version >}}.\n\n{{< pagebreak >}}\n\n```{python}\n1\n```\n"
    problems = Problems()
    make_notebooks(load_project(make_book(index_qmd=text), Problems()), problems)
    (problem,) = problems.found
    assert problem.file == "index.qmd"
    assert "'var'" in problem.message


def test_code_that_feeds_nothing_is_left_out_and_the_rest_of_it_folded(make_book: MakeBook) -> None:
    root = make_book(index_qmd=FOLDS)
    notebook = made(root)["index.ipynb"]
    nbformat.validate(nbformat.from_dict(notebook))
    fold = {"cellView": "form", "jupyter": {"source_hidden": True}}
    ignored = {"tags": ["nbval-ignore-output"]}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [(source(cell), cell["metadata"]) for cell in code] == [
        ("import math\nshare = 0.5", fold),
        ('hidden_too = half = share / 2\nimport warnings\nwarnings.warn("quiet")', fold | ignored),
        ("def twice(n):\n    return 2 * n", fold | ignored),
        ("print(hidden_too)", ignored),
        ("math.floor(half)", fold),
        ("unread = 4\nassert share\ntwice(share)", fold),
        ("share", {}),
    ]
    assert [len(cell["outputs"]) for cell in code] == [0, 0, 0, 0, 1, 1, 1]
    told = [source(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    assert told[:2] == ["# A", "The share is 0.5.\n\nMore."]
    assert "Twice is *2*." in told


def test_a_notebook_keeps_the_form_of_what_was_measured(make_book: MakeBook) -> None:
    notebook = made(make_book(index_qmd=MEASURED))["index.ipynb"]
    measured, plain = (each for each in notebook["cells"] if each["cell_type"] == "code")
    assert measured["outputs"][0]["text"] == ["FP32 took # s, # s\n"]
    assert measured["outputs"][1]["data"] == {"text/plain": ["#"]}
    assert measured["metadata"]["tags"] == ["measured", "nbval-ignore-output"]
    assert plain["outputs"][0]["text"] == ["42\n"]
    assert "tags" not in plain["metadata"]


def test_what_the_page_shows_of_a_cell() -> None:
    """Of hidden code that warns or fails all is seen; of other code what its outputs are of."""
    said, warned = ({"output_type": "stream", "name": name} for name in ("stdout", "stderr"))
    value, drawn, failed = (
        {"output_type": kind} for kind in ("execute_result", "display_data", "error")
    )
    hidden, quiet = "echo: false", "echo: false\n#| warning: false"
    for options, outputs, wanted in (
        ("echo: true", [], Code("x", seen=True)),
        (hidden, [], Code("x", shows="nothing")),
        (hidden, [value], Code("x", shows="value")),
        (hidden, [value, said], Code("x", shows="all")),
        (hidden, [drawn], Code("x", shows="all")),
        (hidden, [value, warned], Code("x", seen=True)),
        (hidden, [failed], Code("x", seen=True)),
        (quiet, [failed], Code("x", seen=True)),
        (quiet, [value, warned], Code("x", shows="value")),
        (quiet, [warned], Code("x", shows="nothing")),
        ("include: false", [value, failed], Code("x")),
        ("output: false", [value], Code("x", seen=True)),
        ("echo: false\n#| output: false", [value], Code("x")),
        ("echo: false\n#| output: asis", [said], Code("x", acts=False)),
        ("eval: false", [], Code("")),
    ):
        [cell] = parse_blocks(split_lines(f"```{{python}}\n#| {options}\nx\n```\n", file="a"))
        assert isinstance(cell, Cell)
        assert page_code(cell, outputs, page_defaults({})) == wanted, (options, outputs)
