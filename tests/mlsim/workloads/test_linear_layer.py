"""A linear layer's products and passes, and its matrix on several devices: by hand."""

from __future__ import annotations

from dataclasses import asdict

from mlsim.workloads.recipes import LayerKernel, Operands, cast, cast_bytes, product
from mlsim.workloads.steps import matrix

MIXED = Operands(
    left="fp8",
    right="fp4",
    result="fp32",
    computes="fp8",
    left_scales="M",
    right_scales="3x5",
    scale_bytes=30.0,
    measured_as="path",
)


def numbers(kernel: LayerKernel) -> dict[str, object]:
    """Return what of a kernel is neither a word nor 0."""
    words = ("name", "does", "computes", "measured_as")
    return {name: value for name, value in asdict(kernel).items() if value and name not in words}


def test_products_by_hand() -> None:
    """Each format goes with its tensor; a scale of 30 bytes is of a row, or of 15 values."""
    forward = product("forward", MIXED, product_repeats=1.0)
    assert numbers(forward) == {
        "point_flops": 2.0,
        "input_element_bytes": 1.0,
        "weight_element_bytes": 0.5,
        "output_element_bytes": 4.0,
        "weight_scale_bytes": 2.0,
        "row_scale_bytes": 30.0,
        "input_read": 1.0,
        "weight_read": 1.0,
        "product_repeats": 1.0,
    }
    assert (forward.name, forward.computes, forward.measured_as) == ("forward", "fp8", "path")
    assert forward.does == "fp8 times fp4, fp32 out"
    assert (forward.scaled, forward.repeats, forward.held_repeats) == (True, 1.0, 1.0)
    # The input's gradient is that of the output by the weights, of which the left one is turned.
    back = numbers(product("input_gradient", MIXED, product_repeats=1.0))
    assert (back["output_element_bytes"], back["input_element_bytes"]) == (1.0, 4.0)
    assert (back["output_read"], back["weight_read"], back["turned_input"]) == (1.0, 1.0, 1.0)
    assert "turned_weight" not in back
    weights = product("weight_gradient", MIXED, baseline_repeats=1.0)
    assert (weights.turned_weight, weights.input_read, weights.output_read) == (1.0, 1.0, 1.0)
    assert weights.name == "weight gradient, fp8"
    assert (weights.repeats, weights.held_repeats) == (0.0, 0.0)


def test_passes_by_hand() -> None:
    """Two bytes read and one written of each value; 30 bytes for each of 15, or for a row."""
    found = cast("output", "turn", reads=("bf16",), writes=("fp8",), scales=("3x5", "N", "K"),
                 scale_bytes=30.0, whole_blocks=4)  # fmt: skip
    assert found.name == "gradient of the output: turn"
    assert numbers(found) == {
        "output_element_bytes": 3.0,
        "output_scale_bytes": 2.0,
        "outputs_scale_bytes": 30.0,
        "inputs_scale_bytes": 30.0,
        "whole_scale_bytes": 30.0,
        "depth_scale_share": 0.25,
        "cast_repeats": 1.0,
    }
    blocks = cast("weight", "scale", reads=("fp32",), writes=(), scales=("3x5",), scale_bytes=30.0)
    assert numbers(blocks) == {
        "weight_element_bytes": 4.0,
        "weight_scale_bytes": 2.0,
        "cast_repeats": 1.0,
    }
    plain = cast("weight", "read", reads=("fp32",), writes=())
    assert (plain.name, plain.scaled, plain.repeats) == ("weight: read", False, 1.0)
    forward = product("forward", MIXED, product_repeats=1.0)
    assert cast_bytes([found, plain, forward]) == {
        "input_cast_bytes": 0.0,
        "weight_cast_bytes": 4.0,
        "output_cast_bytes": 5.0,
    }


def test_a_matrix_by_hand() -> None:
    """7 x 5 weights and 5 of a bias; of a token 7 + 5 numbers move, with those added to 17."""
    plain, adding = matrix("m", 7, 5, bias=5), matrix("m", 7, 5, adds=True)
    assert (plain.token_multiply_adds, plain.outputs, plain.kind) == (35, 5, "projection")
    assert (plain.parameters, plain.parameters_streamed, plain.wide_parameters) == (40, 40, 5)
    assert (plain.token_elements, plain.live_elements) == (12, 12 + 7)
    assert (adding.token_elements, adding.live_elements) == (17, 17)
    said = matrix("m", 7, 5, elements=11, live=13)
    assert (said.token_elements, said.live_elements) == (11, 13)
