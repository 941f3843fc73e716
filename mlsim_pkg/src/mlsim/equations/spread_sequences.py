"""Sequences that several devices share, and experts of which one device has more to do.

Context parallelism divides the tokens of a sequence: in prefill each device reads its part of
the prompt, and in decode each looks its own part of the cache through.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, greatest, maximum, minimum, square_root
from mlsim.equations.registry import equation

QUESTION = "What changes where devices share a sequence, or experts are chosen unevenly?"


@equation(source="yang2025context", yields="tokens_worked")
def context_tokens_worked(new_tokens, device_batch, context_parallel, token_limit):
    """New tokens of a sequence on the fullest of the devices that share it.

    New tokens of all sequences are dealt out evenly: parts of a prompt, or whole
    sequences where each has one new token. None is cut.

    Valid for any step; the last tokens of prompts may all lie on one device.

    >>> context_tokens_worked(1000, 2, 4, 4096)
    250.0
    """
    return minimum(ceil(new_tokens * device_batch / context_parallel) / device_batch, token_limit)


@equation(source="yang2025context", yields="attention_pairs", counts=True)
def context_attention_pairs(
    unclipped_tokens, cached_tokens, new_tokens, attention_window, context_parallel
):
    """Pairs of a new token and one that it looks at, on each device that shares the sequence.

    Assumes that each device has an early and a late part of the prompt, so that all have as
    many pairs.
    Valid for causal attention.

    >>> context_attention_pairs(4, 10, 6, 11, 2)
    36.0
    """
    return (
        unclipped_tokens * (cached_tokens + (unclipped_tokens + 1) / 2)
        + (new_tokens - unclipped_tokens) * attention_window
    ) / context_parallel


@equation(source="yang2025context", yields="device_cached_elements")
def context_cached_elements(model_cached_elements, context_parallel):
    """Elements of cache of each token, on the average of the devices that share a sequence.

    Valid for sequences of many blocks.

    >>> context_cached_elements(2048.0, 4.0)
    512.0
    """
    return model_cached_elements / context_parallel


@equation(source="yang2025context", yields="live_elements")
def context_live_elements(token_live_elements, context_parallel):
    """Elements of activation alive for each token, on average of the devices that share it.

    Valid for prefill in chunks of the whole sequence, of which each device has its part.

    >>> context_live_elements(20000.0, 4.0)
    5000.0
    """
    return token_live_elements / context_parallel


@equation(source="yang2025context", yields="group_tokens")
def context_group_tokens(new_tokens, device_batch, expert_replicas, context_parallel):
    """New tokens in a step that choose among the same set of experts, of shared sequences.

    Valid where each device that shares a sequence has experts of its own.

    >>> context_group_tokens(1024, 3, 2, 4)
    1536.0
    """
    return new_tokens * device_batch * expert_replicas / context_parallel


@equation(source="yang2025context")
def ring_elements_sent(
    context_parallel, ring_cached_elements, positions_read, ring_query_elements, new_tokens
):
    """Elements of a sequence that a device sends so that all its tokens see one another.

    Either keys and values go round all devices, or queries do and their results come back:
    whatever is less. For a long prompt these are keys and values, in decode they are queries.

    Assumes that the few numbers which join partial results are negligible.
    Valid for attention without loss; a ring and a gather send as much.

    >>> ring_elements_sent(4, 2048, 1000, 16384, 1000)
    1536000.0
    >>> ring_elements_sent(4, 2048, 1000, 16384, 1)
    12288.0
    """
    return (
        (context_parallel - 1)
        / context_parallel
        * minimum(ring_cached_elements * positions_read, ring_query_elements * new_tokens)
    )


@equation(source="patarasuk2009bandwidth", yields="link_bytes")
def spread_link_bytes(
    bytes_per_sent_element,
    device_batch,
    link_elements,
    tokens_worked,
    load_factor,
    ring_elements_sent,
):
    """Bytes that a device sends for an operator in a step: by its tokens, and round a ring.

    Valid for activations; weights stay where they are.

    >>> spread_link_bytes(2.0, 4, 100, 10, 1.5, 500)
    16000.0
    """
    return (
        bytes_per_sent_element
        * device_batch
        * (link_elements * tokens_worked * load_factor + ring_elements_sent)
    )


@equation(source="chen1999maximum", yields="expert_imbalance", counts=True)
def uniform_imbalance(expert_parallel, experts, experts_per_token, group_tokens):
    """Tokens of the busiest device over the mean, where tokens choose experts by chance.

    A device's tokens are a sum of many small chances, so they are about normal: the busiest
    of them is as far above the mean as the greatest of so many normal numbers. Some device has
    one token at least, and none has more than all.

    Assumes that each expert is as likely as any other. Real routers prefer some, so this is
    the least that is to be expected.
    Valid for experts spread evenly; z with a hat is the mean of the greatest of so many standard
    normal numbers.

    >>> uniform_imbalance(32.0, 256.0, 8.0, 4096.0)
    1.062388076794228
    >>> uniform_imbalance(64.0, 64.0, 1.0, 1.0)
    64.0
    >>> uniform_imbalance(64.0, 8.0, 8.0, 2.0)
    4.0
    """
    return minimum(
        maximum(
            1
            + greatest(expert_parallel)
            * square_root(
                (expert_parallel - 1)
                * (experts - experts_per_token)
                / ((experts - 1) * group_tokens * experts_per_token)
            ),
            expert_parallel / (group_tokens * experts_per_token),
        ),
        expert_parallel,
    )


@equation(source="fedus2022switch")
def load_factor(routed_share, expert_imbalance):
    """Work of an operator on the busiest device over the mean.

    All wait for the busiest device. Only experts, and sending to them, differ between devices.

    Valid for experts that are spread; weights are read as on the average device.

    >>> load_factor(0.5, 1.5)
    1.25
    """
    return 1 + routed_share * (expert_imbalance - 1)


@equation(source="fedus2022switch", yields="flops")
def busiest_flops(flops_per_multiply_add, multiply_adds, device_batch, load_factor):
    """Work of an operator in one step, on the device that has most of it.

    Valid for any step.

    >>> busiest_flops(2.0, 1e9, 4, 1.5)
    12000000000.0
    """
    return flops_per_multiply_add * multiply_adds * device_batch * load_factor


@equation(source="fedus2022switch", yields="activation_bytes")
def busiest_token_bytes(
    bytes_per_element, token_elements, tokens_worked, device_batch, load_factor
):
    """Traffic of an operator's activations, on the device that has most tokens.

    Assumes that nothing stays on chip between operators.
    Valid as an upper estimate.

    >>> busiest_token_bytes(2.0, 8192, 10, 4, 1.5)
    983040.0
    """
    return bytes_per_element * token_elements * tokens_worked * device_batch * load_factor
