"""Number formats and the bytes that a stored value takes."""

from __future__ import annotations

import kept
import refusals

from mlsim.precision import PRECISIONS, by_default, in_groups, mixed, precision, recorded

# Bytes of a value. TF32 is a way to compute: in memory its values are 32 bits. Of four bits some
# share a scale of 8 bits: 16 values, or 32.
BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
BYTES |= {"nvfp4": 4.5 / 8, "mxfp4": 4.25 / 8, "fp4": 0.5, "int4": 0.5}


def test_bytes_of_a_value() -> None:
    assert {name: each.bytes for name, each in PRECISIONS.items()} == BYTES
    assert precision(precision("fp8")) is precision("fp8")
    computed = {name: each.computes_as for name, each in PRECISIONS.items()}
    assert computed == {name: name for name in BYTES} | {"nvfp4": "fp4", "mxfp4": "fp4"}


def test_a_format_as_frameworks_and_people_write_it() -> None:
    for name, *written in map(str.split, kept.text("names_of_formats.txt").splitlines()):
        assert {precision(each) for each in written} == {PRECISIONS[name]}, name


def test_formats_in_groups_and_layers_by_hand() -> None:
    """Seven weights share a scale of 5 bits, and a zero point of 4 more."""
    group = in_groups("int4", 7, scale_bits=5, zero_points=True)
    assert (group.bits, group.name, group.computes_as) == (4 + 9 / 7, "int4 in groups of 7", "int4")
    assert precision(group.name) is group
    alone = in_groups("int4", 7)
    assert (alone.bits, alone.name) == (4 + 16 / 7, "int4 in groups of 7 (no zero points)")
    block = in_groups("fp8", 3, 5, scale_bits=30)
    assert (block.bits, block.name) == (8 + 30 / 15, "fp8 in blocks of 3 x 5")
    # Two layers of three in FP8, one in 16 bits.
    most, other = precision("fp8"), precision("bf16")
    both = mixed(most, {most: 2, other: 1})
    assert (both.bits, both.name) == ((2 * 8 + 16) / 3, "fp8 in 2 of 3 layers, else bf16")
    assert both.computes_as == "fp8"
    assert by_default("bf16", "bfloat16") == "bf16, since no other was given"


def test_what_is_no_format_suggests_the_nearest_and_a_data_file_has_one_way_to_write_each() -> None:
    assert refusals.answered(precision, "precisions") == []
    assert recorded("fp16") is precision("fp16")
    assert refusals.answered(recorded, "precisions", "recorded") == []
