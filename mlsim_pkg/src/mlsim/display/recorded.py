"""Numbers that open, of what is on record: devices, systems, places, models, their figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.display.number import Number, of_literal, words
from mlsim.errors import InvalidValueError, unknown_name
from mlsim.hardware import Device
from mlsim.infrastructure.places import Place
from mlsim.records import Figure
from mlsim.records.references import references
from mlsim.solvers.derivation import literal
from mlsim.systems import Cluster, System
from mlsim.units import text
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model, Network


def _of_figure(figure: Figure, name: str) -> Number:
    printed = f"{figure.text} {figure.direction}".strip()
    brief = f"{words(name)}: {printed}, {figure.kind}"
    if figure.source:
        where = f"{figure.where}: “{figure.quote}”, read {figure.read}"
        brief += f", [@{figure.source}], {literal(where)}"
    how = brief + (f"\n\n{literal(figure.note)}" if figure.note else "")
    number = Number(figure.si, figure.base, words(name), brief, how)
    return replace(number, unit=figure.unit, form=",g") if figure.unit != "year" else number


def _of_device(device: Device, name: str) -> Number:
    if name.startswith("ridge_point"):
        precision = name.partition(".")[2] or "fp16"
        peak = _of_figure(device.compute.figure(precision), f"{device.name} peak {precision}")
        ridge = peak / _of_device(device, "memory.bandwidth")
        return replace(ridge, name=f"ridge point of {device.name}, {precision}")
    if name not in device.figures:
        raise unknown_name("figure of this device", name, [*device.figures, "ridge_point"])
    return _of_figure(device.figures[name], f"{device.name} {name}")


def _of_cluster(cluster: Cluster, name: str) -> Number:
    if name == "devices":
        what = f"{cluster.nodes:,} nodes of {cluster.node.devices} [@{cluster.source}]"
        return of_literal(cluster.devices, f"devices of {cluster.name}", what)
    if name not in cluster.figures:
        raise unknown_name("figure of this cluster", name, [*cluster.figures, "devices"])
    return _of_figure(cluster.figures[name], f"{cluster.name} {name}")


def _of_system(system: System, name: str) -> Number:
    if name == "device_bandwidth":
        link = _of_system(system, "link.bandwidth")
        one_way = link / 2 if system.figure.direction == "both ways" else link
        return replace(one_way, name=f"link of one {system.device.name}, one way")
    if name not in system.figures:
        raise unknown_name("figure of this system", name, [*system.figures, "device_bandwidth"])
    return _of_figure(system.figures[name], f"{system.name} {name}")


def _of_place(place: Place, name: str) -> Number:
    quantity, _, year = name.partition(".")
    figure = place.figure(quantity, int(year) if year.isdecimal() else None)
    words = quantity.upper() if quantity in ("pue", "wue") else quantity
    return _of_figure(figure, f"{words} of {place.name}, {figure.name.rpartition('.')[2]}")


def _of_network(model: Network, name: str) -> Number:
    counts = {
        "parameters": (model.parameter_count, "parameter", "parameters", "the parameters"),
        "inference_flops": (model.flop_count, "FLOP", "work per sample", "twice the multiply-adds"),
    }
    if name not in counts:
        raise unknown_name("count of a network", name, counts)
    value, base, words, what = counts[name]
    return _count(model, value, base, words, f"{what} of its {len(model.operators)} operators")


def _of_transformer(model: Transformer, name: str) -> Number:
    layers = f"{model.layers} layers, its tables and its norms"
    elements = f"{model.model_cached_elements:,} elements of keys and values in all layers"
    cache = float(model.cache_bytes_per_token().to("B").magnitude) if model.decoder else 0.0
    counts = {
        "parameters": (model.parameter_count, "parameter", "parameters", f"those of its {layers}"),
        "active_parameters": (
            model.active_parameter_count,
            "parameter",
            "active parameters",
            f"those of its {layers} that one token meets",
        ),
        "cache_bytes_per_token": (
            cache,
            "B",
            "KV cache per token",
            f"{elements}, of 2 bytes each,",
        ),
    }
    if name not in counts:
        raise unknown_name("count of a language model", name, counts)
    if name == "cache_bytes_per_token" and not model.decoder:
        raise InvalidValueError(f"{model.name} is an encoder: it keeps no KV cache.")
    return _count(model, *counts[name])


def _count(model: Model, value: float, base: str, words: str, what: str) -> Number:
    source = f"[@{model.source}]" if model.source in references() else literal(model.source)
    shown = f"{value:,.0f}" if base == "parameter" else text(value, base)
    brief = f"{words} of {model.name}: {shown}, {what} added up; architecture from {source}"
    return Number(float(value), base, f"{words} of {model.name}", brief, brief)


MAKERS: tuple[tuple[type, Any], ...] = (
    (Device, _of_device),
    (System, _of_system),
    (Cluster, _of_cluster),
    (Place, _of_place),
    (Network, _of_network),
    (Transformer, _of_transformer),
    (Figure, lambda figure, _: _of_figure(figure, figure.name)),
)
