"""Cases of single kernels: products, attention, streams of bytes and exchanges."""

from __future__ import annotations

from functools import lru_cache

from mlsim.engine import Engine
from mlsim.engine.predict.case import Case
from mlsim.equations import roofline
from mlsim.equations.calibration import calibrated_compute_time, calibrated_memory_time
from mlsim.errors import InvalidValueError
from mlsim.hardware import lone_transfers
from mlsim.hardware.device_calibration import calibration
from mlsim.hardware.lone_kernels import (
    LoneTime,
    attention_seconds,
    named_attention_seconds,
    product_seconds,
)
from mlsim.precision import precision
from mlsim.systems import System
from mlsim.systems.lone_exchanges import all_reduce_seconds
from mlsim.workloads.model import Linear, Network, Shape

CALIBRATED = "calibrated"
# Products in attention: of queries and keys, and of scores and values; on the way back,
# five, of which one is that of queries and keys once more.
_FORWARD, _BACKWARD = 2, 5
# How often standard attention moves its scores: products write and read them, the softmax
# reads and writes them.
_SCORES_MOVED = 4
# Kernels that engines don't run any more on newer devices; published rows say what they reach.
_PUBLISHED = {"fa2": "FlashAttention-2"}


@lru_cache(maxsize=4096)
def _product(inner: int, columns: int) -> Network:
    return Network(
        key=f"product of {inner} x {columns}",
        name=f"matrix product, {inner} deep and {columns} wide",
        architecture="product",
        source="",
        input=Shape(inner, 1, rank=1),
        layers=(Linear(name="product", out_features=columns, bias=False),),
    )


def product_time(case: Case, estimate: str) -> float:
    """Return the seconds of a matrix product."""
    rows, columns, inner = (case.more_whole(name) for name in ("M", "N", "K"))
    if estimate == CALIBRATED:
        sides = map(float, (rows, columns, inner))
        alone = product_seconds(case.device, case.precision("a_dtype"), *sides)
        if alone is not None:
            case.note(f"by {alone.words}, with operands in their format")
            return alone.seconds
    found = Engine.solve(
        model=_product(inner, columns),
        hardware=case.device,
        batch_size=rows,
        precision=case.precision("a_dtype"),
        estimate=estimate,
        software="kernels" if estimate == CALIBRATED else None,
        check_memory=False,
    )
    return float(found.value("latency"))


def product_rate(case: Case, estimate: str) -> float:
    """Return the FLOP/s of a matrix product."""
    rows, columns, inner = (case.more(name) for name in ("M", "N", "K"))
    return 2.0 * rows * columns * inner / product_time(case, estimate)


def attention_rate(case: Case, estimate: str) -> float:
    """Return the FLOP/s of attention by itself; what a mask leaves out is not counted."""
    tokens, size = case.number("input_len"), case.more("hd")
    causal = bool(case.more("causal", 0, zero=True))
    both = bool(case.more("fwdbwd", 0, zero=True))
    products = _FORWARD + (_BACKWARD if both else 0)
    whole = 2.0 * products * tokens * tokens * size
    counted = whole / 2.0 if causal else whole
    standard = case.extra.get("alg") == "std" and estimate != "bound"
    # Whoever writes scores to memory computes those behind the mask, too.
    flops = whole if standard else counted
    kind = precision(case.precision("a_dtype"))
    # Queries, keys, values and the result; on the way back, their gradients too.
    moved = 4.0 * tokens * size * kind.bytes * (3.0 if both else 1.0)
    if standard:
        moved += _SCORES_MOVED * tokens * tokens * kind.bytes * (2.5 if both else 1.0)
    peak = case.device.compute.figure(kind).si
    bandwidth = case.device.bandwidth_si
    if estimate != CALIBRATED:
        computing = roofline.compute_time(flops, peak)
        return float(counted / max(computing, roofline.memory_time(moved, bandwidth)))
    if not both and not standard:
        alone = _fused(case, kind.name, counted, tokens, size, causal=causal)
        if alone is not None:
            case.note(f"by {alone.words}")
            return counted / alone.seconds
    found = calibration(case.device, kind.name)
    moving = calibrated_memory_time(moved, bandwidth, found.memory_fraction)
    if standard:
        # Products so shallow write their results after the arithmetic, not beside it.
        share = found.compute_fraction
        return float(counted / (calibrated_compute_time(flops, peak, share, 1.0) + moving))
    computing = calibrated_compute_time(flops, peak, found.attention_fraction, 1.0)
    return float(counted / max(computing, moving))


def _fused(
    case: Case, name: str, flops: float, tokens: float, size: float, *, causal: bool
) -> LoneTime | None:
    """Return the time of fused attention of one head, by the kernel that a case names."""
    kernel = _PUBLISHED.get(str(case.extra.get("alg")))
    found = named_attention_seconds(case.device, name, kernel, flops) if kernel else None
    return found or attention_seconds(case.device, name, tokens, size, causal=causal)


def stream_rate(case: Case, estimate: str) -> float:
    """Return the B/s of a kernel that reads or writes one byte after another."""
    operation = str(case.extra.get("op", "copy")).lower()
    if operation not in lone_transfers.WRITTEN:
        known = ", ".join(lone_transfers.WRITTEN)
        raise InvalidValueError(f"extra op must be one of {known}, not {operation}.")
    whole = case.device.bandwidth_si
    if estimate != CALIBRATED:
        return float(whole)
    found = lone_transfers.stream_rate(case.device, operation)
    case.note(f"by {found.words}")
    return found.rate


def link_rate(case: Case, estimate: str) -> float:
    """Return the B/s that a device sends over a link, one way."""
    name = str(case.extra.get("link", "")).lower().rstrip("0123456789")
    figure = case.device.figures.get(f"links.{name}")
    if figure is None:
        links = [each for each in case.device.figures if each.startswith("links.")]
        raise InvalidValueError(
            f"no link {name!r} of {case.device.name} is on record; there are {', '.join(links)}."
        )
    rate = figure.si / 2 if figure.direction == "both ways" else figure.si
    if estimate != CALIBRATED:
        return rate
    if name != "pcie":
        raise InvalidValueError("no constant of this link was measured.")
    found = lone_transfers.host_link_rate(rate)
    case.note(f"by {found.words}")
    return found.rate


def all_reduce_time(case: Case, estimate: str) -> float:
    """Return the seconds in which devices add up a message and share the result."""
    members, message = case.count, case.more("bytes")
    if members < 2:
        raise InvalidValueError(f"count must be from 2 up for an all-reduce, not {members}.")
    system = case.system(members)
    if not isinstance(system, System):
        raise InvalidValueError("an all-reduce needs a system of devices.")
    rate = system.link_bandwidth(members)
    passed = _passed(members, message)
    if estimate == "bound":
        # A switch that adds up sends each byte once.
        return message / rate
    if estimate != CALIBRATED:
        return passed / rate
    found = all_reduce_seconds(system, members, message)
    case.note(f"by {found.words}")
    return found.seconds


def all_reduce_rate(case: Case, estimate: str) -> float:
    """Return the bus bandwidth of an all-reduce in B/s: that of a ring."""
    return _passed(case.count, case.more("bytes")) / all_reduce_time(case, estimate)


def _passed(members: int, message: float) -> float:
    return 2.0 * (members - 1) / members * message
