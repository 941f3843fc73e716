"""`Engine.plan` and `mlsim plan`: the cheapest way in time, worked by hand, and refusals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from refusals import answered

from mlsim import Engine, given as assumed, show
from mlsim.cli import main
from mlsim.engine.plan import owned
from mlsim.errors import InvalidValueError, UnitError
from mlsim.quantities import VOCABULARY
from mlsim.solvers.explain import Explanation
from mlsim.solvers.plan.options import question_of
from mlsim.solvers.plan.planned import OBJECTIVES
from mlsim.workloads import Speculation

ASKED: dict[str, Any] = {"model": "Llama3_8B", "rate": 50, "hardware": ["H100", "L40S", "A100"]}
ASKED |= {"time_to_first_token": "500 ms", "time_per_output_token": "30 ms"}


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
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "H100"}
    hours = assumed(72_000, "requests") / assumed("1 h", "an hour")
    rates = assumed(20, "rate"), hours, assumed("20 sample/s", "rate"), 20
    asked["prompt_tokens"] = assumed(512, "prompt")
    prices = {Engine.plan(**asked, rate=rate).best.value("fleet_price") for rate in rates}
    assert len(prices) == 1
    with pytest.raises(UnitError, match="a value in s was given"):
        Engine.plan(**asked, rate=assumed("20 s", "time"))


def test_the_command_prints_what_the_engine_says(capsys: pytest.CaptureFixture[str]) -> None:
    start = ["plan", "Llama3_8B", "--rate", "150"]
    arguments = [*start, "--hardware", "H100", "--prompt", "1000", "--pools", "two", "--cp", "1,2"]
    arguments += ["--prefill-hardware", "L40S", "--prefill-link", "100 Gb/s", "--prefill-overlap"]
    assert main([*arguments, "--expert-imbalance", "uniform", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["options"][0]
    asked = {"hardware": "H100", "rate": 150, "prompt_tokens": 1000, "context_parallel": [1, 2]}
    asked |= {"prefill_hardware": "L40S", "prefill_link_bandwidth": "100 Gb/s"}
    found = Engine.plan(model="Llama3_8B", **asked, prefill_overlap=True, pools="two")
    assert told["fleet_price"] == pytest.approx(found.best.value("fleet_price"))
    assert told["prefill_device"] == "NVIDIA L40S"
    assert main([*start, "--hardware", "H100,Gaudi3"]) == 0
    assert "Intel Gaudi 3: no price is on record; give --price\n" in capsys.readouterr().out
    for wrong, words in (
        (["--expert-imbalance", "much"], "--expert-imbalance must be a number"),
        (["--prefill-link", "1 GB/s"], "pools"),
        (["--hardware", "H100", "--price", "0 USD/h"], "--price must be a positive"),
        (["--rate", "many"], "--rate"),
    ):
        assert main([*start, *wrong]) == 1
        assert words in capsys.readouterr().err


DEEPSEEK = {"model": "DeepSeek_V3", "prompt_tokens": 2000, "output_tokens": 500}


def test_copies_of_attention_that_share_experts_are_tried_and_agree_with_load() -> None:
    """Eight of them serve more than eight devices that share each sequence, as `load` says, too."""
    goals = {"time_to_first_token": "2 s", "time_per_output_token": "50 ms", "price": "2 USD/h"}
    found = Engine.plan(hardware="HGX_H200", rate=20, **DEEPSEEK, **goals)
    options = {str(each.service.parallelism): each for each in found.options}
    assert options["DP8 EP8"].replica_rate > 1.15 * options["TP8 EP8"].replica_rate
    assert found.best.service.parallelism.data > 1
    assert "on each of" in str(found)
    for name, option in options.items():
        layout = option.service.parallelism
        parts = {"tensor_parallel": layout.tensor, "data_parallel": layout.data}
        parts |= {"expert_parallel": layout.expert, "hardware": "HGX_H200", "requests": 50}
        rate = option.value("replica_rate")
        loaded = Engine.load(**DEEPSEEK, **parts, estimate="calibrated", rate=rate)
        assert loaded.steady is not None
        for closed, planned, near in (
            ("token_interval", "time_per_output_token", 0.06),
            ("steady_first_token", "time_to_first_token", 0.08),
            ("running_requests", "running_requests", 0.08),
        ):
            value = loaded.steady.value(closed)
            assert value == pytest.approx(option.value(planned), rel=near), (name, closed)


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
    assert "left out" not in str(Engine.plan(**asked))
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
    # Verda asked 39.12 USD/h for eight B200 in February 2026, and 48.88 in August.
    newest = Engine.plan(**given, hardware="B200", provider="Verda").best
    assert newest.candidate.price * 3600 == pytest.approx(48.88 / 8)


def test_what_cannot_be_is_refused() -> None:
    assert answered(lambda **given: Engine.plan(**(ASKED | given)), "plan") == []
    with pytest.raises(InvalidValueError, match="vocabulary of its model"):
        Engine.plan(**ASKED, speculation=Speculation(draft="Qwen3_8B", tokens=4, acceptance=0.8))


OWNED: dict[str, Any] = {"price": "30000 USD", "years": 4, "power": "700 W"}


def test_what_a_device_costs_that_is_bought() -> None:
    """35,064 hours of four years: 30,000 USD are 0.8556 an hour, and 0.84 kW cost 0.084."""
    found = owned(**OWNED, electricity="0.1 USD/kWh")
    assert found.to("USD/h").magnitude == pytest.approx(30000 / 35064 + 0.084)
    assert "price of a device that is bought = 0.9396 USD/h" in found.origin.brief
    assert "purchase" in found.origin.how
    for pue in (-1, 0.5, math.nan, math.inf):
        with pytest.raises(InvalidValueError, match="pue must be"):
            owned(**OWNED, electricity="0.1 USD/kWh", pue=pue)


def test_no_door_takes_a_price_that_is_none() -> None:
    """As one for all, by device, of a run, or of a device that is bought."""
    run = {"model": "Llama3_8B", "hardware": "HGX_H100", "global_batch": 8, "data_parallel": 8}
    doors: list[Callable[[str], Any]] = [
        lambda price: Engine.plan(**(ASKED | {"price": price})),
        lambda price: Engine.plan(**(ASKED | {"price": {"H100": price}, "objective": "devices"})),
        lambda price: Engine.train(**run, tokens=1e9, price=price),
        lambda price: owned(**OWNED | {"price": price[:-2]}, electricity="0.1 USD/kWh"),
        lambda price: owned(**OWNED, electricity=price.replace("/h", "/kWh")),
    ]
    for price, door in product(("-2 USD/h", "nan USD/h", "inf USD/h", "0 USD/h"), doors):
        with pytest.raises(InvalidValueError, match="must be a positive, finite number"):
            door(price)


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
    asked = {"model": "Llama3_8B", "hardware": "RTX4090", "prefill_hardware": "RTX3090"}
    asked |= {"prefill_link_bandwidth": "100 Gb/s", "time_per_output_token": "22 ms"}
    found = Engine.plan(**asked, rate=2, price="1 USD/h", pools="two")
    assert [each.constant for each in found.best.loans] == ["compute_fraction"]


MANY: dict[str, Any] = ASKED | {"rate": 150, "prompt_tokens": 1000, "output_tokens": 200}
MANY |= {"hardware": ["H100", "A100"]}


def test_either_is_the_better_of_both_and_says_why() -> None:
    one, two, either = (Engine.plan(**MANY, pools=pools) for pools in ("one", "two", "either"))
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


def test_prompts_may_be_read_elsewhere() -> None:
    asked = {"prefill_hardware": ["L40S", "H100"], "prefill_link_bandwidth": "100 Gb/s"}
    asked |= {"hardware": "H100", "price": {"L40S": "0.01 USD/h", "H100": "3 USD/h"}}
    found = Engine.plan(**MANY | asked, pools="two")
    row = found.table.iloc[0]
    assert row.prefill_device.startswith("NVIDIA L40S")
    assert found.best.service.device.key == "Cloud.H100"
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
    one, two = (layouts[1, many].front["time_to_first_token"][0] for many in (1, 2))
    assert two < 0.6 * one
    assert layouts[1, 2].replica_devices == 2


def test_uneven_experts_cost_rate_where_they_are_spread() -> None:
    asked = {"model": "Mixtral_8x7B", "rate": 5, "hardware": "HGX_H100", "estimate": "roofline"}
    even, uneven = (
        {str(each.service.parallelism): each.value("replica_rate") for each in found.options}
        for found in (Engine.plan(**asked), Engine.plan(**asked, expert_imbalance=1.8))
    )
    assert uneven["TP4 EP4"] < even["TP4 EP4"]
    assert uneven["TP4"] == even["TP4"]
