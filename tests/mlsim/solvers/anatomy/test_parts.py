"""Views of one block, and with a row for each block: nothing is lost or counted twice."""

from __future__ import annotations

import pytest

from mlsim import anatomy, profile_layer_mem, profile_ops, summary
from mlsim.cli.command import main
from mlsim.errors import InvalidValueError, UnknownNameError


def test_a_row_for_each_stage_adds_up_to_the_whole() -> None:
    found = anatomy("ResNet50")
    by_stage, by_layer = found.profile_ops(depth=1), found.profile_ops()
    assert by_stage["operations"][-1] == by_layer["operations"][-1] == found.total("operations")
    assert sum(by_stage["operations"][:-1]) == by_stage["operations"][-1]
    assert by_stage["layer"] == [
        *("conv1", "conv1_bn", "conv1_relu", "maxpool"),
        *("conv2", "conv3", "conv4", "conv5", "avgpool", "fc", "total"),
    ]
    sets = found.profile_layer_mem(depth=1)
    assert sum(sets["working_set"]) == found.total("working_set")
    assert sets.notes == found.profile_layer_mem().notes  # the largest layer, not the largest row


def test_a_block_of_a_transformer_has_the_parameters_counted_by_hand() -> None:
    """Twelve squares of the width, and thirteen times the width in biases and norms."""
    view = summary("ViT_B16", inside="encoder.1")
    assert sum(view["parameters"]) == 12 * 768**2 + 13 * 768
    assert view["layer"][0] == "self.norm"
    assert view["output_shape"][-1] == (-1, 197, 768)
    # What enters is one array of 197 x 768 numbers, though two layers read it.
    assert view.notes[1] == f"Input size (MB): {197 * 768 * 4 / 2**20:.2f}"


def test_a_folded_row_says_how_many_layers_it_has_and_ends_with_the_last_shape() -> None:
    rows = list(summary("ResNet18", depth=1))
    conv2 = next(row for row in rows if row["layer"] == "conv2")
    # Two blocks of two convolutions, each with a norm; a ReLU after each; two additions.
    assert conv2["type"] == "14 layers"
    assert conv2["output_shape"] == (-1, 64, 56, 56)
    assert conv2["parameters"] == 4 * (64 * 64 * 9 + 2 * 64)
    alone = next(row for row in rows if row["layer"] == "fc")
    assert alone["type"].startswith("linear-")


def test_the_parts_of_a_network_share_its_bytes() -> None:
    found = anatomy("ResNet18")
    tops = {row["layer"].split(".")[0] for row in found.layers}
    parts = [sum(found.profile_mem(inside=name)["bytes"]) for name in sorted(tops)]
    assert sum(parts) == sum(found.profile_mem()["bytes"])
    assert sum(found.profile_mem(inside="conv2")["share"]) == pytest.approx(1)


def test_a_part_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"conv2\.1"):
        profile_ops("ResNet18", inside="conv2.")
    with pytest.raises(UnknownNameError):
        profile_layer_mem("ResNet18", inside="conv")  # conv1 begins so, and is no part of it
    for depth in (-1, 1.5, True, "1"):
        with pytest.raises(InvalidValueError, match="whole number from 0"):
            profile_ops("ResNet18", depth=depth)
    with pytest.raises(InvalidValueError, match=r"encoder\.1"):
        profile_ops("ResNet18", inside=2)


def test_the_command_shows_a_part(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["anatomy", "ViT_B16", "--view", "ops", "--inside", "encoder.1", "--depth", "1"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2:]] == ["self", "feed", "total"]
    assert main(["anatomy", "ViT_B16", "--view", "mem", "--depth", "1"]) != 0
    assert "--view ops, layer-mem, summary" in capsys.readouterr().err
