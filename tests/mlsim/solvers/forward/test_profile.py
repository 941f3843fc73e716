"""What a solve answers: values, units, text and plain data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mlsim import Device, Engine, Model, Profile, show
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError

TOO_MANY = 1_000_000
ASSUMED = "fp16, since no other was given"


def test_a_profile_keeps_its_inputs(solve, resnet: Model, a100: Device) -> None:
    profile = solve(batch_size=4)
    assert profile.model is resnet
    assert profile.hardware is a100
    assert (profile.batch_size, profile.precision, profile.estimate) == (4, "fp16", "roofline")
    assert repr(profile) == (
        "<Profile ResNet-50 v1.5 on NVIDIA A100 SXM 80 GB, batch 4, fp16, roofline>"
    )


def test_kinds_of_values(solve) -> None:
    profile = solve(batch_size=4)
    assert profile.latency.check("[time]")
    assert profile.memory_required.check("[information]")
    assert isinstance(profile.throughput, float)
    assert isinstance(profile.memory_bound_share, float)
    assert isinstance(profile.bottleneck, str)
    assert profile.feasible is True
    assert f"{profile.ridge_point:.0f}" == "153 FLOP/B"
    assert show(profile, "latency") == profile.latency


def test_units_are_those_that_a_person_would_choose(solve) -> None:
    assert f"{solve(batch_size=1).latency:.1f}" == "55.5 µs"
    assert f"{solve(batch_size=256).latency:.2f}" == "9.86 ms"


def test_asking_for_what_there_is_not(solve) -> None:
    profile = solve()
    with pytest.raises(UnknownNameError, match="Did you mean 'latency'"):
        show(profile, "latensy")
    with pytest.raises(UnknownNameError, match=r"no attribute 'latensy'\. Did you mean 'latency'"):
        _ = profile.latensy
    with pytest.raises(UnknownNameError, match="no result of a profile is called 'stride'"):
        show(profile, "stride")
    with pytest.raises(InvalidValueError, match=r"a result is an attribute, such as \.latency"):
        profile["latency"]
    with pytest.raises(UnknownNameError, match="no result of a profile is called 'multiply_adds'"):
        profile.value("multiply_adds")


# What does not fit.


def test_a_batch_that_does_not_fit(solve) -> None:
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
    # What needs no room is still to be had.
    assert profile.total_flops.magnitude > 0
    assert "3.208 TiB too much" in str(profile)


def test_its_time_if_it_fitted(solve) -> None:
    profile = solve(batch_size=TOO_MANY, check_memory=False)
    assert profile.feasible is False
    assert profile.latency.to("s").magnitude == pytest.approx(38.5, abs=0.05)
    assert profile.explain().value == profile.value("latency")


def test_the_last_batch_that_fits(solve, a100: Device) -> None:
    each = 2 * 1_806_336
    last = int((a100.capacity_si - 51_114_064) // each)
    profile = solve(batch_size=[last, last + 1])
    assert profile.feasible.tolist() == [True, False]
    assert solve(batch_size=1, memory_capacity=f"{51_114_064 + each} B").feasible


def test_points_that_do_not_fit_have_no_time(solve) -> None:
    profile = solve(batch_size=[1, TOO_MANY])
    assert profile.feasible.tolist() == [True, False]
    assert np.isnan(profile.latency.magnitude).tolist() == [False, True]
    assert np.isnan(profile.throughput).tolist() == [False, True]
    assert np.isnan(profile.memory_bound_share).tolist() == [False, True]
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
    assert point.latency.to("s").magnitude == pytest.approx(profile.value("latency")[1, 0])
    assert len(list(solve(batch_size=[1, 2, 3]))) == 3
    assert solve(batch_size=[1, 2, 3])[-1].batch_size == 3


def test_what_needs_one_point_says_so(solve) -> None:
    many = solve(batch_size=[1, 2])
    with pytest.raises(InvalidValueError, match=r"pick one, such as profile\[0\]\.explain"):
        many.explain()
    with pytest.raises(InvalidValueError, match=r"pick one, such as profile\[0\]\.operators"):
        many.operators  # noqa: B018
    with pytest.raises(InvalidValueError, match="only an array has an index"):
        solve()[0]
    with pytest.raises(IndexError):
        many[5]


# Operators.


def test_operators_are_those_of_the_model_in_order(solve, resnet: Model) -> None:
    profile = solve(batch_size=8)
    rows = profile.operators
    assert [row["name"] for row in rows] == [operator.name for operator in resnet.operators]
    assert sum(row["repeats"] * row["roofline_time"] for row in rows) == pytest.approx(
        profile.value("latency"), rel=1e-12
    )
    assert sum(row["flops"] for row in rows) == 8 * resnet.flop_count
    for row in rows:
        assert row["roofline_time"] == max(row["compute_time"], row["memory_time"])
        assert row["bound"] == ("memory" if row["memory_time"] > row["compute_time"] else "compute")
    waiting = sum(row["roofline_time"] for row in rows if row["bound"] == "memory")
    assert waiting / profile.value("latency") == pytest.approx(profile.memory_bound_share)


def test_the_bound_has_one_operator(solve, resnet: Model) -> None:
    (whole,) = solve(estimate="bound").operators
    assert whole["flops"] == resnet.flop_count
    assert whole["parameters"] == resnet.parameter_count


# Text and plain data.


def test_text_of_one_point(solve) -> None:
    assert str(solve()).splitlines() == [
        "ResNet-50 v1.5 on NVIDIA A100 SXM 80 GB, fp16, roofline",
        "  batch size  1",
        "  formats     fp16, since no other was given",
        "  latency     55.48 µs",
        "  throughput  18,024 sample/s",
        "  bottleneck  Memory Bound (84% of the time in memory-bound operators)",
        "  memory      52.19 MiB of 80 GiB",
    ]


def test_a_precision_that_was_given_is_not_assumed(solve) -> None:
    asked, assumed = solve(precision="fp16"), solve()
    assert "since no other was given" not in str(asked)
    assert "formats_assumed" not in asked.to_dict()
    assert assumed.to_dict() == {**asked.to_dict(), "formats_assumed": ASSUMED}
    assert f"| formats | {ASSUMED} |" in assumed._repr_markdown_()
    # Of many points, and of each of them.
    many = solve(batch_size=[1, 2])
    assert str(many).splitlines()[-1] == f"  formats     {ASSUMED}"
    assert many._repr_markdown_().splitlines()[-2:] == ["", f"formats: {ASSUMED}"]
    assert many[0].to_dict()["formats_assumed"] == ASSUMED
    kept = solve(activations="on-chip")
    assert kept.to_dict()["formats_assumed"] == ASSUMED


def test_text_of_many_points(solve) -> None:
    lines = str(solve(batch_size=[1, 256, TOO_MANY], precision="fp16")).splitlines()
    assert len(lines) == 5
    assert lines[2].split() == ["1", "55.48", "µs", "18,024", "Memory", "Bound"]
    assert lines[4].split() == ["1,000,000", "-", "-", "Does", "Not", "Fit"]
    # A long array is shown by its ends.
    long = str(solve(batch_size=range(1, 101), precision="fp16")).splitlines()
    assert len(long) == 2 + 10 + 1 + 10
    assert long[12].split() == ["..."]
    assert (long[11].split()[0], long[13].split()[0], long[-1].split()[0]) == ("10", "91", "100")


def test_plain_data_of_one_point(solve) -> None:
    data = json.loads(json.dumps(solve(batch_size=2).to_dict(), allow_nan=False))
    assert data["model"] == "ResNet-50 v1.5"
    assert data["batch_size"] == {"value": 2, "unit": "sample"}
    assert data["latency"] == {"value": solve(batch_size=2).value("latency"), "unit": "s"}
    assert data["feasible"] is True
    assert data["bottleneck"] == "Memory Bound"
    assert data["memory_capacity"] == {"value": 81920 * 2**20, "unit": "B"}


def test_plain_data_of_what_does_not_fit(solve) -> None:
    data = json.loads(json.dumps(solve(batch_size=TOO_MANY).to_dict(), allow_nan=False))
    assert data["feasible"] is False
    assert data["latency"] == {"value": None, "unit": "s"}
    assert data["bottleneck"] is None
    many = json.loads(json.dumps(solve(batch_size=[1, TOO_MANY]).to_dict(), allow_nan=False))
    assert many["feasible"] == [True, False]
    assert many["latency"]["value"][1] is None
    assert many["bottleneck"] == ["Memory Bound", "Does Not Fit"]


@pytest.mark.parametrize("index", [slice(0, 2), (0, 1), 1.5, None])
def test_an_index_is_one_whole_number_for_each_axis(index) -> None:
    many = Engine.solve(model="ResNet50", hardware="A100", batch_size=[1, 2, 3])
    with pytest.raises(InvalidValueError, match="an index of this profile is 1 whole number"):
        many[index]
