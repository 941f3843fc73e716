"""A service as text for people and as plain data for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mlsim.quantities import term
from mlsim.solvers.answer import OVERHEAD_BOUND, Report, plain
from mlsim.units import held, text

if TYPE_CHECKING:
    from mlsim.solvers.serving.service import Service
    from mlsim.solvers.serving.serving import Serving
    from mlsim.solvers.serving.step_profile import StepProfile

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
