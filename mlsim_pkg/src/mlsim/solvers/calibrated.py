"""The calibrated estimate: which equations hold, what is known, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from statistics import median
from typing import Any

from mlsim.equations import (
    Equation,
    calibration as physics,
    equations_of,
    kernels,
    transformer,
)
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.hardware.device_calibration import (
    LEAST_DEPTH,
    TILE,
    Calibration,
    calibration,
    tiling,
    unit_width,
)
from mlsim.hardware.kernel_constants import (
    ENGINES,
    LEVELS,
    NOBODY,
    SOURCE,
    Loan,
    all_series,
    kernel_series,
    relatives,
)
from mlsim.parameters import CALIBRATED
from mlsim.software import Software, core_lanes, software
from mlsim.solvers.question import Known, recorded
from mlsim.workloads.model import FLOPS_PER_MULTIPLY_ADD

# Of what a program adds, what is worked out once for a table of operators.
ONCE = (
    *("part_of_start", "software_overhead", "core_cycles", "core_weight_rate"),
    *("side_worked_fraction", "software_fraction", "brought_bytes", "device_scores"),
)
EQUATIONS = (
    *equations_of(physics.CALIBRATION, kernels.EXCHANGE_KERNELS),
    *(each for each in equations_of(physics.SOFTWARE) if each.name not in ONCE),
)
# The engine whose experts stand for a class that is none of the atlas's engines.
EXPERT_ENGINE = "trtllm"
# Who says nothing of the software means the door's own.
DEFAULTS = {
    "solve": "engine",
    "serve": "engine",
    "train": "framework",
    "train_network": "eager",
}

# What was measured, and may be given in place of it.
OF_DEVICE = ("compute_fraction", "memory_fraction", "kernel_overhead")
MAIN_OF_LINK = ("link_fraction", "link_latency")
OF_LINK = (
    *MAIN_OF_LINK,
    *("peer_start", "own_steps", "ramp_start", "ramp_bytes", "direct_fraction", "direct_mark"),
)


def chosen(
    *,
    sends: bool,
    network: bool,
    hosted: bool = False,
    unfused: bool = False,
    worked: bool = False,
    ahead: bool = False,
) -> dict[str, str]:
    """Name the equation for each quantity that has several.

    Parameters
    ----------
    sends
        Whether devices send to one another.
    network
        Whether a network of layers is asked about, and not a step of a transformer.
    hosted, unfused, worked
        Whether the host takes part, whether activations cross the memory more often than
        fused operators move them, and whether cores limit how fast weights are read.
    ahead
        Whether the host schedules a step while the device works on the one before.
    """
    turns = "ahead_step_latency" if ahead else "hosted_step_latency"
    waits = "hosted_latency" if network else turns
    fused = "activation_bytes" if network else "token_activation_bytes"
    passes = "unfused_activation_bytes" if network else "unfused_token_bytes"
    return {
        "compute_time": "calibrated_compute_time",
        "memory_time": "worked_memory_time" if worked else "calibrated_memory_time",
        "network_time": "calibrated_network_time" if network else "ramped_network_time",
        "operator_time": "started_and_sent_time" if sends else "started_time",
        "latency": waits if hosted else "step_latency",
        "launch_count": "launch_count" if network else "step_launch_count",
        "total_overhead_time": "hosted_overhead_time" if hosted else "total_overhead_time",
        "activation_bytes": passes if unfused else fused,
        "compute_bound_share": "calibrated_compute_bound_share",
        "product_rows": "convolution_rows" if network else "product_rows",
        "waves": "shared_waves",
        "filled_share": "shared_filled_share",
    }


@lru_cache(maxsize=8)
def network_equations(
    roofline: tuple[Equation, ...], *, hosted: bool = False, unfused: bool = False
) -> tuple[Equation, ...]:
    """Return the equations of a network of layers, from those of the roofline."""
    names = chosen(sends=False, network=True, hosted=hosted, unfused=unfused)
    # A step of a transformer has the sum over operators with their starts.
    candidates = (*roofline, *EQUATIONS, *equations_of(transformer.STEP))
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


def software_of(given: Software | str | None, estimate: str, door: str) -> Software | None:
    """Return the class of software of a question; None where no estimate takes it.

    Raises
    ------
    InvalidValueError
        If software is given for another estimate than the calibrated one.
    UnknownNameError
        If there is no such class.
    """
    if estimate != CALIBRATED:
        if given is not None:
            raise InvalidValueError(
                f"software={getattr(given, 'key', given)!r} goes with estimate='calibrated' only: "
                f"the {estimate} knows of no program. Leave software out, or ask for 'calibrated'."
            )
        return None
    if isinstance(given, Software):
        return given
    return software(DEFAULTS[door] if given is None else given)


# Units for matrices at full rate have at least so many times the peak of general units.
_WIDE = 3.0


def in_program(
    measured: float, made_by: Software, kind: str, device: Device, precision: str
) -> float:
    """Return the part of the peak that an operator of a kind reaches inside a program.

    >>> from mlsim import Hardware
    >>> from mlsim.software import software
    >>> found = in_program(0.8, software("eager"), "convolution", Hardware.Cloud.A100, "fp16")
    >>> 0.1 < found < 0.4
    True
    """
    peak, plain = device.compute.figure(precision).si, device.compute.figures.get("fp32")
    wide = plain is None or unit_width(device, precision) >= _WIDE
    share = made_by.value("product_share" if wide else "plain_share")
    if kind == "attention":
        share = made_by.value("attention_share")
    reached = float(physics.software_fraction(measured, share))
    work = made_by.value("side_work")
    if kind != "convolution" or not work or plain is None:
        return reached
    general = float(
        physics.software_fraction(plain.si, calibration(device, "fp32").compute_fraction)
    )
    return float(physics.side_worked_fraction(reached, work, peak, general))


def streamed(measured: float, made_by: Software) -> float:
    """Return the part of the bandwidth that a program's operators reach."""
    return float(physics.software_fraction(measured, made_by.value("stream_share")))


def sent(measured: float, made_by: Software | None) -> float:
    """Return the part of a link's rate that a program's exchanges reach."""
    share = 1.0 if made_by is None else made_by.value("sending_share")
    return float(physics.software_fraction(measured, share))


def start_of(measured: float, made_by: Software, kind: str) -> float:
    """Return the time in s to start an operator of a kind, which may be several kernels."""
    each = made_by.value("kernel_start") or measured
    return float(physics.software_overhead(each, made_by.kernels(kind)))


# Paths of the atlas's experts by the format of weights, the same as of their other constants;
# other weights are as in 16 bits.
# MXFP4 has none: the kernels on record are of paths that services don't take.
_EXPERT_PATHS = {
    "fp8": "fp8_block",
    "fp4": "fp4",
    "nvfp4": "fp4",
    "mxfp4": "",
    "int4": "int4_weights",
}
# A layer's experts are two products here, and one measurement there.
_EXPERT_PRODUCTS = 2.0


@lru_cache(maxsize=256)
def expert_start(device: Device, made_by: Software, weights: str) -> float | None:
    """Return the time in s to start one product of experts; None where nobody measured it.

    It is that of the atlas's experts on the device or its relatives, by the engine of the
    class if it has one.
    """
    path = _EXPERT_PATHS.get(weights, "bf16")
    engine = made_by.key if made_by.key in ENGINES["experts"] else EXPERT_ENGINE
    having = [key[0] for key in all_series() if key[1:] == ("experts", path, engine)]
    kin = relatives(device.key, having)
    if kin is None or kin.level == "class":
        return None
    starts = [
        kernel_series(key, "experts", path, engine).values["kernel_overhead"] for key in kin.keys
    ]
    return float(physics.part_of_start(median(starts), _EXPERT_PRODUCTS))


def weight_rate(device: Device, made_by: Software, *, narrow: bool) -> float:
    """Return the weights in a second that a device's cores bring to a product; inf: no limit.

    Parameters
    ----------
    narrow
        Whether the weights are in fewer bits than the arithmetic.
    """
    name = "narrow_weights_per_cycle" if narrow else "weights_per_cycle"
    each = made_by.value(name)
    cycles = cycles_of(device)
    if each == math.inf or cycles is None:
        return math.inf
    return float(physics.core_weight_rate(cycles, each))


def cycles_of(device: Device) -> float | None:
    """Return the clock cycles of all cores in a second; None if no peak is on record."""
    figure = device.compute.figures.get("fp32")
    if figure is None:
        return None
    lanes = core_lanes(device.key)
    return float(physics.core_cycles(figure.si, lanes, FLOPS_PER_MULTIPLY_ADD))


def add_software(known: Known, made_by: Software, *names: str) -> None:
    """Add terms of a class of software, each with its origin."""
    for name in names:
        known.add(partial(made_by.origin, name), **{name: made_by.value(name)})


def add_tiling(known: Known, device: Device) -> None:
    """Add what tells how a product fills a device: 1 if nobody counts its cores."""
    if device.cores is None:
        words = f"assumed: no number of cores of {device.name} is on record, so all count as full"
        known.add(words, filled_share=1.0)
        return
    lost, small = tiling(device.key)
    library = "convention: the common tile of a library for matrix products"
    known.add(library, tile_size=float(TILE), least_depth=LEAST_DEPTH)
    words = f"fitted to products in 16 bits on {device.name} or its relatives; {SOURCE}"
    known.add(words, last_round_share=lost, small_tile_fraction=small)
    known.add(recorded(device, device.figures["cores"]), cores=float(device.cores))


# The term of a program that stands beside, or in place of, what was measured.
_TERMS = {
    "compute_fraction": "product_share",
    "memory_fraction": "stream_share",
    "kernel_overhead": "kernel_start",
}


def add_origins(
    known: Known, device: Device, found: Mapping[str, Calibration], made_by: Software | None
) -> None:
    """Add the origins of what was measured of a device, and of the columns that come with it."""
    known.columns("the model's architecture: columns of each matrix product", "outputs")
    for name in OF_DEVICE if found else ():
        known.columns(partial(_origin, name, device, found, made_by), name)


def _origin(
    name: str, device: Device, found: Mapping[str, Calibration], made_by: Software | None
) -> str:
    """Say of which measurements a constant was made, and what a program makes of it."""
    attention = name == "compute_fraction"
    words = {
        each: one.origins[name]
        + (f"; for attention {one.origins['attention_fraction']}" if attention else "")
        for each, one in found.items()
    }
    several = len(set(words.values())) > 1
    parts = [f"in {each}: {text}" if several else text for each, text in words.items()]
    measured = f"{device.name}, {'; or '.join(dict.fromkeys(parts))}"
    if made_by is None or _TERMS[name] not in made_by.terms:
        return measured
    how = "replaced by" if name == "kernel_overhead" else "times"
    value = made_by.value(_TERMS[name])
    return f"{measured}; {how} {value:.3g} of {made_by.origin(_TERMS[name])}"


# A part of the time that is worth a word.
TENTH = 0.1
# Which causes of a step's time each constant decides; of all others, any.
DECIDED_BY: Mapping[str, tuple[str, ...]] = {
    "compute_fraction": ("arithmetic",),
    "attention_fraction": ("arithmetic",),
    "memory_fraction": ("memory",),
    "tiling": ("tiles",),
    "exchange": ("network",),
}
# What a product reaches; who gives that borrows none of it.
OF_PRODUCTS = ("compute_fraction", "attention_fraction")
_ORDER = (*LEVELS, NOBODY)


def farthest(loans: Iterable[Loan]) -> tuple[Loan, ...]:
    """Return each constant once: of several formats, as it was lent from farthest."""
    found: dict[str, Loan] = {}
    for each in loans:
        known = found.get(each.constant)
        if known is None or _ORDER.index(known.kin.level) < _ORDER.index(each.kin.level):
            found[each.constant] = each
    return tuple(found.values())


def without_given(loans: Iterable[Loan], given: Mapping[str, Any]) -> list[Loan]:
    """Return loans without those of constants that were given."""
    products = OF_PRODUCTS if "compute_fraction" in given else ()
    return [each for each in loans if each.constant not in given and each.constant not in products]


def that_matter(loans: Iterable[Loan], causes: Mapping[str, float]) -> tuple[Loan, ...]:
    """Return the loans that decide at least a tenth of the time; and links without a start.

    What is sent over a link at its full rate may well take longer.

    >>> from mlsim.hardware.kernel_constants import Relatives
    >>> loan = Loan("memory_fraction", Relatives("sibling", ("Cloud.A100",)))
    >>> that_matter([loan], {"memory": 0.5}) == (loan,), that_matter([loan], {"memory": 0.05})
    (True, ())
    """
    return tuple(
        each
        for each in loans
        if each.constant not in DECIDED_BY
        or each.kin.level == NOBODY
        or sum(causes.get(name, 0.0) for name in DECIDED_BY[each.constant]) >= TENTH
    )


def loans_words(loans: Iterable[Loan]) -> str:
    """Return loans in one line."""
    return "; ".join(each.words for each in loans)


def borrowed(loans: Iterable[Loan]) -> list[dict[str, Any]]:
    """Return loans for JSON: the constant, how near the lenders are, and their keys."""
    return [
        {
            "constant": each.constant,
            "words": each.words,
            "level": each.kin.level,
            "from": list(each.kin.keys),
        }
        for each in loans
    ]
