"""What outputs leave open may damage nothing around them: HTML is repaired, Markdown mended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kept import cases

from mlsim_book.build import build
from mlsim_book.errors import Problems
from mlsim_book.read.qmd import page_defaults, read_document
from mlsim_book.run.inline import Inline, render
from mlsim_book.run.intermediate import write_blocks
from mlsim_book.run.outputs import Figure, output_markdown
from mlsim_book.run.repair import balanced, mend, repaired
from mlsim_book.run.results import Results

MakeBook = Callable[..., Path]


def test_html_is_repaired_and_the_balanced_passes_byte_for_byte() -> None:
    for html, wanted in cases("html_repaired.toml"):
        assert repaired(html) == wanted, html
        assert balanced(html) == (html == wanted), html
        assert balanced(wanted), html
        assert html != wanted or repaired(html) is html
    output = {"output_type": "display_data", "data": {"text/html": "<p>a</p></div>"}}
    assert "</div>" not in output_markdown(output, Figure("f"), {}, asis=False)
    assert render({"text/html": "<b>x"}, Inline("x", 0, 1, "a.qmd", 1)) == "`<b>x</b>`{=html}"


@pytest.mark.usefixtures("with_assets")
def test_what_stands_around_an_output_is_as_it_was(make_book: MakeBook) -> None:
    cell = '\n```{{python}}\n#| echo: false\n#| output: true\nfrom IPython.display import HTML\nHTML("{}")\n```\n'
    texts = ("<b>fine</b>", "</div></section></main><table><tr><td><div>", "<!-- <p>", "<script>")
    text = "# A\n\n## Before {#sec-before}\n\nOne.\n"
    text += "".join(cell.format(each) for each in texts)
    text += "\n## After {#sec-after}\n\nSee @sec-before and **bold**.\n"
    page = (build(make_book(index_qmd=text), progress=str) / "index.html").read_text("utf-8")
    assert balanced(page.split("<body", 1)[1].split(">", 1)[1].split("</body>")[0])
    main = page[page.index("<main") : page.index("</main>")]
    for whole in ("<b>fine</b>", "<td><div></div></td>", '<section id="sec-after"', "<strong>bold"):
        assert whole in main


def test_markdown_is_mended_and_the_sound_stays_byte_for_byte() -> None:
    for text, wanted in cases("markdown_mended.toml"):
        assert mend([text]) == [wanted], text
        assert mend([wanted]) == [wanted], text
    texts = ["::: {.panel-tabset}\n", "## A\n\n<div>\n", "</div>\n", ":::\n"]
    assert mend(texts) == texts  # texts may close what others open
    assert mend(["<div>\n", ":::\n"]) == ["<div>\n\n</div>\n", "\n"]
    shown = output_markdown(markdown("<div>\n\n*a*"), Figure("x"), {}, asis=False)
    assert shown.endswith("</div>\n")


def markdown(text: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/markdown": text}, "metadata": {}}


def stdout(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


ASIS = "```{python}\n#| output: asis\n#| echo: false\nx\n```\n\n"


def test_cells_without_a_div_are_mended_together_and_one_with_a_div_by_itself(
    tmp_path: Path,
) -> None:
    def pieces(source: str, *outputs: Any) -> list[str]:
        (tmp_path / "a.qmd").write_text(source, encoding="utf-8")
        document = read_document(tmp_path / "a.qmd", root=tmp_path, problems=Problems())
        written, _ = write_blocks(document, Results(outputs), page_defaults({}), figures="f")
        return [each for each in written if each.strip()]

    first = (stdout("<details>\n"), stdout("<summary>S</summary>\n"))
    opens, between, closes = pieces(
        f"{ASIS}between</i>\n\n{ASIS}", first, (stdout("</details>\n"),)
    )
    assert "</details>" not in opens
    assert between.strip() == "between</i>"  # what an author writes is not mended
    assert "</details>" in closes
    outputs = (stdout("::: {.a}\n"), markdown("<section>"), stdout(":::\n"))
    (cell,) = pieces(ASIS.replace("#| echo: false\n", ""), outputs)
    assert cell.count("<section>") == cell.count("</section>") == 1
    assert cell.count(":::") == 4
