"""Requests that arrive at random: how many run, what a user waits, and where it ends.

A serving engine works in steps. In each, every running request gets a token, and the prompts
that came during the step before are read. So a step is as long as decoding takes, and longer
by the prompts that it reads; the longer it is, the more prompts come meanwhile.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, decay, maximum, minimum, square_root
from mlsim.equations.registry import Topic

ARRIVALS = equation = Topic("arrivals", "What do users wait for when requests arrive?")


@equation(source="yu2022orca")
def output_steps(output_tokens, tokens_per_step):
    """Decode steps of a request: the step that reads its prompt makes the first token.

    Valid without speculation, where a step makes as many tokens for each sequence.

    >>> output_steps(128.0, 2.0)
    63.0
    """
    return (output_tokens - tokens_per_step) / tokens_per_step


@equation(source="leviathan2023speculative", yields="output_steps", counts=True)
def output_rounds(output_tokens, expected_tokens):
    """Rounds of a request with speculation: the step that reads its prompt makes the first token.

    Valid for the mean over many rounds.

    >>> output_rounds(129.0, 2.0)
    64.0
    """
    return (output_tokens - 1) / expected_tokens


@equation(source="leviathan2023speculative", yields="time_per_output_token")
def interval_per_token(token_interval, expected_tokens):
    """Time between tokens with speculation: that between rounds, for each token of one.

    Valid for the mean over many rounds.

    >>> interval_per_token(0.03, 3.0)
    0.01
    """
    return token_interval / expected_tokens


@equation(source="vllm2025issue25301")
def path_time(call_time, prompt_tokens, tokenizing_time):
    """Time until a request's scheduler sees it: the call, and its text is cut into tokens.

    Assumes that no request waits for the text of another.
    Valid for prompts that come as text.

    >>> path_time(0.001, 8000.0, 4e-6)
    0.033
    """
    return call_time + prompt_tokens * tokenizing_time


@equation(source="agrawal2024sarathi")
def token_interval(decode_step_time, arrival_rate, prompt_time):
    """Time between two tokens: a decode step, and the prompts that come in that time.

    Assumes that prompts are read in the steps in which others decode.
    Valid while prompts alone don't fill the time.

    >>> token_interval(3.0, 0.5, 0.5)
    4.0
    """
    return decode_step_time / (1 - arrival_rate * prompt_time)


@equation(source="little1961proof")
def running_requests(arrival_rate, output_steps, token_interval):
    """Requests that decode at one time: how many come, times how long each stays (Little's law).

    Valid for any order and any distribution, once as many end as come.

    >>> running_requests(5.0, 200.0, 0.01)
    10.0
    """
    return arrival_rate * (output_steps * token_interval)


@equation(source="agrawal2024sarathi")
def saturation_rate(running_limit, output_steps, full_step_time, full_prompt_time):
    """Requests each second of a service that is always full.

    In the time that a full batch takes for its decode steps and its own prompts, as many new
    requests start as the batch has.
    Valid for requests of about equal lengths.

    >>> saturation_rate(64.0, 100.0, 0.25, 0.109375)
    2.0
    """
    return running_limit / (output_steps * full_step_time + running_limit * full_prompt_time)


@equation(source="kleinrock1975queueing")
def saturation_share(arrival_rate, saturation_rate):
    """Rate of arrivals over the rate that saturates: below 1, or the queue has no end.

    Valid for a steady rate.

    >>> saturation_share(5.0, 20.0)
    0.25
    """
    return arrival_rate / saturation_rate


@equation(source="kleinrock1975queueing")
def interval_variance(token_interval, arrival_rate, prompt_time):
    """Variance of the time between tokens: as many prompts as come by chance.

    A step is longer by the prompts that came during the one before. Their number is that of a
    Poisson process, so its variance is its mean; and a long step brings a long one.
    Valid for arrivals at random and prompts of about equal lengths, read in one step.

    >>> interval_variance(3.0, 2.0, 0.25)
    0.5
    """
    return (
        arrival_rate
        * token_interval
        * prompt_time**2
        / (1 - (arrival_rate * prompt_time) * (arrival_rate * prompt_time))
    )


@equation(source="kleinrock1975queueing")
def met_interval(token_interval, interval_variance):
    """Time of the step that an arriving request meets: its mean square over its mean.

    A long step is more likely to be met than a short one.
    Valid for arrivals at random.

    >>> met_interval(4.0, 8.0)
    6.0
    """
    return token_interval + interval_variance / token_interval


@equation(source="agrawal2024sarathi")
def steady_first_token(
    lone_prompt_time,
    decode_step_time,
    prompt_time,
    arrival_rate,
    met_interval,
    running_requests,
    steps_ahead,
    token_interval,
    path_time,
):
    """Mean time to the first token: the rest of a step, then the step that reads the prompt.

    That step decodes for all, and also reads the prompts that came with this one. Where a step
    is made up before the one that runs has ended, a request waits for that step too. Where nobody
    is served, which is so by the chance of a Poisson number to be 0, only the prompt is read.
    Before all this a request is on its way to the engine, which cuts its text into tokens.
    Assumes that a prompt is read in one step, and that none waits for room.
    Valid below saturation.

    >>> steady_first_token(5.0, 2.0, 1.0, 0.5, 4.0, 1000.0, 0, 4.0, 0.0)
    7.0
    >>> steady_first_token(5.0, 2.0, 1.5, 0.5, 6.0, 1.3862943611198906, 1, 3.0, 0.25)
    12.0
    """
    return (
        path_time
        + decay(running_requests) * lone_prompt_time
        + (1 - decay(running_requests))
        * (
            met_interval / 2
            + steps_ahead * token_interval
            + decode_step_time
            + prompt_time
            + arrival_rate * met_interval * prompt_time
        )
    )


@equation(source="kleinrock1975queueing")
def request_latency(steady_first_token, output_steps, token_interval):
    """Time from arrival to the last token: to the first one, and the steps after it.

    Valid for the mean.

    >>> request_latency(0.1, 100.0, 0.01)
    1.1
    """
    return steady_first_token + output_steps * token_interval


@equation(source="agrawal2024sarathi", yields="token_interval")
def closed_token_interval(decode_step_time, users, prompt_time, output_steps):
    """Time between tokens with users who wait: while one is answered, all others ask once.

    Assumes that nobody pauses between an answer and the next request.
    Valid for requests of about equal lengths.

    >>> closed_token_interval(2.0, 11.0, 5.0, 99.0)
    2.5
    """
    return decode_step_time + (users - 1) * prompt_time / (output_steps + 1)


@equation(source="kleinrock1975queueing")
def burst_first_token(path_time, burst_time, burst_steps):
    """Mean time to the first token of users who all ask at once: prompts of one step end together.

    Where one step reads all prompts, everybody waits for all of it. Of many steps a user waits
    for half, on average.
    Assumes that each step reads as many prompts, and that no token is made meanwhile.
    Valid for prompts of about equal lengths that all have room at once.

    >>> burst_first_token(0.5, 0.18, 9.0)
    0.6
    >>> burst_first_token(0.0, 0.18, 1.0)
    0.18
    """
    return path_time + burst_time * (1 + 1 / burst_steps) / 2


@equation(source="kleinrock1975queueing")
def request_rate(answered_requests, run_span):
    """Requests that are answered each second of a run.

    Valid from the first request to the last token.

    >>> request_rate(100.0, 20.0)
    5.0
    """
    return answered_requests / run_span


@equation(source="kleinrock1975queueing")
def server_use(stepping_time, run_span):
    """Share of a run in which the service worked on a step.

    Valid for one copy, or the mean of several.

    >>> server_use(15.0, 20.0)
    0.75
    """
    return stepping_time / run_span


@equation(source="little1961proof", yields="running_requests")
def observed_running_requests(running_time, run_span):
    """Requests that ran at one time, on average over a run.

    Valid for any run.

    >>> observed_running_requests(60.0, 20.0)
    3.0
    """
    return running_time / run_span


@equation(source="little1961proof")
def waiting_requests(queued_time, run_span):
    """Requests that waited to start at one time, on average over a run.

    Valid for any run.

    >>> waiting_requests(10.0, 20.0)
    0.5
    """
    return queued_time / run_span


@equation(source="kwon2023paged")
def cache_room(usable_memory, weight_memory, activation_memory):
    """Memory that is left for the KV cache once weights and activations have theirs.

    Valid on each device; below zero, nothing fits.

    >>> cache_room(72.0, 16.0, 6.0)
    50.0
    """
    return usable_memory - weight_memory - activation_memory


@equation(source="kleinrock1975queueing")
def queue_wait(arrival_rate, service_time, service_variation):
    """Wait of a queue with one server, in the order of arrival (Pollaczek and Khinchine).

    With equal service times (variation 0) it is M/D/1, with exponential ones (1) M/M/1, which
    waits twice as long.
    Valid for arrivals at random, while the server has time left.

    >>> queue_wait(0.125, 6.0, 0.5)
    13.5
    """
    return (
        arrival_rate
        * service_time**2
        * (1 + service_variation)
        / (2 * (1 - arrival_rate * service_time))
    )


PROMPT_LINES = equation = Topic(
    "prompt_lines", "How long does a prompt wait in a pool that only reads prompts?"
)


@equation(source="kleinrock1975queueing")
def reader_rate(pool_arrival_rate, prefill_copies):
    """Prompts each second for each copy of the pool.

    Valid for copies that share one line.

    >>> reader_rate(6.0, 2.0)
    3.0
    """
    return pool_arrival_rate / prefill_copies


@equation(source="agrawal2024sarathi")
def step_start_time(prompts_time, prompts_together, prompt_time):
    """Time of a step that is there however many prompts it reads: weights, and starting it.

    Valid near so many prompts, where each adds as much.

    >>> step_start_time(9.0, 2.0, 4.0)
    1.0
    """
    return prompts_time - prompts_together * prompt_time


@equation(source="kleinrock1975queueing")
def prompts_per_step(reader_rate, step_start_time, prompt_time, lone_prompt_time, step_prompts):
    """Prompts that a step reads, on average over steps: those that came during the one before.

    Of a step during which nobody came (the chance of a Poisson number to be 0, taken of a step
    with one prompt), the next one reads a single prompt. A step has room for so many.
    Valid below saturation.

    >>> prompts_per_step(0.5, 3.0, 1.5, 1.3862943611198906, 10.0)
    8.0
    >>> prompts_per_step(0.5, 3.0, 1.5, 1.3862943611198906, 6.0)
    6.0
    """
    return minimum(
        step_prompts,
        (reader_rate * step_start_time + decay(reader_rate * lone_prompt_time))
        / (1 - reader_rate * prompt_time),
    )


@equation(source="kleinrock1975queueing")
def reading_use(reader_rate, step_start_time, prompts_per_step, prompt_time):
    """Share of the time in which a copy of the pool reads, on average.

    Prompts that share a step share its start.
    Valid below 1; at 1 the line has no end.

    >>> reading_use(0.5, 1.0, 2.0, 1.0)
    0.75
    """
    return reader_rate * (step_start_time / prompts_per_step + prompt_time)


@equation(source="sakasegawa1977approximation")
def crowding(reading_use, prefill_copies):
    """How likely all copies are busy, over the chance that one is.

    A copy that is free takes a prompt at once. 1 for one copy; else an approximation.
    Valid for one line that all copies serve.

    >>> crowding(0.5, 17.0)
    0.0625
    """
    return reading_use ** (square_root(2 * (prefill_copies + 1)) - 2)


@equation(source="kleinrock1975queueing")
def beside_by_reading(crowding, reader_rate, prompt_time):
    """Prompts that share a prompt's step because others were read while they came.

    From the first two moments of the number that comes during a step. What a prompt adds to a
    step grows with all prompts before it: a geometric series.
    Valid where a step has room for all that wait.

    >>> beside_by_reading(3.0, 0.25, 2.0)
    1.0
    """
    return crowding * (reader_rate * prompt_time) ** 2 / (1 - (reader_rate * prompt_time) ** 2)


@equation(source="kleinrock1975queueing")
def beside_by_starting(
    crowding, reader_rate, step_start_time, prompts_per_step, prompt_time, service_variance
):
    """Prompts that share a prompt's step because the step before took its time to start.

    Lengths that differ make steps differ, which adds as much as a start does.
    Valid where a step has room for all that wait.

    >>> beside_by_starting(3.0, 0.5, 4.0, 2.0, 1.5, 1.0)
    36.0
    """
    return (
        crowding
        * reader_rate**2
        * (
            step_start_time**2 / prompts_per_step
            + 2 * step_start_time * prompt_time
            + service_variance
        )
        / (1 - (reader_rate * prompt_time) ** 2)
    )


@equation(source="kleinrock1975queueing")
def prompts_beside(beside_by_reading, beside_by_starting, beside_limit):
    """Prompts that are read in the same step as a prompt, on average over prompts.

    A step has room for so many. The geometric part comes near that slowly; the other part, which
    hardly varies, is cut off.
    Valid below saturation.

    >>> prompts_beside(3.0, 0.25, 6.0)
    2.25
    >>> prompts_beside(3.0, 5.0, 6.0)
    6.0
    """
    return minimum(
        beside_limit,
        beside_by_starting + beside_by_reading * beside_limit / (beside_by_reading + beside_limit),
    )


@equation(source="kleinrock1975queueing")
def step_rest(
    reader_rate, step_start_time, prompts_per_step, prompt_time, prompts_beside, service_variance
):
    """Time until the step that runs when a prompt comes has ended, 0 where none runs.

    Half the mean square of a step, times how often one runs: a long step is met more often.
    Valid for arrivals at random.

    >>> step_rest(0.5, 3.0, 2.0, 3.0, 1.5, 1.0)
    11.5
    """
    return (
        reader_rate
        / 2
        * (
            step_start_time**2 / prompts_per_step
            + 2 * step_start_time * prompt_time
            + prompt_time**2 * (1 + prompts_beside)
            + service_variance
        )
    )


@equation(source="kleinrock1975queueing")
def line_wait(reader_rate, packed_prompt_time, service_variance, prompts_beside):
    """Time that a prompt waits further since the next step has no room for it.

    As much as leaves the formula of Pollaczek and Khinchine where steps read one prompt each, and
    none where a step has room for all.
    Valid where reading takes most of a full step, and not its start.

    >>> line_wait(0.25, 3.0, 7.0, 0.5)
    4.6875
    >>> line_wait(0.25, 3.0, 7.0, 3.0)
    0.0
    """
    return (
        packed_prompt_time
        / 2
        * (
            maximum(
                reader_rate**2
                * (packed_prompt_time**2 + service_variance)
                / (1 - reader_rate * packed_prompt_time),
                prompts_beside * (1 + reader_rate * packed_prompt_time),
            )
            - prompts_beside * (1 + reader_rate * packed_prompt_time)
        )
    )


@equation(source="sakasegawa1977approximation")
def prompt_wait(crowding, step_rest, line_wait, prefill_copies):
    """Mean time that a prompt waits in line until a step takes it.

    With one copy whose steps read one prompt it is the formula of Pollaczek and Khinchine,
    exactly; with one copy whose steps have room for all it follows from the moments of a step;
    else it is an approximation.
    Valid for arrivals at random, while the pool has time left.

    >>> prompt_wait(0.5, 0.25, 1.25, 4.0)
    0.1875
    """
    return crowding * (step_rest + line_wait) / prefill_copies


@equation(source="agrawal2024sarathi")
def reading_step_time(step_start_time, prompt_time, prompts_beside):
    """Time of the step that reads a prompt, with all that are read beside it.

    Valid for the mean over prompts.

    >>> reading_step_time(1.0, 2.0, 0.5)
    4.0
    """
    return step_start_time + prompt_time * (1 + prompts_beside)


@equation(source="zhong2024distserve")
def split_first_token(path_time, prompt_wait, reading_step_time):
    """Mean time to the first token: a prompt's way to the pool, its turn, and its step.

    No decode step comes between.
    Valid below saturation.

    >>> split_first_token(0.125, 0.5, 0.25)
    0.875
    """
    return path_time + prompt_wait + reading_step_time


@equation(source="patel2024splitwise")
def cache_wait(exposed_transfer_time, prompts_beside):
    """Time that a request waits for its cache, with those of its step sent one after another.

    Assumes that half of them go first, and that no other step's caches take the links.
    Valid for the mean over prompts.

    >>> cache_wait(0.5, 2.0)
    1.0
    """
    return exposed_transfer_time * (1 + prompts_beside / 2)


@equation(source="zhong2024distserve", yields="token_interval")
def split_token_interval(decode_step_time):
    """Time between two tokens where others' prompts are read elsewhere: a decode step.

    Valid for the mean.

    >>> split_token_interval(0.01)
    0.01
    """
    return decode_step_time


@equation(source="agrawal2024sarathi")
def joining_wait(running_requests, steps_ahead, decode_step_time):
    """Time that a request whose cache has come waits for a decode step that takes it in.

    The rest of the step that runs, and one that was made up before it came. None where nobody
    decodes, which is so by the chance of a Poisson number to be 0.
    Assumes that the decode pool has room.
    Valid below saturation.

    >>> joining_wait(1.3862943611198906, 3, 2.0)
    5.25
    """
    return (1 - decay(running_requests)) * (decode_step_time / 2 + steps_ahead * decode_step_time)


@equation(source="zhong2024distserve", yields="time_per_output_token", counts=True)
def split_token_time(output_steps, token_interval, cache_wait, joining_wait, output_tokens):
    """Time per token after the first one, with the wait for the second one in it.

    Valid for outputs of two tokens or more.

    >>> split_token_time(100.0, 0.01, 0.5, 0.5, 101.0)
    0.02
    """
    return (output_steps * token_interval + cache_wait + joining_wait) / (output_tokens - 1)


@equation(source="zhong2024distserve", yields="request_latency")
def split_request_latency(
    split_first_token, cache_wait, joining_wait, output_steps, token_interval
):
    """Time from arrival to the last token, through both pools.

    Assumes that the decode pool has room.
    Valid for the mean.

    >>> split_request_latency(0.5, 0.125, 0.125, 100.0, 0.01)
    1.75
    """
    return split_first_token + cache_wait + joining_wait + output_steps * token_interval


POOLS = equation = Topic(
    "pools", "What changes where prefill and decode have devices of their own?"
)


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


PLANS = equation = Topic(
    "plans", "Which machines does a service need, and what do its tokens cost?"
)


@equation(source="agrawal2024sarathi", yields="prompt_time")
def further_prompt_time(prompts_time, lone_prompt_time, prompts_together):
    """Time that each further prompt adds to a step, from a step with one and one with several.

    Valid where prompts are read together, within the tokens of a step.

    >>> further_prompt_time(7.0, 1.0, 4.0)
    2.0
    """
    return (prompts_time - lone_prompt_time) / (prompts_together - 1)


@equation(source="kleinrock1975queueing", yields="arrival_rate")
def users_rate(users, think_time, request_latency):
    """Requests each second of users who wait for an answer, think, and ask again.

    Little's law of the whole circle: each user is in it once.

    Valid for the mean, whatever the distributions.

    >>> users_rate(2000.0, 10.0, 6.0)
    125.0
    """
    return users / (think_time + request_latency)


@equation(source="kleinrock1975queueing")
def replicas(required_rate, replica_rate):
    """Copies of a service that a rate of requests needs, each at the rate that it serves.

    Valid where requests are spread evenly over the copies.

    >>> replicas(25.0, 10.0)
    3.0
    """
    return ceil(required_rate / replica_rate)


@equation(source="kleinrock1975queueing")
def replica_load(required_rate, replicas):
    """Requests each second of one copy of a service.

    Valid where requests are spread evenly over the copies.

    >>> replica_load(30.0, 5.0)
    6.0
    """
    return required_rate / replicas


@equation(source="kleinrock1975queueing")
def fleet_devices(replicas, replica_devices):
    """Devices of all copies together.

    Valid for copies of one layout.

    >>> fleet_devices(3.0, 8.0)
    24.0
    """
    return replicas * replica_devices


@equation(source="barroso2018datacenter")
def fleet_price(fleet_devices, device_price):
    """Price of all devices per time, whether they are busy or not.

    Valid for devices that are rented, or paid off evenly over their years.

    >>> fleet_price(24.0, 0.001)
    0.024
    """
    return fleet_devices * device_price


@equation(source="barroso2018datacenter", yields="fleet_price")
def pools_price(prefill_price, decode_price):
    """Price of both pools per time, whether they are busy or not.

    Valid for pools that are rented, or paid off, for the same time.

    >>> pools_price(0.5, 1.5)
    2.0
    """
    return prefill_price + decode_price


@equation(source="barroso2018datacenter", yields="prompt_share")
def pool_share(prefill_price, fleet_price):
    """Share of the bill that reads prompts, where they have devices of their own.

    Valid for two pools.

    >>> pool_share(0.5, 2.0)
    0.25
    """
    return prefill_price / fleet_price


@equation(source="barroso2018datacenter")
def output_token_price(fleet_price, required_rate, output_tokens):
    """Price of one generated token, with the prompt's part in it.

    Valid where requests come at the required rate all the time; at half of it a token costs
    twice as much.

    >>> output_token_price(0.5, 10.0, 100.0)
    0.0005
    """
    return fleet_price / (required_rate * output_tokens)


@equation(source="barroso2018datacenter")
def token_price(fleet_price, required_rate, prompt_tokens, output_tokens):
    """Price of one token, read or generated: the bill over all tokens.

    Valid where requests come at the required rate all the time.

    >>> token_price(0.5, 10.0, 300.0, 100.0)
    0.000125
    """
    return fleet_price / (required_rate * (prompt_tokens + output_tokens))


@equation(source="agrawal2024sarathi")
def prompt_share(saturation_rate, full_prompt_time):
    """Share of a full service's time in which it reads prompts: how many come, times each.

    Valid for a service that is always full; the rest of its time generates.

    >>> prompt_share(4.0, 0.0625)
    0.25
    """
    return saturation_rate * full_prompt_time


@equation(source="barroso2018datacenter")
def prompt_token_price(fleet_price, prompt_share, required_rate, prompt_tokens):
    """Price of one token of a prompt: the part of the bill in which prompts are read.

    Assumes that the bill is split as the time is.
    Valid where requests come at the required rate all the time.

    >>> prompt_token_price(0.5, 0.25, 10.0, 100.0)
    0.000125
    """
    return fleet_price * prompt_share / (required_rate * prompt_tokens)


@equation(source="barroso2018datacenter")
def answer_token_price(fleet_price, prompt_share, required_rate, output_tokens):
    """Price of one generated token: the part of the bill in which no prompt is read.

    Assumes that the bill is split as the time is.
    Valid where requests come at the required rate all the time.

    >>> answer_token_price(0.5, 0.25, 10.0, 100.0)
    0.000375
    """
    return fleet_price * (1 - prompt_share) / (required_rate * output_tokens)


@equation(source="barroso2018datacenter", yields="device_price")
def owned_device_price(purchase_price, device_lifetime, max_power, pue, electricity_price):
    """What a device costs per time that was bought: its price over its life, and electricity.

    Assumes that it is used for all of its life, and that money has no interest.
    Valid with the share of host, network and building in the price, or without them.

    >>> owned_device_price(32.0, 2.0, 4.0, 1.5, 3.0)
    34.0
    """
    return purchase_price / device_lifetime + max_power * pue * electricity_price
