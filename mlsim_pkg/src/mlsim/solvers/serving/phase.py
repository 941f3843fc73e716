"""One step of a language model on its devices: prefill, or a decode step.

A step is a question about the operators of one device; a whole generation is one about the
times of its steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from mlsim.equations import (
    Equation,
    Plan,
    equations_of,
    kernels,
    plan,
    roofline,
    serving,
    transformer,
)
from mlsim.solvers import calibrated
from mlsim.solvers.inputs import CALIBRATED
from mlsim.solvers.question import Known, Question
from mlsim.solvers.serving.service import ASKED, Service
from mlsim.solvers.serving.switched import choose

# A step has its own counts of work and traffic, and its own sum of times.
_OWN = {each.yields for each in equations_of(transformer.STEP, serving.SERVICE)} | {"throughput"}
_SHARED = tuple(each for each in equations_of(roofline.ROOFLINE) if each.yields not in _OWN)
_ROOFLINE_LATENCY = tuple(
    each for each in equations_of(roofline.ROOFLINE) if each.yields == "latency"
)

# What a model with states keeps and moves, and not what counts the work of a layer.
_STATES = ("operator_cache_and_state", "cache_and_state_bytes", "states_moved")
_RECURRENT = tuple(each for each in equations_of(transformer.RECURRENT) if each.name in _STATES)

# What experts take as kernels of their own, beside the counts of their tokens.
_ROUTED = {
    "expert_share": "spread_expert_share",
    "compute_time": "routed_compute_time",
    "roofline_time": "routed_roofline_time",
    "full_tile_time": "routed_full_tile_time",
    "untiled_time": "routed_untiled_time",
}
_ROUTED_TOO = (
    *("routed_rows", "most_rows", "busiest_rows", "passed_rows"),
    *("expert_fill", "expert_pass_time"),
)
_EXPERTS = tuple(
    each
    for each in equations_of(kernels.EXPERT_KERNELS)
    if each.name in (*_ROUTED.values(), *_ROUTED_TOO)
)

# What states take as kernels of their own, where a prompt goes through them in chunks.
_SCANNED = tuple(each for each in equations_of(kernels.STATE_KERNELS) if each.name != "state_time")

SERVING = (
    *_SHARED,
    *equations_of(transformer.STEP, serving.SERVICE, transformer.SHARED_CACHE),
    *_ROOFLINE_LATENCY,
    *_RECURRENT,
)


# What holds where devices share sequences, or experts are chosen unevenly.
SPREAD = equations_of(serving.SPREAD_SEQUENCES)
_SPREAD_CHOSEN = {
    each.yields: each.name
    for each in SPREAD
    if each.name not in ("uniform_imbalance", "context_cached_elements")
}


@lru_cache(maxsize=64)
def equations_for(variant: frozenset[str]) -> tuple[Equation, ...]:
    """Choose one equation for each quantity, for a kind of model and of answer."""
    bound, sends = "bound" in variant, "sends" in variant
    chosen = {
        "multiply_adds": (
            "latent_multiply_adds" if "latent" in variant else "token_and_pair_multiply_adds"
        ),
        "time_per_output_token": (
            "windowed_time_per_output_token" if "windowed" in variant else "time_per_output_token"
        ),
        "largest_batch": "largest_encoder_batch" if "encoder" in variant else "largest_batch",
        "attention_pairs": "bidirectional_pairs" if "encoder" in variant else "attention_pairs",
        "operator_cache": (
            "operator_cache_and_state" if "recurrent" in variant else "operator_cache"
        ),
        "cache_bytes": (
            "cache_and_state_bytes"
            if "recurrent" in variant
            else "shared_cache_bytes"
            if "shared" in variant
            else "cache_bytes"
        ),
        # Tokens may all choose the same experts: only so many are compulsory.
        "expert_share": "compulsory_expert_share" if bound else "expert_share",
        "positions_read": "cached_positions_read" if bound else "positions_read",
        "latency": "bound_latency" if bound else "step_latency" if sends else "latency",
    }
    candidates = SERVING
    if CALIBRATED in variant:
        terms = {name: name in variant for name in ("hosted", "unfused", "worked", "ahead")}
        chosen |= calibrated.chosen(sends=sends, network=False, **terms)
        candidates = (*SERVING, *calibrated.EQUATIONS)
    if "switched" in variant:
        candidates = (*candidates, *choose(variant, chosen))
    if "spread" in variant:
        kept = {"activation_bytes"} if "unfused" in variant else set()
        chosen |= {name: each for name, each in _SPREAD_CHOSEN.items() if name not in kept}
        # Of the bound, all devices have as much to do.
        uniform = "uniform" in variant and not bound
        chosen["expert_imbalance"] = "uniform_imbalance" if uniform else ""
        candidates = (*candidates, *SPREAD)
    if "scanned" in variant:
        chosen["memory_time"] = "scanned_memory_time"
        candidates = (*candidates, *_SCANNED)
    if "routed" in variant:
        chosen |= _ROUTED
        candidates = (*candidates, *_EXPERTS)
    return tuple(each for each in candidates if chosen.get(each.yields, each.name) == each.name)


def step_question(service: Service, name: str, new_tokens: Any, cached_tokens: Any) -> Question:
    """Return what a step asks: so many new tokens of each sequence, so many cached."""
    asked = {"cached_tokens": cached_tokens, "new_tokens": new_tokens}
    return Question(
        lambda: _known(service).add("given", new_tokens=new_tokens, cached_tokens=cached_tokens),
        equations_for(service.variant),
        lambda: {**service.labels, "estimate": f"{service.estimate}, {name}"},
        table=service.table,
        shape=service.shape_with(asked),
    )


def _known(service: Service) -> Known:
    """Return what is known of all phases, and what a draft takes, which is a service too."""
    known, draft = service.known, service.switches.draft_of(service)
    if draft is None:
        return known
    asked = step_question(draft, "prefill", *draft.prefill)
    found = asked.evaluate("weight_memory", "cache_per_sequence", "time_to_first_token")
    return known.add(
        f"{draft.model.name}, a service of its own ({draft.formats.name})",
        draft_weight_memory=found["weight_memory"],
        draft_cache_per_sequence=found["cache_per_sequence"],
        draft_prefill_time=found["time_to_first_token"],
    )


def steps_at_once(
    service: Service, wanted: tuple[str, ...], new: Any, cached: Any
) -> dict[str, Any]:
    """Run several steps of one point as the columns of one table: the shortest way.

    What does not depend on the request is computed once for a table.
    """
    table = service.table
    request = {**service.request, "new_tokens": new, "cached_tokens": cached}
    if service.given or service.switches.on:
        values = {**service.base, **table.columns_2d, **request}
        return {**values, **_plan(service, wanted, values).compute(values)}
    import numpy as np

    shape = (len(table), len(new))
    key = (wanted, shape)
    if key not in table.cache:
        values = {**service.base, **table.columns_2d}
        once, each = _plan(service, wanted, {**values, **request}).split(ASKED)
        fixed = once.run(values)
        table.cache[key] = (
            {name: _spread(value, shape, name) for name, value in fixed.items()},
            each,
        )
    fixed, each = table.cache[key]
    # Arrays of one shape are faster to compute with than broadcast ones.
    for name in ("new_tokens", "cached_tokens"):
        full = np.empty(shape)
        full[...] = request[name]
        request[name] = full
    found: dict[str, Any] = each.compute({**fixed, **request})
    return found


def _plan(service: Service, wanted: tuple[str, ...], known: Mapping[str, Any]) -> Plan:
    return plan(equations_for(service.variant), known, wanted)


def _spread(value: Any, shape: tuple[int, int], name: str) -> Any:
    """Return a column for each step, but those that count repeats: they only add up."""
    if getattr(value, "ndim", 0) != 2 or "repeats" in name:
        return value
    import numpy as np

    return np.broadcast_to(value, shape).copy()


# Where the times of steps come from, of which a whole generation is put together.
_STEPS = {
    "time_to_first_token": "prefill",
    "first_token_time": "decode, the first step",
    "middle_token_time": "decode, the middle step",
    "filling_token_time": "decode, halfway to a full window",
    "full_window_time": "decode, the step that fills the window",
    "later_token_time": "decode, halfway from there to the last step",
    "last_token_time": "decode, the last step",
}
_SIZES = ("batch_size", "output_tokens", "tokens_per_step")


def whole_question(
    service: Service, times: Mapping[str, Any], filling_share: Any, shape: tuple[int, ...]
) -> Question:
    """Return what a whole generation asks, whose steps take these times.

    `filling_share` is None of a model without a window.
    """
    shared, known = service.known, Known()
    known.update({name: shared[name] for name in _SIZES}, **times)
    known.origins |= {name: partial(shared.origin, name) for name in _SIZES}
    known.origins |= {name: f"{_STEPS[name]}: explained on its own" for name in times}
    if filling_share is not None:
        window = f"{service.model.window:,} tokens are in the window"
        known.add(
            f"part of the output that is written before {window}", filling_share=filling_share
        )
    return Question(known, equations_for(service.variant), lambda: service.labels, shape=shape)
