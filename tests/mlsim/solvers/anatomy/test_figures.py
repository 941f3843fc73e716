"""Figures of layers, parts and networks as values: what they are, and where they come from."""

from __future__ import annotations

import pytest

from mlsim import anatomy, estimate_training_for, over_memory


def test_a_layer_has_its_figures_as_values_that_say_how_they_were_counted() -> None:
    conv1 = anatomy("LeNet5_Variant")["conv1"]
    # Six windows of 5 x 5 with a bias each; 24 x 24 places; 28 x 28 pixels of four bytes.
    assert conv1.parameters == conv1["parameters"] == 6 * 26
    assert conv1.multiply_adds == 6 * 24**2 * 25
    assert conv1.operations.si == 2 * conv1.multiply_adds
    assert (conv1.bytes_in.si, conv1.bytes_weights.si) == (4 * 28**2, 4 * 156)
    assert conv1.working_set.si == conv1["working_set"]
    assert conv1.intensity.si == pytest.approx(conv1["intensity"], rel=1e-12)
    assert conv1.working_set.name == "working set of conv1"
    assert "bytes read and written" in conv1.working_set.origin.how


def test_a_part_and_a_network_add_their_layers_up() -> None:
    lenet = anatomy("LeNet5_Variant", batch_size=3)
    linear = lenet.part(kind="linear")
    assert [row["layer"] for row in linear] == ["fc1", "fc2", "fc3"]
    assert linear.parameters == 257 * 120 + 121 * 60 + 61 * 10
    assert lenet.operations.si == lenet.total("operations")
    assert linear.parameters.name == "parameters of 3 linear layers"
    assert (linear.working_set / lenet.working_set).origin.how.count("\n- ") == 2
    block = anatomy("ViT_B16").part(inside="encoder.1", kind="linear")
    assert block.bytes_weights.name == "bytes of weights of 4 linear layers of encoder.1"


def test_counts_have_the_unit_of_their_way_of_counting() -> None:
    bases = {way: anatomy("LeNet5_Variant", count=way).operations.base for way in
             ("flop", "mac", "seed003", "pytorch")}  # fmt: skip
    assert bases == {"flop": "FLOP", "mac": "MAC", "seed003": "1", "pytorch": "FLOP"}


def test_what_a_step_holds_is_a_value_and_its_kinds_add_up_at_the_peak() -> None:
    step = anatomy("AlexNet", batch_size=8, training=True, hardware="A100")
    peak = step.peak
    kinds = (peak.weights, peak.gradients, peak.states, peak.outputs, peak.errors)
    assert sum(kinds).si == pytest.approx(peak.total.si)
    assert (peak.phase, peak.layer) == (step.step.peak.phase, step.step.peak.layer)
    assert peak.total == step.memory_required
    assert (step.memory_required + step.memory_free).si == pytest.approx(80 * 2**30)
    assert step.outputs.si == step.total("outputs")
    assert f"{peak.phase} {peak.layer}" in peak.total.origin.how


def test_times_have_the_derivation_of_what_they_follow_from() -> None:
    found = anatomy("AlexNet", batch_size=8, training=True, hardware="A100")
    assert found.time.si == found.training_profile.value("latency")
    forward = anatomy("AlexNet", hardware="A100")
    assert sum(row.time for row in forward.operators).si == pytest.approx(forward.time.si)
    days = estimate_training_for("AlexNet", 90, samples=1_200_000, hardware="A100", batch_size=128)
    assert "dataset samples" in days.total.origin.how
    (row,) = over_memory("AlexNet", [4096], hardware="GTX580", training=True,
                         disk_bandwidth="1 GB/s")  # fmt: skip
    assert row.step_time.si == row["step_time"]
    assert "disk bandwidth" in row.paging_time.origin.how
