"""Fine-tuning with adapters: the model is frozen, and small matrices beside it are trained.

What is said of kernels, pipelines and updates elsewhere holds here too. These are the equations
in which trained parameters and frozen ones part.
"""

from __future__ import annotations

from mlsim.equations.registry import equation

QUESTION = "What do adapters save when a model is fine-tuned?"


@equation(source="hu2021lora")
def trained_share(trained_parameters, all_parameters):
    """Parameters that training changes, per parameter of the model.

    Valid for any training; of all weights it is 1.

    >>> trained_share(4e6, 8e9)
    0.0005
    """
    return trained_parameters / all_parameters


@equation(source="hu2021lora")
def adapter_parameters(adapter_dense_parameters, adapter_expert_parameters):
    """Parameters of the adapters on a device.

    Valid for the fullest stage.

    >>> adapter_parameters(3e6, 1e6)
    4000000.0
    """
    return adapter_dense_parameters + adapter_expert_parameters


@equation(source="dettmers2023qlora")
def bytes_per_quantized(
    value_bytes, constant_bytes, block_parameters, second_constant_bytes, block_constants
):
    """Bytes of a quantized parameter with its share of constants, which are quantized too.

    Of NF4 with double quantization: 4 bits, 8 bits for each block of 64, and 32 bits for each
    256 blocks. That is 0.127 bits more than a value alone has, where constants of 32 bits
    would be half a bit.

    Valid for blocks that are filled.

    >>> bytes_per_quantized(0.5, 1.0, 64, 4.0, 256)
    0.515869140625
    """
    return (
        value_bytes
        + constant_bytes / block_parameters
        + second_constant_bytes / (block_parameters * block_constants)
    )


@equation(source="dettmers2023qlora")
def frozen_bytes(bytes_per_quantized, quantized_parameters, bytes_per_parameter, device_parameters):
    """Bytes that store a frozen parameter, on average: some are quantized, the rest is not.

    Embeddings, norms and the output layer stay as they are.

    Valid for a device that holds its part of each kind.

    >>> frozen_bytes(0.5, 6e9, 2.0, 8e9)
    0.875
    """
    return (
        bytes_per_quantized * quantized_parameters
        + bytes_per_parameter * (device_parameters - quantized_parameters)
    ) / device_parameters


@equation(source="hu2021lora", yields="weight_memory")
def frozen_weight_memory(
    frozen_bytes, device_parameters, bytes_per_parameter, adapter_parameters, weight_shards
):
    """Memory of frozen weights in their format, and of adapters in that of the arithmetic.

    Valid for equal shards of both; full copies have one shard.

    >>> frozen_weight_memory(0.5, 8e9, 2.0, 1e9, 4)
    1500000000.0
    """
    return (
        frozen_bytes * device_parameters + bytes_per_parameter * adapter_parameters
    ) / weight_shards


@equation(source="hu2021lora", yields="gradient_memory")
def adapter_gradient_memory(bytes_per_gradient, adapter_parameters, gradient_shards):
    """Memory of the gradients, which only adapters have.

    Valid for equal shards.

    >>> adapter_gradient_memory(2.0, 1e6, 4)
    500000.0
    """
    return bytes_per_gradient * adapter_parameters / gradient_shards


@equation(source="hu2021lora", yields="optimizer_memory")
def adapter_optimizer_memory(state_bytes, adapter_parameters, state_shards):
    """Memory of the optimizer's state, which only adapters have.

    Valid for equal shards.

    >>> adapter_optimizer_memory(12.0, 1e6, 4)
    3000000.0
    """
    return state_bytes * adapter_parameters / state_shards


@equation(source="rajbhandari2020zero", yields="state_shards")
def adapter_state_shards(
    adapter_dense_parameters, adapter_expert_parameters, shard_group, expert_owners
):
    """Devices among which the optimizer's state of adapters is sharded, on average.

    Adapters of experts have fewer owners, as experts have.

    Valid for ZeRO; full copies have one shard.

    >>> adapter_state_shards(3e6, 1e6, 8.0, 2.0)
    4.571428571428571
    """
    return (adapter_dense_parameters + adapter_expert_parameters) / (
        adapter_dense_parameters / shard_group + adapter_expert_parameters / expert_owners
    )


@equation(source="rajbhandari2020zero", yields="weight_shards")
def frozen_weight_shards(dense_parameters, expert_parameters, shard_group, expert_owners):
    """Devices among which frozen weights are sharded, on average over a device's parameters.

    Valid for ZeRO-3 and FSDP; otherwise each copy keeps all weights.

    >>> frozen_weight_shards(3e9, 1e9, 8.0, 2.0)
    4.571428571428571
    """
    return (dense_parameters + expert_parameters) / (
        dense_parameters / shard_group + expert_parameters / expert_owners
    )


@equation(source="dettmers2023qlora", yields="activation_memory")
def adapter_activation_memory(
    saved_memory,
    in_flight,
    working_memory,
    frozen_bytes,
    gathered_parameters,
    bytes_per_parameter,
    dequantized_at_once,
):
    """Memory of activations, of weights that are gathered, and of a matrix in 16 bits.

    Weights are gathered in the format in which they are stored. Of quantized ones, a matrix at
    a time is turned into 16 bits to compute with it.

    Valid for the first stage, which keeps most.

    >>> adapter_activation_memory(10.0, 4.0, 5.0, 0.5, 4.0, 2.0, 3.0)
    53.0
    """
    return (
        saved_memory * in_flight
        + working_memory
        + frozen_bytes * gathered_parameters
        + bytes_per_parameter * dequantized_at_once
    )


@equation(source="dettmers2023qlora", yields="weight_bytes")
def dequantized_weight_bytes(
    bytes_per_parameter,
    parameters_streamed,
    bytes_per_gradient,
    gradients_accumulated,
    bytes_per_quantized,
    parameters_dequantized,
):
    """Traffic of weights where some are stored quantized and computed with in 16 bits.

    A kernel reads quantized weights and writes them in 16 bits; the product after it reads those.

    Assumes that the two are kernels of their own, as in bitsandbytes.
    Valid where the weights are larger than the caches.

    >>> dequantized_weight_bytes(2.0, 30, 4.0, 20, 0.5, 100)
    470.0
    """
    return (
        bytes_per_parameter * parameters_streamed
        + 2 * bytes_per_gradient * gradients_accumulated
        + (bytes_per_quantized + bytes_per_parameter) * parameters_dequantized
    )


@equation(source="hu2021lora", yields="model_flops")
def adapter_model_flops(
    global_batch,
    sequence_flops,
    flops_per_multiply_add,
    adapter_multiply_adds,
    frozen_multiply_adds,
    spared_multiply_adds,
):
    """Work of a step in which only adapters learn: no gradients of frozen weights.

    A frozen matrix is passed through forward, and backward for the gradient of its input: four
    operations for each parameter and token in place of six. Attention and adapters take three
    times their forward pass. Nothing below the first adapter needs a gradient.

    Valid for adapters beside any of the matrices.

    >>> adapter_model_flops(2, 10.0, 2.0, 0.5, 4.0, 1.0)
    46.0
    """
    return global_batch * (
        3 * (sequence_flops + flops_per_multiply_add * adapter_multiply_adds)
        - flops_per_multiply_add * (frozen_multiply_adds + spared_multiply_adds)
    )


@equation(source="korthikanti2022reducing", yields="recomputed_flops")
def adapter_recomputed_flops(
    sequence_flops, flops_per_multiply_add, adapter_multiply_adds, output_multiply_adds
):
    """Work that is done again where whole layers are recomputed, with their adapters.

    Valid for full recomputation.

    >>> adapter_recomputed_flops(100.0, 2.0, 5.0, 10.0)
    90.0
    """
    return sequence_flops + flops_per_multiply_add * (adapter_multiply_adds - output_multiply_adds)


@equation(source="fedus2022switch", yields="exchanged_parameters")
def exchanged_adapter_parameters(
    adapter_dense_parameters, adapter_expert_parameters, expert_owners, shard_group
):
    """Parameters of adapters weighed by what is sent of them: of experts, to owners of the same.

    Valid for two copies or more.

    >>> exchanged_adapter_parameters(3e6, 2e6, 3, 9)
    4500000.0
    """
    return adapter_dense_parameters + adapter_expert_parameters * (
        expert_owners - 1
    ) / expert_owners * (shard_group / (shard_group - 1))


@equation(source="fedus2022switch")
def exchanged_frozen_parameters(dense_parameters, expert_parameters, expert_owners, shard_group):
    """Frozen parameters weighed by what is gathered of them: of experts, from owners of the same.

    Valid for two copies or more.

    >>> exchanged_frozen_parameters(3e9, 2e9, 3, 9)
    4500000000.0
    """
    return dense_parameters + expert_parameters * (expert_owners - 1) / expert_owners * (
        shard_group / (shard_group - 1)
    )


@equation(source="rajbhandari2020zero", yields="frozen_gathers")
def zero3_frozen_gathers(micro_batches):
    """How often sharded frozen weights are gathered: for both passes of each micro-batch.

    Assumes that weights are dropped again after each pass.
    Valid for ZeRO-3 and FSDP; where each copy has all weights, nothing is gathered of them.

    >>> zero3_frozen_gathers(8.0)
    16.0
    """
    return 2 * micro_batches


@equation(source="rajbhandari2020zero", yields="gradient_time")
def adapter_gradient_time(
    weight_gathers,
    gathered_bytes,
    gradient_scatters,
    bytes_per_gradient,
    exchanged_parameters,
    frozen_gathers,
    frozen_bytes,
    exchanged_frozen_parameters,
    pass_rate,
    link_fraction,
    pass_latency,
):
    """Time to bring gradients of adapters together, and to gather frozen weights if sharded.

    Frozen weights have no gradients to send. They are gathered in the format in which they are
    stored, along with the adapters.

    Valid for one step.

    >>> adapter_gradient_time(2, 2.0, 3, 4.0, 1e9, 4, 0.5, 4e9, 1e-11, 0.5, 0.01)
    0.53
    """
    return (
        (weight_gathers * gathered_bytes + gradient_scatters * bytes_per_gradient)
        * exchanged_parameters
        + frozen_gathers * frozen_bytes * exchanged_frozen_parameters
    ) * pass_rate / link_fraction + (weight_gathers + gradient_scatters) * pass_latency


@equation(source="kingma2015adam", yields="optimizer_time")
def adapter_optimizer_time(
    adapter_parameters,
    state_shards,
    bytes_per_gradient,
    state_bytes,
    bytes_per_parameter,
    memory_bandwidth,
    memory_fraction,
):
    """Time to update the adapters: their gradients are read, state and weights are written.

    Assumes that one kernel does all. The roofline takes the full rate of memory.
    Valid as a lower limit.

    >>> adapter_optimizer_time(1e9, 4, 2.0, 12.0, 4.0, 2e12, 0.5)
    0.0075
    """
    return (
        adapter_parameters
        / state_shards
        * (bytes_per_gradient + 2 * state_bytes + bytes_per_parameter)
        / (memory_bandwidth * memory_fraction)
    )


@equation(source="hu2021lora", yields="checkpoint_bytes")
def adapter_checkpoint_bytes(trained_parameters, bytes_per_parameter, state_bytes):
    """Size of a checkpoint: adapters, and the optimizer's state of them.

    Valid where the frozen model is kept elsewhere.

    >>> adapter_checkpoint_bytes(1e6, 2.0, 12.0)
    14000000.0
    """
    return trained_parameters * (bytes_per_parameter + state_bytes)


@equation(source="williams2009roofline", yields="compulsory_bytes")
def adapter_compulsory_bytes(
    frozen_bytes,
    model_parameters,
    tensor_parallel,
    pipeline_parallel,
    trained_parameters,
    state_bytes,
    bytes_per_parameter,
    devices,
):
    """Bytes that a device must move in a step: frozen weights once, and its share of the update.

    Assumes that no weight stays on chip from one step to the next.
    Valid as a lower limit.

    >>> adapter_compulsory_bytes(0.5, 8e9, 4, 2, 1e8, 12.0, 2.0, 8)
    825000000.0
    """
    return (
        frozen_bytes * model_parameters / (tensor_parallel * pipeline_parallel)
        + trained_parameters * (2 * state_bytes + bytes_per_parameter) / devices
    )
