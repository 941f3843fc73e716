"""Number formats and the bytes that a stored value takes."""

from __future__ import annotations

import pytest

from mlsim.errors import UnknownNameError
from mlsim.precision import PRECISIONS, precision, recorded


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("fp64", 8),
        ("fp32", 4),
        # TF32 is a way to compute: in memory its values are 32 bits.
        ("tf32", 4),
        ("bf16", 2),
        ("fp16", 2),
        ("fp8", 1),
        ("int8", 1),
        # 4 bits and a share of the scale: 8 bits for 16 values, or for 32.
        ("nvfp4", 4.5 / 8),
        ("mxfp4", 4.25 / 8),
        ("fp4", 0.5),
        ("int4", 0.5),
    ],
)
def test_bytes_of_a_value(name: str, size: float) -> None:
    assert precision(name).bytes == size
    assert precision(precision(name)) is precision(name)


def test_every_format_is_tested_above() -> None:
    assert len(PRECISIONS) == 11


@pytest.mark.parametrize(("given", "nearest"), [("fp7", "fp8"), (16, "fp16"), ("bf17", "bf16")])
def test_an_unknown_format_suggests_the_nearest(given: object, nearest: str) -> None:
    with pytest.raises(UnknownNameError, match="no precision is called") as e:
        precision(given)
    assert repr(given) in str(e.value)
    assert "There are: fp64, fp32, tf32, bf16, fp16, fp8, int8, nvfp4, mxfp4, fp4, int4." in str(
        e.value
    )
    assert f"Did you mean {nearest!r}?" in str(e.value)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("fp64", "FP64 float64 double torch.float64"),
        ("fp32", "FP32 float32 float torch.float"),
        ("tf32", "TF32 TensorFloat32"),
        ("bf16", "BF16 bfloat16 torch.bfloat16 BFloat16"),
        ("fp16", "FP16 float16 half Half torch.half torch.float16 f16"),
        ("fp8", "FP8 float8 fp8_e4m3 fp8_e5m2 torch.float8_e4m3fn float8_e5m2"),
        ("int8", "INT8 torch.int8"),
        ("int4", "INT4 int-4"),
        ("nvfp4", "NVFP4"),
        ("mxfp4", "MXFP4"),
    ],
)
def test_a_format_as_frameworks_and_people_write_it(name: str, written: str) -> None:
    for each in written.split():
        assert precision(each) is PRECISIONS[name], each


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
