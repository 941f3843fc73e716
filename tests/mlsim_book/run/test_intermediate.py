"""The intermediate Markdown: labels, captions, code and outputs as Quarto lays them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import Problems
from mlsim_book.read.qmd import page_defaults, read_document
from mlsim_book.run.intermediate import write_markdown
from mlsim_book.run.results import Output, Results

IMAGE = {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}, "metadata": {}}
TABLE = {"output_type": "execute_result", "data": {"text/html": "<table/>"}, "execution_count": 1}
HELLO = {"output_type": "stream", "name": "stdout", "text": "hi\n"}


@pytest.fixture
def page(tmp_path: Path) -> Any:
    """Return a function from a cell's options and outputs to its Markdown."""

    def write(options: str, *outputs: Output, front: str = "", indent: str = "") -> str:
        lines = [*(f"#| {line}" for line in options.splitlines()), "x = 1"]
        cell = "".join(f"{indent}{line}\n" for line in ["```{python}", *lines, "```"])
        (tmp_path / "d").mkdir(exist_ok=True)
        path = tmp_path / "d" / "p.qmd"
        path.write_text(f"---\nfront: 1\n{front}---\n{cell}", encoding="utf-8")
        document = read_document(path, root=tmp_path, problems=Problems())
        results, defaults = Results((tuple(outputs),)), page_defaults(document.front_matter)
        markdown, files = write_markdown(document, results, defaults, source="d/p.qmd")
        assert all(name.startswith("d/p_files/figure-html/") for name in files)
        return "\n".join(line for line in markdown.splitlines() if line.strip())

    return write


CODE = "``` {.python .cell-code}\nx = 1\n```\n"
OUT = "::: {.cell-output .cell-output-stdout}\n```\nhi\n```\n:::\n"
SHOW = "::: {.cell-output .cell-output-display}\n"


def test_what_shows(page: Any) -> None:
    cell = '::: {.cell execution_count="1"}\n'
    for options, shown in {
        "": f"{cell}{CODE}{OUT}:::",
        "echo: false": f"{cell}{OUT}:::",
        "output: false": f"{cell}{CODE}:::",
        "include: false": "",
        "echo: false\noutput: asis": "hi",
        "output: asis": f"{cell}{CODE}hi\n:::",
    }.items():
        assert page(options, HELLO) == shown, options
    plain = page("", HELLO).splitlines()
    assert page("", HELLO, indent="   ").splitlines() == [f"   {line}" for line in plain]


def test_page_defaults_and_the_cell_over_them(page: Any) -> None:
    front = "execute: {echo: false}\ncode-fold: true\ncode-summary: Look\n"
    assert CODE not in page("", HELLO, front=front)
    text = page("echo: true", HELLO, front=front)
    assert '``` {.python .cell-code code-fold="true" code-summary="Look"}' in text
    text = page("echo: true\ncode-fold: false", HELLO, front=front)
    assert '``` {.python .cell-code code-fold="false"}' in text
    text = page("echo: true\ncode-fold: show\ncode-line-numbers: true\ncode-overflow: wrap")
    assert '.cell-code .code-overflow-wrap code-fold="show" code-line-numbers="true"}' in text


def test_fenced(page: Any) -> None:
    text = page("echo: fenced\nlabel: a-cell", HELLO)
    assert text.startswith('::: {#a-cell .cell execution_count="1"}\n```` {.markdown .cell-code}')
    assert "```{python}\n#| label: a-cell\nx = 1\n```\n````" in text


def test_figure(page: Any) -> None:
    text = page('label: fig-a\nfig-cap: "A\n  *b*"\nfig-alt: Alt\nfig-align: left', IMAGE)
    image = "![A *b*](p_files/figure-html/fig-a-output-1.svg)"
    assert text == (
        f'::: {{#cell-fig-a .cell execution_count="1"}}\n{CODE}{SHOW}'
        f'{image}{{#fig-a fig-align="left" fig-alt="Alt"}}\n:::\n:::'
    )
    text = page("fig-cap: A\ncap-location: top", IMAGE)
    assert '![A](p_files/figure-html/cell-1-output-1.svg){fig-cap-location="top"}' in text


def test_figure_of_several_images(page: Any) -> None:
    options = "label: fig-a\nfig-cap: All\nfig-subcap: [One, Two]\nlayout-ncol: 2\nfig-alt: [a, b]"
    text = page(options, IMAGE, IMAGE)
    assert text.startswith('::: {#fig-a .cell layout-ncol="2" execution_count="1"}')
    assert '![One](p_files/figure-html/fig-a-output-1.svg){#fig-a-1 fig-alt="a"}' in text
    assert '![Two](p_files/figure-html/fig-a-output-2.svg){#fig-a-2 fig-alt="b"}' in text
    assert text.endswith(":::\nAll\n:::")
    text = page("fig-cap: [One, Two]", IMAGE, IMAGE)
    assert "![One]" in text
    assert "![Two]" in text
    text = page("label: fig-a\nfig-cap: A", TABLE)  # a labelled object that is no image
    assert '::: {#fig-a .cell-output .cell-output-display execution_count="1"}' in text
    assert "```\nA\n:::" in text


def test_table(page: Any) -> None:
    text = page("label: tbl-a\ntbl-cap: 'A *b*'\necho: false", TABLE)
    assert text == (
        '::: {#tbl-a .cell tbl-cap="A *b*" execution_count="1"}\n'
        '::: {.cell-output .cell-output-display execution_count="1"}\n'
        "```{=html}\n<table></table>\n```\n:::\n:::"
    )
    text = page("label: tbl-a\ntbl-cap: A\necho: false\noutput: asis", HELLO)
    assert text == '::: {#tbl-a .cell tbl-cap="A" execution_count="1"}\nhi\n:::'


def test_listing_and_other_options(page: Any) -> None:
    text = page('lst-label: lst-a\nlst-cap: "Do it"\nfilename: a.py\ncolumn: margin\nclasses: b .c')
    assert text.startswith('::: {.cell .b .c .column-margin execution_count="1"}')
    assert '``` {#lst-a .python .cell-code lst-cap="Do it" filename="a.py"}' in text
    text = page("tags: [a, b]\nflavour: mint\nid: my-id\nerror: true", HELLO)
    assert text.startswith(
        '::: {#my-id .cell tags="[\\"a\\",\\"b\\"]" flavour="mint" execution_count="1"}'
    )
