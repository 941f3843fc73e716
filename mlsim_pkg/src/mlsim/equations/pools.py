"""Prefill and decode on separate devices: what goes from one pool to the other, and who waits."""

from __future__ import annotations

from mlsim.equations.functions import maximum, minimum
from mlsim.equations.registry import equation

QUESTION = "What changes where prefill and decode have devices of their own?"


@equation(source="patel2024splitwise")
def transfer_streams(prefill_devices, decode_devices):
    """Devices that send the cache of a prompt side by side: as many as can send and receive.

    Each copy's devices have equal parts of the cache.
    Valid where each device has a link of its own to the other pool.

    >>> transfer_streams(4.0, 8.0)
    4.0
    """
    return minimum(prefill_devices, decode_devices)


@equation(source="patel2024splitwise")
def transfer_time(prefill_batch, transfer_bytes, transfer_streams, transfer_bandwidth):
    """Time to send the cache of the prompts that were read together.

    Assumes the full rate of the links, and no time to start.
    Valid while no other transfer takes the same links.

    >>> transfer_time(2.0, 1e9, 4.0, 50e9)
    0.01
    """
    return prefill_batch * transfer_bytes / (transfer_streams * transfer_bandwidth)


@equation(source="patel2024splitwise", yields="exposed_transfer_time")
def serial_transfer_time(transfer_time):
    """Time that a request waits for its cache, which is sent once all of it is there.

    The first token is there before; the second one waits.
    Valid without overlap.

    >>> serial_transfer_time(0.01)
    0.01
    """
    return transfer_time


@equation(source="patel2024splitwise", yields="exposed_transfer_time")
def layered_transfer_time(transfer_time, layers, time_to_first_token):
    """Time that a request waits for its cache, each layer of which is sent while the next works.

    The last layer's part is always waited for, and all that the other layers had no time for.

    Valid for layers that are alike, with prompts that are read in one step.

    >>> layered_transfer_time(0.08, 8.0, 0.5)
    0.01
    >>> layered_transfer_time(5.0, 4.0, 2.0)
    3.5
    """
    return maximum(
        transfer_time / layers, transfer_time - time_to_first_token * (layers - 1) / layers
    )


@equation(source="zhong2024distserve")
def prefill_interval(latency, micro_batches, pipeline_parallel):
    """Time between two batches of prompts that a copy has read, one after another.

    Of a pipeline, the stages work on several at a time.

    Valid for prompts of one length.

    >>> prefill_interval(0.5, 3.0, 2.0)
    0.75
    """
    return latency * micro_batches / pipeline_parallel


@equation(source="zhong2024distserve")
def prefill_rate(prefill_copies, prefill_batch, prefill_interval):
    """Prompts that the prefill pool reads each second.

    Valid while prompts wait, so that no copy is idle.

    >>> prefill_rate(2.0, 3.0, 0.25)
    24.0
    """
    return prefill_copies * prefill_batch / prefill_interval


@equation(source="zhong2024distserve", counts=True)
def decode_rate(batch_size, output_tokens, time_per_output_token):
    """Requests that the decode pool ends each second, with its batch always full.

    The first token comes from the other pool.
    Valid for outputs of two tokens or more.

    >>> decode_rate(64.0, 101.0, 0.02)
    32.0
    """
    return batch_size / ((output_tokens - 1) * time_per_output_token)


@equation(source="patel2024splitwise")
def transfer_rate(
    transfer_bandwidth,
    prefill_copies,
    prefill_devices,
    decode_copies,
    decode_devices,
    transfer_bytes,
):
    """Caches that the links between the pools carry each second.

    Valid where all devices of the smaller pool send, or receive, at the same time.

    >>> transfer_rate(50e9, 8.0, 4.0, 2.0, 8.0, 2e9)
    400.0
    >>> transfer_rate(50e9, 2.0, 4.0, 3.0, 8.0, 2e9)
    200.0
    """
    return (
        transfer_bandwidth
        * minimum(prefill_copies * prefill_devices, decode_copies * decode_devices)
        / transfer_bytes
    )


@equation(source="zhong2024distserve")
def split_rate(prefill_rate, decode_rate, transfer_rate):
    """Requests that both pools answer each second together: what the slowest part lets through.

    Valid while requests wait.

    >>> split_rate(8.0, 32.0, 400.0)
    8.0
    """
    return minimum(minimum(prefill_rate, decode_rate), transfer_rate)


@equation(source="zhong2024distserve")
def balanced_copies(prefill_copies, decode_rate, prefill_rate):
    """Copies that read prompts at which neither pool waits for the other.

    With fewer, the batch that decodes is not full; with more, prompts queue between the pools.

    Valid for prompts and outputs of one length.

    >>> balanced_copies(3.0, 32.0, 8.0)
    12.0
    """
    return prefill_copies * decode_rate / prefill_rate


@equation(source="zhong2024distserve")
def pool_devices(prefill_copies, prefill_devices, decode_copies, decode_devices):
    """Devices of both pools together.

    Valid for copies of one layout in each pool.

    >>> pool_devices(2.0, 4.0, 3.0, 8.0)
    32.0
    """
    return prefill_copies * prefill_devices + decode_copies * decode_devices


@equation(source="zhong2024distserve", yields="output_throughput")
def split_throughput(split_rate, output_tokens):
    """New tokens per second of both pools, which work at the same time.

    Valid while requests wait.

    >>> split_throughput(8.0, 100.0)
    800.0
    """
    return split_rate * output_tokens


@equation(source="zhong2024distserve")
def device_throughput(output_throughput, pool_devices):
    """New tokens per second for each device of both pools.

    Valid while requests wait.

    >>> device_throughput(800.0, 16.0)
    50.0
    """
    return output_throughput / pool_devices


@equation(source="patel2024splitwise", yields="generation_latency", counts=True)
def split_generation_latency(
    time_to_first_token, exposed_transfer_time, output_tokens, time_per_output_token
):
    """Time from the prompts' arrival to the last token: prefill, the cache's way, decode.

    Valid for a request that waits for no other.

    >>> split_generation_latency(0.5, 0.25, 101, 0.01)
    1.75
    """
    return time_to_first_token + exposed_transfer_time + (output_tokens - 1) * time_per_output_token
