"""A laboratory without a GPU: products and networks "run" on the kernels of the shelf.

Nothing is predicted here. A time is one that somebody measured, or lies between such, and
says which. What the shelf lacks is refused, or listed as not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log, nan
from random import Random
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, NotMeasuredError, Suggesting, need
from mlsim.hardware import Device
from mlsim.hardware.kernel_constants import SOURCE, measured_devices
from mlsim.measured.surfaces import (
    Reading,
    Shape,
    Surface,
    find_surface,
    in_order,
    sample,
    surfaces,
)
from mlsim.records.references import label
from mlsim.workloads.blocks import Attention
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model, Network, Operator
from mlsim.workloads.steps import StepOperator
from mlsim.zoo import resolve

if TYPE_CHECKING:
    import pandas


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
    note, sampled = (found, None) if isinstance(found, str) else ("", found)
    of = (operator.name, operator.kind, operator.repeats)
    return KernelShape(*of, shape, work, operator.unquantised, note, sampled)


def _of_layers(model: Network, batch_size: int) -> Iterator[KernelShape]:
    for each in model.operators:
        shape = _product(each, batch_size)
        note = CONVOLUTION if shape and each.kind == "convolution" else ""
        work = float(batch_size * each.multiply_adds)
        of = (each.name, each.kind, each.repeats)
        yield KernelShape(*of, shape, work, note=note if shape else NO_PRODUCT)


def _product(operator: Operator, batch_size: int) -> Shape | None:
    """Return the product that an operator is, if it is one: a row for each pixel or token."""
    if not operator.outputs or not operator.multiply_adds:
        return None
    each_row, rest = divmod(operator.activations_written, operator.outputs)
    depth, left = divmod(operator.multiply_adds, max(each_row, 1) * operator.outputs)
    # Grouped and joined layers are several products.
    single = each_row and not rest and not left
    return (batch_size * each_row, operator.outputs, depth) if single else None


def _check(name: str, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidValueError(f"{name} must be a whole number from 1 up, not {count!r}.")


# Where no precision is named: 16 bits, which every device of the shelf has.
_PRECISION = "bf16"
# The most runs of a shape: a table, not a simulation.
_MOST_RUNS = 1000
_MISSING = "not measured"


class Laboratory(Suggesting):
    """A laboratory without a GPU: times of real kernels, for courses that have no hardware.

    Ask `lab.devices()` what there is, time products by `lab.gemm` and the products of a
    model by `lab.run`. Each row says whether its time was measured or interpolated.
    """

    @staticmethod
    def devices() -> pandas.DataFrame:
        """Return what there is to measure on: a row for each device, precision and backend.

        Returns
        -------
        pandas.DataFrame
            Columns `hardware`, `precision`, `backend`, `version`, `rows`, least and
            most of M, N and K, and `low` and `high`: measured over interpolated times, for
            eight in ten of the rows when they were left out.

        >>> from mlsim import lab
        >>> sorted(lab.devices().query("precision == 'fp4'").backend.unique())
        ['sglang', 'trtllm', 'vllm']
        """
        rows = []
        for key in measured_devices("product"):
            for (path, engine), surface in in_order(surfaces(key)):
                ends = {
                    f"{side} {end}": size
                    for side, both in zip("MNK", surface.ends, strict=True)
                    for end, size in zip(("from", "to"), both, strict=True)
                }
                low, high = surface.between
                rows.append(
                    {"hardware": key, "precision": path, "backend": engine}
                    | {"version": surface.rows[0].version, "rows": len(surface.rows)}
                    | ends
                    | {"low": low, "high": high}
                )
        return need("pandas", "a table of devices", "arrays").DataFrame(rows)  # type: ignore[no-any-return]

    @staticmethod
    def gemm(
        M: Any,  # noqa: N803 - as every paper calls it
        N: Any,  # noqa: N803
        K: Any,  # noqa: N803
        *,
        hardware: Device | str,
        precision: str = _PRECISION,
        backend: str = "",
        repeat: int = 0,
        seed: int = 0,
    ) -> pandas.DataFrame:
        """Time matrix products: M x K numbers times K x N.

        Between measured rows the logarithm of the time is linear in the logarithms of M, N
        and K. A series of few rows takes the shape of the 16-bit series of its device, times
        its own ratio to that.

        Parameters
        ----------
        M, N, K
            Whole numbers, or lists or arrays of them, of one length or one number for all.
        hardware
            A device of `lab.devices()`.
        precision
            Format, as `lab.devices()` lists it: "bf16" where none is named.
        backend
            Program that ran the product: "trtllm", "vllm" or "sglang"; the first that has
            the precision where none is named.
        repeat
            So many runs of each shape, with noise as wide as other programs' times of the
            same products. Noise is invented within measured limits, for exercises. None by
            default: then each shape has one row, with the time itself.
        seed
            Other noise. The same seed gives the same times.

        Returns
        -------
        pandas.DataFrame
            A row for each shape (and run): `M`, `N`, `K`, `time` in s, `low` and `high`,
            between which eight in ten lie, `rate` in FLOP/s, `interpolated`, `neighbours`
            (measured shapes it was made of), `hardware`, `precision`, `backend`, `source`;
            with `repeat` also `run`. The limits of a measured time are from other programs
            that timed the same products, those of an interpolated one from rows left out.

        Raises
        ------
        NotMeasuredError
            If the device, the precision, the backend or the shape was not measured; says
            what was.
        InvalidValueError
            If a side is no whole number from 1 up, or sides don't go together.

        >>> from mlsim import lab
        >>> found = lab.gemm([4096, 3000], 4096, 4096, hardware="H100")
        >>> list(found.interpolated), [round(each * 1e6) for each in found.time]
        ([False, True], [174, 128])
        """
        library = need("pandas", "a table of times", "arrays")
        surface = find_surface(hardware, precision, backend)
        if type(repeat) is not int or not 0 <= repeat <= _MOST_RUNS:
            raise InvalidValueError(
                f"repeat is a whole number from 0 to {_MOST_RUNS:,}, not {repeat!r}."
            )
        rows = []
        for shape in broadcast(M, N, K):
            row = _row(surface, shape, surface.read(shape))
            if not repeat:
                rows.append(row)
            for run in range(1, repeat + 1):
                time = row["time"] * _noise(surface, shape, run, seed)
                rows.append({"run": run, **row, "time": time, "rate": _flops(shape) / time})
        return library.DataFrame(rows)  # type: ignore[no-any-return]

    @staticmethod
    def run(
        model: Model | str,
        *,
        hardware: Device | str,
        batch_size: int = 1,
        precision: str = _PRECISION,
        backend: str = "",
        prompt_tokens: int | None = None,
        cached_tokens: int | None = None,
    ) -> pandas.DataFrame:
        """Time the kernels of a model: its matrix products, attention and experts.

        A convolution is timed as the product of its size, and marked so: its own kernel was
        not measured. Of attention and experts the shelf has a sample of shapes: between them
        a time is that of the equations with the series' own constants, times its ratio to
        the nearest measured rows. Norms and whatever else was not measured are listed
        without a time, and so is what lies outside of what was measured.

        Parameters
        ----------
        model
            Of the zoo, or one of your own.
        hardware, precision, backend
            As of `lab.gemm`. Products that a format leaves in 16 bits are timed in 16 bits,
            and so is attention. Experts in a format that was not measured have no time.
        batch_size
            Samples, or sequences.
        prompt_tokens
            Of a language model: tokens of each prompt. If not given, one step of
            generation, in which each sequence has one token.
        cached_tokens
            Of such a step: tokens that each sequence has already. Without it attention, whose
            time depends on them, has none.

        Returns
        -------
        pandas.DataFrame
            A row for each kernel: `name`, `kind`, `repeats`, `M`, `N`, `K`, `status`
            ("measured", "interpolated", "as a product", "not measured"), `interpolated`,
            `time`, `low` and `high` in s of one of them, `total` of all repeats, `note`.
            What is not measured has no time (NaN), never zero. `.attrs` holds the sums:
            `total` in s of what has a time, `total_as_products` of convolutions among it,
            `low` and `high` as if all were off alike, `complete` (whether nothing is
            missing), `not_measured` (names, but for kernels that were measured as one with
            others), and `share_of_multiply_adds` that has a time, those of attention's scores
            not counted.

        Raises
        ------
        NotMeasuredError
            If the device, the precision or the backend was not measured.
        InvalidValueError
            If a count is none, or prompt_tokens is given for a network.

        >>> from mlsim import lab
        >>> found = lab.run("Llama3_8B", hardware="H100", batch_size=8)
        >>> found.attrs["complete"], found.attrs["not_measured"]
        (False, ('embedding', 'norms', 'attention', 'output layer'))
        >>> step = lab.run("Llama3_8B", hardware="H100", batch_size=8, cached_tokens=2048)
        >>> step[step.kind == "attention"].status.item()
        'interpolated'
        """
        library = need("pandas", "a table of kernels", "arrays")
        found = resolve.model(model)
        surface = find_surface(hardware, precision, backend)
        wide = surface if precision == _PRECISION else find_surface(hardware, _PRECISION, backend)
        rows, timed, work = [], 0.0, 0.0
        for each in shapes_of(found, batch_size, prompt_tokens, cached_tokens):
            row = _kernel_row(each, wide if each.unquantised else surface)
            rows.append(row)
            work += each.repeats * each.multiply_adds
            timed += each.repeats * each.multiply_adds * (row["status"] != _MISSING)
            if row["note"] == TOGETHER and len(rows) > 1 and rows[-2]["status"] != _MISSING:
                # Of experts the second matrices are in the time of the first.
                timed += each.repeats * each.multiply_adds
        table = library.DataFrame(rows).astype(dict.fromkeys("MNK", "Int64"))
        together = table.note == TOGETHER
        there = table[table.status != _MISSING]
        missing = tuple(table.name[(table.status == _MISSING) & ~together])
        table.attrs = {
            **{name: _sum(there.repeats * there[name]) for name in ("low", "high")},
            "total": _sum(there.total),
            "total_as_products": float(there.total[there.status == "as a product"].sum()),
            "complete": not missing,
            "not_measured": missing,
            "share_of_multiply_adds": timed / work if work else 0.0,
        }
        return table  # type: ignore[no-any-return]


lab = Laboratory()


def _sum(values: Any) -> float:
    """Return a sum; of nothing there is none."""
    return float(values.sum()) if len(values) else nan


def _kernel_row(each: KernelShape, surface: Surface) -> dict[str, Any]:
    """Return a kernel of a model with its time, or with the reason why it has none."""
    row: dict[str, Any] = {"name": each.name, "kind": each.kind, "repeats": each.repeats}
    row |= dict(zip("MNK", each.shape or (None,) * 3, strict=True))
    try:
        if each.sampled:
            kind, sizes = each.sampled
            path = surface.rows[0].path if kind == "experts" else ATTENTION_PATH
            reading = sample(surface.device, kind, path).read(sizes)
        elif each.shape is None:
            raise NotMeasuredError(each.note)
        else:
            reading = surface.read(each.shape)
    except NotMeasuredError as error:
        empty = dict.fromkeys(("time", "low", "high", "total"), nan)
        return row | {"status": _MISSING, "interpolated": None} | empty | {"note": str(error)}
    status = "interpolated" if reading.interpolated else "measured"
    status = "as a product" if each.note else status
    row |= {"status": status, "interpolated": reading.interpolated, **reading.times()}
    return row | {"total": each.repeats * reading.seconds, "note": each.note}


def _flops(shape: Shape) -> float:
    m, n, k = shape
    return 2.0 * m * n * k


def _row(surface: Surface, shape: Shape, reading: Reading) -> dict[str, Any]:
    series = surface.rows[0]
    made_by = f"{label(SOURCE)}: {series.engine} {series.version}, {series.kernel}"
    return {
        **dict(zip("MNK", shape, strict=True)),
        **reading.times(),
        "rate": _flops(shape) / reading.seconds,
        "interpolated": reading.interpolated,
        "neighbours": reading.neighbours,
        "hardware": surface.device,
        "precision": series.path,
        "backend": series.engine,
        "source": made_by,
    }


def _noise(surface: Surface, shape: Shape, run: int, seed: int) -> float:
    """Return a factor within the limits of `same`, most often near 1; its own for each run."""
    series = surface.rows[0]
    place = (seed, surface.device, series.path, series.engine, *shape, run)
    low, high = map(log, surface.same)
    return exp(Random(repr(place)).triangular(low, high, 0.0))  # noqa: S311 - for exercises
