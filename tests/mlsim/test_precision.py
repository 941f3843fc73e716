"""Number formats and the bytes that a stored value takes."""

from __future__ import annotations

import pytest

from mlsim.errors import UnknownNameError
from mlsim.precision import PRECISIONS, by_default, in_groups, mixed, precision, recorded

# Bytes of a value. TF32 is a way to compute: in memory its values are 32 bits. Of four bits some
# share a scale of 8 bits: 16 values, or 32.
BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
BYTES |= {"nvfp4": 4.5 / 8, "mxfp4": 4.25 / 8, "fp4": 0.5, "int4": 0.5}


def test_bytes_of_a_value() -> None:
    assert {name: each.bytes for name, each in PRECISIONS.items()} == BYTES
    assert precision(precision("fp8")) is precision("fp8")


@pytest.mark.parametrize(("given", "nearest"), [("fp7", "fp8"), (16, "fp16"), ("bf17", "bf16")])
def test_an_unknown_format_suggests_the_nearest(given: object, nearest: str) -> None:
    with pytest.raises(UnknownNameError, match="no precision is called") as e:
        precision(given)
    assert repr(given) in str(e.value)
    assert "There are: fp64, fp32, tf32, bf16, fp16, fp8, int8, nvfp4, mxfp4, fp4, int4." in str(
        e.value
    )
    assert f"Did you mean {nearest!r}?" in str(e.value)


WRITTEN = """
fp64 FP64 float64 double torch.float64
fp32 FP32 float32 float torch.float f32 single
tf32 TF32 TensorFloat32
bf16 BF16 bfloat16 torch.bfloat16 BFloat16 bfloat
fp16 FP16 float16 half Half torch.half torch.float16 f16
fp8 FP8 float8 fp8_e4m3 fp8_e5m2 torch.float8_e4m3fn float8_e5m2 f8 e4m3 e5m2
int8 INT8 torch.int8 i8 s8
int4 INT4 int-4 i4 s4
nvfp4 NVFP4
mxfp4 MXFP4
"""


def test_a_format_as_frameworks_and_people_write_it() -> None:
    for name, *written in map(str.split, WRITTEN.strip().splitlines()):
        for each in written:
            assert precision(each) is PRECISIONS[name], each


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


@pytest.mark.parametrize("given", ["4bit", "16", "float17", "fp", "uint8", ""])
def test_what_may_mean_several_formats_is_not_guessed(given: str) -> None:
    with pytest.raises(UnknownNameError, match="no precision is called"):
        precision(given)


def test_a_data_file_has_one_way_to_write_a_format() -> None:
    assert recorded("fp16") is precision("fp16")
    with pytest.raises(UnknownNameError, match=r"'FP16'\. Did you mean 'fp16'"):
        recorded("FP16")


def test_a_format_with_shared_scales_computes_as_its_values_do() -> None:
    assert precision("nvfp4").computes_as == precision("mxfp4").computes_as == "fp4"
    assert precision("fp8").computes_as == "fp8"


@pytest.mark.parametrize("given", [None, ["fp16"], True])
def test_what_is_no_name_is_refused(given: object) -> None:
    with pytest.raises(UnknownNameError, match="There are: fp64"):
        precision(given)
