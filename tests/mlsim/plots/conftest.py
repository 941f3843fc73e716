"""Figures are drawn without a screen, and after each test looked at and closed."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """A figure is as wide as a phone or a page shows, has room for its rows, and a bare legend."""
    yield
    for figure in map(pyplot.figure, pyplot.get_fignums()):
        wide, high = figure.get_size_inches()
        assert wide in (3.6, 3.7, 4.2, 5.2, 5.6, 6.4, 7.2)
        for ax in figure.axes:
            assert high > max(1, 0.2 * len(ax.get_yticklabels()))
            assert not (ax.get_legend() and ax.get_legend().get_frame_on())
    pyplot.close("all")
