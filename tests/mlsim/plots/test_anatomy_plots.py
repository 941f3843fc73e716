"""Figures of an anatomy show the numbers of its table; a treemap's areas are its shares."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from mlsim import anatomy, plot_anatomy
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError
from mlsim.plots import Treemap, data_of
from mlsim.plots.treemap import Box, Place, boxes, places

FIGURES = ("memory", "training", "operations", "parameters", "time", "shares", "moments", "treemap")


@pytest.mark.parametrize("what", FIGURES)
@pytest.mark.parametrize("name", ["LeNet5_Variant", "ResNet18"])
def test_every_figure_is_drawn_and_carries_its_numbers(name: str, what: str) -> None:
    found = anatomy(name, training=True, hardware="A100", batch_size=4)
    figure, axes = plot_anatomy(found, what)
    figure.canvas.draw()
    rows = data_of(figure)
    assert len(rows) >= 3
    if what == "parameters":
        assert sum(float(row["parameters (parameters)"]) for row in rows) == found.total(what)
    if what == "moments":
        assert len(rows) == len(found.step.moments)
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


class _Outline(HTMLParser):
    """Counts what opens and closes."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.opened = 0, 0
        self.words = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("details", "div"):
            self.depth += 1
            self.opened += tag == "details"

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in ("details", "div")

    def handle_data(self, data: str) -> None:
        self.words += data


def test_a_treemap_is_a_page_of_its_own(tmp_path: Path) -> None:
    treemap = Treemap(anatomy("ResNet18"), "parameters")
    path = tmp_path / "map.html"
    treemap.save(path)
    outline = _Outline()
    outline.feed(path.read_text(encoding="utf-8"))
    assert outline.depth == 0
    assert outline.opened > 4
    assert "conv5" in outline.words
    assert f"{512 * 512 * 9 + 1024:,}" in outline.words
    assert "<script" not in treemap.html
    assert "http" not in treemap.html
