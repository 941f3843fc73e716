"""Models from TOML files: an architecture as a list of layers, or as parts of a transformer."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from mlsim import records
from mlsim.errors import DataFileError, InvalidValueError, nearest
from mlsim.workloads.language_files import PARTS, load_transformer
from mlsim.workloads.layers import Shape
from mlsim.workloads.model import Model
from mlsim.workloads.network import Network
from mlsim.workloads.stages import LAYERS, Layer

_TEXTS = ("key", "name", "architecture", "source")
_NETWORK = ("input", "layers")
_LANGUAGE = ("kind", "transformer", *PARTS)
_FIGURES = {
    "release_year": "year",
    "published_parameters": "parameter",
    "training_tokens": "token",
}


def load_model(path: str | Path) -> Model:
    """Read a model's file: a network of layers, or a transformer for language.

    Raises
    ------
    DataFileError
        If a key is unknown or missing, a layer can't be, or a figure has no
        source; names file and line.
    """
    file = records.load(path)
    data = file.data
    language = "transformer" in data
    file.only(data, (*_TEXTS, "figures", *(_LANGUAGE if language else _NETWORK)))
    texts = {field: file.need(data, field, str) for field in _TEXTS}
    given = data.get("figures", {})
    file.only(given, _FIGURES, "figures")
    figures = {
        name: file.figure(given[name], base, "figures", name)
        for name, base in _FIGURES.items()
        if name in given
    }
    make = load_transformer if language else _load_network
    return make(file, texts, figures)


def _load_network(
    file: records.DataFile, texts: dict[str, str], figures: dict[str, records.Figure]
) -> Network:
    data = file.data
    shape = file.need(data, "input", dict)
    file.only(shape, ("channels", "size"), "input")
    for field in ("channels", "size"):
        if file.need(shape, field, int, "input") < 1:
            raise file.error(
                f"input.{field} must be 1 or more, not {shape[field]}.", "input", field
            )
    layers = tuple(
        _layer(file, number, table)
        for number, table in enumerate(file.need(data, "layers", list), start=1)
    )
    if not layers:
        raise file.error("layers is empty: a model needs at least one.", "layers")
    model = Network(
        **texts,
        input=Shape(shape["channels"], shape["size"]),
        layers=layers,
        figures=figures,
    )
    try:
        model.operators  # noqa: B018  (a layer that can't be lowered is found here)
    except InvalidValueError as error:
        raise DataFileError(f"{file.path}: {error}") from error
    return model


def _layer(file: records.DataFile, number: int, table: dict[str, Any]) -> Layer:
    """Make a layer of its table; the line of an error is that of its `[[layers]]`."""
    starts = [
        line
        for line, text in enumerate(file.content.splitlines(), start=1)
        if text.strip() == "[[layers]]"
    ]
    place = f"{file.path}:{starts[number - 1] if number <= len(starts) else 1}: layer {number}"
    if not isinstance(table, dict):
        raise DataFileError(f"{place} must be a table, not {table!r}.")
    kind = table.get("kind")
    if kind not in LAYERS:
        raise DataFileError(
            f"{place}: kind {kind!r} is none of {', '.join(LAYERS)}.{nearest(kind, LAYERS)}"
        )
    layer = LAYERS[kind]
    allowed = {field.name: field for field in fields(layer)}
    given = {key: value for key, value in table.items() if key != "kind"}
    for key, value in given.items():
        if key not in allowed:
            raise DataFileError(
                f"{place}: unknown key {key!r}.{nearest(key, allowed)} "
                f"A {kind} has {', '.join(allowed)}."
            )
        wanted = allowed[key].type
        if type(value).__name__ != wanted:
            raise DataFileError(f"{place}: {key} must be {wanted}, not {value!r}.")
        if wanted == "int" and value < (0 if key in ("padding", "kernel") else 1):
            raise DataFileError(f"{place}: {key} must be positive, not {value!r}.")
    for key, field in allowed.items():
        if field.default is MISSING and key not in given:
            raise DataFileError(f"{place}: {key} is missing.")
    return layer(**given)
