"""What is large is sampled: a seeded part of it in a plain run, all with `MLSIM_JUDGE=1`."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def sampled(those: Iterable[T], count: int, seed: int = 1) -> Sequence[T]:
    """Return so many of them, in their order, always the same; in `make judge` all."""
    found = list(those)
    if os.environ.get("MLSIM_JUDGE") or count >= len(found):
        return found
    places = random.Random(seed).sample(range(len(found)), count)
    return [found[place] for place in sorted(places)]
