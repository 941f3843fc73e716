"""Shapes of matrix products: those that a caller gives, and those that a model is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlsim.errors import InvalidValueError
from mlsim.measured.surfaces import Shape
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model, Network
from mlsim.workloads.operators import Operator
from mlsim.workloads.steps import StepOperator

CONVOLUTION = "a convolution, timed as the matrix product of its size"
NO_PRODUCT = "no single matrix product, and the laboratory times those only"
EXPERTS = "experts are many small products at once, and the laboratory times single ones"

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


def shapes_of(model: Model, batch_size: int, prompt_tokens: int | None) -> tuple[KernelShape, ...]:
    """Return the kernels of one pass of a model on one device.

    Raises
    ------
    InvalidValueError
        If a count is none; if prompt_tokens is given for a network, or missing for an encoder.

    >>> from mlsim import Models
    >>> shapes_of(Models.ResNet50, 32, None)[-1].shape
    (32, 1000, 2048)
    """
    _check("batch_size", batch_size)
    if prompt_tokens is not None:
        _check("prompt_tokens", prompt_tokens)
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
        return tuple(_of_step(each, batch_size, tokens) for each in model.operators())
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


def _of_step(operator: StepOperator, batch_size: int, tokens: int) -> KernelShape:
    rows = batch_size * min(tokens, operator.token_limit)
    shape, work = None, float(rows * operator.token_multiply_adds)
    if operator.kind in _PRODUCTS and operator.outputs:
        shape = (rows, operator.outputs, operator.token_multiply_adds // operator.outputs)
    return KernelShape(
        operator.name,
        operator.kind,
        operator.repeats,
        shape,
        work,
        operator.unquantised,
        "" if shape else EXPERTS if operator.kind == "experts" else NO_PRODUCT,
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
