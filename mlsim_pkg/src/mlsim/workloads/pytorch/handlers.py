"""What counts all that is no product: norms, pooling, activations, and what moves numbers."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from mlsim.workloads.pytorch.recorder import (
    BIASES,
    TABLE,
    WEIGHTS,
    Call,
    Handler,
    Recorder,
    is_same_memory,
    tensors_in,
)

ACTIVATIONS = (
    *("relu", "relu6", "gelu", "silu", "sigmoid", "tanh", "hardswish", "hardsigmoid", "hardtanh"),
    *("leaky_relu", "elu", "selu", "celu", "mish", "softplus", "log_sigmoid", "softshrink"),
    *("hardshrink", "tanhshrink", "softsign", "threshold", "rrelu", "logit"),
)
_REDUCTIONS = {
    **dict.fromkeys(("mean", "sum", "prod", "logsumexp", "nansum"), ""),
    **dict.fromkeys(("amax", "amin", "max", "min", "aminmax"), ""),
    **dict.fromkeys(("var", "std", "var_mean", "std_mean", "norm", "linalg_vector_norm"), ""),
    **dict.fromkeys(("any", "all", "argmax", "argmin", "count_nonzero"), ""),
}
# What moves or chooses numbers: as many bytes as it reads and writes, and no product.
_MOVES = (
    *("gather", "index", "index_select", "take_along_dim", "scatter", "scatter_add"),
    *("scatter_reduce", "index_add", "index_put", "index_copy", "index_fill", "_index_put_impl"),
    *("topk", "sort", "argsort", "roll", "flip", "repeat", "tile", "repeat_interleave"),
    *("cumsum", "cumprod", "tril", "triu", "pad", "constant_pad_nd", "one_hot", "searchsorted"),
    *("reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d"),
    *("im2col", "col2im", "masked_scatter", "slice_scatter", "select_scatter", "bucketize"),
    *("diag_embed", "fill", "zero", "cummax", "kthvalue", "median", "channel_shuffle"),
)
_RESAMPLING = (
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d"),
    *("upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d", "grid_sampler"),
    *("grid_sampler_2d", "grid_sampler_3d", "_upsample_nearest_exact2d"),
    *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_nearest_exact1d"),
)
# The same numbers under another shape, though PyTorch may copy them.
_SAME = ("clone", "_unsafe_view", "pixel_shuffle", "pixel_unshuffle", "_reshape_copy", "lift_fresh")
_DROPOUT = (
    "dropout",
    "alpha_dropout",
    "feature_dropout",
    "feature_alpha_dropout",
    "native_dropout",
)


def _batch_norm(recorder: Recorder, call: Call) -> None:
    held = [call["running_mean"], call["running_var"]]
    buffers = sum(each.numel() for each in held if each is not None)
    _normed(recorder, call, "batch norm", "", buffers)


def _norm(recorder: Recorder, call: Call) -> None:
    _normed(recorder, call, "norm", call.name.partition("_norm")[0].removeprefix("native_"), 0)


def _normed(recorder: Recorder, call: Call, kind: str, function: str, buffers: int) -> None:
    source = call["input"]
    uses = (
        *recorder.uses(call["weight"], role=WEIGHTS),
        *recorder.uses(call["bias"], role=BIASES),
    )
    recorder.add(call, kind, function, inputs=[source], uses=uses, buffers=buffers)


def _softmax(recorder: Recorder, call: Call) -> None:
    recorder.add(call, "softmax", "log" if "log" in call.name else "")


def _pool(recorder: Recorder, call: Call) -> None:
    source, out = call["self"], call.first
    function = "max" if "max" in call.name else "mean"
    rank = int(next(each for each in call.name if each.isdigit()))
    if "adaptive" in call.name:
        ratios = [
            -(-before // after)
            for before, after in zip(source.shape[-rank:], out.shape[-rank:], strict=True)
        ]
        window = prod(ratios)
        if window == 1:  # each mean is of one number
            _same(recorder, call)
            return
    else:
        kernel = call["kernel_size"]
        kernel = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
        window = prod(kernel * rank if len(kernel) == 1 else kernel)
    recorder.add(call, "pooling", function, inputs=[source], window=window)


def _activation(recorder: Recorder, call: Call) -> None:
    name = call.name
    if name in ("hardtanh", "clamp") and (call["min_val"], call["max_val"]) == (0, 6):
        name = "relu6"
    recorder.add(call, "activation", name)


def _prelu(recorder: Recorder, call: Call) -> None:
    uses = recorder.uses(call["weight"], role=WEIGHTS)
    recorder.add(call, "activation", "prelu", inputs=[call["self"]], uses=uses)


def _glu(recorder: Recorder, call: Call) -> None:
    recorder.add(call, "activation", "sigmoid, gated")


def _dropout(recorder: Recorder, call: Call) -> None:
    """In inference nothing, nor if nothing is dropped."""
    source = tensors_in(list(call.named.values()))[0]
    rate, training = call["p"], call["train"]
    if not training or not rate:
        _same(recorder, call)
        return
    recorder.add(call, "dropout", inputs=[source])


def _same(recorder: Recorder, call: Call) -> None:
    """Pass on what is known of the input: its numbers, if under another shape."""
    sources = [each for each in tensors_in(list(call.named.values())) if recorder.is_data(each)]
    for out in tensors_in(call.out):
        if out is not sources[0]:
            recorder.know_view(out, sources[0])


def _view(recorder: Recorder, call: Call) -> None:
    sources = [each for each in tensors_in(list(call.named.values())) if recorder.is_data(each)]
    outs = tensors_in(call.out)
    if outs and outs[0].dtype != sources[0].dtype:
        recorder.add(call, "elementwise", "cast")
        return
    _same(recorder, call)


def _cast(recorder: Recorder, call: Call) -> None:
    _view(recorder, call)


def _pad(recorder: Recorder, call: Call) -> None:
    sources = tensors_in(list(call.named.values()))
    if call.first.shape == sources[0].shape:
        _same(recorder, call)
        return
    recorder.add(call, "other", "pad")


def _add(recorder: Recorder, call: Call) -> None:
    tensors = _two(call)
    data = [each for each in tensors if recorder.is_data(each)]
    if len(data) > 1:
        recorder.add(call, "add")
        return
    others = [each for each in tensors if not any(each is one for one in data)]
    mask = others[0] if others and not others[0].is_meta and others[0].dim() > 1 else None
    uses = recorder.uses(*others, role=BIASES)
    if uses:
        mask = recorder.value(others[0]).mask if mask is None else mask
        whole = others[0].numel() >= recorder.elements_once(call.first)
        role = WEIGHTS if whole else BIASES
        kind, function = ("positions", "") if whole else ("elementwise", "bias")
        uses = recorder.uses(*others, role=role)
        recorder.add(call, kind, function, inputs=data, uses=uses, mask=mask)
        return
    held = sum(each.numel() for each in others if id(each) in recorder.buffers)
    recorder.add(call, "elementwise", "add", inputs=data, mask=mask, buffers=held)


def _two(call: Call) -> list[torch.Tensor]:
    found = [call["self"], call["other"]]
    return [each for each in found if isinstance(each, torch.Tensor)]


def _multiply(recorder: Recorder, call: Call) -> None:
    tensors = _two(call)
    data = [each for each in tensors if recorder.is_data(each)]
    if len(data) > 1 and call.name == "mul":
        recorder.add(call, "multiply")
        return
    _pointwise(recorder, call, "scale" if len(data) == 1 else "div")


def _pointwise(recorder: Recorder, call: Call, function: str = "") -> None:
    tensors = tensors_in(list(call.named.values()))
    others = [each for each in tensors if not recorder.is_data(each)]
    mask = None
    if call.name in ("masked_fill", "where"):
        mask = _shown(call)
    uses = recorder.uses(*others, role=WEIGHTS)
    recorder.add(call, "elementwise", function or call.name, uses=uses, mask=mask)


def _shown(call: Call) -> torch.Tensor | None:
    """Return which scores stay, if a constant says so."""
    chosen = call["mask"] if call.name == "masked_fill" else call["condition"]
    if not isinstance(chosen, torch.Tensor) or chosen.is_meta or chosen.dtype is not torch.bool:
        return None
    return ~chosen if call.name == "masked_fill" else chosen


def _reduction(recorder: Recorder, call: Call) -> None:
    kind = "pooling" if call.name in ("mean", "sum", "amax", "amin", "max", "min") else "other"
    tensors = tensors_in(list(call.named.values()))
    if call.name in ("max", "min") and len(tensors) > 1:
        _pointwise(recorder, call)
        return
    window = tensors[0].numel() // max(call.first.numel(), 1)
    name = call.name.removeprefix("a") if kind == "pooling" else call.name
    recorder.add(call, kind, name, window=window)


def _concatenation(recorder: Recorder, call: Call) -> None:
    uses = recorder.uses(*call["tensors"], role=WEIGHTS)
    function = "learned token" if uses else ""
    tensors = [each for each in call["tensors"] if each.numel()]
    if len(tensors) == 1:
        _same(recorder, call)
        return
    recorder.add(call, "concatenation", function, inputs=tensors, uses=uses)


def _move(recorder: Recorder, call: Call) -> None:
    if call.name == "copy":
        _copy(recorder, call)
        return
    tensors = tensors_in(list(call.named.values()))
    uses = recorder.uses(*tensors, role=WEIGHTS)
    chosen = call.name in ("gather", "index", "index_select", "topk")
    read = call.first.numel() if chosen and recorder.is_data(tensors[0]) else None
    told: dict[str, Any] = {"read": read} if read is not None else {}
    recorder.add(call, "other", call.name, uses=uses, **told)


def _copy(recorder: Recorder, call: Call) -> None:
    """Copies into parts of one memory, one after another, are a concatenation."""
    if is_same_memory(call["self"], call["src"]):
        return  # what a sum wrote in its place is put there once more
    before = recorder.value(call["self"]).record
    if before is None or before.function != "copy":
        recorder.add(call, "other", "copy", inputs=[call["src"]])
        return
    made = recorder.add(call, "other", "copy", inputs=[call["src"]])
    added = made.elements // prod(before.shape[:-1])
    before.inputs = list(dict.fromkeys((*before.inputs, *made.inputs)))
    before.kind, before.in_place = "concatenation", False
    before.shape = (*before.shape[:-1], before.shape[-1] + added)
    # It stands where all of its inputs are there.
    recorder.records.remove(before)
    recorder.records[-1] = before
    recorder.know(call.first, before)


def _resample(recorder: Recorder, call: Call) -> None:
    recorder.add(call, "resampling", call.name.removeprefix("upsample_").removeprefix("_"))


def _handlers() -> dict[str, Handler]:
    found: dict[str, Handler] = {
        "view": _view,
        "pointwise": _pointwise,
        "prelu": _prelu,
        "_prelu_kernel": _prelu,
        "glu": _glu,
        "cat": _concatenation,
        "concat": _concatenation,
        "stack": _concatenation,
        "hstack": _concatenation,
        "copy": _move,
    }
    found |= dict.fromkeys(("batch_norm", "native_batch_norm", "cudnn_batch_norm"), _batch_norm)
    found |= dict.fromkeys(
        ("layer_norm", "native_layer_norm", "group_norm", "native_group_norm"), _norm
    )
    found |= dict.fromkeys(("instance_norm", "rms_norm", "_fused_rms_norm"), _norm)
    found |= dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), _softmax)
    found |= dict.fromkeys(ACTIVATIONS, _activation)
    found |= dict.fromkeys(_DROPOUT, _dropout)
    found |= dict.fromkeys(_SAME, _same)
    found |= dict.fromkeys(("to", "_to_copy", "type_as", "contiguous"), _cast)
    found |= dict.fromkeys(("add", "sub", "rsub"), _add)
    found |= dict.fromkeys(("mul", "div"), _multiply)
    found |= dict.fromkeys(_REDUCTIONS, _reduction)
    found |= dict.fromkeys(_MOVES, _move)
    found |= dict.fromkeys(("pad", "constant_pad_nd"), _pad)
    found |= dict.fromkeys(_RESAMPLING, _resample)
    for rank in (1, 2, 3):
        for name in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool"):
            found[f"{name}{rank}d"] = _pool
        found[f"max_pool{rank}d_with_indices"] = _pool
        found[f"_adaptive_avg_pool{rank}d"] = _pool
    return found


def _linear(recorder: Recorder, call: Call) -> None:
    """Input (..., K) times weight (N, K)."""
    weight = call["weight"]
    _product(recorder, call, call["input"], weight, call["bias"], inner=weight.shape[-1])


def _addmm(recorder: Recorder, call: Call) -> None:
    left, right = (call["mat1"], call["mat2"]) if "mat1" in call.named else _pair(call, "batch")
    _product(recorder, call, left, right, call["self"], inner=left.shape[-1])


def _pair(call: Call, prefix: str) -> tuple[torch.Tensor, torch.Tensor]:
    return call[f"{prefix}1"], call[f"{prefix}2"]


def _matmul(recorder: Recorder, call: Call) -> None:
    left = call["self"]
    right = next(
        call[name] for name in ("mat2", "other", "vec", "vec2", "tensor") if call[name] is not None
    )
    _product(recorder, call, left, right, None, inner=left.shape[-1])


def _product(
    recorder: Recorder,
    call: Call,
    left: torch.Tensor,
    right: torch.Tensor,
    added: torch.Tensor | None,
    *,
    inner: int,
) -> None:
    out = call.first
    uses = recorder.uses(left, right, role=WEIGHTS)
    recorder.add(
        call,
        "linear" if uses else "product",
        inputs=[left, right, added],
        uses=(*uses, *recorder.uses(added, role=BIASES)),
        multiply_adds=out.numel() * inner,
        window=inner,
        outputs=out.shape[-1] if out.dim() else 1,
    )


def _einsum(recorder: Recorder, call: Call) -> None:
    """Two tensors, each letter of which is a loop; more are taken in pairs."""
    tensors, equation = call["tensors"], call["equation"].replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    if len(tensors) != 2 or "." in equation:
        raise recorder.refusal(
            f"einsum {equation!r}",
            "only two tensors, each with its letters, are",
            "Write it as products of two tensors with all letters spelled out.",
        )
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        for letter, size in zip(term, tensor.shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    result = equation.partition("->")[2] if "->" in equation else None
    summed = prod(
        size for letter, size in sizes.items() if result is not None and letter not in result
    )
    uses = recorder.uses(*tensors, role=WEIGHTS)
    recorder.add(
        call,
        "linear" if uses else "product",
        uses=uses,
        multiply_adds=prod(sizes.values()),
        window=summed,
        outputs=call.first.shape[-1] if call.first.dim() else 1,
    )


def _bilinear(recorder: Recorder, call: Call) -> None:
    one, two, weight = call["input1"], call["input2"], call["weight"]
    outputs, first, second = weight.shape
    rows = one.numel() // first
    recorder.add(
        call,
        "linear",
        inputs=[one, two],
        uses=(*recorder.uses(weight), *recorder.uses(call["bias"], role=BIASES)),
        # First with one input, then with the other.
        multiply_adds=rows * outputs * (first * second + second),
        window=first * second,
        outputs=outputs,
    )


def _convolution(recorder: Recorder, call: Call) -> None:
    source, weight, out = call["input"], call["weight"], call.first
    turned = "transpose" in call.name or bool(call["transposed"])
    groups = call["groups"] or 1
    kernel = prod(weight.shape[2:])
    if turned:  # each input goes into a window of outputs
        width, window = weight.shape[1] * groups, kernel * weight.shape[0] // groups
        done = source.numel() * weight.shape[1] * kernel
    else:
        width, window = weight.shape[0], kernel * weight.shape[1]
        done = out.numel() * window
    recorder.add(
        call,
        "convolution",
        "transposed" if turned else "",
        inputs=[source, weight],
        uses=(*recorder.uses(weight), *recorder.uses(call["bias"], role=BIASES)),
        multiply_adds=done,
        window=window,
        # Groups are products of their own, too narrow to be run as such.
        outputs=width if groups == 1 else 0,
    )


def _attention(recorder: Recorder, call: Call) -> None:
    """Scaled dot product: query (..., L, E), key (..., S, E), value (..., S, V)."""
    query, key, value, mask = (call[name] for name in ("query", "key", "value", "attn_mask"))
    rows, columns = query.shape[-2], key.shape[-2]
    heads = prod(query.shape[:-2])
    each = query.shape[-1] + value.shape[-1]
    known = recorder.value(mask) if mask is not None else None
    constant = None
    if known is not None and not known.is_data:
        constant = known.mask if known.uses else mask
    seen, causal = visible(rows, columns, constant, causal=bool(call["is_causal"]))
    recorder.add(
        call,
        "attention",
        "causal" if causal else "",
        inputs=[query, key, value, mask],
        uses=recorder.uses(mask),
        multiply_adds=heads * seen * each,
        masked_multiply_adds=heads * (rows * columns - seen) * each,
        # A number for each query and head, in 32 bits: what its scores add up to.
        kept_bytes=4 * heads * rows,
    )


def visible(
    rows: int, columns: int, mask: torch.Tensor | None, *, causal: bool
) -> tuple[int, bool]:
    """Return the pairs that attention looks at, and whether it skips some."""
    if causal:
        seen = sum(min(columns, row + 1) for row in range(rows))
        return seen, True
    if mask is None or mask.is_meta or mask.dim() < 2:
        return rows * columns, False
    one = mask.reshape(-1, *mask.shape[-2:])[0].expand(rows, columns)
    shown = one if one.dtype is torch.bool else one > torch.finfo(one.dtype).min / 2
    seen = int(shown.sum())
    return seen, seen < rows * columns


# Gates of a recurrent cell, each of which has its rows in the matrices.
_SEQUENCES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def _recurrent(recorder: Recorder, call: Call) -> None:
    """A layer that goes through a sequence: its matrices are used once for each step."""
    source = call["input"]
    weights = list(call["params"])
    if call["batch_first"] is None:
        raise recorder.refusal(
            call.operation,
            "sequences of different lengths are packed together",
            "Give it sequences of one length, without pack_padded_sequence.",
        )
    steps = source.numel() // source.shape[-1]
    matrices = [each for each in weights if each.dim() == 2]
    biases = [each for each in weights if each.dim() == 1]
    out = call.first
    recorder.add(
        call,
        "recurrent",
        call.name.partition("_")[0],
        inputs=[source],
        uses=(
            *recorder.uses(*matrices, role=WEIGHTS),
            *recorder.uses(*biases, role=BIASES),
        ),
        multiply_adds=steps * sum(each.numel() for each in matrices),
        window=source.shape[-1],
        kept_bytes=4 * _gates(matrices) * steps,
        outputs=out.shape[-1],
    )


def _gates(matrices: list[torch.Tensor]) -> int:
    """Return how many numbers the gates of all layers have in a step."""
    return sum(int(each.shape[0]) for each in matrices) // 2


def _cell(recorder: Recorder, call: Call) -> None:
    """One step of a recurrent layer."""
    source = call["input"]
    matrices = [call["w_ih"], call["w_hh"]]
    rows = source.numel() // source.shape[-1]
    recorder.add(
        call,
        "recurrent",
        call.name.partition("_")[0],
        inputs=[source, call["hx"]],
        uses=(
            *recorder.uses(*matrices, role=WEIGHTS),
            *recorder.uses(call["b_ih"], call["b_hh"], role=BIASES),
        ),
        multiply_adds=rows * sum(each.numel() for each in matrices),
        window=source.shape[-1],
        kept_bytes=4 * _gates(matrices) * rows,
        outputs=call.first.shape[-1],
    )


def _embedding(recorder: Recorder, call: Call) -> None:
    """Rows of a table, chosen by the input."""
    weight, out = call["weight"], call.first
    summed = call.name == "embedding_bag"
    rows = call["indices"].numel() if summed else out.numel() // weight.shape[1]
    recorder.add(
        call,
        "embedding",
        "sum" if summed else "",
        inputs=[call["indices"]],
        out=out,
        uses=recorder.uses(weight, role=TABLE),
        read=rows * weight.shape[1],
    )


def _distances(recorder: Recorder, call: Call) -> None:
    """Distances of all pairs of vectors: a difference that is squared and added is one MAC."""
    one, two = call["x1"], call["x2"]
    uses = recorder.uses(one, two, role=WEIGHTS)
    done = call.first.numel() * one.shape[-1]
    recorder.add(call, "distances", uses=uses, multiply_adds=done, window=one.shape[-1])


def _product_handlers() -> dict[str, Handler]:
    found: dict[str, Handler] = {
        "linear": _linear,
        "einsum": _einsum,
        "bilinear": _bilinear,
        "scaled_dot_product_attention": _attention,
        "embedding": _embedding,
        "embedding_bag": _embedding,
        "_embedding_bag": _embedding,
        "cdist": _distances,
        "_cdist_forward": _distances,
    }
    found |= dict.fromkeys(("addmm", "baddbmm"), _addmm)
    found |= dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot", "vdot", "inner"), _matmul)
    for kind in ("conv", "conv_transpose"):
        found |= {f"{kind}{rank}d": _convolution for rank in (1, 2, 3)}
    found |= dict.fromkeys(("convolution", "_convolution"), _convolution)
    # Transposed ones call what they read by another name in some versions.
    found |= dict.fromkeys(_SEQUENCES, _recurrent)
    found |= {f"{name}_cell": _cell for name in _SEQUENCES}
    return found


# What is a layer of its own even if it reads nothing of the input.
PRODUCTS = frozenset(_product_handlers()) - {"embedding", "embedding_bag", "_embedding_bag"}


HANDLERS: dict[str, Handler] = {**_handlers(), **_product_handlers()}
