"""Cases of networks and language models at work: passes, generation, services, memory."""

from __future__ import annotations

from typing import Any

from mlsim.engine import Engine
from mlsim.engine.predict.case import Case, lengthened
from mlsim.errors import InvalidValueError
from mlsim.precision import precision
from mlsim.solvers.serving.serving import Serving
from mlsim.workloads.language import Transformer

# Most sequences that an engine keeps at work, where a case does not say.
MOST_SEQUENCES = 2048
_DEFAULT_FORMAT = "fp16"
CALIBRATED = "calibrated"
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
    rates = {each: each / _pass(case, estimate, each, **_kept(case)) for each in batches}
    best = max(batches, key=lambda each: rates[each])
    case.note(f"batch not stated: the fastest up to {batch:,}, {best:,}")
    return float(rates[best] * case.count)


def _kept(case: Case) -> dict[str, str]:
    return {"activations": "on-chip"} if case.device.last_level_figure else {}


def _language(case: Case) -> Transformer:
    model = case.model
    if not isinstance(model, Transformer):
        raise InvalidValueError(f"{model.name} is no language model: kind {case.text('kind')}.")
    return model


def _sizes(case: Case) -> dict[str, Any]:
    tensor, pipeline, data, expert = (case.whole(name, 1) for name in ("tp", "pp", "dp", "ep"))
    if case.extra.get("layer_split"):
        pipeline = case.count
    if expert > tensor * data and case.count % (tensor * pipeline) == 0:
        # Experts spread over more devices than share a matrix: the rest hold copies.
        data = case.count // (tensor * pipeline)
    return {
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "data_parallel": data,
        "expert_parallel": expert,
    }


def _batch(case: Case) -> int:
    """Return the sequences together; an average of them, which was measured, is rounded."""
    found = case.number("batch", 1)
    rounded = max(1, round(found))
    if rounded != found:
        case.note(f"an average of {found:g} sequences counted as {rounded:,}")
    return rounded


def _formats(case: Case) -> dict[str, Any]:
    weights = case.precision("w_dtype", _DEFAULT_FORMAT)
    if not case.text("kv_dtype") and precision(weights).bits < precision(_DEFAULT_FORMAT).bits:
        case.note(f"kv_dtype not stated: KV cache in {_DEFAULT_FORMAT}")
    return {
        "weights": weights,
        "activations": case.precision("a_dtype", weights),
        "kv_cache": case.precision("kv_dtype", _DEFAULT_FORMAT),
    }


def _bits(case: Case) -> dict[str, Any]:
    """Return the bytes of a weight, where the bits of the case are not those of its format."""
    bits = case.number("w_bits", zero=True) if case.text("w_bits") else 0.0
    if not bits or bits == precision(case.precision("w_dtype", _DEFAULT_FORMAT)).bits:
        return {}
    return {"bytes_per_parameter": f"{bits / 8} B/parameter"}


def serve(case: Case, estimate: str, **other: Any) -> Serving:
    """Ask `Engine.serve` of a case; `other` stands in place of what the case says."""
    model, sizes = _language(case), _sizes(case)
    needed = sizes["tensor_parallel"] * sizes["pipeline_parallel"] * sizes["data_parallel"]
    batch = other.pop("batch_size", None) or _even(case, sizes["data_parallel"])
    # Generation that begins with nothing has its first token from somewhere.
    prompt = other.pop("prompt_tokens", None) or max(1, case.whole("input_len", zero=True))
    output = other.pop("output_tokens", None) or _output(case, model)
    return Engine.serve(
        model=lengthened(model, prompt + (output or 0)),
        hardware=case.system(max(needed, case.count)),
        batch_size=batch,
        prompt_tokens=prompt,
        output_tokens=output,
        estimate=estimate,
        check_memory=False,
        **_formats(case),
        **_bits(case),
        **sizes,
        **case.software(estimate, "engine"),
        **other,
    )


def _even(case: Case, copies: int) -> int:
    """Return a batch that copies of the model share evenly."""
    found = _batch(case)
    even = -(-found // copies) * copies
    if even != found:
        case.note(f"{found:,} sequences on {copies} copies counted as {even:,}")
    return even


def _output(case: Case, model: Transformer) -> int | None:
    if not model.decoder:
        return None
    return case.whole("output_len", 1)


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
    return _generated(case) / static_rate(case, estimate)


def _generated(case: Case) -> int:
    return case.whole("batch", 1) * case.whole("output_len")


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


def steady_rate(case: Case, estimate: str) -> float:
    """Return tokens per second where so many users are always at work."""
    return static_rate(case, estimate)


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
