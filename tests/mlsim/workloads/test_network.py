"""Models and their lowering: counted by hand, and against published truths."""

from __future__ import annotations

import dataclasses
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from refusals import answered
from told import rows

from mlsim import Model, Models
from mlsim.records import DATA
from mlsim.workloads.model import (
    Convolution,
    Distances,
    Linear,
    Operator,
    Pool,
    ResponseNorm,
    Shape,
)
from mlsim.workloads.model_files import load_model
from mlsim.workloads.stages import BasicStage, BottleneckStage, InvertedStage


def by_name(model: Model, name: str):
    return next(operator for operator in model.operators if operator.name == name)


# ResNet-50, against what is published of it.


def test_convolutions_of_resnet_by_hand(resnet: Model) -> None:
    conv1 = by_name(resnet, "conv1")
    assert conv1.multiply_adds == 112 * 112 * 64 * 7 * 7 * 3 == 118_013_952
    # 9,408 weights, and a scale and a shift for each of 64 channels.
    assert conv1.parameters == 9_408 + 128
    assert conv1.activations_read == 3 * 224 * 224 == 150_528
    assert conv1.activations_written == 64 * 112 * 112 == 802_816
    # conv3.1.a still works on 56x56; as published in 2015 it worked on 28x28.
    assert by_name(resnet, "conv3.1.a").multiply_adds == 56 * 56 * 128 * 256
    assert by_name(resnet, "conv3.1.b").multiply_adds == 28 * 28 * 128 * 9 * 128


def test_version_1_is_a_key_away(resnet: Model, tmp_path: Path) -> None:
    source = (DATA / "workloads" / "resnet50.toml").read_text(encoding="utf-8")
    path = tmp_path / "v1.toml"
    path.write_text(
        re.sub(r"stride = 2\n(?!padding)", 'stride = 2\nstride_at = "a"\n', source), "utf-8"
    )
    first = load_model(path)
    assert first.parameter_count == resnet.parameter_count
    # The often quoted 3.8 (3.86) billion multiply-adds are of version 1.
    assert first.flop_count / 2 == pytest.approx(3.86e9, rel=2e-3)
    assert resnet.flop_count / 2 == pytest.approx(4.09e9, rel=2e-3)


# Small layers by hand.


def test_a_convolution_with_a_bias_a_norm_and_a_shortcut() -> None:
    def lowered(**more: bool) -> Operator:
        layer = Convolution(name="c", out_channels=8, kernel=1, **more)
        return layer.lower(Shape(2, 4)).operators[0]

    plain, biased, normed = lowered(), lowered(bias=True), lowered(batch_norm=True)
    assert [each.parameters for each in (plain, biased, normed)] == [16, 16 + 8, 16 + 2 * 8]
    assert plain.multiply_adds == biased.multiply_adds == normed.multiply_adds == 16 * 16
    # 2 * 16 elements of input, 8 * 16 of the shortcut.
    assert lowered(adds_residual=True).activations_read == 32 + 128


def test_a_linear_layer_takes_all_elements() -> None:
    lowered = Linear(name="fc", out_features=10, bias=False).lower(Shape(4, 3))
    assert lowered.operators[0].parameters == lowered.operators[0].multiply_adds == 36 * 10
    assert lowered.output == Shape(10, 1)


def test_pools_and_response_norms_have_traffic_only() -> None:
    pool = Pool(name="p", kernel=2, stride=2).lower(Shape(4, 6))
    norm = ResponseNorm(name="n").lower(Shape(4, 6), also_live=5)
    assert (pool.output, norm.output) == (Shape(4, 3), Shape(4, 6))
    for (operator,), written in ((pool.operators, 36), (norm.operators, 144)):
        assert (operator.multiply_adds, operator.parameters) == (0, 0)
        assert (operator.activations_read, operator.activations_written) == (144, written)
    assert norm.operators[0].activations_live == 144 + 144 + 5
    assert Pool(name="p").lower(Shape(4, 6)).output == Shape(4, 1)
    # AlexNet's windows of 3 at steps of 2 over 55 pixels: (55 - 3) / 2 + 1 = 27. Over 56 pixels
    # a 28th would reach over the edge, but for a border of 1.
    for pixels, padding, left in ((55, 0, 27), (56, 0, 27), (56, 1, 28)):
        cut = Pool(name="p", kernel=3, stride=2, padding=padding).lower(Shape(1, pixels))
        assert cut.output == Shape(1, left)


def test_a_block_keeps_its_input_until_the_shortcut_has_read_it() -> None:
    """Two blocks on 4 channels of 2x2 pixels, width 2, widened to 4."""
    stage = BottleneckStage(name="s", blocks=2, width=2, expansion=2).lower(Shape(4, 2))
    live = {operator.name: operator.activations_live for operator in stage.operators}
    assert live == {
        "s.1.a": 16 + 8,  # reads the block's input, writes 2 channels
        "s.1.b": 8 + 8 + 16,  # the block's input waits for its shortcut
        "s.1.down": 16 + 16 + 8,  # what b wrote waits for c
        "s.1.c": 8 + 16 + 16,  # reads b and the shortcut, writes 4 channels
        "s.2.a": 16 + 8,
        "s.2.b": 8 + 8 + 16,
        "s.2.c": 8 + 16 + 16,  # the shortcut is the block's input
    }
    assert stage.output == Shape(4, 2)


def test_layers_that_cannot_be() -> None:
    def ask(layer: str, shape: list[int], **fields: Any) -> Any:
        module, name = layer.split(".")
        made = getattr(import_module(f"mlsim.workloads.{module}"), name)
        lists = {key: tuple(each) for key, each in fields.items() if isinstance(each, list)}
        return made(**{**fields, **lists}).lower(Shape(*shape))

    assert answered(ask, "layers") == []


def test_a_basic_stage_by_hand() -> None:
    """Two blocks from 2 channels of 4x4 pixels to 4 channels of 2x2."""
    stage = BasicStage(name="s", blocks=2, width=4, stride=2).lower(Shape(2, 4))
    counted = {each.name: (each.multiply_adds, each.parameters) for each in stage.operators}
    assert counted == {
        # 4 pixels x 4 channels x 9 x 2 inputs; 72 weights, a scale and a shift each.
        "s.1.a": (288, 72 + 8),
        "s.1.down": (4 * 4 * 2, 8 + 8),
        "s.1.b": (4 * 4 * 9 * 4, 144 + 8),
        "s.2.a": (576, 144 + 8),
        "s.2.b": (576, 144 + 8),
    }
    live = {each.name: each.activations_live for each in stage.operators}
    assert live == {
        "s.1.a": 32 + 16,
        "s.1.down": 32 + 16 + 16,  # what a wrote waits for b
        "s.1.b": 16 + 16 + 16,  # reads a and the shortcut, writes
        "s.2.a": 16 + 16,
        "s.2.b": 16 + 16 + 16,  # the shortcut is the block's input
    }
    assert stage.output == Shape(4, 2)


def test_a_basic_block_that_changes_nothing_has_no_convolution_as_shortcut() -> None:
    for width, names in ((2, ["s.1.a", "s.1.b"]), (3, ["s.1.a", "s.1.down", "s.1.b"])):
        stage = BasicStage(name="s", blocks=1, width=width).lower(Shape(2, 4))
        assert [each.name for each in stage.operators] == names
    # A stride halves the size once.
    stage = BottleneckStage(name="s", blocks=3, width=2, stride=2).lower(Shape(4, 8))
    assert stage.output == Shape(8, 4)


def test_an_inverted_stage_by_hand() -> None:
    """Two blocks from 2 channels of 4x4 pixels to 3 of 2x2, widened twice inside."""
    stage = InvertedStage(name="s", blocks=2, width=3, stride=2, expansion=2).lower(Shape(2, 4))
    counted = {each.name: (each.multiply_adds, each.parameters) for each in stage.operators}
    assert counted == {
        "s.1.expand": (16 * 4 * 2, 8 + 8),
        "s.1.depthwise": (4 * 4 * 9, 36 + 8),  # each of 4 channels by itself
        "s.1.project": (4 * 3 * 4, 12 + 6),
        "s.2.expand": (4 * 6 * 3, 18 + 12),
        "s.2.depthwise": (4 * 6 * 9, 54 + 12),
        "s.2.project": (4 * 3 * 6, 18 + 6),
    }
    read = {each.name: each.activations_read for each in stage.operators}
    assert read["s.1.project"] == 16  # the block changes size and channels: it adds nothing
    assert read["s.2.project"] == 24 + 12  # what is widened, and the block's input
    live = {each.name: each.activations_live for each in stage.operators}
    assert live["s.1.depthwise"] == 64 + 16
    assert live["s.2.depthwise"] == 24 + 24 + 12  # the block's input waits
    assert live["s.2.project"] == 36 + 12
    assert stage.output == Shape(3, 2)


def test_an_inverted_block_that_does_not_widen_has_two_layers() -> None:
    stage = InvertedStage(name="s", blocks=1, width=4, expansion=1).lower(Shape(4, 2))
    assert [each.name for each in stage.operators] == ["s.1.depthwise", "s.1.project"]
    # The input is read by the first and added by the second.
    assert [each.activations_live for each in stage.operators] == [16 + 16, 16 + 16 + 16]


# Networks, against what is published of them.


def test_lenet_as_published() -> None:
    """Parameters and connections by layer, and both sums, are those of the paper."""
    published = {
        "c1": (156, 122_304),
        "s2": (12, 5_880),
        "c3": (1_516, 151_600),
        "s4": (32, 2_000),
        "c5": (48_120, 48_120),
        "f6": (10_164, 10_164),
        "output": (0, 840),
    }
    connections = {}
    for each in Models.LeNet5.operators:
        learned, joined = published[each.name]
        assert each.parameters == (840 if each.name == "output" else learned)
        # A bias is a connection of each pixel; a sum of four pixels has four, and its bias.
        bias = each.activations_written if each.name != "output" else 0
        sums = 4 * each.activations_written if each.kind == "pooling" else each.multiply_adds
        connections[each.name] = sums + bias
        assert connections[each.name] == joined
    assert sum(connections.values()) == 340_908
    assert sum(learned for learned, _ in published.values()) == 60_000


def test_all_maps_joined_is_an_ordinary_convolution() -> None:
    shape = Shape(6, 14)
    some, plain = (
        Convolution(name="c3", out_channels=16, kernel=5, joined=each).lower(shape).operators[0]
        for each in (96, 0)
    )
    assert dataclasses.replace(some, outputs=16) == plain


def test_distances_by_hand() -> None:
    lowered = Distances(name="d", classes=3).lower(Shape(4, 2), also_live=5)
    (operator,) = lowered.operators
    # Sixteen numbers against three fixed vectors of sixteen.
    assert (operator.multiply_adds, operator.parameters) == (48, 48)
    assert (operator.activations_read, operator.activations_written) == (16, 3)
    assert operator.activations_live == 16 + 3 + 5
    assert lowered.output == Shape(3, 1)


def test_shapes_in_networks_of_the_zoo() -> None:
    for key, last, channels, size in rows("layer_shapes"):
        written = by_name(Models.get(key), last).activations_written
        assert written == int(channels) * int(size) ** 2, (key, last)


# Tables of operators.


def test_merging_keeps_all_totals(resnet: Model) -> None:
    assert repr(resnet) == "<Model ResNet-50 v1.5: 25,557,032 parameters>"
    assert resnet.inference_flops.to("FLOP").magnitude == pytest.approx(8_178_368_512, rel=1e-15)
    table, merged = resnet.operators, resnet.operators.merged
    assert (len(table), len(merged)) == (56, 27)
    for name in ("multiply_adds", "parameters", "activations_read", "activations_written"):
        for_all = sum(getattr(operator, name) for operator in table)
        assert sum(getattr(row, name) * row.repeats for row in merged) == for_all
    assert sum(row.repeats for row in merged) == 56
    assert merged.activations_live == table.activations_live
    assert {row.name for row in merged} <= {operator.name for operator in table}
    # In one kernel the network moves what it must.
    (whole,) = resnet.operators.fused
    assert whole.multiply_adds * 2 == resnet.flop_count
    assert whole.parameters == resnet.parameter_count
    assert (whole.activations_read, whole.activations_written) == (3 * 224**2, 1000)
    assert whole.activations_live == resnet.operators.activations_live
