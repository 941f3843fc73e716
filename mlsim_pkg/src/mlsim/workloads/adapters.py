"""Low-rank adapters: two narrow matrices beside a frozen one (LoRA), for training and serving.

The matrices that may have them are named as Hugging Face's PEFT names them for Llama, whatever a
model calls its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from mlsim.equations import transformer as count
from mlsim.errors import InvalidValueError, WrongKindError, check_whole, unknown_name
from mlsim.precision import PRECISIONS
from mlsim.workloads.blocks import Attention, FeedForward, LatentAttention
from mlsim.workloads.steps import Parallelism, StepOperator

if TYPE_CHECKING:
    from mlsim.workloads.language import Transformer


ALL = "all-linear"
# What latent attention calls the matrices that others don't have.
_LATENT = {
    "query reduction": "q_a_proj",
    "queries": "q_b_proj",
    "key and value compression": "kv_a_proj",
    "keys and values": "kv_b_proj",
    "attention output": "o_proj",
}
_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
_FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")
_OWN = tuple(each for each in _LATENT.values() if each not in _ATTENTION)
TARGETS = (*_ATTENTION, *_FEED_FORWARD, *_OWN)
# Names of several matrices; of latent attention, its own.
GROUPS = {"attention": (*_ATTENTION, *_OWN), "feed-forward": _FEED_FORWARD, ALL: TARGETS}

# NF4 with double quantization: 4 bits of a value; a constant in 8 bits for each block of 64, and
# one in 32 bits for each 256 of these [Dettmers et al., 2023, section 3].
NF4: Mapping[str, float] = {
    "value_bytes": PRECISIONS["fp4"].bytes,
    "block_parameters": 64.0,
    "constant_bytes": PRECISIONS["fp8"].bytes,
    "block_constants": 256.0,
    "second_constant_bytes": PRECISIONS["fp32"].bytes,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoRA:
    """Low-rank adapters of a language model, in the words of Hugging Face's PEFT.

    Beside a frozen matrix stand two narrow ones: the first takes what the matrix reads to
    `rank` numbers, the second takes these to what it writes, where they are added. Only these
    two are trained [Hu et al., 2021].

    Parameters
    ----------
    rank
        Numbers between the two matrices.
    targets
        Which matrices have adapters: names such as "q_proj" and "v_proj", or a group:
        "attention", "feed-forward", or "all-linear", which are all matrices of the layers but
        the router of experts. One name, or several.

    Raises
    ------
    InvalidValueError
        If the rank is no whole number from 1 up, or targets are none, or named twice.
    UnknownNameError
        If there is no such target; suggests the nearest.

    >>> from mlsim import Models
    >>> LoRA(rank=8, targets=("q_proj", "v_proj")).parameters(Models.Llama2_7B)
    4194304
    """

    rank: int
    targets: str | tuple[str, ...] = ALL

    # Whether the frozen matrices are kept in 4 bits.
    quantized: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", check_whole("rank", self.rank))
        object.__setattr__(self, "targets", _targets(self.targets))

    def parameters(self, model: Transformer) -> int:
        """Return the numbers that are trained in a whole model.

        Raises
        ------
        InvalidValueError, WrongKindError
            As `adapted`.
        """
        return int(sum(each.size * each.held * each.layers for each in adapted(model, self)))

    def __str__(self) -> str:
        return f"{type(self).__name__} of rank {self.rank:,} on {', '.join(self.targets)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QLoRA(LoRA):
    """The same beside matrices that are frozen in NF4, with double quantization.

    They take 4 bits, and 8 for each block of 64, and 32 for each 256 blocks. They are turned
    into 16 bits to compute with them; embeddings, norms, routers and the output layer stay as
    they are [Dettmers et al., 2023].

    >>> QLoRA(rank=16) == LoRA(rank=16)
    False
    """

    quantized: ClassVar[bool] = True


def check_adapters(adapters: Any) -> LoRA | None:
    """Return adapters; refuse what is none.

    Raises
    ------
    WrongKindError
        If it is neither a `LoRA` nor None.
    """
    if adapters is None or isinstance(adapters, LoRA):
        return adapters
    raise WrongKindError(
        f"adapters must be LoRA(rank=16) or QLoRA(rank=16), with targets=... for some of the "
        f"matrices, not {adapters!r}. Both are in mlsim."
    )


def _targets(targets: Any) -> tuple[str, ...]:
    """Return the names of targets; refuse none, unknown ones, and one that is named twice."""
    several = isinstance(targets, Iterable) and not isinstance(targets, (str, bytes, dict))
    names = tuple(targets) if several else (targets,)
    if not names:
        raise InvalidValueError(f"targets must name a matrix or more, such as {ALL!r}.")
    for name in names:
        if not isinstance(name, str) or (name not in GROUPS and name not in TARGETS):
            raise unknown_name("target of adapters", name, (*GROUPS, *TARGETS))
    meant = [each for name in names for each in GROUPS.get(name, (name,))]
    twice = [each for each in dict.fromkeys(meant) if meant.count(each) > 1]
    if twice:
        raise InvalidValueError(
            f"targets = {names!r} names {twice[0]} twice: leave one of them out."
        )
    return names


@dataclass(frozen=True, slots=True)
class Adapted:
    """A matrix with an adapter, on one device.

    Attributes
    ----------
    target, operator
        Such as "q_proj", and the operator of the model's step of which it is a part.
    inputs, outputs, rank
        Numbers that it reads and writes for a token, and those between the adapter's two.
    layers
        Layers of the model that have it.
    held, met
        In a layer, how many a device holds and how many work on a token there: of experts, more
        than one, or less.
    """

    target: str
    operator: str
    inputs: int
    outputs: int
    layers: int
    rank: int = 0
    held: float = 1
    met: float = 1

    @property
    def size(self) -> int:
        """Parameters of one such adapter."""
        return int(count.adapter_size(self.rank, self.inputs, self.outputs))


@lru_cache(maxsize=256)
def adapted(
    model: Transformer, adapters: LoRA, parallelism: Parallelism | None = None
) -> tuple[Adapted, ...]:
    """Return the matrices of a model that have an adapter, as one device holds them.

    Where tensor parallelism divides what a matrix writes, the adapter's first matrix is whole on
    each device; where it divides what is read, its second is.

    Raises
    ------
    InvalidValueError
        If the model has none of a target, or a matrix is narrower than the rank.
    WrongKindError
        If it is no language model.

    >>> from mlsim import Models
    >>> from mlsim.workloads.adapters import LoRA
    >>> [each.target for each in adapted(Models.GPT2, LoRA(rank=4, targets="feed-forward"))]
    ['up_proj', 'down_proj']
    """
    check_language(model, adapters)
    whole = tuple(_matrices(model, Parallelism()))
    there = {each.target for each in whole}
    chosen: set[str] = set()
    for name in adapters.targets:
        found = there & set(GROUPS.get(name, (name,)))
        if not found:
            raise InvalidValueError(
                f"targets = {name!r}: {model.name} has no such matrix. It has: "
                f"{', '.join(each for each in TARGETS if each in there)}."
            )
        chosen |= found
    sides = ((min(each.inputs, each.outputs), each) for each in whole if each.target in chosen)
    most, narrow = min(sides, key=itemgetter(0))
    if adapters.rank > most:
        raise InvalidValueError(
            f"rank = {adapters.rank:,}: {narrow.target} of {model.name} is {narrow.inputs:,} x "
            f"{narrow.outputs:,}, so an adapter of it can have a rank of at most {most:,}. Usual "
            "are 4 to 64."
        )
    on_device = _matrices(model, parallelism or Parallelism())
    return tuple(replace(each, rank=adapters.rank) for each in on_device if each.target in chosen)


def check_language(model: Any, adapters: LoRA) -> None:
    """Refuse adapters of a model whose matrices are not those of a language model.

    Raises
    ------
    WrongKindError
        Saying what has such matrices.
    """
    if not hasattr(model, "mixers"):
        raise WrongKindError(
            f"adapters = {adapters}: {model.name} is a network of layers, of which none is known "
            "here that adapters stand beside. They do beside the matrices of a language model, "
            "such as Llama3_8B. Leave adapters out to train all weights."
        )


def widest(model: Transformer, parallelism: Parallelism) -> float:
    """Return the parameters of the largest matrix of the layers, on one device."""
    return float(max(each.inputs * each.outputs for each in _matrices(model, parallelism)))


def _matrices(model: Transformer, parallelism: Parallelism) -> Iterator[Adapted]:
    """Yield the matrices of the layers, as one device holds them."""
    tensor, hidden = parallelism.tensor, model.hidden
    for layers, mixer in model.mixers:
        if isinstance(mixer, LatentAttention):
            for name, inputs, outputs, _, _ in mixer.matrices(hidden, mixer.heads // tensor):
                whole = name == "queries" and not mixer.query_rank
                target = "q_proj" if whole else _LATENT[name]
                yield Adapted(target, name, inputs, outputs, layers)
        elif isinstance(mixer, Attention):
            for target, name, inputs, outputs in _of_attention(mixer, hidden, tensor):
                yield Adapted(target, name, inputs, outputs, layers)
    for layers, feed in model.feeds:
        if isinstance(feed, FeedForward):
            yield from _of_feed(feed, hidden, feed.size // tensor, layers, "feed-forward")
            continue
        # A device has whole experts, or slices of more of them.
        slices, width = max(tensor // parallelism.expert, 1), feed.width(hidden)
        for each in _of_feed(feed.expert, width, feed.size // slices, layers, "experts"):
            met = feed.per_token * slices / tensor
            yield replace(each, held=feed.count // parallelism.expert, met=met)
        if feed.shared_expert:
            size = feed.shared_expert.size // tensor
            yield from _of_feed(feed.shared_expert, hidden, size, layers, "shared expert")


def _of_attention(
    mixer: Attention, hidden: int, tensor: int
) -> Iterator[tuple[str, str, int, int]]:
    """Yield target, operator, inputs and outputs of each matrix."""
    heads, kv_heads = mixer.heads // tensor, max(mixer.kv_heads // tensor, 1)
    mixed = heads * mixer.value_width
    first = "queries" if mixer.shared_cache else "queries, keys, values"
    # A gate on the output is a part of the matrix that makes queries.
    yield "q_proj", first, hidden, heads * mixer.head_size + mixer.output_gate * mixed
    if not mixer.shared_cache:
        yield "k_proj", first, hidden, kv_heads * mixer.head_size
        if not mixer.values_from_keys:
            yield "v_proj", first, hidden, kv_heads * mixer.value_width
    yield "o_proj", "attention output", mixed, hidden


def _of_feed(
    feed: FeedForward, hidden: int, size: int, layers: int, name: str
) -> Iterator[Adapted]:
    for target in _FEED_FORWARD[:-1] if feed.gated else _FEED_FORWARD[1:-1]:
        yield Adapted(target, f"{name}, up", hidden, size, layers)
    yield Adapted("down_proj", f"{name}, down", size, hidden, layers)


KIND = "adapter"


@lru_cache(maxsize=256)
def adapter_operators(
    model: Transformer, adapters: LoRA, many: int, parallelism: Parallelism
) -> tuple[tuple[StepOperator, float], ...]:
    """Return the operators of so many adapters, and parameters of one adapter in each.

    An adapter is two products: from a matrix's inputs to its rank, and to the outputs, which
    are added to those of the matrix.

    Raises
    ------
    InvalidValueError
        As `mlsim.workloads.adapters.adapted`.

    >>> from mlsim import LoRA, Models
    >>> rows = adapter_operators(Models.Llama3_8B, LoRA(rank=16, targets="q_proj"), 10,
    ...                          Parallelism())
    >>> [(each.name, int(size)) for each, size in rows]
    [('adapter of q_proj, in', 65536), ('adapter of q_proj, out', 65536)]
    """
    rows = []
    for each in adapted(model, adapters, parallelism.of_weights):
        inputs, rank, outputs = each.inputs, each.rank, each.outputs
        # What goes out is added to what the matrix has written.
        for end, sides, elements in (
            ("in", (inputs, rank), inputs + rank),
            ("out", (rank, outputs), rank + 2 * outputs),
        ):
            size = int(count.projection_parameters(*sides))
            made = StepOperator(
                name=f"adapter of {each.target}, {end}",
                kind=KIND,
                token_multiply_adds=int(count.token_multiply_adds(size)),
                outputs=sides[1],
                parameters=many * size,
                token_elements=elements,
                repeats=each.layers,
                resident_repeats=each.layers / parallelism.pipeline,
                unquantised=True,
            )
            rows.append((made, float(size)))
    return tuple(rows)
