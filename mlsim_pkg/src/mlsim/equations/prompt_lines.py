"""A pool that only reads prompts: how many share a step, and how long a prompt waits for one.

A copy that is free takes all prompts that wait, as far as a step has room for their tokens.
What came meanwhile is read in its next step. So a long step brings a long one, and prompts wait
for a running step to end, for those before them, and for those that are read beside them.
"""

from __future__ import annotations

from mlsim.equations.functions import decay, maximum, minimum, square_root
from mlsim.equations.registry import equation

QUESTION = "How long does a prompt wait in a pool that only reads prompts?"


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
