"""`check` and `doctor` say what a genuine Quarto would do with a book's sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlsim_book.check.quarto_rules import Finding, quarto_findings
from mlsim_book.cli import main
from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import parse_pages

MakeBook = Callable[..., Path]
WALLS = "# Walls {#sec-walls}\n\n## Bricks {#sec-bricks}\n\n## Loose {#sec-loose .unnumbered}\n"


def findings(book: Path) -> list[Finding]:
    problems = Problems()
    project = load_project(book, problems)
    return quarto_findings(project, parse_pages(project, problems))


@pytest.mark.parametrize(
    ("text", "kind", "line", "said"),
    [
        ("# A\n\n```\n`{python} n`\n```\n", "loses", 4, "runs `{python} n` here, too"),
        ("# A\n\n`` `{python} n` ``\n", "loses", 3, "runs `{python} n` here, too"),
        ("# A\n\n# B\n", "loses", 3, "as the next chapter"),
        ("---\ntitle: A\n---\n\nText\n", "loses", 1, "shows the book's title here"),
        ("# A\n\n## B\n\n#### C\n", "differs", 5, "numbers 'C' with a 0"),
        ("# A *b* & c\n", "differs", 1, "in the sidebar as it is written"),
        ("# A\n\nSee [see @sec-walls, left].\n", "loses", 3, "drops the words around"),
        ("# A\n\n[B](walls.qmd?x=1)\n", "loses", 3, "leaves a link to x.qmd?"),
        ('# A\n\n::: {.callout-note title="An *x*"}\nB\n:::\n', "differs", 3, "raw tooltip"),
        (
            '# A\n\n::: {.callout-note title="T"}\n## B\n\nC\n:::\n',
            "loses",
            4,
            "makes this heading",
        ),
        ("# A\n\nSee @sec-loose.\n", "loses", 3, "prints ?sec-loose"),
        ("# A\n\n{{< var x\n\nmore\n", "loses", 3, "drops the rest of the page"),
        ("# A\n\n```{python}\n#| classes: one two\n1\n```\n", "loses", 4, "breaks the box"),
    ],
)
def test_each_rule(make_book: MakeBook, text: str, kind: str, line: int, said: str) -> None:
    (found,) = findings(make_book(index_qmd=text, walls_qmd=WALLS))
    assert (found.kind, found.file, found.line) == (kind, "index.qmd", line)
    assert said in found.message
    assert found.hint


def test_sound_sources_have_none(make_book: MakeBook) -> None:
    text = (
        "# A {.unnumbered}\n\nSee @sec-walls, [@sec-bricks] and `@sec-loose`.\n\n## B\n\n### C\n\n"
        "```\n# no heading\n[see @fig-x, left]\n```\n\n::: {.callout-note}\n## T *x*\nD\n:::\n\n"
        "`{{python}} n` and {{< pagebreak >}}\n"
    )
    assert findings(make_book(index_qmd=text, walls_qmd=WALLS)) == []


def test_a_cache_and_inline_expressions_don_t_go_together(make_book: MakeBook) -> None:
    text = "---\nexecute:\n  cache: true\n---\n\n# A\n\nIt is `{python} 1`.\n"
    (found,) = findings(make_book(index_qmd=text))
    assert (found.kind, found.line) == ("fails", 8)


def test_figures_of_unnumbered_chapters_count_alike(make_book: MakeBook) -> None:
    text = "# A {.unnumbered}\n\n| a |\n|---|\n| 1 |\n\n: One {#tbl-NAME}\n"
    book = make_book(
        index_qmd=text.replace("NAME", "a"), b_qmd=text.replace("NAME", "b").replace("# A", "# B")
    )
    (found,) = findings(book)
    assert (found.file, found.line) == ("b.qmd", 7)
    assert "calls this Table 1, as it does in index.qmd" in found.message


def test_check_fails_on_what_is_lost_and_only_tells_what_differs(
    make_book: MakeBook, capsys: pytest.CaptureFixture[str]
) -> None:
    book = make_book(index_qmd="# A\n\n## B\n\n#### C\n\nSee @sec-loose.\n", walls_qmd=WALLS)
    assert main(["check", str(book)]) == 1
    said = capsys.readouterr()
    assert "index.qmd:7: Quarto prints ?sec-loose" in said.err
    assert "WARN: index.qmd:5: Quarto numbers 'C' with a 0" in said.out


def test_doctor_reads_the_book_that_it_is_run_in(
    make_book: MakeBook, capsys: pytest.CaptureFixture[str]
) -> None:
    book = make_book(index_qmd="# A\n\nSo `{python}  1` and\n\n# B\n")
    main(["doctor", str(book)])
    said = capsys.readouterr().out
    assert "Quarto would do otherwise in 2 places" in said
    assert "index.qmd:3: the inline expression `1`: Quarto prints it as code" in said
    assert "index.qmd:5: Quarto numbers this heading as the next chapter" in said
    (book / "index.qmd").write_text("# A\n")
    main(["doctor", str(book)])
    assert "Quarto would show these pages as we do" in capsys.readouterr().out


def test_doctor_needs_no_book(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", str(tmp_path)])
    assert "sources" not in capsys.readouterr().out


def test_doctor_tells_of_sources_that_can_t_be_read(
    make_book: MakeBook, capsys: pytest.CaptureFixture[str]
) -> None:
    book = make_book(index_qmd="# A\n\n```{python}\n1\n")
    main(["doctor", str(book)])
    assert "index.qmd:3: the cell that opens here is not closed" in capsys.readouterr().out
