"""What an operator of a transformer holds and does for each token.

Arguments are plain numbers from the architecture. The results are counts for
one token, or for one pair of a query and a key that it looks at.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, maximum, minimum, missed, total
from mlsim.equations.registry import Topic

RECURRENT = equation = Topic("recurrent", "What does a transformer hold, and do for each token?")


@equation(source="dao2024mamba2", counts=True)
def state_elements(heads, head_size, state_size):
    """Elements of the state of one layer: a matrix for each head.

    Valid for state-space models (Mamba-2) and for linear attention, whose matrix has a row
    for each number of a key, and a column for each number of a value.

    >>> state_elements(64, 64, 128)
    524288
    """
    return heads * head_size * state_size


@equation(source="dao2024mamba2", yields="token_multiply_adds", counts=True)
def state_space_multiply_adds(state_elements):
    """Multiply-adds of a state-space layer for one token: into its state, and out of it.

    The input is multiplied with one vector and added to the state, which is multiplied with
    another vector.

    Assumes the recurrent form, which is the least work; programs that take a prompt in
    chunks do more, in larger matrices.
    Valid for Mamba-2.

    >>> state_space_multiply_adds(524288)
    1048576
    """
    return 2 * state_elements


@equation(source="yang2024gated", yields="token_multiply_adds", counts=True)
def delta_rule_multiply_adds(state_elements):
    """Multiply-adds of a layer with the gated delta rule for one token.

    The state is asked for what it holds under a key; the difference to the new value is
    added; and the state is asked once more, by the query.

    Assumes the recurrent form, which is the least work; programs that take a prompt in
    chunks do more, in larger matrices.
    Valid for Gated DeltaNet.

    >>> delta_rule_multiply_adds(524288)
    1572864
    """
    return 3 * state_elements


@equation(source="dao2024mamba2", counts=True)
def waiting_elements(in_channels, kernel_size):
    """Inputs of earlier tokens that a short convolution keeps for the next one.

    Valid for a convolution over each channel of a sequence by itself.

    >>> waiting_elements(6144, 4)
    18432
    """
    return in_channels * (kernel_size - 1)


@equation(source="dao2024mamba2")
def sequence_state(
    bytes_per_state_element, state_elements, bytes_per_waiting_element, waiting_elements
):
    """Memory of one sequence in one layer with a state, however long the sequence is.

    Assumes that the state is kept in its own format, and what waits for the convolution in
    that of the activations.
    Valid for layers with a state.

    >>> sequence_state(4.0, 524288, 2.0, 18432)
    2134016.0
    """
    return bytes_per_state_element * state_elements + bytes_per_waiting_element * waiting_elements


@equation(source="dao2024mamba2", yields="operator_cache")
def operator_cache_and_state(
    bytes_per_cached_element, cached_elements, cache_window, cache_tokens, sequence_state
):
    """Memory that one sequence takes in one layer: the cache of its tokens, or a state.

    Assumes that what has left the window is given back.
    Valid for models of which some layers have a state.

    >>> operator_cache_and_state(2.0, 100, 4096, 1000, 5e5)
    700000.0
    >>> operator_cache_and_state(2.0, 100, 500, 1000, 5e5)
    600000.0
    """
    return (
        bytes_per_cached_element * cached_elements * minimum(cache_window, cache_tokens)
        + sequence_state
    )


@equation(source="dao2024mamba2", yields="cache_bytes")
def cache_and_state_bytes(
    bytes_per_cached_element,
    cached_elements,
    positions_read,
    new_tokens,
    sequence_state,
    states_moved,
    device_batch,
):
    """Traffic of cache and states: read, and written for new tokens.

    Assumes that sequences share nothing: no common prefix.
    Valid for models of which some layers have a state.

    >>> cache_and_state_bytes(2.0, 100, 999, 3, 5e5, 2, 4)
    4801600.0
    """
    return (
        bytes_per_cached_element * cached_elements * (positions_read + new_tokens)
        + sequence_state * states_moved
    ) * device_batch


@equation(source="dao2024mamba2", counts=True)
def states_moved(cached_tokens):
    """How often a step moves a state: it writes it, and reads it if there is one already.

    Assumes that a state stays on chip while the tokens of one step go by.
    Valid for any step; the first one begins with an empty state.

    >>> states_moved(1000)
    2
    """
    return 1 + minimum(cached_tokens, 1)


@equation(source="deepseek2025v32code", yields="pair_multiply_adds", counts=True)
def index_multiply_adds(index_heads, index_size):
    """Multiply-adds of an indexer for one query and one key: one score for each of its heads.

    The keys with the highest scores are those that attention then looks at.

    Valid for an indexer that keeps one key for all its heads (DeepSeek sparse attention).

    >>> index_multiply_adds(64, 128)
    8192
    """
    return index_heads * index_size


TRANSFORMER = equation = Topic(
    "transformer", "What does a transformer hold, and do for each token?"
)


@equation(source="vaswani2017attention", yields="parameters", counts=True)
def projection_parameters(in_channels, out_channels):
    """Weights of a matrix that turns one vector of features into another.

    Valid for any projection; a bias adds one number per output.

    >>> projection_parameters(4096, 11008)
    45088768
    """
    return in_channels * out_channels


@equation(source="hu2021lora", yields="parameters", counts=True)
def adapter_size(adapter_rank, in_channels, out_channels):
    """Parameters of a low-rank adapter of a matrix: one matrix in, one out, r wide between them.

    Valid for ranks below both widths; the matrix itself has their product.

    >>> adapter_size(16, 4096, 14336)
    294912
    """
    return adapter_rank * (in_channels + out_channels)


@equation(source="kaplan2020scaling", counts=True)
def token_multiply_adds(active_parameters):
    """Multiply-adds of a matrix for one token: one for each weight that the token meets.

    Valid for matrix products; a token meets k of E experts, and all other weights.

    >>> token_multiply_adds(45088768)
    45088768
    """
    return active_parameters


@equation(source="vaswani2017attention", counts=True)
def pair_multiply_adds(heads, head_size):
    """Multiply-adds of attention for one query and one key: a score, and a weighted value.

    Valid for any number of heads for keys: sharing them saves bytes, not work.

    >>> pair_multiply_adds(32, 128)
    8192
    """
    return 2 * heads * head_size


@equation(source="huggingface2026transformers", yields="token_multiply_adds", counts=True)
def stream_multiply_adds(hidden_size, residual_streams):
    """Multiply-adds that predict the residual streams of a token, each as a sum of all of them.

    Assumes that a weight is one for all numbers of a stream.
    Valid for AltUp, as in Gemma 3n.

    >>> stream_multiply_adds(2048, 4)
    32768
    """
    return hidden_size * residual_streams**2


@equation(source="shazeer2019fast", counts=True)
def cached_elements(kv_heads, head_size):
    """Elements that one layer keeps of each token: a key and a value for each KV head.

    Assumes that heads which share a key and a value keep them once.
    Valid for multi-head, grouped-query and multi-query attention.

    >>> cached_elements(8, 128)
    2048
    """
    return 2 * kv_heads * head_size


@equation(source="vaswani2017attention", yields="pair_multiply_adds", counts=True)
def unequal_pair_multiply_adds(heads, head_size, value_size):
    """Multiply-adds of attention for one pair where values are not as wide as keys.

    Valid for any number of heads for keys.

    >>> unequal_pair_multiply_adds(64, 192, 128)
    20480
    """
    return heads * (head_size + value_size)


@equation(source="shazeer2019fast", yields="cached_elements", counts=True)
def unequal_cached_elements(kv_heads, head_size, value_size):
    """Elements that one layer keeps of each token where values are not as wide as keys.

    Assumes that heads which share a key and a value keep them once.
    Valid for multi-head, grouped-query and multi-query attention.

    >>> unequal_cached_elements(4, 192, 128)
    1280
    """
    return kv_heads * (head_size + value_size)


@equation(source="deepseek2024v3", yields="cached_elements", counts=True)
def latent_cached_elements(kv_rank, rope_size):
    """Elements that latent attention keeps of each token: one compressed vector for all heads.

    Valid for multi-head latent attention, with one rotary key shared by the heads.

    >>> latent_cached_elements(512, 64)
    576
    """
    return kv_rank + rope_size


@equation(source="deepseek2024v3", yields="pair_multiply_adds", counts=True)
def latent_pair_multiply_adds(heads, content_size, rope_size, value_size):
    """Multiply-adds of latent attention for one pair, keys and values expanded first.

    Valid for multi-head latent attention.

    >>> latent_pair_multiply_adds(128, 128, 64, 128)
    40960
    """
    return heads * (content_size + rope_size + value_size)


@equation(source="deepseek2024v3", counts=True)
def absorbed_pair_multiply_adds(heads, kv_rank, rope_size):
    """Multiply-adds of latent attention for one pair, reckoned in the compressed space.

    The matrices that would expand keys and values are multiplied into the queries
    and the outputs instead, once for each new token.

    Valid for multi-head latent attention.

    >>> absorbed_pair_multiply_adds(128, 512, 64)
    139264
    """
    return heads * (2 * kv_rank + rope_size)


@equation(source="patarasuk2009bandwidth", yields="link_elements", counts=True)
def all_reduce_elements(hidden_size, tensor_parallel):
    """Elements of each token that a device sends to add a vector up over all devices.

    Assumes a ring: a part of the vector goes round once to be added up, and once to be
    handed out. Devices that send only to one another can't do with less; a switch that adds
    up itself, as NVLink SHARP does, needs less of each.
    Valid for two devices or more.

    >>> all_reduce_elements(8192, 8)
    14336.0
    """
    return 2 * hidden_size * (tensor_parallel - 1) / tensor_parallel


@equation(source="megatron2025duplicates", counts=True)
def expert_rank_share(experts, expert_parallel, experts_per_token):
    """Share of the devices over which experts are spread that a token goes to.

    A device is left out if it has none of the experts that the token chose.

    Assumes that a token chooses its experts evenly, whatever other tokens choose.
    Valid where the experts are spread evenly; one on each device gives k of E.

    >>> expert_rank_share(4, 4, 2)
    0.5
    >>> expert_rank_share(4, 2, 3)
    1.0
    """
    return 1 - missed(experts, experts / expert_parallel, experts_per_token)


@equation(source="megatron2025duplicates", yields="link_elements", counts=True)
def expert_exchange_elements(hidden_size, expert_parallel, tensor_parallel, expert_rank_share):
    """Elements of each token that a device sends to its experts elsewhere, one way.

    A copy goes to each device that has one or more of the token's experts, and not one for
    each expert. Devices of one tensor group have the token already, and share the sending.

    Valid for dispatchers that send one copy to a device, as DeepEP does. A plain all-to-all
    sends one for each expert, k (1 - N_t / N_e) copies.

    >>> expert_exchange_elements(4, 6, 2, 0.5)
    4.0
    """
    return hidden_size * (expert_parallel - tensor_parallel) * expert_rank_share / tensor_parallel


SHARED_CACHE = equation = Topic(
    "shared_cache", "What does one step of a language model do and move?"
)


@equation(source="brandon2024reducing", yields="cache_bytes")
def shared_cache_bytes(
    bytes_per_cached_element,
    cached_elements,
    written_elements,
    positions_read,
    new_tokens,
    device_batch,
):
    """Traffic of a cache that layers share: all of them read it, those that make it write it.

    Assumes that sequences share nothing: no common prefix.
    Valid for each layer's attention; one that reads the cache of an earlier layer writes none.

    >>> shared_cache_bytes(2.0, 2048, 512, 1000, 3, 4)
    16396288.0
    """
    return (
        bytes_per_cached_element
        * (cached_elements * positions_read + written_elements * new_tokens)
        * device_batch
    )


STEP = equation = Topic("step", "What does one step of a language model do and move?")


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
    return maximum(latency - memory_bound_time - total_network_time, 0 * latency) / latency


@equation(source="fedus2022switch", yields="expert_share")
def compulsory_expert_share(experts_per_token, experts):
    """Share of the experts that any step reads, even if all tokens choose the same ones.

    Valid as a lower limit.

    >>> compulsory_expert_share(2, 8)
    0.25
    """
    return experts_per_token / experts
