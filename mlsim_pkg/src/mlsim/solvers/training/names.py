"""What can be asked of a training run, and given to it, by name."""

from __future__ import annotations

from mlsim.solvers.training.plan import TRAINING

# Sizes that only a run has which trains adapters.
OF_ADAPTERS = (
    *("adapter_parameters", "adapter_dense_parameters", "adapter_expert_parameters"),
    *("bytes_per_quantized", "quantized_parameters", "frozen_bytes", "dequantized_at_once"),
    *("frozen_multiply_adds", "spared_multiply_adds", "adapter_multiply_adds"),
    *("exchanged_frozen_parameters", "frozen_gathers"),
)
# Quantities that hold whether or not the run fits.
SIZES = (
    "weight_memory",
    "gradient_memory",
    "optimizer_memory",
    "activation_memory",
    "state_memory",
    "saved_memory",
    "working_memory",
    "in_flight",
    "memory_required",
    "memory_free",
    "usable_memory",
    "device_parameters",
    "model_flops",
    "hardware_flops",
    "sequence_flops",
    "recomputed_flops",
    "micro_batches",
    "step_tokens",
    "state_bytes",
    "checkpoint_bytes",
    "expert_owners",
    "state_shards",
    "gradient_shards",
    "weight_shards",
    "weight_gathers",
    "gradient_scatters",
    "gathered_parameters",
    "pipeline_elements",
    "tree_depth",
    "hop_latency",
    "flops_per_parameter_token",
    "run_tokens_per_parameter",
    "trained_parameters",
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
            "peak_flops",
            "memory_bandwidth",
            "memory_capacity",
            "link_bandwidth",
            "node_bandwidth",
            "fabric_bandwidth",
            "stage_bandwidth",
            "hop_latency",
            "link_fraction",
            "memory_fraction",
            "bytes_per_parameter",
            "bytes_per_element",
            "bytes_per_gradient",
            "state_bytes",
            "checkpoint_bytes",
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
