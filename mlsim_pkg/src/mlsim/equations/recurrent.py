"""What layers keep a state for, instead of a cache: state-space models and linear attention.

Arguments are plain numbers from the architecture. A state has the same size however
long the sequence is: it is read and written once for each step.
"""

from __future__ import annotations

from mlsim.equations.functions import minimum
from mlsim.equations.registry import equation

QUESTION = "What does a transformer hold, and do for each token?"


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
