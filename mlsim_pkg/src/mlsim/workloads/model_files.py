"""Models from TOML files: an architecture as a list of layers, or as parts of a transformer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

from mlsim import records
from mlsim.errors import DataFileError, InvalidValueError, nearest
from mlsim.workloads.model import Layer, Model, Network, Shape

# What an architecture may be written in: the name that files use, and the class that lowers it.
_LAYERS = {
    "convolution": "model.Convolution",
    "pool": "model.Pool",
    "response_norm": "model.ResponseNorm",
    "dropout": "model.Dropout",
    "linear": "model.Linear",
    "distances": "model.Distances",
    "bottleneck_stage": "stages.BottleneckStage",
    "basic_stage": "stages.BasicStage",
    "inverted_stage": "stages.InvertedStage",
    "patch_embedding": "tokens.PatchEmbedding",
    "token_embedding": "tokens.TokenEmbedding",
    "positions": "tokens.Positions",
    "first_token": "tokens.FirstToken",
    "token_linear": "tokens.TokenLinear",
    "encoder_stage": "tokens.EncoderStage",
    "decoder_stage": "tokens.DecoderStage",
    "dot_interaction": "tokens.DotInteraction",
    "unet": "unet.UNet",
}
_TEXTS = ("key", "name", "architecture", "source")
_NETWORK = ("sample", "input", "layers", "modules")
_FIGURES = {
    "release_year": "year",
    "published_parameters": "parameter",
    "training_tokens": "token",
    "configured_context": "token",
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
    make: Callable[..., Model] = _load_network
    own: tuple[str, ...] = _NETWORK
    if "transformer" in data:
        from mlsim.workloads.language_files import KEYS, load_transformer

        make, own = load_transformer, KEYS
    file.only(data, (*_TEXTS, "figures", *own))
    texts = {field: file.need(data, field, str) for field in _TEXTS}
    given = data.get("figures", {})
    file.only(given, _FIGURES, "figures")
    figures = {
        name: file.figure(given[name], base, "figures", name)
        for name, base in _FIGURES.items()
        if name in given
    }
    return make(file, texts, figures)


def _load_network(
    file: records.DataFile, texts: dict[str, str], figures: dict[str, records.Figure]
) -> Network:
    data, listed = file.data, file.need(file.data, "layers", list)
    layers = tuple(
        _layer(records.entry_of(file, "layers", number), table)
        for number, table in enumerate(listed)
    )
    if not layers:
        raise file.error("layers is empty: a model needs at least one.", "layers")
    model = Network(
        **texts,
        input=_input(file),
        layers=layers,
        sample=file.need(data, "sample", str) if "sample" in data else "",
        modules=_modules(file, layers) if "modules" in data else (),
        figures=figures,
    )
    try:
        model.operators  # noqa: B018  (a layer that can't be lowered is found here)
    except InvalidValueError as error:
        raise DataFileError(f"{file.path}:{_line_of_layer(file, str(error))}: {error}") from error
    return model


def _modules(file: records.DataFile, layers: tuple[Layer, ...]) -> tuple[str, ...]:
    """Read which layers are modules of their own; each must be one of the layers."""
    found, names = file.need(file.data, "modules", list), [layer.name for layer in layers]
    for each in found:
        if each not in names:
            raise file.error(
                f"modules has {each!r}, which is no layer.{nearest(str(each), names)}", "modules"
            )
    return tuple(found)


def _line_of_layer(file: records.DataFile, message: str) -> int:
    """Return the line on which the layer stands that a message is about."""
    named = re.match(r"layer (\S+?)[.:]", message)
    if named:
        for line, text in enumerate(file.content.splitlines(), start=1):
            if re.fullmatch(rf'name\s*=\s*"{re.escape(named[1])}"', text.strip()):
                return line
    return file.line("layers")


def _input(file: records.DataFile) -> Shape:
    """Read the shape of the input: a map with a size, or a sequence with a length."""
    shape = file.need(file.data, "input", dict)
    file.only(shape, ("channels", "size", "length"), "input")
    if ("size" in shape) == ("length" in shape):
        raise file.error(
            "input needs a size (pixels along one side) or a length (of a sequence), one of the "
            "two.",
            "input",
        )
    side = "size" if "size" in shape else "length"
    for field in ("channels", side):
        if file.need(shape, field, int, "input") < 1:
            raise file.error(
                f"input.{field} must be 1 or more, not {shape[field]}.", "input", field
            )
    return Shape(shape["channels"], shape[side], 2 if side == "size" else 1)


def _layer(file: records.DataFile, table: dict[str, Any]) -> Layer:
    if not isinstance(table, dict) or table.get("kind") not in _LAYERS:
        kind = table.get("kind") if isinstance(table, dict) else table
        near = nearest(kind, _LAYERS) if isinstance(kind, str) else ""
        raise file.error(
            f"a layer is a table with a kind, one of {', '.join(_LAYERS)}, not {kind!r}.{near}",
            *(("layers", "kind") if isinstance(table, dict) and "kind" in table else ("layers",)),
        )
    module, _, name = _LAYERS[table["kind"]].partition(".")
    made = getattr(import_module(f"mlsim.workloads.{module}"), name)
    values = {key: value for key, value in table.items() if key != "kind"}
    layer: Layer = made(**records.read_fields(file, "layers", fields(made), values))
    return layer
