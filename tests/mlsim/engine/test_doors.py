"""What the doors pass on, work out on the way, and refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kept import FIXTURES
from refusals import answered

from mlsim import Engine, Hardware, Models, Systems
from mlsim.engine.layouts import Layouts, listed, once, pools_of, sizes
from mlsim.engine.plan import _mattering, owned
from mlsim.errors import MlsimError
from mlsim.systems import PrefillPool
from mlsim.workloads import Offload, Speculation

SMALL: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100"}
LOADED = {**SMALL, "requests": 40}
PLANNED = {"model": "Llama3_8B", "hardware": ["H100"], "rate": 5}
OWNED: dict[str, Any] = {"price": "30000 USD", "years": 4, "power": "700 W"}
OWNED |= {"electricity": "0.1 USD/kWh"}
CLAIMED = {"model": "Llama2_70B", "hardware": "MI300X"}


def test_what_is_refused_and_why() -> None:
    usual = {"load": LOADED, "plan": PLANNED, "check_claim": CLAIMED}

    def ask(door: str, **given: Any) -> Any:
        return getattr(Engine, door)(**{**usual[door], **given})

    assert answered(ask, "doors") == []


def test_a_bought_device_by_hand() -> None:
    """30,000 USD over 4 x 8,766 h are 0.8556 USD/h; 0.7 kW x 1.2 x 0.1 USD/kWh are 0.084."""
    assert owned(**OWNED).si * 3600 == pytest.approx(30_000 / 35_064 + 0.084)
    alone = owned(**{**OWNED, "pue": 1, "years": 2})
    assert alone.si * 3600 == pytest.approx(30_000 / 17_532 + 0.07)
    for change, words in (
        ({"pue": 0.99}, "pue must be 1 or more, not 0.99"),
        ({"years": 0}, "years must be a number above 0, not 0"),
        ({"years": 100}, "not 100"),
        ({"years": True}, "not True"),
    ):
        with pytest.raises(MlsimError, match=words):
            owned(**{**OWNED, **change})


def test_how_many_requests_are_followed(tmp_path: Path) -> None:
    """Ten for each user, 2,000 at a rate, all of a burst; of a trace what is asked for."""
    for asked, followed, steady in (
        ({"rate": 1.0, "prompt_tokens": 16, "output_tokens": 2}, 2000, True),
        ({"rate": 1.0, "requests": 30}, 30, True),
        ({"rate": 1.0, "requests": 30, "burstiness": 2.0}, 30, False),
        ({"users": 3}, 30, True),
        ({"users": 3, "requests": 7}, 7, True),
        ({"burst": 9}, 9, False),
    ):
        found = Engine.load(**SMALL, **asked)
        assert len(found.requests) == followed, asked
        assert (found.steady is not None) == steady, asked
    # What is drawn about a mean is cut to the 1,024 tokens of the context, prompts first.
    drawn = Engine.load("GPT2", "H100", users=9, prompt_tokens=300, output_tokens=70)
    prompts, answers = (
        getattr(drawn.requests, name) for name in ("prompt_tokens", "output_tokens")
    )
    assert (prompts + answers).max() == 1024
    assert (prompts.max(), answers.min()) == (1023, 1)
    path = tmp_path / "trace.csv"
    path.write_text("arrived,prompt_tokens,output_tokens\n0,20,5\n1,30,5\n2,40,5\n")
    assert len(Engine.load(**SMALL, trace=path).requests) == 3
    assert len(Engine.load(**SMALL, trace=path, requests=2).requests) == 2
    with pytest.raises(MlsimError, match="says when its requests arrive; leave out rate"):
        Engine.load(**SMALL, trace=path, rate=1)
    path.write_text("prompt_tokens,output_tokens\n20,5\n30,5\n40,5\n")
    paced = Engine.load(**SMALL, trace=path, rate=2.0)
    assert len(paced.requests) == 3
    assert paced.requests.arrived[-1] > 0


def test_what_a_run_of_requests_is_asked() -> None:
    """The scheduler's own blocks and steps, its newest program, and a scheduler for each copy."""
    usual = Engine.load(**LOADED, rate=1.0, estimate="calibrated")
    service, rule = usual.service, usual.scheduler
    assert (service.block_tokens, service.chunk_tokens) == (rule.block_tokens, rule.tokens_per_step)
    assert service.software.key == rule.software
    named = Engine.load(**LOADED, rate=1.0, estimate="calibrated", software="engine")
    assert named.service.software.key == "engine"
    copies = Engine.load("Llama3_8B", "HGX_H100", rate=1.0, requests=40, data_parallel=4,
                         running_limit=7, tokens_per_step=900)  # fmt: skip
    assert copies.service.batch_size == 4
    rule = copies.scheduler
    assert (rule.running_limit, rule.tokens_per_step) == (7, 900)


def test_a_file_that_changes_between_two_questions_is_read_again(tmp_path: Path) -> None:
    path, text = tmp_path / "config.json", (FIXTURES / "configs" / "gpt2.json").read_text("utf-8")
    for layers in (12, 13):
        path.write_text(text.replace('"n_layer": 12', f'"n_layer": {layers}'))
        assert Engine.serve(model=f"{path}", hardware="H100").service.model.layers == layers


def test_a_plan_rents_what_it_needs() -> None:
    """At 2 USD/h for a device; ten times the requests are as many copies or more."""
    few, many = (
        Engine.plan("Llama3_8B", ["H100"], rate=rate, price="2 USD/h").best for rate in (5, 200)
    )
    for each in (few, many):
        devices = each.replicas * each.service.parallelism.devices
        assert each.fleet_price.si * 3600 == pytest.approx(2 * devices)
    assert few.replicas == 1 < many.replicas
    users = Engine.plan("Llama3_8B", ["H100"], users=40, think_time=3).goals
    assert (users.rate, users.users, users.think_time) == (0, 40, 3)
    slow = Engine.plan("Llama3_8B", ["H100"], rate=5, time_per_output_token="90 ms").goals
    assert (slow.first_token, slow.per_token) == (1.0, 0.09)
    # The bandwidth of the MI300X is lent, and matters unless nearly all time goes to prompts.
    asked = {"estimate": "calibrated", "prompt_tokens": 4096}
    service = Engine.serve("Llama3_8B", "MI300X", **asked).service
    matter = [bool(_mattering(service, 1.0, reading)) for reading in (0, 0.5, 0.95, 1)]
    assert matter == [True, True, False, False]
    own, lent = (
        Engine.plan("Llama3_8B", [each], rate=5, price="2 USD/h").best
        for each in ("H100", "MI300X")
    )
    assert (own.loans, own.slower) == ((), 1)
    assert lent.loans
    assert lent.slower > 1


def test_what_a_claim_leaves_open_is_in_its_favor() -> None:
    """All devices of a system; a claim of training has 2,048 tokens, or what the context holds."""
    eight = Engine.check_claim("Llama3_8B", "HGX_H100", tokens_per_second=100)
    one = Engine.check_claim("Llama3_8B", "H100", tokens_per_second=100)
    assert (eight.machine.devices, one.machine.devices) == (8, 1)
    two = Engine.check_claim("Llama3_8B", "HGX_H100", tokens_per_second=100, devices=2)
    assert two.machine.devices == 2
    trained = Engine.check_claim("Llama3_8B", "H100", mfu=0.4).machine
    assert (trained.training, trained.prompt) == (True, 2048)
    short = Engine.check_claim("GPT2", "H100", mfu=0.4).machine
    assert short.prompt == min(2048, 1024 - short.output)
    both = Engine.check_claim("Llama3_8B", "H100", mfu=0.4, tokens_per_second=5).machine
    assert not both.training
    stated = Engine.check_claim("Llama3_8B", "H100", tokens_per_second=5, prompt_tokens=77,
                                output_tokens=88, batch_size=3).machine  # fmt: skip
    assert (stated.prompt, stated.output, stated.batch) == (77, 88, 3)


def named(search: Layouts, model: Any, most: int) -> list[tuple[int, ...]]:
    """Return layouts as tensor, pipeline, context, data and expert parallelism."""
    return [
        (each.tensor, each.pipeline, each.context, each.data, each.expert)
        for each in search._layouts(model, most)
    ]


def test_layouts_that_a_plan_tries() -> None:
    """Powers of two as far as devices go; of experts also divided, spread, and shared by copies."""
    dense = Layouts({}, None, [None], contexts=(1, 2), stages=(1, 3))  # type: ignore[arg-type]
    assert named(dense, Models.Llama3_8B, 8) == [
        *[(size, 1, 1, 1, 1) for size in (1, 2, 4, 8)],
        *[(size, 3, 1, 1, 1) for size in (1, 2)],
        *[(size, 1, 2, 1, 1) for size in (1, 2, 4)],
        (1, 3, 2, 1, 1),
    ]
    experts = Layouts({}, None, [None])  # type: ignore[arg-type]
    assert named(experts, Models.Mixtral_8x7B, 4) == [
        *((1, 1, 1, 1, 1), (1, 1, 1, 2, 2), (1, 1, 1, 4, 4)),
        *((2, 1, 1, 1, 1), (2, 1, 1, 1, 2), (2, 1, 1, 2, 4)),
        *((4, 1, 1, 1, 1), (4, 1, 1, 1, 4)),
    ]
    assert max(each[0] for each in named(experts, Models.Llama3_8B, 4096)) == 64
    assert (
        sizes("pipeline_parallel", [2, 1, 2]),
        sizes("pipeline_parallel", 3),
        listed((1, 2)),
    ) == ([2, 1], [3], [1, 2])
    # A device is its largest node; two chips of one node are once there.
    hopper, node, ampere = Hardware.Cloud.H100, Systems.HGX_H100, Hardware.Cloud.A100
    assert once([node, ampere, hopper, ampere]) == [node, ampere]


def test_what_joins_two_pools() -> None:
    """The node's link, the fabric, or what is said: 400 Gb/s are 50 GB/s."""
    search = Layouts({}, None, [None], pools="two")  # type: ignore[arg-type]
    between = search._between(Systems.HGX_H100)
    assert between is not None
    assert (between.bandwidth, between.room) == (450e9, 8)
    assert search._between(Hardware.Cloud.H100) == between
    assert search._between(Hardware.Workstation.RTX4090) is None
    said = pools_of("two", ["H100", "HGX_H100"], "400 Gb/s", True)
    assert (said["link_bandwidth"], said["overlap"], said["pools"]) == (50e9, True, "two")
    assert said["prefill_hardware"] == [Hardware.Cloud.H100]
    given = Layouts({}, None, [None], **said)._between(Systems.HGX_H100)  # type: ignore[arg-type]
    assert given is not None
    assert (given.bandwidth, given.overlap) == (50e9, True)
    assert answered(pools_of, "doors", "pools") == []


def test_a_pool_that_reads_is_asked_like_the_one_that_decodes() -> None:
    """One new token; its own batch and layout; guesses and offload are for what decodes."""
    asked = {"batch_size": 6, "prompt_tokens": 300, "output_tokens": 40, "precision": "fp8"}
    asked |= {"chunk_tokens": 200, "block_tokens": 32, "reserve": 0.2, "prefix_share": 0.5}
    asked |= {"speculation": Speculation(cost=0.1, tokens=3, acceptance=0.5)}
    asked |= {"offload": Offload(cache=0.1)}
    pool = PrefillPool(copies=2, tensor_parallel=2, batch_size=3, link_bandwidth="400 Gb/s")
    both = Engine.serve("Llama3_8B", "HGX_H100", **asked, prefill=pool).split
    reading, decoding = both.prefill, both.decode
    assert (reading.batch_size, reading.prompt_tokens, reading.output_tokens) == (3, 300, 1)
    assert reading.parallelism.tensor == 2
    for name in ("formats", "block_tokens", "reserve_share", "estimate", "expert_imbalance"):
        assert getattr(reading, name) == getattr(decoding, name), name
    assert (reading.chunk_tokens, decoding.chunk_tokens) == (200, 6)
    assert reading.system is decoding.system is Systems.HGX_H100
    assert reading.switches.speculation is reading.switches.offload is None
    assert decoding.switches.speculation is not None
    with pytest.raises(MlsimError, match="memory_bandwidth can't be given with prefill"):
        Engine.serve(**SMALL, prefill=pool, memory_bandwidth="1 TB/s")
    with pytest.raises(MlsimError, match="prefill must be a PrefillPool"):
        Engine.serve(**SMALL, prefill="H100")
