"""`Engine.plan` with pools of their own for prefill and decode, and its other layouts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlsim import Engine
from mlsim.cli import main
from mlsim.errors import InvalidValueError, MlsimError
from mlsim.solvers.plan.planned import Planned
from mlsim.systems import PrefillPool
from mlsim.workloads import Speculation

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


def test_each_pair_of_pools_meets_the_goals(two: Planned) -> None:
    for each in two.options:
        assert each.prefill is not None
        assert each.value("time_to_first_token") <= 0.5
        assert each.value("time_per_output_token") <= 0.03
        assert each.value("margin") >= 1
        assert (each.value("replicas") - 1) * each.value("replica_rate") < 150
        assert each.value("replicas") * each.value("replica_rate") >= 150
        # What reads prompts is never busier than always, and so is what decodes.
        assert 0 < each.value("prefill_use") < 1
        assert 0 < each.value("decode_use") <= 1
        # Both pools are in one node of eight.
        assert each.value("replica_devices") <= 8


def test_the_bill_is_that_of_both_pools(two: Planned) -> None:
    best = two.best
    assert best.prefill is not None
    reads = best.value("prefill_copies") * best.prefill.service.parallelism.devices
    decodes = best.value("decode_copies") * best.service.parallelism.devices
    assert best.value("replica_devices") == reads + decodes
    prefill = best.value("replicas") * reads * best.prefill.price
    decode = best.value("replicas") * decodes * best.candidate.price
    assert best.value("fleet_price") == pytest.approx(prefill + decode)
    assert best.value("prompt_share") == pytest.approx(prefill / (prefill + decode))
    # Tokens in and out, each at its price, are the whole bill: 150 requests of 1,000 and 200.
    into, out = (
        best.value("prompt_token_price") * 150_000,
        best.value("answer_token_price") * 30_000,
    )
    assert into == pytest.approx(prefill)
    assert into + out == pytest.approx(best.value("fleet_price"))


def test_energy_counts_the_power_of_both_pools() -> None:
    option = Engine.plan(**ASKED, pools="two", objective="energy").best
    assert option.prefill is not None
    power = [
        each.service.device.power.tdp.to("W").magnitude * count * each.service.parallelism.devices
        for each, count in (
            (option.prefill, option.value("prefill_copies")),
            (option.candidate, option.value("decode_copies")),
        )
    ]
    assert option.value("fleet_price") == pytest.approx(option.value("replicas") * sum(power))


def test_what_a_pair_serves_is_what_a_run_serves(two: Planned) -> None:
    """The best pair, run with the scheduler at nine tenths of the rate planned for it."""
    option = two.best
    assert option.prefill is not None
    reads = option.prefill.service.parallelism
    loaded = Engine.load(
        model="Llama3_8B",
        hardware=option.service.system or option.prefill.service.system or "HGX_H100",
        tensor_parallel=option.service.parallelism.tensor,
        data_parallel=round(option.value("decode_copies")),
        prefill=PrefillPool(
            copies=round(option.value("prefill_copies")), tensor_parallel=reads.tensor
        ),
        rate=0.9 * option.value("replica_rate"),
        prompt_tokens=1000,
        output_tokens=200,
        estimate="calibrated",
        requests=3000,
    )
    assert loaded.value("time_per_output_token") <= 0.03 * 1.1
    assert loaded.value("time_to_first_token") <= 0.5 * 1.1
    assert loaded.value("saturation_rate") > option.value("replica_rate")


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


def test_two_pools_that_lose_say_why() -> None:
    """Few requests: one device does both, and two pools need two."""
    asked = ASKED | {"rate": 2, "hardware": ["H100"], "software": "vllm"}
    found = Engine.plan(**asked, pools="either")
    assert found.best.prefill is None
    second = next(each for each in found.options if each.prefill is not None)
    assert second.value("fleet_devices") == 2
    assert found.best.value("fleet_devices") == 1
    assert "2.00 times the cost" in str(found)
    assert "of the time, and those that decode are" in str(found)


def test_two_pools_keep_a_pace_that_one_does_not() -> None:
    """Long prompts delay everybody's tokens, unless others read them."""
    tight = ASKED | {"prompt_tokens": 8000, "time_per_output_token": "8 ms", "rate": 20}
    tight |= {"time_to_first_token": "2 s", "hardware": ["H100"]}
    found = Engine.plan(**tight, pools="either")
    assert found.best.prefill is not None
    assert "one pool" in str(found)


def test_a_faster_link_never_costs_more() -> None:
    asked = ASKED | {"hardware": ["H100"]}
    prices = [
        Engine.plan(**asked, pools="two", prefill_link_bandwidth=link).best.value("fleet_price")
        for link in ("2 GB/s", "20 GB/s", "200 GB/s")
    ]
    assert prices == sorted(prices, reverse=True)
    overlapped = Engine.plan(
        **asked, pools="two", prefill_link_bandwidth="2 GB/s", prefill_overlap=True
    )
    assert overlapped.best.value("fleet_price") <= prices[0]
    with pytest.raises(InvalidValueError, match=r"Nearest is prefill on .*each token"):
        Engine.plan(**asked, pools="two", prefill_link_bandwidth="1 MB/s")


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


def test_a_device_without_a_link_has_one_pool() -> None:
    with pytest.raises(InvalidValueError, match="give prefill_link_bandwidth"):
        Engine.plan(**(ASKED | {"hardware": "L4", "rate": 1}), pools="two")


def test_a_model_that_fits_in_no_pool_says_so() -> None:
    with pytest.raises(InvalidValueError, match="does not fit in memory"):
        Engine.plan(
            **(ASKED | {"model": "Llama3_405B", "hardware": "HGX_H100"}),
            precision="bf16",
            pools="two",
        )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pools": "too"}, "one of one, two, either"),
        ({"prefill_overlap": 1, "pools": "two"}, "True or False"),
        ({"prefill_link_bandwidth": "1 GB/s"}, "tries none"),
        ({"prefill_hardware": "L40S", "pools": "two"}, "how prefill_hardware is joined"),
        ({"prefill_link_bandwidth": "-1 GB/s", "pools": "two"}, "positive"),
        ({"context_parallel": 0}, "whole number"),
        ({"context_parallel": [1, 1.5]}, "whole number"),
        ({"context_parallel": 64}, "too few for context_parallel"),
        ({"pipeline_parallel": "two"}, "whole number"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(MlsimError, match=words):
        Engine.plan(**(ASKED | given))


def test_sequences_may_be_shared() -> None:
    """Two devices read half of a long prompt each: its first token is there sooner."""
    asked = {
        "model": "Llama3_8B",
        "rate": 1,
        "prompt_tokens": 32_000,
        "output_tokens": 100,
        "time_to_first_token": "10 s",
        "hardware": "HGX_H100",
        "estimate": "roofline",
    }
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


def test_stages_work_on_a_batch_each() -> None:
    """As `Engine.serve` has it of twice the batch in two stages."""
    asked = {"model": "Llama3_8B", "hardware": "HGX_H100", "precision": "bf16"}
    found = Engine.plan(**asked, rate=1, pipeline_parallel=2, estimate="roofline")
    option = next(each for each in found.options if each.service.parallelism.tensor == 1)
    batch = option.value("running_requests")
    served = Engine.serve(
        **asked, batch_size=2 * batch, pipeline_parallel=2, prompt_tokens=512, output_tokens=128
    )
    step = served.decode_at(576).value("latency")
    assert option.service.parallelism.pipeline == 2
    assert option.value("replica_devices") == 2
    # A step, and the prompts that come in its time.
    assert step < option.value("time_per_output_token")
    rate = option.value("replica_rate")
    assert rate < 2 * batch / (127 * step)


def test_uneven_experts_cost_rate_where_they_are_spread() -> None:
    asked = {
        "model": "Mixtral_8x7B",
        "rate": 5,
        "hardware": "HGX_H100",
        "estimate": "roofline",
    }
    even, uneven = Engine.plan(**asked), Engine.plan(**asked, expert_imbalance=1.8)

    def rates(found: Planned) -> dict[tuple[int, int], float]:
        layouts = ((each.service.parallelism, each.value("replica_rate")) for each in found.options)
        return {(layout.tensor, layout.expert): rate for layout, rate in layouts}

    before, after = rates(even), rates(uneven)
    assert after[4, 4] < before[4, 4]
    assert after[4, 1] == before[4, 1]


def test_only_what_decodes_guesses() -> None:
    drafted = Speculation(draft="Llama3_8B", tokens=4, acceptance=0.8)
    asked = {"model": "Llama3_70B", "rate": 1, "hardware": ["H100"], "estimate": "roofline"}
    asked |= {"time_per_output_token": "3.2 ms"}
    with pytest.raises(InvalidValueError, match="serves Llama"):
        Engine.plan(**asked, pools="two")
    found = Engine.plan(**asked, pools="two", speculation=drafted, prefill_link_bandwidth="50 GB/s")
    assert found.best.value("time_per_output_token") <= 3.2e-3
    assert found.best.prefill is not None
    assert found.best.prefill.service.switches.speculation is None


def test_the_command_prints_what_the_engine_says(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "Llama3_8B", "--rate", "150", "--hardware", "H100", "--prompt", "1000"]
    arguments += ["--pools", "two", "--prefill-hardware", "L40S", "--prefill-link", "100 Gb/s"]
    arguments += ["--cp", "1,2", "--expert-imbalance", "uniform", "--prefill-overlap"]
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = Engine.plan(
        model="Llama3_8B",
        rate=150,
        hardware=["H100"],
        prompt_tokens=1000,
        pools="two",
        prefill_hardware=["L40S"],
        prefill_link_bandwidth="100 Gb/s",
        prefill_overlap=True,
        context_parallel=[1, 2],
    )
    assert told["options"][0]["fleet_price"] == pytest.approx(found.best.value("fleet_price"))
    assert told["options"][0]["prefill_device"] == "NVIDIA L40S"
    assert main(["plan", "Llama3_8B", "--rate", "1", "--expert-imbalance", "much"]) == 1
    assert "--expert-imbalance must be a number" in capsys.readouterr().err
    assert main(["plan", "Llama3_8B", "--rate", "1", "--prefill-link", "1 GB/s"]) == 1
    assert "pools" in capsys.readouterr().err
