"""`Engine.sweep`: every combination of models, devices, precisions and batches, as a table."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError, UnsupportedPrecisionError, need
from mlsim.precision import by_default, precision as find_precision
from mlsim.solvers.answer import (
    COMPUTE_BOUND,
    DOES_NOT_FIT,
    MEMORY_BOUND,
    OVERHEAD_BOUND,
)
from mlsim.solvers.blocks import Job, prepare, run_jobs
from mlsim.solvers.causes import DECIDING, with_causes
from mlsim.solvers.forward.configuration import Configuration
from mlsim.solvers.forward.profile import IN_MEMORY, USUAL, kind_of
from mlsim.solvers.inputs import CALIBRATED, validate
from mlsim.solvers.reports import plain
from mlsim.units import text
from mlsim.workloads.model import Network
from mlsim.zoo import resolve, spaces

if TYPE_CHECKING:
    import pandas

# Of a table: that nobody asked for the precision.
ASSUMED = "formats_assumed"
_COLUMNS = ("latency", "throughput", "memory_bound_share", "memory_required")
_RESULTS = (*_COLUMNS, "memory_free")
# Of a calibrated sweep, what decides the label; of equal parts, the first. Nothing is sent.
_LIMITS = (COMPUTE_BOUND, MEMORY_BOUND, OVERHEAD_BOUND)
_DECIDING = tuple(DECIDING[each] for each in _LIMITS)


def _listed(name: str, value: Any) -> list[Any]:
    """Return the entries of a list, or the one value that was given."""
    if not isinstance(value, (list, tuple, set, frozenset, spaces.Namespace)):
        return [value]
    entries = list(value)
    if not entries:
        raise InvalidValueError(f"{name} is an empty list; give at least one entry.")
    return entries


def sweep(
    *,
    model: Any,
    hardware: Any,
    batch_size: Any = 1,
    precision: Any = None,
    estimate: str = "roofline",
    activations: str = IN_MEMORY,
) -> pandas.DataFrame:
    """Predict every combination of models, devices, batches and precisions.

    Each argument is one value or a list, but for the estimate and for `activations`,
    which are those of `solve`. Returns a tidy table, one row per
    combination, with latency in seconds and throughput in samples per
    second. Rows that can't run are kept: `feasible` is False, `reason` says
    why, and their times are missing. The precision is "fp16" if left out;
    `table.attrs["formats_assumed"]` then says so.

    Raises
    ------
    MlsimError
        As `solve`, but a precision that a device lacks is a row, and so is a device
        without a cache that could keep activations.

    >>> from mlsim import Engine, Hardware, Models
    >>> table = Engine.sweep(model=Models.ResNet50, batch_size=[1, 8],
    ...                      hardware=[Hardware.Cloud.V100, Hardware.Cloud.A100])
    >>> len(table), bool(table.feasible.all())
    (4, True)
    """
    library, np = need("pandas", "a sweep", "arrays"), need("numpy", "a sweep", "arrays")
    # Of a whole namespace, those with a fixed input; the others are served.
    if isinstance(model, spaces.Namespace):
        model = [each for each in model if isinstance(each, Network)]
    models = [resolve.network(each) for each in _listed("model", model)]
    devices = [resolve.device(each) for each in _listed("hardware", hardware)]
    asked = USUAL if precision is None else precision
    formats = [find_precision(each) for each in _listed("precision", asked)]
    kind = kind_of(estimate, activations)
    batches = validate("batch_size", batch_size, whole=True)
    batches = batches.reshape(-1) if hasattr(batches, "reshape") else batches
    column = np.atleast_1d(np.asarray(batches, dtype=float))
    combinations = list(product(models, devices, formats))
    results = (*_RESULTS, *_DECIDING) if estimate == CALIBRATED else _RESULTS
    joined = {name: np.empty(len(column) * len(combinations)) for name in results}
    reasons, jobs = [], []
    for index, combination in enumerate(combinations):
        rows = slice(index * len(column), (index + 1) * len(column))
        part = {name: values[rows] for name, values in joined.items()}
        job = _job(*combination, kind=kind, estimate=estimate, column=column, into=part)
        reasons.append(job if isinstance(job, str) else "")
        jobs += [] if isinstance(job, str) else [job]
    run_jobs(jobs)
    columns = _columns(
        library,
        models,
        devices,
        formats,
        estimate=estimate,
        activations=activations,
        column=column,
        joined=joined,
        reasons=reasons,
    )
    table: pandas.DataFrame = library.DataFrame(columns, copy=False)
    if precision is None:
        table.attrs[ASSUMED] = by_default(USUAL)
    return table


def _job(
    model: Any,
    device: Any,
    number_format: Any,
    *,
    kind: type[Configuration],
    estimate: str,
    column: Any,
    into: dict[str, Any],
) -> Job | str:
    """Return the work that solves all batches of one combination into its rows.

    Where the device lacks the precision or the cache, it is the reason, and the rows are NaN.
    """
    reason = f"no {number_format.name} peak on record"
    if kind.keeps and device.last_level_figure is None:
        reason = "no cache on record"
    else:
        try:
            asked = kind(model, device, number_format, estimate, column, {}).question
            if estimate == CALIBRATED:
                asked = with_causes(asked, calibrated=True, alone=True)
            steps, columns = asked.plan(*into), asked.table.columns_2d
            return prepare(steps, asked.known, columns, column.shape, into)
        except UnsupportedPrecisionError:
            pass
    for values in into.values():
        values.fill(float("nan"))
    return reason


def _columns(
    pandas: Any,
    models: Any,
    devices: Any,
    formats: Any,
    *,
    estimate: str,
    activations: str,
    column: Any,
    joined: dict[str, Any],
    reasons: list[str],
) -> dict[str, Any]:
    """Make the table's columns; names are categories, so a million rows stay small."""
    import numpy as np

    size = len(column)
    # NaN compares as False: what has no peak does not run either.
    feasible = joined["memory_free"] >= 0
    stopped = ~feasible
    if stopped.any():
        for name in ("latency", "throughput", "memory_bound_share"):
            joined[name][stopped] = np.nan

    def category(names: list[str], each: int, times: int) -> Any:
        # Two devices may have one name; more than a byte holds may be compared.
        unique = list(dict.fromkeys(names))
        kind = np.int8 if len(unique) < 128 else np.int32
        codes = np.array([unique.index(name) for name in names], dtype=kind)
        every = np.tile(np.repeat(codes, each), times)
        return pandas.Categorical.from_codes(every, dtype=pandas.CategoricalDtype(unique))

    kinds = ["", DOES_NOT_FIT.lower(), *sorted(set(reasons) - {""})]
    codes = np.repeat(np.array([kinds.index(each) for each in reasons], dtype=np.int8), size)
    codes[stopped & (codes == 0)] = 1
    bound = np.where(joined["memory_bound_share"] > 0.5, np.int8(0), np.int8(1))
    limits = [MEMORY_BOUND, COMPUTE_BOUND]
    if "lost_share" in joined:
        limits = list(_LIMITS)
        bound = np.argmax([joined[name] for name in _DECIDING], axis=0).astype(np.int8)
    bound[stopped] = -1
    bottlenecks = pandas.CategoricalDtype(limits)
    return {
        "model": category([m.name for m in models], size * len(devices) * len(formats), 1),
        "hardware": category([d.name for d in devices], size * len(formats), len(models)),
        "precision": category([f.name for f in formats], size, len(models) * len(devices)),
        "estimate": category([estimate], size * len(reasons), 1),
        "activations": category([activations], size * len(reasons), 1),
        "batch_size": np.tile(column.astype(np.int64), len(reasons)),
        "latency": joined["latency"],
        "throughput": joined["throughput"],
        "bottleneck": pandas.Categorical.from_codes(bound, dtype=bottlenecks),
        "memory_bound_share": joined["memory_bound_share"],
        "memory_required": joined["memory_required"],
        "feasible": feasible,
        "reason": pandas.Categorical.from_codes(codes, dtype=pandas.CategoricalDtype(kinds)),
    }


# Columns of a sweep that carry a unit.
_UNITS = {
    "batch_size": "sample",
    "latency": "s",
    "throughput": "sample/s",
    "memory_bound_share": "1",
    "memory_required": "B",
}


def sweep_rows(table: pandas.DataFrame) -> list[dict[str, Any]]:
    """Return a sweep's rows for JSON: numbers as {"value": ..., "unit": ...}."""
    assumed = {ASSUMED: table.attrs[ASSUMED]} if ASSUMED in table.attrs else {}
    return [
        assumed
        | {
            str(name): {"value": plain(value), "unit": _UNITS[str(name)]}
            if name in _UNITS
            else plain(value)
            for name, value in row.items()
        }
        for row in table.to_dict(orient="records")
    ]


def sweep_text(table: pandas.DataFrame) -> str:
    """Write a sweep for a terminal, a line a point."""
    header = ("model", "hardware", "precision", "batch", "latency", "samples/s", "bottleneck")
    rows = [header]
    for row in table.to_dict(orient="records"):
        runs = row["feasible"]
        rows.append(
            (
                row["model"],
                row["hardware"],
                row["precision"],
                f"{row['batch_size']:,}",
                text(row["latency"], "s") if runs else "-",
                f"{row['throughput']:,.0f}" if runs else "-",
                row["bottleneck"] if runs else row["reason"],
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    numbers = ("batch", "latency", "samples/s")
    lines = [
        "  ".join(
            f"{cell:>{width}}" if name in numbers else f"{cell:<{width}}"
            for cell, width, name in zip(row, widths, header, strict=True)
        ).rstrip()
        for row in rows
    ]
    if ASSUMED in table.attrs:
        lines.append(f"formats: {table.attrs[ASSUMED]}")
    return "\n".join(lines)
