"""Numbers that show their work: `show` makes them of answers, records and measurements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsim.display.number import Number
from mlsim.display.showing_runs import MAKERS, answered
from mlsim.engine import Engine
from mlsim.errors import InvalidValueError, UnknownNameError, unknown_name
from mlsim.hardware import Device
from mlsim.infrastructure.places import Place
from mlsim.measured.networks import Measurement
from mlsim.measured.services import ServingMeasurement
from mlsim.records import Figure
from mlsim.records.references import references
from mlsim.solvers.derivation import literal
from mlsim.solvers.forward.profile import Profile
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.step_profile import StepProfile
from mlsim.systems import Cluster, System
from mlsim.units import text
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.workloads.network import Network

PHASES = ("prefill", "decode")


def show(
    what: Any,
    name: str = "latency",
    *,
    unit: str | None = "",
    form: str = "",
    because: str = "",
) -> Number:
    """Return a number that shows its work.

    Parameters
    ----------
    what
        An answer of one point (a profile, a service, a phase of a service, a
        training run, a footprint), a row of a sweep, a device, a system, a cluster,
        a grid, a data centre, a region, a model, a measurement or a published
        figure, or a plain number that you reckoned yourself.
    name
        Of a profile, a phase, a run, a footprint or a row: any result. Of a service: any result, or
        with a phase before it, such as "decode.total_bytes". Of a device or a
        system: a figure such as "memory.bandwidth" or "link.bandwidth"; or
        "ridge_point", and "device_bandwidth" (of a link, one way). Of a grid, a
        data centre or a region: a figure such as "carbon_intensity" (the last on
        record) or "pue.2023". Of a model:
        "parameters"; of a network "inference_flops"; of a language model
        "active_parameters" and "cache_bytes_per_token" (bf16). Of a plain
        number: what it is.
    unit, form
        How to print it, such as unit="us", form=".1f"; unit=None prints the
        number alone.
    because
        For a plain number: how it came to be.

    Raises
    ------
    UnknownNameError
        If there is no such result or figure.
    InvalidValueError
        If it is not one number.
    DoesNotFitError
        If a time is asked for that needs more memory than there is.

    >>> print(show(Engine.solve(model="ResNet50", hardware="A100"), unit="us", form=".1f"))
    55.5 µs
    >>> from mlsim import Hardware
    >>> print(show(Hardware.Cloud.A100, "memory.bandwidth"))
    2,039 GB/s
    """
    made = _made(what, name, because)
    return made if unit == "" and not form else made.show(unit, form)


def _made(what: Any, name: str, because: str) -> Number:
    if isinstance(what, Number):
        return what
    for kind, make in _MAKERS:
        if isinstance(what, kind):
            made: Number = make(what, name)
            return made
    if hasattr(what, "index") and hasattr(what, "get") and "hardware" in what:
        return _of_profile(_solve_again(what), name)
    return _of_literal(what, name, because)


def _words(name: str) -> str:
    return name.replace("_", " ").replace(".", " ")


def _of_profile(profile: Profile, name: str) -> Number:
    if profile.configuration.shape:
        raise InvalidValueError(f"{profile!r} holds many points; pick one, such as profile[0].")
    where = (
        f"{profile.model.name} on {profile.hardware.name}, batch {profile.batch_size}, "
        f"{profile.precision}, {profile.estimate}"
    )
    return answered(profile, name, where)


def _of_serving(serving: Serving, name: str) -> Number:
    phase, dot, quantity = name.partition(".")
    if dot and phase in PHASES:
        return _of_step(getattr(serving, phase), quantity)
    if serving.shape:
        raise InvalidValueError(f"{serving!r} holds many points; pick one, such as serving[0].")
    if name == "latency":
        name = "generation_latency" if serving.model.decoder else "time_to_first_token"
    service = serving.service
    tokens = f"{service.prompt_tokens:,.0f} + {service.output_tokens:,.0f} tokens"
    where = (
        f"{service.model.name} on {service.hardware_name}, {serving.batch_size:,} x {tokens}, "
        f"{service.formats.name}, {service.estimate}"
    )
    return answered(serving, name, where)


def _of_step(step: StepProfile, name: str) -> Number:
    phase = step.phase
    service = phase.service
    if phase.shape:
        raise InvalidValueError(
            f"{step!r} holds many points; pick one, such as serving[0].{phase.name}."
        )
    tokens = f"{phase.new_tokens:,.0f} new and {phase.cached_tokens:,.0f} cached tokens"
    where = (
        f"{phase.name} of {service.model.name} on {service.hardware_name}, "
        f"{service.batch_size:,.0f} x {tokens}, {service.formats.name}, {service.estimate}"
    )
    return answered(step, name, where)


def _of_figure(figure: Figure, name: str) -> Number:
    printed = f"{figure.text} {figure.direction}".strip()
    brief = f"{_words(name)}: {printed}, {figure.kind}"
    if figure.source:
        where = f"{figure.where}: “{figure.quote}”, read {figure.read}"
        brief += f", [@{figure.source}], {literal(where)}"
    how = brief + (f"\n\n{literal(figure.note)}" if figure.note else "")
    number = Number(figure.si, figure.base, _words(name), brief, how)
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
        return _of_literal(cluster.devices, f"devices of {cluster.name}", what)
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


def _of_measurement(row: Measurement) -> Number:
    words = f"measured throughput of {row.model} on {row.device.name}, batch {row.batch_size}"
    how = (
        f"{words}, {row.precision}: {row.value:,g} samples per second with {literal(row.software)} "
        f"in {row.year} [@{row.source}], in these words: “{literal(row.quote)}”. {row.note}"
    )
    return Number(row.value, "sample/s", words, how.rpartition(", in these")[0], how.strip())


def _of_serving_measurement(row: ServingMeasurement) -> Number:
    brief = f"measured: {row.words}: {text(row.value, row.unit)} [@{row.source}]"
    how = f"{brief}, in these words: “{literal(row.quote)}”. {literal(row.note)}"
    name = f"measured {row.metric.replace('_', ' ')}"
    return Number(row.value, row.unit, name, brief, how.strip())


_MAKERS: tuple[tuple[type, Any], ...] = (
    (Profile, _of_profile),
    (Serving, _of_serving),
    (StepProfile, _of_step),
    (Device, _of_device),
    (System, _of_system),
    (Cluster, _of_cluster),
    *MAKERS,
    (Place, _of_place),
    (Network, _of_network),
    (Transformer, _of_transformer),
    (Measurement, lambda row, _: _of_measurement(row)),
    (ServingMeasurement, lambda row, _: _of_serving_measurement(row)),
    (Figure, lambda figure, _: _of_figure(figure, figure.name)),
)


def _of_literal(what: Any, name: str, because: str) -> Number:
    if isinstance(what, bool) or not hasattr(what, "__float__"):
        raise InvalidValueError(
            "show takes an answer, a device, a system, a model, a measurement or a number, "
            f"not {what!r}."
        )
    if hasattr(what, "units"):
        value, base = float(what.to_base_units().magnitude), f"{what.to_base_units().units:~C}"
        base = base or "1"
    else:
        value, base = float(what), "1"
    brief = f"{name} = {text(value, base)}" + (f", {because}" if because else "")
    return Number(value, base, name, brief, brief)


def _solve_again(row: Any) -> Profile:
    """Return the profile behind a row of a sweep.

    Raises
    ------
    UnknownNameError
        If its model or device is not in the zoo (one of your own, say).
    """
    try:
        return Engine.solve(
            model=row["model"],
            hardware=row["hardware"],
            batch_size=int(row["batch_size"]),
            precision=row["precision"],
            estimate=row.get("estimate", "roofline"),
        )
    except UnknownNameError as error:
        raise UnknownNameError(
            f"this row can't be opened: {error} Solve it yourself, and show the profile."
        ) from None
