"""The equations that hold of a training run, and what of it can be asked for and given."""

from __future__ import annotations

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
# Where adapters are trained beside a frozen model, what takes the place of which equation. Of
# each pair, the first holds where all weights are trained.
_OF_ADAPTERS = {
    "weight_memory": ("sharded_weight_memory", "frozen_weight_memory"),
    "gradient_memory": ("gradient_memory", "adapter_gradient_memory"),
    "optimizer_memory": ("optimizer_memory", "adapter_optimizer_memory"),
    "state_shards": ("state_shards", "adapter_state_shards"),
    "weight_shards": ("zero3_weight_shards", "frozen_weight_shards"),
    "activation_memory": ("training_activation_memory", "adapter_activation_memory"),
    "model_flops": ("model_flops", "adapter_model_flops"),
    "exchanged_parameters": ("exchanged_parameters", "exchanged_adapter_parameters"),
    "gradient_time": ("gradient_time", "adapter_gradient_time"),
    "optimizer_time": ("optimizer_time", "adapter_optimizer_time"),
    "checkpoint_bytes": ("adam_checkpoint_bytes", "adapter_checkpoint_bytes"),
    "compulsory_bytes": ("compulsory_bytes", "adapter_compulsory_bytes"),
}
# What holds of a kernel, of pairs of tokens and of memory whatever they are for.
_SHARED = (
    *("bytes_moved", "compute_time", "calibrated_compute_time", "memory_time"),
    *("calibrated_memory_time", "waves", "filled_share", "roofline_time", "arithmetic_intensity"),
    *("unclipped_tokens", "attention_pairs", "bidirectional_pairs", "usable_memory"),
    "usable_memory_free",
)
_BY_NAME = {
    each.name: each
    for each in equations_of(
        roofline.ROOFLINE, calibration.CALIBRATION, transformer.STEP, serving.SERVICE
    )
}
TRAINING = (*(_BY_NAME[name] for name in _SHARED), *_OWN)
# What holds of a network of layers too, whose devices share neither layers nor sequences.
_OF_NETWORKS = (
    *("flops", "weight_bytes", "activation_bytes", "bytes_moved", "arithmetic_intensity"),
    *("compute_time", "calibrated_compute_time", "memory_time", "calibrated_memory_time"),
    *("convolution_rows", "waves", "filled_share", "roofline_time"),
    *("ideal_kernel_time", "started_kernel_time", "forward_time", "backward_time"),
    *("stage_time", "steady_time", "bubble_time", "training_micro_batches", "step_time"),
    *("step_forward_time", "step_recompute_time", "step_backward_time", "step_exchange_time"),
    *("exposed_pipeline_time", "exposed_gradient_time", "optimizer_time", "kernel_step_time"),
    *("ring_pass_rate", "hierarchical_pass_rate", "tree_pass_rate", "tree_depth"),
    *("ring_pass_latency", "hierarchical_pass_latency", "tree_pass_latency"),
    *("gradient_time", "all_reduce_hop_latency", "hardware_flops", "ideal_step_time"),
    *("peak_step_time", "model_flops_utilization", "hardware_flops_utilization"),
    *("micro_batch_bytes", "training_memory_utilisation", "optimizer_memory", "state_memory"),
    *("training_memory", "usable_memory", "usable_memory_free", "adam_checkpoint_bytes"),
    *("failure_interval", "checkpoint_time", "checkpoint_interval", "goodput"),
    *("training_time", "device_time", "training_cost"),
    *("compulsory_bytes", "compulsory_time", "bound_step_time", "bound_memory_utilisation"),
)
# What the bound does not have: where the time of a step goes.
_PARTS = frozenset(
    (
        *("forward_time", "recompute_time", "backward_time", "exchange_time", "output_time"),
        *("stage_time", "steady_time", "bubble_time", "output_share", "pipeline_time"),
        *("exposed_pipeline_time", "exposed_gradient_time", "gradient_time", "optimizer_time"),
        *("step_forward_time", "step_recompute_time", "step_backward_time"),
        *("step_exchange_time", "kernel_step_time", "kernel_time", "network_time"),
        *("compute_time", "memory_time", "roofline_time", "micro_batch_bytes"),
    )
)
_CANDIDATES = {each.name: each for each in TRAINING} | _BY_NAME
NETWORK_TRAINING = (
    *(_CANDIDATES[name] for name in _OF_NETWORKS),
    *equations_of(runs.NETWORK_TRAINING),
)
COLLECTIVES = ("ring", "hierarchical", "tree")


@lru_cache(maxsize=64)
def equations_for(variant: frozenset[str], collective_kind: str) -> tuple[Equation, ...]:
    """Choose one equation for each quantity, for a kind of run and of answer."""
    fine = "adapters" in variant
    again = "adapter_recomputed_flops" if fine else "full_recomputed_flops"
    chosen = {
        **_of_all(variant, collective_kind),
        **{name: pair[fine] for name, pair in _OF_ADAPTERS.items()},
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
    return tuple(each for each in kept if "bound" not in variant or each.yields not in _PARTS)


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


# Sizes that only a run has which trains adapters.
OF_ADAPTERS = (
    *("adapter_parameters", "adapter_dense_parameters", "adapter_expert_parameters"),
    *("bytes_per_quantized", "quantized_parameters", "frozen_bytes", "dequantized_at_once"),
    *("frozen_multiply_adds", "spared_multiply_adds", "adapter_multiply_adds"),
    *("exchanged_frozen_parameters", "frozen_gathers"),
)
# Quantities that hold whether or not the run fits.
SIZES = (
    *("weight_memory", "gradient_memory", "optimizer_memory", "activation_memory", "state_memory"),
    *("saved_memory", "working_memory", "in_flight", "memory_required", "memory_free"),
    *("usable_memory", "device_parameters", "model_flops", "hardware_flops", "sequence_flops"),
    *("recomputed_flops", "micro_batches", "step_tokens", "state_bytes", "checkpoint_bytes"),
    *("expert_owners", "state_shards", "gradient_shards", "weight_shards", "weight_gathers"),
    *("gradient_scatters", "gathered_parameters", "pipeline_elements", "tree_depth", "hop_latency"),
    *("flops_per_parameter_token", "run_tokens_per_parameter", "trained_parameters"),
    "trained_share",
    *OF_ADAPTERS,
)
# Where the time of a step goes.
PARTS = {
    "forward": "step_forward_time",
    "recompute": "step_recompute_time",
    "backward": "step_backward_time",
    "exchange": "step_exchange_time",
    "bubble": "bubble_time",
    "pipeline": "exposed_pipeline_time",
    "gradients": "exposed_gradient_time",
    "optimizer": "optimizer_time",
}
# Of the whole run, what failures make longer.
WITH_FAILURES = ("goodput", "training_time", "device_time", "training_cost")

# What a caller may give in place of what the data or the equations say.
TRAINING_GIVABLE = tuple(
    dict.fromkeys(
        (
            *("peak_flops", "memory_bandwidth", "memory_capacity", "link_bandwidth"),
            *("node_bandwidth", "fabric_bandwidth", "stage_bandwidth", "hop_latency"),
            *("link_fraction", "memory_fraction", "bytes_per_parameter", "bytes_per_element"),
            *("bytes_per_gradient", "state_bytes", "checkpoint_bytes"),
            *(each.yields for each in TRAINING if not each.sums),
        )
    )
)

# The calibrated estimate has more of it.
CALIBRATED_GIVABLE = (*TRAINING_GIVABLE, "compute_fraction", "kernel_overhead")

# What can be asked for.
TRAINING_NAMES = tuple(
    dict.fromkeys(name for each in TRAINING for name in (each.yields, *each.inputs))
)
