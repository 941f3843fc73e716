"""What a genuine Quarto makes of a book: told of its sources, and found in a site it rendered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import kept
import pytest
from recorded_pages import recorded

from mlsim_book.check.quarto import Finding, compare_numbers, quarto_findings, scan_page, scan_site
from mlsim_book.cli import main
from mlsim_book.errors import Problems
from mlsim_book.read.project import load_project
from mlsim_book.run.pages import parse_pages

MakeBook = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
WALLS = "# Walls {#sec-walls}\n\n## Bricks {#sec-bricks}\n\n## Loose {#sec-loose .unnumbered}\n"
PAGE = (
    "<html><head><title>{{python}}</title></head><body><nav>:::</nav><main>{}</main></body></html>"
)


# ------------------------------------------------------------------------------ sources
def findings(book: Path) -> list[Finding]:
    problems = Problems()
    project = load_project(book, problems)
    return quarto_findings(project, parse_pages(project, problems))


def test_each_rule_of_sources(make_book: MakeBook) -> None:
    for text, kind, line, said in kept.cases("quarto_pages.toml", "rules"):
        (found,) = findings(make_book(index_qmd=text, walls_qmd=WALLS))
        assert (found.kind, found.file, found.line) == (kind, "index.qmd", line), text
        assert said in found.message
        assert found.hint
    text = (
        "# A {.unnumbered}\n\nSee @sec-walls, [@sec-bricks] and `@sec-loose`.\n\n## B\n\n### C\n\n"
        "```\n# no heading\n[see @fig-x, left]\n```\n\n::: {.callout-note}\n## T *x*\nD\n:::\n\n"
        "`{{python}} n` and {{< pagebreak >}}\n"
    )
    assert findings(make_book(index_qmd=text, walls_qmd=WALLS)) == []


def test_figures_of_unnumbered_chapters_count_alike(make_book: MakeBook) -> None:
    text = "# A {.unnumbered}\n\n| a |\n|---|\n| 1 |\n\n: One {#tbl-NAME}\n"
    other = text.replace("NAME", "b").replace("# A", "# B")
    (found,) = findings(make_book(index_qmd=text.replace("NAME", "a"), b_qmd=other))
    assert (found.file, found.line) == ("b.qmd", 7)
    assert "calls this Table 1, as it does in index.qmd" in found.message


def test_check_fails_on_what_is_lost(make_book: MakeBook, capsys: Capture) -> None:
    book = make_book(index_qmd="# A\n\n## B\n\n#### C\n\nSee @sec-loose.\n", walls_qmd=WALLS)
    assert main(["check", str(book)]) == 1
    said = capsys.readouterr()
    assert "index.qmd:7: Quarto prints ?sec-loose" in said.err
    assert "WARN: index.qmd:5: Quarto numbers 'C' with a 0" in said.out


# ------------------------------------------------------------------------------ the site
def write(folder: Path, **pages: str) -> Path:
    for name, html in pages.items():
        path = folder / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGE.format(html), "utf-8")
    return folder


def test_each_fault_of_a_page_is_seen(tmp_path: Path) -> None:
    for html, what in kept.cases("quarto_pages.toml", "faults"):
        found = scan_page(PAGE.format(html), "a.html")
        assert {each.what for each in found} == {what}, html
        assert str(found[0]).startswith(f"a.html: {what}: ")
        if "block" not in what:  # our page says the same words
            assert scan_page(PAGE.format(html), allowed=PAGE.format(html)) == []
    assert scan_page(PAGE.format(kept.text("sound_page.html"))) == []
    with pytest.raises(ValueError, match="no built page"):
        scan_site(tmp_path)


def test_what_quarto_made_of_the_recorded_books(conformance: Path) -> None:
    """The faults on record are seen, and nothing else is taken for one."""
    faulty = {
        "authors-dates", "cite-none", "inline-broken-lines", "inline-places", "inline-rich",
        "inline-touching", "params-meta", "shortcodes-escaped", "shortcodes-vars",
        "stored-notebook", "xref-chapters", "xref-unnumbered",
    }  # fmt: skip
    books = {path.parent for path in conformance.glob("*/expected.html")}
    assert {each.name for each in books if any(map(scan_page, recorded(each).values()))} == faulty


def test_numbers_are_compared_page_by_page_and_told_where_they_stand(tmp_path: Path) -> None:
    """The first sentence with a number may be the same on both pages."""
    number = "<span class='opens' data-opens='o'>5 s</span>"
    button = "<span><button popovertarget='n'>5 s</button><span popover>7 s</span></span>"
    half = "<h2>{}A</h2><p>Half of it is 138% (0%).</p><p>Pots: {} left.</p>"
    ours = write(
        tmp_path / "ours",
        index=f"<p>It takes {number} and 3.5 J.</p><details class='figure-data'>9</details>",
        gone="<p>1</p>",
        half=half.format("<span class='header-section-number'>1.1</span> ", "no"),
    )
    same = write(
        tmp_path / "same", index=f"<p>It takes {button} and 3.5 J.</p>", gone="<p>1</p>",
        half=half.format("", "no"),
    )  # fmt: skip
    assert compare_numbers(same, ours) == []
    other = write(
        tmp_path / "other", index=f"<p>It takes {button} and 3.6 J.</p>", half=half.format("", 0)
    )
    assert [str(each) for each in compare_numbers(other, ours)] == [
        "gone.html: no such page: in Quarto's site",
        "half.html: 0 is only in Quarto's page: Pots: 0 left.",
        "index.html: 3.6 is only in Quarto's page: It takes 5 s and 3.6 J.",
        "index.html: 3.5 is only in our page: It takes 5 s and 3.5 J.",
    ]


def test_where_a_reader_finds_no_difference_there_is_none(tmp_path: Path) -> None:
    for (html,) in kept.cases("quarto_pages.toml", "apart"):
        first, second = ("", ",") if "20{}4" in html else ("2020a", "2021 b")
        text = "<p>Of 3 pots</p>{}<p>one takes 5 s.</p>"
        theirs = write(tmp_path / "a", index=text.format(html.format(first)))
        ours = write(tmp_path / "b", index=text.format(html.format(second)))
        assert compare_numbers(theirs, ours) == [], html
        write(ours, index=text.format(html.format(second)).replace("3 pots", "4 pots"))
        assert len(compare_numbers(theirs, ours)) == 2, html


def test_the_command_compares_with_a_site_that_quarto_made_or_makes_one(
    make_book: MakeBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    book = make_book(index_qmd="# A\n\nIt takes 5 s.\n")
    assert main(["quarto", str(book)]) == 1
    assert "mlsim-book build" in capsys.readouterr().err
    assert main(["build", str(book)]) == 0
    theirs = write(tmp_path / "theirs", index="<h1>A</h1><p>It takes 5 s.</p>")
    assert main(["quarto", str(book), "--site", str(theirs)]) == 0
    assert "show the same numbers as ours" in capsys.readouterr().out
    write(theirs, index="<h1>A</h1><p>It takes `6`{=html} s.</p>")
    assert main(["quarto", str(book), "--site", str(theirs)]) == 1
    said = capsys.readouterr().err
    assert "index.html: raw HTML's mark" in said
    assert "6 is only in Quarto's page" in said
    assert "5 is only in our page" in said

    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["quarto", str(book)]) == 1
    assert "pip install 'mlsim-book[quarto]'" in capsys.readouterr().err
    quarto = tmp_path / "bin" / "quarto"
    quarto.parent.mkdir()
    page = PAGE.format("<p>It takes 5 s.</p>")
    quarto.write_text(f"#!/bin/sh\nmkdir -p $4\necho '{page}' > $4/index.html\n")
    quarto.chmod(0o755)
    monkeypatch.setenv("PATH", f"{quarto.parent}:/usr/bin:/bin")
    assert main(["quarto", str(book)]) == 0
    assert (book / "_book_quarto" / "index.html").is_file()
