"""What an operator of a transformer holds and does for each token.

Arguments are plain numbers from the architecture. The results are counts for
one token, or for one pair of a query and a key that it looks at.
"""

from __future__ import annotations

from mlsim.equations.functions import missed
from mlsim.equations.registry import equation

QUESTION = "What does a transformer hold, and do for each token?"


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
