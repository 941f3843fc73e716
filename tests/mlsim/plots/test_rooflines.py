"""The roofline figure: its roof and its points are the solver's."""

from __future__ import annotations

import pytest
from matplotlib import pyplot

from mlsim import Device, Engine, Model, System, plot_roofline
from mlsim.errors import (
    InvalidValueError,
    UnknownNameError,
    UnsupportedPrecisionError,
    WrongKindError,
)


def points(ax) -> list[tuple[float, float]]:
    return [tuple(map(float, dots.get_offsets()[0])) for dots in ax.collections]


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


def test_a_seventh_point_looks_as_the_first(a100: Device, resnet: Model) -> None:
    dots = plot_roofline(a100, workloads=[resnet] * 7)[1].collections
    looks = [(*each.get_facecolor()[0], len(each.get_paths()[0].vertices)) for each in dots]
    assert looks[6] == looks[0]
    assert len(set(looks)) == 6


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


def labels(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def serve(**given):
    return Engine.serve(**{"model": "Llama3_8B", "hardware": "A100", **given})


def test_a_service_is_two_points(a100: Device) -> None:
    serving = serve(batch_size=8)
    _, ax = plot_roofline(a100, workloads=[serving])
    assert ax.get_title() == f"Roofline of {a100.name}, bf16"
    assert labels(ax) == ["Llama 3.1 8B, batch 8, prefill", "Llama 3.1 8B, batch 8, decode"]
    for (intensity, rate), step in zip(points(ax), (serving.prefill, serving.decode), strict=True):
        assert intensity == pytest.approx(step.value("network_intensity"))
        assert rate == pytest.approx(step.value("achieved_flops") / 1e12)
        assert rate <= 1.0001 * min(312, intensity * 2.039)


def test_a_phase_is_one_point_beside_others(a100: Device, solve) -> None:
    phase = serve().decode_at(4000)
    _, ax = plot_roofline(a100, workloads=[solve(precision="bf16"), phase])
    assert labels(ax) == ["ResNet-50 v1.5, batch 1", "Llama 3.1 8B, batch 1, decode"]


def test_an_encoder_is_one_point(a100: Device) -> None:
    _, ax = plot_roofline(a100, workloads=[serve(model="BERT_Base")])
    assert labels(ax) == ["BERT-Base, batch 1, prefill"]


def test_the_roof_is_that_in_which_a_service_computes(a100: Device) -> None:
    _, ax = plot_roofline(a100, workloads=[serve(precision="w4a16")])
    assert ax.get_title().endswith(", bf16")
    _, ax = plot_roofline(a100, workloads=[serve(precision="w8a8kv8")])
    assert ax.get_title().endswith(", int8")


def test_devices_of_a_system_are_under_their_own_roof(a100: Device) -> None:
    pair = System("Two A100", a100, devices=2, link_bandwidth="300 GB/s")
    both = serve(hardware=pair, tensor_parallel=2)
    _, ax = plot_roofline(a100, workloads=[both])
    assert labels(ax)[0] == "Llama 3.1 8B, batch 1, TP2, prefill"


def test_operators_of_a_phase_are_dots(a100: Device) -> None:
    step = serve().prefill
    _, ax = plot_roofline(a100, workloads=[step], operators=True)
    dots = ax.collections[0].get_offsets()
    assert len(dots) == len([row for row in step.operators if row["flops"]])
    for intensity, rate in dots:
        assert rate == pytest.approx(min(312, intensity * 2.039))


def test_a_service_of_another_roof_is_refused(a100: Device) -> None:
    with pytest.raises(InvalidValueError, match="does not belong under the roof of NVIDIA T4"):
        plot_roofline("T4", workloads=[serve()], precision="fp16")
    with pytest.raises(InvalidValueError, match="in fp16"):
        plot_roofline(a100, workloads=[serve().prefill], precision="fp16")
    with pytest.raises(InvalidValueError, match=r"pick one, such as serving\[0\].prefill"):
        plot_roofline(a100, workloads=[serve(batch_size=[1, 2])])
    with pytest.raises(WrongKindError, match=r"use Engine\.serve"):
        plot_roofline(a100, workloads=["Llama3_8B"])
