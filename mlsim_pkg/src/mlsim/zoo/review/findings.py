"""What a check has to say about a figure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has to say about a figure.

    `figure` names it by its table, such as "memory.bandwidth". An error breaks
    a rule; what is no error is worth knowing.
    """

    figure: str
    message: str
    error: bool = True
