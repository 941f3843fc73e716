"""A service written out, what it asks of its devices, and the longest sequence that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsim.equations import serving as counts
from mlsim.equations.energy import utilisation
from mlsim.equations.functions import maximum, minimum
from mlsim.errors import WrongKindError
from mlsim.quantities import term
from mlsim.solvers.answer import (
    OVERHEAD_BOUND,
    Column,
    Form,
    Pairs,
    Row,
    doubts,
    noted,
    plain,
    seconds,
    short,
    with_unit,
)
from mlsim.solvers.load import Load
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.speculated import round_question
from mlsim.solvers.serving.steps import decode_contexts, equations_for, filling_share, step_question
from mlsim.units import text

if TYPE_CHECKING:
    from mlsim.solvers.serving.serving import Serving, StepProfile


def _asked(serving: Serving) -> str:
    service = serving.service
    lengths = f"{service.prompt_tokens:,.0f} prompt"
    if service.model.decoder:
        lengths += f" + {service.output_tokens:,.0f} output"
    return f"{serving.batch_size:,} x ({lengths}) tokens"


def _imbalance(serving: Serving) -> str:
    """Say how much more the busiest device with experts has to do."""
    given = serving.service.expert_imbalance
    if given == 1.0:
        return ""
    what = "by chance" if isinstance(given, str) else f"{given:g} times the mean"
    return f"tokens of the busiest device with experts: {what}"


def _times(serving: Serving) -> Pairs:
    """Return the rows of what users wait for."""
    first, bound = _size(serving, "time_to_first_token"), _bound(serving.prefill)
    if not serving.model.decoder:
        return [("pass", f"{first} ({bound})"), *serving._banded("time_to_first_token")]
    each = _size(serving, "time_per_output_token")
    rate, together = serving.value("user_token_rate"), serving.value("decode_throughput")
    return [
        ("prefill", f"{first} to the first token ({bound})"),
        *serving._banded("time_to_first_token"),
        ("decode", f"{each} per token ({_bound(serving.decode)})"),
        *serving._banded("time_per_output_token"),
        ("in all", f"{_size(serving, 'generation_latency')} to the last token"),
        ("throughput", f"{together:,.0f} token/s while decoding, {rate:,.1f} for each user"),
    ]


def _rounds(serving: Serving) -> str:
    """Return what speculation makes of a step, and from where on it pays."""
    if not serving.service.switches.speculation:
        return ""
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


def _memory(serving: Serving) -> Pairs:
    """Return the rows of what memory holds, and of what there is."""
    switches = serving.service.switches
    names = {"weight": "weights", "cache": "cache", "activation": "activations"}
    parts = (f"{words} {_size(serving, f'{part}_memory')}" for part, words in names.items())
    kept = f"{serving.service.reserve_share:.0%} of {_size(serving, 'memory_capacity')} reserved"
    whole = f"{_size(serving, 'memory_required')} of {_size(serving, 'usable_memory')} ({kept})"
    rows = [("memory", whole), ("", ", ".join(parts)), *doubts(serving)]
    if switches.adapters:
        of_all = f"{serving.decode.value('distinct_adapters'):,.1f} of them in a step"
        rows.append(("", f"adapters {_size(serving, 'adapter_memory')} of the weights; {of_all}"))
    if switches.offload:
        rows.append(("on the host", f"{_size(serving, 'host_memory')} for each device"))
    return rows


def _room(serving: Serving) -> str:
    if not serving.model.decoder:
        return ""
    most = int(serving.value("largest_batch"))
    if not most:
        return "no such sequence: use fewer bits or more devices (Engine.fit tells which)"
    longest = f"a context of {serving.longest_context:,} tokens at this batch"
    return f"{most:,} such sequences, or {longest}"


def _layout(serving: Serving) -> dict[str, int]:
    layout = serving.service.parallelism
    parts = ("tensor", "pipeline", "data", "expert")
    found = {f"{part}_parallel": getattr(layout, part) for part in parts}
    return found | ({"context_parallel": layout.context} if serving.service.spread else {})


def _formats(serving: Serving) -> dict[str, str]:
    kinds = ("weights", "activations", "kv_cache")
    return {kind: getattr(serving.service.formats, kind).name for kind in kinds}


def _decoding(name: str) -> Any:
    """Return what gives a result of a decoder; of an encoder nothing."""
    return lambda serving: serving.value(name) if serving.model.decoder else None


SERVING = Form(
    lambda serving: serving.service.title,
    (
        Row("batch size", _asked),
        Row("formats", lambda serving: serving.service.formats.why, note=True),
        Row("software", lambda serving: getattr(serving.service.software, "name", ""), note=True),
        Row("", lambda serving: [*serving.service.switches.words().items()], note=True),
        Row("imbalance", _imbalance, note=True),
        Row("", noted, note=True),
        Row("", _times, timed=True),
        Row("rounds", _rounds, timed=True),
        Row("", _memory),
        Row("feasible", short),
        Row("room for", _room),
    ),
    (
        Column("batch", 11, lambda serving: serving.service.batch_size),
        Column("prompt", 11, lambda serving: serving.service.prompt_tokens),
        Column("output", 11, lambda serving: serving.service.output_tokens),
        Column("first token", 11, "time_to_first_token", seconds),
        Column("per token", 11, _decoding("time_per_output_token"), seconds),
        Column("token/s", 11, _decoding("decode_throughput")),
    ),
    {
        "model": lambda serving: serving.model.name,
        "hardware": lambda serving: serving.service.hardware_name,
        "layout": _layout,
        "expert_imbalance": lambda serving: (
            serving.service.expert_imbalance if serving.service.spread else ""
        ),
        "formats": _formats,
        "formats_assumed": lambda serving: serving.service.formats.why,
        "estimate": lambda serving: serving.service.estimate,
        "software": lambda serving: getattr(serving.service.software, "key", ""),
        "switched_on": lambda serving: serving.service.switches.words() or "",
        "batch_size": lambda serving: with_unit(serving.batch_size, "sample"),
        "prompt_tokens": lambda serving: with_unit(serving.service.prompt_tokens, "token/sample"),
        "output_tokens": lambda serving: with_unit(serving.service.output_tokens, "token/sample"),
        "feasible": lambda serving: plain(serving.feasible),
        "bottleneck": lambda serving: {
            phase: plain(each) for phase, each in serving.bottleneck.items()
        },
    },
    label=14,
    width=120,
)

# A step, and what limits it, but for what is less than half a percent of its time.
STEP = Form(
    rows=(
        Row("latency", "latency"),
        Row(
            "limits",
            lambda step: ", ".join(
                f"{name} {share:.0%}" for name, share in step.shares.items() if share >= 0.005
            ),
        ),
        Row("work", "total_flops"),
        Row("traffic", "total_bytes"),
    ),
    inputs={
        "phase": lambda step: step.name,
        "model": lambda step: step.service.model.name,
        "hardware": lambda step: step.service.hardware_name,
        "estimate": lambda step: step.service.estimate,
        "batch_size": lambda step: with_unit(step.service.batch_size, "sample"),
        "new_tokens": lambda step: with_unit(step.new_tokens, "token/sample"),
        "cached_tokens": lambda step: with_unit(step.cached_tokens, "token/sample"),
        "bottleneck": lambda step: plain(step.bottleneck),
        "causes": lambda step: {cause: plain(share) for cause, share in step.causes.items()},
    },
)


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
        step: (
            float(round_question(service, cached, name).value("speculative_token_time"))
            if speculates
            else of(1.0, cached)
        )
        for step, cached in contexts.items()
    }
    if "filling_share" in mean.inputs:
        steps["filling_share"] = float(filling_share(contexts))
    each_step = float(mean.function(**{step: steps[step] for step in mean.inputs}))
    return float(counts.generation_busy_time(prefill, service.output_tokens, each_step))


def longest_context(service: Service, holds: Callable[[Service], Any]) -> Any:
    """Return the longest sequence of which a batch of this size fits, in tokens.

    `holds` tells whether a service fits in memory. At most the model's context; 0 if not even one
    token fits. All tokens but those of the output are a prompt, whose activations grow until a
    chunk is full. Memory grows with the length, so that halving a range finds the longest.

    Raises
    ------
    WrongKindError
        If the model is an encoder, which keeps no cache.
    """
    if not service.model.decoder:
        name = service.model.name
        raise WrongKindError(f"{name} is an encoder: it keeps no cache that could grow.")

    def fits(tokens: Any) -> Any:
        prompt = maximum(tokens - service.output_tokens, minimum(tokens - 1.0, 1.0))
        return holds(service.requested(prompt_tokens=prompt, output_tokens=tokens - prompt))

    low, high, shape = 0.0, float(service.model.context), service.shape_with({})
    if not shape:
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return int(low)
    import numpy as np

    lows, highs = np.zeros(shape), np.full(shape, high)
    while (lows < highs).any():
        middles = (lows + highs + 1) // 2
        good = fits(middles)
        lows, highs = np.where(good, middles, lows), np.where(good, highs, middles - 1)
    return lows
