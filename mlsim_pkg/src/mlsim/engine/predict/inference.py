"""Cases of single kernels, and of networks and language models at work."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mlsim.engine import Engine
from mlsim.engine.predict.case import Case, lengthened
from mlsim.equations import roofline
from mlsim.equations.calibration import calibrated_compute_time, calibrated_memory_time
from mlsim.errors import InvalidValueError
from mlsim.hardware import lone_kernels
from mlsim.hardware.device_calibration import calibration
from mlsim.hardware.lone_kernels import (
    LoneTime,
    attention_seconds,
    named_attention_seconds,
    product_seconds,
)
from mlsim.precision import precision
from mlsim.solvers.serving.serving import Serving
from mlsim.systems import System
from mlsim.systems.link_calibration import all_reduce_seconds
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Linear, Network, Shape
from mlsim.workloads.steps import Parallelism

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
    if operation not in lone_kernels.WRITTEN:
        known = ", ".join(lone_kernels.WRITTEN)
        raise InvalidValueError(f"extra op must be one of {known}, not {operation}.")
    whole = case.device.bandwidth_si
    if estimate != CALIBRATED:
        return float(whole)
    found = lone_kernels.stream_rate(case.device, operation)
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
    found = lone_kernels.host_link_rate(rate)
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


# Most sequences that an engine keeps at work, where a case does not say.
MOST_SEQUENCES = 2048
_DEFAULT_FORMAT = "fp16"
_NOWHERE: dict[str, Any] = {
    "pue": 1.0,
    "wue": "1 L/kWh",
    "carbon_intensity": "1 gCO2e/kWh",
    "water_intensity": "1 L/kWh",
}


def network_time(case: Case, estimate: str) -> float:
    """Return the seconds of one pass of a network with a fixed input, of each device's batch."""
    return _pass(case, estimate, case.whole("batch", 1))


def _pass(case: Case, estimate: str, batch: int, **other: Any) -> float:
    found = Engine.solve(
        model=case.model,
        hardware=case.device,
        batch_size=batch,
        precision=case.precision("a_dtype", case.precision("w_dtype", _DEFAULT_FORMAT)),
        estimate=estimate,
        check_memory=False,
        **case.software(estimate, "engine"),
        **other,
    )
    return case.answered(found, "latency")


def network_rate(case: Case, estimate: str) -> float:
    """Return samples per second of all devices, each with a batch of its own."""
    batch = case.whole("batch", 1)
    stated = not case.text("assumed").startswith("batch")
    if stated or estimate != CALIBRATED or case.text("sw_class") != "engine":
        return batch * case.count / network_time(case, estimate)
    # Whoever may choose takes the batch whose activations stay in the last cache.
    batches = [2**power for power in range(batch.bit_length())]
    kept = {"activations": "on-chip"} if case.device.last_level_figure else {}
    rates = {each: each / _pass(case, estimate, each, **kept) for each in batches}
    best = max(batches, key=lambda each: rates[each])
    case.note(f"batch not stated: the fastest up to {batch:,}, {best:,}")
    return float(rates[best] * case.count)


def _language(case: Case) -> Transformer:
    model = case.model
    if not isinstance(model, Transformer):
        raise InvalidValueError(f"{model.name} is no language model: kind {case.text('kind')}.")
    return model


def _layout(case: Case) -> Parallelism:
    tensor, pipeline, data, expert = (case.whole(name, 1) for name in ("tp", "pp", "dp", "ep"))
    if case.extra.get("layer_split"):
        pipeline = case.count
    if expert > tensor * data and case.count % (tensor * pipeline) == 0:
        # Experts spread over more devices than share a matrix: the rest hold copies.
        data = case.count // (tensor * pipeline)
    return Parallelism(tensor=tensor, pipeline=pipeline, data=data, expert=expert)


def _formats(case: Case) -> dict[str, Any]:
    weights = case.precision("w_dtype", _DEFAULT_FORMAT)
    if not case.text("kv_dtype") and precision(weights).bits < precision(_DEFAULT_FORMAT).bits:
        case.note(f"kv_dtype not stated: KV cache in {_DEFAULT_FORMAT}")
    return {
        "weights": weights,
        "activations": case.precision("a_dtype", weights),
        "kv_cache": case.precision("kv_dtype", _DEFAULT_FORMAT),
    }


def serve(case: Case, estimate: str, **other: Any) -> Serving:
    """Ask `Engine.serve` of a case; `other` stands in place of what the case says."""
    model, layout = _language(case), _layout(case)
    batch = other.pop("batch_size", None) or _batch(case, layout.data)
    # Generation that begins with nothing has its first token from somewhere.
    prompt = other.pop("prompt_tokens", None) or max(1, case.whole("input_len", zero=True))
    output = other.pop("output_tokens", None)
    if not output and model.decoder:
        output = case.whole("output_len", 1)
    other |= layout.sizes
    # The bits of a case may not be those of its format.
    bits = case.number("w_bits", zero=True) if case.text("w_bits") else 0.0
    if bits and bits != precision(case.precision("w_dtype", _DEFAULT_FORMAT)).bits:
        other["bytes_per_parameter"] = f"{bits / 8} B/parameter"
    return Engine.serve(
        model=lengthened(model, prompt + (output or 0)),
        hardware=case.system(max(layout.devices, case.count)),
        batch_size=batch,
        prompt_tokens=prompt,
        output_tokens=output,
        estimate=estimate,
        check_memory=False,
        **_formats(case),
        **case.software(estimate, "engine"),
        **other,
    )


def _batch(case: Case, copies: int) -> int:
    """Return the sequences together, which copies of the model share evenly.

    An average of them, which was measured, is rounded.
    """
    found = case.number("batch", 1)
    rounded = max(1, round(found))
    if rounded != found:
        case.note(f"an average of {found:g} sequences counted as {rounded:,}")
    even = -(-rounded // copies) * copies
    if even != rounded:
        case.note(f"{rounded:,} sequences on {copies} copies counted as {even:,}")
    return even


def pass_time(case: Case, estimate: str) -> float:
    """Return the seconds of one pass of an encoder, of each device's batch."""
    tokens = case.whole("input_len")
    found = Engine.serve(
        model=_language(case),
        hardware=case.device,
        batch_size=case.whole("batch", 1),
        prompt_tokens=tokens,
        output_tokens=0,
        estimate=estimate,
        chunk_tokens=max(8192, case.whole("batch", 1) * tokens),
        check_memory=False,
        **_formats(case),
        **case.software(estimate, "engine"),
    )
    return case.answered(found, "time_to_first_token")


def pass_rate(case: Case, estimate: str) -> float:
    """Return sequences per second of all devices, each with a batch of its own."""
    return case.whole("batch", 1) * case.count / pass_time(case, estimate)


def first_token_time(case: Case, estimate: str) -> float:
    """Return the seconds until the first token of a batch of prompts."""
    return case.answered(serve(case, estimate), "time_to_first_token")


def prefill_rate(case: Case, estimate: str) -> float:
    """Return prompt tokens per second; those that were there before take part in attention."""
    prompt, batch = case.whole("input_len"), case.whole("batch", 1)
    depth = case.more_whole("depth", 0, zero=True)
    # What is computed in one go and what in chunks: a chunk reads the weights once.
    asked: dict[str, Any] = {"output_tokens": 1}
    whole = serve(case, estimate, prompt_tokens=prompt + depth, **asked)
    time = case.answered(whole, "time_to_first_token")
    if depth:
        time -= float(
            serve(case, estimate, prompt_tokens=depth, **asked).value("time_to_first_token")
        )
    return batch * prompt / time


def decode_rate(case: Case, estimate: str) -> float:
    """Return tokens per second of all sequences while they are generated."""
    return case.answered(serve(case, estimate), "decode_throughput")


def generation_time(case: Case, estimate: str) -> float:
    """Return the seconds of a whole generation: the prompt, then token by token."""
    return case.whole("batch", 1) * case.whole("output_len") / static_rate(case, estimate)


def static_rate(case: Case, estimate: str) -> float:
    """Return new tokens per second of a batch over its whole time, the prompt included."""
    return case.answered(serve(case, estimate), "output_throughput")


def offline_rate(case: Case, estimate: str) -> float:
    """Return new tokens per second where as many sequences as fit are always at work."""
    batch = None if case.text("batch") else _largest(case)
    found = serve(case, estimate, batch_size=batch)
    beams = case.more_whole("beam", 1)
    rate = case.answered(found, "output_throughput")
    if beams == 1 or estimate == "bound":  # beams share a prompt: the bound has none of them
        return rate
    # A request is decoded as several beams, of which one is counted; its prompt is read once.
    case.note(f"{beams} beams a request, of which one is counted")
    total = found.batch_size * case.whole("output_len")
    time = total / rate
    first = float(found.value("time_to_first_token"))
    return float(total / beams / (time - first + first / beams))


def _largest(case: Case) -> int:
    """Return how many sequences fit in memory, at most as many as an engine takes."""
    found = int(serve(case, "roofline", batch_size=1).value("largest_batch"))
    if found < 1:
        raise InvalidValueError(
            f"not one sequence of {case.model.name} fits on {case.count} x {case.device.name}."
        )
    copies = case.whole("dp", 1)
    batch = max(1, min(found, MOST_SEQUENCES * copies) // copies) * copies
    case.note(f"batch {batch:,}: what the memory holds, at most {MOST_SEQUENCES:,} a copy")
    return batch


def fits(case: Case, estimate: str) -> str:
    """Return OOM, or the GB that are needed."""
    found = serve(case, "roofline")
    if not found.feasible:
        return "OOM"
    return f"{float(found.value('memory_required')) / 1e9:.6g}"


def concurrency(case: Case, estimate: str) -> float:
    """Return how many sequences of a length fit."""
    found = serve(case, "roofline", batch_size=1, output_tokens=1)
    return float(found.value("memory_free")) / float(found.value("cache_per_sequence"))


def token_energy(case: Case, estimate: str) -> float:
    """Return the J that the devices take for each new token, nothing else counted."""
    if estimate == "bound":
        raise InvalidValueError("a power has no bound: a device may draw next to nothing.")
    load = serve(case, estimate).load()
    # Of the places that a footprint needs, none changes what the devices take.
    found = Engine.footprint(load, host=False, embodied=False, **_NOWHERE)
    return float(found.value("device_energy") / load.tokens)
