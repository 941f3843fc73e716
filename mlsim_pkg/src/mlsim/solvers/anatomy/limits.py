"""Where memory ends: the largest batch, and what a step takes beyond it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mlsim.equations import Equation, equations_of, roofline
from mlsim.equations.roofline import throughput
from mlsim.errors import DoesNotFitError, InvalidValueError
from mlsim.parameters import validate
from mlsim.solvers.anatomy.layers import View
from mlsim.solvers.answer import Form, Pairs, Row, Written
from mlsim.solvers.explain import Explanation, solved
from mlsim.solvers.question import Known, Question
from mlsim.units import held, text
from mlsim.values.attributes import result

if TYPE_CHECKING:
    from mlsim.hardware import Device
    from mlsim.solvers.anatomy.anatomy import Anatomy
    from mlsim.values.kinds import Quantity


# Larger than any batch that one device takes.
_MOST = 2**40
EPOCHS: tuple[Equation, ...] = equations_of(roofline.EPOCHS)
# An anatomy of the same network at another batch.
At = Callable[[int], "Anatomy"]


def largest_batch(at: At, capacity: float, what: str) -> int:
    """Return the largest batch that fits in so much memory.

    Raises
    ------
    DoesNotFitError
        If a batch of one does not; says by how much.
    """
    needed = at(1).required_bytes
    if needed > capacity:
        raise DoesNotFitError(
            f"{at(1).about} needs {held(needed)}, even with one sample; {what} has "
            f"{held(capacity)}. Use a smaller number format, or a device with more memory."
        )
    low, high = 1, 2
    while high < _MOST and at(high).required_bytes <= capacity:
        low, high = high, high * 2
    too_large = bisect_right(range(low + 1, high), capacity, key=lambda b: at(b).required_bytes)
    return low + too_large


def question(anatomy: Anatomy, disk_bandwidth: Any, **known: Any) -> Question:
    """Return what leads from a step's memory and time to that with paging."""
    device = _device(anatomy)
    told = Known().add("from the layers", memory_free=anatomy.free_bytes)
    told.add(f"{anatomy.about}", latency=anatomy.run.value("latency"))
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
    rows = [Step(each, question(each, disk_bandwidth)) for each in map(at, batches)]
    first = at(batches[0])
    title = f"{first.model.name} on {_device(first).name} where memory ends, {first.precision.name}"
    columns = ("batch", "memory", "excess", "step_time", "paging_time", "throughput")
    return View(title, columns, rows)


class Step(dict[str, Any]):
    """A step of one batch, where memory may end: plain numbers by name, values as attributes.

    >>> from mlsim.engine import over_memory
    >>> (row,) = over_memory("AlexNet", [1024], hardware="GTX580", training=True,
    ...                      disk_bandwidth="1 GB/s")
    >>> row.paging_time / row.step_time > 0.5, row.step_time.name
    (True, 'paged latency')
    """

    def __init__(self, anatomy: Anatomy, asked: Question) -> None:
        latency = asked.value("paged_latency")
        super().__init__(
            batch=anatomy.batch_size,
            memory=anatomy.required_bytes,
            excess=asked.value("memory_excess"),
            step_time=latency,
            paging_time=asked.value("paging_time"),
            throughput=throughput(anatomy.batch_size, latency),
        )
        self._asked, self._about = asked, anatomy.about

    @property
    def step_time(self) -> Quantity:
        """Time of the step, with the wait for its pages."""
        return solved(self._asked, "paged_latency", self._about)

    @property
    def paging_time(self) -> Quantity:
        """Time of the step in which what does not fit goes to a disk and comes back."""
        return solved(self._asked, "paging_time", self._about)

    @property
    def excess(self) -> Quantity:
        """Bytes that do not fit."""
        return solved(self._asked, "memory_excess", self._about)


# Faster than any: of a step that fits, nothing goes to it.
_NO_DISK = "1000 TB/s"


def _step(found: TrainingTime) -> Pairs:
    """Return rows of a step, where the time of an epoch was not given."""
    if "epoch_time" in found.question.known:
        return []
    rows = [("steps", f"{found.steps:,} an epoch")]
    return rows + [(label, _time(name)(found)) for label, name in _OF_STEP.items()]


def _time(name: str) -> Callable[[TrainingTime], str]:
    return lambda found: text(found.question.value(name), "s")


_OF_STEP = {"step": "paged_latency", "paging": "paging_time"}
_FORM = Form(
    rows=(
        Row("epochs", lambda found: text(found.question.known["epochs"], "1")),
        Row("", _step),
        Row("one epoch", _time("epoch_time")),
        Row("all epochs", _time("epochs_time")),
    ),
)


class TrainingTime(Written):
    """The time of a number of epochs, and how it came to be.

    >>> from mlsim.engine import estimate_training_for
    >>> found = estimate_training_for("LeNet5_Variant", 10, samples=60000, hardware="T4",
    ...                               batch_size=512)
    >>> found.steps
    118
    """

    form = _FORM

    def __init__(self, anatomy: Anatomy, question: Question) -> None:
        self.anatomy, self.question = anatomy, question

    def quantity(self, name: str) -> Quantity:
        """Return a time by its name, as its attribute does."""
        return solved(self.question, name, self.about)

    @property
    def about(self) -> str:
        """What this is the time of, in words."""
        return f"{self.anatomy.about}, {text(self.question.known['epochs'], '1')} epochs"

    epoch_time = result("Time of one epoch.")
    paging_time = result("Time of a step in which what does not fit goes to a disk and back.")

    @property
    def total(self) -> Quantity:
        """Time of all epochs."""
        return self.quantity("epochs_time")

    @property
    def steps(self) -> int:
        """Steps of one epoch.

        Raises
        ------
        UnreachableError
            If the time of an epoch was given.
        """
        return int(self.question.value("epoch_steps"))

    def explain(self, name: str = "epochs_time") -> Explanation:
        """Show how a result came to be: equations, values, units."""
        return Explanation(self.question, name)

    def __repr__(self) -> str:
        return str(self)


def time_of_epochs(
    anatomy: Anatomy,
    epochs: Any,
    *,
    samples: Any = None,
    epoch_time: Any = None,
    disk_bandwidth: Any = None,
) -> TrainingTime:
    """Return the time of epochs; see `mlsim.estimate_training_for`."""
    wanted = validate("epochs", epochs, whole=True)
    if (epoch_time is None) == (samples is None or anatomy.device is None):
        raise InvalidValueError(
            "give the time of one epoch that was measured, epoch_time='2.4 s', or samples= of the "
            "data set and hardware= to predict it; one of the two."
        )
    if epoch_time is not None:
        known = Known().add("given", epochs=wanted, epoch_time=validate("epoch_time", epoch_time))
        labels = {"model": anatomy.model.name, "model_source": "", "hardware": "measured"}
        return TrainingTime(
            anatomy,
            Question(known, EPOCHS, {**labels, "precision": "", "estimate": "measured"}),
        )
    if anatomy.free_bytes < 0 and disk_bandwidth is None:
        raise DoesNotFitError(
            f"{anatomy.about} needs {held(anatomy.required_bytes)}, "
            f"{held(-anatomy.free_bytes)} more than there is. Use a smaller batch, or give "
            "disk_bandwidth= for the time with a disk that takes the rest."
        )
    size = validate("dataset_samples", samples, whole=True)
    asked = question(anatomy, disk_bandwidth or _NO_DISK, epochs=wanted, dataset_samples=size)
    return TrainingTime(anatomy, asked)
