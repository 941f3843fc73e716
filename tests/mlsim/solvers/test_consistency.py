"""What is given may take the place of data; it may not contradict what was asked, or what can be."""

from __future__ import annotations

import math
import random
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest
from refusals import answered

from mlsim import Engine
from mlsim.errors import DoesNotFitError, InvalidValueError, MlsimError
from mlsim.parameters import COUNTS
from mlsim.quantities import VOCABULARY, term
from mlsim.solvers.forward.configuration import GIVABLE
from mlsim.solvers.forward.profile import kind_of
from mlsim.solvers.question import check_consistent, check_shares
from mlsim.solvers.serving.steps import SERVING_GIVABLE
from mlsim.solvers.training.equations import TRAINING_GIVABLE, equations_for

SOLVE = {"model": "ResNet50", "hardware": "A100", "batch_size": 8}
SERVE = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 4}
TRAIN = {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 8}
TRAIN |= {"shard": "zero3", "recompute": "full"}
LARGER = {**TRAIN, "global_batch": 64, "tokens": 1e12}


def test_a_run_or_a_service_is_not_asked_for_twice() -> None:
    """Each by hand: 8 / (8 x 1) = 1 micro-batch; 1 x 4096 / 1 tokens; min(1, 1) in flight."""
    for ask, asked, shown, cases in (
        (
            *(Engine.train, TRAIN, "step_time"),
            {"micro_batches": (1, 2), "device_tokens": (4096, 2048), "in_flight": (1, 2),
             "pipeline_sends": (2, 4)},
        ),
        (
            *(Engine.serve, SERVE, "generation_latency"),
            {"device_batch": (4, 2), "resident_batch": (4, 3), "micro_batches": (1, 2)},
        ),
    ):  # fmt: skip
        plain = ask(**asked).value(shown)
        for name, (agrees, differs) in cases.items():
            assert ask(**asked, **{name: agrees}).value(shown) == plain
            with pytest.raises(
                InvalidValueError, match=f"^{name} = {differs:,}.* contradicts"
            ) as e:
                ask(**asked, **{name: differs})
            assert f"leave {name} out, or change one of these." in str(e.value)


def test_what_nothing_given_leads_to_may_be_given() -> None:
    given = {"checkpoint_interval": "1 h", "mean_time_to_failure": "50000 h"}
    given |= {"checkpoint_bandwidth": "100 GB/s", "restart_time": "10 min"}
    # Its size is the model's, so the interval is no contradiction.
    assert Engine.train(**LARGER, **given).value("checkpoint_interval") == 3600


def test_tokens_in_the_cache_follow_from_the_request() -> None:
    # 512 + 128 tokens in blocks of 16 are 640; in blocks of 96, 7 blocks, 672.
    assert Engine.serve(**SERVE, cache_tokens=640).value("cache_tokens") == 640
    assert Engine.serve(**SERVE, cache_tokens=672, block_tokens=96).value("cache_tokens") == 672


def test_what_follows_over_several_steps_counts() -> None:
    # 64 / (8 x 1) = 8 micro-batches, so that 8 x 0.1 s of stages are 0.8 s.
    assert Engine.train(**LARGER, stage_time="0.8 s", steady_time="6.4 s").value("steady_time")


def test_what_contradicts_is_refused_and_says_what_to_do() -> None:
    """A part in a thousand is no rounding, in any door."""
    for door, asked in ((Engine.solve, SOLVE), (Engine.serve, SERVE), (Engine.train, LARGER)):
        wrong = answered(lambda door=door, asked=asked, **given: door(**{**asked, **given}),
                         "consistent", door.__name__)  # fmt: skip
        assert wrong == []


def test_only_rounding_is_forgiven() -> None:
    equations = equations_for(frozenset({"causal"}), "ring")
    fixed = {"global_batch": 64.0, "data_parallel": 8.0, "micro_batch": 1.0}
    for wrong, refused in (
        (8 + 7e-9, False),
        (8 + 9e-9, True),
        (8 - 7e-9, False),
        (8 - 9e-9, True),
    ):
        with pytest.raises(InvalidValueError, match="micro_b") if refused else nullcontext():
            check_consistent(equations, {"micro_batches": wrong}, fixed)
    # Of a share, too; of several points each counts, and what can't be computed is none.
    for share, refused in (
        *((1 + 0.9e-9, False), (1 + 1.1e-9, True), (-0.9e-9, False), (-1.1e-9, True)),
        *((np.array([0.5, 1.5]), True), (np.array([-0.5, 0.5]), True), (np.array([0, 1]), False)),
        (math.nan, False),
    ):
        with pytest.raises(InvalidValueError, match="a share l") if refused else nullcontext():
            check_shares({"memory_bound_share": share}, {"latency": 1.0})
    Engine.solve(**{**SOLVE, "batch_size": [1, 2]}, latency="1 s", throughput=[1, 2])


def test_a_higher_peak_explains_a_shorter_step() -> None:
    # Half of the peak of twice the rate.
    plain = Engine.train(**LARGER)
    fast = Engine.train(**LARGER, peak_flops=2 * plain.device.compute.peak("bf16"))
    assert fast.value("peak_rate") == 2 * plain.value("peak_rate")
    assert fast.model_flops_utilization < 1
    inputs = fast.explain("model_flops_utilization").to_dict()["inputs"]
    origins = {each["quantity"]: each["origin"] for each in inputs}
    assert origins["peak_rate"] == "given, as peak_flops"


@pytest.mark.parametrize("estimate", ["roofline", "bound", "calibrated"])
def test_no_share_is_above_1(estimate: str) -> None:
    with pytest.raises(InvalidValueError, match=r"memory_bound_share would be .* between 0 and 1"):
        Engine.solve(**{**SOLVE, "batch_size": 1}, estimate=estimate, memory_bound_time="1 s")
    with pytest.raises(InvalidValueError, match="memory_bound_share would be"):
        Engine.serve(**SERVE, estimate=estimate, memory_bound_time="1 s")
    # What was measured may well be slower than an estimate.
    slow = Engine.solve(**SOLVE, estimate=estimate, latency="1 s")
    assert slow.value("throughput") == 8


MEASURED = {**SOLVE, "estimate": "calibrated"}
DOORS = {
    "solve": (Engine.solve, SOLVE, GIVABLE),
    "calibrated solve": (Engine.solve, MEASURED, kind_of("calibrated").givable),
    "serve": (Engine.serve, SERVE, SERVING_GIVABLE),
    "train": (Engine.train, LARGER, TRAINING_GIVABLE),
}


@pytest.mark.parametrize("door", DOORS)
def test_counts_are_whole_numbers_and_shares_at_most_1(door: str) -> None:
    ask, arguments, names = DOORS[door]
    for name in sorted(COUNTS & set(names)):
        for value in (0, -1, 1.5, math.nan, math.inf, -math.inf, True, "2"):
            words = f"{name} must be a whole number from 1 up, not"
            with pytest.raises(InvalidValueError, match=words):
                ask(**arguments, **{name: value})
    for name in (each for each in names if term(each).share):
        words = f"{name} is a share: it must be at most 1, not 2"
        with pytest.raises(InvalidValueError, match=words):
            ask(**arguments, **{name: 2})


def shares(answer: Any) -> list[float]:
    """Return the least and the most of every share that an answer tells."""
    found: list[float] = []
    for part in (answer, getattr(answer, "prefill", None), getattr(answer, "decode", None)):
        for name in (each.name for each in VOCABULARY.values() if each.share):
            with suppress(MlsimError, AttributeError):
                value = np.asarray(part.value(name))
                found += [value.min(), value.max()]
    return found


@pytest.mark.parametrize("door", DOORS)
def test_any_override_is_refused_or_answered_within_what_can_be(door: str) -> None:
    """Of each quantity, values from far too small to far too large."""
    chance = random.Random(15)
    ask, arguments, names = DOORS[door]
    answered = refused = 0
    for name in names:
        unit = "" if term(name).unit in ("1", "sample", "sample/s", "token", "token/sample") else 1
        value = 10 ** chance.uniform(-9, 15)
        value = round(value) or 1 if name in COUNTS else value
        given: Any = f"{value} {term(name).unit}" if unit else value
        try:
            answer = ask(**arguments, **{name: given}, check_memory=False)
            found = shares(answer)
        except (InvalidValueError, DoesNotFitError):
            refused += 1
            continue
        answered += 1
        assert all(-1e-9 <= share <= 1 + 1e-9 for share in found), (name, given, found)
    assert answered
    assert refused
