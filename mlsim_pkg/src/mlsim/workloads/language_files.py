"""Transformers from TOML files: each table is a part of the architecture."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from datetime import date
from typing import Any

from mlsim import records
from mlsim.errors import DataFileError, InvalidValueError, UnknownNameError
from mlsim.precision import in_groups, precision
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.indexer import Indexer
from mlsim.workloads.language import Transformer
from mlsim.workloads.latent import LatentAttention
from mlsim.workloads.layer_files import KINDS as LAYERS, layers_of_kinds
from mlsim.workloads.released import Released

KINDS = ("decoder", "encoder")
PARTS: dict[str, type[Any]] = {
    "attention": Attention,
    "latent_attention": LatentAttention,
    "feed_forward": FeedForward,
    "experts": Experts,
}
# The keys of a file that only a transformer has.
KEYS = ("kind", "transformer", *PARTS, *LAYERS, "released")
# What [transformer] may say: all of Transformer that is no part and no name.
_SCALARS = tuple(
    each
    for each in fields(Transformer)
    if each.type in ("int", "bool", "str")
    and each.name not in ("key", "name", "architecture", "source", "decoder")
)
_TYPES: dict[str, type] = {"int": int, "bool": bool, "str": str}
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
    values = _values(file, "transformer", _SCALARS)
    parts: dict[str, Any] = {}
    for name, part in PARTS.items():
        if name in data:
            parts[name.removeprefix("latent_")] = _part(file, name, part)
    for name in LAYERS:
        if name in data:
            own = {each: parts[each.removeprefix("latent_")] for each in PARTS if each in data}
            parts[f"{name[:-1]}_layers"] = layers_of_kinds(file, name, own, _values)
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
    made: dict[str, Any] = {}
    if part is LatentAttention and "indexer" in table:
        inner = file.need(table, "indexer", dict, name)
        del table["indexer"]
        made["indexer"] = Indexer(**_values(file, f"{name}.indexer", fields(Indexer), inner))
    plain = tuple(each for each in fields(part) if each.type in _TYPES)
    try:
        return part(**_values(file, name, plain, table), **made)
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
    return Released(
        weights=weights,
        activations=activations,
        covers=covers,
        where=table["source"],
    )


def _values(
    file: records.DataFile,
    name: str,
    allowed: tuple[Field[Any], ...],
    given: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Read a table strictly: known keys, of the right kind, counts from 0 up."""
    table = file.need(file.data, name, dict) if given is None else given
    file.only(table, [each.name for each in allowed], name)
    values = {}
    for each in allowed:
        if each.name not in table:
            if each.default is MISSING:
                raise file.error(f"{name}.{each.name} is missing.", name)
            continue
        value = file.need(table, each.name, _TYPES[str(each.type)], name)
        # A count that has a default may be 0, which is that default.
        least = 1 if each.default is MISSING and each.name != "query_rank" else 0
        if type(value) is int and value < least:
            raise file.error(
                f"{name}.{each.name} must be {least} or more, not {value}.", name, each.name
            )
        values[each.name] = value
    return values
