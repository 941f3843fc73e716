"""Times at rates that were measured: a share of the peak, and a start for each operator."""

from __future__ import annotations

from mlsim.equations.functions import ceil, exceeds, floor, maximum, minimum, total
from mlsim.equations.registry import Topic

CALIBRATION = equation = Topic("calibration", "How much of the data sheet's rates is reached?")


@equation(source="nvidia2023matmul", counts=True)
def product_rows(tokens_worked, device_batch):
    """Rows of a matrix product in a step: one for each token.

    Valid for weights that all tokens meet.

    >>> product_rows(512, 4)
    2048
    """
    return tokens_worked * device_batch


@equation(source="nvidia2023matmul", yields="product_rows", counts=True)
def convolution_rows(batch_size, activations_written, outputs):
    """Rows of a convolution as a matrix product: one for each pixel that it writes.

    The columns are its output channels.

    Valid for one group of channels, and for fully connected layers, which write one pixel.

    >>> convolution_rows(2, 6400, 64)
    200.0
    >>> convolution_rows(2, 6400, 1)
    12800.0
    """
    return batch_size * activations_written / maximum(outputs, 1)


@equation(source="nvidia2023matmul", counts=True)
def waves(product_rows, outputs, tile_size, cores):
    """Rounds in which all tiles of a product are worked on, one tile for each core at a time.

    A tile at the edge takes as long as a whole one, and a last round as long as a full one.

    Assumes tiles of one size, and that none is divided among cores.
    Valid for products whose inner dimension is long.

    >>> waves(256, 22016, 128, 108)
    4.0
    >>> waves(17, 33, 128, 1)
    1.0
    >>> waves(17, 0, 128, 1)
    1
    """
    return maximum(
        ceil(ceil(product_rows / tile_size) * ceil(outputs / tile_size) / cores),
        1,
    )


@equation(source="nvidia2023matmul", counts=True)
def filled_share(product_rows, outputs, waves, cores, tile_size):
    """Part of the rounds that the result fills: the rest is padding and idle cores.

    A product smaller than a tile has one that fits, in steps of 16: a matrix instruction. What
    is no matrix product has no outputs, and a share of 1.

    Assumes tiles of one size.
    Valid from 0 to 1.

    >>> filled_share(128, 128, 1, 4, 128)
    0.25
    >>> filled_share(98, 98, 2, 5, 128)
    0.0765625
    >>> filled_share(16, 1, 1, 1, 128)
    0.0625
    >>> filled_share(16, 0, 1, 1, 128)
    1.0
    """
    return product_rows * outputs / (
        waves
        * cores
        * minimum(16 * maximum(ceil(product_rows / 16), 1), tile_size)
        * minimum(16 * maximum(ceil(outputs / 16), 1), tile_size)
    ) + exceeds(1, outputs)


@equation(source="nvidia2023matmul", yields="waves", counts=True)
def shared_waves(product_rows, outputs, tile_size, cores, last_round_share):
    """Rounds in which all tiles of a product are worked on, where the last one is shared.

    Of the idle part of a last round a share is lost: kernels that stay on their cores take
    the next piece early.

    Assumes tiles of one size.
    Valid for a share from 0, nothing lost, to 1, whole rounds.

    >>> shared_waves(1280, 1280, 128, 80, 0.4)
    1.55
    >>> shared_waves(17, 33, 128, 1, 0.4)
    1.0
    >>> shared_waves(17, 33, 128, 4, 0.4)
    1
    """
    return maximum(
        (1 - last_round_share) * ceil(product_rows / tile_size) * ceil(outputs / tile_size) / cores
        + last_round_share
        * ceil(ceil(product_rows / tile_size) * ceil(outputs / tile_size) / cores),
        1,
    )


@equation(source="nvidia2026aiconfigurator", yields="filled_share", counts=True)
def shared_filled_share(
    product_rows, outputs, product_depth, waves, cores, tile_size, least_depth, small_tile_fraction
):
    """Part of the rounds that the result fills, with the better of two tiles.

    Where large tiles leave cores idle, tiles of half the side give them work, at a part of
    the rate, and several cores share the depth of one tile. What is no matrix product has no
    outputs, and a share of 1.

    Valid from 0 to 1.

    >>> shared_filled_share(96, 96, 1024, 1, 6, 128, 512, 0.75)
    0.421875
    >>> shared_filled_share(98, 98, 1100, 1, 4, 256, 512, 0.8)
    0.30625
    >>> shared_filled_share(98, 98, 1100, 1, 1, 256, 512, 0.8)
    0.765625
    >>> shared_filled_share(98, 98, 300, 2, 4, 256, 512, 0.8)
    0.153125
    >>> shared_filled_share(98, 98, 1100, 2, 2, 256, 512, 0.8)
    0.6125
    >>> shared_filled_share(16, 1, 1100, 1, 1, 256, 512, 0.8)
    0.0625
    >>> shared_filled_share(16, 1, 1100, 4, 1, 256, 512, 0.8)
    0.05
    >>> shared_filled_share(16, 0, 1100, 1, 1, 256, 512, 0.8)
    1.0
    """
    return maximum(
        product_rows
        * outputs
        / (
            waves
            * cores
            * minimum(16 * maximum(ceil(product_rows / 16), 1), tile_size)
            * minimum(16 * maximum(ceil(outputs / 16), 1), tile_size)
        ),
        small_tile_fraction
        * product_rows
        * outputs
        / (
            minimum(16 * maximum(ceil(product_rows / 16), 1), tile_size / 2)
            * minimum(16 * maximum(ceil(outputs / 16), 1), tile_size / 2)
        )
        / maximum(
            ceil(2 * product_rows / tile_size) * ceil(2 * outputs / tile_size),
            cores / maximum(floor(product_depth / least_depth), 1),
        ),
    ) + exceeds(1, outputs)


@equation(source="nvidia2023matmul", yields="product_depth", counts=True)
def convolution_depth(multiply_adds, activations_written):
    """Depth of a convolution as a matrix product: multiply-adds of each number it writes.

    Valid for one group of channels, and for fully connected layers.

    >>> convolution_depth(6400, 100)
    64.0
    >>> convolution_depth(6400, 1)
    6400.0
    """
    return multiply_adds / maximum(activations_written, 1)


@equation(source="williams2009roofline", yields="compute_time")
def calibrated_compute_time(flops, peak_flops, compute_fraction, filled_share):
    """Time to compute at the measured part of the peak rate, on the cores that have work.

    Assumes that the part is the same for all products.
    Valid for the device and the precision that were measured.

    >>> calibrated_compute_time(300e9, 300e12, 0.5, 0.5)
    0.004
    """
    return flops / (peak_flops * compute_fraction * filled_share)


@equation(source="williams2009roofline", yields="memory_time")
def calibrated_memory_time(bytes_moved, memory_bandwidth, memory_fraction):
    """Time to move the bytes at the measured part of the memory bandwidth.

    Valid for long streams on the device that was measured.

    >>> calibrated_memory_time(2e9, 2e12, 0.5)
    0.002
    """
    return bytes_moved / (memory_bandwidth * memory_fraction)


@equation(source="thakur2005optimization", yields="network_time")
def calibrated_network_time(link_latency, link_bytes, link_bandwidth, link_fraction):
    """Time to send: a start, and the bytes at the measured part of the link bandwidth.

    Assumes that the start takes as long for any message.
    Valid for the link, the library and about as many devices as were measured.

    >>> calibrated_network_time(1.0, 450e9, 450e9, 0.5)
    3.0
    """
    return link_latency + link_bytes / (link_bandwidth * link_fraction)


@equation(source="pytorch2026roofline", yields="operator_time")
def started_time(roofline_time, kernel_overhead):
    """Time of an operator on one device: it is started, then it computes and moves bytes.

    Assumes that one operator starts when the last has ended.
    Valid where the host is ahead of the device.

    >>> started_time(0.002, 0.001)
    0.003
    """
    return roofline_time + kernel_overhead


@equation(source="pytorch2026roofline", yields="operator_time")
def started_and_sent_time(roofline_time, network_time, kernel_overhead):
    """Time of an operator with its share of sending, and its start.

    Assumes that sending and computing do not overlap.
    Valid for tensor parallelism, where the next operator needs the result.

    >>> started_and_sent_time(0.002, 0.001, 0.001)
    0.004
    """
    return roofline_time + network_time + kernel_overhead


@equation(source="pytorch2026roofline", sums=True)
def total_overhead_time(kernel_overhead, repeats):
    """Time that a step spends starting its operators.

    Valid where operators run one after another.

    >>> total_overhead_time([0.001, 0.002], [3, 1])
    0.005
    """
    return total(kernel_overhead, repeats)


@equation(source="pytorch2026roofline")
def overhead_share(total_overhead_time, latency):
    """Part of the step that is spent starting operators.

    Valid from 0 to 1.

    >>> overhead_share(0.001, 0.004)
    0.25
    """
    return total_overhead_time / latency


@equation(source="williams2009roofline", yields="compute_bound_share")
def calibrated_compute_bound_share(
    latency, memory_bound_time, total_network_time, total_overhead_time
):
    """Part of the step spent in operators for which the arithmetic is the limit.

    It is what waiting for memory, sending and starting leave.

    Valid where operators run one after another.

    >>> calibrated_compute_bound_share(8.0, 1.0, 2.0, 3.0)
    0.25
    """
    return (
        maximum(latency - memory_bound_time - total_network_time - total_overhead_time, 0 * latency)
        / latency
    )


SOFTWARE = equation = Topic("software", "What does a program add to its kernels?")


@equation(source="pytorch2026roofline", sums=True, counts=True)
def launch_count(launches, repeats):
    """Kernels that a program starts in a step.

    Valid for programs that start them one by one.

    >>> launch_count([3, 1], [2, 5])
    11.0
    """
    return total(launches, repeats)


@equation(source="vllm2025optimization", counts=True)
def uncaptured_launches(launches, new_tokens, device_batch, captured_tokens):
    """Kernels of an operator that a program starts one by one in a step of so many tokens.

    A graph is captured for a number of tokens, and then started as a whole. Steps of more
    tokens than any graph has, such as long prompts, have their kernels started one by one.

    Valid for one step of a language model.

    >>> uncaptured_launches(3, 256, 4, 512)
    3.0
    >>> uncaptured_launches(3, 2, 256, 512)
    0.0
    """
    return launches * exceeds(new_tokens * device_batch, captured_tokens)


@equation(source="pytorch2026roofline", yields="launch_count", sums=True, counts=True)
def step_launch_count(uncaptured_launches, repeats):
    """Kernels that a program starts one by one in a step of a language model.

    Valid for programs that start all other steps as a graph.

    >>> step_launch_count([3, 1], [2, 5])
    11.0
    """
    return total(uncaptured_launches, repeats)


@equation(source="pytorch2026roofline", sums=True)
def operators_time(operator_time, repeats):
    """Time of a step's operators on the device, one after another.

    Valid for one stream of work.

    >>> operators_time([0.001, 0.002], [3, 1])
    0.005
    """
    return total(operator_time, repeats)


@equation(source="pytorch2026roofline", yields="latency")
def hosted_latency(
    operators_time,
    launch_count,
    host_launch_time,
    call_time,
    batch_size,
    call_bytes,
    call_bandwidth,
):
    """Time of a pass with its host: starts beside the device, and the way of a request.

    The host starts kernels while the device works on earlier ones, so the slower of the two
    decides. A request waits for its inputs before, and for its results after.

    Assumes that the host can be far ahead of the device.
    Valid for one request at a time.

    >>> hosted_latency(0.002, 100, 5e-5, 0.001, 4, 5e5, 2e9)
    0.007
    """
    return (
        maximum(operators_time, launch_count * host_launch_time)
        + call_time
        + batch_size * call_bytes / call_bandwidth
    )


@equation(source="kwon2023paged", yields="latency")
def hosted_step_latency(
    operators_time, launch_count, host_launch_time, step_host_time, sequence_host_time, device_batch
):
    """Time of a step with its host: starts beside the device, and the scheduler's turn.

    Between two steps a scheduler chooses sequences, and takes the new token of each.

    Assumes that scheduling does not overlap with the device.
    Valid for one step of a language model.

    >>> hosted_step_latency(0.01, 100, 5e-5, 0.002, 5e-5, 100)
    0.017
    >>> hosted_step_latency(0.01, 400, 5e-5, 0.002, 5e-5, 100)
    0.027
    """
    return (
        maximum(operators_time, launch_count * host_launch_time)
        + step_host_time
        + sequence_host_time * device_batch
    )


@equation(source="vllm2026release014", yields="latency")
def ahead_step_latency(
    operators_time, launch_count, host_launch_time, step_host_time, sequence_host_time, device_batch
):
    """Time of a step whose scheduler works ahead: the slowest of device and host decides.

    While the device works on a step, the scheduler makes up the next one, and takes the
    tokens of the last.

    Assumes that scheduling and starting kernels are processes of their own.
    Valid for one step of a language model.

    >>> ahead_step_latency(0.01, 100, 5e-5, 0.002, 1e-4, 100)
    0.012
    >>> ahead_step_latency(0.01, 100, 5e-5, 0.002, 5e-5, 100)
    0.01
    >>> ahead_step_latency(0.01, 400, 5e-5, 0.002, 5e-5, 100)
    0.02
    """
    return maximum(
        maximum(operators_time, launch_count * host_launch_time),
        step_host_time + sequence_host_time * device_batch,
    )


@equation(source="pytorch2026roofline", yields="total_overhead_time")
def hosted_overhead_time(started_time_total, latency, operators_time):
    """Time of a step in starts, and in which the device waits for the host.

    Valid where operators run one after another.

    >>> hosted_overhead_time(0.001, 0.007, 0.005)
    0.003
    """
    return started_time_total + latency - operators_time


@equation(source="pytorch2026roofline", sums=True)
def started_time_total(kernel_overhead, repeats):
    """Time of a step between kernels, on the device.

    Valid where operators run one after another.

    >>> started_time_total([0.001, 0.002], [3, 1])
    0.005
    """
    return total(kernel_overhead, repeats)


@equation(source="pytorch2026roofline", yields="kernel_overhead")
def software_overhead(kernel_start, launches):
    """Time between kernels of an operator, each of which begins after the last.

    Valid for kernels that wait for one another.

    >>> software_overhead(2e-6, 3)
    6e-06
    """
    return kernel_start * launches


@equation(source="nvidia2026aiconfigurator", yields="kernel_overhead")
def part_of_start(kernel_start, launches):
    """Time to start one of several products that were measured together.

    Tokens are sorted by expert before a layer's experts, and brought back after them.

    Valid for products that share what comes before and after them.

    >>> part_of_start(3e-5, 2)
    1.5e-05
    """
    return kernel_start / launches


@equation(source="williams2009roofline", yields="compute_fraction")
def software_fraction(measured_fraction, software_share):
    """Part of the peak, or of the bandwidth, that kernels reach inside a program.

    Valid from 0 to 1.

    >>> software_fraction(0.8, 0.5)
    0.4
    """
    return measured_fraction * software_share


@equation(source="nvidia2023matmul", yields="compute_fraction")
def side_worked_fraction(measured_fraction, side_work, peak_flops, general_flops):
    """Part of the peak that convolutions reach, whose addresses general units work out.

    A convolution becomes a matrix product by gathering its inputs: for each FLOP of the units
    for matrices, general units do some work, and the faster the former, the more it weighs.

    Assumes that the two follow one another.
    Valid for one group of channels.

    >>> side_worked_fraction(0.8, 0.15, 300e12, 20e12)
    0.2857142857142857
    """
    return 1 / (1 / measured_fraction + side_work * peak_flops / general_flops)


@equation(source="williams2009roofline", yields="activation_bytes")
def unfused_activation_bytes(
    bytes_per_element, activations_read, activations_written, activation_passes, batch_size
):
    """Traffic of a network's activations where normalization and the like are kernels apart.

    Each of them reads what the last one wrote, and writes it again.

    Valid for programs that run a network kernel by kernel.

    >>> unfused_activation_bytes(2, 300, 200, 4, 10)
    26000
    """
    return (
        bytes_per_element
        * (activations_read + activations_written * (1 + activation_passes))
        * batch_size
    )


@equation(source="dao2022flashattention", yields="activation_bytes")
def unfused_token_bytes(
    bytes_per_element,
    token_elements,
    tokens_worked,
    activation_passes,
    scores_per_pair,
    score_passes,
    new_tokens,
    positions_read,
    device_batch,
):
    """Traffic of a transformer's activations where the scores of attention are written.

    Scores of all pairs are written, masked or not, and cross the memory several times: for
    the scale, the mask, the softmax and the product with the values.

    Valid for programs without a fused kernel for attention.

    >>> unfused_token_bytes(2, 100, 10, 3, 4, 2, 10, 20, 5)
    56000
    """
    return (
        bytes_per_element
        * device_batch
        * (
            token_elements * (1 + activation_passes) * tokens_worked
            + scores_per_pair * score_passes * new_tokens * positions_read
        )
    )


@equation(source="llamacpp2025spark")
def core_weight_rate(core_cycles, weights_per_cycle):
    """Weights that a device brings to a product of few rows in a second.

    Each weight is loaded, brought to the format of the arithmetic and multiplied by general
    units, so cores and their clock count beside the memory.

    Valid for products of a matrix with few vectors.

    >>> core_weight_rate(1.5e11, 10)
    1500000000000.0
    """
    return core_cycles * weights_per_cycle


@equation(source="nvidia2020ampere", counts=True)
def core_cycles(peak_flops, units_per_core, flops_per_multiply_add):
    """Clock cycles of all cores in a second, from the peak of the general units.

    Valid for a device whose cores have so many units, each with a multiply-add a cycle.

    >>> core_cycles(19.2e12, 64, 2)
    150000000000.0
    """
    return peak_flops / (units_per_core * flops_per_multiply_add)


@equation(source="llamacpp2025spark", yields="memory_time")
def worked_memory_time(
    bytes_moved, memory_bandwidth, memory_fraction, parameters_read, core_weight_rate
):
    """Time to move the bytes, and to bring the weights among them to the arithmetic.

    Assumes that the two do not overlap, as where each core waits for its own loads.
    Valid for products of a matrix with few vectors.

    >>> worked_memory_time(2e9, 2e12, 0.5, 1e9, 1e12)
    0.003
    """
    return bytes_moved / (memory_bandwidth * memory_fraction) + parameters_read / core_weight_rate


@equation(source="nvidia2022triton", yields="call_bytes", counts=True)
def brought_bytes(activations_read, bytes_per_element):
    """Bytes of a sample as a request brings them.

    Valid for inputs that are sent as the numbers that the model reads.

    >>> brought_bytes(150528, 4)
    602112
    """
    return activations_read * bytes_per_element


@equation(source="dao2022flashattention", yields="scores_per_pair", counts=True)
def device_scores(heads, tensor_parallel):
    """Scores of a query and a key on a device: one for each of its heads.

    Valid for heads that devices share evenly.

    >>> device_scores(32, 8)
    4.0
    """
    return heads / tensor_parallel


@equation(source="agrawal2024sarathi", yields="time_per_output_token", counts=True)
def mixed_token_time(middle_token_time, batch_size, time_to_first_token, output_tokens):
    """Time per token where prompts of other requests are read between the steps of one.

    While a request writes its output, each of the others reads one prompt.

    Assumes a closed loop: whoever is done is followed by another like it.
    Valid for prompts that are read one after another, each with the time it takes alone.

    >>> mixed_token_time(0.01, 11, 0.2, 100)
    0.03
    """
    return middle_token_time + (batch_size - 1) * time_to_first_token / output_tokens


@equation(source="nvidia2026aiconfigurator", yields="time_per_output_token", counts=True)
def wave_token_time(middle_token_time, batch_size, time_to_first_token, output_tokens):
    """Time per token where requests of one length are served in waves, prompts first.

    All prompts are read before the first step, so that a request waits for those read after
    its own: half of the others on average. All end together, and the next wave begins.

    Assumes a closed loop in which all start together.
    Valid for schedulers that read all waiting prompts before they go on.

    >>> wave_token_time(0.01, 11, 0.2, 100)
    0.02
    """
    return middle_token_time + (batch_size - 1) / 2 * time_to_first_token / output_tokens
