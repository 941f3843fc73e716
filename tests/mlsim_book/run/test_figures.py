"""Figures in the light and the dark look, and the table of what they show."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from mlsim_book.errors import Problems, SourceError
from mlsim_book.paper.formats import _GONE
from mlsim_book.read.qmd import page_defaults, read_document
from mlsim_book.run.execute import kernel_environment, run_document
from mlsim_book.run.figures import (
    GROUND,
    INK,
    READABLE,
    STYLE,
    _hex,
    _light,
    _linear,
    _of_figure,
    _of_oklab,
    _oklab,
    contrast,
    csv_text,
    dark,
    dark_colour,
    dressed,
    figure_rows,
    least_width,
)
from mlsim_book.run.intermediate import write_markdown
from mlsim_book.run.outputs import Figure, output_markdown

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

BOTH = {"mlsim-book": {"figure-theme": True, "figure-data": True}}
DEFAULTS = {"fig-width": 5, "fig-height": 3, "fig-dpi": 96, "fig-format": "svg"}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


# ------------------------------------------------------------------- the looks
def on_dark(colour: str) -> float:
    return contrast(_linear(dark_colour(colour)), _linear(GROUND))


def test_letters_and_curves_of_the_style_are_readable_in_both_looks() -> None:
    letters = ["#" + re.search(rf'{name}: "#(\w+)"', STYLE)[1]
               for name in ("text.color", "axes.labelcolor", "xtick.labelcolor")]  # fmt: skip
    for colour in letters:
        assert contrast(_linear(colour), (1, 1, 1)) > READABLE
        assert on_dark(colour) > READABLE
    colours = re.findall(r'"(\w{6})"', STYLE.split("prop_cycle")[1].split("\n")[0])
    assert len(colours) == len({dark_colour(f"#{each}") for each in colours}) == 6
    assert all(on_dark(f"#{each}") >= READABLE - 0.05 for each in colours)


# Linear light, and lightness and axes of it in Oklab: of white by its definition, of the others
# as CSS Color 4 has them. A grey has its light's cube root as lightness, and no colour.
OKLAB = {
    "#ffffff": (1.0, 0.0, 0.0),
    "#ff0000": (0.62796, 0.22486, 0.12585),
    "#00ff00": (0.86644, -0.23389, 0.17950),
    "#0000ff": (0.45201, -0.03246, -0.31153),
    "#777777": (0.18447**(1 / 3), 0.0, 0.0),
}  # fmt: skip
# Known contrasts with white, as WCAG's checkers print them.
ON_WHITE = {
    "#000000": 21, "#ff0000": 4.00, "#0000ff": 8.59, "#008000": 5.14, "#767676": 4.54, "#070707": 20.14,
}  # fmt: skip


def test_colours_are_measured_as_published() -> None:
    for colour, wanted in OKLAB.items():
        light = _linear(colour)
        assert _oklab(light) == pytest.approx(wanted, abs=2e-5), colour
        assert _of_oklab(*_oklab(light)) == pytest.approx(light, abs=2e-5), colour
    for colour, wanted in ON_WHITE.items():
        for pair in ((_linear(colour), (1, 1, 1)), ((1, 1, 1), _linear(colour))):
            assert contrast(*pair) == pytest.approx(wanted, abs=0.006), colour
    greys = [f"#{3 * f'{value:02x}'}" for value in range(256)]
    assert [_hex(_linear(grey)) for grey in greys] == greys
    assert _linear("#1af") == _linear("#11aaff")
    assert _linear("black") == (0, 0, 0)


def test_what_a_screen_cannot_show_is_paler_by_tenths() -> None:
    """Of blue's and of red's colour at other lightnesses, the most that can be shown."""
    shares = set()
    for _, a, b in (_oklab(_linear("#0000ff")), _oklab(_linear("#ff0000"))):
        for percent in range(45, 98, 2):
            tenths = [_light(percent / 100, n * a / 10, n * b / 10) for n in range(11)]
            fit = [
                n for n, light in enumerate(tenths) if -1e-3 <= min(light) <= max(light) <= 1.001
            ]
            shares.add(max(fit))
            shown = [min(max(each, 0), 1) for each in tenths[max(fit)]]
            assert _of_oklab(percent / 100, a, b) == pytest.approx(shown)
    assert shares == set(range(11))  # a screen shows all of a colour, none, and each share between
    assert _of_oklab(1.2, a, b) == (1, 1, 1)
    assert _of_oklab(-0.2, a, b) == (0, 0, 0)


def test_a_colour_keeps_its_hue_and_is_as_light_as_it_must_be() -> None:
    """Tints of paper and greys keep their contrast; what is light enough stays as it is.

    On both sides of each bound: chromas of 0.0397 and 0.0411, of a tint 0.1091 and 0.1103, of a
    grey that takes the ground's hue 0.0193 and 0.0210; lightnesses of 0.8814 and 0.8794.
    """
    for colour in ("#0072b2", "#800000", "#000080", "#486c6c"):
        assert READABLE <= on_dark(colour) < READABLE + 0.05, colour
    greys = ("#eeeeee", "#999999", "#555555", "#e4e8ec", "#8a94a0", "#2b343e")
    tints = ("#fff4e5", "#ffe0e0", "#c8d2c8", "#4e6c78", "#7ef6f0", "#84eafc")
    for colour in (*tints, *greys):
        assert on_dark(colour) == pytest.approx(contrast(_linear(colour), (1, 1, 1)), rel=0.006)
    for colour in ("#0072b2", "#800000", "#ffe0e0", "#cc79a7"):
        before, after = (_oklab(_linear(each)) for each in (colour, dark_colour(colour)))
        turned = math.atan2(before[1], before[2]) - math.atan2(after[1], after[2])
        assert abs(turned) < 0.05, colour
    for colour in ("#d55e00", "#e69f00", "#56b4e9", "#7ef6ea", "#84eaf6"):
        assert dark_colour(colour) == colour
    for olive, blue in (("#4e4e42", True), ("#484e42", False)):
        red, _, shown = _linear(dark_colour(olive))
        assert (shown > red) == blue, olive
    assert dark_colour("#ffffff") == dark_colour("white") == GROUND
    assert dark_colour("#112233") == dark_colour("#000000") == INK  # as much as there is


def test_what_says_so_keeps_its_colours() -> None:
    kept = '<g id="keep-colours-1"><g style="fill: #0072b2"><path/></g><g/></g>'
    other = '<g style="fill: #0072b2"/>'
    made = dark(f"<svg>{other}{kept}{other}{kept}{other}</svg>")
    dark_other = other.replace("#0072b2", dark_colour("#0072b2"))
    own = kept.replace("<g ", '<g fill="#000000" ', 1)
    between = f"{dark_other}{own}{dark_other}{own}{dark_other}"
    assert made == f'<svg fill="{INK}">{between}</svg>'
    # the dark copy has no card and light letters, and a group that never ends is no error
    svg = '<svg><g id="patch_1">\n<path d="" style="fill: #ffffff"/></g><use/></svg>'
    assert dark(svg) == svg.replace("<svg", '<svg fill="#dce2e9"', 1).replace("#ffffff", "none")
    assert dark('<svg><g id="keep-colours"><path></svg>').startswith("<svg fill=")


def test_letters_set_how_narrow_a_drawing_may_be() -> None:
    letters = '<svg width="288pt"><g transform="translate(1 2) scale({} -{})"/></svg>'
    assert least_width(letters.format("0.1", "0.1")) == 259
    assert least_width(letters.format("0.05", "0.05")) == 384  # they are too small as they are
    assert least_width('<svg width="288pt"></svg>') is None


def test_an_image_with_a_dark_copy_is_shown_in_both_looks() -> None:
    made = {"a/x.svg": b'<svg width="9pt">', "a/x.dark.svg": b"<svg>"}
    html = dressed("a/x.svg", ' src="x.svg" id="i" alt="An x"', made, lambda name: f"../{name}")
    assert html is not None
    assert html.count("<img") == html.count('alt="An x"') == 2
    assert html.count('id="i"') == 1
    assert 'src="../a/x.dark.svg"' in html
    light, _, dark_copy = html.partition("<picture")
    assert "<source" not in light  # a dark page is printed light
    assert "(scripting: none)" in dark_copy.partition("<img")[0]  # no script makes a page dark
    assert "style=" not in html  # there are no letters
    made["a/x.svg"] = b'<svg width="360pt"><g transform="scale(0.1 -0.1)"/></svg>'
    html = dressed("a/x.svg", ' src="x.svg" class="wide"', made, str) or ""
    assert html.count(' style="min-width: 324px"') == 2  # letters of 10 pt are 9 pixels high there
    assert html.count('class="light-content wide"') == 1
    assert html.count('class="dark-content transparent wide"') == 1
    assert "min-" not in (dressed("a/x.svg", ' src="x.svg" style="width: 9em"', made, str) or "")
    assert dressed("a/y.svg", ' src="y.svg"', made, str) is None
    assert dressed("a/y.png", ' src="y.png"', made, str) is None


def test_matplotlib_understands_the_style(tmp_path: Path) -> None:
    kernel_environment(tmp_path, {**DEFAULTS, "figure-theme": True})
    params = matplotlib.rc_params_from_file(
        tmp_path / "matplotlibrc", fail_on_error=True, use_default_template=False
    )
    assert params["axes.grid"] is True
    kernel_environment(tmp_path, DEFAULTS)
    assert "axes" not in (tmp_path / "matplotlibrc").read_text()


# -------------------------------------------------------------------- the data
def test_curves_with_the_same_places_share_rows_and_others_have_their_own() -> None:
    _, ax = pyplot.subplots()
    ax.plot([1, 2], [3, 4.5], label="clay")
    ax.plot([1, 2], [5, float("nan")], label="iron, cast")
    ax.axhline(4)
    ax.set(xlabel="Pots", ylabel="Time (s)")
    assert csv_text(figure_rows(ax.figure)).splitlines() == [
        'Pots,"Time (s), clay","Time (s), iron, cast"',
        "1,3,5",
        "2,4.5,",
    ]
    _, ax = pyplot.subplots()
    ax.plot([1], [3], label="clay")
    ax.scatter([2], [4], label="iron")
    assert figure_rows(ax.figure) == [
        {"Series": "clay", "x": 1, "y": 3}, {"Series": "iron", "x": 2, "y": 4},
    ]  # fmt: skip
    figure, axes = pyplot.subplots(1, 3)
    for ax in axes[:2]:
        ax.plot([1], [2])
    axes[0].set_title("Left")
    assert [row["Panel"] for row in figure_rows(figure)] == ["Left", "2"]
    rows = [{"a": 1e15, "b": 1e-7, "c": 2 / 3, "d": None, "e": "$x$  y", "f": float("inf")}]
    assert csv_text(rows).splitlines()[1] == "1000000000000000,0.0000001,0.666667,,x y,"


@pytest.mark.parametrize("lying", [True, False])
def test_bars_have_the_names_of_their_places(lying: bool) -> None:
    _, ax = pyplot.subplots()
    draw, name = (ax.barh, ax.set_yticks) if lying else (ax.bar, ax.set_xticks)
    draw(range(2), [7, 8])
    name(range(2), ["clay", "iron"])
    ax.set(xlabel="kg") if lying else ax.set(ylabel="kg")
    assert figure_rows(ax.figure) == [{"Name": "clay", "kg": 7}, {"Name": "iron", "kg": 8}]
    _, ax = pyplot.subplots()  # stacked, and words as places
    ax.bar(["clay", "iron"], [1, 2], label="pot")
    ax.bar(["clay", "iron"], [3, 4], bottom=[1, 2], label="lid")
    assert figure_rows(ax.figure)[1] == {"Name": "iron", "y, pot": 2, "y, lid": 4}


def test_a_number_at_its_own_place_is_no_name() -> None:
    """Ticks of a logarithmic axis are often written out; what lies between them keeps its value."""
    _, ax = pyplot.subplots()
    ax.plot([5, 20, 1024], [8, 2.3, 0.39])
    ax.set(xscale="log", yscale="log", xlabel="use", ylabel="price")
    ax.set_yticks([0.5, 2, 8], ["0.5", "2", "8"])
    ax.set_xticks([4, 1024], ["4", "1,024"])
    assert [row["price"] for row in figure_rows(ax.figure)] == [8, 2.3, 0.39]
    assert [row["use"] for row in figure_rows(ax.figure)] == [5, 20, 1024]
    ax.set_yticks([0.5, 2, 8], ["0.5", "2", "dear"])
    assert figure_rows(ax.figure)[0]["price"] == "dear"


def test_a_diagram_and_what_is_no_figure_have_no_data() -> None:
    figure, ax = pyplot.subplots()
    ax.plot([1], [2], label="an arrow")
    ax.axis("off")
    assert _of_figure(figure) is None
    assert _of_figure(object()) is None


# --------------------------------------------------------------------- a book's
def shown(**given: bool) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    data = {"image/svg+xml": "<svg/>", "text/csv": "a\n1\n", "text/plain": "<Figure>"}
    output: dict[str, Any] = {"output_type": "display_data", "data": data}
    assert output_markdown(output, Figure("f/x", **given), files, asis=False) == "![](f/x.svg)\n"
    return files


def test_a_book_that_asks_for_nothing_gets_its_figures_as_they_are() -> None:
    assert set(shown()) == {"f/x.svg"}
    assert set(shown(themed=True, with_data=True)) == {"f/x.svg", "f/x.dark.svg", "f/x.csv"}
    for name in ("figure-theme", "figure-data"):
        said = f"{name}:` is 'dark', which must be `true` or `false`"
        with pytest.raises(SourceError, match=said):
            page_defaults({"mlsim-book": {name: "dark"}})


def test_a_kernel_gives_the_data_of_a_figure(tmp_path: Path) -> None:
    cell = (
        "# A\n\n```{python}\nimport matplotlib.pyplot as plt\n"
        "plt.plot([1, 2], [3, 4])\nplt.xlabel('pots')\nplt.show()\n```\n"
    )
    (tmp_path / "a.qmd").write_text(cell, encoding="utf-8")
    document = read_document(tmp_path / "a.qmd", root=tmp_path, problems=Problems())
    defaults = page_defaults(BOTH)
    results = run_document(document, defaults, folder=tmp_path, name="a.qmd")
    (image,) = [each for each in results.cells[0] if each["output_type"] == "display_data"]
    assert image["data"]["text/csv"] == "pots,y\n1,3\n2,4\n"
    markdown, files = write_markdown(document, results, defaults, source="a.qmd")
    assert "pots,y" not in markdown
    kinds = {name.partition(".")[2]: data.decode() for name, data in files.items()}
    assert kinds["csv"] == "pots,y\n1,3\n2,4\n"
    drawn = kinds["svg"]
    assert kinds["dark.svg"] == dark(drawn)
    assert "#ffffff" not in dark(drawn)


def test_paper_has_neither_dark_copies_nor_tables_of_figures() -> None:
    page = (
        '<img src="x.svg" class="light-content"><picture class="dark-content">'
        '<source srcset="y"><img src="x.dark.svg" class="dark-content t"></picture>'
        '<details class="figure-data" data-x><summary>D</summary><table></table></details><p>'
    )
    assert _GONE.sub("", page) == '<img src="x.svg" class="light-content"><p>'
