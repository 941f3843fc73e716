"""At which lengths of the cache decode is looked at, and what cannot be asked of a service."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import kept
import numpy as np
import pytest
from refusals import answered
from services import NODE, llama

from mlsim import Engine, Hardware, Models
from mlsim.errors import (
    InvalidValueError,
    MlsimError,
    NotMeasuredError,
    UnitError,
    UnknownNameError,
    WrongKindError,
)
from mlsim.solvers.serving.serving import Serving
from mlsim.solvers.serving.steps import (
    STEPS,
    WINDOWED_STEPS,
    check_context,
    decode_contexts,
    filling_share,
)
from mlsim.values import quantity


def mistral(**changes: Any) -> Serving:
    """Serve a model that sees 4,096 tokens, the new one among them, in every layer."""
    arguments = {"model": Models.Mistral_7B, "hardware": "H100", "check_memory": False}
    return Engine.serve(**{**arguments, **changes})


# The steps that the mean is made of.


def test_without_a_window_three_steps_are_looked_at() -> None:
    """The first token comes with the prompt: the others have 100, 101, ... cached.

    An output of one has no step of its own: the one that would follow.
    """
    whole = {9: (100, 103.5, 107), 3: (100, 100.5, 101), 2: (100, 100, 100), 1: (100, 100, 100)}
    for output, expected in whole.items():
        serving = llama(prompt_tokens=100, output_tokens=output)
        assert decode_contexts(serving.service) == dict(zip(STEPS, expected, strict=True))
        assert serving.decode.value("cached_tokens") == expected[1]


@pytest.mark.parametrize(
    ("prompt", "output", "expected", "share"), kept.cases("filling_windows.toml")
)
def test_a_window_that_fills_parts_the_output(
    prompt: int, output: int, expected: list[float], share: float
) -> None:
    serving = mistral(prompt_tokens=prompt, output_tokens=output)
    assert decode_contexts(serving.service) == dict(zip(WINDOWED_STEPS, expected, strict=True))
    assert filling_share(decode_contexts(serving.service)) == share
    # The middle of the output is looked at nevertheless.
    assert serving.decode.value("cached_tokens") == (expected[0] + expected[-1]) / 2


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
    encoder = Engine.serve(model="BERT_Base", hardware="A100")
    assert llama().value("middle_token_time") == llama().decode.value("latency")
    for serving, name, words in (
        (mistral(), "first_token_tme", "Did you mean 'first_token_time'"),
        (llama(), "full_window_time", "no result of a service is called 'full_window_time'"),
        (mistral(), "middle_token_time", "no result of a service is called 'middle_token_time'"),
        (encoder, "first_token_time", "'first_token_time'"),
    ):
        with pytest.raises(UnknownNameError, match=words):
            serving.value(name)
    with pytest.raises(WrongKindError, match="is an encoder"):
        encoder.decode_at(0)


# How many tokens may be cached.


def test_contexts_that_can_be() -> None:
    given: list[tuple[Any, Any]] = [
        *((0, 0.0), (7, 7.0), (np.int64(0), 0.0), (131_071, 131_071.0), ([0, 5], [0.0, 5.0])),
        *((range(3), [0.0, 1.0, 2.0]), ([[0, 1], [2, 3]], [[0.0, 1.0], [2.0, 3.0]])),
        (quantity(10, "token/sample"), 10.0),
        (quantity(np.array([0, 10]), "token/sample"), [0.0, 10.0]),
    ]
    for context, expected in given:
        found = check_context(Models.Llama3_8B, context)
        assert np.array_equal(found, expected)
        assert isinstance(found, np.ndarray) == isinstance(expected, list)


def test_contexts_that_cannot_be() -> None:
    whole, longer = "whole number from 0 up, not ", "131,072 tokens cached and a new one are more"
    cases: list[tuple[Any, str]] = [
        *((each, f"{whole}{each}.") for each in (-1, 1.5, True, False, float("nan"))),
        ("10", f"{whole}the text '10'. Leave out the quotes."),
        ([], "cached_tokens is an empty list; give at least one value."),
        ([5, -1], f"entry 1 of 2: cached_tokens must be a {whole}-1."),
        ([5, None], f"entry 1 of 2: cached_tokens must be a {whole}None."),
        ([[0], [1, 2]], "the entries don't form an array"),
        (np.array([0, 1.5]), "whole numbers from 0 up, but entry 1 is 1.5."),
        (np.array([0, -1]), "whole numbers from 0 up, but entry 1 is -1."),
        (np.array(["1"]), "must hold whole numbers from 0 up, not <U1 values."),
        (131_072, f"{longer} than the context of Llama 3.1 8B, 131,072."),
        ([0, 131_072], f"{longer} than the context of Llama 3.1 8B, 131,072."),
    ]
    for context, words in cases:
        with pytest.raises(InvalidValueError, match=re.escape(words)):
            llama().decode_at(context)


WHOLE = "must be a whole number from 1 up, not "
NAN, INF = float("nan"), float("inf")
# What is no whole number from 1 up, and how it is shown.
NUMBERS = {0: "0.", -1: "-1.", 1.5: "1.5.", INF: "inf.", "8": "the text '8'. Leave out the quotes."}


def test_numbers_that_cannot_be() -> None:
    assert answered(llama, "serving", "numbers") == []
    sizes = ("batch_size", "prompt_tokens", "output_tokens")
    shown = [(name, each, words) for name in sizes for each, words in NUMBERS.items()]
    shown += [(name, each, f"{each}.") for name in sizes for each in (NAN, True, {})]
    layout = [f"{name}_parallel" for name in ("tensor", "pipeline", "data", "expert")]
    numbers: tuple[Any, ...] = (0, -1, 1.0, 2.0, True, "2", None)
    shown += [(name, each, f"{each!r}.") for name in layout for each in numbers]
    for name, given, words in shown:
        with pytest.raises(InvalidValueError, match=re.escape(f"{name} {WHOLE}{words}")):
            llama(**{"hardware": NODE, name: given})


def test_a_question_that_cannot_be() -> None:
    def asked(**given: Any) -> Any:
        return llama(**given | ({"hardware": NODE} if given.get("hardware") == "Node" else {}))

    assert answered(asked, "serving") == []
    wafer = {"estimate": "calibrated", "hardware": Hardware.Wafer.WSE3, "precision": "fp16"}
    lengths = {"prompt_tokens": np.array([512, 1.5])}
    cases: list[tuple[dict[str, Any], type[MlsimError], str]] = [
        (lengths, InvalidValueError, "whole numbers from 1 up, but entry 1 is 1.5."),
        ({"batch_size": quantity(8, "token")}, UnitError, "in token was given where sample is"),
        (wafer, NotMeasuredError, f"needs measurements of {Hardware.Wafer.WSE3.name} that are not"),
        ({"model": Hardware.Cloud.H100}, WrongKindError, "model must be a model such as Models."),
        ({"hardware": Models.Llama3_8B}, WrongKindError, "must be a device such as Hardware.Cloud"),
    ]
    for given, error, words in cases:
        with pytest.raises(error, match=re.escape(words)):
            llama(**given)
    with pytest.raises(WrongKindError, match=r"^Llama 3\.1 8B is a language model, whose work dep"):
        Engine.solve(model="Llama3_8B", hardware="H100")
