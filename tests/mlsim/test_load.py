"""`Engine.load` and `mlsim load` as a stranger uses them, and what they refuse."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from mlsim import Engine
from mlsim.cli import main
from mlsim.errors import DataFileError, DoesNotFitError, InvalidValueError, WrongKindError
from mlsim.software import classes, software
from mlsim.systems.schedulers import scheduler, schedulers
from mlsim.workloads.lengths import lengths
from mlsim.workloads.traces import read_trace
from mlsim.zoo import resolve

ASKED: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "given is none"),
        ({"rate": 1, "users": 3}, "rate and users"),
        ({"rate": 0}, "positive"),
        ({"rate": float("nan")}, "positive"),
        ({"rate": "3"}, "Leave out the quotes"),
        ({"rate": [1, 2]}, "one number"),
        ({"users": 0}, "whole number from 1"),
        ({"users": True}, "whole number from 1"),
        ({"burst": 2.5}, "whole number from 1"),
        ({"rate": 1, "requests": -3}, "whole number from 1"),
        ({"rate": 1, "prompt_tokens": 0}, "whole number from 1"),
        ({"rate": 1, "prompt_tokens": "lognorml 5 1"}, "lognormal"),
        ({"rate": 1, "prompt_tokens": "lognormal 5"}, "takes 2 number"),
        ({"rate": 1, "prompt_tokens": "uniform 9 3"}, "the least first"),
        ({"rate": 1, "output_tokens": "exponential nan"}, "takes 1 number"),
        ({"rate": 1, "burstiness": -1}, "from 0 up"),
        ({"rate": 1, "think_time": float("inf")}, "from 0 up"),
        ({"rate": 1, "seed": -1}, "seed"),
        ({"rate": 1, "scheduler": "vlm"}, "vllm"),
        ({"rate": 1, "running_limit": 0}, "running_limit"),
        ({"rate": 5000}, "saturates at"),
        ({"rate": 1, "prompt_tokens": 200_000}, "longer than the context"),
        ({"rate": 1, "model": "bert_large"}, "encoder"),
        ({"trace": "no_such.csv"}, "no trace"),
        ({"rate": 5, "think_time": 4}, "think_time counts only with users, and given is rate"),
        ({"rate": 8, "constant": True}, "constant counts only with users"),
        ({"burst": 3, "constant": True}, "Leave out constant, or give users"),
        ({"users": 3, "burstiness": 2.0}, "burstiness counts only with rate"),
        ({"burst": 3, "requests": 7}, "of a burst all requests are followed"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidValueError, WrongKindError, AttributeError), match=words):
        Engine.load(**(ASKED | given))


def test_a_model_that_does_not_fit_says_so() -> None:
    with pytest.raises(DoesNotFitError, match="for the cache"):
        Engine.load(model="Llama3_70B", hardware="H100", rate=1)


TRACE = "arrived,prompt_tokens,output_tokens\n0,100,10\n0.5,200,20\n2,50,1\n"


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("a,b\n1,2\n", "line 1"),
        ("arrived,prompt_tokens,output_tokens\n", "without requests"),
        (TRACE.replace("200,20", ",20"), "line 3"),
        (TRACE.replace("200,20", "200"), "line 3"),
        (TRACE.replace("0.5", "soon"), "line 3"),
        (TRACE.replace("0.5", "nan"), "line 3"),
        (TRACE.replace("2,50", "0.1,50"), "line 4: arrives before"),
        (TRACE.replace("50,1", "50,0"), "line 4"),
        (TRACE.replace("50,1", "50,1.5"), "line 4"),
        (TRACE.replace("50,1", "-50,1"), "line 4"),
    ],
)
def test_a_trace_with_a_hole_names_its_line(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=words):
        read_trace(path)


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


def test_schedulers_are_found_by_name() -> None:
    assert set(schedulers()) == {"vllm", "sglang", "tensorrt_llm"}
    assert scheduler("TensorRT-LLM") is scheduler("tensorrt_llm")
    assert not scheduler("SGLang").mixed


def test_the_command_prints_what_the_engine_says(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["load", "Llama3_8B", "H100", "--rate", "5", "--requests", "200", "--seed", "2"]
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    loaded = Engine.load(**ASKED, rate=5, requests=200, seed=2)
    assert told["time_to_first_token_p90"]["value"] == loaded.value("time_to_first_token_p90")
    assert told["closed_form"]["saturation_rate"]["unit"] == "1/s"
    assert main([*arguments, "--explain", "saturation_rate"]) == 0
    assert "running_limit" in capsys.readouterr().out
    assert main(arguments) == 0
    assert "saturates" in capsys.readouterr().out


def test_the_command_refuses_in_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", "Llama3_8B", "H100", "--users", "many"]) == 1
    assert "--users must be a whole number" in capsys.readouterr().err
    assert main(["load", "Llama3_8B", "H100"]) == 1
    assert "one way" in capsys.readouterr().err


def test_a_scheduler_belongs_to_a_class_of_software() -> None:
    """What vLLM adds for each sequence makes its tokens slower than those of kernels alone."""
    asked = ASKED | {"rate": 20, "requests": 300, "estimate": "calibrated"}
    usual = Engine.load(**asked)
    named = Engine.load(**asked, software="vllm_async")
    kernels = Engine.load(**asked, software="kernels")
    tokens = [each.value("time_per_output_token") for each in (usual, named, kernels)]
    assert tokens[0] == tokens[1] > tokens[2]


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
    assert limits == {
        "H100": (1024, 8192),
        "H200": (1024, 8192),
        "MI300X": (1024, 8192),
        "A100": (256, 2048),
        "L40S": (256, 2048),
    }
    # Back on a smaller device it has the smaller ones; what somebody sets stands on each.
    assert found["H100"].on(resolve.device("A100")) == found["A100"]
    given = scheduler("vllm").with_limits(running_limit=9)
    assert {given.on(resolve.device(name)).running_limit for name in limits} == {9}


def test_a_limit_is_told_where_it_holds_requests_back() -> None:
    asked = ASKED | {"prompt_tokens": 64, "output_tokens": 64}
    held = Engine.load(**asked, burst=1500)
    assert held.value("running_requests") > 500
    assert "1,024 requests at most run at one time on a copy, the default of vLLM" in str(held)
    assert "as given" in str(Engine.load(**asked, burst=40, running_limit=16))
    assert "at most run" not in str(Engine.load(**asked, burst=40))


@pytest.mark.parametrize(
    ("given", "first"),
    [
        (
            {"rate": 5.5, "hardware": "RTX4090", "tokens_per_step": 64},
            "a step of a copy works on 64",
        ),
        (
            {"burst": 1, "tokens_per_step": 64},
            "as given (tokens_per_step); a prompt of 512 takes 8",
        ),
        ({"burst": 9, "prompt_tokens": 8000, "tokens_per_step": 8192}, "works on 8,192 tokens"),
        (
            {"users": 60, "prompt_tokens": 8000, "constant": True, "hardware": "RTX4090"},
            "the cache has no room for more requests",
        ),
        (
            {"burst": 40, "running_limit": 16},
            "16 requests at most run at one time on a copy, as given",
        ),
        ({"rate": 5}, ""),
    ],
)
def test_whatever_binds_is_named(given: dict[str, Any], first: str) -> None:
    loaded = Engine.load(**(ASKED | given))
    told = [*loaded.held_back, ""]
    assert first in told[0]
    assert bool(first) == ("  limit " in str(loaded))


def test_the_command_names_a_limit_by_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["load", "Llama3_8B", "H100", "--burst", "1", "--tokens-per-step", "64"]
    assert main(arguments) == 0
    assert "as given (--tokens-per-step)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "kept", "left", "why"),
    [
        # Each prompt needs 8 steps, and more where others decode.
        (
            {"rate": 5.5, "hardware": "RTX4090", "tokens_per_step": 64},
            "token_interval",
            "steady_first_token",
            "takes 10 steps of 64 tokens",
        ),
        # How often they ask hangs on how long they wait.
        ({"users": 5, "think_time": 2.0, "tokens_per_step": 64}, "", "token_interval", "9 steps"),
        # They ask together, and each waits for the prompts of all.
        (
            {"users": 7, "think_time": 15.0, "constant": True, "output_tokens": 16},
            "burst_first_token",
            "token_interval",
            "these ask in step",
        ),
        (
            {"users": 20, "running_limit": 8},
            "token_interval",
            "burst_first_token",
            "no room at once",
        ),
    ],
)
def test_a_closed_form_that_does_not_hold_is_not_shown(
    given: dict[str, Any], kept: str, left: str, why: str
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
    if kept in ran and "running_limit" not in given:
        assert steady.value(kept) == pytest.approx(loaded.value(ran[kept]), rel=0.02)


def test_the_newest_class_of_a_scheduler_answers_and_is_named() -> None:
    """The class of vLLM from release 0.14, which published loads of 2026 bear out."""
    loaded = Engine.load(**ASKED, rate=5, requests=200, estimate="calibrated")
    assert loaded.loaded.service.software is software("vllm_async")
    assert "vLLM from release 0.14" in str(loaded)
    assert loaded.to_dict()["software"] == "vllm_async"


def test_help_lists_every_class_of_software(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("load", "plan"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        words = set(re.findall(r"\w+", capsys.readouterr().out))
        assert classes().keys() <= words


def test_a_step_of_one_token_is_answered() -> None:
    """512 tokens of a prompt and 127 more are 639 steps of one token each.

    Those that read a prompt but for its last token need no output layer.
    """
    loaded = Engine.load(**ASKED, rate=0.1, requests=20, tokens_per_step=1)
    step = loaded.loaded.typical.decode_step(1.0)
    reading = loaded.loaded.typical.lone_prompt_time
    assert 0.9 * 512 * step < reading < 512 * step
    assert loaded.value("saturation_rate") == pytest.approx(1 / (127 * step + reading), rel=1e-3)
    # A burst of many is answered at that rate.
    many = Engine.load(**ASKED, burst=20, tokens_per_step=1)
    assert many.value("request_rate") == pytest.approx(many.value("saturation_rate"), rel=0.02)
    assert loaded.value("time_to_first_token") > 512 * step * 0.9


SHARED: dict[str, Any] = {
    "model": "Llama3_70B",
    "precision": "fp8",
    "prompt_tokens": 1000,
    "output_tokens": 300,
    "estimate": "calibrated",
}


def test_users_do_not_keep_in_step_unless_asked() -> None:
    """125 users of a copy wait about as long as as many requests at random, not for each other."""
    asked = SHARED | {
        "hardware": "HGX_H100",
        "tensor_parallel": 4,
        "users": 125,
        "think_time": 10.0,
    }
    spread, herd = Engine.load(**asked), Engine.load(**asked, constant=True)
    wait = spread.value("time_to_first_token")
    assert herd.value("time_to_first_token") > 10 * wait
    at_random = {
        name: value for name, value in asked.items() if name not in ("users", "think_time")
    }
    same = Engine.load(**at_random, rate=spread.value("request_rate"))
    assert 0.8 < wait / same.value("time_to_first_token") < 2
    # What was assumed is told, and the same seed draws the same users.
    assert "lognormal, spread 0.96 for prompts and 0.77 for outputs" in str(spread)
    assert "exponential" in str(spread)
    assert "lognormal" not in str(herd)
    assert Engine.load(**asked).value("time_to_first_token") == wait
    assert Engine.load(**asked, seed=1).value("time_to_first_token") != wait


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


def test_no_assumed_length_is_longer_than_the_context() -> None:
    asked = ASKED | {"users": 4, "prompt_tokens": 100_000, "output_tokens": 500, "hardware": "H200"}
    requests = Engine.load(**asked).loaded.requests
    whole = requests.prompt_tokens + requests.output_tokens
    assert whole.max() == 131_072
    with pytest.raises(InvalidValueError, match="longer than the context"):
        Engine.load(**(asked | {"prompt_tokens": 200_000}))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("users", [40, 2000])
@pytest.mark.parametrize(("software", "limit"), [("vllm", 256), ("vllm_async", None)])
@pytest.mark.parametrize(
    ("model", "hardware", "prompt", "output"),
    [("Llama3_70B", "HGX_H100", 1000, 300), ("Llama3_8B", "H100", 512, 128)],
)
def test_no_closed_system_answers_more_than_saturates(
    model: str, hardware: str, prompt: int, output: int, software: str, limit: int | None,
    users: int, constant: bool,
) -> None:  # fmt: skip
    loaded = Engine.load(
        model=model,
        hardware=hardware,
        tensor_parallel=8 if hardware == "HGX_H100" else 1,
        precision="fp8",
        prompt_tokens=prompt,
        output_tokens=output,
        estimate="calibrated",
        software=software,
        running_limit=limit,
        users=users,
        think_time=1.0,
        requests=4 * users,
        constant=constant,
    )
    assert loaded.value("request_rate") <= 1.001 * loaded.value("saturation_rate")


@pytest.mark.parametrize(
    "given",
    [
        # Caches of which no whole number fits: three of these requests, now and then a fourth.
        {"hardware": "L4", "users": 7, "think_time": 2.0, "output_tokens": 600, "constant": True},
        # Steps with room for fewer tokens than a prompt has in all of a request's decode steps.
        {"scheduler": "tensorrt_llm", "burst": 1, "tokens_per_step": 64, "output_tokens": 16},
        {"scheduler": "tensorrt_llm", "burst": 60, "tokens_per_step": 64, "output_tokens": 16},
        {"hardware": "L4", "users": 20, "tokens_per_step": 1, "output_tokens": 16},
    ],
)
def test_no_small_batch_answers_more_than_saturates(given: dict[str, Any]) -> None:
    asked = {"model": "Gemma2_9B", "hardware": "RTX4090", "prompt_tokens": 2000} | given
    loaded = Engine.load(**asked)
    share = loaded.value("request_rate") / loaded.value("saturation_rate")
    assert share <= 1.001
    # Of many who come at once it is near.
    assert share > 0.9 or given.get("burst") != 60


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


def test_the_command_asks_for_users_who_are_all_alike(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["load", "Llama3_8B", "H100", "--users", "20", "--think-time", "3", "--json"]
    assert main(arguments) == 0
    assert "lognormal" in json.loads(capsys.readouterr().out)["lengths"]
    assert main([*arguments, "--constant"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "lengths" not in told
    loaded = Engine.load(**ASKED, users=20, think_time=3.0, constant=True)
    assert told["request_latency"]["value"] == loaded.value("request_latency")
