"""A service as text for people and as plain data for programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.equations import serving as counts, switches
from mlsim.equations.energy import utilisation
from mlsim.equations.functions import maximum, minimum, total
from mlsim.equations.serving import cache_tokens
from mlsim.errors import WrongKindError
from mlsim.quantities import term
from mlsim.solvers.answer import OVERHEAD_BOUND, Report, plain
from mlsim.solvers.load import Load
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.speculated import round_question
from mlsim.solvers.serving.steps import decode_contexts, equations_for, filling_share, step_question
from mlsim.units import held, text

if TYPE_CHECKING:
    from mlsim.solvers.serving.serving import Serving, StepProfile


_TIMES = (
    "time_to_first_token",
    "time_per_output_token",
    "generation_latency",
    "user_token_rate",
    "decode_throughput",
    "output_throughput",
)
_SIZES = (
    "weight_memory",
    "cache_memory",
    "activation_memory",
    "memory_required",
    "memory_free",
    "memory_capacity",
    "cache_bytes_per_token",
    "largest_batch",
)


_HEADS = ("batch", "prompt", "output", "first token", "per token", "token/s")


def reported(serving: Serving) -> tuple[str, ...]:
    """Name the results that JSON has; an encoder has one time."""
    return (*(_TIMES if serving.model.decoder else _TIMES[:1]), *_SIZES)


def inputs(serving: Serving) -> dict[str, Any]:
    """Return what was asked, whether it fits, and what binds, for JSON."""
    service = serving.service
    return {
        "model": service.model.name,
        "hardware": service.hardware_name,
        "layout": {
            "tensor_parallel": service.parallelism.tensor,
            "pipeline_parallel": service.parallelism.pipeline,
            "data_parallel": service.parallelism.data,
            "expert_parallel": service.parallelism.expert,
            **({"context_parallel": service.parallelism.context} if service.spread else {}),
        },
        **({"expert_imbalance": service.expert_imbalance} if service.spread else {}),
        "formats": {
            name: getattr(service.formats, name).name
            for name in ("weights", "activations", "kv_cache")
        },
        **({"formats_assumed": service.formats.why} if service.formats.why else {}),
        "estimate": service.estimate,
        **({"software": service.software.key} if service.software else {}),
        **({"switched_on": dict(service.switches.words())} if service.switches.on else {}),
        "batch_size": {"value": plain(serving.batch_size), "unit": "sample"},
        "prompt_tokens": {"value": plain(service.prompt_tokens), "unit": "token/sample"},
        "output_tokens": {"value": plain(service.output_tokens), "unit": "token/sample"},
        "feasible": plain(serving.feasible),
        "bottleneck": {name: plain(each) for name, each in serving.bottleneck.items()},
    }


def report(serving: Serving) -> Report:
    """Return a short table; of many points, a row for each."""
    service = serving.service
    title = (
        f"{service.model.name} on {service.hardware_name}, "
        f"{service.formats.name}, {service.estimate}"
    )
    assumed = [("formats", service.formats.why)] if service.formats.why else []
    if service.software:
        assumed.append(("software", service.software.name))
    assumed += [(name, words) for name, words in service.switches.words().items()]
    if service.expert_imbalance != 1.0:
        assumed.append(("imbalance", _imbalance(service)))
    assumed.extend(serving.noted())
    if serving.shape:
        heads = _HEADS if service.model.decoder else _HEADS[:4]
        return Report(title, _points(serving), heads=[(head, 11) for head in heads], notes=assumed)
    lengths = f"{service.prompt_tokens:,.0f} prompt"
    if service.model.decoder:
        lengths += f" + {service.output_tokens:,.0f} output"
    rows = [("batch size", f"{serving.batch_size:,} x ({lengths}) tokens")]
    rows += assumed
    if serving.shows_times:
        rows += _times(serving)
    if service.switches.speculation and serving.shows_times:
        rows.append(("rounds", _rounds(serving)))
    memory = (
        f"{_size(serving, 'memory_required')} of {_size(serving, 'usable_memory')} "
        f"({service.reserve_share:.0%} of {_size(serving, 'memory_capacity')} reserved)"
    )
    rows += [("memory", memory), ("", _parts(serving)), *service.known.doubts()]
    if service.switches.adapters:
        of_all = f"{serving.decode.value('distinct_adapters'):,.1f} of them in a step"
        rows.append(("", f"adapters {_size(serving, 'adapter_memory')} of the weights; {of_all}"))
    if service.switches.offload:
        rows.append(("on the host", f"{_size(serving, 'host_memory')} for each device"))
    if not serving.feasible:
        short = held(-float(serving.value("memory_free")))
        rows.append(("feasible", f"no: {short} too much"))
    if service.model.decoder:
        most = int(serving.value("largest_batch"))
        room = (
            f"{most:,} such sequences, or a context of "
            f"{serving.longest_context:,} tokens at this batch"
        )
        if not most:
            room = "no such sequence: use fewer bits or more devices (Engine.fit tells which)"
        rows.append(("room for", room))
    return Report(title, rows, label=14, width=120)


def _imbalance(service: Service) -> str:
    """Say how much more the busiest device with experts has to do."""
    given = service.expert_imbalance
    what = "by chance" if isinstance(given, str) else f"{given:g} times the mean"
    return f"tokens of the busiest device with experts: {what}"


def _times(serving: Serving) -> list[tuple[str, str]]:
    """Return the lines of what users wait for."""
    first = f"{_size(serving, 'time_to_first_token')} to the first token"
    rows = [("prefill", f"{first} ({_bound(serving.prefill)})")]
    if not serving.model.decoder:
        words = f"{_size(serving, 'time_to_first_token')} ({_bound(serving.prefill)})"
        return [("pass", words), *serving._banded("time_to_first_token")]
    rows += serving._banded("time_to_first_token")
    each = _size(serving, "time_per_output_token")
    rows.append(("decode", f"{each} per token ({_bound(serving.decode)})"))
    rows += serving._banded("time_per_output_token")
    rows.append(("in all", f"{_size(serving, 'generation_latency')} to the last token"))
    rate, together = serving.value("user_token_rate"), serving.value("decode_throughput")
    rows.append(
        (
            "throughput",
            f"{together:,.0f} token/s while decoding, {rate:,.1f} for each user",
        )
    )
    return rows


def _rounds(serving: Serving) -> str:
    """Return what speculation makes of a step, and from where on it pays."""
    found = serving.speculation
    rate, batch = found.break_even_acceptance, found.break_even_batch
    pays = "at no acceptance" if rate is None else f"from an acceptance of {rate:.2f} on"
    until = "at no batch" if batch is None else f"up to a batch of {batch:,}"
    return (
        f"{found.value('expected_tokens'):.2f} tokens in {text(found.value('round_time'), 's')}, "
        f"{found.value('speculative_speedup'):.2f} times as fast; pays {pays}, {until}"
    )


def _bound(step: StepProfile) -> str:
    name = step.bottleneck
    cause = f", most of it {step.cause}" if name == OVERHEAD_BOUND else ""
    return f"{name}, {step.shares[name]:.0%}{cause}"


def _size(serving: Serving, name: str) -> str:
    return term(name).text(float(serving.value(name)))


def _parts(serving: Serving) -> str:
    names = {
        "weight_memory": "weights",
        "cache_memory": "cache",
        "activation_memory": "activations",
    }
    return ", ".join(f"{words} {_size(serving, name)}" for name, words in names.items())


def _points(serving: Serving) -> list[tuple[str, ...]]:
    import numpy as np

    def column(values: Any) -> Any:
        return np.broadcast_to(values, serving.shape).reshape(-1)

    def written(number: float, name: str) -> str:
        if math.isnan(number):
            return "-"
        return f"{number:,.0f}" if name == "decode_throughput" else text(number, "s")

    service = serving.service
    names = ["time_to_first_token"]
    if service.model.decoder:
        names += ["time_per_output_token", "decode_throughput"]
    asked = (service.batch_size, service.prompt_tokens, service.output_tokens)
    columns = [[f"{each:,.0f}" for each in column(values)] for values in asked]
    columns += [
        [written(float(each), name) for each in column(serving.value(name))] for name in names
    ]
    return list(zip(*columns, strict=True))


def load_of(service: Service, time: float) -> Load:
    """Return the load of one point of a service, whose generation takes this time.

    Work and traffic are those of the roofline, at the peaks and the bandwidth of the
    data sheet, in the time of the service's own estimate.
    """
    # Of the bound's few bytes, as many as its time allows.
    counted = service if service.estimate == "bound" else replace(service, estimate="roofline")
    tokens = service.output_tokens if service.model.decoder else service.prompt_tokens
    made = f" + {service.output_tokens:,.0f}" if service.model.decoder else ""
    words = f"{service.batch_size:,.0f} x ({service.prompt_tokens:,.0f}{made}) tokens"
    return Load(
        device=service.device,
        system=service.system,
        devices=service.parallelism.devices,
        time=time,
        compute_utilisation=utilisation(_busy(counted, "total_compute_time"), time),
        memory_utilisation=utilisation(_busy(counted, "total_memory_time"), time),
        tokens=float(counts.batch_tokens(service.batch_size, tokens)),
        label=f"{service.model.name}, {words}",
        labels={**service.labels, "model": f"{service.model.name}, {words}"},
    )


def _busy(service: Service, name: str) -> float:
    """Return how long a device would compute, or move bytes, at full rate for all steps."""

    def of(new: Any, cached: Any) -> float:
        found = step_question(service, "step", new, cached).evaluate(name, "micro_batches")
        # A stage of a pipeline does its part of each step, for each part of the batch.
        stages = float(service.parallelism.pipeline)
        return float(counts.stage_busy_time(found[name], found["micro_batches"], stages))

    prefill = of(*service.prefill)
    if not service.model.decoder:
        return prefill
    speculates = service.switches.speculation is not None
    # The mean over the output is taken as the time of a step is.
    (mean,) = (
        each for each in equations_for(service.variant) if each.yields == "time_per_output_token"
    )
    contexts = decode_contexts(service)
    steps: dict[str, float] = {
        step: _round(service, cached, name) if speculates else of(1.0, cached)
        for step, cached in contexts.items()
    }
    if "filling_share" in mean.inputs:
        steps["filling_share"] = float(filling_share(contexts))
    each_step = float(mean.function(**{step: steps[step] for step in mean.inputs}))
    return float(counts.generation_busy_time(prefill, service.output_tokens, each_step))


def _round(service: Service, cached: Any, name: str) -> float:
    """Return how long a device would compute, or move bytes, at full rate for each token."""
    return float(round_question(service, cached, name).value("speculative_token_time"))


def longest_context(service: Service, value: Callable[[str], Any]) -> Any:
    """Return the longest sequence of which a batch of this size fits, in tokens.

    `value` gives quantities of its prefill.
    At most the model's context; 0 if not even one block fits. All tokens but those of
    the output are a prompt, whose activations grow until a chunk is full.

    Raises
    ------
    WrongKindError
        If the model is an encoder, which keeps no cache.
    """
    model = service.model
    if not model.decoder:
        raise WrongKindError(f"{model.name} is an encoder: it keeps no cache that could grow.")
    batch = value("device_batch")
    element, resident = value("bytes_per_element"), value("resident_batch")
    left = counts.context_memory(
        value("usable_memory"), value("weight_memory"), element, value("logits"), batch
    )
    columns = service.table.columns
    states = total(columns["sequence_state"], columns["resident_repeats"])
    if states:
        left = counts.memory_beside_states(left, states, resident)
    if service.switches.prefix_count is not None:
        left = switches.memory_beside_prefixes(left, value("cache_saved"))
    each = counts.step_token_memory(element, value("live_elements"), batch)

    def beside(activations: Any) -> Any:
        """Return the length in whole blocks beside activations that don't grow with it."""
        memory = counts.full_chunk_sequence_memory(left, activations, resident)
        return _in_blocks(service, _tokens(service, value, memory, 0.0))

    def growing(output: Any) -> Any:
        """Return the length where all tokens but the output's also take activations."""
        memory = counts.growing_sequence_memory(left, each, output, resident)
        apiece = counts.token_activations(each, resident)
        longest = _tokens(service, value, memory, apiece)
        whole = _in_blocks(service, longest)
        # The next block may have room for its cache, but not for all of its activations.
        cache = _cache(service, value, cache_tokens(whole, 1.0, service.block_tokens))
        room = counts.full_chunk_sequence_memory(left, 0.0, resident)
        return maximum(whole, counts.tokens_beside_cache(room, cache, apiece, output))

    # Either a chunk is full, or activations grow; the prompt has one token at least.
    shorter = minimum(growing(service.output_tokens), beside(each))
    tokens = maximum(beside(value("chunk_memory")), maximum(growing(1.0), shorter))
    return _within(tokens, float(model.context))


def _in_blocks(service: Service, tokens: Any) -> Any:
    """Return the tokens of whole blocks; the block in which a context ends is not filled."""
    whole, context = counts.fitting_tokens(tokens, service.block_tokens), service.model.context
    if not getattr(tokens, "ndim", 0):
        return float(context) if tokens >= context else whole
    import numpy as np

    return np.where(tokens >= context, float(context), whole)


def _tokens(service: Service, value: Callable[[str], Any], memory: Any, activations: Any) -> Any:
    """Return the length at which a sequence takes all of its memory.

    A layer with a window takes no more once the window is full, so memory grows
    in two straight lines, the second one flatter; `activations` is what each token
    takes beside the cache.
    """
    window = float(service.model.window or service.model.context)
    within, always = (_cached_elements(service, window, windowed=each) for each in (True, False))
    size = value("bytes_per_cached_element")
    windowed = _kept(service, counts.layers_cache(size, within))
    layers = _kept(service, counts.layers_cache(size, always), drafted=True)
    lasting = counts.growing_token_memory(layers, activations)
    tokens = counts.short_sequence_length(memory, windowed, lasting)
    if not within:
        return tokens
    grows = always or service.switches.draft is not None
    if grows or getattr(activations, "ndim", 0) or activations > 0:
        later = counts.long_sequence_length(memory, windowed, window, lasting)
    else:
        limit = float(service.model.context)
        later = counts.windowed_sequence_length(memory, windowed, window, limit)
    # Memory is a concave function of length, so the longer answer is the true one.
    return maximum(tokens, later)


def _cache(service: Service, value: Callable[[str], Any], tokens: Any) -> Any:
    """Return the cache of a sequence of so many tokens, in bytes."""
    window = float(service.model.window or service.model.context)
    size = value("bytes_per_cached_element")
    windowed, lasting = (
        _kept(
            service,
            counts.layers_cache(size, _cached_elements(service, window, windowed=each)),
            drafted=not each,
        )
        for each in (True, False)
    )
    return counts.length_cache(windowed, window, lasting, tokens)


def _kept(service: Service, layers: Any, *, drafted: bool = False) -> Any:
    """Return what of the cache of one token stays on a device, with that of a draft."""
    on = service.switches
    if on.offload is None and on.draft is None:
        return layers
    offloaded = on.offload.cache if on.offload else 0.0
    return switches.layers_cache_on_device(
        layers, offloaded, _of_draft(service) if drafted else 0.0
    )


def _of_draft(service: Service) -> Any:
    """Return the cache of one token that a draft keeps, as if it had no windows."""
    draft = service.switches.draft
    if draft is None:
        return 0.0
    elements = total(
        draft.table.columns["cached_elements"], draft.table.columns["resident_repeats"]
    )
    return counts.layers_cache(draft.base["bytes_per_cached_element"], elements)


def _cached_elements(service: Service, window: float, *, windowed: bool) -> Any:
    """Return elements of cache for each token in the layers with a window, or in the others."""
    rows = [
        each
        for each in service.table
        if windowed == (bool(service.model.window) and each.cache_window <= window)
    ]
    cached = [each.cached_elements for each in rows]
    return total(cached, [each.resident_repeats for each in rows])


def _within(tokens: Any, context: float) -> Any:
    if not getattr(tokens, "ndim", 0):
        return int(max(min(tokens, context), 0))
    import numpy as np

    return np.clip(tokens, 0, context)
