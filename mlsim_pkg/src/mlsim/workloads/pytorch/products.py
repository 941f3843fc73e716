"""What counts matrix products, convolutions and recurrent layers."""

from __future__ import annotations

from math import prod

import torch

from mlsim.workloads.pytorch.calls import Call
from mlsim.workloads.pytorch.recorder import Handler, Recorder
from mlsim.workloads.pytorch.records import BIASES, TABLE, WEIGHTS


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


def _handlers() -> dict[str, Handler]:
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


HANDLERS: dict[str, Handler] = _handlers()
# What is a layer of its own even if it reads nothing of the input.
PRODUCTS = frozenset(HANDLERS) - {"embedding", "embedding_bag", "_embedding_bag"}
