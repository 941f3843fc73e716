"""Shapes of matrix products: those that a caller gives, and those that a model is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.measured.surfaces import Shape
from mlsim.workloads.blocks import Attention
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model, Network
from mlsim.workloads.operators import Operator
from mlsim.workloads.steps import StepOperator

CONVOLUTION = "a convolution, timed as the matrix product of its size"
NO_PRODUCT = "no kernel of this kind was measured: the laboratory has products, attention, experts"
TOGETHER = "measured as one kernel with the first matrices of the experts"
NO_CONTEXT = "attention of a generated token needs to know what is cached: give cached_tokens"
UNLIKE = "attention of this kind was not measured: the laboratory has that of causal heads"
UNGATED = "experts without a gate were not measured"
# What runs in attention and experts is in 16 bits, or in the format of the weights.
ATTENTION_PATH = "bf16"

# Operators that are one matrix product for each token.
_PRODUCTS = ("projection", "router", "output")


@dataclass(frozen=True, slots=True)
class KernelShape:
    """A kernel of a model.

    Attributes
    ----------
    name, kind, repeats
        Of its operator.
    shape
        M, N and K if it is a matrix product; else None.
    multiply_adds
        Of one of them, without attention's, which depend on what is cached.
    unquantised
        Whether formats of few bits leave it in 16.
    sampled
        Of attention and experts, the kind of kernel on the shelf, and its sizes there.
    note
        Why it has no shape, or stands for something else.
    """

    name: str
    kind: str
    repeats: int
    shape: Shape | None
    multiply_adds: float
    unquantised: bool = False
    note: str = ""
    sampled: tuple[str, tuple[int, ...]] | None = None


def shapes_of(
    model: Model, batch_size: int, prompt_tokens: int | None, cached_tokens: int | None = None
) -> tuple[KernelShape, ...]:
    """Return the kernels of one pass of a model on one device.

    Raises
    ------
    InvalidValueError
        If a count is none; if prompt_tokens is given for a network, or missing for an encoder;
        if cached_tokens is given beside prompt_tokens, or for a network.

    >>> from mlsim import Models
    >>> shapes_of(Models.ResNet50, 32, None)[-1].shape
    (32, 1000, 2048)
    """
    _check("batch_size", batch_size)
    if prompt_tokens is not None:
        _check("prompt_tokens", prompt_tokens)
    _check_cached(model, prompt_tokens, cached_tokens)
    if isinstance(model, Transformer):
        if prompt_tokens is None and not model.decoder:
            raise InvalidValueError(
                f"{model.name} reads whole texts and generates none: give prompt_tokens=..."
            )
        tokens = 1 if prompt_tokens is None else prompt_tokens
        if tokens > model.context:
            raise InvalidValueError(
                f"{model.name} has a context of {model.context:,} tokens, not {tokens:,}."
            )
        asked = _Step(model, batch_size, prompt_tokens, cached_tokens)
        return tuple(_of_step(each, asked, tokens) for each in model.operators())
    if not isinstance(model, Network):
        raise InvalidValueError(f"{model.name} has no operators that can be timed one by one.")
    if prompt_tokens is not None:
        raise InvalidValueError(
            f"{model.name} has an input of a fixed size: prompt_tokens is for language models."
        )
    return tuple(_of_layers(model, batch_size))


def broadcast(*sides: Any) -> list[Shape]:
    """Return shapes of products from M, N and K, each a number or several.

    Raises
    ------
    InvalidValueError
        If a side is no whole number from 1 up, or sides don't go together.

    >>> broadcast([1, 2], 64, 128)
    [(1, 64, 128), (2, 64, 128)]
    """
    lists = [_side(name, side) for name, side in zip("MNK", sides, strict=True)]
    length = max(map(len, lists))
    if not all(len(each) in (1, length) for each in lists) or not all(lists):
        given = ", ".join(f"{len(each)} of {name}" for name, each in zip("MNK", lists, strict=True))
        raise InvalidValueError(
            f"M, N and K must be of one length, or one number for all; there are {given}."
        )
    m, n, k = (each * length if len(each) == 1 else each for each in lists)
    return list(zip(m, n, k, strict=True))


def _side(name: str, given: Any) -> list[int]:
    # Arrays and columns of pandas have tolist, also where they hold one number.
    values = given.tolist() if hasattr(given, "tolist") else given
    several = list(values) if isinstance(values, (list, tuple, range)) else [values]
    for each in several:
        whole = isinstance(each, (int, float)) and not isinstance(each, bool)
        if not (whole and each >= 1 and float(each).is_integer()):
            raise InvalidValueError(f"{name} must be whole numbers from 1 up, not {each!r}.")
    return [int(each) for each in several]


@dataclass(frozen=True, slots=True)
class _Step:
    """What is asked of a language model: a prompt, or a token after so many cached ones."""

    model: Transformer
    batch_size: int
    prompt_tokens: int | None
    cached_tokens: int | None


def _check_cached(model: Model, prompt_tokens: int | None, cached_tokens: int | None) -> None:
    if cached_tokens is None:
        return
    _check("cached_tokens", cached_tokens)
    if prompt_tokens is not None or not isinstance(model, Transformer) or not model.decoder:
        raise InvalidValueError(
            "cached_tokens is of a step of generation: leave it out with prompt_tokens, and of "
            "networks and encoders."
        )
    if cached_tokens >= model.context:
        raise InvalidValueError(
            f"{model.name} has a context of {model.context:,} tokens, so fewer than that are "
            f"cached, not {cached_tokens:,}."
        )


def _attention(operator: StepOperator, asked: _Step) -> tuple[str, tuple[int, ...]] | str:
    """Return the kernel of attention and its sizes, or why there is none."""
    model = asked.model
    mixers = [each for _, each in model.mixers]
    if len(mixers) != 1 or not isinstance(mixers[0], Attention) or not model.decoder:
        return UNLIKE
    if asked.prompt_tokens is None and asked.cached_tokens is None:
        return NO_CONTEXT
    mixer, seen = mixers[0], operator.attention_window
    window = seen if seen < model.context else 0
    sizes = (asked.batch_size, mixer.heads, mixer.kv_heads, mixer.head_size, window)
    if asked.prompt_tokens is not None:
        return "prefill", (asked.prompt_tokens, *sizes)
    return "decode", (asked.cached_tokens or 0, *sizes)


def _experts(operator: StepOperator, asked: _Step, tokens: int) -> Any:
    """Return the kernel of a layer's experts and its sizes, or why there is none."""
    of = asked.model.experts
    if of is None or not of.gated or of.latent:
        return UNGATED
    if not operator.name.endswith(", up"):
        return TOGETHER
    alone = (1, 1, 0)  # one device, chosen by chance
    hidden = asked.model.hidden
    return "experts", (asked.batch_size * tokens, hidden, of.size, of.per_token, of.count, *alone)


def _of_step(operator: StepOperator, asked: _Step, tokens: int) -> KernelShape:
    rows = asked.batch_size * min(tokens, operator.token_limit)
    shape, work = None, float(rows * operator.token_multiply_adds)
    if operator.kind in _PRODUCTS and operator.outputs:
        shape = (rows, operator.outputs, operator.token_multiply_adds // operator.outputs)
    found: Any = NO_PRODUCT
    if shape:
        found = None
    elif operator.kind == "attention":
        found = _attention(operator, asked)
    elif operator.kind == "experts":
        found = _experts(operator, asked, tokens)
    return KernelShape(
        operator.name,
        operator.kind,
        operator.repeats,
        shape,
        work,
        operator.unquantised,
        found if isinstance(found, str) else "",
        None if isinstance(found, str) else found,
    )


def _of_layers(model: Network, batch_size: int) -> Iterator[KernelShape]:
    for each in model.operators:
        shape = _product(each, batch_size)
        note = CONVOLUTION if shape and each.kind == "convolution" else ""
        yield KernelShape(
            each.name,
            each.kind,
            each.repeats,
            shape,
            float(batch_size * each.multiply_adds),
            note=note if shape else NO_PRODUCT,
        )


def _product(operator: Operator, batch_size: int) -> Shape | None:
    """Return the product that an operator is, if it is one: a row for each pixel or token."""
    if not operator.outputs or not operator.multiply_adds:
        return None
    each_row, rest = divmod(operator.activations_written, operator.outputs)
    depth, left = divmod(operator.multiply_adds, max(each_row, 1) * operator.outputs)
    # Grouped and joined layers are several products.
    return (
        None if rest or left or not each_row else (batch_size * each_row, operator.outputs, depth)
    )


def _check(name: str, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidValueError(f"{name} must be a whole number from 1 up, not {count!r}.")
