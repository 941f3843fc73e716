"""Published services, what they and their devices cost, and what is inside those; by hand."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import replace

import pytest

from mlsim import Engine, Hardware
from mlsim.errors import InvalidValueError, UnitError, UnknownNameError
from mlsim.measured import (
    api_prices,
    execution_units,
    failures,
    measured_formats,
    measured_loads,
    measured_stairs,
    memory_spaces,
    prices,
    published_rate,
    serving_measurements,
)
from mlsim.solvers.explain import literal
from mlsim.systems import System

BY_ID = {row.id: row for row in serving_measurements()}
LOADED = {
    (row.tensor_parallel, row.users, row.output_tokens): row
    for row in measured_loads("H100")
    if row.prompt_tokens == 1024
}


def test_devices_are_joined_by_their_own_link() -> None:
    row, alone = BY_ID["DEC-048"], BY_ID["DEC-039"]
    assert isinstance(row.system, System)
    assert row.system.devices == row.tensor_parallel == 8
    assert row.system.device is row.device is Hardware.Cloud.A100
    # 600 GB/s count both directions.
    assert row.system.link_bandwidth(8) == 300e9
    assert row.system.figure is Hardware.Cloud.A100.figures["links.nvlink"]
    assert row.serve().decode.value("network_share") > 0
    assert alone.system is alone.device


def test_a_prediction_is_of_what_the_row_counts() -> None:
    """Of one of two devices; of weights with five bits; of an encoder's passes."""
    each = BY_ID["DEC-217"]
    assert (each.per_device, each.devices) == (True, 2)
    assert each.predicted() == pytest.approx(replace(each, per_device=False).predicted() / 2)
    few = BY_ID["DEC-041"]
    assert few.serve().decode.value("bytes_per_parameter") == few.bits_per_weight / 8 == 0.625
    # Half the bytes for each weight: nearly twice as fast, as the cache is small.
    assert 1.9 < replace(few, bits_per_weight=2.5).predicted() / few.predicted() < 2
    encoder = next(row for row in BY_ID.values() if row.metric == "pass_throughput")
    time = encoder.serve().value("time_to_first_token")
    assert encoder.predicted() == pytest.approx(encoder.batch_size / time)
    assert encoder.prediction().si == pytest.approx(encoder.batch_size / time)


def test_words_of_a_row() -> None:
    assert BY_ID["DEC-217"].words == (
        "output throughput per device of Llama 2 70B on 2 x NVIDIA H100 SXM 80 GB, "
        "batch 1,024, 128 + 128 tokens, fp8, with TensorRT-LLM v0.6.1, 2023"
    )
    assert "weights int4, activations bf16, KV cache bf16 (5 bits per weight)" in (
        BY_ID["DEC-041"].words
    )
    assert " 384 tokens, fp16, " in BY_ID["PRE-007"].words


def test_the_estimate_of_a_load_is_near_and_sees_a_full_memory() -> None:
    """64 users with long answers wait half a minute on two H100s, since not all of them fit."""
    rows = [LOADED[2, users, 1024] for users in (4, 8, 16, 32, 64)]
    found = [Engine.load(**row.asked, estimate="calibrated") for row in rows]
    for name, most in (("time_per_output_token", 1.05), ("time_to_first_token", 1.15)):
        ratios = (
            each.value(name) / getattr(row, name).si for each, row in zip(found, rows, strict=True)
        )
        assert 0.85 < statistics.median(ratios) < most, name
    assert rows[0].asked["output_tokens"] == "uniform 819 1024"
    full = LOADED[2, 64, 8192]
    narrow = Engine.load(**(full.asked | {"kv_cache": "fp8"}), estimate="calibrated")
    wide = Engine.load(**full.asked, estimate="calibrated")
    assert wide.value("time_to_first_token") == pytest.approx(full.first_token, rel=0.2)
    assert narrow.value("time_to_first_token") < full.first_token / 20


def test_a_measured_time_is_a_value_with_its_service_and_source_and_above_the_bound() -> None:
    """Named as the prediction's, so that one column shows both; the float stays in s."""
    row = LOADED[8, 4, 1024]
    for name, seconds in (
        ("time_to_first_token", row.first_token),
        ("time_per_output_token", row.per_token),
    ):
        value = getattr(row, name)
        assert value.si == pytest.approx(seconds, rel=1e-12)
        assert value.name == f"measured {name.replace('_', ' ')}"
        assert "4 users" in value.origin.how
        assert f"[@{row.source}]" in value.origin.how
        bound = Engine.serve(
            row.model, "hgx_h100", tensor_parallel=8, precision="fp8", kv_cache="bf16",
            prompt_tokens=1024, output_tokens=2, estimate="bound",
        )  # fmt: skip
        assert bound.value(name) < seconds
    with pytest.raises(UnknownNameError, match="time_to_first_token"):
        row.by_name("first_token_time")


def test_llama_3_failed_once_in_three_hours() -> None:
    row = next(row for row in failures() if "Llama 3 405B" in row.run)
    assert (row.devices, row.failures, row.days) == (16384, 419, 54)
    hours = row.mean_time_to_failure.to("h").magnitude / 16384
    assert hours == pytest.approx(54 * 24 / 419) == pytest.approx(3.09, abs=0.01)
    assert row.by_name() == row.by_name("latency") == row.mean_time_to_failure
    assert [row.by_name(each).si for each in ("devices", "days", "failures")] == [16384, 54, 419]
    assert row.by_name("days").origin.name == f"days that {row.run} was watched"
    with pytest.raises(UnknownNameError, match="no figure of a run's failures is called 'hours'"):
        row.by_name("hours")


def test_prices_are_of_one_device_and_none_is_far_from_its_kind() -> None:
    """A price of eight devices taken for one of one, or the other way round, would be."""
    eight = next(row for row in prices(device="H100") if row.devices == 8)
    assert eight.per_device.magnitude == eight.value / 8
    found: dict[str, list[float]] = defaultdict(list)
    for row in prices():
        if row.terms == "on demand":
            found[row.device].append(row.per_device.to("USD/h").magnitude)
    assert len(found) >= 20
    assert [device for device, each in found.items() if max(each) >= 6 * min(each)] == []
    terms = {row.terms: row for row in prices(device="TPUv5e")}
    assert (terms["on demand"].value, terms["on demand"].most) == (1.2, None)
    assert (terms["spot"].value, terms["spot"].most) == (0.51, 0.78)
    two = replace(terms["spot"], product="v5e", devices=2)
    for row, end in ((two, ", for 2, up to"), (replace(two, devices=1, unit="x"), ", up to")):
        words = f"price of v5e from {two.provider} on {two.date}, spot{end} 0.78 {row.unit} in"
        assert row.said() == ("price", literal(f"{words} other places"))
    assert eight.said()[1].endswith(", on demand, for 8")


def test_a_request_to_an_api_is_worked_by_hand() -> None:
    rows = api_prices(model="Llama3_70B")
    assert len({row.provider for row in rows}) == len(rows) >= 8
    for row in rows:
        assert row.input_price <= row.output_price < 2, row.id
        assert str(row.input_price) in row.quote
        assert str(row.output_price) in row.quote
    (row,) = api_prices(model="Llama3_70B", provider="Groq")
    assert (row.input_price, row.output_price) == (0.59, 0.79)
    # 2,000 tokens in, 500 out.
    cost = row.of_request(2000, 500)
    assert cost.to("USD").magnitude == pytest.approx(0.001575)
    assert cost.origin.name == "price of a request of 2,000 + 500 tokens from Groq"
    told = f"0.59 and 0.79 USD per million in and out, as asked on {row.date}"
    assert told in cost.origin.brief
    assert row.source in cost.origin.how


def test_the_optimal_size_of_chinchilla() -> None:
    """70 billion parameters and 1.4 trillion tokens are 5.88e23 FLOP."""
    best = Engine.optimal_size(training_flops="5.88e23 FLOP")
    assert best.optimal_parameters == pytest.approx(70e9)
    assert best.optimal_tokens == pytest.approx(1.4e12)
    assert best.value("training_flops") == 6 * 70e9 * 1.4e12
    assert "hoffmann2022training" in str(best.explain("optimal_tokens"))
    # Four times the tokens of each parameter: half the parameters.
    asked = {"training_flops": "5.88e23 FLOP"}
    given = Engine.optimal_size(**asked, tokens_per_parameter="80 token/parameter")
    assert given.value("optimal_parameters") == pytest.approx(35e9)
    for wrong, error in (
        ({"training_flops": 1e21}, UnitError),
        ({"training_flops": "1e21 B"}, UnitError),
        ({"training_flops": "-1 FLOP"}, InvalidValueError),
        ({"training_flops": ["1e21 FLOP", "2e21 FLOP"]}, InvalidValueError),
        ({**asked, "tokens_per_parameter": 20}, UnitError),
    ):
        with pytest.raises(error):
            Engine.optimal_size(**wrong)


def test_counts_and_clock_give_the_printed_peak_and_that_of_the_zoo() -> None:
    for row in execution_units():
        assert row.peak / 1e12 == pytest.approx(row.printed, rel=0.006), row.id
        if row.device and row.precision != "fp64":
            device = Hardware.find(row.device)
            assert device.cores == row.cores, row.id
            assert device.compute.figure(row.precision).si == row.printed * 1e12, row.id
    (a100,) = (row for row in execution_units() if row.id == "UNIT-005")
    assert a100.multiply_adds_per_cycle == 108 * 4 * 256 == a100.by_name("multiply_adds_per_cycle")
    peak = a100.by_name("peak")
    assert peak.si == a100.peak == pytest.approx(108 * 4 * 256 * 2 * 1.41e9)
    assert "108 × 4 × 256 MAC × 2 FLOP/MAC × " in peak.origin.how
    assert "[@nvidia2020ampere]" in peak.origin.how


def test_sizes_of_memories_and_rates_of_stages() -> None:
    kinds = {row.name: row for row in memory_spaces()}
    assert kinds["registers"].bytes == 255 * 4
    assert kinds["shared memory"].bytes == 164 * 1024
    assert kinds["global memory"].bytes == Hardware.Cloud.A100.memory.figures["printed"].si
    one, eight = (published_rate(each, "AMD EPYC 9B14") for each in ("one worker", "eight workers"))
    assert one.value < eight.value < 8 * one.value
    image = published_rate("stored set").published / published_rate("images").published
    assert (image.base, image.si) == ("B/sample", pytest.approx(138e9 / 1281167))
    assert "[@" in image.origin.how
    assert published_rate("JPEG engine").published == 7000


def test_no_timed_product_beats_the_bound_and_each_says_where_it_stands() -> None:
    rows = measured_formats("Cloud.B200")
    for name in rows[0].seconds:
        bound = Engine.gemm(
            *([getattr(row, side) for row in rows] for side in ("rows", "outputs", "depth")),
            hardware="B200", precision=name, estimate="bound",
        ).value("latency")  # fmt: skip
        assert all(low <= row.seconds[name] * 1.02 for low, row in zip(bound, rows, strict=True))
    row = next(row for row in measured_stairs() if (row.rows, row.outputs) == (129, 51200))
    where = "measured on A100, sglang, M=129, N=51,200, K=8,192 [@nvidia2026aiconfigurator]"
    assert row.time().origin.brief == f"measured time in bf16 = 845 µs, {where}"
    cube = next(row for row in rows if row.rows == row.outputs == 1024)
    gain = cube.speedup("fp4")
    assert gain == pytest.approx(cube.seconds["bf16"] / cube.seconds["fp4"])
    assert "fastest backend, M=1,024" in gain.origin.how
