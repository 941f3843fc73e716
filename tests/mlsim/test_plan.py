"""`Engine.plan` and `mlsim plan`: the cheapest way in time, worked by hand, and refusals."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pytest

from mlsim import Engine, given as assumed, show
from mlsim.cli import main
from mlsim.engine.plan import owned
from mlsim.errors import InvalidValueError, MlsimError, UnitError
from mlsim.quantities import VOCABULARY
from mlsim.solvers.explain import Explanation
from mlsim.solvers.plan.options import Goals, slowed
from mlsim.solvers.plan.origins import question_of
from mlsim.solvers.plan.planned import OBJECTIVES, Planned
from mlsim.workloads import Speculation

ASKED: dict[str, Any] = {
    "model": "Llama3_8B",
    "rate": 50,
    "time_to_first_token": "500 ms",
    "time_per_output_token": "30 ms",
    "hardware": ["H100", "L40S", "A100"],
}


@pytest.fixture(scope="module")
def found() -> Planned:
    """A plan over three devices."""
    return Engine.plan(**ASKED)


def test_each_option_meets_the_goals(found: Planned) -> None:
    for each in found.options:
        assert each.value("time_to_first_token") <= 0.5
        assert each.value("time_per_output_token") <= 0.03
        assert each.value("margin") >= 1
        assert each.value("replicas") * each.value("replica_rate") >= 50
        assert (each.value("replicas") - 1) * each.value("replica_rate") < 50


def test_the_bill_is_devices_times_price(found: Planned) -> None:
    best = found.best
    each = best.candidate.price
    assert best.value("fleet_price") == pytest.approx(best.value("fleet_devices") * each)
    # 50 requests of 128 new tokens each second.
    assert best.value("output_token_price") == pytest.approx(best.value("fleet_price") / 6400)
    # Tokens in and out, each at its price, are the whole bill: 50 requests of 512 and 128.
    into = best.value("prompt_token_price") * 50 * 512
    out = best.value("answer_token_price") * 50 * 128
    assert into + out == pytest.approx(best.value("fleet_price"))
    assert into / (into + out) == pytest.approx(best.prompt_share)
    assert 0 < best.value("prompt_token_price") < best.value("answer_token_price")
    costs = [option.value("fleet_price") for option in found.options]
    assert costs == sorted(costs)


@pytest.mark.parametrize("asked", [{}, {"pools": "two"}, *({"objective": o} for o in OBJECTIVES)])
def test_each_result_is_a_value_with_its_derivation(asked: dict[str, Any]) -> None:
    """As its float and as its equations have it, named, with the price's source; JSON has floats."""
    found = Engine.plan(**ASKED | {"hardware": ["H100", "L40S"]} | asked)
    for option in (found.best, found.options[-1]):
        for name, value in option.found.items():
            shown = getattr(option, name)
            assert shown.si == pytest.approx(value, rel=1e-12)
            assert value == option.value(name)
            assert shown.name == name.replace("_", " ")
            assert shown.origin.how
            assert option.name in shown.origin.brief
            priced = option.candidate.words.partition(" ")[0] in shown.origin.how
            assert priced or name != "fleet_price"
            if name in VOCABULARY:
                assert Explanation(question_of(option), name).value == pytest.approx(value)
        assert show(option, "fleet_price") == option.fleet_price
    units = {"cost": "USD/h", "energy": "kW", "devices": "1"}[found.objective]
    assert found.best.fleet_price.to(units).magnitude > 0
    assert isinstance(found.best.fleet_devices, float)
    assert found.best.replicas >= 1
    low, high = found.band or (0.0, 0.0)
    assert low < high
    assert "end of the band" in found.band[0].name
    assert all(type(each) in (str, int, float) for each in found.to_dict()["options"][0].values())


def test_what_an_author_gives_is_a_rate_and_a_count() -> None:
    """20 a second, 20 samples a second and 20 are one rate; a time is none."""
    asked = {"model": "Llama3_8B", "hardware": "H100"}
    hour = assumed("1 h", "an hour")
    rates = (
        assumed(20, "rate"),
        assumed(72_000, "requests") / hour,
        assumed("20 sample/s", "rate"),
        20,
    )
    plans = [
        Engine.plan(**asked, rate=rate, prompt_tokens=assumed(512, "prompt")) for rate in rates
    ]
    assert {each.best.value("fleet_price") for each in plans} == {
        plans[-1].best.value("fleet_price")
    }
    loads = [Engine.load(**asked, rate=rate, requests=20) for rate in (rates[0], rates[1], 20)]
    assert len({each.value("request_latency") for each in loads}) == 1
    with pytest.raises(UnitError, match="a value in s was given"):
        Engine.plan(**asked, rate=assumed("20 s", "time"))
    with pytest.raises(UnitError, match="a value in token was given"):
        Engine.plan(**asked, rate=assumed("20 token", "tokens"))


def test_what_a_copy_serves_is_what_a_run_serves(found: Planned) -> None:
    """The best option, run with the scheduler at nine tenths of the rate planned for a copy."""
    option = found.best
    service = option.service
    loaded = Engine.load(
        model="Llama3_8B",
        hardware=service.system or service.device,
        tensor_parallel=service.parallelism.tensor,
        rate=float(f"{0.9 * option.value('replica_rate'):.3g}"),
        estimate="calibrated",
        requests=3000,
    )
    assert loaded.value("time_per_output_token") <= 0.03 * 1.1
    assert loaded.value("time_to_first_token") <= 0.5


def test_a_price_that_was_replaced_does_not_count() -> None:
    """Verda asked 39.12 USD/h for eight B200 in February 2026, and 48.88 in August."""
    option = Engine.plan(model="Llama3_8B", rate=5, hardware="B200", provider="Verda").best
    assert option.candidate.price * 3600 == pytest.approx(48.88 / 8)
    assert "2026-08-22" in option.candidate.words


def test_easier_goals_never_cost_more(found: Planned) -> None:
    easier = Engine.plan(**(ASKED | {"time_per_output_token": "60 ms"}))
    assert easier.best.value("fleet_price") <= found.best.value("fleet_price")
    slower = Engine.plan(**(ASKED | {"rate": 10}))
    assert slower.best.value("fleet_price") <= found.best.value("fleet_price")


def test_no_point_of_the_front_is_beaten(found: Planned) -> None:
    front = found.front
    assert front.tokens_per_user.is_monotonic_decreasing
    assert front.tokens_per_device.is_monotonic_increasing


def test_the_runner_up_is_told(found: Planned) -> None:
    assert "times the cost" in found.why
    assert "runner-up" in str(found)
    assert "of published services" in str(found)


def test_given_prices_decide() -> None:
    cheap = Engine.plan(**(ASKED | {"price": {"L40S": "0.001 USD/h", "H100": "99 USD/h"}}))
    assert cheap.best.service.device.key == "Cloud.L40S"
    by_energy = Engine.plan(**(ASKED | {"objective": "energy"}))
    assert by_energy.best.value("fleet_price") == pytest.approx(
        by_energy.best.value("fleet_devices")
        * by_energy.best.service.device.power.tdp.to("W").magnitude  # type: ignore[union-attr]
    )
    fewest = Engine.plan(**(ASKED | {"objective": "devices"}))
    assert fewest.best.value("fleet_devices") == min(
        each.value("fleet_devices") for each in fewest.options
    )


def test_goals_that_nothing_meets_say_what_comes_nearest() -> None:
    with pytest.raises(InvalidValueError, match=r"Nearest is .*first token .* each token"):
        Engine.plan(**(ASKED | {"time_per_output_token": "0.1 ms"}))
    with pytest.raises(InvalidValueError, match="memory"):
        Engine.plan(**(ASKED | {"model": "Llama3_405B", "hardware": "L4"}))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rate": 0}, "positive"),
        ({"rate": math.nan}, "positive"),
        ({"rate": [1, 2]}, "one number"),
        ({"time_to_first_token": "3 kg"}, "expected s"),
        ({"time_to_first_token": 3}, "unit"),
        ({"prompt_tokens": 0}, "whole number"),
        ({"output_tokens": 1}, "2 or more"),
        ({"objective": "cots"}, "cost"),
        ({"terms": "free"}, "on demand"),
        ({"provider": "Lamda"}, "Lambda"),
        ({"hardware": "H1000"}, "H100"),
        ({"model": "resnet50"}, "."),
        ({"estimate": "guess"}, "."),
        ({"think_time": 3}, "is for users"),
        ({"price": {"H200": "2 USD/h"}}, "H200.*is not tried: hardware has NVIDIA H100"),
        ({"expert_imbalance": 0.5}, "number from 1 up"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(MlsimError, match=words):
        Engine.plan(**(ASKED | given))


def test_an_owned_device_by_hand() -> None:
    """35,064 hours of four years: 30,000 USD are 0.8556 an hour, and 0.84 kW cost 0.084."""
    found = owned(price="30000 USD", years=4, power="700 W", electricity="0.1 USD/kWh")
    assert found.to("USD/h").magnitude == pytest.approx(30000 / 35064 + 0.084)


def test_the_command_prints_what_the_engine_says(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "Llama3_8B", "--rate", "50", "--hardware", "H100,L40S,A100"]
    arguments += ["--first-token", "500 ms", "--per-token", "30 ms"]
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["options"][0]["fleet_devices"] >= 1
    assert main(arguments) == 0
    assert "USD per million" in capsys.readouterr().out
    assert main([*arguments[:-6], "--hardware", "H100,Gaudi3"]) == 0
    assert "Intel Gaudi 3: no price is on record; give --price\n" in capsys.readouterr().out
    assert main(["plan", "Llama3_8B", "--rate", "many"]) == 1
    assert "--rate" in capsys.readouterr().err


PLANNED: dict[str, Any] = {"model": "Llama3_70B", "rate": 20, "hardware": ["H100"]}


def test_a_cached_prefix_needs_fewer_machines_and_speculation_more_for_a_rate() -> None:
    asked = PLANNED | {"prompt_tokens": 2000, "estimate": "roofline"}
    plain = Engine.plan(**asked)
    cached = Engine.plan(**asked, prefix_share=0.9, prefix_count=1)
    assert cached.best.value("fleet_price") < plain.best.value("fleet_price")
    assert "90% of each prompt from the cache" in str(cached)
    assert "switched_on" in cached.to_dict()
    assert "switched_on" not in plain.to_dict()


def test_speculation_meets_a_pace_that_nothing_else_does() -> None:
    asked = PLANNED | {"time_per_output_token": "3.2 ms", "estimate": "roofline", "rate": 1}
    drafted = Speculation(draft="Llama3_8B", tokens=4, acceptance=0.8)
    with pytest.raises(InvalidValueError, match="serves Llama"):
        Engine.plan(**asked)
    found = Engine.plan(**asked, speculation=drafted)
    assert found.best.value("time_per_output_token") <= 3.2e-3


def test_a_switch_that_does_not_go_with_the_model_says_why() -> None:
    other = Speculation(draft="Qwen3_8B", tokens=4, acceptance=0.8)
    with pytest.raises(InvalidValueError, match="vocabulary of its model"):
        Engine.plan(**PLANNED, speculation=other)


PRICES = ("-2 USD/h", "nan USD/h", "inf USD/h", "0 USD/h")


@pytest.mark.parametrize("price", PRICES)
def test_no_door_takes_a_price_that_is_none(price: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As one for all, by device, of a run, or of a device that is bought."""
    run = {"model": "Llama3_8B", "hardware": "HGX_H100", "global_batch": 8, "data_parallel": 8}
    asking: list[Any] = [
        lambda: Engine.plan(**(ASKED | {"price": price})),
        lambda: Engine.plan(**(ASKED | {"price": {"H100": price}, "objective": "devices"})),
        lambda: Engine.train(**run, tokens=1e9, price=price),
        lambda: owned(
            price=price.removesuffix("/h"), years=4, power="700 W", electricity="0.1 USD/kWh"
        ),
        lambda: owned(
            price="30000 USD", years=4, power="700 W", electricity=price.replace("/h", "/kWh")
        ),
    ]
    for ask in asking:
        with pytest.raises(InvalidValueError, match="must be a positive, finite number"):
            ask()
    assert main(["plan", "Llama3_8B", "--rate", "20", "--hardware", "H100", "--price", price]) == 1
    assert "--price must be a positive" in capsys.readouterr().err


@pytest.mark.parametrize("pue", [-1, 0.5, math.nan, math.inf])
def test_a_data_center_draws_no_less_than_its_devices(pue: float) -> None:
    with pytest.raises(InvalidValueError, match="pue must be"):
        owned(price="30000 USD", years=4, power="700 W", electricity="0.1 USD/kWh", pue=pue)


DEEPSEEK: dict[str, Any] = {
    "model": "DeepSeek_V3",
    "rate": 20,
    "time_to_first_token": "2 s",
    "time_per_output_token": "50 ms",
    "prompt_tokens": 2000,
    "output_tokens": 500,
    "price": "2 USD/h",
}


def test_copies_of_attention_that_share_experts_are_tried_and_agree_with_load() -> None:
    """Eight of them serve more than eight devices that share each sequence, as `load` says, too."""
    found = Engine.plan(hardware="HGX_H200", **DEEPSEEK)
    options = {str(each.service.parallelism): each for each in found.options}
    assert options["DP8 EP8"].replica_rate > 1.15 * options["TP8 EP8"].replica_rate
    assert found.best.service.parallelism.data > 1
    assert "on each of" in str(found)
    for name, option in options.items():
        layout = option.service.parallelism
        loaded = Engine.load(
            model="DeepSeek_V3",
            hardware="HGX_H200",
            tensor_parallel=layout.tensor,
            data_parallel=layout.data,
            expert_parallel=layout.expert,
            prompt_tokens=2000,
            output_tokens=500,
            estimate="calibrated",
            rate=option.value("replica_rate"),
            requests=50,
        )
        assert loaded.steady is not None
        for closed, planned, near in (
            ("token_interval", "time_per_output_token", 0.06),
            ("steady_first_token", "time_to_first_token", 0.08),
            ("running_requests", "running_requests", 0.08),
        ):
            value = loaded.steady.value(closed)
            assert value == pytest.approx(option.value(planned), rel=near), (name, closed)


def test_a_dense_model_has_no_experts_to_share() -> None:
    found = Engine.plan(**ASKED)
    tried = [*found.options, *(each.candidate for each in found.refused if each.candidate)]
    assert {each.service.parallelism.data for each in tried} == {1}


USERS: dict[str, Any] = {name: value for name, value in ASKED.items() if name != "rate"}


def test_users_who_think_ask_as_often_as_their_answers_let_them() -> None:
    """2,000 users in a circle of 20 s and an answer: Little's law, and a run of the same users."""
    found = Engine.plan(**USERS, users=2000, think_time=20.0)
    for option in found.options:
        latency = option.value("time_to_first_token") + 127 * option.value("time_per_output_token")
        assert option.value("required_rate") == pytest.approx(2000 / (20 + latency))
        assert option.value("replicas") == math.ceil(
            option.value("required_rate") / option.value("replica_rate")
        )
    best = found.best
    assert "2,000 users who think for 20 s" in str(found)
    assert found.to_dict()["goals"]["users"]["value"] == 2000
    loaded = Engine.load(
        model="Llama3_8B",
        hardware=best.service.system or best.service.device,
        tensor_parallel=best.service.parallelism.tensor,
        users=round(2000 / best.value("replicas")),
        think_time=20.0,
        estimate="calibrated",
    )
    assert loaded.value("time_per_output_token") <= 0.03 * 1.1
    assert loaded.value("time_to_first_token") <= 0.5


def test_users_and_a_rate_are_two_ways_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    for given, words in (
        ({"users": 100, "rate": 5}, "rate and users"),
        ({}, "given is none"),
        ({"users": 0}, "whole number from 1"),
        ({"users": 100, "think_time": -1}, "from 0 up"),
        ({"users": 100, "pools": "either"}, "needs a rate"),
    ):
        with pytest.raises(MlsimError, match=words):
            Engine.plan(**USERS, **given)
    arguments = ["plan", "Llama3_8B", "--users", "400", "--think-time", "20", "--hardware", "H100"]
    assert main(arguments) == 0
    assert "400 users who think for 20 s" in capsys.readouterr().out
    assert main([*arguments, "--rate", "3"]) == 1
    assert "one way" in capsys.readouterr().err


def test_hardware_that_was_asked_for_and_cannot_serve_is_named_with_the_reason() -> None:
    """No price, no room, too slow: each on one line, and in JSON; all that is rented is not."""
    asked: dict[str, Any] = {"model": "Llama3_70B", "rate": 5, "prompt_tokens": 1000}
    found = Engine.plan(**asked, hardware=["H100", "Gaudi3", "A10", "MI325X", "L40S"])
    text = " ".join(str(found).split())
    for name, why in (
        ("Intel Gaudi 3, AMD Instinct MI325X 256 GB", "no price is on record; give price="),
        ("NVIDIA A10 24 GB", "does not fit in memory"),
        ("NVIDIA L40S", "first token takes 1.13 times the goal at its best"),
    ):
        assert f"{name}: {why}" in text.partition(" left out ")[2]
    assert len(found.to_dict()["left_out"]) == 4
    assert "left out" not in str(Engine.plan(**asked, hardware="H100"))
    everywhere = Engine.plan(**asked)
    assert everywhere.refused
    assert "left out" not in str(everywhere)
    with pytest.raises(InvalidValueError, match=r"Nearest is .*Left out: Intel Gaudi 3: no price"):
        Engine.plan(**asked, hardware=["Gaudi3", "L40S"])


def test_what_is_asked_twice_is_tried_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A device under several names and as its largest node; a format in several spellings."""
    asked = ["plan", "Llama3_8B", "--rate", "5", "--json", "--precision"]
    told = []
    for formats, hardware in (
        ("bf16,fp8", "H100,A100"),
        ("bf16,fp8,FP8,bf16", "H100,A100,H100,NVIDIA H100 80GB HBM3,HGX_H100"),
    ):
        assert main([*asked, formats, "--hardware", hardware]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    given: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100", "rate": 5, "pools": "two"}
    given |= {"prefill_link_bandwidth": "100 Gb/s"}
    once = Engine.plan(**given, prefill_hardware="L40S")
    assert Engine.plan(**given, prefill_hardware=["L40S", "L40S"]).pairs == once.pairs


def test_a_price_by_device_counts_where_it_only_reads_prompts_or_nothing_is_named() -> None:
    given: dict[str, Any] = {"model": "Llama3_8B", "rate": 5}
    prices = {"H100": "2 USD/h", "L40S": "1 USD/h"}
    split = Engine.plan(
        **given,
        hardware="H100",
        prefill_hardware="L40S",
        prefill_link_bandwidth="100 Gb/s",
        pools="two",
        price=prices,
    )
    assert split.best.prefill is not None
    assert split.best.prefill.price * 3600 == pytest.approx(1)
    everywhere = Engine.plan(**given, price={"MI300X": "0.01 USD/h"})
    assert everywhere.best.service.device.key == "Cloud.MI300X"


# A full copy, and the load that is asked.


def test_times_are_labelled_as_those_of_a_full_copy_and_its_use_is_told() -> None:
    """A run at the asked rate is far quicker; the text says at which rate its times are."""
    found = Engine.plan(model="Llama3_8B", hardware="H100", rate=5)
    best, text = found.best, " ".join(str(found).split())
    row = (
        f"bf16, full at {best.value('replica_rate'):.3g} requests/s "
        f"(batch {best.value('running_requests'):,.0f}): "
    )
    assert row in text
    assert "batch" not in text.partition(row)[0]
    assert best.value("replica_use") == pytest.approx(5 / best.value("replica_rate"))
    assert (
        f"a copy of the first gets {best.value('replica_use'):.0%} of the rate that fills it"
        in text
    )
    assert set(found.table.replica_use) == {each.value("replica_use") for each in found.options}
    users = Engine.plan(model="Llama3_8B", hardware="H100", users=50)
    # They wait less than at a full copy, and so ask more often.
    assert f"{users.best.value('required_rate'):.3g} requests/s or more" in str(users)
    assert f"gets {users.best.value('replica_use'):.0%} or more of the rate" in " ".join(
        str(users).split()
    )
    two = Engine.plan(model="Llama3_8B", hardware="H100", rate=5, pools="two")
    assert f"a pair of pools of the first gets {two.best.value('replica_use'):.0%}" in str(two)


def test_a_plan_near_a_copys_limit_leaves_queueing_to_load_and_says_so() -> None:
    """With its batch as a limit, the first token of a run takes many times what the plan says."""
    asked: dict[str, Any] = {"model": "Llama3_70B", "hardware": "MI300X", "rate": 0.93}
    asked |= {"prompt_tokens": 1000, "output_tokens": 300}
    found = Engine.plan(**asked, price="2 USD/h")
    best, text = found.best, " ".join(str(found).split())
    assert best.value("replica_use") > 0.95
    assert "without a wait for a place in the batch (don't set it as a limit)" in text
    assert "`Engine.load` tells the wait" in text
    limit = int(best.value("running_requests"))
    free = Engine.load(**asked, estimate="calibrated")
    held = Engine.load(**asked, estimate="calibrated", running_limit=limit)
    assert free.value("time_to_first_token") <= 1.1 * best.value("time_to_first_token")
    times = held.value("time_to_first_token") / held.steady.value("steady_first_token")
    assert times > 5
    assert f"requests queue: their first token takes {times:.1f} times" in " ".join(
        str(held).split()
    )
    assert "requests queue" not in str(free)


# Borrowed constants.


def test_borrowed_constants_are_marked_and_stand_by_the_slow_edge() -> None:
    """The MI300X came first in silence, on constants that nobody measured there."""
    found = Engine.plan(hardware=["MI300X_Platform", "HGX_H200"], **DEEPSEEK)
    lent = {bool(each.loans) for each in found.options if "MI300X" in each.name}
    assert lent == {True}
    assert {bool(each.loans) for each in found.options if "H200" in each.name} == {False}
    edges = [
        (each.slow or {"fleet_price": math.inf})["fleet_price"]
        if each.loans
        else each.value("fleet_price")
        for each in found.options
    ]
    assert edges == sorted(edges)
    for before, after in pairwise(found.options):
        # None that borrows stands above a measured one that costs as much or less.
        if before.loans and not after.loans:
            assert before.slow["fleet_price"] < after.value("fleet_price")
    text = " ".join(str(found).split())
    assert "* AMD Instinct MI300X 192 GB borrows share of the memory bandwidth from" in text
    assert "stand by what they take at the slow edge of their band" in text
    for place, option in enumerate(found.options[:5], 1):
        assert (f"{place}* " in text) is bool(option.loans)
        assert (f"{place} " in text) or option.loans
    told = found.to_dict()
    assert [bool(row["borrowed"]) for row in told["options"]] == [
        bool(each.loans) for each in found.options
    ]
    assert told["borrowed"]
    assert set(found.table.borrowed) >= {""}


def test_what_reading_prompts_borrows_counts_as_much_as_what_a_decode_step_does() -> None:
    """An RTX 3090 lends no arithmetic to a decode step; to prompts, half its time, it does."""
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "RTX3090", "price": "1 USD/h"}
    half = Engine.plan(**asked, rate=4)
    assert half.best.value("prompt_share") > 0.4
    assert [each.constant for each in half.best.loans] == ["compute_fraction"]
    text = " ".join(str(half).split())
    assert "1* " in text
    assert "borrows share of the peak from RTX4090" in text
    # With short prompts and long answers the same loan decides less than a tenth.
    little = Engine.plan(**asked, rate=0.1, prompt_tokens=32, output_tokens=1000)
    assert little.best.value("prompt_share") < 0.08
    assert little.borrowed == []


def test_two_pools_borrow_each_for_its_own_work() -> None:
    """Who reads prompts borrows arithmetic; who decodes doesn't."""
    found = Engine.plan(
        model="Llama3_8B",
        hardware="RTX4090",
        prefill_hardware="RTX3090",
        prefill_link_bandwidth="100 Gb/s",
        rate=2,
        price="1 USD/h",
        pools="two",
        time_per_output_token="22 ms",
    )
    assert [each.constant for each in found.best.loans] == ["compute_fraction"]


def test_a_loan_never_widens_a_band_by_nothing_in_words() -> None:
    """An A10 borrows within its family, whose rows on record lie as near as others do."""
    found = Engine.plan(model="Llama3_8B", hardware="A10", rate=1, price="1 USD/h")
    assert found.best.loans
    assert found.best.slower == pytest.approx(1.0)
    text = " ".join(str(found).split())
    assert "1* " in text
    assert "NVIDIA A10 24 GB borrows share of the peak" in text
    assert "times as long" not in text
    assert "slow edge" not in text


def test_what_would_be_late_at_the_slow_edge_stands_last_and_says_so() -> None:
    """Within 50 ms it serves; if as much slower as loans were off, no batch does."""
    free = {**DEEPSEEK, "hardware": ["MI300X_Platform", "HGX_H200"], "output_tokens": 64}
    quick = Engine.plan(**{**free, "time_per_output_token": "1 s"}).options
    best = min(float(each.front["time_per_output_token"].min()) for each in quick if each.loans)
    tight = {**free, "time_per_output_token": f"{best * 1.02} s"}
    found = Engine.plan(**{**tight, "hardware": "MI300X_Platform"})
    assert not found.best.slow
    text = " ".join(str(found).split())
    assert "would miss the goals then, and stand last" in text
    assert "the best that is measured: there is none" in text


def test_plans_with_their_own_constants_have_no_mark() -> None:
    found = Engine.plan(hardware="HGX_H200", **DEEPSEEK)
    assert found.borrowed == []
    assert "*" not in str(found)
    assert "borrowed" not in found.to_dict()
    roofline = Engine.plan(hardware="MI300X_Platform", estimate="roofline", **DEEPSEEK)
    assert roofline.borrowed == []


def test_a_plan_at_the_slow_edge_by_hand() -> None:
    """All steps twice as long: a batch answers half as many requests, in twice the time."""
    option = Engine.plan(hardware="HGX_H200", **DEEPSEEK).best
    goals = Goals(20.0, 2.0, 0.05, 2000.0, 500.0)
    assert slowed(option, goals, 1.0) == option.found
    twice = slowed(option, goals, 2.0)
    assert twice["time_per_output_token"] <= 0.05
    same = option.front["running_requests"].tolist().index(twice["running_requests"])
    assert twice["replica_rate"] == pytest.approx(option.front["replica_rate"][same] / 2)
    assert twice["time_per_output_token"] == pytest.approx(
        2 * option.front["time_per_output_token"][same]
    )
    assert slowed(option, goals, 1000.0) == {}
