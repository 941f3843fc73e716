"""The equations that hold of a training run, and what of it can be asked for and given."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache

from mlsim.equations import (
    Equation,
    calibration,
    equations_of,
    links,
    roofline,
    runs,
    serving,
    training,
    transformer,
)
from mlsim.records import DATA

_OWN = equations_of(
    training.TRAINING,
    links.COLLECTIVE,
    training.PIPELINE,
    training.STEP_PARTS,
    training.TRAINING_MEMORY,
    runs.RUN,
    runs.TRAINING_BOUND,
    runs.ADAPTERS,
)
_DATA = tomllib.loads((DATA / "training.toml").read_text(encoding="utf-8"))
NAMES: Mapping[str, tuple[str, ...]] = {
    key: tuple(names.split()) for key, names in _DATA["names"].items()
}
# Where the time of a step goes.
PARTS: Mapping[str, str] = _DATA["parts"]
# What is not given, and how it would be; what is not asked of networks, and why.
EXAMPLES: Mapping[str, str] = _DATA["examples"]
OF_LANGUAGE: Mapping[str, str] = _DATA["of_language"]
_BY_NAME = {
    each.name: each
    for each in equations_of(
        roofline.ROOFLINE, calibration.CALIBRATION, transformer.STEP, serving.SERVICE
    )
}
TRAINING = (*(_BY_NAME[name] for name in NAMES["shared"]), *_OWN)
_CANDIDATES = {each.name: each for each in TRAINING} | _BY_NAME
NETWORK_TRAINING = (
    *(_CANDIDATES[name] for name in NAMES["network"]),
    *equations_of(runs.NETWORK_TRAINING),
)


@lru_cache(maxsize=64)
def equations_for(variant: frozenset[str], collective_kind: str) -> tuple[Equation, ...]:
    """Choose one equation for each quantity, for a kind of run and of answer."""
    fine = "adapters" in variant
    again = "adapter_recomputed_flops" if fine else "full_recomputed_flops"
    chosen = {
        **_of_all(variant, collective_kind),
        **{name: pair.split()[fine] for name, pair in _DATA["adapters"].items()},
        "weight_bytes": (
            "dequantized_weight_bytes" if "quantized" in variant else "kernel_weight_bytes"
        ),
        "attention_pairs": "attention_pairs" if "causal" in variant else "bidirectional_pairs",
        "bubble_time": "uneven_bubble_time" if "uneven" in variant else "bubble_time",
        "recomputed_flops": (again if "recomputed" in variant else "selective_recomputed_flops"),
    }
    return _chosen(TRAINING, chosen, variant)


def _chosen(
    candidates: tuple[Equation, ...], chosen: dict[str, str], variant: frozenset[str]
) -> tuple[Equation, ...]:
    """Return the equations chosen by name, of those that have others beside them."""
    kept = (each for each in candidates if chosen.get(each.yields, each.name) == each.name)
    # The bound has no parts, and only a run that trains adapters has frozen weights.
    none = {*(NAMES["parts"] if "bound" in variant else ())}
    none.update(() if "adapters" in variant else OF_ADAPTERS)
    return tuple(each for each in kept if each.yields not in none)


def _of_all(variant: frozenset[str], collective_kind: str) -> dict[str, str]:
    """Name the equation for each quantity that has several, whatever is trained."""
    measured, bound = "calibrated" in variant, "bound" in variant
    return {
        "step_time": "bound_step_time" if bound else "step_time",
        "memory_utilisation": (
            "bound_memory_utilisation" if bound else "training_memory_utilisation"
        ),
        "compute_time": "calibrated_compute_time" if measured else "compute_time",
        "memory_time": "calibrated_memory_time" if measured else "memory_time",
        "kernel_time": "started_kernel_time" if measured else "ideal_kernel_time",
        "pass_rate": f"{collective_kind}_pass_rate",
        "pass_latency": f"{collective_kind}_pass_latency",
        "memory_free": "usable_memory_free",
        "micro_batches": "training_micro_batches",
    }


@lru_cache(maxsize=64)
def network_equations_for(variant: frozenset[str], collective_kind: str) -> tuple[Equation, ...]:
    """Choose one equation for each quantity of training of a network of layers."""
    chosen = {
        **_of_all(variant, collective_kind),
        "optimizer_time": "optimizer_time" if "copied" in variant else "plain_optimizer_time",
    }
    return _chosen(NETWORK_TRAINING, chosen, variant)


# Sizes that only a run has which trains adapters; and all that hold whether or not it fits.
OF_ADAPTERS = NAMES["adapter_sizes"]
SIZES = (*NAMES["sizes"], *OF_ADAPTERS)


def givable(names: tuple[str, ...], equations: tuple[Equation, ...]) -> tuple[str, ...]:
    """Return what a caller may give in place of what the data or the equations say."""
    return tuple(dict.fromkeys((*names, *(each.yields for each in equations if not each.sums))))


TRAINING_GIVABLE = givable(NAMES["givable"], TRAINING)

# The calibrated estimate has more of it.
CALIBRATED_GIVABLE = (*TRAINING_GIVABLE, "compute_fraction", "kernel_overhead")

# What can be asked for.
TRAINING_NAMES = tuple(
    dict.fromkeys(name for each in TRAINING for name in (each.yields, *each.inputs))
)
