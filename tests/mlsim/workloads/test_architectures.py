"""Networks that are no CNN: against published counts, other programs' counts, and physics."""

from __future__ import annotations

import dataclasses

import pytest

from mlsim import Engine, Models
from mlsim.errors import WrongKindError
from mlsim.workloads.model import Network, Shape
from mlsim.workloads.stages import InvertedStage
from mlsim.workloads.tokens import DotInteraction
from mlsim.workloads.unet import UNet

# Their counts are in `fixtures/known_counts.csv`, too.
NEW = ("EfficientNet_B0", "ViT_B16", "T5_Small", "T5_Base", "Whisper_Base", "Whisper_LargeV2")
NEW += ("StableDiffusion1_UNet", "DLRM")


def total(model: Network, name: str) -> int:
    return sum(getattr(each, name) * each.repeats for each in model.operators)


def test_the_widths_of_whisper_large() -> None:
    """With a block each, transformers 5.23 has these counts; it computes masked pairs too."""
    # OpenAI's count has no fixed positions: the encoder's 1,500 are computed, not learned.
    assert Models.Whisper_Base.parameter_count - 1500 * 512 == 71_825_920
    model = Models.Whisper_LargeV2
    layers = tuple(
        dataclasses.replace(each, blocks=1) if hasattr(each, "blocks") else each
        for each in model.layers
    )
    small = dataclasses.replace(model, layers=layers)
    assert small.parameter_count == 120_023_040
    assert small.flop_count == 181_424_865_280 - 4 * 1280 * (448 * 447 // 2)


def test_another_size_of_vit() -> None:
    """ViT-L/16 of torchvision, from the same layers."""
    model = Models.ViT_B16
    patches, encoder, first, head = model.layers
    wide = dataclasses.replace(encoder, blocks=24, heads=16, feed_forward=4096)
    large = dataclasses.replace(
        model, layers=(dataclasses.replace(patches, width=1024), wide, first, head)
    )
    assert large.parameter_count == 304_326_632
    assert large.flop_count == 123_109_425_152


def test_t5_by_hand() -> None:
    """One table; per block of the encoder 4 d^2 + 2 d f + 2 d, of the decoder 8 d^2 and a norm.

    The heads of the larger ones are together wider than the model.
    """
    for key, d, blocks, heads, inner, f in (
        ("T5_Small", 512, 6, 8, 512, 2048),
        ("T5_Large", 1024, 24, 16, 1024, 4096),
        ("T5_3B", 1024, 24, 32, 4096, 16_384),
        ("T5_11B", 1024, 24, 128, 16_384, 65_536),
    ):
        encoder = blocks * (4 * d * inner + 2 * d * f + 2 * d)
        decoder = blocks * (8 * d * inner + 2 * d * f + 3 * d)
        rest = 32_128 * d + 2 * d + 2 * 32 * heads
        assert Models.get(key).parameter_count == encoder + decoder + rest, key
    # As another program counts it: KerasHub's table of presets.
    assert Models.T5_Large.parameter_count == 737_668_096


def test_an_efficientnet_weighs_channels_by_hand() -> None:
    """One block from 8 channels of 4x4 pixels to 8, widened twice, squeezed to 2."""
    stage = InvertedStage(name="s", blocks=1, width=8, expansion=2, kernel=5, squeeze=4)
    lowered = stage.lower(Shape(8, 4))
    found = {each.name: (each.multiply_adds, each.parameters) for each in lowered.operators}
    assert found == {
        "s.1.expand": (16 * 16 * 8, 8 * 16 + 32),
        "s.1.depthwise": (16 * 16 * 25, 16 * 25 + 32),
        "s.1.mean": (0, 0),
        "s.1.reduce": (16 * 2, 16 * 2 + 2),
        "s.1.weigh": (2 * 16, 2 * 16 + 16),
        "s.1.scale": (0, 0),
        "s.1.project": (16 * 8 * 16, 16 * 8 + 16),
    }
    moved = {
        each.name: (each.activations_read, each.activations_written) for each in lowered.operators
    }
    assert moved["s.1.mean"] == (256, 16)
    assert moved["s.1.scale"] == (256 + 16, 256)
    live = {each.name: each.activations_live for each in lowered.operators}
    # The block's input of 128 waits to be added, and the map of 256 to be scaled.
    assert live["s.1.mean"] == 256 + 16 + 128
    assert live["s.1.reduce"] == 16 + 2 + 256 + 128
    assert live["s.1.weigh"] == 2 + 16 + 256 + 128
    assert live["s.1.scale"] == 256 + 16 + 256 + 128
    assert lowered.output == Shape(8, 4)


# The U-Net.


def test_a_unet_by_hand() -> None:
    """Three levels on 16 pixels; a text of 5 tokens, each of 24 numbers."""
    text = {"context_tokens": 5, "context_width": 24}
    unet = UNet(name="u", channels=(32, 64, 96), blocks=1, attention_levels=2, heads=4, **text)
    lowered = unet.lower(Shape(4, 16))
    # As diffusers 0.42.1 counts it, a UNet2DConditionModel of these channels.
    assert sum(each.parameters for each in lowered.operators) == 2_175_108
    assert 2 * sum(each.multiply_adds for each in lowered.operators) == 245_639_168
    assert lowered.output == Shape(4, 16)
    found = {each.name.removeprefix("u."): each for each in lowered.operators}
    written = {name: each.activations_written for name, each in found.items()}
    assert written["out"] == 4 * 16 * 16
    # Up to the middle each level halves the side, and then each doubles it.
    assert written["down1.halve"] == 32 * 8 * 8
    assert (found["up3.double"].activations_read, written["up3.double"]) == (96 * 16, 96 * 64)
    assert found["up3.double"].multiply_adds == 0
    # What is joined has the channels of both.
    assert written["up3.1.join"] == (96 + 96) * 4 * 4
    assert written["up1.2.join"] == (32 + 32) * 16 * 16
    # In the middle six maps wait: of each level its block's, the first, and the halved ones.
    waiting = 32 * 256 + 32 * 256 + 32 * 64 + 64 * 64 + 64 * 16 + 96 * 16
    always = 5 * 24 + 4 * 32
    assert found["middle.1.norm1"].activations_live == 2 * 96 * 16 + waiting + always
    # At the end nothing waits any more.
    assert found["norm"].activations_live == 2 * 32 * 256 + always
    # The text is read by each block with attention, through matrices without a bias.
    read = found["down1.1.cross.keys_values"]
    assert (read.activations_read, read.parameters) == (5 * 24, 24 * 2 * 32)
    assert found["down1.1.cross.attention"].multiply_adds == 256 * 5 * 2 * 32
    # All pixels look at all, and a matrix of its width goes over each.
    assert found["down1.1.self.attention"].multiply_adds == 256 * 256 * 2 * 32
    matrix = found["down1.1.in"]
    assert (matrix.outputs, matrix.activations_read, matrix.multiply_adds) == (
        32,
        32 * 256,
        32 * 32 * 256,
    )
    assert "down3.1.self.qkv" not in found


# Tables of rows.


def test_rows_of_tables_by_hand() -> None:
    """Two tables of rows as wide as a vector of 4: three vectors, three pairs."""
    lowered = DotInteraction(name="f", rows=(10, 7)).lower(Shape(4, 1))
    lookups, interaction = lowered.operators
    assert (lookups.table_parameters, lookups.parameters, lookups.multiply_adds) == (68, 0, 0)
    assert (lookups.activations_read, lookups.activations_written) == (8, 8)
    assert lookups.activations_live == 8 + 8 + 4
    assert interaction.multiply_adds == 3 * 4
    assert (interaction.activations_read, interaction.activations_written) == (12, 4 + 3)
    assert lowered.output == Shape(7, 1)


def test_tables_take_memory_and_no_time() -> None:
    model = Models.DLRM
    rows = sum(model.layers[3].rows)
    assert rows == 187_767_399
    # PyTorch's counter has all products of 27 rows, where each pair is used once.
    assert model.flop_count == 4_916_992 - 4 * 64 * (27 * 27 - 27 * 26 // 2)
    one = Engine.solve(model=model, hardware="H200", batch_size=1)
    assert one.value("weight_memory") == 2 * model.parameter_count
    matrices = model.parameter_count - 128 * rows
    moved = total(model, "activations_read") + total(model, "activations_written")
    assert one.value("total_bytes") == 2 * (matrices + moved)
    # A sample more reads 26 rows more, and no parameter.
    two = Engine.solve(model=model, hardware="H200", batch_size=2)
    assert two.value("total_bytes") - one.value("total_bytes") == 2 * moved
    assert two.value("weight_memory") == one.value("weight_memory")


def test_every_estimate_holds_all_tables_and_the_bound_reads_rows_once() -> None:
    """48 GB in 16 bits are more than the 40 GB of a card; all samples may look up the same rows."""
    for estimate in ("roofline", "bound", "calibrated"):
        profile = Engine.solve(model="DLRM", hardware="A100", batch_size=4, estimate=estimate)
        assert profile.value("weight_memory") == 2 * Models.DLRM.parameter_count
    tight = Engine.solve(model="DLRM", hardware="A100_40GB", batch_size=1)
    assert -5.2e9 < tight.value("memory_free") < -5.1e9
    small, large = (
        Engine.solve(model="DLRM", hardware="A100", batch_size=batch, estimate="bound")
        for batch in (1, 9)
    )
    # A sample more brings 13 numbers and takes one away.
    assert large.value("total_bytes") - small.value("total_bytes") == 8 * 2 * (13 + 1)
    matrices = Models.DLRM.parameter_count - Models.DLRM.operators.table_parameters
    assert small.value("total_bytes") == 2 * (matrices + 26 * 128 + 14)


# What must hold of all of them.


@pytest.mark.parametrize("key", NEW)
def test_what_holds_of_any_network(key: str) -> None:
    model = Models.get(key)
    one, eight, wide = (
        Engine.solve(model=model, hardware="H200", batch_size=batch, precision=precision)
        for batch, precision in ((1, "fp16"), (8, "fp16"), (1, "fp32"))
    )
    for name in ("total_flops", "activation_memory"):
        assert eight.value(name) == 8 * one.value(name), name
    assert one.value("total_flops") == model.flop_count
    assert eight.value("weight_memory") == one.value("weight_memory")
    assert wide.value("total_bytes") == 2 * one.value("total_bytes")
    for total_of, name in (("total_flops", "flops"), ("latency", "roofline_time")):
        done = sum(row["repeats"] * row[name] for row in one.operators)
        assert done == pytest.approx(one.value(total_of), rel=1e-12)


def test_what_an_operator_reads_and_writes_is_alive() -> None:
    broken = []
    for key in NEW:
        model = Models.get(key)
        assert len({each.name for each in model.operators}) == len(model.operators), key
        broken += [
            (key, each.name)
            for each in model.operators
            if not each.activations_live >= each.activations_written > 0
            or each.activations_read <= 0
            # A convolution or a matrix has a row for each pixel or token.
            or (each.outputs and each.activations_written % each.outputs)
        ]
    assert broken == []


def test_a_network_is_not_served() -> None:
    with pytest.raises(WrongKindError, match=r"ViT-B/16 is no language model: use Engine.solve"):
        Engine.serve(model="ViT_B16", hardware="A100")
    with pytest.raises(WrongKindError, match=r"114 tokens decoded at one time.*not word by word"):
        Engine.serve(model="T5_Small", hardware="A100")
