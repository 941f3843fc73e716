"""`Engine.load` and `mlsim load` as a stranger uses them, and what they refuse."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import kept
import pytest
from refusals import answered
from sampled import sampled

from mlsim import Engine, LoRA
from mlsim.cli import main
from mlsim.errors import DataFileError, InvalidValueError
from mlsim.solvers.arrivals.results import TIMES
from mlsim.systems.schedulers import scheduler
from mlsim.workloads.lengths import lengths
from mlsim.workloads.traces import read_trace
from mlsim.zoo import resolve

ASKED: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100"}


def test_what_cannot_be_is_refused() -> None:
    assert answered(lambda **given: Engine.load(**(ASKED | given)), "load") == []
    with pytest.raises(InvalidValueError, match="whole number from 1"):
        Engine.load(**ASKED, rate=1, adapters=LoRA(rank=8), adapter_count=-1)


TRACE = "arrived,prompt_tokens,output_tokens\n0,100,10\n0.5,200,20\n2,50,1\n"


def test_a_trace_with_a_hole_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    for text, words in (
        ("", "line 1"),
        ("a,b\n1,2\n", "line 1"),
        ("arrived,prompt_tokens,output_tokens\n", "without requests"),
        *((TRACE.replace("200,20", each), "line 3") for each in (",20", "200")),
        *((TRACE.replace("0.5", each), "line 3") for each in ("soon", "nan")),
        (TRACE.replace("2,50", "0.1,50"), "line 4: arrives before"),
        *((TRACE.replace("50,1", each), "line 4") for each in ("50,0", "50,1.5", "-50,1")),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataFileError, match=words):
            read_trace(path)


def test_a_trace_is_read_under_its_names(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE, encoding="utf-8")
    found = read_trace(path)
    assert found.arrived.tolist() == [0, 0.5, 2]
    azure = tmp_path / "azure.csv.gz"
    with gzip.open(azure, "wt", encoding="utf-8") as file:
        file.write("TIMESTAMP,ContextTokens,GeneratedTokens\n")
        file.write("2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n")
    found = read_trace(azure)
    assert found.arrived.tolist() == pytest.approx([0, 4.314579], abs=1e-5)
    assert found.output_tokens.tolist() == [44, 109]
    loaded = Engine.load(**ASKED, trace=path)
    assert loaded.value("answered_requests") == 3


def test_a_trace_that_is_no_text_is_refused(tmp_path: Path) -> None:
    for name, content in (("a.csv", b"\xff\xfe\x00"), ("a.csv.gz", b"no gzip")):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataFileError, match="no CSV"):
            read_trace(path)


def test_lengths_have_the_mean_that_they_say() -> None:
    import numpy as np

    random = np.random.default_rng(0)
    for text, mean in (
        ("300", 300),
        ("uniform 100 900", 500),
        ("exponential 512", 512),
        ("lognormal 512 0.8", 512),
    ):
        found = lengths(text)
        assert found.mean == mean
        drawn = found.draw(40_000, random)
        assert drawn.mean() == pytest.approx(mean, rel=0.03)
        assert drawn.min() >= 1
    spread = lengths("lognormal 512 0.8").draw(40_000, random)
    assert spread.std() / spread.mean() == pytest.approx(0.8, rel=0.05)


def test_the_command_prints_what_the_engine_says(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["load", "Llama3_8B", "H100", "--rate", "5", "--requests", "200", "--seed", "2"]
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    loaded = Engine.load(**ASKED, rate=5, requests=200, seed=2)
    assert told["time_to_first_token_p90"]["value"] == loaded.value("time_to_first_token_p90")
    assert told["closed_form"]["saturation_rate"]["unit"] == "1/s"
    assert set(told) >= {*TIMES, "server_use", "request_rate", "saturation_rate", "run_span"}
    assert main([*arguments, "--explain", "saturation_rate"]) == 0
    assert "running_limit" in capsys.readouterr().out
    assert main(arguments) == 0
    assert "saturates" in capsys.readouterr().out


def test_the_text_of_a_prompt_takes_the_host_its_time() -> None:
    """8,000 tokens at 3.5 us each are 28 ms, and the call; a lone user waits for both."""
    asked = {"model": "Llama3_8B", "hardware": "H100", "users": 1, "requests": 1}
    asked |= {"prompt_tokens": 8000, "output_tokens": 8, "estimate": "calibrated"}
    loaded = Engine.load(**asked, software="vllm")
    way = loaded.loaded.of_software("call_time") + 8000 * 3.5e-6
    read = loaded.loaded.typical.lone_prompt_time
    assert loaded.value("time_to_first_token") == pytest.approx(way + read)
    bare = Engine.load(**asked, software="kernels")
    assert bare.loaded.paths(bare.loaded.requests) == [0.0]


def test_an_engine_sets_its_own_limits_by_device() -> None:
    """vLLM runs 1,024 where a driver lists 70 GiB or more, but on an A100, and 256 elsewhere."""
    found = {
        name: scheduler("vllm").on(resolve.device(name))
        for name in ("H100", "H200", "MI300X", "A100", "L40S")
    }
    limits = {name: (rule.running_limit, rule.tokens_per_step) for name, rule in found.items()}
    large = dict.fromkeys(("H100", "H200", "MI300X"), (1024, 8192))
    assert limits == large | {"A100": (256, 2048), "L40S": (256, 2048)}
    # Back on a smaller device it has the smaller ones; what somebody sets stands on each.
    assert found["H100"].on(resolve.device("A100")) == found["A100"]
    given = scheduler("vllm").with_limits(running_limit=9)
    assert {given.on(resolve.device(name)).running_limit for name in limits} == {9}


@pytest.mark.parametrize(("given", "first"), kept.cases("held_back.toml"))
def test_whatever_binds_is_named(given: dict[str, Any], first: str) -> None:
    loaded = Engine.load(**(ASKED | given))
    told = [*loaded.held_back, ""]
    assert first in told[0]
    assert bool(first) == ("  limit " in str(loaded))


@pytest.mark.parametrize(
    ("given", "kept_form", "left", "why"), kept.cases("closed_forms_left_out.toml")
)
def test_a_closed_form_that_does_not_hold_is_not_shown(
    given: dict[str, Any], kept_form: str, left: str, why: str
) -> None:
    loaded = Engine.load(**(ASKED | given))
    steady = loaded.steady
    assert steady is not None
    assert why in str(loaded)
    assert left not in steady.to_dict()
    assert why in steady.to_dict()["left_out"][left]
    with pytest.raises(InvalidValueError, match=why):
        steady.value(left)
    ran = {"token_interval": "time_per_output_token", "burst_first_token": "time_to_first_token"}
    if kept_form in ran and "running_limit" not in given:
        assert steady.value(kept_form) == pytest.approx(loaded.value(ran[kept_form]), rel=0.02)


SHARED: dict[str, Any] = {"model": "Llama3_70B", "precision": "fp8", "estimate": "calibrated"}
SHARED |= {"prompt_tokens": 1000, "output_tokens": 300}


def test_what_is_drawn_has_the_means_that_were_asked() -> None:
    requests = Engine.load(**ASKED, users=50, think_time=7.0, requests=500).loaded.requests
    assert requests.mean_prompt == pytest.approx(512, rel=0.01)
    assert requests.mean_output == pytest.approx(128, rel=0.01)
    assert requests.pauses is not None
    assert requests.pauses.mean() == pytest.approx(7)
    # Exponential: as far apart as their mean. They come one by one, not all at the start.
    assert requests.pauses.std() == pytest.approx(7, rel=0.15)
    assert requests.arrived[:50].min() > 0
    # A distribution that is given stays what it is.
    given = Engine.load(**ASKED, users=50, prompt_tokens="uniform 100 200", requests=500)
    assert given.loaded.requests.prompt_tokens.max() <= 200
    assert "for outputs" in str(given)
    assert "for prompts" not in str(given)


def test_closed_forms_of_users_who_think_agree_with_the_run() -> None:
    asked = SHARED | {"hardware": "HGX_H100", "tensor_parallel": 4, "think_time": 10.0}
    few = Engine.load(**asked, users=125)
    assert few.steady is not None
    for closed, ran, near in (
        ("token_interval", "time_per_output_token", 0.1),
        ("steady_first_token", "time_to_first_token", 0.35),
        ("request_latency", "request_latency", 0.15),
    ):
        assert few.steady.value(closed) == pytest.approx(few.value(ran), rel=near)
    # Of more than can be served, what they wait for beside others who wait is not known so.
    many = Engine.load(**asked, users=2000, requests=2000)
    assert many.steady is not None
    assert "steady_first_token" not in many.steady.names


@pytest.mark.parametrize("users", [60, 125, 900])
def test_users_come_round_as_littles_law_says(users: int) -> None:
    """Each is in the circle of an answer and a pause once, also where many wait to start."""
    asked = SHARED | {"hardware": "HGX_H100", "tensor_parallel": 4, "think_time": 10.0}
    loaded = Engine.load(**asked, users=users)
    circle = 10 + loaded.value("request_latency")
    assert loaded.value("request_rate") == pytest.approx(users / circle, rel=0.05)
    there = loaded.value("running_requests") + loaded.value("waiting_requests")
    thinking = loaded.value("request_rate") * 10
    assert there + thinking == pytest.approx(users, rel=0.05)
    assert loaded.value("answered_requests") == pytest.approx(9 * users, rel=0.01)


def test_no_service_answers_more_than_saturates() -> None:
    """Users who wait, many or few; caches of which no whole number fits; steps of few tokens."""
    large = {"model": "Llama3_70B", "hardware": "HGX_H100", "tensor_parallel": 8}
    large |= {"prompt_tokens": 1000, "output_tokens": 300}
    closed = [
        {**layout, "software": software, "users": users, "constant": constant, "think_time": 1.0}
        for layout in ({}, large)
        for software in ("vllm", "vllm_async")
        for users in (40, 2000)
        for constant in (False, True)
    ]
    both = {"model": "Gemma2_9B", "hardware": "RTX4090", "prompt_tokens": 2000}
    few = {**both, "scheduler": "tensorrt_llm", "tokens_per_step": 64, "output_tokens": 16}
    tight = {**both, "hardware": "L4", "users": 7, "think_time": 2.0, "output_tokens": 600}
    asked = [
        *(
            {**ASKED, "precision": "fp8", "estimate": "calibrated", **each}
            for each in sampled(closed, 5)
        ),
        {**tight, "constant": True},
        {**few, "burst": 1},
        {**few, "burst": 60},
        {**both, "hardware": "L4", "users": 20, "tokens_per_step": 1, "output_tokens": 16},
    ]
    shares = []
    for each in asked:
        loaded = Engine.load(**each)
        shares.append(loaded.value("request_rate") / loaded.value("saturation_rate"))
    assert max(shares) <= 1.001
    # Of many who come at once it is near.
    assert shares[-2] > 0.9
