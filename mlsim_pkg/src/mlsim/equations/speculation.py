"""Speculative decoding: a cheap draft guesses tokens, and the model checks them in one step."""

from __future__ import annotations

from mlsim.equations.functions import geometric
from mlsim.equations.registry import equation

QUESTION = "When does speculative decoding pay?"


@equation(source="leviathan2023speculative", counts=True)
def expected_tokens(acceptance_rate, draft_tokens):
    """Tokens that a round makes for each sequence: those accepted, and one of the model's own.

    The first is always made; a further one needs that all drafted ones before it were
    accepted. With an acceptance of 1 it is the drafted tokens and one more.

    Assumes that each drafted token is accepted with the same chance, whatever came before.
    Valid for acceptances from 0 to 1.

    >>> expected_tokens(0.5, 3)
    1.875
    """
    return geometric(acceptance_rate, draft_tokens + 1)


@equation(source="leviathan2023speculative", yields="draft_step_time")
def draft_time_by_cost(draft_cost, plain_step_time):
    """Time in which one token is drafted, where only the draft's cost is known.

    Valid for the batch and the context of the step that it is a part of.

    >>> draft_time_by_cost(0.05, 0.02)
    0.001
    """
    return draft_cost * plain_step_time


@equation(source="leviathan2023speculative")
def round_time(draft_tokens, draft_step_time, verification_time):
    """Time of a round: tokens are drafted one after another, then checked together.

    Assumes that draft and model don't run at one time.
    Valid for sequences that all speculate alike.

    >>> round_time(4, 0.001, 0.016)
    0.02
    """
    return draft_tokens * draft_step_time + verification_time


@equation(source="leviathan2023speculative")
def speculative_token_time(round_time, expected_tokens):
    """Time of a round for each token that it makes.

    Valid for the mean over many rounds.

    >>> speculative_token_time(0.02, 2.5)
    0.008
    """
    return round_time / expected_tokens


@equation(source="leviathan2023speculative")
def speculative_speedup(plain_step_time, speculative_token_time):
    """How many times faster tokens come with speculation; below 1 it costs time.

    Where checking takes as long as a plain step, this is E / (γ c + 1).

    Valid at one batch and context.

    >>> speculative_speedup(0.016, 0.008)
    2.0
    """
    return plain_step_time / speculative_token_time


@equation(source="leviathan2023speculative")
def break_even_tokens(round_time, plain_step_time):
    """Tokens that a round must make to be as fast as plain steps.

    More than the drafted tokens and one can't be: then no acceptance makes it pay.

    Valid at one batch and context.

    >>> break_even_tokens(0.02, 0.016)
    1.25
    """
    return round_time / plain_step_time


@equation(source="leviathan2023speculative", yields="time_to_first_token", counts=True)
def drafted_first_token(latency, micro_batches, pipeline_parallel, draft_prefill_time):
    """Time to the first token where a draft reads the prompts, too.

    Assumes that the draft reads them after the model, before tokens are sent.
    Valid for a batch that is started together.

    >>> drafted_first_token(0.5, 3, 4, 0.05)
    0.8
    """
    return (
        latency * (micro_batches + pipeline_parallel - 1) / pipeline_parallel + draft_prefill_time
    )


@equation(source="leviathan2023speculative", yields="logits", counts=True)
def checked_logits(logits, draft_tokens):
    """Scores that a device writes for one sequence where drafted tokens are checked together.

    Valid for an output layer that works on each drafted token, and one more.

    >>> checked_logits(128256, 4)
    641280
    """
    return logits * (draft_tokens + 1)
