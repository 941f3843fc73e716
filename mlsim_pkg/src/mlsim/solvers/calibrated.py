"""The calibrated estimate: which equations hold, what is known, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from mlsim.equations import Equation, calibration as physics, equations_of, step
from mlsim.hardware import Device
from mlsim.hardware.device_calibration import TILE, Calibration, calibration
from mlsim.solvers.question import Known, recorded

EQUATIONS = equations_of(physics)

# What was measured, and may be given in place of it.
OF_DEVICE = ("compute_fraction", "memory_fraction", "kernel_overhead")
OF_LINK = ("link_fraction", "link_latency")


def chosen(*, sends: bool, network: bool) -> dict[str, str]:
    """Name the equation for each quantity that has several.

    Parameters
    ----------
    sends
        Whether devices send to one another.
    network
        Whether a network of layers is asked about, and not a step of a transformer.
    """
    return {
        "compute_time": "calibrated_compute_time",
        "memory_time": "calibrated_memory_time",
        "network_time": "calibrated_network_time",
        "operator_time": "started_and_sent_time" if sends else "started_time",
        "latency": "step_latency",
        "compute_bound_share": "calibrated_compute_bound_share",
        "product_rows": "convolution_rows" if network else "product_rows",
    }


def network_equations(roofline: Iterable[Equation]) -> tuple[Equation, ...]:
    """Return the equations of a network of layers, from those of the roofline."""
    names = chosen(sends=False, network=True)
    # A step of a transformer has the sum over operators with their starts.
    candidates = (*roofline, *EQUATIONS, *equations_of(step))
    kept = [each for each in candidates if names.get(each.yields, each.name) == each.name]
    # Of what has one equation here and another in a step, the first is meant.
    return tuple({each.yields: each for each in reversed(kept)}.values())


def constants(
    device: Device, precisions: Iterable[str], given: Mapping[str, Any]
) -> dict[str, Calibration]:
    """Return what a device was measured to reach, for each precision.

    Nothing is looked up, and the answer is empty, where all of it is given.

    Raises
    ------
    NotMeasuredError
        If there are no measurements of the device.
    """
    if set(OF_DEVICE) <= set(given):
        return {}
    return {name: calibration(device, name) for name in dict.fromkeys(precisions)}


def reached(found: Calibration, name: str, *, attention: bool) -> float:
    """Return a constant for an operator; attention reaches a part of the peak of its own."""
    own = attention and name == "compute_fraction"
    return float(getattr(found, "attention_fraction" if own else name))


def add_tiling(known: Known, device: Device) -> None:
    """Add what tells how a product fills a device: 1 if nobody counts its cores."""
    if device.cores is None:
        words = f"assumed: no number of cores of {device.name} is on record, so all count as full"
        known.add(words, filled_share=1.0)
        return
    library = "convention: the common tile of a library for matrix products"
    known.add(library, tile_size=float(TILE))
    known.add(recorded(device, device.figures["cores"]), cores=float(device.cores))


def add_origins(known: Known, device: Device, found: Mapping[str, Calibration]) -> None:
    """Add the origins of what was measured of a device, and of the columns that come with it."""
    known.columns("the model's architecture: columns of each matrix product", "outputs")
    for name in OF_DEVICE if found else ():
        known.columns(partial(_origin, name, device, found), name)


def _origin(name: str, device: Device, found: Mapping[str, Calibration]) -> str:
    """Say of which measurements a constant was made; those of several formats each."""
    words = {each: _words(one, name) for each, one in found.items()}
    if len(set(words.values())) == 1:
        return f"{device.name}, {next(iter(words.values()))}"
    return f"{device.name}, " + "; or ".join(f"in {each}: {text}" for each, text in words.items())


def _words(found: Calibration, name: str) -> str:
    if name != "compute_fraction":
        return found.origins[name]
    return f"{found.origins[name]}; for attention {found.origins['attention_fraction']}"
