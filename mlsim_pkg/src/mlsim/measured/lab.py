"""A laboratory without a GPU: products and networks "run" on the kernels of the shelf.

Nothing is predicted here. A time is one that somebody measured, or lies between such, and
says which. What the shelf lacks is refused, or listed as not measured.
"""

from __future__ import annotations

from math import exp, log, nan
from random import Random
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, NotMeasuredError, Suggesting, need
from mlsim.hardware import Device
from mlsim.hardware.kernel_constants import SOURCE, measured_devices
from mlsim.measured.lab_shapes import (
    ATTENTION_PATH,
    TOGETHER,
    KernelShape,
    broadcast,
    shapes_of,
)
from mlsim.measured.sampled import sample
from mlsim.measured.surfaces import Reading, Shape, Surface, find_surface, in_order, surfaces
from mlsim.records.references import label
from mlsim.workloads.model import Model
from mlsim.zoo import resolve

if TYPE_CHECKING:
    import pandas

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
            # Of experts the second matrices are in the time of the first.
            timed += each.repeats * each.multiply_adds * _with_another(row, rows)
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
            reading = _sampled(each, surface)
        elif each.shape is None:
            raise NotMeasuredError(each.note)
        else:
            reading = surface.read(each.shape)
    except NotMeasuredError as error:
        empty = dict.fromkeys(("time", "low", "high", "total"), nan)
        return row | {"status": _MISSING, "interpolated": None} | empty | {"note": str(error)}
    status = "interpolated" if reading.interpolated else "measured"
    return row | {
        "status": "as a product" if each.note else status,
        "interpolated": reading.interpolated,
        "time": reading.seconds,
        "low": reading.low,
        "high": reading.high,
        "total": each.repeats * reading.seconds,
        "note": each.note,
    }


def _sampled(each: KernelShape, surface: Surface) -> Reading:
    """Return the time of attention or of a layer's experts."""
    assert each.sampled is not None
    kind, sizes = each.sampled
    series = surface.rows[0]
    path = series.path if kind == "experts" else ATTENTION_PATH
    return sample(surface.device, kind, path).read(sizes)


def _with_another(row: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Tell whether a kernel is in the time of the one before it."""
    return row["note"] == TOGETHER and len(rows) > 1 and rows[-2]["status"] != _MISSING


def _flops(shape: Shape) -> float:
    m, n, k = shape
    return 2.0 * m * n * k


def _row(surface: Surface, shape: Shape, reading: Reading) -> dict[str, Any]:
    series = surface.rows[0]
    made_by = f"{label(SOURCE)}: {series.engine} {series.version}, {series.kernel}"
    return {
        **dict(zip("MNK", shape, strict=True)),
        "time": reading.seconds,
        "low": reading.low,
        "high": reading.high,
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
