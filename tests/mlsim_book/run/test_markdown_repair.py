"""Markdown that cells display: what it leaves open may not swallow the rest of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlsim_book.errors import Problems
from mlsim_book.read.options import page_defaults
from mlsim_book.read.qmd import read_document
from mlsim_book.run.intermediate import write_blocks
from mlsim_book.run.markdown_repair import mend
from mlsim_book.run.outputs import Figure, output_markdown
from mlsim_book.run.results import Results

SOUND = [
    "plain *text*\n",
    "<div>\n\n*a*\n\n</div>\n",
    "::: {.note}\nx\n:::\n",
    "`<div>` and ``a ` <b>`` stay\n",
    "```html\n<div>\n:::\n```\n",
    "$a<b$ and $$x<div>$$\n",
    "<!-- <div> -->\n",
    "List<int>, <class 'str'>, <https://example.org>\n",
    "<ul><li>a<li>b</ul><br><img src='a'><hr>\n",
    "<script>if (a</b) '<div>'</script>\n",
    "<svg><path d='M'/></svg>\n",
    "a < b and c > d\n",
    "<!--\n<div>\n-->\n",
    "$$\n<div>\n\n<p>\n$$\n",
    "``a\n<div>`` b\n",
]


def test_sound_text_stays_byte_for_byte() -> None:
    assert {text: mend([text]) for text in SOUND} == {text: [text] for text in SOUND}


MENDED = [
    ("<div>\n\n*a*", "<div>\n\n*a*\n\n</div>\n"),
    ("a</div>\n\nb", "a\n\nb"),
    ("a <b>b\n\nc", "a <b>b</b>\n\nc"),
    ("<b><i>x</b></i>", "<b><i>x</i></b>"),
    ("::: {.note}\nx\n", "::: {.note}\nx\n\n:::\n"),
    ("x\n\n:::\n", "x\n\n\n"),
    ("::: {.a}\n<div>\n:::\n", "::: {.a}\n<div>\n</div>\n\n:::\n"),
    ("```python\nx = '<div>'", "```python\nx = '<div>'\n```\n"),
    ("```{=html}\n<div>\n```\n", "```{=html}\n<div>\n```\n\n</div>\n"),
    ("<!-- never", "&lt;!-- never"),
    ('<div class="a', '&lt;div class="a'),
    ("<script>x", "<script>x\n</script>\n"),
    ("a `<div>\n\n</div>` b", "a `<div>\n\n</div>` b"),  # no code over two paragraphs
    ("<B>x\n\n</DIV>y", "<B>x</b>\n\ny"),
    ("<br/><div/><div>\n", "<br/><div/><div>\n\n</div>\n"),
    ("<b>x\n\n<div>y</b>z", "<b>x\n\n<div>y</div></b>z"),
    ("x <i>y\n</b>", "x <i>y\n</i>"),
]


def test_the_rest_is_mended() -> None:
    assert {given: mend([given]) for given, _ in MENDED} == {
        given: [text] for given, text in MENDED
    }
    assert [text for _, text in MENDED if mend([text]) != [text]] == []


def test_texts_may_close_what_others_open() -> None:
    texts = ["::: {.panel-tabset}\n", "## A\n\n<div>\n", "</div>\n", ":::\n"]
    assert mend(texts) == texts
    assert mend(["<div>\n", ":::\n"]) == ["<div>\n\n</div>\n", "\n"]


def markdown(text: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/markdown": text}, "metadata": {}}


def stdout(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def test_displayed_markdown_is_mended() -> None:
    text = output_markdown(markdown("<div>\n\n*a*"), Figure("x"), {}, asis=False)
    assert text.endswith("</div>\n")


def pieces(folder: Path, source: str, *outputs: Any) -> list[str]:
    """Return what the blocks of a page write."""
    (folder / "a.qmd").write_text(source, encoding="utf-8")
    document = read_document(folder / "a.qmd", root=folder, problems=Problems())
    written, _ = write_blocks(document, Results(outputs), page_defaults({}), figures="f")
    return [each for each in written if each.strip()]


ASIS = "```{python}\n#| output: asis\n#| echo: false\nx\n```\n\n"


def test_cells_without_a_div_are_mended_together(tmp_path: Path) -> None:
    opens, between, closes = pieces(
        tmp_path,
        f"{ASIS}between\n\n{ASIS}",
        (stdout("<details>\n"), stdout("<summary>S</summary>\n")),
        (stdout("</details>\n"),),
    )
    assert "</details>" not in opens
    assert "between" in between
    assert "</details>" in closes


def test_a_cell_with_a_div_is_mended_by_itself(tmp_path: Path) -> None:
    shown = ASIS.replace("#| echo: false\n", "")
    (cell,) = pieces(
        tmp_path, shown, (stdout("::: {.a}\n"), markdown("<section>"), stdout(":::\n"))
    )
    assert cell.count("<section>") == cell.count("</section>") == 1
    assert cell.count(":::") == 4
