"""What counts each of PyTorch's operations; which counts which stands in `data/pytorch.toml`."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from mlsim.workloads.pytorch.recorder import (
    BIASES,
    OPERATIONS,
    TABLE,
    WEIGHTS,
    Call,
    Handler,
    Recorder,
    is_same_memory,
    tensors_in,
)


def _norm(recorder: Recorder, call: Call) -> None:
    kind = "batch norm" if "batch" in call.name else "norm"
    function = call.name.partition("_norm")[0].removeprefix("native_") if kind == "norm" else ""
    held = [each for each in (call["running_mean"], call["running_var"]) if each is not None]
    buffers = sum(each.numel() for each in held) if kind == "batch norm" else 0
    uses = recorder.learned(call["weight"], bias=call["bias"])
    recorder.add(call, kind, function, inputs=[call["input"]], uses=uses, buffers=buffers)


def _softmax(recorder: Recorder, call: Call) -> None:
    recorder.add(call, "softmax", "log" if "log" in call.name else "")


def _pool(recorder: Recorder, call: Call) -> None:
    source, out = call["self"], call.first
    function = "max" if "max" in call.name else "mean"
    rank = int(next(each for each in call.name if each.isdigit()))
    if "adaptive" in call.name:
        sides = zip(source.shape[-rank:], out.shape[-rank:], strict=True)
        window = prod(-(-before // after) for before, after in sides)
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
    uses = recorder.learned(call["weight"])
    recorder.add(call, "activation", "prelu", inputs=[call["self"]], uses=uses)


def _glu(recorder: Recorder, call: Call) -> None:
    recorder.add(call, "activation", "sigmoid, gated")


def _dropout(recorder: Recorder, call: Call) -> None:
    """In inference nothing, nor if nothing is dropped."""
    if not call["train"] or not call["p"]:
        _same(recorder, call)
        return
    recorder.add(call, "dropout", inputs=call.tensors[:1])


def _same(recorder: Recorder, call: Call) -> None:
    """Pass on what is known of the input: its numbers, if under another shape."""
    sources = list(filter(recorder.is_data, call.tensors))
    for out in tensors_in(call.out):
        if out is not sources[0]:
            recorder.know_view(out, sources[0])


def _view(recorder: Recorder, call: Call) -> None:
    sources, outs = list(filter(recorder.is_data, call.tensors)), tensors_in(call.out)
    if outs and outs[0].dtype != sources[0].dtype:
        recorder.add(call, "elementwise", "cast")
        return
    _same(recorder, call)


def _pad(recorder: Recorder, call: Call) -> None:
    if call.first.shape == call.tensors[0].shape:
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
        whole = others[0].numel() >= call.first.numel() // recorder.batch
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
    others = [each for each in call.tensors if not recorder.is_data(each)]
    mask = _shown(call) if call.name in ("masked_fill", "where") else None
    uses = recorder.learned(*others)
    recorder.add(call, "elementwise", function or call.name, uses=uses, mask=mask)


def _shown(call: Call) -> torch.Tensor | None:
    """Return which scores stay, if a constant says so."""
    chosen = call["mask"] if call.name == "masked_fill" else call["condition"]
    if not isinstance(chosen, torch.Tensor) or chosen.is_meta or chosen.dtype is not torch.bool:
        return None
    return ~chosen if call.name == "masked_fill" else chosen


def _reduction(recorder: Recorder, call: Call) -> None:
    kind = "pooling" if call.name in ("mean", "sum", "amax", "amin", "max", "min") else "other"
    tensors = call.tensors
    if call.name in ("max", "min") and len(tensors) > 1:
        _pointwise(recorder, call)
        return
    window = tensors[0].numel() // max(call.first.numel(), 1)
    name = call.name.removeprefix("a") if kind == "pooling" else call.name
    recorder.add(call, kind, name, window=window)


def _concatenation(recorder: Recorder, call: Call) -> None:
    uses = recorder.learned(*call["tensors"])
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
    uses = recorder.learned(*call.tensors)
    chosen = call.name in ("gather", "index", "index_select", "topk")
    read = call.first.numel() if chosen and recorder.is_data(call.tensors[0]) else None
    recorder.add(call, "other", call.name, uses=uses, read=read)


def _copy(recorder: Recorder, call: Call) -> None:
    """Copies into parts of one memory, one after another, are a concatenation."""
    if is_same_memory(call["self"], call["src"]):
        return  # what a sum wrote in its place is put there once more
    before = recorder.value(call["self"]).record
    made = recorder.add(call, "other", "copy", inputs=[call["src"]])
    if before is None or before.function != "copy":
        return
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


def _linear(recorder: Recorder, call: Call) -> None:
    """Input (..., K) times weight (N, K)."""
    _product(recorder, call, call["input"], call["weight"], call["bias"])


def _addmm(recorder: Recorder, call: Call) -> None:
    left, right = (call[f"{'mat' if 'mat1' in call.named else 'batch'}{side}"] for side in "12")
    _product(recorder, call, left, right, call["self"])


def _matmul(recorder: Recorder, call: Call) -> None:
    names = ("mat2", "other", "vec", "vec2", "tensor")
    right = next(call[name] for name in names if call[name] is not None)
    _product(recorder, call, call["self"], right)


def _product(recorder: Recorder, call: Call, left: Any, right: Any, added: Any = None) -> None:
    out, inner = call.first, left.shape[-1]
    kind = "linear" if recorder.learned(left, right) else "product"
    recorder.add(
        call,
        kind,
        inputs=[left, right, added],
        uses=recorder.learned(left, right, bias=added),
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
    gone = () if result is None else set(sizes).difference(result)
    uses = recorder.learned(*tensors)
    recorder.add(
        call,
        "linear" if uses else "product",
        uses=uses,
        multiply_adds=prod(sizes.values()),
        window=prod(sizes[letter] for letter in gone),
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
        uses=recorder.learned(weight, bias=call["bias"]),
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
        uses=recorder.learned(weight, bias=call["bias"]),
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
        return sum(min(columns, row + 1) for row in range(rows)), True
    if mask is None or mask.is_meta or mask.dim() < 2:
        return rows * columns, False
    one = mask.reshape(-1, *mask.shape[-2:])[0].expand(rows, columns)
    shown = one if one.dtype is torch.bool else one > torch.finfo(one.dtype).min / 2
    seen = int(shown.sum())
    return seen, seen < rows * columns


def _recurrent(recorder: Recorder, call: Call) -> None:
    """A layer that goes through a sequence: its matrices are used once for each step."""
    if call["batch_first"] is None:
        raise recorder.refusal(
            call.operation,
            "sequences of different lengths are packed together",
            "Give it sequences of one length, without pack_padded_sequence.",
        )
    matrices = [each for each in call["params"] if each.dim() == 2]
    biases = [each for each in call["params"] if each.dim() == 1]
    _steps(recorder, call, matrices, biases, [call["input"]])


def _cell(recorder: Recorder, call: Call) -> None:
    """One step of a recurrent layer."""
    matrices, biases = [call["w_ih"], call["w_hh"]], [call["b_ih"], call["b_hh"]]
    _steps(recorder, call, matrices, biases, [call["input"], call["hx"]])


def _steps(
    recorder: Recorder, call: Call, matrices: list[Any], biases: list[Any], inputs: list[Any]
) -> None:
    steps = inputs[0].numel() // inputs[0].shape[-1]
    # Numbers that the gates of all layers have in a step: each has its rows in the matrices.
    gates = sum(int(each.shape[0]) for each in matrices) // 2
    uses = (*recorder.learned(*matrices), *recorder.uses(*biases, role=BIASES))
    recorder.add(
        call,
        "recurrent",
        call.name.partition("_")[0],
        inputs=inputs,
        uses=uses,
        multiply_adds=steps * sum(each.numel() for each in matrices),
        window=inputs[0].shape[-1],
        kept_bytes=4 * gates * steps,
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
        uses=recorder.uses(weight, role=TABLE),
        read=rows * weight.shape[1],
    )


def _distances(recorder: Recorder, call: Call) -> None:
    """Distances of all pairs of vectors: a difference that is squared and added is one MAC."""
    one, two = call["x1"], call["x2"]
    uses = recorder.learned(one, two)
    done = call.first.numel() * one.shape[-1]
    recorder.add(call, "distances", uses=uses, multiply_adds=done, window=one.shape[-1])


def _counted() -> tuple[dict[str, Handler], frozenset[str]]:
    """Return what counts each operation, and those that are products."""
    file, counters = OPERATIONS, {name.removeprefix("_"): each for name, each in globals().items()}
    file.only(file.data, ("shaped_like", "depends", "products", "others"))
    found: dict[str, Handler] = {}
    for part in ("others", "products"):
        file.only(file.data[part], counters, part)
        named = {
            each: counters[name] for name, all_ in file.data[part].items() for each in all_.split()
        }
        found |= named
    return found, frozenset(named)


HANDLERS, PRODUCTS = _counted()
