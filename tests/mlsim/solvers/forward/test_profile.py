"""What a solve answers: values, text, plain data, and what makes it so, asked backwards."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import kept
import numpy as np
import pytest
from own_chips import chip
from refusals import answered

from mlsim import Device, Engine, Hardware, Model, Models, Profile, show
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError
from mlsim.solvers.forward import configuration, kinds
from mlsim.solvers.forward.kinds import CALIBRATED_SOLVER

TOO_MANY = 1_000_000
PRINTED = kept.blocks("profiles.txt")
ASSUMED = "fp16, since no other was given"


def test_asking_for_what_there_is_not(solve) -> None:
    profile = solve()
    with pytest.raises(UnknownNameError, match=r"no attribute 'latensy'\. Did you mean 'latency'"):
        _ = profile.latensy
    with pytest.raises(UnknownNameError, match="no result of a profile is called 'stride'"):
        show(profile, "stride")
    with pytest.raises(InvalidValueError, match=r"a result is an attribute, such as \.latency"):
        profile["latency"]
    with pytest.raises(UnknownNameError, match="no result of a profile is called 'multiply_adds'"):
        profile.value("multiply_adds")


# What does not fit.


def test_a_batch_that_does_not_fit(solve, a100: Device) -> None:
    profile = solve(batch_size=TOO_MANY)
    assert profile.feasible is False
    required = profile.memory_required.to("B").magnitude
    # 51 MB of weights and, a sample, at most 3.6 MB of activations.
    assert required == pytest.approx(51_114_064 + TOO_MANY * 2 * 1_806_336)
    assert profile.value("memory_free") == pytest.approx(81920 * 2**20 - required)
    for name in ("latency", "throughput", "bottleneck", "memory_bound_share"):
        with pytest.raises(DoesNotFitError) as e:
            getattr(profile, name)
        assert str(e.value) == (
            "ResNet-50 v1.5 at batch 1000000 in fp16 needs 3.286 TiB; NVIDIA A100 SXM 80 GB has "
            "80 GiB: 3.208 TiB too much. Use a smaller batch, or pass check_memory=False for the "
            "time it would take if it fitted."
        )
    for refused in (profile.explain, lambda: profile.achieved_flops):
        with pytest.raises(DoesNotFitError):
            refused()
    unchecked = solve(batch_size=TOO_MANY, check_memory=False)
    assert not unchecked.feasible
    assert unchecked.explain().value == unchecked.value("latency") == pytest.approx(38.5, abs=0.05)
    # What needs no room is still to be had.
    assert profile.total_flops.magnitude > 0
    assert "3.208 TiB too much" in str(profile)
    # The last batch that fits, and the next.
    each = 2 * 1_806_336
    last = int((a100.capacity_si - 51_114_064) // each)
    assert solve(batch_size=[last, last + 1]).feasible.tolist() == [True, False]
    assert solve(batch_size=1, memory_capacity=f"{51_114_064 + each} B").feasible


def test_points_that_do_not_fit_have_no_time(solve) -> None:
    profile = solve(batch_size=[1, TOO_MANY])
    for name in ("latency", "throughput", "memory_bound_share"):
        assert np.isnan(profile.value(name)).tolist() == [False, True]
    assert profile.bottleneck.tolist() == ["Memory Bound", "Does Not Fit"]
    assert not np.isnan(profile.value("memory_required")).any()
    unchecked = solve(batch_size=[1, TOO_MANY], check_memory=False)
    assert not np.isnan(unchecked.latency.magnitude).any()


# Points of an array.


def test_a_point_of_an_array_is_a_profile(solve) -> None:
    profile = solve(batch_size=[[1, 2], [4, 8]], memory_bandwidth=["1 TB/s", "2 TB/s"])
    point = profile[1, 0]
    assert isinstance(point, Profile)
    assert point.batch_size == 4
    alone = solve(batch_size=4, memory_bandwidth="1 TB/s")
    assert point.value("latency") == pytest.approx(alone.value("latency"), rel=1e-12)
    assert [each.batch_size for each in solve(batch_size=[1, 2, 3])] == [1, 2, 3]
    assert solve(batch_size=[1, 2, 3])[-1].batch_size == 3


def test_what_needs_one_point_says_so(solve) -> None:
    many = solve(batch_size=[1, 2])
    with pytest.raises(InvalidValueError, match=r"pick one, such as profile\[0\]\.explain"):
        many.explain()
    with pytest.raises(InvalidValueError, match="only an array has an index"):
        solve()[0]
    with pytest.raises(IndexError):
        many[5]
    for index in (slice(0, 2), (0, 1), 1.5, None):
        with pytest.raises(InvalidValueError, match="an index of this profile is 1 whole number"):
            many[index]


# Operators.


def test_operators_are_those_of_the_model_in_order(solve, resnet: Model) -> None:
    profile = solve(batch_size=8)
    rows = profile.operators
    assert [row["name"] for row in rows] == [operator.name for operator in resnet.operators]
    latency = profile.value("latency")
    spent = sum(row["repeats"] * row["roofline_time"] for row in rows)
    assert spent == pytest.approx(latency, rel=1e-12)
    assert sum(row["flops"] for row in rows) == 8 * resnet.flop_count
    (whole,) = solve(estimate="bound").operators
    assert (whole["flops"], whole["parameters"]) == (resnet.flop_count, resnet.parameter_count)
    waiting = sum(row["memory_time"] for row in rows if row["bound"] == "memory")
    assert waiting / latency == pytest.approx(profile.memory_bound_share)


# Text and plain data.


def test_a_precision_that_was_given_is_not_assumed(solve) -> None:
    asked, assumed = solve(precision="fp16"), solve()
    assert "since no other was given" not in str(asked)
    assert "formats_assumed" not in asked.to_dict()
    assert assumed.to_dict() == {**asked.to_dict(), "formats_assumed": ASSUMED}
    assert f"| formats | {ASSUMED} |" in assumed._repr_markdown_()
    # Of many points, and of each of them.
    many = solve(batch_size=[1, 2], activations="on-chip")
    assert str(many).splitlines()[-1] == f"  formats     {ASSUMED}"
    assert many._repr_markdown_().splitlines()[-2:] == ["", f"formats: {ASSUMED}"]
    assert many[0].to_dict()["formats_assumed"] == ASSUMED


def test_text_of_one_point_and_of_many(solve) -> None:
    assert str(solve()).splitlines() == PRINTED["one point"]
    assert repr(solve()).endswith(" on NVIDIA A100 SXM 80 GB, batch 1, fp16, roofline>")
    many = solve(batch_size=[1, 256, TOO_MANY], precision="fp16")
    assert str(many).splitlines() == PRINTED["many points"]
    # A long array is shown by its ends.
    long = str(solve(batch_size=range(1, 101), precision="fp16")).splitlines()
    assert len(long) == 2 + 10 + 1 + 10
    assert [long[row].split()[0] for row in (11, 12, 13, -1)] == ["10", "...", "91", "100"]


def test_an_answer_of_measured_rates_says_its_program_and_whose_rates_they_are(solve) -> None:
    """Shares of both limits and a start for each kernel; of its own, no loan is left."""
    many = solve(batch_size=[1, 256], estimate="calibrated", precision="fp16")
    assert [line.split()[0] for line in str(many).splitlines()[2:]] == ["1", "256", "software"]
    causes = many.to_dict()["causes"]
    assert [round(sum(each[point] for each in causes.values()), 9) for point in (0, 1)] == [1, 1]
    asked = {"hardware": "A100_40GB", "estimate": "calibrated", "precision": "fp16"}
    lent = solve(**asked)
    names = [each.constant for each in lent.loans]
    assert {"compute_fraction", "memory_fraction"} <= set(names)
    own = solve(**asked, memory_fraction=0.5).loans
    assert [each.constant for each in own] == [each for each in names if each != "memory_fraction"]
    (software,) = (line for line in str(lent).splitlines() if "software" in line)
    assert software.split() == ["software", lent.to_dict()["software"]]
    assert lent.to_dict()["cause"] == lent.cause
    # Why it has its label, and each share of the time, is explained; whether or not it fits.
    why = lent.explain("bottleneck")
    assert str(why).splitlines()[0] == f"{lent.bottleneck}, by {lent.cause}: {lent.about}"
    share = lent.explain("tile_share")
    assert (share.name, share.value) == ("tile_share", pytest.approx(lent.causes["tiles"]))
    vast = solve(batch_size=TOO_MANY, check_memory=False, estimate="calibrated")
    assert vast.explain("bottleneck").roofline == "Memory Bound"


def test_folded_plans_are_kept_up_to_a_number_of_them(solve, monkeypatch) -> None:
    for module, estimate in ((configuration, "roofline"), (kinds, "calibrated")):
        monkeypatch.setattr(module, "MOST_KEPT", 2)
        model = replace(Models.ResNet18, name=estimate)
        counts = []
        for precision in ("fp16", "fp32", "bf16"):
            asked = {"model": model, "precision": precision, "estimate": estimate}
            latency = solve(**asked).value("latency")
            assert latency == pytest.approx(solve(**asked, batch_size=[1]).value("latency")[0])
            table = solve(**asked).configuration.table if estimate == "roofline" else None
            counts.append(len((table or model.operators).cache))
        assert counts == [1, 2, 1]


def test_a_call_has_its_time_and_brings_the_input(solve) -> None:
    """1.121 ms, and at 2.783 GB/s 150,528 numbers of 32 bits an image; no start shows."""
    asked = {"estimate": "calibrated", "batch_size": 2}
    profile = solve(software="request_path", **asked)
    brings = 2 * 4 * 150_528 / 2.783e9
    kernels = profile.question.value("operators_time")
    assert profile.value("latency") == pytest.approx(kernels + 1.121e-3 + brings)
    known = profile.question.known
    assert known["launch_count"] == 0
    assert known.origins["call_bytes"] == "the model's input, as numbers in 32 bits"
    # A program that starts kernels itself, 62.66 us each: 53 convolutions are three, 3 are one.
    eager = solve(software="eager", **asked)
    assert eager.value("latency") == pytest.approx((3 * 53 + 3) * 62.66e-6)
    # Lost are their starts on the device, of 2 us, and the time in which it waits for the host.
    waits = eager.value("latency") - eager.question.value("operators_time")
    assert eager.value("total_overhead_time") == pytest.approx(162 * 2e-6 + waits)
    # It has all equations that any program takes of a network.
    assert set(eager.question.equations) == set(CALIBRATED_SOLVER)


def test_plain_data(solve) -> None:
    data = json.loads(json.dumps(solve(batch_size=2).to_dict(), allow_nan=False))
    assert data["batch_size"] == {"value": 2, "unit": "sample"}
    assert data["latency"] == {"value": solve(batch_size=2).value("latency"), "unit": "s"}
    assert (data["model"], data["feasible"], data["bottleneck"]) == (
        *("ResNet-50 v1.5", True, "Memory Bound"),
    )
    assert data["memory_capacity"] == {"value": 81920 * 2**20, "unit": "B"}
    data = json.loads(json.dumps(solve(batch_size=TOO_MANY).to_dict(), allow_nan=False))
    assert data["latency"] == {"value": None, "unit": "s"}
    assert (data["feasible"], data["bottleneck"]) == (False, None)
    many = json.loads(json.dumps(solve(batch_size=[1, TOO_MANY]).to_dict(), allow_nan=False))
    assert many["latency"]["value"][1] is None
    assert many["bottleneck"] == ["Memory Bound", "Does Not Fit"]


ASK: dict[str, Any] = {"model": Models.ResNet50, "hardware": Hardware.Cloud.A100}


def find(**asked: Any) -> Any:
    return Engine.find(**{**ASK, **asked})


def test_inverting_and_solving_agree() -> None:
    """By hand too: where memory is no limit, the peak is work over time."""
    bandwidth = find(vary="memory_bandwidth", target="latency", value="100 us")
    latency = Engine.solve(**ASK, memory_bandwidth=bandwidth).latency
    assert latency.to("us").magnitude == pytest.approx(100, rel=1e-9)
    peak = find(vary="peak_flops", target="latency", value="1 ms", memory_bandwidth="1e9 TB/s")
    assert peak.to("FLOP/s").magnitude == pytest.approx(Models.ResNet50.flop_count / 1e-3, rel=1e-3)


def test_the_first_that_is_tried_may_be_the_one() -> None:
    """One image has its latency at batch 1; a bandwidth, at the low end of where to look."""
    alone = Engine.solve(**ASK).latency
    assert find(vary="batch_size", target="latency", value=alone) == 1
    slow = Engine.solve(**ASK, memory_bandwidth="1 TB/s").latency
    asked = {"vary": "memory_bandwidth", "target": "latency", "value": slow}
    assert find(**asked, between=("1 TB/s", "3 TB/s")).to("TB/s").magnitude == 1
    # A thousandth of 2,039 GB/s is the least that is looked at, and a thousand times the most.
    for value in ("1 ns", "1 h"):
        with pytest.raises(Exception, match=r"from 2\.039 GB/s to 2\.039 PB/s"):
            find(**{**asked, "value": value})


def test_a_batch_is_the_first_whole_one_that_reaches_it() -> None:
    asked: dict[str, Any] = {"vary": "batch_size", "target": "throughput", "value": 25_000}
    batch = find(**asked)
    assert isinstance(batch, int)
    below, at = (Engine.solve(**ASK, batch_size=b).throughput for b in (batch - 1, batch))
    assert below < 25_000 <= at
    assert find(**asked, precision="fp16") == batch


def test_bad_questions() -> None:
    """A refusal names the range, and the format, unless that was asked for."""

    def bad(**asked: Any) -> Any:
        usual = {"vary": "memory_bandwidth", "target": "latency", "value": "100 us"}
        return find(**{**usual, **asked})

    assert answered(bad, "find") == []


def test_elasticities_of_a_memory_bound_network() -> None:
    """Memory binds everywhere: latency goes with bytes over bandwidth, and nothing else."""
    slow = chip(bandwidth="1 GB/s", fp16="1000 TFLOP/s")
    profile = Engine.solve(model=Models.ResNet50, hardware=slow)
    table = profile.sensitivity().set_index("input").elasticity
    assert table["memory_bandwidth"] == pytest.approx(-1, abs=1e-6)
    assert table["peak_flops"] == table["memory_capacity"] == 0
    assert table["bytes_per_parameter"] + table["bytes_per_element"] == pytest.approx(1, abs=1e-4)
    # Both rates twice as high: half the time, wherever operators lie.
    table = Engine.solve(**ASK, batch_size=32).sensitivity().set_index("input").elasticity
    assert table["memory_bandwidth"] + table["peak_flops"] == pytest.approx(-1, abs=1e-4)
    assert table["batch_size"] > 0.5


def test_overrides_that_agree_are_taken_and_others_refused() -> None:
    given = {"flops": "1 GFLOP", "peak_flops": "1 TFLOP/s"}
    profile = Engine.solve(**ASK, **given, compute_time="1 ms")
    assert profile.latency.to("ms").magnitude == pytest.approx(56)
    with pytest.raises(InvalidValueError, match=r"compute_time = 2 ms contradicts flops / peak"):
        Engine.solve(**ASK, **given, compute_time="2 ms")
    with pytest.raises(InvalidValueError, match="throughput = 10 sample/s contradicts"):
        Engine.solve(**ASK, latency="1 s", throughput=10)
