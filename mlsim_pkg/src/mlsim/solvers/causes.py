"""What the time of a step goes into, by cause; the label that follows; and why labels differ."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any

from mlsim.equations import Equation, equations_of
from mlsim.solvers.answer import (
    COMPUTE_BOUND,
    MEMORY_BOUND,
    NETWORK_BOUND,
    OVERHEAD_BOUND,
    Answer,
    Form,
    Pairs,
    Row,
    Written,
    plain,
)
from mlsim.solvers.question import Known, Question

# The label of each cause, and which quantity of a calibrated step is its share of the time.
LABELS: Mapping[str, str] = {
    "arithmetic": COMPUTE_BOUND,
    "memory": MEMORY_BOUND,
    "network": NETWORK_BOUND,
    "tiles": OVERHEAD_BOUND,
    "launches": OVERHEAD_BOUND,
    "host": OVERHEAD_BOUND,
}
SHARES: Mapping[str, str] = {
    "arithmetic": "arithmetic_share",
    "memory": "streaming_share",
    "network": "network_share",
    "tiles": "tile_share",
    "launches": "start_share",
    "host": "host_share",
}
# What a roofline knows of.
_ROOFLINE = {**SHARES, "memory": "memory_bound_share"}
# A step of training waits for its pipeline, and a host that is late counts among the launches.
TRAINING_SHARES: Mapping[str, str] = {
    **{cause: name for cause, name in SHARES.items() if cause != "host"},
    "bubble": "bubble_share",
}
_LABELS: Mapping[str, str] = {**LABELS, "bubble": OVERHEAD_BOUND}
# Quantities that decide the label, in the order in which the first of equals counts.
DECIDING: Mapping[str, str] = {
    COMPUTE_BOUND: "arithmetic_share",
    MEMORY_BOUND: "streaming_share",
    NETWORK_BOUND: "network_share",
    OVERHEAD_BOUND: "lost_share",
}
_MEANING = {
    "arithmetic": "operators that compute for longer than they move bytes",
    "memory": "operators that wait for memory, whatever their tiles",
    "network": "sending to other devices",
    "tiles": "products whose tiles don't fill all cores of the device",
    "launches": "what kernels cost beyond their arithmetic and bytes",
    "host": "waiting for the host",
    "bubble": "stages that wait for the pipeline to fill and empty",
}
# A part of the time below this is not worth a word.
_SMALL = 0.005


@cache
def _physics() -> tuple[tuple[Equation, ...], tuple[Equation, ...], dict[str, Equation]]:
    """Return the equations of causes, those that a step of training has instead, and of a step."""
    from mlsim.equations import causes, transformer

    step = {each.name: each for each in equations_of(transformer.STEP)}
    return equations_of(causes.CAUSES), equations_of(causes.TRAINING_CAUSES), step


@lru_cache(maxsize=128)
def _equations(own: tuple[Equation, ...], *, calibrated: bool, alone: bool) -> tuple[Equation, ...]:
    """Return the equations of a question with those of its causes."""
    causes, _, step = _physics()
    left_out = "roofline_arithmetic_share" if calibrated else "arithmetic_share"
    sent = () if alone else (step["total_network_time"], step["network_share"])
    there = {each.yields for each in own}
    added = (each for each in (*causes, *sent) if each.name != left_out)
    return (*own, *(each for each in added if each.yields not in there))


def with_causes(question: Question, *, calibrated: bool, alone: bool) -> Question:
    """Return a question that also knows what the time goes into.

    Parameters
    ----------
    question
        About a step whose operators have launches and tiles, if it is calibrated.
    calibrated
        Whether its rates are those that were measured.
    alone
        Whether one device works on it, so that nothing is sent.
    """
    known = question.known
    if alone:
        words = "one device: nothing is sent"
        known = known.joined(Known().add(words, total_network_time=0.0, network_share=0.0))
    return Question(
        known,
        _equations(question.equations, calibrated=calibrated, alone=alone),
        lambda: question.labels,
        table=question.table,
        shape=question.shape,
    )


def with_training_causes(question: Question, *, calibrated: bool) -> Question:
    """Return a question about a step of training that also knows what its time goes into.

    Parameters
    ----------
    question
        About a step of training that has parts: no bound.
    calibrated
        Whether its rates are those that were measured; a roofline has full tiles and no launches.
    """
    known = question.known
    if not calibrated:
        words = "roofline: tiles fill all cores, and launches take no time"
        known = known.joined(Known().add(words, filled_share=1.0, kernel_overhead=0.0))
    causes, of_training, step = _physics()
    # Of the causes of any step, what a step of training has in another way.
    replaced = {each.yields for each in of_training} | {"host_time", "host_share"}
    plain_causes = (each for each in causes if each.name != "roofline_arithmetic_share")
    kept = (each for each in plain_causes if each.yields not in replaced)
    added = (*kept, *of_training, step["network_share"])
    there = {each.yields for each in question.equations}
    return Question(
        known,
        (*question.equations, *(each for each in added if each.yields not in there)),
        lambda: question.labels,
        table=question.table,
    )


def training_shares_of(question: Question, *, calibrated: bool) -> dict[str, Any]:
    """Return the part of a step of training that each cause takes; they add up to 1."""
    kept = (
        (cause, name)
        for cause, name in TRAINING_SHARES.items()
        if calibrated or cause not in ("tiles", "launches")
    )
    return {cause: float(question.value(name)) for cause, name in kept}


def shares_of(question: Question, *, calibrated: bool) -> dict[str, Any]:
    """Return the part of the time that each cause takes; they add up to 1."""
    names = SHARES if calibrated else _ROOFLINE
    held = LABELS if calibrated else ("arithmetic", "memory", "network")
    found = question.values(*(names[cause] for cause in held))
    return {cause: found[names[cause]] for cause in held}


def label_of(question: Question) -> Any:
    """Return what binds a calibrated step for most of the time: a label, or an array of them."""
    found = question.evaluate(*DECIDING.values())
    if not question.shape:
        return max(DECIDING, key=lambda label: found[DECIDING[label]])
    import numpy as np

    shares = [np.broadcast_to(found[name], question.shape) for name in DECIDING.values()]
    return np.array(list(DECIDING))[np.stack(shares).argmax(axis=0)]


def cause_of(shares: Mapping[str, Any], label: str) -> str:
    """Return the largest cause among those of a label.

    >>> cause_of({"tiles": 0.4, "launches": 0.2, "memory": 0.4}, "Overhead Bound")
    'tiles'
    """
    under = [cause for cause in shares if _LABELS[cause] == label]
    return max(under, key=lambda cause: float(shares[cause]))


def written(shares: Mapping[str, float]) -> str:
    """Return causes and their shares in words, the largest first."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{cause} {share:.0%}" for cause, share in ordered if share >= _SMALL)


def _shares(causes: Causes) -> Pairs:
    """Return a row for each cause, the largest first."""
    ordered = sorted(causes.shares.items(), key=lambda item: -item[1])
    return [
        (cause, f"{share:.1%}: {_MEANING[cause]}") for cause, share in ordered if share >= _SMALL
    ]


@dataclass(frozen=True)
class Causes(Written):
    """Why an answer has its label: what its time goes into, and what another estimate says.

    Attributes
    ----------
    about
        What was asked, in words.
    label, cause
        What binds for most of the time, and the largest cause under that label.
    shares
        Part of the time by cause; they add up to 1.
    roofline
        The label of the roofline of the same question; "" if this is no calibrated answer.
    """

    form = Form(
        title=lambda causes: f"{causes.label}, by {causes.cause}: {causes.about}",
        rows=(Row("", _shares), Row("roofline", lambda causes: causes.difference)),
        inputs={
            "bottleneck": lambda causes: causes.label,
            "cause": lambda causes: causes.cause,
            "causes": lambda causes: plain(dict(causes.shares)),
            "roofline_bottleneck": lambda causes: causes.roofline or None,
            "difference": lambda causes: causes.difference or None,
        },
    )

    about: str
    label: str
    cause: str
    shares: Mapping[str, float] = field(default_factory=dict)
    roofline: str = ""

    @property
    def difference(self) -> str:
        """Why the roofline has another label; "" where it has the same, or none is known."""
        if not self.roofline or self.roofline == self.label:
            return ""
        lost = {
            cause: share
            for cause, share in self.shares.items()
            if _LABELS[cause] == OVERHEAD_BOUND and share >= _SMALL
        }
        goes = f" Here they take {written(lost)} of the time." if lost else ""
        return (
            f"The roofline says {self.roofline}. It takes tiles to fill the device, and launches, "
            f"the host and the start of a message to cost nothing.{goes} Measured shares of the "
            "peak and of the bandwidth also move operators from one side to the other."
        )

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)


class TimedAnswer(Answer):
    """An answer that says what its time goes into, by cause, and by the label that follows."""

    # Quantities that are shares of the time, by cause.
    cause_names: Collection[str] = SHARES.values()

    @property
    def bottleneck(self) -> Any:
        """What binds for most of the time: a label, or an array of them."""
        raise NotImplementedError

    @property
    def causes(self) -> dict[str, Any]:
        """Part of the time by cause; the parts add up to 1."""
        raise NotImplementedError

    @property
    def cause(self) -> str:
        """The largest cause under the label of `bottleneck`, such as "tiles".

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        self.one_point("cause")
        return cause_of(self.causes, self.bottleneck)

    @cached_property
    def _caused(self) -> Question:
        """The question, with what the time goes into."""
        raise NotImplementedError

    def _as_roofline(self) -> TimedAnswer | None:
        """Return the roofline's answer to the same question; None if this is no calibrated one."""
        raise NotImplementedError

    def explain(self, name: str = "") -> Any:
        """Show how a result came to be; "bottleneck" shows why it has its label.

        Raises
        ------
        InvalidValueError
            For an array of points: pick one by its index first.
        """
        if name == "bottleneck":
            self.one_point("explain()")
            other = self._as_roofline()
            label = str(other.bottleneck) if other else ""
            return Causes(self.about, self.bottleneck, self.cause, self.causes, label)
        if name not in self.cause_names:
            return super().explain(name)
        from mlsim.solvers.explain import Explanation

        self.one_point("explain()")
        _ = self.causes  # refused where there are none
        return Explanation(self._caused, name)
