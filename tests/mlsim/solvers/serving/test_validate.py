"""Questions about a service that can't be."""

from __future__ import annotations

from typing import Any

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
from mlsim.values import quantity

WHOLE = "must be a whole number from 1 up, not "
NAN, INF = float("nan"), float("inf")
# What is no whole number from 1 up, and how it is shown.
NUMBERS = {0: "0.", -1: "-1.", 1.5: "1.5.", INF: "inf.", "8": "the text '8'. Leave out the quotes."}


def unmet(cases: list[tuple[dict[str, Any], type[MlsimError], str]]) -> list[str]:
    """Return those that are not refused by an error of this kind, with these words in it."""
    found = []
    for given, kind, words in cases:
        with pytest.raises(MlsimError) as refused:
            llama(**given)
        if not (isinstance(refused.value, kind) and words in str(refused.value)):
            found.append(f"{given}: {refused.value!r}")
    return found


def test_numbers_that_cannot_be() -> None:
    sizes = ("batch_size", "prompt_tokens", "output_tokens")
    shown = [(name, each, words) for name in sizes for each, words in NUMBERS.items()]
    shown += [(name, each, f"{each}.") for name in sizes for each in (NAN, True, {})]
    layout = [f"{name}_parallel" for name in ("tensor", "pipeline", "data", "expert")]
    numbers: tuple[Any, ...] = (0, -1, 1.0, 2.0, True, "2", None, [1, 2])
    shown += [(name, each, f"{each!r}.") for name in layout for each in numbers]
    shown += [
        ("block_tokens", 0, "0."),
        ("chunk_tokens", 2.5, "2.5."),
        ("batch_size", None, "None."),
    ]
    cases: list[tuple[dict[str, Any], type[MlsimError], str]] = [
        ({"hardware": NODE, name: each}, InvalidValueError, f"{name} {WHOLE}{words}")
        for name, each, words in shown
    ]
    reserved = "reserve must be a share of at least 0 and below 1, such as 0.1; not "
    cases += [
        ({"reserve": each}, InvalidValueError, f"{reserved}{each!r}.")
        for each in (1, 1.5, -0.1, NAN, True, "0.1", None, [0.1])
    ]
    unknown = ("memory_bandwith", "temperature", "first_token_time", "latency", "tokens")
    cases += [
        ({name: "1 s"}, UnknownNameError, f"no argument or quantity is called '{name}'")
        for name in unknown
    ]
    assert not unmet(cases)


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
    assert not unmet(cases)
    with pytest.raises(WrongKindError, match=r"^Llama 3\.1 8B is a language model, whose work dep"):
        Engine.solve(model="Llama3_8B", hardware="H100")
