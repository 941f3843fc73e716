"""Language models from Hugging Face: a Transformer from a `config.json` on disk.

What each family's keys mean stands in `families`. A key that is
neither read nor known to change no count is named in a warning.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

from mlsim.errors import DataFileError, InvalidValueError, nearest
from mlsim.workloads.huggingface.families import FAMILIES, GEMMA3_NESTED, Family
from mlsim.workloads.huggingface.ignored import FIXED
from mlsim.workloads.huggingface.values import NEEDED, Config, Source, read_source, shown
from mlsim.workloads.language import Transformer

# Classes with the last layer that is counted here; other ones have another.
_COUNTED = (
    "ForCausalLM",
    "LMHeadModel",
    "ForConditionalGeneration",
    "BertForMaskedLM",
    "BertModel",
)


def load_config(path: str | Path) -> Transformer:
    """Make a transformer of a Hugging Face configuration.

    Parameters
    ----------
    path
        A `config.json`, or the folder that has one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = '''{"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768,
    ...         "n_layer": 12, "n_head": 12, "n_positions": 1024}'''
    ...     _ = (Path(folder) / "config.json").write_text(text)
    ...     load_config(folder).parameter_count
    124439808

    Raises
    ------
    DataFileError
        If there is no such file, its family is not understood, a value is
        missing or can't be, or its layers differ in a way that a Transformer
        can't tell; names file and line.

    Warns
    -----
    UserWarning
        If the file has keys that are not understood; names them.
    """
    source = read_source(_file(Path(path)))
    family = _family(source)
    config, unknown = _config(source, family)
    if "text_config" in config.values:
        config, more = _nested(source)
        unknown += more
        family = GEMMA3_NESTED
    kind = str(source.data["model_type"])
    name = _name(source) or kind
    try:
        model = Transformer(
            key=name,
            name=name,
            architecture=f"{kind}, from {source.path.name}",
            source=str(source.path),
            **family.build(config),
        )
    except InvalidValueError as error:
        raise DataFileError(f"{source.path}: {error}") from error
    unknown += _other_head(source)
    if unknown:
        warnings.warn(
            f"{source.path}: not understood and ignored: {', '.join(sorted(unknown))}; check that "
            f"the parameter count {model.parameter_count:,} is right.",
            stacklevel=2,
        )
    return model


def _file(path: Path) -> Path:
    """Return the file that a path means."""
    if not path.is_dir():
        return path
    if not (path / "config.json").is_file():
        raise DataFileError(f"{path}: this folder has no config.json.")
    return path / "config.json"


def _family(source: Source) -> Family:
    """Return the family of the file's `model_type`."""
    kind = source.data.get("model_type")
    if isinstance(kind, str) and kind in FAMILIES:
        return FAMILIES[kind]
    known = frozenset[str]().union(*(family.understood for family in FAMILIES.values()))
    unknown = [key for key in source.data if key not in known]
    given = f"model_type {shown(kind)} is not understood." if kind else "model_type is missing."
    raise source.error(
        f"{given}{nearest(kind, FAMILIES) if kind else ''} Understood are "
        f"{', '.join(FAMILIES)}. Keys of this file that none of them has: "
        f"{', '.join(unknown) or 'none'}.",
        "model_type",
    )


def _config(source: Source, family: Family, *within: str) -> tuple[Config, list[str]]:
    """Return one object's values with defaults, and the keys that are not understood."""
    data: Any = source.data
    for key in within:
        data = data[key]
    unknown = [key for key in data if key not in family.understood]
    values, spelled = {}, {}
    for key, default in family.keys.items():
        names = (*family.spellings.get(key, ()), key)
        given = [name for name in names if name in data]
        spelled[key] = given[0] if given else names[0]
        values[key] = data[given[0]] if given else default
        if any(data[name] != values[key] for name in given):
            both = " and ".join(f"{name} = {shown(data[name])}" for name in given)
            raise source.error(f"{both} say the same thing differently.", *within, given[0])
        if values[key] is NEEDED:
            more = f" Not understood here: {', '.join(unknown)}." if unknown else ""
            raise source.error(f"{' or '.join(names)} is missing.{more}", *within)
    for key, allowed in {**FIXED, **family.fixed}.items():
        if key in data and data[key] not in allowed:
            raise source.error(
                f"{key} = {shown(data[key])} is not understood, only {shown(allowed[0])}.",
                *within,
                key,
            )
    return Config(source, values, spelled, within), unknown


def _nested(source: Source) -> tuple[Config, list[str]]:
    """Return the text model inside a model of text and pictures."""
    inner = source.data["text_config"]
    if not isinstance(inner, dict) or inner.get("model_type", "gemma3_text") != "gemma3_text":
        raise source.error(
            f"text_config must be an object of model_type 'gemma3_text', not {shown(inner)}.",
            "text_config",
        )
    config, unknown = _config(source, GEMMA3_NESTED, "text_config")
    return config, [f"text_config.{key}" for key in unknown]


def _other_head(source: Source) -> list[str]:
    """Return the class that the file names, if its last layer is not the one counted."""
    named = source.data.get("architectures") or [""]
    first = named[0] if isinstance(named, list) else named
    return [] if not first or str(first).endswith(_COUNTED) else [f"architectures ({first})"]


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
