"""Results as attributes: each is a name of the vocabulary, typed, and to be had of an answer."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mlsim
from mlsim import Engine
from mlsim.errors import InvalidValueError, MlsimError
from mlsim.quantities import VOCABULARY, term
from mlsim.solvers.answer import Answer
from mlsim.systems import PrefillPool
from mlsim.units import factor
from mlsim.values import counts
from mlsim.values.attributes import count, result
from mlsim.values.kinds import Plain, Quantity
from mlsim.workloads import Speculation
from mlsim_book.docstrings import reference

SERVED: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100", "prompt_tokens": 512}
NODE: dict[str, Any] = {"model": "Llama3_8B", "hardware": "HGX_H100", "prompt_tokens": 512}
TRAINED: dict[str, Any] = {
    "model": "Llama3_8B", "hardware": "HGX_H100", "global_batch": 64, "devices": 8,
    "shard": "zero3", "recompute": "full", "tokens": 1e12, "price": "2 USD/h",
    "mean_time_to_failure": "50000 h", "checkpoint_bandwidth": "10 GB/s", "restart_time": "5 min",
}  # fmt: skip


def examples() -> dict[str, Any]:
    """Return an answer of each kind, with all that it can know."""
    service = Engine.serve(**SERVED)
    pooled = {"prefill": PrefillPool(copies=2)}
    run = Engine.train(**TRAINED)
    loaded = Engine.load(**SERVED, rate=5, requests=60)
    split = Engine.load(**NODE, rate=5, requests=60, **pooled)
    return {
        "Profile": Engine.solve(model="ResNet50", hardware="A100"),
        "calibrated Profile": Engine.solve(
            model="ResNet50", hardware="A100", estimate="calibrated"
        ),
        "Serving": service,
        "SplitServing": Engine.serve(**NODE, batch_size=8, **pooled),
        "StepProfile": service.decode,
        "Training": run,
        "NetworkTraining": Engine.train(
            model="ResNet50", hardware="A100", global_batch=64, samples=1e8, price="2 USD/h"
        ),
        "Footprint": Engine.footprint(
            run, grid="Sweden", data_centre="AWS", host=False, lifetime_use=0.5
        ),
        "LoadedService": loaded,
        "Steady": loaded.steady,
        "SplitLoadedService": split,
        "SplitSteady": split.steady,
        "Gemm": Engine.gemm(512, 512, 512, hardware="H100", recipe="fp8_rowwise"),
        "Speculated": Engine.serve(
            **SERVED, speculation=Speculation(cost=0.1, tokens=4, acceptance=0.75)
        ).speculation,
        "OptimalSize": Engine.optimal_size(training_flops="1e24 FLOP"),
    }


def results_of(cls: type) -> dict[str, result]:
    """Return the results that a class has as attributes, inherited ones too."""
    return {
        name: each
        for base in reversed(cls.__mro__)
        for name, each in vars(base).items()
        if isinstance(each, result)
    }


def kinds(cls: type = Answer) -> Iterator[type]:
    for each in cls.__subclasses__():
        yield each
        yield from kinds(each)


EXAMPLES = examples()
# What these examples have no use for, and refuse.
REFUSED = {
    "Profile": {"overhead_share", "last_level_cache"},
    "calibrated Profile": {"last_level_cache"},
    "NetworkTraining": {
        "token_rate", "step_tokens", "output_share", "trained_parameters", "trained_share",
        "run_tokens_per_parameter", "saved_memory", "working_memory",
        "failure_interval", "checkpoint_interval", "training_flops",
    },
    "Steady": {"burst_first_token"},
    "SplitSteady": {
        "steady_first_token", "saturation_rate", "saturation_share", "burst_first_token"
    },
}  # fmt: skip
# Of each operator, where several kinds of them run.
ARRAYS = {"weight_bytes"}


def test_each_kind_of_answer_with_results_has_an_example() -> None:
    shown = {type(each) for each in EXAMPLES.values()}
    missing = {each.__name__ for each in kinds() if results_of(each)} - {
        base.__name__ for each in shown for base in each.__mro__
    }
    assert missing == set()


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_result_is_typed_and_is_what_value_gives(kind: str) -> None:
    answer = EXAMPLES[kind]
    found = results_of(type(answer))
    assert found
    refused = REFUSED.get(kind, set())
    for name, attribute in found.items():
        if name in refused:
            with pytest.raises(MlsimError):
                getattr(answer, name)
        elif name not in ARRAYS:
            value, unit = getattr(answer, name), term(name).unit
            assert isinstance(value, Quantity), name
            assert value.si == pytest.approx(answer.value(name), rel=1e-12), name
            assert factor(value.base, unit) == 1, name
            plain = isinstance(value, Plain)
            assert plain is isinstance(attribute, count) is counts(unit), name
            assert value.name == name.replace("_", " ")
            assert (attribute.__doc__ or "").endswith("."), name


def test_their_names_are_the_vocabularys() -> None:
    for each in kinds():
        own = {name for name in results_of(each) if name not in VOCABULARY}
        # What a run under load measures has words of its own.
        assert own <= set(getattr(each, "own_terms", ())) or each.__name__.endswith(
            "LoadedService"
        ), (each.__name__, own)


def test_the_reference_lists_them() -> None:
    for kind in ("Profile", "Serving", "Training", "Footprint"):
        text = reference(kind, type(EXAMPLES[kind]))
        for name, attribute in results_of(type(EXAMPLES[kind])).items():
            assert name in text, name
            assert " ".join(str(attribute.__doc__).split())[:40] in " ".join(text.split()), name


def test_help_tells_what_it_is() -> None:
    latency = inspect.getattr_static(mlsim.Profile, "latency")
    assert inspect.getdoc(latency)
    assert latency.fget.__annotations__ == {"return": "Quantity"}
    assert inspect.getattr_static(mlsim.Profile, "throughput").fget.__annotations__ == {
        "return": "Plain"
    }


def test_an_index_is_no_name() -> None:
    """There is one way to a result."""
    for kind, answer in EXAMPLES.items():
        if hasattr(answer, "__getitem__"):
            with pytest.raises(InvalidValueError, match=r"a result is an attribute, such as \.\w+"):
                answer["latency"]
        assert kind


TYPED = """
from mlsim import Engine, Hardware, given
from mlsim.values.kinds import Quantity
from mlsim.values.kinds import Plain

profile = Engine.solve(model="ResNet50", hardware="A100")
time: Quantity = profile.latency
rate: float = profile.throughput
most: float = Engine.serve(model="Llama3_8B", hardware="H100").largest_batch
plain: Plain = profile.memory_bound_share
wide: Quantity = Hardware.Cloud.A100.memory.bandwidth
mine: Quantity = given(3, "x").named("y", because="z").show(".1f", "ms")
wrong: int = profile.latency
wrong = profile.throughput.magnitud
number: float = profile.latency
_ = profile.latensy
"""


def test_a_checker_of_types_knows_them(tmp_path: Path) -> None:
    """It accepts the first lines, and refuses each of the last four."""
    pytest.importorskip("mypy")
    file = tmp_path / "typed.py"
    file.write_text(TYPED, encoding="utf-8")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(root / "mypy.ini"), "--no-pretty",
         "--no-error-summary", str(file)],
        capture_output=True, text=True, check=False, cwd=root,
    )  # fmt: skip
    first = TYPED.splitlines().index("wrong: int = profile.latency") + 1
    lines = sorted(
        {int(each.split(":")[1]) for each in done.stdout.splitlines() if ": error" in each}
    )
    assert lines == [first, first + 2, first + 3] or lines == list(range(first, first + 4)), (
        done.stdout + done.stderr
    )
