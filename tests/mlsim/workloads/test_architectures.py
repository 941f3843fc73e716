"""Networks that are no CNN: against published counts, other programs' counts, and physics."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from mlsim import Engine, Models
from mlsim.cli.command import main
from mlsim.errors import InvalidValueError, WrongKindError
from mlsim.records import DATA
from mlsim.workloads.layers import Shape
from mlsim.workloads.model import Network
from mlsim.workloads.model_files import load_model
from mlsim.workloads.recommendation import DotInteraction
from mlsim.workloads.stages import InvertedStage
from mlsim.workloads.unet import UNet

# Their counts are in `fixtures/known_counts.csv`, too.
NEW = ("EfficientNet_B0", "ViT_B16", "T5_Small", "T5_Base", "Whisper_Base", "Whisper_LargeV2")
NEW += ("StableDiffusion1_UNet", "DLRM")


def total(model: Network, name: str) -> int:
    return sum(getattr(each, name) * each.repeats for each in model.operators)


def test_whisper_without_its_fixed_positions_is_openai_s_count() -> None:
    """The encoder's 1,500 positions are computed, not learned."""
    assert Models.Whisper_Base.parameter_count - 1500 * 512 == 71_825_920


def test_the_widths_of_whisper_large() -> None:
    """With a block each, transformers 5.23 has these counts; it computes masked pairs too."""
    model = Models.Whisper_LargeV2
    layers = tuple(
        dataclasses.replace(each, blocks=1) if hasattr(each, "blocks") else each
        for each in model.layers
    )
    small = dataclasses.replace(model, layers=layers)
    assert small.parameter_count == 120_023_040
    assert small.flop_count == 181_424_865_280 - 4 * 1280 * (448 * 447 // 2)


def test_vit_by_hand() -> None:
    """Twelve blocks of 12 d^2 + 13 d, patches, positions, a norm and a head."""
    d, tokens = 768, 197
    blocks = 12 * (12 * d * d + 13 * d)
    patches = 16 * 16 * 3 * d + d + d + tokens * d
    assert Models.ViT_B16.parameter_count == blocks + patches + 2 * d + 1000 * d + 1000
    each = 12 * tokens * d * d + 2 * tokens * tokens * d
    work = 12 * each + 196 * 768 * d + 1000 * d
    assert Models.ViT_B16.flop_count == 2 * work


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
    """One table; per block of the encoder 4 d^2 + 2 d f + 2 d, of the decoder 8 d^2 and a norm."""
    d, f = 512, 2048
    encoder = 6 * (4 * d * d + 2 * d * f + 2 * d)
    decoder = 6 * (8 * d * d + 2 * d * f + 3 * d)
    assert Models.T5_Small.parameter_count == 32128 * d + encoder + decoder + 2 * d + 2 * 32 * 8


def test_larger_t5_by_hand() -> None:
    """Their heads together are wider than the model: 1,024 features, 24 blocks, one table."""
    sizes = {"T5_Large": (16, 64, 4096), "T5_3B": (32, 128, 16_384), "T5_11B": (128, 128, 65_536)}
    d = 1024
    for key, (heads, head_size, f) in sizes.items():
        inner = heads * head_size
        encoder = 24 * (4 * d * inner + 2 * d * f + 2 * d)
        decoder = 24 * (8 * d * inner + 2 * d * f + 3 * d)
        rest = 32_128 * d + 2 * d + 2 * 32 * heads
        assert Models.get(key).parameter_count == encoder + decoder + rest
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

SMALL_UNET: dict[str, Any] = {
    "name": "u",
    "channels": (32, 64, 96),
    "blocks": 1,
    "attention_levels": 2,
    "heads": 4,
    "context_tokens": 5,
    "context_width": 24,
}


def test_another_unet_is_counted_as_its_reference_code_counts() -> None:
    """diffusers 0.42.1, UNet2DConditionModel of these channels on 16 pixels."""
    operators = UNet(**SMALL_UNET).lower(Shape(4, 16)).operators
    assert sum(each.parameters for each in operators) == 2_175_108
    assert 2 * sum(each.multiply_adds for each in operators) == 245_639_168


def test_a_unet_puts_out_what_it_takes_in() -> None:
    lowered = UNet(**SMALL_UNET).lower(Shape(4, 16))
    assert lowered.output == Shape(4, 16)
    found = {each.name: each for each in lowered.operators}
    assert found["u.out"].activations_written == 4 * 16 * 16
    # Up to the middle each level halves the side, and then each doubles it.
    assert found["u.down1.halve"].activations_written == 32 * 8 * 8
    assert found["u.up3.double"].activations_read == 96 * 4 * 4
    assert found["u.up3.double"].activations_written == 96 * 8 * 8
    assert found["u.up3.double"].multiply_adds == 0
    # What is joined has the channels of both.
    assert found["u.up3.1.join"].activations_written == (96 + 96) * 4 * 4
    assert found["u.up1.2.join"].activations_written == (32 + 32) * 16 * 16


def test_a_unet_keeps_the_maps_of_the_way_down() -> None:
    operators = {each.name: each for each in UNet(**SMALL_UNET).lower(Shape(4, 16)).operators}
    # In the middle six maps wait: of each level its block's, the first, and the halved ones.
    waiting = 32 * 256 + 32 * 256 + 32 * 64 + 64 * 64 + 64 * 16 + 96 * 16
    always = 5 * 24 + 4 * 32
    middle = 96 * 16
    assert operators["u.middle.1.norm1"].activations_live == 2 * middle + waiting + always
    # At the end nothing waits any more.
    assert operators["u.norm"].activations_live == 2 * 32 * 256 + always


def test_the_text_is_read_by_each_transformer_block() -> None:
    operators = {each.name: each for each in UNet(**SMALL_UNET).lower(Shape(4, 16)).operators}
    read = operators["u.down1.1.cross.keys_values"]
    assert read.activations_read == 5 * 24
    assert read.parameters == 24 * 2 * 32  # without a bias
    assert operators["u.down1.1.cross.attention"].multiply_adds == 256 * 5 * 2 * 32
    assert "u.down3.1.self.qkv" not in operators


@pytest.mark.parametrize(
    ("change", "shape", "words"),
    [
        ({}, Shape(4, 10), "an input of 10 pixels can't be halved 2 times; 4 must divide it"),
        ({}, Shape(4, 16, 1), "can't be halved"),
        ({"heads": 5}, Shape(4, 16), "5 heads don't divide the channels 32, 64, 96"),
    ],
)
def test_a_unet_that_cannot_be_is_refused(change: dict[str, Any], shape: Shape, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        UNet(**{**SMALL_UNET, **change}).lower(shape)


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


def test_an_interaction_takes_one_vector() -> None:
    with pytest.raises(InvalidValueError, match="f: its input must be one vector, not 16 places"):
        DotInteraction(name="f", rows=(3,)).lower(Shape(4, 4))


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


def test_every_estimate_holds_all_tables() -> None:
    """48 GB in 16 bits are more than the 40 GB of a card."""
    for estimate in ("roofline", "bound", "calibrated"):
        profile = Engine.solve(model="DLRM", hardware="A100", batch_size=4, estimate=estimate)
        assert profile.value("weight_memory") == 2 * Models.DLRM.parameter_count
    small = Engine.solve(model="DLRM", hardware="A100_40GB", batch_size=1)
    assert -5.2e9 < small.value("memory_free") < -5.1e9


def test_the_bound_reads_rows_once_for_all_samples() -> None:
    """All samples may look the same rows up."""
    small, large = (
        Engine.solve(model="DLRM", hardware="A100", batch_size=batch, estimate="bound")
        for batch in (1, 9)
    )
    # A sample more brings 13 numbers and takes one away.
    assert large.value("total_bytes") - small.value("total_bytes") == 8 * 2 * (13 + 1)
    matrices = Models.DLRM.parameter_count - Models.DLRM.operators.table_parameters
    assert small.value("total_bytes") == 2 * (matrices + 26 * 128 + 14)


def test_a_network_without_tables_is_reckoned_as_before() -> None:
    profile = Engine.solve(model="ResNet50", hardware="A100")
    assert "table_parameters" not in profile.configuration.table.names
    assert Models.ResNet50.operators.table_parameters == 0


def test_memory_of_tables_shows_its_work() -> None:
    told = str(Engine.solve(model="DLRM", hardware="A100").explain("weight_memory"))
    assert "weights_held = weight_bytes + bytes_per_parameter * table_parameters" in told
    assert "naumov2019dlrm" in told


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
    assert eight.value("throughput") >= one.value("throughput")
    assert wide.value("total_bytes") == 2 * one.value("total_bytes")
    # It shows its work, operator by operator.
    assert model.name in str(one.explain())
    for total_of, name in (("total_flops", "flops"), ("latency", "roofline_time")):
        done = sum(row["repeats"] * row[name] for row in one.operators)
        assert done == pytest.approx(one.value(total_of), rel=1e-12)
    times = [
        Engine.solve(model=model, hardware="A100", batch_size=4, estimate=each).value("latency")
        for each in ("bound", "roofline", "calibrated")
    ]
    assert times == sorted(times)


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
        for name in ("multiply_adds", "parameters", "activations_read", "table_parameters"):
            merged = sum(getattr(each, name) * each.repeats for each in model.operators.merged)
            assert merged == total(model, name), (key, name)
    assert broken == []


# The doors.


def test_a_network_is_not_served() -> None:
    with pytest.raises(WrongKindError, match=r"ViT-B/16 is no language model: use Engine.solve"):
        Engine.serve(model="ViT_B16", hardware="A100")
    with pytest.raises(WrongKindError, match=r"114 tokens decoded at one time.*not word by word"):
        Engine.serve(model="T5_Small", hardware="A100")


def test_the_command_line_solves_and_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "ViT_B16", "A100", "--batch", "8"]) == 0
    assert "ViT-B/16 on NVIDIA A100" in capsys.readouterr().out
    assert main(["zoo", "Whisper_Base"]) == 0
    told = capsys.readouterr().out
    assert "72,593,920 (derived from the layers)" in told
    assert "30 s of sound heard, 448 tokens decoded at one time" in told


# Files that can't be.

VIT = (DATA / "workloads" / "vit_b_16.toml").read_text(encoding="utf-8")
DLRM = (DATA / "workloads" / "dlrm.toml").read_text(encoding="utf-8")


def test_a_switch_may_be_said_to_be_off(tmp_path: Path) -> None:
    """A count whose default is 0 may be given as 0."""
    path = tmp_path / "model.toml"
    path.write_text(VIT.replace("heads = 12", "heads = 12\nrelative_positions = 0"), "utf-8")
    assert load_model(path).parameter_count == Models.ViT_B16.parameter_count
