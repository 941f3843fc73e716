"""The roof and the launch: what the page computes against Python, and what is refused."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from matplotlib import pyplot
from scripts import ask_node, view_of

from mlsim import Engine, live
from mlsim.errors import InvalidValueError
from mlsim.measured import measurements

UNITS = {"peak_flops": "TFLOP/s", "memory_bandwidth": "TB/s", "kernel_overhead": "us"}


def drawn(**given: Any) -> live.Figure:
    return live.roof("ResNet50", "A100", still=pyplot.figure(), **given)


@pytest.fixture(scope="module")
def made() -> live.Figure:
    return drawn()


def asked(state: dict[str, float], **given: Any) -> Any:
    rates = {name: f"{state[name]!r} {unit}" for name, unit in UNITS.items()}
    if given["estimate"] == "roofline":
        del rates["kernel_overhead"]
    return Engine.solve("ResNet50", "A100", batch_size=int(state["batch_size"]), **rates, **given)


def test_the_page_has_the_times_rates_and_causes_that_the_package_has(
    made: live.Figure, tmp_path: Any
) -> None:
    seed = random.Random(35)
    states = [
        {each["name"]: seed.choice(each["values"]) for each in made.data["handles"]}
        for _ in range(250)
    ]
    asks = [("ask", ["known", made.data, state]) for state in states]
    for state, found in zip(states, ask_node(view_of(made), asks, tmp_path), strict=True):
        truth = asked(state, estimate="calibrated", software="engine")
        same = {"rel": 1e-12, "abs": 1e-12}
        assert found["time"] == pytest.approx(truth.value("latency"), **same)
        for cause, share in found["causes"].items():
            assert share == pytest.approx(truth.causes[cause], **same)
        reached = truth.value("flops") / truth.value("operator_time")
        assert [each["reached"] for each in found["layers"]] == pytest.approx(list(reached), **same)
        roofline = asked(state, estimate="roofline")
        network = found["network"]
        assert network["flops"] / network["roof"] == pytest.approx(
            roofline.value("latency"), **same
        )
        assert network["intensity"] == pytest.approx(roofline.value("network_intensity"), **same)


def test_it_starts_at_the_devices_own_rates_and_each_rate_can_double(made: live.Figure) -> None:
    assert repr(made) == (
        "<live figure roof: measured, batch_size, peak_flops, memory_bandwidth, kernel_overhead>"
    )
    _, peak, bandwidth, launch = made.data["handles"]
    assert (peak["start"], bandwidth["start"], launch["start"]) == (312, 2.039, 6.149)
    assert {156, 624} < set(peak["values"])
    assert 4.078 in bandwidth["values"]
    assert sum(made.data["repeats"]) == 56  # operators, of which some are alike
    one = made.data["recorded"][1]
    solved = Engine.solve("ResNet50", "A100", estimate="calibrated", software="engine")
    band = solved.band("latency")
    assert band is not None
    assert (one["low"], one["high"]) == (band.low, band.high)
    assert len(json.dumps(made.data)) < 10_000


def test_measured_rates_are_those_on_the_device_unless_others_are_given(made: live.Figure) -> None:
    (triton,) = made.data["measured"]
    assert triton["words"] == "ONNX Runtime and TensorRT in Triton"
    assert triton["points"][0] == [1, pytest.approx(1 / 469.1)]
    other = measurements(model="ResNet50", hardware="A100_40GB", software="AITemplate")
    (series,) = drawn(measured=other).data["measured"]
    assert series["words"] == "AITemplate, A100 SXM 40 GB"
    assert series["points"][-1] == [256, pytest.approx(256 / 15444.57)]
    assert drawn(measured=[]).data["choices"] == []


def test_other_batches_and_networks_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"is one of .*, not 3"):
        drawn(batch_size=3)
    strange = [replace(measurements(model="ResNet50")[0], model="AlexNet")]
    with pytest.raises(InvalidValueError, match="is not of ResNet-50"):
        drawn(measured=strange)
