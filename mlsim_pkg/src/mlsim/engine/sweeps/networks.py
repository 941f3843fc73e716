"""Networks swept over batches: a million rows, straight into the columns of a table."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from mlsim.engine.sweeps.question import Question
from mlsim.engine.sweeps.table import UNITS, note_borrowed
from mlsim.errors import UnsupportedPrecisionError, need
from mlsim.precision import precision as find_precision
from mlsim.solvers.answer import (
    COMPUTE_BOUND,
    DOES_NOT_FIT,
    MEMORY_BOUND,
    OVERHEAD_BOUND,
)
from mlsim.solvers.blocks import Job, prepare, run_jobs
from mlsim.solvers.causes import DECIDING, with_causes
from mlsim.solvers.forward.configuration import Configuration
from mlsim.solvers.forward.profile import kind_of
from mlsim.solvers.inputs import CALIBRATED
from mlsim.solvers.noted import told

if TYPE_CHECKING:
    import pandas

_COLUMNS = ("latency", "throughput", "memory_bound_share", "memory_required")
_RESULTS = (*_COLUMNS, "memory_free")
# Of a calibrated sweep, what decides the label; of equal parts, the first. Nothing is sent.
_LIMITS = (COMPUTE_BOUND, MEMORY_BOUND, OVERHEAD_BOUND)
_DECIDING = tuple(DECIDING[each] for each in _LIMITS)


def sweep_networks(asked: Question) -> pandas.DataFrame:
    """Return the table of a sweep of networks, computed in threads.

    Raises
    ------
    NotMeasuredError
        If nobody measured a device, for a calibrated estimate.
    """
    library, np = need("pandas", "a sweep", "arrays"), need("numpy", "a sweep", "arrays")
    values = {axis.name: axis.entries for axis in asked.axes}
    models, devices, column = values["model"], values["hardware"], values["batch_size"]
    formats = [find_precision(each) for each in values["precision"]]
    estimate, activations = values["estimate"][0], values["activations"][0]
    kind = kind_of(estimate, activations)
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
    table.attrs |= {**asked.notes, UNITS: asked.units}
    note_borrowed(table, _borrowed(kind, combinations, estimate))
    return table


def _borrowed(
    kind: type[Configuration], combinations: list[tuple[Any, ...]], estimate: str
) -> dict[str, str]:
    """Return whose constants each device has, in words, where not its own."""
    found: dict[str, str] = {}
    for model, device, number_format in combinations if estimate == CALIBRATED else ():
        if device.name in found or number_format.computes_as not in device.compute.figures:
            continue
        loans = kind(model, device, number_format, estimate, 1.0, {}).loans
        found |= {device.name: told(loans)} if loans else {}
    return found


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
