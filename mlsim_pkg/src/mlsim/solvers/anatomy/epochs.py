"""How long training takes by epochs: from a measured one, or from the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.errors import DoesNotFitError, InvalidValueError
from mlsim.solvers.anatomy.limits import EPOCHS, question
from mlsim.solvers.anatomy.runs import free, required
from mlsim.solvers.answer import Report
from mlsim.solvers.explain import Explanation, solved
from mlsim.solvers.inputs import validate
from mlsim.solvers.question import Known, Question
from mlsim.units import held, text
from mlsim.values.attributes import result

if TYPE_CHECKING:
    from mlsim.solvers.anatomy.anatomy import Anatomy
    from mlsim.values.kinds import Quantity

# Faster than any: of a step that fits, nothing goes to it.
_NO_DISK = "1000 TB/s"


class TrainingTime:
    """The time of a number of epochs, and how it came to be.

    >>> from mlsim.engine import estimate_training_for
    >>> found = estimate_training_for("LeNet5_Variant", 10, samples=60000, hardware="T4",
    ...                               batch_size=512)
    >>> found.steps
    118
    """

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
        return Report(self.about, rows)

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
    if free(anatomy) < 0 and disk_bandwidth is None:
        raise DoesNotFitError(
            f"{anatomy.about} needs {held(required(anatomy))}, "
            f"{held(-free(anatomy))} more than there is. Use a smaller batch, or give "
            "disk_bandwidth= for the time with a disk that takes the rest."
        )
    size = validate("dataset_samples", samples, whole=True)
    asked = question(anatomy, disk_bandwidth or _NO_DISK, epochs=wanted, dataset_samples=size)
    return TrainingTime(anatomy, asked)
