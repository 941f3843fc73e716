"""How long training takes by epochs: from a measured one, or from the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.errors import DoesNotFitError, InvalidValueError
from mlsim.solvers.anatomy.limits import EPOCHS, question
from mlsim.solvers.explain import Explanation
from mlsim.solvers.inputs import validate
from mlsim.solvers.question import Known, Question
from mlsim.solvers.reports import Report
from mlsim.units import held, quantity, text

if TYPE_CHECKING:
    from pint import Quantity

    from mlsim.solvers.anatomy.anatomy import Anatomy

# Faster than any: of a step that fits, nothing goes to it.
_NO_DISK = "1000 TB/s"


class TrainingTime:
    """The time of a number of epochs, and how it came to be.

    >>> from mlsim import estimate_training_for
    >>> found = estimate_training_for("LeNet5_Variant", 10, samples=60000, hardware="T4",
    ...                               batch_size=512)
    >>> found.steps
    118
    """

    def __init__(self, anatomy: Anatomy, question: Question) -> None:
        self.anatomy, self.question = anatomy, question

    def _quantity(self, name: str) -> Quantity[Any]:
        found: Quantity[Any] = quantity(self.question.value(name), "s")
        return found

    @property
    def total(self) -> Quantity[Any]:
        """Time of all epochs."""
        return self._quantity("epochs_time")

    @property
    def epoch_time(self) -> Quantity[Any]:
        """Time of one epoch."""
        return self._quantity("epoch_time")

    @property
    def steps(self) -> int:
        """Steps of one epoch.

        Raises
        ------
        UnreachableError
            If the time of an epoch was given.
        """
        return int(self.question.value("epoch_steps"))

    @property
    def paging_time(self) -> Quantity[Any]:
        """Time of each step in which what does not fit goes to a disk and comes back."""
        return self._quantity("paging_time")

    def explain(self, name: str = "epochs_time") -> Explanation:
        """Show how a result came to be: equations, values, units."""
        return Explanation(self.question, name)

    def report(self) -> Report:
        """Return the answer as a title and rows."""
        epochs = text(self.question.known["epochs"], "1")
        rows = [("epochs", epochs)]
        if "epoch_time" not in self.question.known:
            rows += [
                ("steps", f"{self.steps:,} an epoch"),
                ("step", text(self.question.value("paged_latency"), "s")),
                ("paging", text(self.question.value("paging_time"), "s")),
            ]
        rows += [
            ("one epoch", text(self.question.value("epoch_time"), "s")),
            ("all epochs", text(self.question.value("epochs_time"), "s")),
        ]
        return Report(f"{self.anatomy.about}, {epochs} epochs", rows)

    def __str__(self) -> str:
        return self.report().text()

    def _repr_markdown_(self) -> str:
        return self.report().markdown()

    __repr__ = __str__


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
    if anatomy.memory_free < 0 and disk_bandwidth is None:
        raise DoesNotFitError(
            f"{anatomy.about} needs {held(anatomy.memory_required)}, "
            f"{held(-anatomy.memory_free)} more than there is. Use a smaller batch, or give "
            "disk_bandwidth= for the time with a disk that takes the rest."
        )
    size = validate("dataset_samples", samples, whole=True)
    asked = question(anatomy, disk_bandwidth or _NO_DISK, epochs=wanted, dataset_samples=size)
    return TrainingTime(anatomy, asked)
