"""One step of training of a network of layers: every device takes samples through all of it.

What is said of kernels, gradients and updates elsewhere holds here too. These are the
equations in which a sample takes the place of a sequence of tokens.
"""

from __future__ import annotations

from mlsim.equations.functions import total
from mlsim.equations.registry import equation

QUESTION = "How long does a step of training of a network take?"


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
