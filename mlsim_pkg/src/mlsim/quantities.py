"""The vocabulary: every quantity of the book has one name, symbol and unit.

Equations take their arguments by these names, data files use them as keys, and
the glossary page is drawn from them, so this table decides the spelling.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlsim.errors import unknown_name


@dataclass(frozen=True, slots=True)
class Term:
    """One entry of the vocabulary.

    `unit` is the base unit in which equations reckon ("1" for a plain count or
    ratio); `symbol` is TeX; `definition` is one sentence.
    """

    name: str
    symbol: str
    unit: str
    definition: str


_ENTRIES = (
    # What is asked of the solver.
    ("batch_size", r"B", "sample", "Samples that go through the network together in one step."),
    # A layer, as its architecture gives it.
    ("input_size", r"H_\mathrm{in}", "1", "Height (and width) of a layer's input, in pixels."),
    ("output_size", r"H_\mathrm{out}", "1", "Height (and width) of a layer's output, in pixels."),
    ("kernel_size", r"K", "1", "Height (and width) of the window of a convolution or pool."),
    ("stride", r"S", "1", "Pixels by which the window moves from one output to the next."),
    ("padding", r"P", "1", "Pixels of border added on each side of a layer's input."),
    ("groups", r"G", "1", "Parts into which the channels of a convolution are split."),
    ("in_channels", r"C_\mathrm{in}", "1", "Channels (or features) that a layer reads."),
    ("out_channels", r"C_\mathrm{out}", "1", "Channels (or features) that a layer writes."),
    (
        "multiply_adds",
        r"m",
        "MAC/sample",
        "Multiply-add operations that an operator performs for one sample.",
    ),
    ("parameters", r"p", "parameter", "Learned numbers that an operator holds."),
    (
        "activations_read",
        r"a_\mathrm{in}",
        "element/sample",
        "Elements of activation that an operator reads for one sample.",
    ),
    (
        "activations_written",
        r"a_\mathrm{out}",
        "element/sample",
        "Elements of activation that an operator writes for one sample.",
    ),
    (
        "activations_live",
        r"a_\mathrm{live}",
        "element/sample",
        "Most elements of activation that must be kept at one time for one sample.",
    ),
    ("repeats", r"n", "1", "How often an identical operator stands in the network."),
    # How numbers are stored.
    (
        "flops_per_multiply_add",
        r"\phi",
        "FLOP/MAC",
        "Floating-point operations in one multiply-add: a product and a sum.",
    ),
    ("bytes_per_parameter", r"b_p", "B/parameter", "Bytes that store one parameter."),
    ("bytes_per_element", r"b_a", "B/element", "Bytes that store one element of activation."),
    # The device.
    (
        "peak_flops",
        r"P_\mathrm{peak}",
        "FLOP/s",
        "Highest rate at which the device can compute in a given precision, dense.",
    ),
    (
        "memory_bandwidth",
        r"\beta",
        "B/s",
        "Highest rate at which the device can move bytes to and from its main memory.",
    ),
    ("memory_capacity", r"M", "B", "Bytes that the device's main memory holds."),
    (
        "ridge_point",
        r"I_\mathrm{ridge}",
        "FLOP/B",
        "Arithmetic intensity at which moving the bytes takes as long as computing.",
    ),
    # Work and traffic of an operator.
    ("flops", r"F", "FLOP", "Floating-point operations of an operator in one step."),
    ("weight_bytes", r"D_w", "B", "Bytes of parameters that an operator reads in one step."),
    (
        "activation_bytes",
        r"D_a",
        "B",
        "Bytes of activation that an operator reads and writes in one step.",
    ),
    ("bytes_moved", r"D", "B", "Bytes that an operator moves to or from memory in one step."),
    (
        "arithmetic_intensity",
        r"I",
        "FLOP/B",
        "Floating-point operations done for each byte moved.",
    ),
    (
        "attainable_flops",
        r"P_\mathrm{att}",
        "FLOP/s",
        "Highest rate that the roofline allows at a given arithmetic intensity.",
    ),
    # Times.
    ("compute_time", r"t_\mathrm{comp}", "s", "Time to compute at the peak rate."),
    ("memory_time", r"t_\mathrm{mem}", "s", "Time to move the bytes at full bandwidth."),
    (
        "roofline_time",
        r"t",
        "s",
        "Time of an operator when computing and moving bytes overlap perfectly.",
    ),
    ("latency", r"T", "s", "Time from the start of a step to its end."),
    (
        "operator_memory_bound_time",
        r"t_\mathrm{mb}",
        "s",
        "Time of an operator if it is memory-bound, and zero if it is compute-bound.",
    ),
    (
        "memory_bound_time",
        r"T_\mathrm{mb}",
        "s",
        "Time spent in operators for which memory takes longer than computing.",
    ),
    (
        "memory_bound_share",
        r"s_\mathrm{mb}",
        "1",
        "Part of the latency that is spent in memory-bound operators.",
    ),
    ("throughput", r"R", "sample/s", "Samples finished per second."),
    # Totals over the network.
    ("total_flops", r"F_\Sigma", "FLOP", "Floating-point operations of the network in one step."),
    ("total_bytes", r"D_\Sigma", "B", "Bytes that all operators move in one step."),
    (
        "total_compute_time",
        r"T_\mathrm{comp}",
        "s",
        "Compute times of all operators added up, as if memory cost nothing.",
    ),
    (
        "total_memory_time",
        r"T_\mathrm{mem}",
        "s",
        "Memory times of all operators added up, as if computing cost nothing.",
    ),
    (
        "network_intensity",
        r"I_\Sigma",
        "FLOP/B",
        "Arithmetic intensity of the whole network: its FLOPs over its bytes moved.",
    ),
    ("achieved_flops", r"P_\mathrm{ach}", "FLOP/s", "FLOPs of the network over its latency."),
    # Memory.
    ("weight_memory", r"M_w", "B", "Memory that the parameters of the network take."),
    ("activation_memory", r"M_a", "B", "Memory that the live activations take at their peak."),
    ("memory_required", r"M_\mathrm{req}", "B", "Memory that the network needs to run."),
    ("memory_free", r"M_\mathrm{free}", "B", "Memory left over; negative if it does not fit."),
    # A transformer, as its architecture gives it.
    ("hidden_size", r"h", "1", "Width of a transformer: numbers that stand for one token."),
    ("heads", r"H", "1", "Attention heads: queries that each token asks in one layer."),
    ("kv_heads", r"H_\mathrm{kv}", "1", "Heads that have keys and values of their own."),
    ("head_size", r"d", "1", "Numbers in one query, key or value."),
    ("kv_rank", r"r", "1", "Width of the vector to which latent attention compresses a token."),
    ("rope_size", r"d_r", "1", "Numbers of a latent key that carry the position."),
    ("content_size", r"d_n", "1", "Numbers of a latent query that carry no position."),
    ("value_size", r"d_v", "1", "Numbers in one value of latent attention."),
    ("experts", r"E", "1", "Feed-forward networks of a layer among which tokens choose."),
    ("experts_per_token", r"k", "1", "Experts that each token chooses."),
    ("active_parameters", r"p_a", "1", "Weights of an operator that one token meets."),
    (
        "token_multiply_adds",
        r"m_t",
        "MAC/token",
        "Multiply-adds that an operator performs for one token.",
    ),
    (
        "pair_multiply_adds",
        r"m_q",
        "MAC/pair",
        "Multiply-adds that attention performs for one query and one key, in all its heads.",
    ),
    (
        "absorbed_pair_multiply_adds",
        r"m_a",
        "MAC/pair",
        "Multiply-adds of latent attention for one pair, reckoned in the compressed space.",
    ),
    (
        "expand_multiply_adds",
        r"m_x",
        "MAC/token",
        "Multiply-adds that turn one compressed token back into keys and values.",
    ),
    (
        "cached_elements",
        r"e_c",
        "element/token",
        "Elements of keys and values that an operator keeps for each token.",
    ),
    (
        "model_cached_elements",
        r"e_\Sigma",
        "element/token",
        "Elements of keys and values that all layers of a model keep for each token.",
    ),
    (
        "token_elements",
        r"a_t",
        "element/token",
        "Elements of activation that an operator reads and writes for each token.",
    ),
    (
        "live_elements",
        r"a_l",
        "element/token",
        "Most elements of activation that must be kept at one time for each token.",
    ),
    ("logits", r"v", "element/sample", "Scores that the output layer writes for one sequence."),
    (
        "parameters_streamed",
        r"p_s",
        "parameter",
        "Parameters of an operator that each step reads.",
    ),
    (
        "parameters_routed",
        r"p_e",
        "parameter",
        "Parameters of an operator in experts, of which a step reads those that are chosen.",
    ),
    ("attention_window", r"w", "token/sample", "Most tokens that one token sees, itself included."),
    ("token_limit", r"n_l", "token/sample", "Most tokens of a sequence that an operator needs."),
    # A request, and how it is served.
    ("prompt_tokens", r"n_i", "token/sample", "Tokens of one prompt."),
    ("output_tokens", r"n_o", "token/sample", "New tokens generated for one prompt."),
    ("new_tokens", r"n_q", "token/sample", "Tokens of each sequence that a step works on."),
    ("cached_tokens", r"n_c", "token/sample", "Tokens of each sequence that are in the KV cache."),
    ("tokens_per_step", r"n_s", "token/sample", "New tokens of each sequence in a decode step."),
    ("data_parallel", r"N_d", "1", "Copies of a model among which the batch is divided."),
    ("tensor_parallel", r"N_t", "1", "Devices among which each matrix is divided."),
    ("pipeline_parallel", r"N_p", "1", "Stages, one after another, into which layers are divided."),
    ("expert_replicas", r"N_r", "1", "Copies of the attention part that share one set of experts."),
    ("block_tokens", r"n_b", "token/sample", "Tokens in one block of a paged KV cache."),
    ("chunk_tokens", r"n_{ch}", "token", "Most tokens that prefill takes through a layer at once."),
    ("reserve_share", r"s_r", "1", "Part of the memory that is kept for everything else."),
    # One step of a language model.
    ("device_batch", r"B_d", "sample", "Sequences that a device works on at one time."),
    ("resident_batch", r"B_r", "sample", "Sequences whose cache a device holds."),
    ("micro_batches", r"n_\mu", "1", "Parts of a batch that follow one another in a pipeline."),
    ("tokens_worked", r"n_w", "token/sample", "Tokens of a sequence that an operator works on."),
    (
        "unclipped_tokens",
        r"n_u",
        "token/sample",
        "New tokens that see their sequence from its start.",
    ),
    ("attention_pairs", r"A", "pair/sample", "Queries and keys that meet in one step."),
    ("group_tokens", r"n_g", "token", "Tokens that choose among the same experts in one step."),
    ("expert_share", r"s_E", "1", "Share of the experts that a step reads."),
    ("parameters_read", r"p_r", "parameter", "Parameters that an operator reads in one step."),
    (
        "positions_read",
        r"n_r",
        "token/sample",
        "Tokens of a sequence whose keys and values a step reads.",
    ),
    ("cache_bytes", r"D_c", "B", "Bytes of KV cache that an operator reads and writes in a step."),
    # Between devices.
    ("link_bandwidth", r"\beta_l", "B/s", "Rate at which a device sends to others, one way."),
    (
        "device_bandwidth",
        r"\beta_d",
        "B/s",
        "Rate at which a device sends to all others together, one way.",
    ),
    ("group_size", r"N_g", "1", "Devices that work on one step together."),
    ("system_size", r"N_s", "1", "Devices that are joined by links."),
    ("link_elements", r"l_t", "element/token", "Elements of each token that a device sends."),
    ("link_bytes", r"D_l", "B", "Bytes that a device sends to others for an operator in a step."),
    ("network_time", r"t_\mathrm{net}", "s", "Time to send an operator's bytes to other devices."),
    ("operator_time", r"t_\mathrm{op}", "s", "Time of an operator, its sending included."),
    ("total_network_time", r"T_\mathrm{net}", "s", "Time that a step spends sending."),
    ("network_share", r"s_\mathrm{net}", "1", "Part of the step that is spent sending."),
    (
        "compute_bound_share",
        r"s_\mathrm{cb}",
        "1",
        "Part of the step spent in operators that the arithmetic limits.",
    ),
    # What users of a language model see.
    (
        "time_to_first_token",
        r"T_1",
        "s",
        "Time from the arrival of the prompts to the first new token.",
    ),
    ("first_token_time", r"T_f", "s", "Time of the first decode step, when the cache is smallest."),
    ("middle_token_time", r"T_m", "s", "Time of the decode step in the middle of the output."),
    ("last_token_time", r"T_l", "s", "Time of the last decode step, when the cache is largest."),
    ("filling_share", r"s_f", "1", "Part of the output that is written before a window is full."),
    ("filling_token_time", r"T_g", "s", "Time of the decode step halfway to a full window."),
    ("full_window_time", r"T_w", "s", "Time of the decode step with which a window is full."),
    ("later_token_time", r"T_h", "s", "Time of the decode step halfway from there to the last."),
    ("time_per_output_token", r"\bar T", "s", "Mean time of a decode step over the output."),
    ("generation_latency", r"T_\mathrm{e2e}", "s", "Time from the prompts to the last token."),
    ("user_token_rate", r"R_u", "token/s/sample", "Tokens per second that one user sees."),
    ("decode_throughput", r"R_d", "token/s", "Tokens per second of all users while decoding."),
    ("output_throughput", r"R_o", "token/s", "New tokens per second, prefill included."),
    # Memory of a service.
    ("bytes_per_cached_element", r"b_c", "B/element", "Bytes that store one element of KV cache."),
    ("cache_bytes_per_token", r"e_m", "B/token", "KV cache that one token takes in all layers."),
    ("cache_tokens", r"n_k", "token/sample", "Tokens for which a sequence takes cache."),
    ("weights_held", r"D_h", "B", "Memory of an operator's parameters on one device."),
    (
        "resident_repeats",
        r"n_d",
        "1",
        "How often an identical operator lies on one device.",
    ),
    ("operator_cache", r"c_\mathrm{op}", "B/sample", "Cache of one sequence in one layer."),
    ("cache_per_sequence", r"c", "B/sample", "Cache that one sequence takes on one device."),
    ("cache_memory", r"M_c", "B", "Memory of the KV cache on one device."),
    ("pass_tokens", r"n_p", "token", "Tokens of the prompts that go through a layer together."),
    ("sequence_activations", r"a_s", "B/sample", "Memory of the activations of one more prompt."),
    ("sequence_logits", r"l_s", "B/sample", "Memory of the output scores of one more sequence."),
    ("chunk_memory", r"M_\mathrm{ch}", "B", "Memory of the activations of a full chunk."),
    ("usable_memory", r"M_\mathrm{use}", "B", "Memory that a service may use on each device."),
    ("largest_batch", r"B_\mathrm{max}", "sample", "Most sequences that fit in memory together."),
)

VOCABULARY: dict[str, Term] = {entry[0]: Term(*entry) for entry in _ENTRIES}


def term(name: str) -> Term:
    """Return the vocabulary's entry for a name.

    >>> term("memory_bandwidth").unit
    'B/s'

    Raises
    ------
    UnknownNameError
        If the vocabulary has no such name; suggests the nearest.
    """
    try:
        return VOCABULARY[name]
    except KeyError:
        raise unknown_name("quantity", name, VOCABULARY) from None
