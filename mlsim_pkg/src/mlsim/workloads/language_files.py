"""Transformers from TOML files: each table is a part of the architecture.

Layers of several kinds stand in `[[mixers]]` and `[[feeds]]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from datetime import date
from typing import Any

from mlsim import records
from mlsim.errors import DataFileError, InvalidValueError, UnknownNameError, nearest
from mlsim.precision import in_groups, precision
from mlsim.workloads import blocks
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Released

KINDS = ("decoder", "encoder")
PARTS: dict[str, type[Any]] = {
    "attention": blocks.Attention,
    "latent_attention": blocks.LatentAttention,
    "feed_forward": blocks.FeedForward,
    "experts": blocks.Experts,
}
# What lets tokens see one another, and what treats each by itself.
LAYERS: dict[str, dict[str, type[Any]]] = {
    "mixers": {
        "attention": blocks.Attention,
        "latent_attention": blocks.LatentAttention,
        "state_space": blocks.StateSpace,
        "delta_rule": blocks.DeltaRule,
    },
    "feeds": {"feed_forward": blocks.FeedForward, "experts": blocks.Experts},
}

# The keys of a file that only a transformer has.
KEYS = ("kind", "transformer", *PARTS, *LAYERS, "released")
# What [transformer] may say: all of Transformer that is no part and no name.
_NO_SCALARS = ("key", "name", "architecture", "source", "decoder")
# Of a released checkpoint: its format and who says so; a block that shares a scale.
_RELEASED = ("weights", "activations", "source", "where", "quote", "read")
_BLOCK = ("group", "columns", "scale_bits")


def load_transformer(
    file: records.DataFile, texts: dict[str, str], figures: dict[str, records.Figure]
) -> Transformer:
    """Make a transformer of a data file.

    Raises
    ------
    DataFileError
        If a key is unknown, missing or of the wrong kind, or the parts don't
        fit together; names file and line.
    """
    data = file.data
    kind = data.get("kind")
    if kind not in KINDS:
        raise file.error(f"kind must be one of {', '.join(KINDS)}, not {kind!r}.", "kind")
    if ("attention" in data) == ("latent_attention" in data):
        raise file.error("a transformer has [attention] or [latent_attention], one of the two.")
    scalars = [each for each in _plain(Transformer) if each.name not in _NO_SCALARS]
    values = records.read_fields(file, "transformer", scalars, file.need(data, "transformer", dict))
    parts: dict[str, Any] = {}
    for name, part in PARTS.items():
        if name in data:
            parts[name.removeprefix("latent_")] = _part(file, name, part)
    for name in LAYERS:
        if name in data:
            own = {each: parts[each.removeprefix("latent_")] for each in PARTS if each in data}
            parts[f"{name[:-1]}_layers"] = _layers(file, name, own)
    if "released" in data:
        parts["released"] = _released(file, values.get("quantised", "linear"))
    given: dict[str, Any] = {**texts, **values, **parts}
    try:
        return Transformer(figures=figures, decoder=kind == "decoder", **given)
    except InvalidValueError as error:
        raise DataFileError(f"{file.path}: {error}") from error


def _part(file: records.DataFile, name: str, part: type[Any]) -> Any:
    """Make one part; latent attention may have an indexer, a table of its own."""
    table = dict(file.need(file.data, name, dict))
    more: dict[str, Any] = {}
    if part is blocks.LatentAttention and "indexer" in table:
        inner = file.need(table, "indexer", dict, name)
        del table["indexer"]
        more["indexer"] = _made(file, f"{name}.indexer", blocks.Indexer, inner)
    return _made(file, name, part, table, **more)


def _made(
    file: records.DataFile, name: str, part: type[Any], values: dict[str, Any], **more: Any
) -> Any:
    """Make a part of what its table says: numbers, switches and words."""
    try:
        return part(**records.read_fields(file, name, _plain(part), values), **more)
    except InvalidValueError as error:
        raise file.error(str(error), name) from None


def _released(file: records.DataFile, covers: str) -> Released:
    """Read the formats in which a checkpoint was published, with who says so."""
    table = file.need(file.data, "released", dict)
    file.only(table, (*_RELEASED, *_BLOCK), "released")
    for name in ("source", "where", "quote"):
        file.need(table, name, str, "released")
    file.need(table, "read", date, "released")
    try:
        weights = precision(file.need(table, "weights", str, "released"))
        activations = table.get("activations", "")
        activations = activations and precision(activations).name
    except UnknownNameError as error:
        raise file.error(str(error), "released") from None
    if "group" in table:
        group, *more = (file.need(table, name, int, "released") for name in _BLOCK)
        weights = in_groups(weights.name, group, more[0], scale_bits=more[1])
    where = table["source"]
    return Released(weights=weights, activations=activations, covers=covers, where=where)


def _plain(part: type[Any]) -> list[Field[Any]]:
    """Return the fields of a part that a table can say: numbers, switches and words."""
    return [each for each in fields(part) if each.type in ("int", "bool", "str")]


def _layers(
    file: records.DataFile, name: str, own: Mapping[str, Any]
) -> tuple[tuple[int, Any], ...]:
    """Return how many layers have which part: of `[[mixers]]` or `[[feeds]]`.

    Each entry says how many `layers` have a part of which `kind`. One that says no more means
    that of its `own` parts which the file describes by itself, such as `[attention]`.
    """
    entries = file.need(file.data, name, list)
    if not entries:
        raise file.error(f"{name} is empty. Leave it out if all layers are of one kind.", name)
    return tuple(
        _entry(records.entry_of(file, name, number), name, entry, own)
        for number, entry in enumerate(entries)
    )


def _entry(
    file: records.DataFile, name: str, entry: Any, own: Mapping[str, Any]
) -> tuple[int, Any]:
    """Read one entry: the number of layers, and the part that they have."""
    allowed = LAYERS[name]
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
    values = {key: value for key, value in entry.items() if key not in ("kind", "layers")}
    if not values:
        if kind not in own:
            raise file.error(
                f"{name} has a {kind} without a size, and the file has no [{kind}]. Describe it in "
                "one of the two places.",
                name,
            )
        return layers, own[kind]
    return layers, _made(file, name, allowed[kind], values)
