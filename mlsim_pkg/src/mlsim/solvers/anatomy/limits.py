"""Where memory ends: the largest batch, and what a step takes beyond it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mlsim.equations import Equation, epochs, equations_of
from mlsim.equations.roofline import throughput
from mlsim.errors import DoesNotFitError, InvalidValueError
from mlsim.solvers.anatomy.view import View
from mlsim.solvers.inputs import validate
from mlsim.solvers.question import Known, Question
from mlsim.units import held

if TYPE_CHECKING:
    from mlsim.hardware import Device
    from mlsim.solvers.anatomy.anatomy import Anatomy

# Larger than any batch that one device takes.
_MOST = 2**40
EPOCHS: tuple[Equation, ...] = equations_of(epochs)
# An anatomy of the same network at another batch.
At = Callable[[int], "Anatomy"]


def largest_batch(at: At, capacity: float, what: str) -> int:
    """Return the largest batch that fits in so much memory.

    Raises
    ------
    DoesNotFitError
        If a batch of one does not; says by how much.
    """
    needed = at(1).memory_required
    if needed > capacity:
        raise DoesNotFitError(
            f"{at(1).about} needs {held(needed)}, even with one sample; {what} has "
            f"{held(capacity)}. Use a smaller number format, or a device with more memory."
        )
    return _last(lambda batch: at(batch).memory_required <= capacity)


def _last(fits: Callable[[int], bool]) -> int:
    """Return the last whole number that fits, of those from 1; all smaller ones do."""
    low, high = 1, 2
    while high < _MOST and fits(high):
        low, high = high, high * 2
    return low + bisect_left(range(low + 1, high), True, key=lambda number: not fits(number))


def question(anatomy: Anatomy, disk_bandwidth: Any, **known: Any) -> Question:
    """Return what leads from a step's memory and time to that with paging."""
    device = _device(anatomy)
    told = Known().add("from the layers", memory_free=anatomy.memory_free)
    told.add(f"{anatomy.about}", latency=anatomy.time)
    rate = validate("disk_bandwidth", disk_bandwidth)
    told.add("given", disk_bandwidth=float(rate), batch_size=float(anatomy.batch_size), **known)
    labels = {
        "model": anatomy.model.name,
        "model_source": anatomy.model.source,
        "hardware": device.name,
        "precision": anatomy.precision.name,
        "estimate": anatomy.estimate,
    }
    return Question(told, EPOCHS, labels)


def _device(anatomy: Anatomy) -> Device:
    if anatomy.device is None:
        raise InvalidValueError("where memory ends depends on a device: give hardware=.")
    return anatomy.device


def over_memory(at: At, batches: Sequence[int], disk_bandwidth: Any) -> View:
    """Return memory and time of a step by batch, with the wait for a disk beyond memory."""
    if isinstance(batches, str) or not isinstance(batches, Iterable):
        raise InvalidValueError(f"batches must be several, such as [64, 128], not {batches!r}.")
    batches = list(batches)
    if not batches:
        raise InvalidValueError("give at least one batch, such as batches=[64, 128, 256].")
    rows = list(map(partial(_row, at, disk_bandwidth), batches))
    first = at(batches[0])
    title = f"{first.model.name} on {_device(first).name} where memory ends, {first.precision.name}"
    columns = ("batch", "memory", "excess", "step_time", "paging_time", "throughput")
    return View(title, columns, rows)


def _row(at: At, disk_bandwidth: Any, batch: int) -> dict[str, Any]:
    anatomy = at(batch)
    asked = question(anatomy, disk_bandwidth)
    return {
        "batch": batch,
        "memory": anatomy.memory_required,
        "excess": asked.value("memory_excess"),
        "step_time": asked.value("paged_latency"),
        "paging_time": asked.value("paging_time"),
        "throughput": throughput(batch, asked.value("paged_latency")),
    }
