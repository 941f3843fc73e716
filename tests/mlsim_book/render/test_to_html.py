"""The filter: Quarto's elements and class names, feature by feature, on hand-written Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim_book.caches import TextCache
from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage, Project
from mlsim_book.read.places import Reporter
from mlsim_book.render.postprocess import Links, finish_html
from mlsim_book.render.shortcodes import expand_shortcodes
from mlsim_book.render.to_html import RenderedPage, render_pages

CHAPTER = Chapter("index.qmd", "index.html", "Title", 1)


def page_of(markdown: str, **metadata: object) -> ExecutedPage:
    return ExecutedPage(CHAPTER, markdown, metadata, {}, markdown)


def render(tmp_path: Path, markdown: str, **html: object) -> RenderedPage:
    project = Project(tmp_path, "Book", (CHAPTER,), html=html)
    return render_pages(project, [page_of(markdown)], keep=TextCache(tmp_path / "keep"))[0]


def body(tmp_path: Path, markdown: str, **html: object) -> str:
    page = render(tmp_path, markdown, **html)
    links = Links(tmp_path, {"index.qmd": "index.html", "sub/b.qmd": "sub/b.html"}, {})
    return finish_html(page.body, page.page, links, Reporter(Problems(), tmp_path))


@pytest.mark.parametrize("kind", ["note", "tip", "warning", "important", "caution"])
def test_callouts(tmp_path: Path, kind: str) -> None:
    html = body(tmp_path, f"::: {{.callout-{kind}}}\n## Mind *this*\n\nText.\n:::\n")
    assert f'<div class="callout callout-style-default callout-{kind} callout-titled">' in html
    assert "Mind <em>this</em>" in html
    assert "<h2" not in html


def test_a_collapsed_callout_is_a_button_that_says_so(tmp_path: Path) -> None:
    html = body(tmp_path, '::: {.callout-note collapse="true"}\nText.\n:::\n')
    assert 'aria-expanded="false" role="button" tabindex="0"' in html
    assert '<div id="callout-1" class="callout-1-contents callout-collapse collapse">' in html


@pytest.mark.parametrize(
    ("option", "present", "absent"),
    [
        ('appearance="simple"', "callout-style-simple", "callout-titled"),
        ('appearance="minimal"', "no-icon", "callout-titled"),
        ("icon=false", "no-icon", "callout-style-simple"),
    ],
)
def test_callout_looks(tmp_path: Path, option: str, present: str, absent: str) -> None:
    html = body(tmp_path, f"::: {{.callout-tip {option}}}\nText.\n:::\n")
    assert present in html
    assert absent not in html


def test_tabs(tmp_path: Path) -> None:
    html = body(tmp_path, '::: {.panel-tabset group="g"}\n## A\n\none\n\n## B\n\ntwo\n:::\n')
    assert '<div class="panel-tabset" data-group="g">' in html
    assert html.count('role="tab"') == 2
    assert html.count('role="tabpanel"') == 2
    assert html.count('aria-selected="true"') == 1


def test_tabs_without_headings_are_told(tmp_path: Path) -> None:
    ((message, _),) = render(tmp_path, "::: {.panel-tabset}\nNothing.\n:::\n").notes
    assert "without headings" in message


@pytest.mark.parametrize(("fold", "opening"), [("true", '<details class="code-fold"><summary>'),
                                               ("show", '<details class="code-fold" open="">')])  # fmt: skip
def test_code_folds(tmp_path: Path, fold: str, opening: str) -> None:
    html = body(
        tmp_path,
        f'::: {{.cell}}\n```{{.python .cell-code code-fold="{fold}" code-summary="See *it*"}}\n1\n```\n:::\n',
    )
    assert opening in html
    assert "See <em>it</em>" in html
    assert '<div class="sourceCode cell-code"' in html
    assert 'class="code-copy-button"' in html


def test_code_with_a_file_name_and_numbers(tmp_path: Path) -> None:
    html = body(tmp_path, '```{.python filename="a.py" code-line-numbers="true"}\n1\n```\n')
    assert "<strong>a.py</strong>" in html
    assert "numberSource" in html


def test_annotations_leave_the_code_and_explain_it(tmp_path: Path) -> None:
    html = body(tmp_path, "```python\nx = 1  # <1>\n```\n1. One.\n")
    assert "&lt;1&gt;" not in html
    assert 'class="code-annotation-anchor"' in html
    assert "<dt" in html
    assert "<ol" not in html


def test_conditional_content(tmp_path: Path) -> None:
    html = body(
        tmp_path,
        '::: {.content-visible when-format="pdf"}\nPaper.\n:::\n\n'
        '::: {.content-hidden when-format="pdf"}\nScreen.\n:::\n',
    )
    assert "Paper" not in html
    assert "Screen" in html


def test_theorems_and_proofs(tmp_path: Path) -> None:
    html = body(tmp_path, "# T\n\n::: {#thm-a}\n## Odd\nIt is.\n:::\n\n::: {.proof}\nSee.\n:::\n")
    assert "<strong>Theorem\xa01.1 (Odd)</strong>" in html
    assert '<span class="proof-title"><em>Proof</em>. </span>See.' in html


def test_wide_tables_scroll_in_their_box(tmp_path: Path) -> None:
    html = body(
        tmp_path, '| a | b |\n|---|---|\n| 1 | 2 |\n\n: C {tbl-colwidths="[30,70]" .striped}\n'
    )
    assert '<div class="table-scroll"><table class="table-striped caption-top table">' in html
    assert '<col style="width: 30%"' in html


def test_data_frames_lose_their_own_style(tmp_path: Path) -> None:
    html = body(
        tmp_path,
        '```{=html}\n<style scoped>.dataframe th {}</style>\n<table border="1" class="dataframe">'
        '<thead><tr style="text-align: right;"><th>a</th></tr></thead></table>\n```\n',
    )
    assert "<style" not in html
    assert '<table class="dataframe caption-top table table-sm table-striped small">' in html
    assert "text-align" not in html


def test_sections_can_go_without_numbers(tmp_path: Path) -> None:
    numbered = render(tmp_path, "# T\n\n## A\n\n## B {.unnumbered}\n")
    assert [each.number for each in numbered.headings] == ["1", "1.1", ""]
    plain = render(tmp_path, "# T\n\n## A\n", **{"number-sections": False})
    assert [each.number for each in plain.headings] == ["", ""]


def test_shortcodes(tmp_path: Path) -> None:
    (tmp_path / "_variables.yml").write_text("v: {n: 3}\n")
    project = Project(tmp_path, "Book", (CHAPTER,), metadata={"level": "easy"})
    problems = Problems()
    text = "{{< var v.n >}} {{< meta level >}} {{{< var v.n >}}} {{< env NOT_SET_HERE x >}}\n\n{{< nope >}}\n"
    expanded = expand_shortcodes(page_of(text), project, Reporter(problems, tmp_path))
    assert expanded == "3 easy {{< var v.n >}} x\n\n{{< nope >}}\n"
    assert [(each.line, each.message) for each in problems.found] == [
        (3, "the shortcode {{< nope >}} can't be expanded")
    ]


def test_a_page_is_rendered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = render(tmp_path, "# A\n\nText.\n").body

    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("pandoc was run again")

    monkeypatch.setattr("mlsim_book.render.to_html.run_pandoc", never)
    assert render(tmp_path, "# A\n\nText.\n").body == first


def test_what_is_given_keeps_its_kind(tmp_path: Path) -> None:
    html = body(tmp_path, '# T\n\n## In [5 s]{.given kind="example"}\n')
    assert '<span class="given" data-kind="example">5 s</span>' in html
