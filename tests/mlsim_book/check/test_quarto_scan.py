"""Reading a site that Quarto rendered: each fault on a small page, and a page without any."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from recorded_pages import recorded

from mlsim_book.check.quarto_scan import compare_numbers, scan_page, scan_site
from mlsim_book.cli import main

MakeBook = Callable[..., Path]
PAGE = (
    "<html><head><title>{{python}}</title></head><body><nav>:::</nav><main>{}</main></body></html>"
)
FAULTS = {
    "<p>It is <code>{python} max(1, 2)</code> here.</p>": "an expression that was not run",
    "<p>It is `{=html} here.</p>": "raw HTML's mark",
    "<p>::: {.callout-note}</p>": "a box's colons",
    "<p>See <strong>?@fig-x</strong>.</p>": "an unresolved reference",
    "<p>See ?sec-walls.</p>": "an unresolved reference",
    "<p>It takes [5 s]{.opens opens=x}.</p>": "attributes that nothing took",
    "<p>It is &lt;IPython.core.display.Latex object&gt;.</p>": "an object's address or type",
    "<p>It is np.float64(1.5).</p>": "an object's address or type",
    f"<p>It is {'iVBORw0KGgo' * 20}.</p>": "letters of a picture's data",
    "<p>It is {{&lt; var x &gt;}}.</p>": "a shortcode",
    "<p>Written Invalid Date</p>": "a date that is none",
    "<p>5<span popover>as printed [@key2020, section 2]</span></p>": "a citation that was not resolved",
    "<p>Read it [see -@key2020; @other].</p>": "a citation that was not resolved",
    "<p>A box <div>within</div> it.</p>": "a block within a paragraph",
    "<p>It takes <details><summary>5 s</summary></details></p>": "a block within a paragraph",
    "<section><p>It takes</p><div>5 s</div> in all.</section>": "text outside of any paragraph",
}
SOUND = (
    "<p>It takes <span><button popovertarget='n'>5 s</button><span popover id='n'>t = 5 s<br>"
    "so</span></span>. What? Yes: 3:4, [a@b.org] or [x].</p><ul><li>one</li></ul><table><tr><td>2</td></tr></table>"
    "<pre class='sourceCode'><code>{python} n ::: ?@x</code></pre><figure><img src='a.svg'></figure>"
)


@pytest.mark.parametrize(("html", "what"), FAULTS.items())
def test_each_fault_is_seen(html: str, what: str) -> None:
    found = scan_page(PAGE.format(html), "a.html")
    assert {each.what for each in found} == {what}
    assert str(found[0]).startswith(f"a.html: {what}: ")


def test_a_sound_page_has_none() -> None:
    assert scan_page(PAGE.format(SOUND)) == []


def test_what_our_page_says_in_the_same_words_is_no_fault() -> None:
    html = PAGE.format("<p>Write <code>{python} n</code> and ::: for it.</p>")
    assert scan_page(html)
    assert scan_page(html, allowed=html) == []


def write(folder: Path, **pages: str) -> Path:
    for name, html in pages.items():
        path = folder / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGE.format(html), "utf-8")
    return folder


def test_numbers_are_compared_page_by_page(tmp_path: Path) -> None:
    number = "<span class='opens' data-opens='o'>5 s</span>"
    button = "<span><button popovertarget='n'>5 s</button><span popover>7 s</span></span>"
    ours = write(
        tmp_path / "ours",
        index=f"<p>It takes {number} and 3.5 J.</p><details class='figure-data'>9</details>",
        gone="<p>1</p>",
    )
    same = write(tmp_path / "same", index=f"<p>It takes {button} and 3.5 J.</p>", gone="<p>1</p>")
    assert compare_numbers(same, ours) == []
    other = write(tmp_path / "other", index=f"<p>It takes {button} and 3.6 J.</p>")
    assert [str(each) for each in compare_numbers(other, ours)] == [
        "gone.html: no such page: in Quarto's site",
        "index.html: 3.6 is only in Quarto's page: It takes 5 s and 3.6 J.",
        "index.html: 3.5 is only in our page: It takes 5 s and 3.5 J.",
    ]


APART = {
    "a bibliography": "<div id='refs' class='references csl-bib-body'><div class='csl-entry'>"
    "Kim. {}. <em>Pots</em> 4.</div></div>",
    "a citation": "<p>So <span class='citation'>(Kim {})</span> says.</p>",
    "a note": "<p><span><button popovertarget='n'>5 s</button><span popover>{}</span></span></p>",
    "a formula": "<p><span class='math display'>\\[ {} \\]</span></p>",
    "a typeset formula": "<p><span class='katex'>{}</span></p>",
    "code": "<div class='sourceCode'><pre class='sourceCode'><code>n = {}</code></pre></div>",
    "what was measured": "<div class='cell measured'><div class='cell-output'>{} ms</div></div>",
    "where a term is first used": "<div class='term-first-used'>First used in: {} Pots</div>",
    "how thousands are parted": "<p>It takes 20{}4 s.</p>",
}


@pytest.mark.parametrize("html", APART.values(), ids=APART)
def test_where_a_reader_finds_no_difference_there_is_none(tmp_path: Path, html: str) -> None:
    first, second = ("", ",") if "20{}4" in html else ("2020a", "2021 b")
    text = "<p>Of 3 pots</p>{}<p>one takes 5 s.</p>"
    theirs = write(tmp_path / "a", index=text.format(html.format(first)))
    ours = write(tmp_path / "b", index=text.format(html.format(second)))
    assert compare_numbers(theirs, ours) == []
    write(ours, index=text.format(html.format(second)).replace("3 pots", "4 pots"))
    assert len(compare_numbers(theirs, ours)) == 2


def test_a_difference_is_told_where_it_stands(tmp_path: Path) -> None:
    """The first sentence with that number may be the same on both pages."""
    same = "<p>Half of it is 138% (0%).</p>"
    theirs = write(tmp_path / "a", index=f"{same}<p>Pots: 0 left.</p>")
    ours = write(tmp_path / "b", index=f"{same}<p>Pots: none left.</p>")
    assert [str(each) for each in compare_numbers(theirs, ours)] == [
        "index.html: 0 is only in Quarto's page: Pots: 0 left."
    ]


def test_headings_numbers_and_formulas_are_no_part_of_it(tmp_path: Path) -> None:
    ours = write(
        tmp_path / "a",
        index="<h2><span class='header-section-number'>1.1</span> A</h2><p><span class='katex'>2</span></p>",
    )
    theirs = write(
        tmp_path / "b", index="<h2>A</h2><p><span class='math inline'>\\(2\\)</span></p>"
    )
    assert compare_numbers(theirs, ours) == []


def test_the_command_reads_a_site_that_quarto_made(
    make_book: MakeBook, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = make_book(index_qmd="# A\n\nIt takes 5 s.\n")
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


def test_without_a_site_or_a_quarto_it_says_what_to_do(
    make_book: MakeBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    book = make_book(index_qmd="# A\n")
    assert main(["quarto", str(book)]) == 1
    assert "mlsim-book build" in capsys.readouterr().err
    assert main(["build", str(book)]) == 0
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert main(["quarto", str(book)]) == 1
    assert "pip install 'mlsim-book[quarto]'" in capsys.readouterr().err


def test_quarto_renders_beside_our_site(
    make_book: MakeBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = make_book(index_qmd="# A\n\nIt takes 5 s.\n")
    assert main(["build", str(book)]) == 0
    page = PAGE.format("<p>It takes 5 s.</p>")
    quarto = tmp_path / "bin" / "quarto"
    quarto.parent.mkdir()
    quarto.write_text(f"#!/bin/sh\nmkdir -p $4\necho '{page}' > $4/index.html\n")
    quarto.chmod(0o755)
    monkeypatch.setenv("PATH", f"{quarto.parent}:/usr/bin:/bin")
    assert main(["quarto", str(book)]) == 0
    assert (book / "_book_quarto" / "index.html").is_file()


def test_what_quarto_made_of_the_recorded_books(conformance: Path) -> None:
    """The faults on record are seen, and nothing else is taken for one."""
    faulty = {
        "authors-dates", "cite-none", "inline-broken-lines", "inline-places", "inline-rich",
        "inline-touching", "params-meta", "shortcodes-escaped", "shortcodes-vars",
        "stored-notebook", "xref-chapters", "xref-unnumbered",
    }  # fmt: skip
    found = set()
    for path in sorted(conformance.glob("*/expected.html")):
        if any(scan_page(page) for page in recorded(path.parent).values()):
            found.add(path.parent.name)
    assert found == faulty


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no built page"):
        scan_site(tmp_path)
