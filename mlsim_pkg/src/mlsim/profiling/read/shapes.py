"""Work of PyTorch operators from the shapes that a trace recorded."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from mlsim.equations import roofline

# Operators that start no other counted one. Each is counted once, at the outermost.
COUNTED = frozenset(
    {
        *("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"),
        *("aten::conv2d", "aten::conv1d", "aten::conv3d", "aten::convolution"),
        "aten::convolution_backward",
        "aten::mkldnn_linear",
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
    }
)
# Work that is not counted here: with one of these a total would be too small.
UNCOUNTED = (
    *("aten::_scaled_mm", "aten::_grouped_mm", "aten::_int_mm", "aten::addbmm", "aten::addmv"),
    *("_attention_backward", "aten::lstm", "aten::gru", "aten::_cudnn_rnn", "mkldnn_rnn"),
    *("flash_attn", "xformers", "vllm", "aten::einsum_path", "te::", "aten::_efficient_attention"),
    *("aten::_weight_int", "aten::_sparse", "aten::_cslt", "aten::_mixed_dtypes", "aten::sspaddmm"),
    *("aten::dot", "aten::vdot", "aten::bilinear", "aten::_trilinear", "aten::_cdist"),
    *("aten::_native_multi_head", "aten::_transformer_encoder", "aten::_scaled_grouped_mm"),
)
# Libraries whose operators are PyTorch's own: what is not named above is no product.
_OWN = frozenset({"aten", "prim", "prims", "c10", "c10d", "autograd", "torch", "profiler", "nccl"})
_OWN |= {
    "gloo",
    "mpi",
    "inductor",
    "_c10d_functional",
    "symm_mem",
    "c10d_functional",
    "static_runtime",
}
# Kernels that a compiler wrote are called by what they hold.
_PRODUCT = re.compile(
    r"(?<![a-z])(mm|bmm|addmm|gemm|matmul|linear|conv\d?d?|attention|sdpa)(?![a-z])"
)


def may_work(name: str) -> bool:
    """Whether an operator may do work that is not counted here.

    Somebody's own operator may do anything; so may what a compiler fused around a product.

    >>> [may_work(each) for each in ("aten::relu", "aten::_int_mm", "fbgemm::f8f8bf16_rowwise",
    ...     "triton_tem_fused_mm_0", "triton_poi_fused_add_0", "Optimizer.step#SGD.step")]
    [False, True, True, True, False, False]
    """
    library, mark, _ = name.partition("::")
    if any(each in name for each in UNCOUNTED):
        return True
    if mark and library not in _OWN:
        return True
    return not mark and name.startswith(("triton_", "cpp_")) and bool(_PRODUCT.search(name))


def flops_of(name: str, dims: Any, values: Any) -> float | None:
    """Return the floating-point operations of an operator; None if they can't be known.

    `dims` and `values` are "Input Dims" and "Concrete Inputs" of a trace.

    >>> flops_of("aten::mm", [[8, 16], [16, 4]], [])
    1024.0
    >>> flops_of("aten::conv2d", [[8, 3, 224, 224], [64, 3, 11, 11], [64], [], [], [], []],
    ...     ["", "", "", "[4, 4]", "[2, 2]", "[1, 1]", "1"])
    1124428800.0
    """
    if name not in COUNTED or not isinstance(dims, list):
        return None
    try:
        macs = _macs(name, dims, values if isinstance(values, list) else [])
    except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    if macs is None or macs < 0 or not math.isfinite(macs):
        return None
    return float(roofline.flops(2, macs, 1))


def _macs(name: str, dims: list[Any], values: list[Any]) -> float | None:
    short = name.removeprefix("aten::")
    if short == "mm":
        return _product(dims[0], dims[1])
    if short == "addmm":
        return _product(dims[1], dims[2])
    if short == "mkldnn_linear":
        return float(math.prod(dims[0]) * dims[1][0])
    if short in ("bmm", "baddbmm"):
        one, two = (dims[0], dims[1]) if short == "bmm" else (dims[1], dims[2])
        return float(one[0] * _product(one[1:], two[1:]))
    if short.startswith("_scaled"):
        return _attention(dims, values)
    if short == "convolution_backward":
        return _backward(dims, values)
    return _convolution(short, dims, values)


def _product(one: Sequence[int], two: Sequence[int]) -> float:
    if len(one) != 2 or len(two) != 2 or one[1] != two[0]:
        raise ValueError("these are no two matrices")
    return float(one[0] * one[1] * two[1])


def _numbers(text: Any, sides: int) -> list[int]:
    found = json.loads(text) if isinstance(text, str) else text
    found = found if isinstance(found, list) else [found]
    return [int(each) for each in (found * sides if len(found) == 1 else found)]


def _convolution(short: str, dims: list[Any], values: list[Any]) -> float | None:
    image, weight = dims[0], dims[1]
    sides = len(weight) - 2
    stride, padding, dilation = (_numbers(values[place], sides) for place in (3, 4, 5))
    if short == "convolution" and str(values[6]).lower() == "true":
        # Transposed: every input meets the whole kernel.
        return float(math.prod(image) * math.prod(weight[1:]))
    result = [
        (size + 2 * pad - hole * (kernel - 1) - 1) // step + 1
        for size, pad, hole, kernel, step in zip(
            image[2:], padding, dilation, weight[2:], stride, strict=True
        )
    ]
    # The weight has the channels of one group, so groups need no care.
    return float(image[0] * weight[0] * math.prod(result) * math.prod(weight[1:]))


def _backward(dims: list[Any], values: list[Any]) -> float | None:
    """Count as many products as gradients were asked for: of the input, of the weight."""
    gradient, weight = dims[0], dims[2]
    mask = [str(each).strip().lower() == "true" for each in str(values[10]).strip("[]").split(",")]
    if str(values[7]).lower() == "true" or len(mask) != 3:
        return None
    return float(math.prod(gradient) * math.prod(weight[1:]) * (mask[0] + mask[1]))


def _attention(dims: list[Any], values: list[Any]) -> float | None:
    query, key, value = dims[:3]
    batch, heads, rows, wide = query
    whole = float(batch) * heads * rows * key[2] * (wide + value[3])
    # Where is_causal stands differs; only a plain False is sure to mean all pairs.
    causal = any(str(each).lower() == "true" for each in values[3:])
    return float(whole / 2 if causal and rows == key[2] else whole)
