"""What one layer or several compute, hold and move, as values that know where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mlsim.errors import InvalidValueError
from mlsim.units import MEMORY
from mlsim.values import Origin, of_base
from mlsim.values.attributes import count, result
from mlsim.workloads.graph import COUNTS, FLOP, MAC, PYTORCH

if TYPE_CHECKING:
    from mlsim.solvers.anatomy.anatomy import Anatomy
    from mlsim.values.kinds import Quantity
    from mlsim.workloads.graph.training import Moment

# Each figure of a layer: its unit, its name in words, and how it is counted.
_MOVED = "each number takes the bytes of its format, and moves once"
_HELD = "each number takes the bytes of its format"
_FIGURES: Mapping[str, tuple[str, str, str]] = {
    "parameters": ("parameter", "parameters", "learned numbers, biases included"),
    "operations": ("FLOP", "operations", COUNTS[FLOP][0]),
    "multiply_adds": ("MAC", "multiply-adds", COUNTS[MAC][0]),
    "operations_backward": ("FLOP", "operations of the way back", COUNTS[FLOP][0]),
    "bytes_in": ("B", "bytes read by", _MOVED),
    "bytes_out": ("B", "bytes written by", _MOVED),
    "bytes_weights": ("B", "bytes of weights", _MOVED),
    "working_set": ("B", "working set", "bytes read and written, and those of weights"),
    "weights": (MEMORY, "weights", f"{_HELD}, biases included"),
    "gradients": (MEMORY, "gradients of weights", f"{_HELD}, one for each weight"),
    "states": (MEMORY, "states of the optimizer", f"{_HELD}, of each weight"),
    "outputs": (MEMORY, "outputs", _HELD),
    "errors": (MEMORY, "errors", f"{_HELD}, one for each output that has a gradient"),
    "time": ("s", "time", "of each kernel, at the first of its layers"),
    "total": (MEMORY, "memory", "all kinds added up"),
}


class Held:
    """What training holds, by kind, as values."""

    weights = result("Bytes that training holds of weights.")
    gradients = result("Bytes that training holds of gradients of weights.")
    states = result("Bytes that training holds of the optimizer's states.")
    outputs = result("Bytes that training holds of outputs.")
    errors = result("Bytes that training holds of errors.")

    def quantity(self, name: str) -> Quantity:
        """Return a figure by its name, as its attribute does.

        Raises
        ------
        InvalidValueError
            If it is not known of what was asked; says what to ask.
        """
        raise NotImplementedError


class Figures(Held):
    """The figures of a layer, of a part of a network or of all of it."""

    parameters = count("Learned numbers, biases included.")
    operations = result("Operations of the batch, in the way of counting that was asked for.")
    multiply_adds = count("Multiply-adds of the batch.")
    operations_backward = result("Operations of the way back, if training was asked about.")
    bytes_in = result("Bytes that are read.")
    bytes_out = result("Bytes that are written.")
    bytes_weights = result("Bytes of weights that are read.")
    working_set = result("Bytes read and written, and those of weights.")
    time = result("Time of its kernels, if hardware was given.")

    @property
    def intensity(self) -> Any:
        """Operations for each byte of the working set."""
        return self.operations / self.working_set


def figure(name: str, rows: Sequence[Mapping[str, Any]], what: str, anatomy: Anatomy) -> Quantity:
    """Return a figure of several layers together: `what` names them."""
    unit, words, _ = _FIGURES[name]
    if rows and name not in rows[0]:
        wanted = "hardware=, such as 'A100'" if name == "time" else "training=True"
        raise InvalidValueError(f"{words} of {what} needs more than was asked: give {wanted}.")
    if name == "operations" and anatomy.count not in (FLOP, PYTORCH):
        unit = "MAC" if anatomy.count == MAC else "1"
    value = sum(row[name] for row in rows)
    return of_base(value, unit, partial(_origin, name, what, anatomy, len(rows)))


def _origin(name: str, what: str, anatomy: Anatomy, layers: int, value: Quantity) -> Origin:
    _, words, how = _FIGURES[name]
    if name == "operations":
        how = COUNTS[anatomy.count][0]
    if name == "operations" and anatomy.count != FLOP:
        words = f"operations ({anatomy.count})"
    title = f"{words} {what}" if words.endswith(" by") else f"{words} of {what}"
    shown = value.text if value.base in ("parameter", "1") else value.in_full
    brief = f"{title} = {shown} ({anatomy.about})"
    added = f", {layers} layers added up" if layers > 1 else ""
    return Origin(title, brief, f"{brief}\n\nCounted from the sizes of each layer: {how}{added}.")


class Layer(dict[str, Any], Figures):
    """A row of an anatomy: plain numbers by name as in a mapping, and values as attributes.

    >>> from mlsim import Models, anatomy
    >>> conv1 = anatomy(Models.LeNet5_Variant)["conv1"]
    >>> conv1["working_set"], conv1.working_set.show(",.0f", "B"), conv1.parameters.name
    (17584.0, 17,584 B, 'parameters of conv1')
    """

    def __init__(self, row: Mapping[str, Any], anatomy: Anatomy) -> None:
        super().__init__(row)
        self._anatomy = anatomy

    def quantity(self, name: str) -> Quantity:
        """Return a figure of the layer by its name."""
        return figure(name, (self,), self["layer"], self._anatomy)


class Layers(Figures):
    """Several layers of a network: each, and their figures together.

    >>> from mlsim import Models, anatomy
    >>> linear = anatomy(Models.LeNet5_Variant).part(kind="linear")
    >>> len(linear), linear.parameters, linear.parameters.name
    (3, 38,710, 'parameters of 3 linear layers')
    """

    def __init__(self, rows: Sequence[Layer], what: str, anatomy: Anatomy) -> None:
        self.rows, self.what, self._anatomy = rows, what, anatomy

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def quantity(self, name: str) -> Quantity:
        """Return a figure of all layers together by its name."""
        return figure(name, self.rows, self.what, self._anatomy)


class Peak(Held):
    """The moment of a training step at which most is held: what, while which layer runs.

    `phase` is "forward", "loss", "backward" or "update".

    >>> from mlsim import Models, anatomy
    >>> peak = anatomy(Models.LeNet5_Variant, training=True).peak
    >>> peak.phase, peak.total.show(".0f", "kB"), peak.gradients.name
    ('backward', 539 kB, 'gradients of weights at the peak')
    """

    total = result("Bytes in all.")

    def __init__(self, moment: Moment, anatomy: Anatomy) -> None:
        self.phase, self.layer = moment.phase, moment.layer
        self._held = {**moment.held, "total": moment.total}
        self._anatomy = anatomy

    def quantity(self, name: str) -> Quantity:
        """Return what is held of a kind by its name."""
        return of_base(self._held[name], MEMORY, partial(self._origin, name))

    def _origin(self, name: str, value: Quantity) -> Origin:
        title = f"{_FIGURES[name][1]} at the peak"
        brief = f"{title} = {value.in_full} ({self._anatomy.about})"
        when = f"{self.phase} {self.layer}".strip()
        how = f"The step was followed moment by moment, as PyTorch runs it. Its peak: {when}."
        return Origin(title, brief, f"{brief}\n\n{how}")
