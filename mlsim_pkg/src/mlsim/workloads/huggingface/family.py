"""What a family of language models on Hugging Face is: how its keys make an architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsim.workloads.huggingface import ignored
from mlsim.workloads.huggingface.values import NEEDED, Config


@dataclass(frozen=True)
class Family:
    """What a `model_type` means.

    `build` makes the arguments of a Transformer. `keys` has what it reads, each
    with its default; `spellings` other names of a key, the usual one first;
    `fixed` values that can't be otherwise; `without_effect` keys that change no count,
    each with the reason why; `modules` what the family's code calls a part of a layer.
    """

    build: Callable[[Config], dict[str, Any]]
    keys: Mapping[str, Any]
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    without_effect: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)

    @property
    def understood(self) -> set[str]:
        """All names of keys that this family gives a meaning, or knows to have none."""
        named = {name for names in self.spellings.values() for name in names}
        return named.union(
            self.without_effect, ignored.IGNORED, self.keys, self.fixed, ignored.FIXED
        )


def plain_keys(context: int, *, tied: bool, **more: Any) -> dict[str, Any]:
    """Return the keys that each family has, and more."""
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    return {
        **dict.fromkeys(sizes, NEEDED),
        "max_position_embeddings": context,
        "tie_word_embeddings": tied,
        **more,
    }


def gated_keys(
    context: int, *, tied: bool = False, kv_heads: int | None, **more: Any
) -> dict[str, Any]:
    """Return the keys of a family with grouped-query attention and a gated network."""
    head = {"num_key_value_heads": kv_heads, "head_dim": None, "intermediate_size": NEEDED}
    return plain_keys(context, tied=tied, **(head | more))
