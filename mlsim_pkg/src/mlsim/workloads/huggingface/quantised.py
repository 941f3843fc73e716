"""The formats of a quantized checkpoint: `quantization_config`, or ModelOpt's file beside it.

Checkpoints name what they quantize, or leave alone, by the modules of the model's own code:
"model.layers.3.self_attn.o_proj". Only how many layers are left out matters here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from mlsim.precision import Precision, in_groups, mixed, precision
from mlsim.workloads.huggingface.config import Source, shown
from mlsim.workloads.huggingface.families import catalogue
from mlsim.workloads.model import Released


def paths(operator: str, layer: int, places: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the modules of an operator in a layer may be called."""
    known = catalogue().quantised
    part, leaves = known["operators"][operator]
    place = f"{layer}.{places[part]}"
    return tuple(f"{root}.{place}.{leaf}" for root in known["roots"] for leaf in leaves.split())


def named(pattern: str, path: str) -> bool:
    """Tell whether an entry of a list means a module, or something that it is in.

    >>> named("model.layers.*.self_attn", "model.layers.3.self_attn.o_proj")
    True
    >>> named("gate", "model.layers.3.mlp.gate_proj")
    False
    """
    if pattern.startswith("re:"):
        return re.match(pattern[3:], path) is not None
    if "*" in pattern:
        return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*")
    return f".{pattern}." in f".{path}."


def left_out(
    operator: str, layers: Iterable[int], places: Mapping[str, str], patterns: Sequence[str]
) -> int:
    """Return in how many of these layers a list names the operator's modules."""
    return sum(
        any(named(each, path) for path in paths(operator, layer, places) for each in patterns)
        for layer in layers
    )


KEY = "quantization_config"
# Which layers have an operator's part: of the whole model, or of those that differ.
Places = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class _Scheme:
    """A format of weights, that of their products' other factor, and what is left alone.

    `listed` has the format of each module that is quantized, where they differ.
    """

    weights: Precision
    activations: str = ""
    kv_cache: str = ""
    ignored: tuple[str, ...] = ()
    listed: Mapping[str, str] | None = None


def released(
    source: Source, data: Mapping[str, Any], beside: bool, places: Places, names: Mapping[str, str]
) -> Released:
    """Return the formats in which a checkpoint was published.

    Parameters
    ----------
    source, data, beside
        The file, its object that tells the formats, and whether that is ModelOpt's own.
    places
        The layers that have each operator.
    names
        What the family's code calls a part of a layer.

    Raises
    ------
    DataFileError
        If a method, an algorithm or a key is not understood.
    """
    scheme = _scheme(source, data)
    found: dict[str, Precision] = {}
    for operator, layers in places.items():
        if scheme.listed is not None:
            found[operator] = _listed(source, operator, layers, names, scheme)
        else:
            out = left_out(operator, layers, names, scheme.ignored)
            found[operator] = _mean({scheme.weights: len(layers) - out, _WIDE: out})
    apart = tuple((name, each) for name, each in found.items() if each is not scheme.weights)
    where = "hf_quant_config.json" if beside else f"{KEY} of {source.path.name}"
    narrow = {"activations": scheme.activations, "kv_cache": scheme.kv_cache}
    return Released(weights=scheme.weights, **narrow, operators=apart, where=where)


_WIDE = precision("bf16")


def _mean(layers: Mapping[Precision, int]) -> Precision:
    """Return the format of an operator: that of all its layers, or what they take on average."""
    there = {each: count for each, count in layers.items() if count}
    most = max(there, key=lambda each: there[each])
    return mixed(most, there) if len(there) > 1 else most


def _listed(
    source: Source, operator: str, layers: Sequence[int], names: Mapping[str, str], scheme: _Scheme
) -> Precision:
    """Return the format of an operator from a list of modules with the algorithm of each."""
    counts: Counter[Precision] = Counter()
    listed = scheme.listed or {}
    for layer in layers:
        algorithm = ""
        for path in paths(operator, layer, names):
            # A module or what it is in, the nearest that is listed.
            words = path.split(".")
            inner = [".".join(words[:end]) for end in range(len(words), 1, -1)]
            algorithm = algorithm or next((listed[each] for each in inner if each in listed), "")
        counts[_algorithm(source, algorithm)[0] if algorithm else _WIDE] += 1
    return _mean(counts)


def _algorithm(source: Source, name: Any) -> tuple[Precision, str]:
    formats = catalogue().quantised["formats"]
    if name not in formats:
        raise source.error(
            f"quant_algo = {shown(name)} is not understood, only {', '.join(formats)}.", KEY
        )
    weights, activations = formats[name]
    if weights == "mxfp8":
        return in_groups("fp8", 32, scale_bits=8), activations
    return precision(weights).as_weights, activations


def _blocks(source: Source, data: Mapping[str, Any]) -> _Scheme:
    """Return FP8 with a scale for each block, or one for each matrix."""
    block = data.get("weight_block_size")
    weights = precision("fp8")
    if block is not None:
        if not _counts(block, 2):
            raise source.error(
                f"weight_block_size must be two whole numbers, not {shown(block)}.", KEY
            )
        weights = in_groups("fp8", block[0], block[1], scale_bits=32)
    return _Scheme(weights, "fp8", ignored=_names(source, data, "modules_to_not_convert"))


def _grouped(source: Source, data: Mapping[str, Any]) -> _Scheme:
    """Return AWQ or GPTQ: whole numbers with a scale and a zero point for each group.

    GPTQ keeps zero points where it has none, too.
    """
    bits = data.get("bits", data.get("w_bit", 4))
    group = data.get("group_size", data.get("q_group_size", 128))
    if bits not in (4, 8) or not (group == -1 or _counts([group], 1)):
        raise source.error(
            f"bits = {shown(bits)} and group_size = {shown(group)}: bits must be 4 or 8, and a "
            "group a whole number of weights, or -1 for a whole column.",
            KEY,
        )
    name = f"int{bits}"
    weights = precision(name) if group == -1 else in_groups(name, group, zero_points=True)
    return _Scheme(weights, ignored=_names(source, data, "modules_to_not_convert"))


def _compressed(source: Source, data: Mapping[str, Any]) -> _Scheme:
    """Return what compressed-tensors tells of one group of modules."""
    groups = data.get("config_groups")
    if not isinstance(groups, dict) or len(groups) != 1:
        raise source.error(
            "config_groups must be an object with one group, since all modules of it are alike "
            "here.",
            KEY,
        )
    (group,) = groups.values()
    weights, activations = (group.get(each) for each in ("weights", "input_activations"))
    ignored = _names(source, data, "ignore")
    cache = _narrow(source, data.get("kv_cache_scheme"))
    return _Scheme(_of_numbers(source, weights), _narrow(source, activations), cache, ignored)


def _of_numbers(source: Source, given: Any) -> Precision:
    """Return the format that bits, type and size of a group tell."""
    given = given if isinstance(given, dict) else {}
    bits, kind, group = given.get("num_bits"), given.get("type"), given.get("group_size")
    if (bits, kind) == (4, "float"):
        name = {16: "nvfp4", 32: "mxfp4"}.get(group or 0)
        if name:
            return precision(name)
    if bits == 8 and not group:
        return precision("fp8" if kind == "float" else "int8")
    if kind == "int" and bits in (4, 8) and _counts([group], 1):
        return in_groups(f"int{bits}", group, zero_points=given.get("symmetric") is False)
    raise source.error(
        f"weights of {shown(bits)} bits, type {shown(kind)}, in groups of {shown(group)} are not "
        "understood.",
        KEY,
    )


def _narrow(source: Source, given: Any) -> str:
    """Return the format of activations or of a cache; "" for 16 bits."""
    if not given:
        return ""
    if isinstance(given, str):
        return _algorithm(source, given)[1]
    return _of_numbers(source, given).name


def _modelopt(source: Source, data: Mapping[str, Any]) -> _Scheme:
    """Return what ModelOpt tells: one algorithm, or one for each module that it lists."""
    ignored = tuple(
        each for key in ("ignore", "exclude_modules") for each in _names(source, data, key)
    )
    cache = _narrow(source, data.get("kv_cache_scheme") or data.get("kv_cache_quant_algo"))
    name = data.get("quant_algo")
    if name != "MIXED_PRECISION":
        weights, activations = _algorithm(source, name)
        return _Scheme(weights, activations, cache, ignored)
    layers = data.get("quantized_layers")
    if not isinstance(layers, dict) or not layers:
        raise source.error(
            "MIXED_PRECISION needs quantized_layers, which say what is in what.", KEY
        )
    listed = {path: each.get("quant_algo") for path, each in layers.items()}
    experts = Counter(each for path, each in listed.items() if "expert" in path)
    # What most experts are in is most of the model; without experts, most modules.
    most = (experts or Counter(listed.values())).most_common(1)[0][0]
    for each in set(listed.values()):
        _algorithm(source, each)
    weights, activations = _algorithm(source, most)
    return _Scheme(weights, activations, cache, ignored, listed)


_READ: dict[str, Callable[[Source, Mapping[str, Any]], _Scheme]] = {
    "fp8": _blocks,
    "mxfp4": lambda source, data: _Scheme(
        precision("mxfp4"), ignored=_names(source, data, "modules_to_not_convert")
    ),
    "awq": _grouped,
    "gptq": _grouped,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
}


def _scheme(source: Source, data: Mapping[str, Any]) -> _Scheme:
    method = data.get("quant_method") or ("modelopt" if "quant_algo" in data else None)
    if method not in _READ:
        raise source.error(
            f"quant_method = {shown(method)} is not understood, only {', '.join(_READ)}. Without "
            f"{KEY} the file is that of the model in 16 bits.",
            KEY,
        )
    keys = catalogue().quantised["keys"][method].split()
    understood = ("quant_method", *keys)
    unknown = [key for key, value in data.items() if key not in understood and value is not None]
    if unknown:
        raise source.error(f"{KEY}: not understood: {', '.join(unknown)}.", KEY)
    return _READ[method](source, data)


def _names(source: Source, data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = data.get(key)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise source.error(f"{key} must be a list of names of modules, not {shown(found)}.", KEY)
    return tuple(found)


def _counts(values: Any, how_many: int) -> bool:
    several = isinstance(values, list) and len(values) == how_many
    return several and all(type(each) is int and each > 0 for each in values)
