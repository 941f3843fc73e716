"""Layers of several kinds, from a data file: `[[mixers]]` and `[[feeds]]`.

Each entry says how many `layers` have a part of which `kind`. One that says no more
means the part of that name which the file describes by itself, such as `[attention]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from mlsim import records
from mlsim.errors import InvalidValueError, nearest
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.latent import LatentAttention
from mlsim.workloads.recurrent import DeltaRule, StateSpace

# What lets tokens see one another, and what treats each by itself.
KINDS: dict[str, dict[str, type[Any]]] = {
    "mixers": {
        "attention": Attention,
        "latent_attention": LatentAttention,
        "state_space": StateSpace,
        "delta_rule": DeltaRule,
    },
    "feeds": {"feed_forward": FeedForward, "experts": Experts},
}
Values = Callable[..., dict[str, Any]]


def layers_of_kinds(
    file: records.DataFile, name: str, own: Mapping[str, Any], values: Values
) -> tuple[tuple[int, Any], ...]:
    """Return how many layers have which part.

    Parameters
    ----------
    file, name
        The data file, and "mixers" or "feeds".
    own
        The parts that the file describes by themselves, by name.
    values
        What reads a table strictly: of a file, a name, the fields allowed, and the table.

    Raises
    ------
    DataFileError
        If an entry has no kind or no layers, or says what its kind can't have.
    """
    entries = file.need(file.data, name, list)
    if not entries:
        raise file.error(f"{name} is empty. Leave it out if all layers are of one kind.", name)
    return tuple(
        _entry(_from_entry(file, name, number), name, entry, own, values)
        for number, entry in enumerate(entries)
    )


def _from_entry(file: records.DataFile, name: str, number: int) -> records.DataFile:
    """Return the file without the lines above an entry, so that errors name its own."""
    lines = file.content.splitlines()
    heads = [
        at for at, line in enumerate(lines) if re.match(rf"\[\[\s*{name}\s*\]\]", line.strip())
    ]
    if number >= len(heads):  # a list in one line, [{...}, {...}]
        return file
    return replace(file, content="\n" * heads[number] + "\n".join(lines[heads[number] :]))


def _entry(
    file: records.DataFile, name: str, entry: Any, own: Mapping[str, Any], values: Values
) -> tuple[int, Any]:
    """Read one entry: the number of layers, and the part that they have."""
    allowed = KINDS[name]
    if not isinstance(entry, dict) or entry.get("kind") not in allowed:
        given = entry.get("kind") if isinstance(entry, dict) else entry
        raise file.error(
            f"an entry of {name} needs a kind, one of {', '.join(allowed)}, not {given!r}."
            f"{nearest(given, allowed) if isinstance(given, str) else ''}",
            name,
            "kind",
        )
    kind, layers = entry["kind"], file.need(entry, "layers", int, name)
    if layers < 1:
        raise file.error(f"{name}.layers must be 1 or more, not {layers}.", name, "layers")
    told = {key: value for key, value in entry.items() if key not in ("kind", "layers")}
    if not told:
        if kind not in own:
            raise file.error(
                f"{name} has a {kind} without a size, and the file has no [{kind}]. Describe it in "
                "one of the two places.",
                name,
            )
        return layers, own[kind]
    part = allowed[kind]
    plain = tuple(each for each in fields(part) if each.type in ("int", "bool", "str"))
    try:
        return layers, part(**values(file, name, plain, told))
    except InvalidValueError as error:
        raise file.error(str(error), name) from None
