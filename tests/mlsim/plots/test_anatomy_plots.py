"""Figures of an anatomy show the numbers of its table; a treemap's areas are its shares."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mlsim import anatomy
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError
from mlsim.plots import Treemap, data_of, plot_anatomy
from mlsim.plots.anatomy_plots import Box, Place, boxes, places

FIGURES = ("memory", "training", "operations", "parameters", "time", "shares", "moments", "treemap")


@pytest.mark.parametrize("what", FIGURES)
@pytest.mark.parametrize("name", ["LeNet5_Variant", "ResNet18"])
def test_every_figure_is_drawn_and_carries_its_numbers(name: str, what: str) -> None:
    found = anatomy(name, training=True, hardware="A100", batch_size=4)
    figure, axes = plot_anatomy(found, what)
    figure.canvas.draw()
    rows = data_of(figure)
    assert len(rows) >= 3
    if what == "time":
        unit = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3}[axes.get_xlabel()]
        drawn = sum(p.get_width() for p in axes.patches) * unit
        assert drawn == pytest.approx(sum(found.operators["time"]))
    if what == "parameters":
        assert sum(float(row["parameters (parameters)"]) for row in rows) == found.total(what)
    if what in ("memory", "training", "operations", "parameters", "time"):  # bars, end to end
        for n, row in enumerate(rows):
            numbers = [value for value in row.values() if not isinstance(value, str)]
            bars = [p for p in axes.patches if round(p.get_y() + p.get_height() / 2) == n]
            assert [p.get_width() for p in bars] == pytest.approx(numbers)
            starts = [sum(numbers[:k]) for k in range(len(numbers))]
            assert [p.get_x() for p in bars] == pytest.approx(starts)
    if what == "treemap":
        assert sum(row["Share"] for row in rows) == pytest.approx(1)
        at = {p.get_gid().rpartition("p-")[2]: p for p in axes.patches}
        areas = [at[str(n)].get_width() * at[str(n)].get_height() for n in range(len(rows) - 1)]
        assert areas == pytest.approx([row["Share"] for row in rows][: len(areas)])
        for label in axes.texts:
            box = at[label.get_gid().rpartition("-")[2]]
            middle = (box.get_x() + box.get_width() / 2, box.get_y() + box.get_height() / 2)
            assert label.get_position() == pytest.approx(middle)
    if what == "shares":
        turns = [(w.theta2 - w.theta1) / 360 for w in axes.patches]
        assert turns == pytest.approx([r["Bytes"] / sum(x["Bytes"] for x in rows) for r in rows])
    if what == "moments":
        assert len(rows) == len(found.step.moments)
        held = [sum([*row.values()][2:]) for row in rows]
        peak, loss = axes.lines
        ((x, y),) = peak.get_xydata()
        assert (x, y) == (held.index(max(held)), pytest.approx(max(held)))
        assert axes.texts[0].xy == (x, y)
        assert rows[int(loss.get_xdata()[0])]["Phase"] == "loss"
        tops = max(area.get_paths()[0].vertices[:, 1].max() for area in axes.collections)
        assert axes.get_ylim() == (0, pytest.approx(1.25 * tops))
    assert plot_anatomy(found, what, ax=axes)[1] is axes


def test_a_deep_network_is_drawn_by_blocks() -> None:
    rows = data_of(plot_anatomy(anatomy("ResNet50"), "operations")[0])
    assert [row["Layer"] for row in rows][:3] == ["conv1", "maxpool", "conv2.1"]
    assert len(rows) <= 32


def test_figures_that_lack_something_are_refused() -> None:
    plain = anatomy("LeNet5_Variant")
    with pytest.raises(InvalidValueError, match="hardware="):
        plot_anatomy(plain, "time")
    with pytest.raises(InvalidValueError, match="training=True"):
        plot_anatomy(plain, "training")
    with pytest.raises(UnknownNameError, match="treemap"):
        plot_anatomy(plain, "treemaps")
    with pytest.raises(WrongKindError, match="no area"):
        boxes(plain, "kind")


def test_areas_are_shares_and_fill_the_whole() -> None:
    items = [Box(str(value), float(value)) for value in (5, 1, 0, 3, 1)]
    found = list(places(items, Place(0, 0, 4, 2)))
    assert [box.name for box, _ in found] == ["5", "1", "3", "1"]
    for box, at in found:
        assert at.width * at.height == pytest.approx(8 * box.value / 10)
    # Halves along the longer side: 5 of 10, and below one another 1 and 3 + 1 of the rest.
    sides = [(at.left, at.top, at.width, at.height) for _, at in found]
    assert sides[0] == (0, 0, 2, 2)
    assert all(at.left >= 2 for _, at in found[1:])
    tall = list(places(items, Place(3, 5, 2, 4)))
    assert tall[0][1] == Place(3, 5, 2, 2)
    assert min(at.top for _, at in tall[1:]) == 7


def test_a_treemap_is_a_page_of_its_own(tmp_path: Path) -> None:
    treemap = Treemap(anatomy("ResNet18"), "parameters")
    path = tmp_path / "map.html"
    treemap.save(path)
    page = path.read_text(encoding="utf-8")
    tree = ElementTree.fromstring(f"<x>{treemap.html}</x>")  # whatever opens closes
    assert len(tree.findall(".//details")) > 4
    assert treemap.html in page
    assert "conv5" in page
    assert f"{512 * 512 * 9 + 1024:,}" in page
    # The first block: 9,408 + 128 weights of 11,689,512, on the left.
    style = tree.findall(".//*[@title='conv1']")[0].get("style")
    assert style.startswith("left:0.000%;top:0.000%;")
    areas = [
        [float(part) for part in re.findall(r"(?:width|height):(.*?)%", each.get("style"))]
        for each in tree.findall("./div/*")
    ]
    assert sum(wide * high for wide, high in areas) == pytest.approx(1e4, rel=1e-3)
    assert "<script" not in treemap.html
    assert "http" not in treemap.html
