"""One step of a language model: new tokens of each sequence go through all layers.

Prefill is a step with many new tokens and an empty cache; decode is a step with
one new token and all earlier ones cached. The equations are the same for both.
They hold for one operator on one device.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, maximum, minimum, total
from mlsim.equations.registry import equation

QUESTION = "What does one step of a language model do and move?"


@equation(source="shoeybi2019megatron")
def device_batch(batch_size, data_parallel, pipeline_parallel):
    """Sequences that a device works on at one time.

    Copies of the model share the batch; the stages of a pipeline work on parts of it in turn.

    Valid for sequences of one length.

    >>> device_batch(10.0, 2, 2)
    3.0
    """
    return ceil(batch_size / (data_parallel * pipeline_parallel))


@equation(source="pope2023efficiently")
def tokens_worked(new_tokens, token_limit):
    """New tokens of a sequence that an operator works on.

    The output layer needs the last token only; all other operators need each.

    Valid for generation; training needs the output layer for each token.

    >>> tokens_worked(2048, 1)
    1
    """
    return minimum(new_tokens, token_limit)


@equation(source="beltagy2020longformer", counts=True)
def unclipped_tokens(attention_window, cached_tokens, new_tokens):
    """New tokens that still see the sequence from its start, because it is within the window.

    Valid for causal attention; a layer without a window has one as long as the context.

    >>> unclipped_tokens(4096, 4000, 200)
    96
    >>> unclipped_tokens(2048, 4000, 200)
    0
    >>> unclipped_tokens(9000, 4000, 200)
    200
    """
    return minimum(maximum(attention_window - cached_tokens, 0), new_tokens)


@equation(source="dao2022flashattention", counts=True)
def attention_pairs(unclipped_tokens, cached_tokens, new_tokens, attention_window):
    """Pairs of a new token and a token that it looks at: itself, and those before it.

    The first new token sees the cached ones and itself, the next one more, up to the window.

    Assumes that the masked half of the square is skipped.
    Valid for causal attention.

    >>> attention_pairs(4, 10, 6, 11)
    72.0
    """
    return (
        unclipped_tokens * (cached_tokens + (unclipped_tokens + 1) / 2)
        + (new_tokens - unclipped_tokens) * attention_window
    )


@equation(source="devlin2019bert", yields="attention_pairs", counts=True)
def bidirectional_pairs(new_tokens):
    """Pairs in an encoder, where each token looks at all of them.

    Valid for an encoder's whole sequence at once.

    >>> bidirectional_pairs(384)
    147456
    """
    return new_tokens * new_tokens


@equation(source="kaplan2020scaling", yields="multiply_adds")
def token_and_pair_multiply_adds(
    token_multiply_adds, tokens_worked, pair_multiply_adds, attention_pairs
):
    """Multiply-adds of an operator for one sequence: by its tokens, and by its pairs.

    Valid for any operator: a matrix has no pairs, and attention does nothing by the token.

    >>> token_and_pair_multiply_adds(1000, 10, 4, 55)
    10220
    """
    return token_multiply_adds * tokens_worked + pair_multiply_adds * attention_pairs


@equation(source="deepseek2024v3", yields="multiply_adds")
def latent_multiply_adds(
    token_multiply_adds,
    tokens_worked,
    pair_multiply_adds,
    attention_pairs,
    expand_multiply_adds,
    cached_tokens,
    absorbed_pair_multiply_adds,
):
    """Multiply-adds where attention works in a latent space: the cheaper of two ways.

    Either the cached vectors are expanded into keys and values first, or queries are
    brought into the compressed space.

    Assumes that the program takes the way with fewer operations.
    Valid for multi-head latent attention.

    >>> latent_multiply_adds(1000, 3, 5, 70, 20, 40, 30)
    4150
    >>> latent_multiply_adds(1000, 3, 5, 70, 20, 100, 30)
    5100
    """
    return token_multiply_adds * tokens_worked + minimum(
        pair_multiply_adds * attention_pairs + expand_multiply_adds * cached_tokens,
        absorbed_pair_multiply_adds * attention_pairs,
    )


@equation(source="hennessy2019quantitative", yields="flops")
def step_flops(flops_per_multiply_add, multiply_adds, device_batch):
    """Work of an operator in one step, on one device.

    Assumes that only products and sums of matrix products count.
    Valid for any step.

    >>> step_flops(2.0, 1e9, 4)
    8000000000.0
    """
    return flops_per_multiply_add * multiply_adds * device_batch


@equation(source="fedus2022switch")
def group_tokens(new_tokens, device_batch, expert_replicas):
    """New tokens in a step that choose among the same set of experts.

    Valid for any step; copies of the model that share their experts add up.

    >>> group_tokens(3, 64, 2)
    384
    """
    return new_tokens * device_batch * expert_replicas


@equation(source="fedus2022switch", counts=True)
def expert_share(experts_per_token, experts, group_tokens):
    """Share of the experts that at least one token chooses, so that they must be read.

    One token reads k of E; each further token misses a given expert with chance 1 - k/E.

    Assumes that tokens choose independently and evenly; real ones choose alike, so fewer
    are read.
    Valid for any number of tokens; with one expert for all it is 1.

    >>> expert_share(2, 8, 2)
    0.4375
    """
    return 1 - (1 - experts_per_token / experts) ** group_tokens


@equation(source="pope2023efficiently")
def parameters_read(parameters_streamed, parameters_routed, expert_share):
    """Parameters that an operator reads in a step: those for all tokens, and chosen experts.

    Valid for any step; an embedding reads rows only, which count as activations.

    >>> parameters_read(1000.0, 8000.0, 0.25)
    3000.0
    """
    return parameters_streamed + parameters_routed * expert_share


@equation(source="pope2023efficiently", yields="weight_bytes")
def weights_read(bytes_per_parameter, parameters_read):
    """Traffic of an operator's parameters: once per step, however many sequences share it.

    Assumes that no parameter stays on chip from one step to the next.
    Valid where the parameters are larger than the caches.

    >>> weights_read(2.0, 3000.0)
    6000.0
    """
    return bytes_per_parameter * parameters_read


@equation(source="williams2009roofline", yields="activation_bytes")
def token_activation_bytes(bytes_per_element, token_elements, tokens_worked, device_batch):
    """Traffic of an operator's activations: what it reads and writes for each token.

    Assumes that nothing stays on chip between operators, and that attention keeps its
    scores on chip.
    Valid as an upper estimate: a large cache keeps part of what one operator writes.

    >>> token_activation_bytes(2.0, 8192, 10, 4)
    655360.0
    """
    return bytes_per_element * token_elements * tokens_worked * device_batch


@equation(source="pope2023efficiently", counts=True)
def positions_read(cached_tokens, new_tokens, attention_window):
    """Tokens of a sequence whose keys and values attention reads in a step.

    Assumes that each is read once a step, as fused attention does.
    Valid for causal attention, with or without a window.

    >>> positions_read(5000, 1, 4096)
    4096
    """
    return new_tokens + minimum(cached_tokens, attention_window - 1)


@equation(source="pope2023efficiently", yields="positions_read", counts=True)
def cached_positions_read(cached_tokens, attention_window):
    """Tokens whose keys and values must come from memory: the cached ones only.

    Valid for the bound: what a step makes itself could be used before it is written.

    >>> cached_positions_read(5000, 4096)
    4095
    """
    return minimum(cached_tokens, attention_window - 1)


@equation(source="pope2023efficiently")
def cache_bytes(
    bytes_per_cached_element, cached_elements, positions_read, new_tokens, device_batch
):
    """Traffic of the KV cache: keys and values read, and those of new tokens written.

    Assumes that sequences share nothing: no common prefix.
    Valid for each layer's attention.

    >>> cache_bytes(2.0, 2048, 1000, 1, 4)
    16400384.0
    """
    return bytes_per_cached_element * cached_elements * (positions_read + new_tokens) * device_batch


@equation(source="williams2009roofline", yields="bytes_moved")
def step_bytes_moved(weight_bytes, activation_bytes, cache_bytes):
    """All traffic of an operator between the device and its memory in one step.

    Assumes that nothing else moves: no workspace, no copies between layouts.
    Valid for an operator that runs as one kernel.

    >>> step_bytes_moved(6000.0, 4000.0, 2000.0)
    12000.0
    """
    return weight_bytes + activation_bytes + cache_bytes


@equation(source="patarasuk2009bandwidth")
def link_bytes(bytes_per_sent_element, link_elements, tokens_worked, device_batch):
    """Bytes that a device sends to others for an operator in one step.

    Results of products leave them in 16 bits, in which they are added up, however short the
    format of what goes in.

    Valid for activations; weights stay where they are.

    >>> link_bytes(2.0, 14336.0, 3, 16)
    1376256.0
    """
    return bytes_per_sent_element * link_elements * tokens_worked * device_batch


@equation(source="patarasuk2009bandwidth")
def network_time(link_bytes, link_bandwidth):
    """Time to send the bytes at the full rate of the links, in one direction.

    Assumes that sending costs nothing to start, which is far from true for small messages.
    Valid as a lower limit for these bytes. Where a switch adds up, fewer are sent.

    >>> network_time(450e3, 450e9)
    1e-06
    """
    return link_bytes / link_bandwidth


@equation(source="pope2023efficiently")
def operator_time(roofline_time, network_time):
    """Time of an operator with its share of sending: first one, then the other.

    Assumes that sending and computing do not overlap.
    Valid for tensor parallelism, where the next operator needs the result.

    >>> operator_time(0.002, 0.001)
    0.003
    """
    return roofline_time + network_time


@equation(source="pope2023efficiently", yields="latency", sums=True)
def step_latency(operator_time, repeats):
    """Time of a step: its operators, in all layers, one after another.

    Valid for one batch; with a pipeline, for the way through all its stages.

    >>> step_latency([0.001, 0.002], [3, 1])
    0.005
    """
    return total(operator_time, repeats)


@equation(source="williams2009roofline", yields="latency")
def bound_latency(total_compute_time, total_memory_time):
    """Least time of a step: all work at the peak, or all bytes at full bandwidth.

    Assumes that the two overlap perfectly over the whole step.
    Valid as a lower limit for any program that does this work and moves these bytes.

    >>> bound_latency(0.001, 0.003)
    0.003
    """
    return maximum(total_compute_time, total_memory_time)


@equation(source="pope2023efficiently", sums=True)
def total_network_time(network_time, repeats):
    """Time spent sending in one step.

    Valid where sending does not overlap with computing.

    >>> total_network_time([0.001, 0.0], [4, 1])
    0.004
    """
    return total(network_time, repeats)


@equation(source="pope2023efficiently")
def network_share(total_network_time, latency):
    """Part of the step that is spent sending.

    Valid from 0 to 1.

    >>> network_share(0.00016, 0.004)
    0.04
    """
    return total_network_time / latency


@equation(source="williams2009roofline")
def compute_bound_share(latency, memory_bound_time, total_network_time):
    """Part of the step spent in operators for which the arithmetic is the limit.

    It is what neither waiting for memory nor sending takes.

    Valid where operators run one after another.

    >>> compute_bound_share(8.0, 3.0, 1.0)
    0.5
    """
    return (latency - memory_bound_time - total_network_time) / latency


@equation(source="fedus2022switch", yields="expert_share")
def compulsory_expert_share(experts_per_token, experts):
    """Share of the experts that any step reads, even if all tokens choose the same ones.

    Valid as a lower limit.

    >>> compulsory_expert_share(2, 8)
    0.25
    """
    return experts_per_token / experts
