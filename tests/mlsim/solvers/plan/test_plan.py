"""`Engine.plan` and `mlsim plan`: the cheapest way in time, worked by hand, and refusals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from refusals import answered

from mlsim import Engine, given as assumed, show
from mlsim.cli import main
from mlsim.engine.plan import owned
from mlsim.errors import InvalidValueError, UnitError
from mlsim.quantities import VOCABULARY
from mlsim.solvers.explain import Explanation
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
    power = found.best.service.device.power.tdp.to("W").magnitude  # type: ignore[union-attr]
    priced = {"cost": ("USD/s", found.best.candidate.price), "energy": ("W", power)}
    unit, each = priced.get(found.objective, ("1", 1.0))
    if found.best.prefill is None:
        bill = found.best.value("fleet_devices") * each
        assert found.best.fleet_price.to(unit).magnitude == pytest.approx(bill)
    keys = [found._value(option) for option in found.options if not option.loans]
    assert keys == sorted(keys)
    assert isinstance(found.best.fleet_devices, float)
    low, high = found.band or (0.0, 0.0)
    assert 0.5 < low < 1 < high < 2
    assert [each.name for each in found.band] == ["lower end of the band", "upper end of the band"]
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
    # The last tenth of its rate is worth up to a third of the time; closed forms are off by a tenth.
    for name in ("time_per_output_token", "time_to_first_token"):
        assert 0.67 < loaded.value(name) / option.value(name) < 1.1


def test_a_price_that_was_replaced_does_not_count() -> None:
    """Verda asked 39.12 USD/h for eight B200 in February 2026, and 48.88 in August."""
    option = Engine.plan(model="Llama3_8B", rate=5, hardware="B200", provider="Verda").best
    assert option.candidate.price * 3600 == pytest.approx(48.88 / 8)
    assert "2026-08-22" in option.candidate.words


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
        parts = {"tensor_parallel": layout.tensor, "data_parallel": layout.data}
        asked = {name: DEEPSEEK[name] for name in ("model", "prompt_tokens", "output_tokens")}
        asked |= {"hardware": "HGX_H200", "expert_parallel": layout.expert, **parts}
        rate = option.value("replica_rate")
        loaded = Engine.load(**asked, estimate="calibrated", rate=rate, requests=50)
        assert loaded.steady is not None
        for closed, planned, near in (
            ("token_interval", "time_per_output_token", 0.06),
            ("steady_first_token", "time_to_first_token", 0.08),
            ("running_requests", "running_requests", 0.08),
        ):
            value = loaded.steady.value(closed)
            assert value == pytest.approx(option.value(planned), rel=near), (name, closed)


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
    # A copy that is not full is faster than what was planned.
    for name in ("time_per_output_token", "time_to_first_token"):
        assert 0.5 < loaded.value(name) / best.value(name) < 1.02


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
    pools = {"prefill_hardware": "L40S", "prefill_link_bandwidth": "100 Gb/s", "pools": "two"}
    split = Engine.plan(**given, **pools, hardware="H100", price=prices)
    assert split.best.prefill is not None
    assert split.best.prefill.price * 3600 == pytest.approx(1)
    everywhere = Engine.plan(**given, price={"MI300X": "0.01 USD/h"})
    assert everywhere.best.service.device.key == "Cloud.MI300X"


def test_what_cannot_be_is_refused() -> None:
    assert answered(lambda **given: Engine.plan(**(ASKED | given)), "plan") == []
    with pytest.raises(InvalidValueError, match="vocabulary of its model"):
        Engine.plan(**ASKED, speculation=Speculation(draft="Qwen3_8B", tokens=4, acceptance=0.8))


OWNED: dict[str, Any] = {"price": "30000 USD", "years": 4, "power": "700 W"}


def test_what_a_device_costs_that_is_bought() -> None:
    """35,064 hours of four years: 30,000 USD are 0.8556 an hour, and 0.84 kW cost 0.084."""
    found = owned(**OWNED, electricity="0.1 USD/kWh")
    assert found.to("USD/h").magnitude == pytest.approx(30000 / 35064 + 0.084)
    for pue in (-1, 0.5, math.nan, math.inf):
        with pytest.raises(InvalidValueError, match="pue must be"):
            owned(**OWNED, electricity="0.1 USD/kWh", pue=pue)


def test_no_door_takes_a_price_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """As one for all, by device, of a run, or of a device that is bought."""
    run = {"model": "Llama3_8B", "hardware": "HGX_H100", "global_batch": 8, "data_parallel": 8}
    doors: list[Callable[[str], Any]] = [
        lambda price: Engine.plan(**(ASKED | {"price": price})),
        lambda price: Engine.plan(**(ASKED | {"price": {"H100": price}, "objective": "devices"})),
        lambda price: Engine.train(**run, tokens=1e9, price=price),
        lambda price: owned(**OWNED | {"price": price[:-2]}, electricity="0.1 USD/kWh"),
        lambda price: owned(**OWNED, electricity=price.replace("/h", "/kWh")),
    ]
    for price in ("-2 USD/h", "nan USD/h", "inf USD/h", "0 USD/h"):
        for door in doors:
            with pytest.raises(InvalidValueError, match="must be a positive, finite number"):
                door(price)
    plan = ["plan", "Llama3_8B", "--hardware", "H100", "--rate", "20", "--price", "0 USD/h"]
    assert main(plan) == 1
    assert "--price must be a positive" in capsys.readouterr().err


# Borrowed constants.


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
