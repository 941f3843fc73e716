"""Low-rank adapters: two narrow matrices beside a frozen one (LoRA), for training and serving."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar

from mlsim.errors import InvalidValueError, WrongKindError, unknown_name
from mlsim.precision import PRECISIONS
from mlsim.workloads.adapted import ALL, GROUPS, TARGETS, adapted

if TYPE_CHECKING:
    from mlsim.workloads.language import Transformer

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
        object.__setattr__(self, "rank", _rank(self.rank))
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


def _rank(rank: Any) -> int:
    wrong = InvalidValueError(f"rank must be a whole number from 1 up, such as 16, not {rank!r}.")
    if isinstance(rank, bool):
        raise wrong
    try:
        found = index(rank)
    except TypeError:
        raise wrong from None
    if found < 1:
        raise wrong
    return found


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
