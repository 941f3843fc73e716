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
from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads import Offload, Speculation
from mlsim.workloads.traces import read_trace

ASKED: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100"}


def test_what_cannot_be_is_refused() -> None:
    assert answered(lambda **given: Engine.load(**(ASKED | given)), "load") == []
    with pytest.raises(InvalidValueError, match="whole number from 1"):
        Engine.load(**ASKED, rate=1, adapters=LoRA(rank=8), adapter_count=-1)


TRACE = "arrived,prompt_tokens,output_tokens\n0,100,10\n0.5,200,20\n2,50,1\n"


def test_a_trace_with_a_hole_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    head = TRACE.splitlines()[0]
    for text, words in (
        *(("", "line 1"), ("a,b\n1,2\n", "line 1"), (f"{head}\n", "without requests")),
        *((TRACE.replace("200,20", each), "line 3") for each in (",20", "200")),
        *((TRACE.replace("0.5", each), "line 3") for each in ("soon", "nan")),
        (TRACE.replace("2,50", "0.1,50"), "line 4: arrives before"),
        *((TRACE.replace("50,1", each), "line 4") for each in ("50,0", "50,1.5", "-50,1")),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataFileError, match=words):
            read_trace(path)
    for name, content in (("a.csv", b"\xff\xfe\x00"), ("a.csv.gz", b"no gzip")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataFileError, match="no CSV"):
            read_trace(tmp_path / name)


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


def test_the_text_of_a_prompt_takes_the_host_its_time() -> None:
    """8,000 tokens at 3.5 us each are 28 ms, and the call; a lone user waits for both."""
    asked = {**ASKED, "users": 1, "requests": 1}
    asked |= {"prompt_tokens": 8000, "output_tokens": 8, "estimate": "calibrated"}
    loaded = Engine.load(**asked, software="vllm")
    way = loaded.of_software("call_time") + 8000 * 3.5e-6
    read = loaded.typical.lone_prompt_time
    assert loaded.value("time_to_first_token") == pytest.approx(way + read)
    bare = Engine.load(**asked, software="kernels")
    assert bare.paths(bare.requests) == [0.0]


@pytest.mark.parametrize(("given", "first"), kept.cases("held_back.toml"))
def test_whatever_binds_is_named(given: dict[str, Any], first: str) -> None:
    loaded = Engine.load(**(ASKED | given))
    told = [*loaded.held_back, ""]
    assert first in told[0]
    assert bool(first) == ("  limit " in str(loaded))


@pytest.mark.parametrize(
    ("given", "kept_form", "left", "why", "told"), kept.cases("closed_forms_left_out.toml")
)
def test_a_closed_form_that_does_not_hold_is_not_shown(
    given: dict[str, Any], kept_form: str, left: str, why: str, told: str
) -> None:
    loaded = Engine.load(**(ASKED | given))
    steady = loaded.steady
    assert steady is not None
    assert why in str(loaded)
    assert f"none of {told}: " in str(loaded)
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
    requests = Engine.load(**ASKED, users=50, think_time=7.0, requests=500).requests
    assert requests.mean_prompt == pytest.approx(512, rel=0.01)
    assert requests.mean_output == pytest.approx(128, rel=0.01)
    assert requests.pauses is not None
    assert requests.pauses.mean() == pytest.approx(7)
    # Exponential: as far apart as their mean. They come one by one, not all at the start.
    assert requests.pauses.std() == pytest.approx(7, rel=0.15)
    assert requests.arrived[:50].min() > 0
    # A distribution that is given stays what it is.
    given = Engine.load(**ASKED, users=50, prompt_tokens="uniform 100 200", requests=500)
    assert given.requests.prompt_tokens.max() <= 200
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
    large = {**LARGE, "prompt_tokens": 1000, "output_tokens": 300}
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
            for each in sampled(closed, 1)
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


SMALL: dict[str, Any] = {**ASKED, "prompt_tokens": 2048}
LARGE: dict[str, Any] = {"model": "Llama3_70B", "hardware": "HGX_H100", "tensor_parallel": 8}
FIRST, EACH = "time_to_first_token", "time_per_output_token"
DRAFTED = Speculation(draft="Llama3_8B", tokens=4, acceptance=0.7)


def test_a_prefix_brings_the_first_token_sooner_and_saturates_later() -> None:
    asked = SMALL | {"rate": 8, "requests": 600}
    plain, half, most = (Engine.load(**asked, prefix_share=share) for share in (0, 0.5, 0.9))
    assert plain.value(FIRST) > half.value(FIRST) > most.value(FIRST)
    rates = [float(one.value("saturation_rate")) for one in (plain, half, most)]
    assert rates == sorted(rates)
    assert rates[2] > 2 * rates[0]
    for one in (plain, half, most):
        assert one.steady is not None
        assert one.steady.value("steady_first_token") == pytest.approx(one.value(FIRST), rel=0.15)


def test_one_request_alone_waits_as_in_a_batch_of_one() -> None:
    for on in ({"prefix_share": 0.5}, {"offload": Offload(cache=0.3, weights=0.1)}):
        alone = Engine.load(**SMALL, burst=1, output_tokens=64, **on)
        batch = Engine.serve(**SMALL, output_tokens=64, **on)
        assert alone.value(FIRST) == pytest.approx(batch.value("time_to_first_token"), rel=0.01)
        assert alone.value(EACH) == pytest.approx(batch.value("time_per_output_token"), rel=0.01)


def test_speculation_helps_a_quiet_service_and_harms_a_full_one() -> None:
    quiet = LARGE | {"rate": 1, "requests": 300, "prompt_tokens": 1024}
    plain, drafted = Engine.load(**quiet), Engine.load(**quiet, speculation=DRAFTED)
    assert drafted.value(EACH) < 0.7 * plain.value(EACH)
    assert drafted.value("saturation_rate") < plain.value("saturation_rate")
    assert drafted.steady is not None
    assert drafted.steady.value("time_per_output_token") == pytest.approx(
        drafted.value(EACH), rel=0.1
    )
    assert "time_per_output_token" in str(drafted.steady.explain("time_per_output_token"))
    assert "token_interval" not in drafted.to_dict()["closed_form"]


def test_a_trace_says_what_is_cached_of_each_prompt(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    same = {"input_length": 2048, "output_length": 20}
    rows = [
        {"timestamp": 100 * at, **same, "hash_ids": [1, 2, 10 + at % 4, 100 + at]}
        for at in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    asked = {**ASKED, "trace": path}
    plain = Engine.load(**asked)
    found = Engine.load(**asked, prefix_share="trace")
    small = Engine.load(**asked, prefix_share="trace", prefix_blocks=6)
    # Of 40 prompts the first finds nothing, three find two blocks, all others three.
    assert found.requests.prefix_share == pytest.approx((3 * 2 + 36 * 3) / (40 * 4))
    assert found.value(FIRST) < small.value(FIRST) < plain.value(FIRST)
    assert "switched_on" in found.to_dict()


@pytest.mark.parametrize(
    ("prompt", "output", "share", "short"),
    [
        *((512, 128, 0.4, 0.02), (512, 128, 0.7, 0.06), (2000, 300, 0.7, 0.06)),
        # Of short answers many come and go in a step: the form knows the mean of them alone.
        *((4000, 1000, 0.4, 0.05), (100, 20, 0.1, 0.03), (100, 20, 0.4, 0.15)),
    ],
)
def test_closed_forms_are_a_little_below_the_run(
    prompt: int, output: int, share: float, short: float
) -> None:
    """They know no queue and no chance but that of arrivals: the more load, the more they lack."""
    asked = ASKED | {"prompt_tokens": prompt, "output_tokens": output, "estimate": "calibrated"}
    most = Engine.load(**asked, burst=1).value("saturation_rate")
    loaded = Engine.load(**asked, rate=float(f"{share * most:.3g}"), requests=3000)
    assert loaded.steady is not None
    for closed, ran in (
        ("steady_first_token", "time_to_first_token"),
        ("token_interval", "time_per_output_token"),
        ("request_latency", "request_latency"),
    ):
        ratio = loaded.steady.value(closed) / loaded.value(ran)
        assert 1 - short < ratio < 1.001, closed


@pytest.mark.parametrize(
    ("prompt", "users", "within"),
    # Up to one step it is exact. Of several the form takes equal ones, the run cuts prompts.
    [(100, 4, 1e-4), (512, 64, 0.02), (3000, 1, 1e-4), (3000, 4, 0.11), (3000, 64, 0.04)],
)
def test_the_opening_burst_waits_as_long_as_in_a_run(
    prompt: int, users: int, within: float
) -> None:
    closed = Engine.load(**ASKED, prompt_tokens=prompt, users=users, requests=2 * users).steady
    assert closed is not None
    ran = Engine.load(**ASKED, prompt_tokens=prompt, burst=users).value("time_to_first_token")
    assert closed.value("burst_first_token") == pytest.approx(ran, rel=within)
