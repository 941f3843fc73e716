"""One step of a language model on its devices: prefill, or a decode step.

A step is a question about the operators of one device; a whole generation is one about the
times of its steps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from inspect import unwrap
from typing import Any

from mlsim.equations import (
    Equation,
    Plan,
    equations_of,
    plan,
    roofline,
    serving as counts,
    transformer,
)
from mlsim.equations.graph import Folded, fold
from mlsim.errors import InvalidValueError
from mlsim.parameters import CALIBRATED, validate
from mlsim.solvers.question import Known, Question
from mlsim.solvers.serving.service import Service
from mlsim.workloads.language import Transformer

# A step has its own counts of work and traffic, and its own sum of times.
_OWN = {each.yields for each in equations_of(transformer.STEP, counts.SERVICE)} | {"throughput"}
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

SERVING = (
    *_SHARED,
    *equations_of(transformer.STEP, counts.SERVICE, transformer.SHARED_CACHE),
    *_ROOFLINE_LATENCY,
    *_RECURRENT,
)


# What holds where devices share sequences, or experts are chosen unevenly.
SPREAD = equations_of(counts.SPREAD_SEQUENCES)
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
        from mlsim.equations import kernels
        from mlsim.solvers import calibrated

        terms = {name: name in variant for name in ("hosted", "unfused", "worked", "ahead")}
        chosen |= calibrated.chosen(sends=sends, network=False, **terms)
        candidates = (*SERVING, *calibrated.EQUATIONS)
    if "switched" in variant:
        from mlsim.solvers.serving.switches import choose

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
        # What states take as kernels of their own, where a prompt goes through them in chunks.
        states = equations_of(kernels.STATE_KERNELS)
        candidates = (*candidates, *(each for each in states if each.name != "state_time"))
    if "routed" in variant:
        chosen |= _ROUTED
        own = (*_ROUTED.values(), *_ROUTED_TOO)
        experts = equations_of(kernels.EXPERT_KERNELS)
        candidates = (*candidates, *(each for each in experts if each.name in own))
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


class Prepared:
    """What a configuration comes to, as functions of the request alone.

    What no request changes is worked out before, and equations are written into one another; no
    sum is written otherwise, so the last digit is that of a step asked by itself. `contexts` are
    the names of decode steps.
    """

    def __init__(self, service: Service, contexts: Collection[str]) -> None:
        import numpy as np

        self._equations = equations_for(service.variant)
        self._asked = tuple(service.request)
        known = {**service.base, **service.table.columns_2d}
        self._fixed = {name: value for name, value in known.items() if name not in self._asked}
        self._windowed = "windowed" in service.variant
        # The room of an encoder's batch is not in a cache.
        sizes = MEMORY if contexts else tuple(name for name in MEMORY if name != "largest_batch")
        times = ("latency", *contexts, *(["filling_share"] * self._windowed))
        ends = ("time_to_first_token", *(WHOLE if contexts else ()))
        once, each = self._plan(("latency", *sizes))
        self._fixed |= {name: _one(value) for name, value in once.run(self._fixed).items()}
        columns = [name for name, value in self._fixed.items() if getattr(value, "ndim", 0)]
        # What neither operators nor steps change, which is quick.
        shared = each.split((*columns, *_TOKENS))[0]
        held = self._plan(sizes, *shared.wanted)[1]
        sums = tuple(step.yields for step in held.steps if step.sums)
        self._shared = self._folded(shared, self._fixed)
        self._sums = self._run(sums, shared.wanted)
        self._sizes = self._run(sizes, (*shared.wanted, *sums))
        self._whole = self._run(ends, (*shared.wanted, *times))
        self._ones = np.ones((len(service.table), 1 + len(contexts)))
        spread = {name: self._spread(name, value) for name, value in self._fixed.items()}
        steps = self._plan(("latency",), *shared.wanted)[1]
        needed = {name for step in steps.steps for name in step.inputs}
        self._of_steps = needed.intersection((*self._asked, *shared.wanted))
        self._steps = self._folded(steps, spread, *shared.wanted)

    def _plan(self, wanted: tuple[str, ...], *others: str) -> tuple[Plan, Plan]:
        names = (*self._asked, *_TOKENS, *others)
        return plan(self._equations, (*self._fixed, *names), wanted).split(names)

    def _folded(self, steps: Plan, fixed: Mapping[str, Any], *others: str) -> Folded:
        used = {name for step in steps.steps for name in step.inputs}.union(steps.wanted)
        changing = used.intersection((*self._asked, *_TOKENS, *others))
        return fold(steps, fixed, sorted(changing), written=True)

    def _run(self, wanted: tuple[str, ...], others: tuple[str, ...]) -> Folded:
        return self._folded(self._plan(wanted, *others)[1], self._fixed, *others)

    def _spread(self, name: str, value: Any) -> Any:
        """Return a column for each step, but those that count repeats: they only add up.

        Arrays of one shape are faster to compute with than broadcast ones.
        """
        if getattr(value, "ndim", 0) != 2 or "repeats" in name:
            return value
        import numpy as np

        return np.broadcast_to(value, self._ones.shape).copy()

    def shared(self, service: Service, request: dict[str, Any]) -> dict[str, Any]:
        """Return what one point asks, and what neither operators nor steps change."""
        request.update(self._shared(request))
        request["new_tokens"], request["cached_tokens"] = service.prefill
        return request

    def times(self, shared: dict[str, Any], contexts: Mapping[str, Any]) -> dict[str, float]:
        """Return the times of one point; "latency" is that of its first step."""
        import numpy as np

        new, cached = self._ones.copy(), self._ones.copy()
        new[:, 0] = shared["new_tokens"]
        cached[...] = (shared["cached_tokens"], *contexts.values())
        # NumPy need not look at what an array is.
        given = {name: np.asarray(shared[name]) for name in self._of_steps}
        taken = self._steps({**given, "new_tokens": new, "cached_tokens": cached})["latency"]
        # A given quantity may decide, the same for each step.
        each = taken.tolist() if getattr(taken, "ndim", 0) else [taken] * (1 + len(contexts))
        times = dict(zip(("latency", *contexts), each, strict=True))
        ready = {**shared, **times}
        if self._windowed:
            ready["filling_share"] = filling_share(contexts)
        times.update(self._whole(ready))
        return times

    def sizes(self, shared: dict[str, Any]) -> dict[str, float]:
        """Return what one point takes of memory."""
        sums = {name: _one(value) for name, value in self._sums(shared).items()}
        found = self._sizes(shared | sums)
        return {
            name: value if type(value) is float else float(_one(value))
            for name, value in found.items()
        }


_TOKENS = ("new_tokens", "cached_tokens")


def prepared(service: Service, contexts: Collection[str]) -> tuple[Prepared, dict[str, Any]]:
    """Return the functions of a service's configuration, and what they take of its request.

    They are made once for a kind of request.
    """
    request = service.request
    cache, key = service.table.cache, (service.variant, *request)
    found: Prepared | None = cache.get(key)
    if found is None:
        found = cache[key] = Prepared(service, contexts)
    return found, found.shared(service, request)


def _one(value: Any) -> Any:
    """Return an array of one number as that number, with which Python is faster."""
    return value.item() if getattr(value, "size", 0) == 1 else value


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


STEPS = ("first_token_time", "middle_token_time", "last_token_time")
WINDOWED_STEPS = (
    "first_token_time",
    "filling_token_time",
    "full_window_time",
    "later_token_time",
    "last_token_time",
)


def decode_contexts(service: Service) -> dict[str, Any]:
    """Return the tokens cached at each step that the mean is made of, by its name.

    The first step has the prompt in the cache, the last one all but the last token.
    Where layers have a window, its filling parts the output in two.
    """
    first = service.prompt_tokens
    # Prefill makes the first token; an output of one has no decode step of its own.
    last = _last(first, service.output_tokens)
    if "windowed" not in service.variant:
        return {
            "first_token_time": first,
            "middle_token_time": _middle(first, last),
            "last_token_time": last,
        }
    full = counts.full_cached_tokens(first, last, float(service.model.window))
    points = (first, _middle(first, full), full, _middle(full, last), last)
    return dict(zip(WINDOWED_STEPS, points, strict=True))


# The bare functions: each service asks for them.
_last, _middle = unwrap(counts.last_cached_tokens), unwrap(counts.middle_cached_tokens)


def check_context(model: Transformer, context: Any) -> Any:
    """Return the tokens cached as a float or an array of floats; none is allowed.

    Raises
    ------
    InvalidValueError
        If it is no whole number, or beyond the model's context.
    """
    cached = validate("cached_tokens", context, whole=True, zero=True)
    longest = float(cached.max() if getattr(cached, "ndim", 0) else cached)
    if longest >= model.context:
        raise InvalidValueError(
            f"{longest:,.0f} tokens cached and a new one are more than the context of "
            f"{model.name}, {model.context:,}."
        )
    return cached


def filling_share(contexts: Mapping[str, Any]) -> Any:
    """Return the part of the output that is written before a window is full."""
    first, last = contexts["first_token_time"], contexts["last_token_time"]
    return counts.filling_share(first, contexts["full_window_time"], last)


# Quantities of a whole generation, from the times of its steps.
WHOLE = (
    "time_per_output_token",
    "generation_latency",
    "user_token_rate",
    "decode_throughput",
    "output_throughput",
)
# Quantities of memory: the same in each phase.
MEMORY = (
    "weight_memory",
    "activation_memory",
    "cache_memory",
    "cache_per_sequence",
    "cache_bytes_per_token",
    "cache_tokens",
    "memory_required",
    "memory_free",
    "usable_memory",
    "largest_batch",
)
RESULTS = ("time_to_first_token", *WHOLE, *MEMORY)

# What a caller may give in place of what the data or the equations say.
SERVING_GIVABLE = (
    "peak_flops",
    "memory_bandwidth",
    "memory_capacity",
    "link_bandwidth",
    "bytes_per_parameter",
    "bytes_per_element",
    "bytes_per_cached_element",
    "expert_share",
    # With offload only.
    "host_link_bandwidth",
    *dict.fromkeys(
        each.yields
        for each in SERVING
        if each.yields not in (*WHOLE, "time_to_first_token", "latency")
    ),
)


def givable(estimate: str) -> tuple[str, ...]:
    """Return what a caller may give of an estimate."""
    if estimate != CALIBRATED:
        return SERVING_GIVABLE
    from mlsim.solvers.calibrated import OF_DEVICE, OF_LINK

    return (*SERVING_GIVABLE, *OF_DEVICE, *OF_LINK, "waves", "filled_share")
