"""What every model has, and networks of layers, as of a CNN, which are lowered to operators.

An operator is what runs as one kernel: a convolution with its normalization,
activation and residual addition is one operator. It is described by counts for
one sample, so batch and precision come in later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from mlsim.equations import roofline
from mlsim.errors import InvalidValueError, Suggesting, unknown_name
from mlsim.precision import Precision
from mlsim.records import Figure
from mlsim.values import Origin, literal, of_base

if TYPE_CHECKING:
    from mlsim.values.kinds import Quantity


# The columns that equations take, by their names in the vocabulary.
COLUMNS = ("multiply_adds", "parameters", "activations_read", "activations_written", "repeats")
# One more, of a network that looks rows of tables up.
TABLES = "table_parameters"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, counted for one sample.

    Attributes
    ----------
    name, kind
        Such as "conv2.1.a" and "convolution".
    multiply_adds
        MAC per sample, of matrix products and convolutions only.
    parameters
        Learned numbers it holds, all of which a step reads.
    activations_read, activations_written
        Elements per sample that it reads and writes.
    activations_live
        Elements per sample alive while it runs: those it reads and writes, and
        those kept for a later operator.
    repeats
        How often this very operator stands in the network.
    outputs
        Columns of the matrix product that it is: output channels of a
        convolution, which has a row for each pixel; 0 if it is no product.
    table_parameters
        Learned numbers that it holds besides, in tables of which a sample reads a
        few rows. Those are among what it reads.
    """

    name: str
    kind: str
    multiply_adds: int = 0
    parameters: int = 0
    activations_read: int = 0
    activations_written: int = 0
    activations_live: int = 0
    repeats: int = 1
    outputs: int = 0
    table_parameters: int = 0


Row_co = TypeVar("Row_co", covariant=True)


@dataclass(frozen=True, eq=False)
class OperatorTable(Generic[Row_co]):
    """Operators of any kind as columns: of a network, of a step, of a training run.

    Attributes
    ----------
    operators
        One object for each row.
    counted
        Those of its attributes that equations take, by their names in the vocabulary.
    extra
        Columns beside them, such as the peaks of a device.
    cache
        What solvers have worked out for this table, to be used again.

    >>> from mlsim import Models
    >>> Models.ResNet50.operators.columns["parameters"][0]
    9536.0
    """

    operators: tuple[Row_co, ...]
    counted: tuple[str, ...]
    extra: Mapping[str, Sequence[float]] = field(default_factory=dict)
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Iterator[Row_co]:
        return iter(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return (*self.counted, *self.extra)

    @cached_property
    def columns(self) -> dict[str, list[float]]:
        """One list of floats for each of `names`."""
        counted = {
            name: [float(getattr(operator, name)) for operator in self.operators]
            for name in self.counted
        }
        return {**counted, **{name: list(values) for name, values in self.extra.items()}}

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The columns as NumPy arrays of shape (operators,)."""
        import numpy as np

        return {name: np.array(values) for name, values in self.columns.items()}

    @cached_property
    def columns_2d(self) -> dict[str, Any]:
        """The columns as NumPy arrays of shape (operators, 1), for arrays of points."""
        return {name: values[:, None] for name, values in self.arrays.items()}


# Of what has been added up already.
NO_OPERATORS: OperatorTable[Any] = OperatorTable((), ())


@dataclass(frozen=True, eq=False)
class NetworkOperators(OperatorTable[Operator]):
    """The operators of a network, which can be merged and fused."""

    counted: tuple[str, ...] = COLUMNS

    @cached_property
    def with_outputs(self) -> NetworkOperators:
        """The same table with a column for the width of each matrix product."""
        return NetworkOperators(self.operators, (*COLUMNS, "outputs"))

    @cached_property
    def with_tables(self) -> NetworkOperators:
        """The same table with a column for the parameters of tables, if it has any."""
        if not self.table_parameters or TABLES in self.names:
            return self
        return NetworkOperators(self.operators, (*self.counted, TABLES), self.extra)

    @cached_property
    def with_live(self) -> NetworkOperators:
        """The same table with what decides whether a cache can keep the activations.

        Columns for what is alive while each operator runs, and for what it moves into
        or out of the network: the first one's input, the last one's output, and rows of
        tables, which are looked up in memory.
        """
        edges = [op.activations_read if _looks_up(op) else 0 for op in self.operators]
        edges[0] = self.operators[0].activations_read
        edges[-1] += self.operators[-1].activations_written
        live = [op.activations_live for op in self.operators]
        extra = {**self.extra, "operator_live": live, "boundary_elements": edges}
        return NetworkOperators(self.operators, self.counted, extra)

    @cached_property
    def table_parameters(self) -> int:
        """Learned numbers in tables of which a sample reads a few rows."""
        return sum(operator.table_parameters * operator.repeats for operator in self.operators)

    @cached_property
    def activations_live(self) -> int:
        """Most elements per sample that are alive at one time."""
        return max(operator.activations_live for operator in self.operators)

    @cached_property
    def merged(self) -> NetworkOperators:
        """The same operators with equal ones in one row, counted by `repeats`.

        A row has the name of its first operator, and the peak of live
        activations, which don't enter the sums.
        """
        rows: dict[Operator, tuple[str, int]] = {}
        for operator in self.operators:
            row = replace(operator, name="", activations_live=self.activations_live, repeats=1)
            name, count = rows.get(row, (operator.name, 0))
            rows[row] = (name, count + operator.repeats)
        return NetworkOperators(
            tuple(replace(row, name=name, repeats=count) for row, (name, count) in rows.items())
        )

    @cached_property
    def fused(self) -> NetworkOperators:
        """The whole network as one operator that moves compulsory bytes only.

        Weights once, the first operator's input, the last one's output. Rows of
        tables once for all samples, which may all look the same ones up.
        """
        first, last = self.operators[0], self.operators[-1]
        looked_up = [op for op in self if _looks_up(op)]
        rows = sum(op.activations_read * op.repeats for op in looked_up)
        whole = Operator(
            name="network",
            kind="network",
            multiply_adds=sum(op.multiply_adds * op.repeats for op in self),
            parameters=sum(op.parameters * op.repeats for op in self) + rows,
            activations_read=first.activations_read,
            activations_written=last.activations_written,
            activations_live=self.activations_live,
            table_parameters=self.table_parameters - rows,
        )
        return NetworkOperators((whole,))


def _looks_up(operator: Operator) -> bool:
    """Tell whether an operator reads rows of a table."""
    return operator.kind == "embedding" and operator.table_parameters > 0


@dataclass(frozen=True, slots=True)
class Shape:
    """A feature map for one sample: channels, and pixels along one side.

    With `rank=1` it is a sequence instead: `channels` numbers of `size` tokens, or
    of as many moments of a sound.

    >>> Shape(64, 56).elements
    200704
    >>> Shape(768, 197, rank=1).elements
    151296
    """

    channels: int
    size: int
    rank: int = 2

    @property
    def places(self) -> int:
        """Pixels of the map, or tokens of the sequence."""
        return int(self.size**self.rank)

    @property
    def elements(self) -> int:
        """Numbers that it holds."""
        return self.channels * self.places


class Layer(Protocol):
    """What an architecture is a list of: a layer, or a stage of several."""

    @property
    def name(self) -> str:
        """What its operators are called, or what their names begin with."""

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Return its operators for an input, and the shape that it puts out."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """The operators of a layer and the shape that it puts out.

    Of one layer by itself, also which it is and the shape that it took in.
    """

    operators: tuple[Operator, ...]
    output: Shape
    layer: Layer | None = None
    input: Shape | None = None


def one_kernel(
    name: str,
    kind: str,
    read: int,
    output: Shape,
    also_live: int,
    *,
    of: tuple[Layer | None, Shape | None] = (None, None),
    **counts: int,
) -> Lowered:
    """Return what is one operator: it reads so many elements, and writes its output.

    `of` has the layer that it is by itself, and the shape that it took in.
    """
    written = output.elements
    moved = {"activations_read": read, "activations_written": written}
    live = read + written + also_live
    operator = Operator(name=name, kind=kind, activations_live=live, **moved, **counts)
    return Lowered((operator,), output, *of)


def _output_size(shape: Shape, kernel: int, stride: int, padding: int, name: str) -> int:
    size = int(roofline.output_size(shape.size, padding, kernel, stride))
    if size < 1:
        raise InvalidValueError(
            f"layer {name}: a window of {kernel} does not fit in an input of "
            f"{shape.size} pixels with padding {padding}."
        )
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution, with what runs in the same kernel.

    Batch normalization is folded at inference: it adds a scale and a shift per
    channel to the parameters. `adds_residual` reads a second input of the
    output's shape. An `activation` function, such as "relu", costs no traffic of its own.
    `joined` counts the pairs of an input map and an output map that have a
    window between them, where not all have (0: all).
    """

    name: str
    out_channels: int
    kernel: int
    stride: int = 1
    padding: int = 0
    groups: int = 1
    bias: bool = False
    batch_norm: bool = False
    adds_residual: bool = False
    joined: int = 0
    activation: str = ""

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it; `also_live` elements stay alive for others meanwhile.

        Raises
        ------
        InvalidValueError
            If the window does not fit, the groups don't divide the channels, or
            more maps are joined than there are pairs of.
        """
        if shape.channels % self.groups or self.out_channels % self.groups:
            raise InvalidValueError(
                f"layer {self.name}: {self.groups} groups don't divide "
                f"{shape.channels} input and {self.out_channels} output channels."
            )
        pairs = shape.channels * self.out_channels
        if self.joined and (self.groups > 1 or not self.out_channels <= self.joined <= pairs):
            raise InvalidValueError(
                f"layer {self.name}: joined = {self.joined} pairs of maps can't be, with "
                f"{self.groups} groups. It is from {self.out_channels}, one for each output, to "
                f"{pairs}, all, and has no groups. Leave it out if all maps are joined."
            )
        size = _output_size(shape, self.kernel, self.stride, self.padding, self.name)
        output = Shape(self.out_channels, size, shape.rank)
        weights, multiply_adds = self._count(shape, size)
        read = shape.elements + (output.elements if self.adds_residual else 0)
        return one_kernel(
            self.name,
            "convolution",
            read,
            output,
            also_live,
            of=(self, shape),
            multiply_adds=multiply_adds,
            parameters=weights + self.out_channels * (self.bias + 2 * self.batch_norm),
            # Groups of channels are products of their own, too narrow to be run as such.
            outputs=self.out_channels if self.groups == 1 and not self.joined else 0,
        )

    def _count(self, shape: Shape, size: int) -> tuple[int, int]:
        """Return the weights, and the multiply-adds for an output of `size`."""
        if shape.rank == 1:
            from mlsim.equations import transformer

            # Along a sequence a window is a row of numbers: a matrix product.
            window = self.kernel * shape.channels // self.groups
            weights = int(transformer.projection_parameters(window, self.out_channels))
            return weights, int(transformer.token_multiply_adds(weights)) * size
        out, kernel, channels = self.out_channels, self.kernel, shape.channels
        if self.joined:
            # As many windows as one output would have that sees so many maps.
            out, channels = 1, self.joined
        weights = roofline.parameters(kernel, channels, out, self.groups)
        done = roofline.multiply_adds(size, out, kernel, channels, self.groups)
        return int(weights), int(done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pooling layer: no FLOPs that count, but traffic.

    `kernel=0` pools over the whole feature map, of which it takes the mean; a window gives
    its maximum unless `mean` says otherwise. It has no parameters unless it is `trained`:
    then it adds up its window, and has a factor and a bias for each map, as in 1998.
    The `activation` function after it, such as "relu", is part of it.
    """

    name: str
    kernel: int = 0
    stride: int = 1
    padding: int = 0
    trained: bool = False
    mean: bool = False
    activation: str = ""

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator."""
        size = 1
        if self.kernel:
            size = _output_size(shape, self.kernel, self.stride, self.padding, self.name)
        output = Shape(shape.channels, size, shape.rank)
        held, moved = 2 * shape.channels * self.trained, (shape.elements, output, also_live)
        return one_kernel(self.name, "pooling", *moved, of=(self, shape), parameters=held)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseNorm:
    """A local response normalization over neighboring channels, as in AlexNet.

    No parameters, and a few FLOP for each element that we don't count; it is a
    kernel of its own, which reads and writes all of them.
    """

    name: str

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator."""
        moved = (shape.elements, shape, also_live)
        return one_kernel(self.name, "normalisation", *moved, of=(self, shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout:
    """Dropout: in training some numbers, or with `maps` whole maps, are set to zero.

    At inference it does nothing, so that it is no operator; what it keeps for the way back
    stands in the computation graph.

    >>> Dropout(name="drop").lower(Shape(20, 8)).operators
    ()
    """

    name: str
    maps: bool = False

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to nothing: it puts out what came in."""
        return Lowered((), shape, self, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A fully connected layer over all elements of its input, flattened.

    The `activation` function after it, such as "relu", is part of it.
    """

    name: str
    out_features: int
    bias: bool = True
    activation: str = ""

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator: a convolution of one pixel."""
        inputs, outputs = shape.elements, self.out_features
        return one_kernel(
            self.name,
            "linear",
            inputs,
            Shape(outputs, 1),
            also_live,
            of=(self, shape),
            multiply_adds=int(roofline.multiply_adds(1, outputs, 1, inputs, 1)),
            parameters=int(roofline.parameters(1, inputs, outputs, 1)) + outputs * self.bias,
            outputs=outputs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """How far its input is from a fixed vector of each class, squared.

    The radial basis functions at the end of LeNet-5. The vectors are drawn by
    hand, not learned, but held like parameters; a difference that is squared and
    added counts as one multiply-add.
    """

    name: str
    classes: int

    def lower(self, shape: Shape, also_live: int = 0) -> Lowered:
        """Lower it to one operator."""
        inputs, moved = shape.elements, (shape.elements, Shape(self.classes, 1), also_live)
        return one_kernel(
            self.name,
            "distances",
            *moved,
            of=(self, shape),
            multiply_adds=int(roofline.multiply_adds(1, self.classes, 1, inputs, 1)),
            parameters=int(roofline.parameters(1, inputs, self.classes, 1)),
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The formats of a published checkpoint, where they are not 16 bits throughout.

    Attributes
    ----------
    weights
        The format of what is quantized, scales and zero points included.
    activations, kv_cache
        Formats in which its products take their inputs, and in which it keeps keys and
        values; "" for 16 bits.
    operators
        Operators whose weights are in another format, by name.
    where
        Where that is said.

    >>> from mlsim import Models
    >>> print(Models.GPT_OSS_120B.released)
    mxfp4 in the experts, 16 bits elsewhere
    """

    weights: Precision
    activations: str = ""
    kv_cache: str = ""
    operators: tuple[tuple[str, Precision], ...] = ()
    covers: str = "linear"
    where: str = ""

    def __str__(self) -> str:
        others = dict.fromkeys(each.name for _, each in self.operators)
        if self.covers == "experts":
            return f"{self.weights.name} in the experts, 16 bits elsewhere"
        words = f"weights in {self.weights.name}"
        return f"{words}; some in {', '.join(others)}" if others else words
