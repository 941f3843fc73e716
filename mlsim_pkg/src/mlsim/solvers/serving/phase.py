"""One step of a language model on its devices: prefill, or a decode step.

A phase is turned into known quantities; a plan of equations is run on the
operators of one device, as for a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mlsim.equations import Equation, Plan, equations_of, plan, recurrent, roofline, service, step
from mlsim.solvers import calibrated
from mlsim.solvers.inputs import CALIBRATED
from mlsim.solvers.serving.service import ASKED, Service
from mlsim.workloads.operators import NO_OPERATORS, OperatorTable
from mlsim.workloads.steps import StepOperator

# A step has its own counts of work and traffic, and its own sum of times.
_OWN = {each.yields for each in equations_of(step, service)} | {"throughput"}
_SHARED = tuple(each for each in equations_of(roofline) if each.yields not in _OWN)
_ROOFLINE_LATENCY = tuple(each for each in equations_of(roofline) if each.yields == "latency")

# What a model with states keeps and moves, and not what counts the work of a layer.
_STATES = ("operator_cache_and_state", "cache_and_state_bytes", "states_moved")
_RECURRENT = tuple(each for each in equations_of(recurrent) if each.name in _STATES)

SERVING = (*_SHARED, *equations_of(step, service), *_ROOFLINE_LATENCY, *_RECURRENT)


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
        "cache_bytes": "cache_and_state_bytes" if "recurrent" in variant else "cache_bytes",
        # Tokens may all choose the same experts: only so many are compulsory.
        "expert_share": "compulsory_expert_share" if bound else "expert_share",
        "positions_read": "cached_positions_read" if bound else "positions_read",
        "latency": "bound_latency" if bound else "step_latency" if sends else "latency",
    }
    candidates = SERVING
    if CALIBRATED in variant:
        chosen |= calibrated.chosen(sends=sends, network=False)
        candidates = (*SERVING, *calibrated.EQUATIONS)
    return tuple(each for each in candidates if chosen.get(each.yields, each.name) == each.name)


@lru_cache(maxsize=512)
def find_plan(variant: frozenset[str], known: frozenset[str], wanted: tuple[str, ...]) -> Plan:
    """Return the plan from known names to wanted ones, made once."""
    return plan(equations_for(variant), known, wanted)


@dataclass(frozen=True, eq=False)
class Phase:
    """A step of a service: so many new tokens of each sequence, so many cached."""

    service: Service
    name: str
    new_tokens: Any
    cached_tokens: Any

    @property
    def known(self) -> dict[str, Any]:
        """Everything known but the operators' columns, in base units."""
        return {
            **self.service.shared,
            "new_tokens": self.new_tokens,
            "cached_tokens": self.cached_tokens,
        }

    @property
    def table(self) -> OperatorTable[StepOperator]:
        """The operators on one device."""
        return self.service.table

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer: () for one point."""
        asked = {"cached_tokens": self.cached_tokens, "new_tokens": self.new_tokens}
        return self.service.shape_with(asked)

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""
        table = self.table
        key = (wanted, tuple(self.service.given))
        found: Plan | None = table.cache.get(key)
        if found is None:
            known = frozenset((*self.known, *table.names))
            found = table.cache[key] = find_plan(self.service.variant, known, wanted)
        return found

    def at_once(self, wanted: tuple[str, ...], new: Any, cached: Any) -> dict[str, Any]:
        """Run several steps of one point as the columns of one table: the shortest way.

        What does not depend on the request is reckoned once for a table.
        """
        service, table = self.service, self.table
        request = {**service.request, "new_tokens": new, "cached_tokens": cached}
        if service.given:
            values = {**service.base, **table.columns_2d, **request}
            return {**values, **self.plan(*wanted).compute(values)}
        import numpy as np

        shape = (len(table), len(new))
        key = (wanted, shape)
        if key not in table.cache:
            once, each = self.plan(*wanted).split(ASKED)
            fixed = once.run({**service.base, **table.columns_2d})
            table.cache[key] = (
                {name: _spread(value, shape, name) for name, value in fixed.items()},
                each,
            )
        fixed, each = table.cache[key]
        # Arrays of one shape are faster to reckon with than broadcast ones.
        for name in ("new_tokens", "cached_tokens"):
            full = np.empty(shape)
            full[...] = request[name]
            request[name] = full
        found: dict[str, Any] = each.compute({**fixed, **request})
        return found

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        found = self.service.labels
        return {**found, "estimate": f"{found['estimate']}, {self.name}"}

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        return self.service.origin(name)


def _spread(value: Any, shape: tuple[int, int], name: str) -> Any:
    """Return a column for each step, but those that count repeats: they only add up."""
    if getattr(value, "ndim", 0) != 2 or "repeats" in name:
        return value
    import numpy as np

    return np.broadcast_to(value, shape).copy()


@dataclass(frozen=True, eq=False)
class Whole:
    """A whole generation: the times of its steps are known, and are put together."""

    service: Service
    known: Mapping[str, Any]
    shape: tuple[int, ...]

    @property
    def table(self) -> OperatorTable[Any]:
        """No operators: their times have been added up."""
        return NO_OPERATORS

    def plan(self, *wanted: str) -> Plan:
        """Return the equations that lead to what is wanted."""
        return find_plan(self.service.variant, frozenset(self.known), wanted)

    @property
    def labels(self) -> dict[str, str]:
        """What this is about, in words, for an explanation."""
        return self.service.labels

    def origin(self, name: str) -> str:
        """Say where a known quantity comes from."""
        steps = {
            "time_to_first_token": "prefill",
            "first_token_time": "decode, the first step",
            "middle_token_time": "decode, the middle step",
            "filling_token_time": "decode, halfway to a full window",
            "full_window_time": "decode, the step that fills the window",
            "later_token_time": "decode, halfway from there to the last step",
            "last_token_time": "decode, the last step",
        }
        if name == "filling_share":
            window = self.service.model.window
            return f"part of the output that is written before {window:,} tokens are in the window"
        return (
            f"{steps[name]}: explained on its own" if name in steps else self.service.origin(name)
        )
