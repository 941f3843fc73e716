"""`Engine.plan` with pools of their own for prefill and decode, and its other layouts."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from mlsim import Engine
from mlsim.cli import main
from mlsim.solvers.plan.planned import Planned
from mlsim.systems import PrefillPool

ASKED: dict[str, Any] = {
    "model": "Llama3_8B",
    "rate": 150,
    "prompt_tokens": 1000,
    "output_tokens": 200,
    "time_to_first_token": "500 ms",
    "time_per_output_token": "30 ms",
    "hardware": ["H100", "A100"],
}


@pytest.fixture(scope="module")
def two() -> Planned:
    """A plan of two pools, over two devices."""
    return Engine.plan(**ASKED, pools="two")


def test_what_a_pair_serves_is_what_a_run_serves(two: Planned) -> None:
    """The best pair, run with the scheduler at nine tenths of the rate planned for it."""
    option = two.best
    assert option.prefill is not None
    reads = option.prefill.service.parallelism
    copies = round(option.value("prefill_copies"))
    asked = {name: ASKED[name] for name in ("model", "prompt_tokens", "output_tokens")}
    loaded = Engine.load(
        **asked | {"estimate": "calibrated", "requests": 3000},
        hardware=option.service.system or option.prefill.service.system or "HGX_H100",
        tensor_parallel=option.service.parallelism.tensor,
        data_parallel=round(option.value("decode_copies")),
        prefill=PrefillPool(copies=copies, tensor_parallel=reads.tensor),
        rate=0.9 * option.value("replica_rate"),
    )
    # Readers hold the rate back: at 0.9 of it those that decode are about half full, and the line
    # of prompts, which is long near its limit, is a few times as short.
    assert 0.4 < loaded.value("time_per_output_token") / option.value("time_per_output_token") < 0.6
    assert 0.2 < loaded.value("time_to_first_token") / option.value("time_to_first_token") < 0.5
    assert 1 < loaded.value("saturation_rate") / option.value("replica_rate") < 1.2


def test_either_is_the_better_of_both_and_says_why(two: Planned) -> None:
    one, either = Engine.plan(**ASKED), Engine.plan(**ASKED, pools="either")
    assert all(each.prefill is None for each in one.options)
    assert either.best.value("fleet_price") == min(
        one.best.value("fleet_price"), two.best.value("fleet_price")
    )
    assert len(either.options) == len(one.options) + len(two.options)
    assert either.pairs > 100
    text = str(either)
    assert "neither helps the other" in text
    assert f"{either.pairs:,} pairs of pools" in text
    assert "pools" not in str(one)


def test_a_faster_link_never_costs_more() -> None:
    asked = ASKED | {"hardware": ["H100"]}
    prices = [
        Engine.plan(**asked, pools="two", prefill_link_bandwidth=link).best.value("fleet_price")
        for link in ("2 GB/s", "20 GB/s", "200 GB/s")
    ]
    assert prices == sorted(prices, reverse=True)
    slow = asked | {"pools": "two", "prefill_link_bandwidth": "2 GB/s"}
    overlapped = Engine.plan(**slow, prefill_overlap=True)
    assert overlapped.best.value("fleet_price") <= prices[0]


def test_prompts_may_be_read_elsewhere() -> None:
    found = Engine.plan(
        **(ASKED | {"hardware": "H100", "price": {"L40S": "0.01 USD/h", "H100": "3 USD/h"}}),
        pools="two",
        prefill_hardware=["L40S", "H100"],
        prefill_link_bandwidth="100 Gb/s",
    )
    assert found.best.prefill is not None
    assert found.best.prefill.service.device.key == "Cloud.L40S"
    assert found.best.service.device.key == "Cloud.H100"
    row = found.table.iloc[0]
    assert row.prefill_device.startswith("NVIDIA L40S")
    # Pools that are joined by a link may be of any size: one pair does it.
    assert row.replicas == 1


def test_sequences_may_be_shared() -> None:
    """Two devices read half of a long prompt each: its first token is there sooner."""
    asked = {"model": "Llama3_8B", "rate": 1, "prompt_tokens": 32_000, "output_tokens": 100}
    asked |= {"time_to_first_token": "10 s", "hardware": "HGX_H100", "estimate": "roofline"}
    found = Engine.plan(**asked, context_parallel=[1, 2])
    layouts = {
        (each.service.parallelism.tensor, each.service.parallelism.context): each
        for each in found.options
    }
    assert {context for _, context in layouts} == {1, 2}
    assert layouts[1, 2].front["time_to_first_token"][0] < (
        0.6 * layouts[1, 1].front["time_to_first_token"][0]
    )
    assert layouts[1, 2].replica_devices == 2
    alone = Engine.plan(**asked, context_parallel=2)
    assert all(each.service.parallelism.context == 2 for each in alone.options)


def test_a_plan_of_pipelines_and_its_price() -> None:
    """Each of two stages at 1.5 USD/h works on a batch of its own, as `Engine.serve` has it of both.

    In the time of 128 further tokens and of the prompts that come with a full batch, as many
    requests end as both batches have. 600 a second take so many copies of two devices.
    """
    served = {"model": "Llama3_8B", "hardware": "HGX_H100", "precision": "bf16"}
    served |= {"prompt_tokens": 512, "output_tokens": 130, "estimate": "roofline"}
    found = Engine.plan(**served, rate=600, price="1.5 USD/h", pipeline_parallel=2)
    option = next(each for each in found.options if each.service.parallelism.tensor == 1)
    batch = option.value("running_requests")

    def both(batch: float) -> Any:
        return Engine.serve(**served, batch_size=2 * batch, pipeline_parallel=2)

    step = both(batch).decode_at(512 + 65).value("latency")
    prompt = (both(4).prefill.value("latency") - both(1).prefill.value("latency")) / 3
    rate = 2 * batch / (129 * step + batch * prompt)
    assert option.value("replica_rate") == pytest.approx(rate)
    copies = math.ceil(600 / rate)
    assert 1 < copies == option.value("replicas")
    assert option.value("fleet_price") * 3600 == pytest.approx(copies * 2 * 1.5)
    busy = rate / 2 * prompt
    assert option.value("time_per_output_token") == pytest.approx(step / (1 - busy))
    assert option.value("prompt_share") == pytest.approx(busy)


def test_uneven_experts_cost_rate_where_they_are_spread() -> None:
    asked = {"model": "Mixtral_8x7B", "rate": 5, "hardware": "HGX_H100", "estimate": "roofline"}
    even, uneven = Engine.plan(**asked), Engine.plan(**asked, expert_imbalance=1.8)

    def rates(found: Planned) -> dict[tuple[int, int], float]:
        layouts = ((each.service.parallelism, each.value("replica_rate")) for each in found.options)
        return {(layout.tensor, layout.expert): rate for layout, rate in layouts}

    before, after = rates(even), rates(uneven)
    assert after[4, 4] < before[4, 4]
    assert after[4, 1] == before[4, 1]


def test_the_command_prints_what_the_engine_says(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "Llama3_8B", "--rate", "150", "--hardware", "H100", "--prompt", "1000"]
    arguments += ["--pools", "two", "--prefill-hardware", "L40S", "--prefill-link", "100 Gb/s"]
    arguments += ["--cp", "1,2", "--expert-imbalance", "uniform", "--prefill-overlap"]
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    asked = {**ASKED, "hardware": ["H100"], "pools": "two", "prefill_hardware": ["L40S"]}
    for name in ("output_tokens", "time_to_first_token", "time_per_output_token"):
        del asked[name]
    found = Engine.plan(
        **asked, prefill_link_bandwidth="100 Gb/s", prefill_overlap=True, context_parallel=[1, 2]
    )
    assert told["options"][0]["fleet_price"] == pytest.approx(found.best.value("fleet_price"))
    assert told["options"][0]["prefill_device"] == "NVIDIA L40S"
    assert main(["plan", "Llama3_8B", "--rate", "1", "--expert-imbalance", "much"]) == 1
    assert "--expert-imbalance must be a number" in capsys.readouterr().err
    assert main(["plan", "Llama3_8B", "--rate", "1", "--prefill-link", "1 GB/s"]) == 1
    assert "pools" in capsys.readouterr().err
