"""Layers over tokens, worked out by hand: patches, embeddings, encoders, decoders."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from mlsim.workloads.model import Convolution, Lowered, Pool, Shape
from mlsim.workloads.tokens import (
    DecoderStage,
    EncoderStage,
    FirstToken,
    PatchEmbedding,
    Positions,
    TokenEmbedding,
    TokenLinear,
)

# Three tokens of width 4, two heads of size 3 (so that all heads are 6 wide), 8 inside.
TOKENS = Shape(4, 3, rank=1)
SMALL: dict[str, Any] = {"blocks": 1, "heads": 2, "head_size": 3, "feed_forward": 8}


def told(lowered: Lowered, *columns: str) -> dict[str, Any]:
    """Return one number, or several, of each operator."""
    return {each.name: attrgetter(*columns)(each) for each in lowered.operators}


def counted(lowered: Lowered) -> dict[str, Any]:
    return told(lowered, "multiply_adds", "parameters")


def traffic(lowered: Lowered) -> dict[str, Any]:
    return told(lowered, "activations_read", "activations_written")


# Sequences.


def test_a_convolution_along_a_sequence() -> None:
    """Windows of 3 moments of 2 channels, two steps apart: (6 + 2 - 3) / 2 + 1 = 3 of them."""
    layer = Convolution(name="c", out_channels=5, kernel=3, stride=2, padding=1, bias=True)
    lowered = layer.lower(Shape(2, 6, rank=1))
    (operator,) = lowered.operators
    assert lowered.output == Shape(5, 3, rank=1)
    assert operator.parameters == 3 * 2 * 5 + 5
    assert operator.multiply_adds == 3 * (3 * 2 * 5)
    assert (operator.activations_read, operator.activations_written) == (12, 15)
    assert Pool(name="p", kernel=2, stride=2).lower(Shape(2, 6, rank=1)).output == Shape(2, 3, 1)
    # Groups divide the window.
    layer = Convolution(name="c", out_channels=4, kernel=3, groups=2, padding=1)
    (operator,) = layer.lower(Shape(4, 6, rank=1)).operators
    assert (operator.parameters, operator.multiply_adds) == (3 * 2 * 4, 6 * 3 * 2 * 4)


def test_patches_become_tokens() -> None:
    """A picture of 6 pixels in patches of 3: 4 tokens, and one of its own."""
    lowered = PatchEmbedding(name="p", width=5, patch=3).lower(Shape(2, 6))
    (operator,) = lowered.operators
    assert lowered.output == Shape(5, 5, rank=1)
    weights = 3 * 3 * 2 * 5
    # A bias, the token of its own, and a position for each of five.
    assert operator.parameters == weights + 5 + 5 + 25
    assert operator.multiply_adds == 4 * weights
    assert (operator.activations_read, operator.activations_written) == (72, 25)
    without = PatchEmbedding(name="p", width=5, patch=3, class_token=False).lower(Shape(2, 6))
    assert without.output == Shape(5, 4, rank=1)
    assert without.operators[0].parameters == weights + 5 + 20


def test_an_embedding_reads_rows_and_not_its_table() -> None:
    (operator,) = TokenEmbedding(name="e", vocabulary=100, width=4).lower(Shape(1, 3, 1)).operators
    assert (operator.parameters, operator.table_parameters) == (0, 400)
    assert (operator.activations_read, operator.activations_written) == (12, 12)
    assert operator.multiply_adds == 0
    shared = TokenEmbedding(name="e", vocabulary=100, width=4, own_table=False)
    assert shared.lower(Shape(1, 3, 1)).operators[0].table_parameters == 0


def test_positions_and_the_first_token() -> None:
    (added,) = Positions(name="p").lower(TOKENS).operators
    assert (added.parameters, added.activations_read, added.activations_written) == (12, 12, 12)
    assert FirstToken(name="f").lower(TOKENS) == Lowered((), Shape(4, 1, rank=1))


def test_a_matrix_over_tokens_works_on_each() -> None:
    (operator,) = TokenLinear(name="l", out_features=10).lower(TOKENS).operators
    assert (operator.parameters, operator.multiply_adds) == (4 * 10 + 10, 3 * 4 * 10)
    assert (operator.activations_read, operator.activations_written) == (12, 30)
    assert operator.outputs == 10
    plain = TokenLinear(name="l", out_features=10, bias=False).lower(TOKENS).operators[0]
    assert plain.parameters == 40


# Stages.


def test_an_encoder_by_hand() -> None:
    """Multiply-adds, parameters, numbers read and written, and those that are alive."""
    lowered = EncoderStage(name="e", **SMALL).lower(TOKENS)
    assert lowered.output == TOKENS
    counts, moved, alive = counted(lowered), traffic(lowered), told(lowered, "activations_live")
    # The residual of 12 waits while a half of the block works.
    assert {name: (*counts[name], *moved[name], alive[name]) for name in counts} == {
        "e.1.self.norm": (0, 8, 12, 12, 24),  # a scale and a shift
        "e.1.self.qkv": (3 * 4 * 18, 4 * 18 + 18, 12, 54, 12 + 54 + 12),
        # Nine pairs: a score and a value each.
        "e.1.self.attention": (3 * 3 * 2 * 6, 0, 54, 18, 54 + 18 + 12),
        "e.1.self.out": (3 * 6 * 4, 6 * 4 + 4, 18 + 12, 12, 18 + 12 + 12),  # and the residual
        "e.1.feed.norm": (0, 8, 12, 12, 24),
        "e.1.feed.up": (3 * 4 * 8, 4 * 8 + 8, 12, 24, 12 + 24 + 12),
        "e.1.feed.down": (3 * 8 * 4, 8 * 4 + 4, 24 + 12, 12, 24 + 12 + 12),
        "e.norm": (0, 8, 12, 12, 24),
    }
    three = EncoderStage(name="e", **{**SMALL, "blocks": 3}).lower(TOKENS)
    assert len(three.operators) == 3 * (len(lowered.operators) - 1) + 1


def test_what_an_encoder_may_leave_out() -> None:
    """T5's: a scale only, no biases, and a number for each head and distance, once."""
    stage = {**SMALL, "blocks": 2, "norm": "rms", "bias": False, "key_bias": False}
    lowered = EncoderStage(name="e", relative_positions=7, **stage).lower(TOKENS)
    found = counted(lowered)
    assert found["e.1.self.norm"][1] == found["e.norm"][1] == 4
    assert found["e.1.self.qkv"][1] == 4 * 18
    assert found["e.1.self.out"][1] == found["e.1.self.qkv"][1] // 3
    assert (found["e.1.self.attention"][1], found["e.2.self.attention"][1]) == (14, 0)
    # Whisper's keys have no bias; a gate is a second matrix and writes nothing more.
    lowered = EncoderStage(name="e", key_bias=False, gated=True, **SMALL).lower(TOKENS)
    found = counted(lowered)
    assert found["e.1.self.qkv"][1] == 4 * 18 + 12
    assert found["e.1.self.out"][1] == 6 * 4 + 4
    assert found["e.1.feed.up"] == (3 * 4 * 16, 4 * 16 + 16)
    assert traffic(lowered)["e.1.feed.up"] == (12, 24)


def test_a_decoder_by_hand() -> None:
    """Two words that look at three tokens of an encoder."""
    words = {"name": "d", "vocabulary": 50, "positions": 5}
    stage = DecoderStage(**words, tokens=2, **SMALL)
    lowered = stage.lower(TOKENS)
    assert lowered.output == Shape(4, 2, rank=1)
    assert counted(lowered) == {
        "d.embedding": (0, 0),
        "d.positions": (0, 8),  # those of two words
        "d.1.self.norm": (0, 8),
        "d.1.self.qkv": (2 * 4 * 18, 4 * 18 + 18),
        "d.1.self.attention": (3 * 2 * 6, 0),  # itself and those before: 1 + 2 pairs
        "d.1.self.out": (2 * 6 * 4, 6 * 4 + 4),
        "d.1.cross.norm": (0, 8),
        "d.1.cross.queries": (2 * 4 * 6, 4 * 6 + 6),
        "d.1.cross.keys_values": (3 * 4 * 12, 4 * 12 + 12),  # of the encoder's tokens
        "d.1.cross.attention": (2 * 3 * 2 * 6, 0),  # all pairs
        "d.1.cross.out": (2 * 6 * 4, 6 * 4 + 4),
        "d.1.feed.norm": (0, 8),
        "d.1.feed.up": (2 * 4 * 8, 4 * 8 + 8),
        "d.1.feed.down": (2 * 8 * 4, 8 * 4 + 4),
        "d.norm": (0, 8),
    }
    moved = traffic(lowered)
    assert moved["d.1.cross.keys_values"] == (12, 36)
    assert moved["d.1.cross.attention"] == (12 + 36, 12)
    # The words' table, and the positions that two words leave unread.
    tables = told(lowered, "table_parameters")
    assert (tables["d.embedding"], tables["d.positions"]) == (200, 3 * 4)
    alive = told(lowered, "activations_live")
    # The encoder's 12 wait until the last block has keys and values of them; the residual is 8.
    assert alive["d.1.self.qkv"] == 8 + 36 + 8 + 12
    assert alive["d.1.cross.keys_values"] == 12 + 36 + 8 + 12  # memory, both, residual, queries
    assert alive["d.1.cross.attention"] == 48 + 12 + 8
    assert alive["d.1.feed.up"] == 8 + 16 + 8
    assert alive["d.norm"] == 16
    two = DecoderStage(
        name="d", tokens=2, vocabulary=50, positions=5, own_table=True, **{**SMALL, "blocks": 2}
    )
    longer = told(two.lower(TOKENS), "activations_live")
    # Where another block reads them, they wait through this one.
    for name in ("cross.attention", "feed.up"):
        assert longer[f"d.1.{name}"] == longer[f"d.2.{name}"] + 12
    # All positions may be read.
    stage = DecoderStage(name="d", tokens=5, vocabulary=50, positions=5, own_table=False, **SMALL)
    assert sum(each.table_parameters for each in stage.lower(TOKENS).operators) == 0
