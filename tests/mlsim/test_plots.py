"""The roofline figure: its roof and its points are the solver's."""

from __future__ import annotations

import pytest

from mlsim.errors import InvalidValueError, UnknownNameError, UnsupportedPrecisionError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from mlsim import Device, Model, plot_roofline  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def points(ax) -> list[tuple[float, float]]:
    return [tuple(map(float, dots.get_offsets()[0])) for dots in ax.collections]


def test_the_roof_bends_at_the_ridge(a100: Device) -> None:
    _, ax = plot_roofline(a100)
    (x, y) = ax.lines[0].get_data()
    assert x[1] == pytest.approx(312e12 / 2.039e12)
    assert y[1] == pytest.approx(312)
    assert y[2] == pytest.approx(312)
    assert y[0] == pytest.approx(x[0] * 2.039)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert "FLOP/byte" in ax.get_xlabel()
    assert "TFLOP/s" in ax.get_ylabel()


def test_a_point_is_where_the_solver_says(a100: Device, resnet: Model, solve) -> None:
    _, ax = plot_roofline(a100, workloads=[resnet], batch_size=[1, 256])
    assert len(points(ax)) == 2
    for (intensity, rate), batch in zip(points(ax), (1, 256), strict=True):
        profile = solve(batch_size=batch)
        assert intensity == pytest.approx(profile.value("network_intensity"))
        assert rate == pytest.approx(profile.value("achieved_flops") / 1e12)
        # Below the roof, and on the paper.
        assert rate <= min(312, intensity * 2.039)
        assert ax.get_xlim()[0] < intensity < ax.get_xlim()[1]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["ResNet-50 v1.5, batch 1", "ResNet-50 v1.5, batch 256"]


def test_it_draws_on_axes_that_are_given(a100: Device, resnet: Model) -> None:
    figure, axes = pyplot.subplots()
    assert plot_roofline(a100, workloads=[resnet], ax=axes) == (figure, axes)


def test_operators_lie_on_the_roof(a100: Device, resnet: Model) -> None:
    _, ax = plot_roofline(a100, workloads=[resnet], operators=True)
    dots = ax.collections[0].get_offsets()
    assert len(dots) == 54
    for intensity, rate in dots:
        assert rate == pytest.approx(min(312, intensity * 2.039))


def test_a_profile_of_another_roof_is_refused(a100: Device, solve) -> None:
    plot_roofline(a100, workloads=[solve(batch_size=8)])
    with pytest.raises(InvalidValueError, match="does not belong under the roof of"):
        plot_roofline("T4", workloads=[solve()])
    with pytest.raises(InvalidValueError, match="in fp32"):
        plot_roofline(a100, workloads=[solve()], precision="fp32")
    with pytest.raises(UnsupportedPrecisionError, match="no fp8 peak"):
        plot_roofline(a100, precision="fp8")
    with pytest.raises(UnknownNameError, match="Did you mean 'H100'"):
        plot_roofline("H1000")
