"""Language models from Hugging Face: a Transformer from a `config.json` on disk.

What each family's keys mean stands in `data/huggingface.toml` (see `families`). A key that is
neither read there nor known to have no effect makes the file refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from mlsim.errors import DataFileError, InvalidValueError, closest
from mlsim.records import DATA
from mlsim.workloads.huggingface.config import (
    NEEDED,
    Config,
    Source,
    read_source,
    shown,
    stated_format,
    stretched,
)
from mlsim.workloads.huggingface.families import Family, catalogue
from mlsim.workloads.huggingface.quantised import KEY, released
from mlsim.workloads.language import Transformer

# Classes with the last layer that is counted here; other ones have another.
_COUNTED = (
    *("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"),
    *("BertForMaskedLM", "BertModel", "RobertaForMaskedLM", "RobertaModel"),
)
# Keys or models of the zoo that a message names; how alike a misspelled family must be, and how
# long.
_SHOWN, _ALIKE, _SHORT = 6, 0.8, 3
# ModelOpt writes a file of its own beside config.json.
_BESIDE = ("config.json", "hf_quant_config.json")


def load_config(path: str | Path, *, ignore: Iterable[str] = ()) -> Transformer:
    """Make a transformer of a Hugging Face configuration.

    What the file says of the formats of a quantized checkpoint is read too
    (`quantization_config`, or a `hf_quant_config.json` beside it) and becomes
    `released`: what `Engine.serve` and `Engine.fit` take where nobody asks for a format.

    Parameters
    ----------
    path
        A `config.json`, or the folder that has one.
    ignore
        Keys that change no count, though no list here knows them.

    >>> import mlsim, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = '''{"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768,
    ...         "n_layer": 12, "n_head": 12, "n_positions": 1024}'''
    ...     _ = (Path(folder) / "config.json").write_text(text)
    ...     mlsim.load_config(folder).parameter_count
    124439808

    Raises
    ------
    DataFileError
        If there is no such file, its type or a key is not understood, a value is
        missing or can't be, or its layers differ in a way that a Transformer
        can't tell; names file and line.

    Warns
    -----
    UserWarning
        If something is left out: the part of a model that is not for text, or a
        last layer that is not the one for the next token.
    """
    path = Path(path)
    if path.is_dir():
        path /= "config.json"
        if not path.is_file():
            raise DataFileError(f"{path.parent}: this folder has no config.json.")
    if not path.exists():
        raise DataFileError(
            f"{path}: there is no such file or folder. Models.find({str(path)!r}) looks in the zoo "
            "and names the nearest; of another model, download the config.json and give its path."
        )
    source = read_source(path)
    family, config, kind = _text_model(source, frozenset(ignore))
    name = _name(source) or kind
    made = family.build(config)
    places = made.pop("places", {})
    made |= stretched(config, made["context"])
    try:
        model = Transformer(
            key=name,
            name=name,
            architecture=f"{kind}, from {source.path.name}",
            source=str(source.path),
            stated_format=stated_format(config),
            **made,
        )
    except InvalidValueError as error:
        raise DataFileError(f"{source.path}: {error}") from error
    left = _left_out(source)
    if left:
        warnings.warn(
            f"{source.path}: {left}; the {model.parameter_count:,} parameters are those of the "
            "rest.",
            stacklevel=2,
        )
    return _with_formats(source, family, model, places)


def _text_model(source: Source, ignore: frozenset[str]) -> tuple[Family, Config, str]:
    """Return the family of the file's type with its keys, or that of the text within it."""
    kind, known = str(source.data.get("model_type")), catalogue()
    if kind in known.refused:
        raise source.error(
            f"model_type {shown(kind)} can't be told here: {known.refused[kind]}.", "model_type"
        )
    if kind in known.wrappers:
        return _nested(source, kind, ignore)
    family = known.families.get(kind) or _no_family(source)
    return family, _config(source, source.data, family, ignore), kind


def _no_family(source: Source) -> NoReturn:
    """Refuse a file whose `model_type` is no family's.

    Raises
    ------
    DataFileError
        Naming the nearest, or what the zoo has and which keys nobody knows.
    """
    kind, there = source.data.get("model_type"), catalogue()
    families = sorted((*there.families, *there.wrappers))
    read = f"Those read are {', '.join(families)}."
    if kind is None:
        raise source.error(f"model_type is missing, which says how the keys are read. {read}")
    kind, numbers = str(kind), re.findall(r"\d+", str(kind))
    # Another number makes another family: olmo2 is no olmo.
    alike = [each for each in families if re.findall(r"\d+", each) == numbers]
    near = closest(kind, alike, 1, _ALIKE) if len(kind) > _SHORT else ()
    if near:
        raise source.error(
            f"model_type {shown(kind)} is no family. Did you mean {near[0]!r}?", "model_type"
        )
    zoo = sorted(each.stem for each in (DATA / "workloads").glob("*.toml"))
    zoo = [each for each in zoo if each.split("_")[0] == re.split(r"[_-]", kind)[0]]
    found = f" The zoo has {', '.join(zoo[:_SHOWN])}: give that name." if zoo else ""
    known = set[str]().union(*(family.understood for family in there.families.values()))
    unknown = [key for key in source.data if key not in known]
    more = f", and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    raise source.error(
        f"model_type {shown(kind)} is of a family that is not read.{found} {read} "
        f"Keys of this file that none of them has: {', '.join(unknown[:_SHOWN]) or 'none'}{more}.",
        "model_type",
    )


def _config(
    source: Source, data: Mapping[str, Any], family: Family, ignore: frozenset[str], *within: str
) -> Config:
    """Return one object's values with defaults.

    Raises
    ------
    DataFileError
        If a key is missing, is not understood, or may not have its value.
    """
    values, spelled = {}, {}
    unknown = _unknown(data, {*family.understood, KEY, *ignore})
    for key, default in family.keys.items():
        names = (*family.spellings.get(key, ()), key)
        given = [name for name in names if name in data]
        spelled[key] = given[0] if given else names[0]
        values[key] = data[given[0]] if given else default
        if any(data[name] != values[key] for name in given[1:]):
            both = " and ".join(f"{name} = {shown(data[name])}" for name in given)
            raise source.error(f"{both} say the same thing differently.", *within, given[0])
        if values[key] is NEEDED:
            more = f" Not understood here: {', '.join(unknown)}." if unknown else ""
            raise source.error(f"{' or '.join(names)} is missing.{more}", *within)
    for key, allowed in family.fixed.items():
        if key in data and data[key] not in allowed and key not in ignore:
            raise source.error(
                f"{key} = {shown(data[key])} is not understood, only {shown(allowed[0])}.",
                *within,
                key,
            )
    _refuse_unknown(source, unknown, *within)
    return Config(source, values, spelled, within)


def _unknown(data: Mapping[str, Any], understood: set[str]) -> list[str]:
    """Return the keys that are not understood; null says nothing, whatever it is said of."""
    return [key for key, value in data.items() if key not in understood and value is not None]


def _refuse_unknown(source: Source, unknown: Sequence[str], *within: str) -> None:
    """Refuse keys that may change what is counted.

    Raises
    ------
    DataFileError
        If there are any.
    """
    if unknown:
        words = ", ".join(repr(each) for each in unknown)
        raise source.error(
            f"not understood: {', '.join(unknown)}. What they change is unknown, so nothing is "
            f"counted. If they change no count, load_config(path, ignore=[{words}]) leaves them "
            "out.",
            *within,
            unknown[0],
        )


def _nested(source: Source, kind: str, ignore: frozenset[str]) -> tuple[Family, Config, str]:
    """Return the text model inside a model of text and pictures."""
    if "text_config" not in source.data:
        raise source.error("text_config is missing.")
    known = catalogue()
    inner, allowed = source.data["text_config"], known.wrappers[kind]
    inner_kind = inner.get("model_type", allowed[0]) if isinstance(inner, dict) else None
    if inner_kind not in allowed:
        raise source.error(
            f"text_config must be an object of model_type {' or '.join(map(repr, allowed))}, not "
            f"{shown(inner)}.",
            "text_config",
        )
    tie = "tie_word_embeddings"
    around = {"text_config", tie, KEY, *known.around, *ignore}
    _refuse_unknown(source, _unknown(source.data, around))
    # Where both say it, the model around decides, and they may not differ.
    if tie in source.data and inner.setdefault(tie, source.data[tie]) != source.data[tie]:
        raise source.error(f"{tie} is told differently in text_config.", tie)
    family = known.families[inner_kind]
    family = replace(family, keys={**family.keys, **family.nested})
    config = _config(source, inner, family, ignore, "text_config")
    return family, config, f"{kind}, its text part"


def _with_formats(
    source: Source, family: Family, model: Transformer, places: Mapping[str, Sequence[int]]
) -> Transformer:
    """Return the model with the formats in which it was published, if the file says."""
    data, inner = source.data.get(KEY), source.data.get("text_config")
    if data is None and isinstance(inner, dict):
        data = inner.get(KEY)
    beside = data is None and source.path.name.endswith(_BESIDE[0])
    if beside:
        path = source.path.with_name(source.path.name.replace(*_BESIDE))
        if not path.is_file():
            return model
        source = read_source(path)
        data = source.data.get("quantization", source.data)
    if data is None:
        return model
    if not isinstance(data, dict):
        raise source.error(f"{KEY} must be an object, not {shown(data)}.", KEY)
    formats = released(source, data, beside, _places(model, places), family.modules)
    return replace(model, released=replace(formats, covers=model.quantised))


def _places(model: Transformer, places: Mapping[str, Sequence[int]]) -> dict[str, Sequence[int]]:
    """Return the layers that have each operator that is quantized."""
    every, known = range(model.layers), catalogue().quantised["operators"]
    dense = model.dense_layers if model.experts else model.layers
    usual: dict[str, Sequence[int]] = {
        "attention": every,
        "indexer": every,
        "feed-forward": every[:dense],
        "experts": every[dense:],
    }
    usual |= places
    usual |= dict.fromkeys(("shared expert", "latent"), usual["experts"])
    return {
        each.name: usual[known[each.name][0]]
        for each in model.operators()
        if each.name in known and not each.unquantised
    }


def _left_out(source: Source) -> str:
    """Return what is not counted, in words; "" if all is."""
    if source.data["model_type"] in catalogue().wrappers:
        parts = [key for key in source.data if key.endswith("_config")]
        others = ", ".join(key for key in parts if key not in (KEY, "text_config"))
        return "only the text part is counted" + (f" ({others} left out)" if others else "")
    named = source.data.get("architectures") or [""]
    first = str(named[0] if isinstance(named, list) else named)
    if not first or first.endswith(_COUNTED):
        return ""
    return f"the last layer of {first} is not counted, but one for the next token"


def _name(source: Source) -> str:
    """Return the model's name: the file's word, or its folder's."""
    given = source.data.get("_name_or_path")
    parts = re.split(r"[/\\]", given) if isinstance(given, str) else []
    named = [part for part in parts if re.search(r"\w", part)]
    if named:
        return named[-1]
    if source.path.name != "config.json":
        return source.path.stem
    # In the library's cache: models--owner--name/snapshots/commit/config.json, a link.
    folder = source.path.parent.resolve()
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.split("--")[-1]
    return folder.name
