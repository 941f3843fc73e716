"""Launches added up: those of one kernel with one grid and one block are one row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mlsim.profiling.measured_profile import MeasuredKernel, added


def kernels_of(launches: Iterable[MeasuredKernel]) -> tuple[MeasuredKernel, ...]:
    """Add launches up by name, grid and block; the longest kernel first.

    Whether launches did the same work is kept as the fact "spread": the most operations of a
    launch over the fewest.

    >>> one = MeasuredKernel("a", 1, 1.0, {"fp32": 2.0})
    >>> [(each.calls, each.facts["spread"]) for each in kernels_of([one, one])]
    [(2, 1.0)]
    """
    groups: dict[tuple[str, object, object], list[MeasuredKernel]] = {}
    for each in launches:
        key = (each.name, each.facts.get("grid"), each.facts.get("block"))
        groups.setdefault(key, []).append(each)
    found = [_one(group) for group in groups.values()]
    # Sorting is stable: what has no time keeps the order of the file.
    return tuple(sorted(found, key=lambda each: -(each.seconds or 0.0)))


def _one(group: list[MeasuredKernel]) -> MeasuredKernel:
    first = group[0]
    work = [sum(each.operations.values()) / each.calls for each in group if each.operations]
    spread = {"spread": max(work) / min(work)} if work and min(work) > 0 else {}
    if len(group) == 1:
        return replace(first, facts={**first.facts, **spread})
    whole = added(tuple(group), first.name)
    # What one launch lacks, their sum lacks.
    missing = {key: why for each in group for key, why in each.missing.items()}
    operations = dict(whole.operations)
    return replace(
        whole,
        operations=operations,
        sources=first.sources,
        missing={key: why for key, why in missing.items() if key not in whole.traffic},
        facts={**first.facts, **spread},
        kind=first.kind,
    )
