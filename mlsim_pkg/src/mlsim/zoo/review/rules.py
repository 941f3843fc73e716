"""Rules for devices, systems, clusters and models: physics, and published counts.

Each check is a function that yields what it finds; the first line of its
docstring is the rule. The tests apply the rules to the whole zoo, and `mlsim
zoo check` to a user's file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mlsim.hardware import Device
from mlsim.infrastructure import CloudOperator, DataCentre, EmbodiedCarbon
from mlsim.precision import PRECISIONS
from mlsim.records import Figure
from mlsim.systems import Cluster, System
from mlsim.units import text
from mlsim.workloads.blocks import Attention
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model, Network
from mlsim.zoo.review.second_readings import Finding, provenance, quotes, reread, scales
from mlsim.zoo.spaces import Hardware

# The least of its design power that an idle device has been seen to draw, with room
# below: 9 W of 575 W, and one or two watts of a card that sleeps.
IDLE_SHARE = 0.005
# How much the host of a device may draw beside it, for each of its watts.
HOST_MOST = 2.0
# PUE and, in liters per kilowatt-hour, WUE: no data center exceeds these.
PUE_MOST, WUE_MOST = 3.0, 10.0
# The carbon of manufacturing a device, and a server with its share of them, in kg CO2e.
CARBON = (1.0, 50_000.0)
_KWH = 3.6e6


def idle_power(device: Device) -> Iterator[Finding]:
    """An idle device draws less than its design power, and more than a two-hundredth of it."""
    idle, tdp = device.figures.get("power.idle"), device.figures.get("power.tdp")
    if idle and tdp and not IDLE_SHARE * tdp.si < idle.si < tdp.si:
        yield Finding("power.idle", f"{idle.text} idle can't be with {tdp.text} at most.")


def whole_power(system: System) -> Iterator[Finding]:
    """A whole system draws what its devices may, and for the rest at most twice as much."""
    whole, tdp = system.figures.get("power.max"), system.device.figures.get("power.tdp")
    if whole and tdp:
        devices = system.devices * tdp.si
        if not devices <= whole.si <= (1 + HOST_MOST) * devices:
            yield Finding(
                "power.max",
                f"{whole.text} is not the whole of {system.devices} devices of {tdp.text}: "
                f"{text(devices, 'W')} to {text((1 + HOST_MOST) * devices, 'W')} can be.",
            )
    idle = system.figures.get("power.idle")
    if idle and whole and idle.si >= whole.si:
        yield Finding("power.idle", f"{idle.text} idle is not below {whole.text} at most.")


def overheads(center: DataCentre) -> Iterator[Finding]:
    """A PUE is below 3, and a WUE below 10 L/kWh."""
    for name, figure in center.figures.items():
        most = PUE_MOST if name.startswith("pue.") else WUE_MOST / _KWH
        if figure.si >= most:
            yield Finding(name, f"{figure.text} is more than any data center has reported.")


def reported_emissions(operator: CloudOperator) -> Iterator[Finding]:
    """Over its electricity, an operator's Scope 2 is below that of the worst coal."""
    worst = 1500e-3 / _KWH
    for account in ("location", "market"):
        for year in operator.years(f"scope2_{account}"):
            if year not in operator.years("electricity"):
                continue
            name = f"scope2_{account}.{year}"
            emitted, used = operator.figures[name], operator.figures[f"electricity.{year}"]
            if emitted.si / used.si > worst:
                yield Finding(name, f"{emitted.text} over {used.text} is above 1,500 gCO2e/kWh.")


def manufacturing(embodied: EmbodiedCarbon) -> Iterator[Finding]:
    """Manufacturing a device or server emits 1 kg to 50 t; its lifetime is 0.5 to 20 years."""
    each = embodied.figures["carbon"].si / embodied.devices
    if not CARBON[0] <= each <= CARBON[1]:
        yield Finding("carbon", f"{embodied.figures['carbon'].text} can't be: is the unit right?")
    lifetime = embodied.figures.get("lifetime")
    year = 365 * 86400.0
    if lifetime and not 0.5 * year <= lifetime.si <= 20 * year:
        yield Finding(
            "lifetime",
            f"{lifetime.text} can't be a lifetime; 0.5 to 20 years can. Is the unit right?",
        )


# Ridge points in FLOP/B: where DRAM feeds the units, and the least where SRAM does.
RIDGE = (1.0, 5000.0)
RIDGE_SRAM = 0.05
# 2:4 sparsity doubles a rate at most; figures are printed rounded: 5 PFLOP/s are 2 x 2.45.
SPARSE_GAIN = 2.05
# How far beyond its peers a figure may lie, which years are theirs, and how few
# of them are too few to judge by.
FACTOR, YEARS, PEERS = 4.0, 5, 3
COMPARED = {
    "memory.capacity": "B", "memory.bandwidth": "B/s", "power.tdp": "W",
    **dict.fromkeys(("links.nvlink", "links.pcie", "links.infinity_fabric", "links.ici"), "B/s"),
}  # fmt: skip
RELEASED = (2000, 2030)
# Error correction takes a sixteenth of GDDR; a printed GB may be a GiB.
LISTED_LEAST = 0.9
BINARY = {"MB": 2**20 / 1e6, "GB": 2**30 / 1e9, "TB": 2**40 / 1e12}

Record = Device | System | Cluster | Model | DataCentre | CloudOperator | EmbodiedCarbon
Check = Callable[[Any], Iterator[Finding]]


# Devices.


def sparsity(device: Device) -> Iterator[Finding]:
    """A dense peak is not above the sparse one, nor that above twice the dense one."""
    for precision, dense in device.compute.figures.items():
        sparse = device.figures.get(f"sparse.{precision}")
        if sparse and not dense.si <= sparse.si <= SPARSE_GAIN * dense.si:
            yield Finding(
                f"sparse.{precision}",
                f"{sparse.text} sparse is {sparse.si / dense.si:.3g} times the "
                f"{dense.text} dense; 1 to 2 times can be.",
            )


def ridge_points(device: Device) -> Iterator[Finding]:
    """A ridge point lies between 1 and 5,000 FLOP/B (0.05 where a note says SRAM)."""
    bandwidth = device.memory.figures["bandwidth"]
    least, most = RIDGE_SRAM if _sram(device) else RIDGE[0], RIDGE[1]
    for precision, peak in device.compute.figures.items():
        ridge = float(device.ridge_point(precision).magnitude)
        if not least < ridge < most:
            wrong = "bandwidth is too large" if ridge <= least else "bandwidth is too small"
            yield Finding(
                "memory.bandwidth",
                f"{peak.text} in {precision} over {bandwidth.text} is a ridge point of "
                f"{ridge:.3g} FLOP/B, not {least:g} to {most:,.0f}: the {wrong}, or the peak "
                f"too {'small' if ridge <= least else 'large'}.",
            )


def _sram(device: Device) -> bool:
    return "SRAM" in device.memory.figures["bandwidth"].note


def widths(device: Device) -> Iterator[Finding]:
    """On one kind of unit, a format of fewer bits is not slower (or a note says why)."""
    for name, wide in device.compute.figures.items():
        for other, narrow in device.compute.figures.items():
            fewer = PRECISIONS[other].bits < PRECISIONS[name].bits
            # TF32 is stored in 32 bits, but multiplied in 19. Integers may have
            # units of their own, which a note then says.
            same = name[:2] == other[:2]
            if (
                fewer
                and "tf32" not in (name, other)
                and narrow.unit_used == wide.unit_used
                and narrow.si < wide.si
                and (same or not narrow.note)
            ):
                yield Finding(
                    f"compute.{other}",
                    f"{narrow.text} in {other} is slower than {wide.text} in {name}, "
                    "which has more bits.",
                )


def memories(device: Device) -> Iterator[Finding]:
    """A cache holds more than 100 kB and less than a hundredth of main memory."""
    cache = device.memory.figures.get("l2")
    # The caches of microcontrollers and of chips without DRAM are another matter.
    if cache and not _sram(device) and not 1e5 < cache.si < device.capacity_si / 100:
        capacity = device.memory.figures["capacity"]
        yield Finding("memory.l2", f"{cache.text} can't be the cache of {capacity.text}.")


def listings(device: Device) -> Iterator[Finding]:
    """A driver lists 0.9 to 1 times the printed memory (1.07 if a GB is a GiB); none is a note."""
    listed = device.memory.figures["capacity"]
    printed = device.memory.figures.get("printed")
    most = BINARY.get((printed or listed).unit, 1.0)
    if printed is None:
        if most > 1.0 and not _sram(device):
            taken = f"{listed.text} is taken for {listed.si:,.0f} B."
            message = (
                f"{taken} If that is printed, and a driver lists another size, such as 81559 MiB, "
                "call this [memory.printed] and the driver's [memory.capacity]."
            )
            yield Finding("memory.capacity", message, error=False)
    elif not LISTED_LEAST <= listed.si / printed.si <= most * (1 + 1e-12):
        yield Finding(
            "memory.capacity",
            f"{listed.text} is {listed.si / printed.si:.3g} times the printed {printed.text}; "
            f"{LISTED_LEAST:g} to {most:.3g} times can be.",
        )


def links(device: Device) -> Iterator[Finding]:
    """A link is slower than main memory."""
    for name, figure in device.figures.items():
        if name.startswith("links.") and figure.si >= device.bandwidth_si:
            bandwidth = device.memory.figures["bandwidth"]
            yield Finding(name, f"{figure.text} is not slower than the memory's {bandwidth.text}.")


def years(device: Device) -> Iterator[Finding]:
    """A device came out between 2000 and 2030."""
    year = device.release_year
    if year is not None and not RELEASED[0] <= year <= RELEASED[1]:
        yield Finding("release_year", f"{year} is not between {RELEASED[0]} and {RELEASED[1]}.")


def peers(device: Device) -> Iterator[Finding]:
    """Memory, links and power lie within 4 times those of its class and years in the zoo."""
    group = device.key.partition(".")[0]
    alike = [each for each in Hardware if each.key.startswith(f"{group}.") and _near(each, device)]
    for name, base in COMPARED.items():
        figure = device.figures.get(name)
        if figure is None or (_sram(device) and name.startswith("memory.")):
            continue
        found = [
            each.figures[name].one_way
            for each in alike
            if name in each.figures and not (_sram(each) and name.startswith("memory."))
        ]
        if len(found) < PEERS:
            few = f"{len(found)} of {group} within {YEARS} years in the zoo: not compared."
            yield Finding(name, few, error=False)
        elif not min(found) / FACTOR <= figure.one_way <= FACTOR * max(found):
            yield Finding(name, _beyond(figure, found, base, group))


def _near(each: Device, device: Device) -> bool:
    if each.key == device.key:
        return False
    if each.release_year is None or device.release_year is None:
        return True
    return abs(each.release_year - device.release_year) <= YEARS


def _beyond(figure: Figure, found: Sequence[float], base: str, group: str) -> str:
    low, high = min(found), max(found)
    value = figure.one_way
    times, what = value / high, "times the most"
    if value <= high:
        times, what = low / value, "times less than the least"
    shown = f"{times:,.0f}" if times >= 100 else f"{times:.3g}"
    both = ", both ways," if figure.direction == "both ways" else ""
    one_way = " one way" if figure.direction else ""
    return (
        f"{figure.text}{both} is {shown} {what} of {group} within {YEARS} years in the zoo, which "
        f"have {text(low, base)} to {text(high, base)}{one_way}. Is the prefix right?"
    )


# Systems.


def joints(system: System) -> Iterator[Finding]:
    """A device sends less to the others than its memory delivers."""
    if system.device_bandwidth_si >= system.device.bandwidth_si:
        sent = text(system.device_bandwidth_si, "B/s")
        yielded = text(system.device.bandwidth_si, "B/s")
        yield Finding("link.bandwidth", f"{sent} one way is not below the memory's {yielded}.")


def fabrics(cluster: Cluster) -> Iterator[Finding]:
    """A device sends no more to other nodes than within its own."""
    if cluster.fabric_bandwidth > cluster.node.device_bandwidth_si:
        out = text(cluster.fabric_bandwidth, "B/s")
        inside = text(cluster.node.device_bandwidth_si, "B/s")
        yield Finding("link.bandwidth", f"{out} to other nodes is above {inside} within one.")


# Models.


def published(model: Model) -> Iterator[Finding]:
    """The parameters that follow from the architecture are those that were published."""
    figure = model.figures.get("published_parameters")
    if figure is None:
        message = f"{model.parameter_count:,} parameters follow; no published count to compare."
        yield Finding("published_parameters", message, error=False)
    elif abs(counted_as_published(model) - figure.si) >= _tolerance(figure):
        yield Finding(
            "published_parameters",
            f"{figure.text} was published, but {model.parameter_count:,} follow from the "
            "architecture.",
        )


def counted_as_published(model: Model) -> int:
    """Return the parameters as the published count counts them."""
    return _COUNTED_OTHERWISE.get(model.key, lambda _: model.parameter_count)(model)


def _with_copies(model: Transformer) -> int:
    """Count GPT-J as its README does: norms and biases on each of 8 shards; see its file."""
    return model.parameter_count + 610 * model.hidden


def _with_prediction_layer(model: Transformer) -> int:
    """Count GLM-4.5 as its report does: with the layer that predicts a second token.

    That has experts, a matrix that joins two vectors and five norms. The tables of
    words, at both ends, are not counted.
    """
    hidden = model.hidden
    layer = model.attention.parameters(hidden) + 2 * hidden**2 + 5 * hidden
    if model.experts:
        layer += model.experts.parameters(hidden)
    return model.parameter_count + layer - 2 * model.vocabulary * hidden


def _learned(model: Network) -> int:
    """Count what is learned: the vectors of a layer of distances are drawn by hand."""
    return sum(
        each.parameters * each.repeats for each in model.operators if each.kind != "distances"
    )


def _with_unread_keys(model: Transformer) -> int:
    """Count Gemma 3n as its files hold it: with keys and values that nobody reads.

    The last layers read the cache of earlier ones; the files have matrices for a cache of
    their own, and a norm of keys.
    """
    unread = sum(
        each * (2 * model.hidden * one.kv_heads * one.head_size + one.head_size)
        for each, one in model.mixers
        if isinstance(one, Attention) and one.shared_cache
    )
    return model.parameter_count + unread


_COUNTED_OTHERWISE: dict[str, Callable[[Any], int]] = {
    "GPT_J_6B": _with_copies,
    "GLM_4_5": _with_prediction_layer,
    "GLM_4_7": _with_prediction_layer,
    "Gemma3n_E2B": _with_unread_keys,
    "Gemma3n_E4B": _with_unread_keys,
    "LeNet5": _learned,
}


def _tolerance(figure: Figure) -> float:
    """Return the tolerance: a count differs from the printed one by less than this.

    An exact count by nothing. "405B" may be rounded, or cut off after the last
    digit that is not 0.
    """
    if figure.unit == "parameter":
        return 1.0
    whole, _, decimals = f"{figure.value:.15g}".partition(".")
    zeros = 0 if decimals else len(whole) - len(whole.rstrip("0"))
    return float(figure.si / figure.value * 10.0 ** (zeros - len(decimals)))


FIGURE_CHECKS: tuple[Check, ...] = (quotes, scales, provenance)
DEVICE_CHECKS: tuple[Check, ...] = (sparsity, ridge_points, widths, memories, listings)
DEVICE_CHECKS += (links, years, peers, idle_power)
SYSTEM_CHECKS: tuple[Check, ...] = (joints, whole_power)
MODEL_CHECKS: tuple[Check, ...] = (published,)
_CHECKS: dict[type, tuple[Check, ...]] = {
    Device: DEVICE_CHECKS,
    System: SYSTEM_CHECKS,
    Cluster: (fabrics,),
    DataCentre: (overheads,),
    CloudOperator: (reported_emissions,),
    EmbodiedCarbon: (manufacturing,),
    Model: MODEL_CHECKS,
}


def checks_of(record: Record) -> tuple[Check, ...]:
    """Return the checks for a record: those of its figures, and those of its kind."""
    own = next(each for kind, each in _CHECKS.items() if isinstance(record, kind))
    return (*FIGURE_CHECKS, reread, *own)


def rule(check: Check) -> str:
    """Return the rule of a check: the first line of its docstring.

    >>> rule(links)
    'A link is slower than main memory.'
    """
    return (check.__doc__ or "").partition("\n")[0]
