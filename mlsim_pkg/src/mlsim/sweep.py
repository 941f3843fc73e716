"""Sweeps: every combination of models, devices, precisions and batches, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim import zoo
from mlsim.errors import InvalidValueError, UnsupportedPrecisionError, need
from mlsim.precision import precision as find_precision
from mlsim.solvers import Configuration, evaluate
from mlsim.solvers.inputs import check
from mlsim.solvers.profile import COMPUTE_BOUND, DOES_NOT_FIT, MEMORY_BOUND

if TYPE_CHECKING:
    import pandas

_COLUMNS = ("latency", "throughput", "memory_bound_share", "memory_required")
_RESULTS = (*_COLUMNS, "memory_free")


def _listed(name: str, value: Any) -> list[Any]:
    """Return the entries of a list, or the one value that was given."""
    if not isinstance(value, (list, tuple, set, frozenset, zoo.Namespace)):
        return [value]
    entries = list(value)
    if not entries:
        raise InvalidValueError(f"{name} is an empty list; give at least one entry.")
    return entries


def sweep(
    *, model: Any, hardware: Any, batch_size: Any, precision: Any, estimate: str
) -> pandas.DataFrame:
    """Do what `Engine.sweep` promises."""
    library = need("pandas", "a sweep", "arrays")
    models = [zoo.model(each) for each in _listed("model", model)]
    devices = [zoo.device(each) for each in _listed("hardware", hardware)]
    formats = [find_precision(each) for each in _listed("precision", precision)]
    batches = check("batch_size", batch_size, whole=True)
    batches = batches.reshape(-1) if hasattr(batches, "reshape") else batches
    parts = [
        _solve_all(each, device, number_format, estimate, batches)
        for each in models
        for device in devices
        for number_format in formats
    ]
    columns = _columns(library, models, devices, formats, estimate=estimate, parts=parts)
    table: pandas.DataFrame = library.DataFrame(columns, copy=False)
    return table


def _solve_all(
    model: Any, device: Any, number_format: Any, estimate: str, batches: Any
) -> dict[str, Any]:
    """Solve all batches of one combination; NaN where the device lacks the precision."""
    import numpy as np

    column = np.atleast_1d(np.asarray(batches, dtype=float))
    try:
        configuration = Configuration(model, device, number_format, estimate, column, {})
        return {"batch_size": column, "reason": "", **evaluate(configuration, *_RESULTS)}
    except UnsupportedPrecisionError:
        nothing = np.full(column.shape, np.nan)
        reason = f"no {number_format.name} peak on record"
        return {"batch_size": column, "reason": reason, **dict.fromkeys(_RESULTS, nothing)}


def _columns(
    pandas: Any,
    models: Any,
    devices: Any,
    formats: Any,
    *,
    estimate: str,
    parts: list[dict[str, Any]],
) -> dict[str, Any]:
    """Join the parts; names are categories, so a million rows stay small."""
    import numpy as np

    size = len(parts[0]["batch_size"])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS}
    # NaN compares as False: what has no peak does not run either.
    feasible = np.concatenate([part["memory_free"] >= 0 for part in parts])
    stopped = ~feasible
    for name in ("latency", "throughput", "memory_bound_share"):
        joined[name][stopped] = np.nan

    def category(names: list[str], each: int, times: int) -> Any:
        # Two devices may have one name; more than a byte holds may be compared.
        unique = list(dict.fromkeys(names))
        kind = np.int8 if len(unique) < 128 else np.int32
        codes = np.array([unique.index(name) for name in names], dtype=kind)
        every = np.tile(np.repeat(codes, each), times)
        return pandas.Categorical.from_codes(every, dtype=pandas.CategoricalDtype(unique))

    reasons = ["", DOES_NOT_FIT.lower(), *sorted({part["reason"] for part in parts} - {""})]
    codes = np.repeat(
        np.array([reasons.index(part["reason"]) for part in parts], dtype=np.int8), size
    )
    codes[stopped & (codes == 0)] = 1
    bound = np.where(joined["memory_bound_share"] > 0.5, np.int8(0), np.int8(1))
    bound[stopped] = -1
    bottlenecks = pandas.CategoricalDtype([MEMORY_BOUND, COMPUTE_BOUND])
    return {
        "model": category([m.name for m in models], size * len(devices) * len(formats), 1),
        "hardware": category([d.name for d in devices], size * len(formats), len(models)),
        "precision": category([f.name for f in formats], size, len(models) * len(devices)),
        "estimate": category([estimate], size * len(parts), 1),
        "batch_size": np.tile(parts[0]["batch_size"].astype(np.int64), len(parts)),
        "latency": joined["latency"],
        "throughput": joined["throughput"],
        "bottleneck": pandas.Categorical.from_codes(bound, dtype=bottlenecks),
        "memory_bound_share": joined["memory_bound_share"],
        "memory_required": joined["memory_required"],
        "feasible": feasible,
        "reason": pandas.Categorical.from_codes(codes, dtype=pandas.CategoricalDtype(reasons)),
    }
