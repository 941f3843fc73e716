"""A whole training run: how long, what it costs, what failures take, how large a model."""

from __future__ import annotations

from mlsim.equations.functions import maximum, square_root, total
from mlsim.equations.registry import Topic

RUN = equation = Topic("run", "What does a training run take, and how large should its model be?")


@equation(source="chowdhery2022palm")
def computing_time(training_tokens, token_rate):
    """Time of a run in which nothing fails and nothing is written.

    Valid where each token is read once at a steady rate.

    >>> computing_time(3e12, 1e6)
    3000000.0
    """
    return training_tokens / token_rate


@equation(source="meta2024llama3")
def failure_interval(mean_time_to_failure, devices):
    """Mean time between failures of a run: any device that fails stops all.

    Assumes that devices fail independently, at a steady rate.
    Valid for a run without spare devices that take over.

    >>> failure_interval(1.8e8, 10000)
    18000.0
    """
    return mean_time_to_failure / devices


@equation(source="young1974first")
def checkpoint_time(checkpoint_bytes, checkpoint_bandwidth):
    """Time to write what a run needs to go on after a failure.

    Assumes that computing waits for it.
    Valid for one writer, or for many at the rate of all together.

    >>> checkpoint_time(1e12, 1e10)
    100.0
    """
    return checkpoint_bytes / checkpoint_bandwidth


@equation(source="young1974first")
def checkpoint_interval(checkpoint_time, failure_interval):
    """Time of computing between checkpoints that loses least.

    Too often, and writing takes the time; too seldom, and a failure does.

    Assumes that a checkpoint takes far less time than passes between failures.
    Valid to first order (Young); Daly adds terms that are small then.

    >>> checkpoint_interval(50.0, 10000.0)
    1000.0
    """
    return square_root(2 * checkpoint_time * failure_interval)


@equation(source="daly2006higher")
def goodput(checkpoint_time, checkpoint_interval, restart_time, failure_interval):
    """Part of the time in which a run gets on.

    Each interval costs a checkpoint; each failure costs a restart and, on average, half of
    an interval and of a checkpoint.

    Assumes that failures are seldom against the interval, and don't come during a restart.
    Valid while the loss is small.

    >>> goodput(250.0, 750.0, 500.0, 10000.0)
    0.675
    """
    return (
        checkpoint_interval
        / (checkpoint_interval + checkpoint_time)
        * (1 - (restart_time + (checkpoint_interval + checkpoint_time) / 2) / failure_interval)
    )


@equation(source="daly2006higher")
def training_time(computing_time, goodput):
    """Time of a whole run, with checkpoints, failures and restarts.

    Valid where the goodput is positive.

    >>> training_time(90.0, 0.9)
    100.0
    """
    return computing_time / goodput


@equation(source="chowdhery2022palm")
def device_time(training_time, devices):
    """Time of a run, counted for each of its devices: device-hours.

    Valid where all devices are held for the whole run.

    >>> device_time(3600.0, 8)
    28800.0
    """
    return training_time * devices


@equation(source="hennessy2019quantitative")
def training_cost(device_time, device_price):
    """Price of the devices of a run.

    Assumes that a device costs the same all the time.
    Valid for rented devices; storage, network and people are not in it.

    >>> training_cost(7200.0, 0.0005)
    3.6
    """
    return device_time * device_price


@equation(source="kaplan2020scaling")
def training_flops(flops_per_parameter_token, model_parameters, training_tokens):
    """Work of a run: six operations for each parameter and token.

    A multiply-add forward, and two backward.

    Assumes that attention is small against the matrices.
    Valid for sequences that are short against six times the width of the model.

    >>> training_flops(6.0, 1e9, 2e10)
    1.2e+20
    """
    return flops_per_parameter_token * model_parameters * training_tokens


@equation(source="hoffmann2022training")
def optimal_parameters(training_flops, flops_per_parameter_token, tokens_per_parameter):
    """Size of the dense model that learns most from this much work.

    Parameters and tokens grow alike, so their ratio stays as it is.

    Assumes that the ratio found by experiments holds at this size.
    Valid for one pass over good data; a model that will serve many is better smaller.

    >>> optimal_parameters(1.2e20, 6.0, 20.0)
    1000000000.0
    """
    return square_root(training_flops / (flops_per_parameter_token * tokens_per_parameter))


@equation(source="hoffmann2022training")
def optimal_tokens(optimal_parameters, tokens_per_parameter):
    """Tokens that such a model reads.

    Valid as the size is.

    >>> optimal_tokens(1e9, 20.0)
    20000000000.0
    """
    return optimal_parameters * tokens_per_parameter


@equation(source="kaplan2020scaling")
def flops_per_parameter_token(flops_per_multiply_add, training_multiply_adds):
    """Work of training for each parameter and token: six operations.

    A multiply-add forward, and two backward: for the gradients of inputs, and of weights.

    Assumes that attention is small against the matrices, and nothing is computed again.
    Valid for training of all weights.

    >>> flops_per_parameter_token(2.0, 3.0)
    6.0
    """
    return flops_per_multiply_add * training_multiply_adds


@equation(source="rajbhandari2020zero", yields="checkpoint_bytes")
def adam_checkpoint_bytes(all_parameters, bytes_per_parameter, state_bytes):
    """Size of a checkpoint: each parameter, and the optimizer's state of it.

    Assumes that no copy is written twice.
    Valid for any sharding; gradients are not written.

    >>> adam_checkpoint_bytes(1e9, 2.0, 12.0)
    14000000000.0
    """
    return all_parameters * (bytes_per_parameter + state_bytes)


@equation(source="hoffmann2022training")
def run_tokens_per_parameter(training_tokens, model_parameters):
    """Tokens of a run for each parameter that a token meets.

    Valid for one pass over the data or several.

    >>> run_tokens_per_parameter(2e10, 1e9)
    20.0
    """
    return training_tokens / model_parameters


NETWORK_TRAINING = equation = Topic(
    "network_training", "How long does a step of training of a network take?"
)


@equation(source="goyal2017imagenet", yields="batch_size")
def trained_batch(micro_batch):
    """Samples that a device takes through the network together: those of a micro-batch.

    Valid where a batch norm takes its means over these samples alone.

    >>> trained_batch(256)
    256
    """
    return micro_batch


@equation(source="hennessy2019quantitative", sums=True)
def micro_batch_flops(flops, all_repeats):
    """Work of a micro-batch on one device: its products forward and on the way back.

    The first layer needs no error of the network's own input, so its way back is one product.

    Valid for training of all weights.

    >>> micro_batch_flops([1e9, 2e9], [1, 1])
    3000000000.0
    """
    return total(flops, all_repeats)


@equation(source="goyal2017imagenet", yields="model_flops")
def network_model_flops(micro_batch_flops, micro_batches, data_parallel):
    """Work of a step on all devices.

    Valid where each device works on as many samples.

    >>> network_model_flops(3e9, 2, 8)
    48000000000.0
    """
    return micro_batch_flops * micro_batches * data_parallel


@equation(source="goyal2017imagenet", yields="throughput")
def trained_throughput(global_batch, step_time):
    """Samples that all devices together learn from per second.

    Assumes that no device waits for its samples.
    Valid while a run is under way.

    >>> trained_throughput(256, 0.1)
    2560.0
    """
    return global_batch / step_time


@equation(source="goyal2017imagenet", yields="computing_time")
def samples_time(training_samples, throughput):
    """Time of a run in which nothing fails and nothing is written.

    Valid where nothing is evaluated between steps.

    >>> samples_time(90000.0, 900.0)
    100.0
    """
    return training_samples / throughput


@equation(source="rajbhandari2020zero", yields="state_bytes")
def optimizer_state_bytes(optimizer_moments, moment_bytes, master_bytes):
    """Bytes of optimizer state for each parameter: its moments, and a precise copy of the weight.

    Plain gradient descent has no moment, momentum has one, Adam has two.

    Valid for optimizers that keep a number for each parameter.

    >>> optimizer_state_bytes(2, 4.0, 4.0)
    12.0
    """
    return optimizer_moments * moment_bytes + master_bytes


@equation(source="rajbhandari2020zero", yields="optimizer_time")
def plain_optimizer_time(
    device_parameters,
    state_shards,
    bytes_per_gradient,
    state_bytes,
    bytes_per_parameter,
    memory_bandwidth,
    memory_fraction,
):
    """Time to update weights of which there is no precise copy: they are read, too.

    Gradients are read, state and weights are read and written.

    Assumes that one kernel does all. The roofline takes the full rate of memory.
    Valid as a lower limit.

    >>> plain_optimizer_time(1e9, 4, 2.0, 12.0, 4.0, 2e12, 0.5)
    0.0085
    """
    return (
        device_parameters
        / state_shards
        * (bytes_per_gradient + 2 * state_bytes + 2 * bytes_per_parameter)
        / (memory_bandwidth * memory_fraction)
    )


@equation(source="hennessy2019quantitative", yields="weight_memory")
def network_weight_memory(bytes_per_parameter, device_parameters, running_statistics):
    """Memory of the weights, and of the means and variances that batch norms keep up.

    Valid where each device holds all weights.

    >>> network_weight_memory(2.0, 1e6, 4e3)
    2004000.0
    """
    return bytes_per_parameter * device_parameters + running_statistics


TRAINING_BOUND = equation = Topic("training_bound", "What can no step of training beat?")


@equation(source="williams2009roofline")
def compulsory_bytes(
    bytes_per_parameter,
    model_parameters,
    tensor_parallel,
    pipeline_parallel,
    all_parameters,
    state_bytes,
    devices,
):
    """Bytes that a device must move in a step: its weights once, and its share of the update.

    The optimizer's state is read and written and the weights are written, of which no device
    need do more than its share. Gradients and activations may stay on chip.

    Assumes that no weight stays on chip from one step to the next.
    Valid as a lower limit, for an optimizer that keeps its state in memory.

    >>> compulsory_bytes(2.0, 8e9, 4, 2, 1e9, 12.0, 10)
    4600000000.0
    """
    return (
        bytes_per_parameter * model_parameters / (tensor_parallel * pipeline_parallel)
        + all_parameters * (2 * state_bytes + bytes_per_parameter) / devices
    )


@equation(source="williams2009roofline")
def compulsory_time(compulsory_bytes, memory_bandwidth):
    """Time to move the bytes that no program can avoid, at full memory bandwidth.

    Valid as a lower limit.

    >>> compulsory_time(4e9, 2e12)
    0.002
    """
    return compulsory_bytes / memory_bandwidth


@equation(source="williams2009roofline", yields="step_time")
def bound_step_time(ideal_step_time, compulsory_time):
    """The least time of a step: its work at the peak rate, or its compulsory traffic.

    Nothing is waited for: neither other devices nor a pipeline.

    Valid as a lower limit, for programs that do the work that the model asks for.

    >>> bound_step_time(2.0, 0.5)
    2.0
    """
    return maximum(ideal_step_time, compulsory_time)


@equation(source="williams2009roofline", yields="memory_utilisation")
def bound_memory_utilisation(compulsory_time, step_time):
    """Compulsory bytes of a step, per bytes that the memory could move in the same time.

    Valid for one device.

    >>> bound_memory_utilisation(0.5, 2.0)
    0.25
    """
    return compulsory_time / step_time


ADAPTERS = equation = Topic("adapters", "What do adapters save when a model is fine-tuned?")


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
