"""What a Hugging Face configuration states beside its sizes: YaRN, and a format of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlsim.errors import UnknownNameError
from mlsim.precision import precision
from mlsim.records import given
from mlsim.workloads.huggingface.values import MOST, Config, shown

# Of both, the one that newer files have, first.
_ROTATIONS = ("rope_parameters", "rope_scaling")
_FORMATS = ("dtype", "torch_dtype")
_TRAINED = "original_max_position_embeddings"


def stretched(config: Config, context: int) -> dict[str, Any]:
    """Return the context that YaRN gives a model, and the one that it has without.

    That is `factor` times the length at which it was trained, where it is more than the file's
    `max_position_embeddings`, which some files have stretched already. Nothing without YaRN.

    Raises
    ------
    DataFileError
        If the factor or the length can't be; names file and line.
    """
    data = _object(config)
    longest = context
    for key, rotation in _rotations(data):
        if "yarn" not in (rotation.get("rope_type"), rotation.get("type")):
            continue
        factor: Any = rotation.get("factor")
        trained = rotation.get(_TRAINED, data.get(_TRAINED))
        # NaN is in no range.
        if type(factor) not in (int, float) or not 1 <= factor <= MOST:
            raise config.error(f"factor of YaRN must be 1 or more, not {shown(factor)}.", key)
        if trained is None:
            trained = context
        if type(trained) is not int or not 1 <= trained <= MOST:
            raise config.error(f"{_TRAINED} must be a whole number, not {shown(trained)}.", key)
        longest = max(longest, round(factor * trained))
    if longest == context:
        return {}
    known = given("configured_context", float(context), "token")
    return {"context": longest, "figures": {known.name: known}}


def stated_format(config: Config) -> str:
    """Return the format that the file states of its parameters, as it writes it; or ""."""
    for data in (_object(config), config.source.data):
        for key in _FORMATS:
            said = data.get(key)
            try:
                if isinstance(said, str) and precision(said.removeprefix("torch.")):
                    return said.removeprefix("torch.")
            except UnknownNameError:
                continue  # such as "auto"
    return ""


def _object(config: Config) -> Mapping[str, Any]:
    """Return the object of the file that the configuration was read from."""
    data = config.source.data
    for key in config.within:
        data = data[key]
    return data


def _rotations(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what is said of positions by rotation: once, or of each kind of layer."""
    for key in _ROTATIONS:
        found = data.get(key)
        if isinstance(found, dict):
            yield key, found
            yield from ((key, each) for each in found.values() if isinstance(each, dict))
