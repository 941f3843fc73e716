"""Requests that arrive at random: how many run, what a user waits, and where it ends.

A serving engine works in steps. In each, every running request gets a token, and the prompts
that came during the step before are read. So a step is as long as decoding takes, and longer
by the prompts that it reads; the longer it is, the more prompts come meanwhile.
"""

from __future__ import annotations

from mlsim.equations.functions import decay
from mlsim.equations.registry import equation

QUESTION = "What do users wait for when requests arrive?"


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
