"""At which lengths of the cache decode is looked at, and how windows part an output."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from services import llama

from mlsim import Engine, Models
from mlsim.errors import InvalidValueError, UnknownNameError, WrongKindError
from mlsim.solvers.serving import serving as serving_module
from mlsim.solvers.serving.contexts import (
    STEPS,
    WINDOWED_STEPS,
    check_context,
    decode_contexts,
    filling_share,
)
from mlsim.solvers.serving.serving import Serving
from mlsim.values import quantity


def mistral(**changes: Any) -> Serving:
    """Serve a model that sees 4,096 tokens, the new one among them, in every layer."""
    arguments = {"model": Models.Mistral_7B, "hardware": "H100", "check_memory": False}
    return Engine.serve(**{**arguments, **changes})


# The steps that the mean is made of.


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        # The first token comes with the prompt: the others have 100, 101, ... cached.
        (9, (100, 103.5, 107)),
        (3, (100, 100.5, 101)),
        (2, (100, 100, 100)),
        # No step of its own: the one that would follow.
        (1, (100, 100, 100)),
    ],
)
def test_without_a_window_three_steps_are_looked_at(
    output: int, expected: tuple[float, ...]
) -> None:
    serving = llama(prompt_tokens=100, output_tokens=output)
    assert decode_contexts(serving.service) == dict(zip(STEPS, expected, strict=True))
    assert serving.decode.value("cached_tokens") == expected[1]


@pytest.mark.parametrize(
    ("prompt", "output", "expected", "share"),
    [
        # Never full, full from the start, or filled on the way: with 4,095 tokens cached.
        (100, 102, (100, 150, 200, 200, 200), 1),
        (5000, 102, (5000, 5000, 5000, 5050, 5100), 0),
        (4000, 1002, (4000, 4047.5, 4095, 4547.5, 5000), 0.095),
        # Just full at the first step, or at the last.
        (4095, 12, (4095, 4095, 4095, 4100, 4105), 0),
        (4096, 12, (4096, 4096, 4096, 4101, 4106), 0),
        (4085, 12, (4085, 4090, 4095, 4095, 4095), 1),
        # A single step.
        (100, 2, (100,) * 5, 0),
        (100, 1, (100,) * 5, 0),
        (5000, 1, (5000,) * 5, 0),
    ],
)
def test_a_window_that_fills_parts_the_output(
    prompt: int, output: int, expected: tuple[float, ...], share: float
) -> None:
    serving = mistral(prompt_tokens=prompt, output_tokens=output)
    assert decode_contexts(serving.service) == dict(zip(WINDOWED_STEPS, expected, strict=True))
    assert filling_share(serving.service) == share
    # The middle of the output is looked at nevertheless.
    assert serving.decode.value("cached_tokens") == (expected[0] + expected[-1]) / 2


@given(
    st.sampled_from([Models.Mistral_7B, Models.Gemma2_9B, Models.Gemma3_27B, Models.GPT_OSS_20B]),
    st.integers(1, 4500),
    st.integers(1, 3500),
)
def test_the_steps_are_in_order(model: Any, prompt: int, output: int) -> None:
    service = mistral(model=model, prompt_tokens=prompt, output_tokens=output).service
    found = list(decode_contexts(service).values())
    assert found == sorted(found)
    assert found[0] == prompt
    assert found[-1] == max(prompt + output - 2, prompt)
    # Where it is within the output, the third is the step that fills the window.
    assert found[2] == min(max(model.attention.window - 1, found[0]), found[-1])
    share = filling_share(service)
    assert 0 <= share <= 1
    assert share * (found[-1] - found[0]) == pytest.approx(found[2] - found[0])


def test_many_outputs_are_parted_each_for_itself() -> None:
    prompts, outputs = np.array([[100], [4000], [5000]]), np.array([1, 2, 102, 1002, 3000])
    service = mistral(prompt_tokens=prompts, output_tokens=outputs).service
    together, share = decode_contexts(service), filling_share(service)
    assert tuple(together) == WINDOWED_STEPS
    for index in np.ndindex(3, 5):
        prompt, output = int(prompts[index[0], 0]), int(outputs[index[1]])
        alone = mistral(prompt_tokens=prompt, output_tokens=output).service
        for name, cached in decode_contexts(alone).items():
            assert np.broadcast_to(together[name], (3, 5))[index] == cached
        assert share[index] == filling_share(alone)


def test_the_mean_of_a_filling_window_by_its_parts() -> None:
    """Batch 1 waits for memory throughout: time grows in a straight line, and stops.

    95 steps of 1,001 fill the window, and take half of what it adds, on average.
    """
    serving = mistral(prompt_tokens=4000, output_tokens=1002)
    first, full = (serving.value(name) for name in ("first_token_time", "full_window_time"))
    assert serving.value("filling_token_time") == pytest.approx((first + full) / 2, rel=1e-12)
    assert serving.value("later_token_time") == pytest.approx(full, rel=1e-12)
    assert serving.value("last_token_time") == pytest.approx(full, rel=1e-12)
    expected = 0.095 * (first + full) / 2 + 0.905 * full
    assert serving.value("time_per_output_token") == pytest.approx(expected, rel=1e-12)
    steps = serving.decode_at(np.arange(4000, 5001)).value("latency")
    assert steps.mean() == pytest.approx(expected, rel=1e-6)
    # Without its window, the same model takes longer, step by step.
    attention = dataclasses.replace(Models.Mistral_7B.attention, window=0)
    seeing = dataclasses.replace(Models.Mistral_7B, attention=attention)
    without = mistral(model=seeing, prompt_tokens=4000, output_tokens=1002)
    assert without.value("first_token_time") == pytest.approx(first, rel=1e-12)
    assert without.value("time_per_output_token") > expected


def test_steps_are_results_of_the_models_that_have_them() -> None:
    assert llama().value("middle_token_time") == llama().decode.value("latency")
    with pytest.raises(UnknownNameError, match="Did you mean 'first_token_time'"):
        mistral().value("first_token_tme")
    for serving, name in ((llama(), "full_window_time"), (mistral(), "middle_token_time")):
        with pytest.raises(UnknownNameError, match=f"no result of a service is called '{name}'"):
            serving.value(name)
    encoder = Engine.serve(model="BERT_Base", hardware="A100")
    with pytest.raises(UnknownNameError, match="'first_token_time'"):
        encoder.value("first_token_time")
    with pytest.raises(WrongKindError, match="is an encoder"):
        encoder.decode_at(0)


# How many tokens may be cached.


def test_an_empty_cache_can_be_asked_for() -> None:
    serving = llama(prompt_tokens=1)
    assert serving.decode_at(0).value("latency") == pytest.approx(
        serving.value("time_to_first_token"), rel=1e-12
    )
    many = serving.decode_at([0, 1, 100])
    for index, cached in enumerate([0, 1, 100]):
        assert many.value("latency")[index] == pytest.approx(
            serving.decode_at(cached).value("latency"), rel=1e-12
        )


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (0, 0.0),
        (0.0, 0.0),
        (7, 7.0),
        (np.int64(0), 0.0),
        (131_071, 131_071.0),
        ([0, 5], [0.0, 5.0]),
        (range(3), [0.0, 1.0, 2.0]),
        (np.array([0.0, 3.0]), [0.0, 3.0]),
        ([[0, 1], [2, 3]], [[0.0, 1.0], [2.0, 3.0]]),
        (quantity(10, "token/sample"), 10.0),
        (quantity(np.array([0, 10]), "token/sample"), [0.0, 10.0]),
    ],
    ids=repr,
)
def test_contexts_that_can_be(context: object, expected: object) -> None:
    found = check_context(Models.Llama3_8B, context)
    assert np.array_equal(found, expected)
    assert isinstance(found, np.ndarray) == isinstance(expected, list)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (-1, "cached_tokens must be a whole number from 0 up, not -1."),
        (1.5, "cached_tokens must be a whole number from 0 up, not 1.5."),
        (True, "cached_tokens must be a whole number from 0 up, not True."),
        (False, "cached_tokens must be a whole number from 0 up, not False."),
        (float("nan"), "cached_tokens must be a whole number from 0 up, not nan."),
        (
            "10",
            (
                "cached_tokens must be a whole number from 0 up, not the text '10'. "
                "Leave out the quotes."
            ),
        ),
        ([], "cached_tokens is an empty list; give at least one value."),
        ([5, -1], "entry 1 of 2: cached_tokens must be a whole number from 0 up, not -1."),
        ([5, None], "entry 1 of 2: cached_tokens must be a whole number from 0 up, not None."),
        (
            np.array([0, 1.5]),
            "cached_tokens must hold whole numbers from 0 up, but entry 1 is 1.5.",
        ),
        (np.array([0, -1]), "cached_tokens must hold whole numbers from 0 up, but entry 1 is -1."),
        (np.array(["1"]), "cached_tokens must hold whole numbers from 0 up, not <U1 values."),
        (
            131_072,
            (
                "131,072 tokens cached and a new one are more than the context of Llama 3.1 8B, "
                "131,072."
            ),
        ),
        (
            [0, 131_072],
            (
                "131,072 tokens cached and a new one are more than the context of Llama 3.1 8B, "
                "131,072."
            ),
        ),
    ],
    ids=lambda each: repr(each)[:30],
)
def test_contexts_that_cannot_be(context: object, message: str) -> None:
    with pytest.raises(InvalidValueError) as e:
        llama().decode_at(context)
    assert str(e.value) == message


def test_a_ragged_list_of_contexts() -> None:
    with pytest.raises(InvalidValueError, match="cached_tokens: the entries don't form an array"):
        llama().decode_at([[0], [1, 2]])


def test_a_context_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [llama().decode_at(cached).value("latency") for cached in (0, 100)]
    monkeypatch.setattr("mlsim.solvers.question.ARRAYS", False)
    monkeypatch.setattr(serving_module, "ARRAYS", False)
    found = [llama().decode_at(cached).value("latency") for cached in (0, 100)]
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_model_that_was_extended_may_cache_more() -> None:
    model = Models.Llama2_7B
    serving = Engine.serve(model=model, hardware="A100")
    last = serving.decode_at(4095).value("latency")
    with pytest.raises(InvalidValueError, match="more than the context of Llama 2 7B, 4,096"):
        serving.decode_at(4096)
    extended = dataclasses.replace(model, context=32_768)
    longer = Engine.serve(model=extended, hardware="A100")
    assert longer.decode_at(4095).value("latency") == last
    assert longer.decode_at(20_000).value("latency") > last
