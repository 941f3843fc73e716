"""A language model's step: how devices share it, what makes it shorter, and its operators.

Operators are counted for one token on one device: how many tokens there are, and how many are
cached, comes in later. A service may switch on a draft, or memory of the host.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from mlsim.equations import transformer as count
from mlsim.errors import InvalidValueError, WrongKindError, check_whole

# Ways to divide a model, its batch or a sequence, each of which takes a number of devices.
SIZES = ("tensor", "pipeline", "data", "context", "expert")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How a model and its batch are divided among devices.

    Attributes
    ----------
    tensor, pipeline, data, context, expert
        Devices that share each matrix; stages that share the layers; copies that
        share the batch; devices that share each sequence; groups over which the
        experts of a layer are spread.
    interleaved
        Parts of the model, not adjacent, that each stage holds.
    sequence
        Whether what lies between matrices is divided among the tensor devices too.
    shard
        What copies divide among themselves: "none", "zero1" (optimizer state),
        "zero2" (and gradients), "zero3" (and weights; FSDP).

    >>> Parallelism(tensor=8, pipeline=2, data=4).devices
    64
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    expert: int = 1
    interleaved: int = 1
    sequence: bool = False
    shard: str = "none"

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Parallelism:
        """Return the layout whose sizes have the names of arguments; others count one.

        >>> Parallelism.of({"pipeline_parallel": 8, "batch_size": 64}).pipeline
        8
        """
        return cls(**{size: asked.get(f"{size}_parallel", 1) for size in SIZES})

    @property
    def sizes(self) -> dict[str, int]:
        """Its sizes by the names that arguments and quantities have.

        >>> Parallelism(data=8).sizes["data_parallel"]
        8
        """
        return {f"{size}_parallel": getattr(self, size) for size in SIZES}

    @property
    def devices(self) -> int:
        """Devices that it needs."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def stage_devices(self) -> int:
        """Devices of one stage: so far apart are neighbors in a pipeline numbered."""
        return self.tensor * self.data * self.context

    @property
    def copies(self) -> int:
        """Devices that hold the same part of the weights, or shards of it."""
        return self.data * self.context

    @property
    def expert_replicas(self) -> int:
        """Copies of the attention part that share one set of experts."""
        return max(1, self.expert // self.tensor)

    @property
    def of_weights(self) -> Parallelism:
        """The sizes that decide which part of the weights a device holds.

        All that a model's operators depend on: runs that differ in the rest share them.
        """
        return Parallelism(
            tensor=self.tensor, pipeline=self.pipeline, data=self.data, expert=self.expert
        )

    def __str__(self) -> str:
        names = {"TP": "tensor", "CP": "context", "PP": "pipeline", "DP": "data", "EP": "expert"}
        sizes = {short: getattr(self, name) for short, name in names.items()}
        words = [f"{short}{size}" for short, size in sizes.items() if size > 1]
        words += [f"{self.interleaved} parts a stage"] if self.interleaved > 1 else []
        words += ["sequence parallel"] if self.sequence else []
        words += [self.shard] if self.shard != "none" else []
        return " ".join(words) or "1 device"


# More drafted tokens than anybody checks at once.
_MOST_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: a draft guesses tokens, and the model checks them in one step.

    Parameters
    ----------
    tokens
        Tokens that are drafted before each check.
    acceptance
        Chance that a drafted token is accepted, given that those before it are: from 0 to 1.
        It belongs to the two models and to the text, and has to be measured.
    draft
        The model that drafts: a record of the zoo, or its name. It reads the prompts, too, and
        keeps a cache of its own.
    cost
        In place of a draft: time of one of its steps over that of a step of the model, such as
        0.05 for a small head, or 0 for looking tokens up. Its memory is not counted.
    precision
        Number format of the draft; by default what it was released in.

    Raises
    ------
    InvalidValueError
        If a number can't be.
    WrongKindError
        If neither or both of draft and cost are given.

    >>> Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7).tokens
    4
    """

    tokens: int = 4
    acceptance: float
    draft: Any = None
    cost: float | None = None
    precision: Any = None

    def __post_init__(self) -> None:
        check_whole("tokens of a draft", self.tokens, most=_MOST_TOKENS)
        _check_share("acceptance", self.acceptance)
        if (self.draft is None) == (self.cost is None):
            have = "neither" if self.draft is None else "both"
            raise WrongKindError(
                f"speculation has a draft, such as draft='Llama3_8B', or what a step of it costs, "
                f"such as cost=0.05; given is {have}."
            )
        if self.cost is not None and not (_is_number(self.cost) and 0 <= self.cost < 1):
            raise InvalidValueError(
                "cost of a draft must be a share of a step of the model, from 0 to below 1, not "
                f"{self.cost!r}: a draft that takes as long can't save time."
            )
        if self.precision is not None and self.draft is None:
            raise WrongKindError("precision is that of a draft; with a cost alone leave it out.")

    @property
    def checked(self) -> int:
        """Tokens that a check works on: those drafted, and the one before them."""
        return self.tokens + 1

    def __str__(self) -> str:
        what = (
            f"cost {self.cost:g}" if self.draft is None else getattr(self.draft, "name", self.draft)
        )
        return f"{self.tokens} tokens from {what}, acceptance {self.acceptance:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """What lies in the host's memory, and comes over the host's link in each step.

    Parameters
    ----------
    cache, weights
        Shares of the KV cache and of the weights, from 0 to 1.
    overlap
        How far an operator's reading from the host overlaps with its reading of device memory:
        1 for all (the longer counts), 0 for none (their sum).

    Raises
    ------
    InvalidValueError
        If one is no share.

    >>> print(Offload(cache=0.3))
    30% of the cache and 0% of the weights on the host
    """

    cache: float = 0.0
    weights: float = 0.0
    overlap: float = 1.0

    def __post_init__(self) -> None:
        for name in ("cache", "weights", "overlap"):
            _check_share(f"{name} of an offload", getattr(self, name))

    def __str__(self) -> str:
        return f"{self.cache:.0%} of the cache and {self.weights:.0%} of the weights on the host"


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _check_share(name: str, value: Any) -> None:
    if not (_is_number(value) and 0 <= value <= 1):
        raise InvalidValueError(f"{name} must be a share from 0 to 1, such as 0.7, not {value!r}.")


# More tokens than any sequence has: no limit.
UNLIMITED = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOperator:
    """One operator of a step, counted for one device.

    Attributes
    ----------
    name, kind
        Such as "feed-forward, up" and "projection".
    token_multiply_adds, pair_multiply_adds
        MAC for each token; for each query and key that meet.
    outputs
        Of a matrix product, how many numbers come out for each token; else 0.
    absorbed_pair_multiply_adds, expand_multiply_adds
        Of latent attention: MAC for each pair in the compressed space; MAC that
        expand one cached token.
    parameters, parameters_streamed, parameters_routed
        Held; read in each step; in experts, of which chosen ones are read.
    token_elements, live_elements
        Elements of activation read and written, and alive, for each token.
    cached_elements
        Elements cached for each token.
    shared_cache
        Whether what it reads of the cache is kept, and was written, by an earlier layer.
    attention_window, cache_window, token_limit
        Most tokens that a token sees, and that are kept; most tokens of a sequence
        worked on.
    sequence_state
        Memory of what is kept of a sequence, however long it is.
    link_elements, link_group
        Elements of each token sent to other devices; how many devices take part.
    between_nodes
        Whether it is sent over the links between nodes.
    repeats, resident_repeats
        How often it stands in the model; how often it lies on one device.
    unquantised, wide_parameters
        Whether a quantized format leaves its parameters in 16 bits; how many of them
        stay so in any case: biases and norms.
    """

    name: str
    kind: str
    token_multiply_adds: int = 0
    pair_multiply_adds: int = 0
    outputs: int = 0
    absorbed_pair_multiply_adds: int = 0
    expand_multiply_adds: int = 0
    parameters: int = 0
    parameters_streamed: int = 0
    parameters_routed: int = 0
    token_elements: int = 0
    live_elements: int = 0
    cached_elements: float = 0
    shared_cache: bool = False
    attention_window: int = UNLIMITED
    cache_window: int = UNLIMITED
    sequence_state: float = 0.0
    token_limit: int = UNLIMITED
    link_elements: float = 0.0
    link_group: int = 0
    between_nodes: bool = False
    repeats: int = 1
    resident_repeats: float = 1.0
    unquantised: bool = False
    wide_parameters: int = 0

    @property
    def written_elements(self) -> float:
        """Elements that it adds to the cache for each token."""
        return 0 if self.shared_cache else self.cached_elements

    def compulsory(self) -> StepOperator:
        """Return it without the traffic that a perfect program could avoid."""
        return replace(self, token_elements=0, link_elements=0.0)

    def scoring(self, tokens: int) -> StepOperator:
        """Return it with scores for so many tokens of a sequence, if it is for the last only."""
        return replace(self, token_limit=tokens) if self.token_limit == 1 else self

    def holding(self, numbers: int) -> StepOperator:
        """Return it with learned numbers that a step reads, and that stay in 16 bits."""
        names = ("parameters", "parameters_streamed", "wide_parameters")
        held: dict[str, Any] = dict.fromkeys(names, numbers)
        return replace(self, **held)


def sent(name: str, elements: float, devices: int, **more: Any) -> StepOperator:
    """Return what so many devices send to one another, counted for each token."""
    apart = {"resident_repeats": 0.0, **more}
    return StepOperator(
        name=name, kind="network", link_elements=elements, link_group=devices, **apart
    )


# What names an operator, or decides on its columns.
_NOT_COLUMNS = (
    *("name", "kind", "outputs"),
    *("live_elements", "unquantised", "wide_parameters", "link_group", "shared_cache"),
    "between_nodes",
)
# The columns that equations take, by their names in the vocabulary.
STEP_COLUMNS = tuple(each.name for each in fields(StepOperator) if each.name not in _NOT_COLUMNS)


def matrix(
    name: str,
    inputs: int,
    outputs: int,
    *,
    bias: int = 0,
    adds: bool = False,
    elements: int | None = None,
    live: int | None = None,
) -> StepOperator:
    """Return a projection of each token.

    It holds `bias` more numbers, which quantization leaves alone. For each token it reads and
    writes `elements` of activation: its inputs and outputs, unless said, and with `adds` what
    they are added to. `live` of them are alive meanwhile: besides, unless said, the stream of
    which the inputs were made, as wide as they are.
    """
    weights = count.projection_parameters(inputs, outputs)
    moved = inputs + (1 + adds) * outputs
    return StepOperator(
        name=name,
        kind="projection",
        token_multiply_adds=count.token_multiply_adds(weights),
        outputs=outputs,
        parameters=weights + bias,
        parameters_streamed=weights + bias,
        wide_parameters=bias,
        token_elements=moved if elements is None else elements,
        live_elements=(moved if adds else moved + inputs) if live is None else live,
    )
