"""What every model has: a name, a source, parameters; and a network of layers, as of a CNN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from mlsim.errors import Suggesting, unknown_name
from mlsim.records import Figure
from mlsim.values import Origin, literal, of_base
from mlsim.workloads.layers import Layer, Shape
from mlsim.workloads.operators import NetworkOperators, Operator

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity

# One multiply-add is a product and a sum.
FLOPS_PER_MULTIPLY_ADD = 2.0

# Training does one for each parameter and token forward, and two backward: for the gradient
# of what the parameter read, and for its own.
TRAINING_MULTIPLY_ADDS = 3.0


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Model(Suggesting):
    """A model, described by its architecture; nothing that follows from it is typed in.

    `source` is the document of the architecture, `figures` holds what was
    published about the model, each with its source. `stated_format` is what a `config.json`
    says of the format of its parameters, such as "float32": an answer that takes another
    says so.
    """

    key: str
    name: str
    architecture: str
    source: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    stated_format: str = ""

    @property
    def parameter_count(self) -> int:
        """Learned numbers in the model."""
        raise NotImplementedError

    @property
    def parameters(self) -> Quantity:
        """Learned numbers in the model, as a value."""
        raise NotImplementedError

    def counted(self, value: float, base: str, words: str, what: str) -> Quantity:
        """Return a count of the model as a value: `what` was added up."""
        return of_base(value, base, partial(self._origin_of, words, what))

    def _origin_of(self, words: str, what: str, value: Quantity) -> Origin:
        name = f"{words} of {self.name}"
        shown = f"{value.si:,.0f}" if value.base == "parameter" else value.in_full
        brief = f"{name}: {shown}, {what} added up; architecture from {self._document}"
        return Origin(name, brief, brief)

    @property
    def _document(self) -> str:
        """The document of the architecture, as Markdown."""
        from mlsim.records.references import references  # a solve needs none

        return f"[@{self.source}]" if self.source in references() else literal(self.source)

    # What can be shown by name, and is an attribute.
    _counts: ClassVar[tuple[str, ...]] = ("parameters",)

    def by_name(self, name: str) -> Quantity:
        """Return a count by its name, or a number of the architecture: "attention.kv_heads".

        Raises
        ------
        UnknownNameError
            If there is no such count, and no such number.

        >>> from mlsim import Models, show
        >>> show(Models.Llama3_8B, "attention.kv_heads").name
        'attention.kv_heads of Llama 3.1 8B'
        """
        if name in self._counts:
            found = getattr(self, name)
            counted: Quantity = found() if callable(found) else found
            return counted
        part: Any = self
        for each in name.split("."):
            held = getattr(part, "__dataclass_fields__", ())
            part = getattr(part, each) if each in held else None
        if type(part) is not int:
            raise unknown_name("count of a model", name, self._counts)
        return of_base(part, "1", partial(self._written, name))

    def _written(self, what: str, value: Quantity) -> Origin:
        name = f"{what} of {self.name}"
        brief = f"{name}: {value.text}; architecture from {self._document}"
        return Origin(name, brief, brief)

    @property
    def release_year(self) -> int | None:
        """The year in which it was published, if its file says so."""
        figure = self.figures.get("release_year")
        return int(figure.value) if figure else None

    @property
    def training_tokens(self) -> Quantity | None:
        """Tokens that it was trained on, as published; None if its file does not say.

        >>> from mlsim import Models
        >>> model = Models.Llama3_8B
        >>> print((model.training_tokens / model.parameters).show(".0f", None))
        1868
        """
        figure = self.figures.get("training_tokens")
        return figure.of(self.name, "training tokens") if figure else None

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self.parameter_count:,} parameters>"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Network(Model):
    """A network described layer by layer.

    Totals (parameters, FLOPs, traffic) are derived from the layers. `sample` says
    what one sample is where it is not one picture. `modules` names the layers that are
    modules in the program it was written as, where not all are: what a summary lists.

    >>> from mlsim import Models
    >>> Models.ResNet50.parameter_count
    25557032
    """

    input: Shape
    layers: tuple[Layer, ...]
    sample: str = ""
    modules: tuple[str, ...] = ()

    @cached_property
    def operators(self) -> NetworkOperators:
        """Every operator in the order in which it runs."""
        shape = self.input
        found: list[Operator] = []
        for layer in self.layers:
            lowered = layer.lower(shape)
            found.extend(lowered.operators)
            shape = lowered.output
        return NetworkOperators(tuple(found))

    @cached_property
    def parameter_count(self) -> int:
        """Learned numbers in the network."""
        held = sum(operator.parameters * operator.repeats for operator in self.operators)
        return held + self.operators.table_parameters

    @cached_property
    def flop_count(self) -> int:
        """FLOP of one forward pass for one sample; a multiply-add is two."""
        each = sum(operator.multiply_adds * operator.repeats for operator in self.operators)
        return int(FLOPS_PER_MULTIPLY_ADD) * each

    _counts: ClassVar[tuple[str, ...]] = ("parameters", "inference_flops")

    @property
    def parameters(self) -> Quantity:
        """Learned numbers in the network, as a value."""
        what = f"the parameters of its {len(self.operators)} operators"
        return self.counted(self.parameter_count, "parameter", "parameters", what)

    @property
    def inference_flops(self) -> Quantity:
        """FLOP of one forward pass for one sample, as a value."""
        what = f"twice the multiply-adds of its {len(self.operators)} operators"
        return self.counted(self.flop_count, "FLOP", "work per sample", what)
