"""The doors: what is imported when, and one set of defaults."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import MISSING, fields
from typing import Any

import pytest

from mlsim import Engine
from mlsim.solvers.serving.validate import service
from mlsim.solvers.training.validate import Asked

QUESTIONS = (
    *("solve", "serve", "train", "footprint", "fit", "find", "sweep", "sensitivity"),
    *("optimal_size", "check_claim", "calibrate", "load", "plan", "gemm", "compare_formats"),
)


def defaults(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def test_every_question_is_there_and_documented() -> None:
    assert [name for name in vars(Engine) if not name.startswith("_")] == list(QUESTIONS)
    for name in QUESTIONS:
        question = getattr(Engine, name)
        assert question.__name__ == name
        assert question.__doc__
        assert getattr(Engine(), name) is question


def test_a_question_is_imported_when_it_is_first_asked() -> None:
    program = (
        "import json, sys\n"
        "from mlsim import Engine\n"
        "before = 'mlsim.engine.serve' in sys.modules\n"
        "Engine.serve\n"
        "after = 'mlsim.engine.serve' in sys.modules\n"
        "print(json.dumps([before, after, 'mlsim.engine.train' in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [False, True, False]


def test_a_training_run_has_the_defaults_of_its_door() -> None:
    own = {each.name: each.default for each in fields(Asked) if each.default is not MISSING}
    door = defaults(Engine.train)
    assert {name: door[name] for name in own} == own
    assert set(door) - set(own) == {"search", "check_memory"}


def test_a_service_has_the_defaults_of_its_door() -> None:
    own, door = defaults(service), defaults(Engine.serve)
    for name in ("block_tokens", "chunk_tokens", "reserve", "estimate"):
        assert own[name] == door[name]


def test_what_is_no_argument_of_a_run_overrides_a_quantity() -> None:
    asked = Asked.of(model=None, hardware=None, global_batch=8, hop_latency="1 us")
    assert asked.global_batch == 8
    assert asked.given == {"hop_latency": "1 us"}
    assert asked.recompute == "selective"


@pytest.mark.parametrize("room", ["equations", "plots", "solvers", "workloads"])
def test_a_room_has_no_other_names(room: str) -> None:
    module = __import__(f"mlsim.{room}", fromlist=["x"])
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'no_such'"):
        module.no_such  # noqa: B018
