"""The doors: what is imported when, and one set of defaults."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from mlsim import Engine
from mlsim.solvers.serving.checks import configured, requested
from mlsim.solvers.training.checks import Asked

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
    program = "import sys; from mlsim import Engine; there = lambda door: door in sys.modules; "
    program += "print(there('mlsim.engine.serve'), Engine.serve and there('mlsim.engine.serve'), "
    program += "there('mlsim.engine.train'))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False True False\n"


def test_a_run_and_a_service_have_the_defaults_of_their_doors() -> None:
    own, door = vars(Asked.of()), defaults(Engine.train)
    assert {name: own[name] for name in door.keys() - {"search", "check_memory"}} == {
        name: usual for name, usual in door.items() if name not in ("search", "check_memory")
    }
    served, door = defaults(configured) | defaults(requested), defaults(Engine.serve)
    for name in ("block_tokens", "chunk_tokens", "reserve", "estimate"):
        assert served[name] == door[name]
    # What another door takes, too, it has from there, but for these.
    others = {"load": "output_tokens", "plan": "output_tokens estimate"}
    others |= {"fit": "tensor_parallel", "check_claim": "batch_size prompt_tokens"}
    for name, own in others.items():
        there = defaults(getattr(Engine, name))
        assert {each for each in there.keys() & door if there[each] != door[each]} == {*own.split()}


def test_a_room_has_no_other_names() -> None:
    for room in ("equations", "plots", "solvers", "workloads"):
        module = import_module(f"mlsim.{room}")
        assert all(getattr(module, name) is not None for name in module.__all__)
        with pytest.raises(AttributeError, match="has no attribute 'no_such'"):
            module.no_such  # noqa: B018
