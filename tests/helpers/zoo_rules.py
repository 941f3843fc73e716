"""What is on record, each with its file: a rule has one test, which lists all that break it."""

from __future__ import annotations

from typing import Any

from mlsim.records import DATA
from mlsim.zoo.spaces import Namespace, index


def records(*spaces: Namespace) -> list[tuple[str, Any]]:
    """Return each record of some spaces with the data file that it is in."""
    return [
        (str(path.relative_to(DATA)), space.get(key))
        for space in spaces
        for key, path in sorted(index(space._folder).items())
    ]
