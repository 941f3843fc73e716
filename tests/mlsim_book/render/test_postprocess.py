"""The last changes to a page's HTML; formulas, typeset once, kept, and told of if broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlsim_book.caches import TextCache
from mlsim_book.errors import Problems
from mlsim_book.model import Chapter, ExecutedPage
from mlsim_book.read.lines import Reporter
from mlsim_book.render import to_html
from mlsim_book.render.assets import Assets, load_assets
from mlsim_book.render.postprocess import Links, _printed, _tables, finish_html, rewrite

PAGE = ExecutedPage(Chapter("sub/b.qmd", "sub/b.html", "B", 2), "", {}, {}, "")


def test_a_heading_without_words_becomes_a_plain_cell() -> None:
    made = _tables("<table><tr><th></th><th style='x'>\n</th><th>power</th></tr></table>")
    assert made == (
        "<div class=\"table-scroll\"><table><tr><td></td><td style='x'></td>"
        "<th>power</th></tr></table></div>"
    )
    outside = "<p>&lt;th&gt;</p><th></th>"
    assert _tables(outside) == outside
    image = '<table><tr><th><img src="a.png" alt="a"></th></tr></table>'
    assert image in _tables(image)


def links(root: Path) -> Links:
    (root / "sub").mkdir()
    (root / "sub" / "data x.csv").write_text("1")
    drawn = b'<svg xmlns="http://www.w3.org/2000/svg" width="36pt" height="50.25pt">'
    return Links(root, {"index.qmd": "index.html", "sub/b.qmd": "sub/b.html"}, {"sub/x.svg": drawn})


def test_where_a_link_leads(tmp_path: Path) -> None:
    to, problems = links(tmp_path), Problems()
    reporter = Reporter(problems, tmp_path)
    for given, new in {
        "../index.qmd#x": "../index.html#x", "/index.qmd?q=1#y": "../index.html?q=1#y",
        "b.qmd": "b.html", "/sub/b.qmd": "b.html", "../index.html": "../index.html",
        "/index.html#z": "../index.html#z", "https://e.org/a b": "https://e.org/a b", "#x": "#x",
        "//e.org/a": "//e.org/a", "": "", "x.svg": "x.svg", "/sub/x.svg": "x.svg",
        "data%20x.csv": "data%20x.csv", "../sub": "../sub",
    }.items():  # fmt: skip
        assert rewrite(given, PAGE, to, reporter) == new, given
    assert to.files == {"sub/data x.csv"}
    assert rewrite("/sub/data%20x.csv", PAGE, to, reporter) == "data x.csv"
    assert not problems.found
    for given, tag, what in [
        ("none.csv", "a", "link target"), ("../sub", "img", "image"),
        ("../../out.csv", "a", "link target"), ("ndex.qmd", "a", "link target"),
    ]:  # fmt: skip
        problems = Problems()
        rewrite(given, PAGE, to, Reporter(problems, tmp_path), tag)
        (told,) = problems.found
        assert what in told.message, given
        assert told.file == "sub/b.qmd"


def test_an_image_loads_late_in_its_place(tmp_path: Path) -> None:
    """36 points of 1/72 inch are 48 pixels of 1/96, and 50.25 are 67."""
    to, reporter = links(tmp_path), Reporter(Problems(), tmp_path)
    for given, made in {
        '<img src="x.svg" />': '<img src="x.svg" width="48" height="67" loading="lazy" alt="">',
        '<img src="x.svg" style="a" alt="A">': '<img src="x.svg" style="a" alt="A" loading="lazy">',
        '<IMG src="https://e.org/a" loading="eager">': '<img src="https://e.org/a" loading="eager" alt="">',
        "<a href='b.qmd'>b</a>": '<a href="b.html">b</a>',
        '<video src="https://e.org/v" controls />': '<video src="https://e.org/v" controls>',
    }.items():  # fmt: skip
        assert finish_html(given, PAGE, to, reporter) == made


def test_a_drawing_in_both_looks_is_larger_than_drawn_and_no_wider_than_the_column(
    tmp_path: Path,
) -> None:
    """Drawn for a phone: 36 points are 48 pixels, shown as 1.35 times that; 504 are 672."""
    made = {
        f"sub/{name}{end}": f'<svg width="{width}pt" height="{width}pt">'.encode()
        for name, width in (("a", 36), ("b", 480), ("c", 720))
        for end in (".svg", ".dark.svg")
    }
    to = replace(links(tmp_path), made=made)
    for name, size in (("a", 65), ("b", 672), ("c", 960)):
        html = finish_html(f'<img src="{name}.svg">', PAGE, to, Reporter(Problems(), tmp_path))
        assert f'width="{size}" height="{size}"' in html


def test_formulas_are_typeset_once_and_placed(with_assets: Path, tmp_path: Path) -> None:
    assets = load_assets()

    def typeset(tex: str, assets: Assets = assets, **macros: str) -> to_html.Typeset:
        formula = to_html.Formula(tex, display=True)
        return to_html.typeset([formula], assets, TextCache(tmp_path), macros)[formula]

    made = typeset(r"a < b \tag{1.2}")
    assert made.error is None
    assert '<annotation encoding="application/x-tex">a &lt; b \\tag{1.2}</annotation>' in made.html
    assert 'aria-hidden="true"' in made.html
    assert "katex-display" in made.html
    assert typeset(r"a < b \tag{1.2}", Assets("/nowhere/node", assets.folder)) == made
    assert "expected '}'" in (typeset(r"\frac{1}{").error or "")
    assert typeset(r"\SI{3}{m}").error is not None
    assert typeset(r"\SI{3}{m}", **{r"\SI": r"#1\,\mathrm{#2}"}).error is None
    formula = to_html.Formula("a", display=False)
    html = '<p><span class="math inline">a</span></p>'
    assert to_html.formulas(html) == [formula]
    placed = to_html.place_formulas(html, {formula: to_html.Typeset("<b>A</b>")})
    assert placed == '<p><span class="math inline"><b>A</b></span></p>'
    failed = to_html.place_formulas(html, {formula: to_html.Typeset("", "no")})
    assert 'class="math inline math-error">a<' in failed


def test_what_was_printed_wraps_unless_it_stands_in_columns() -> None:
    def shown(text: str) -> str:
        box = '<div class="cell-output cell-output-stdout">\n<pre><code>'
        return _printed(f"{box}{text}</code></pre>\n</div>")

    assert all('<pre class="code-overflow-wrap">' in shown(each) for each in ("a b", "Key:   1"))
    assert "<pre><code>" in shown("Batch  Time\n    1     2")
