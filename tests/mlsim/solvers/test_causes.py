"""What the time goes into: worked by hand, adding up to 1, alike through every door."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mlsim import Engine
from mlsim.errors import InvalidValueError
from mlsim.solvers.answer import COMPUTE_BOUND, MEMORY_BOUND, OVERHEAD_BOUND
from mlsim.solvers.causes import LABELS, Causes, cause_of, with_causes, written
from mlsim.solvers.question import Known, Question

# Rates of our own, so that what is worked by hand stays as it is.
RATES = {"compute_fraction": 0.5, "memory_fraction": 0.5, "kernel_overhead": "2 us"}


def solve(**changes: Any) -> Any:
    asked = {"model": "ResNet50", "hardware": "A100", "estimate": "calibrated", **RATES}
    return Engine.solve(**{**asked, **changes})


def test_one_operator_is_worked_by_hand() -> None:
    """The last layer of ResNet-50 at batch 1: a start, bytes, and no time lost to tiles."""
    profile = solve(filled_share=0.25)
    question = profile._caused
    rows = {each.name: index for index, each in enumerate(question.table)}
    fc = rows["fc"]
    moved = 2 * (2048 * 1000 + 1000 + 2048 + 1000)
    assert question.value("operator_streaming_time")[fc] == pytest.approx(
        moved / (2039e9 * 0.5), rel=1e-3
    )
    # A 3x3 convolution of 49 pixels and 512 channels, whose tiles fill a quarter of the cores.
    conv = rows["conv5.2.b"]
    full = 2 * 512 * 512 * 9 * 49 / (312e12 * 0.5)
    memory = 2 * (512 * 512 * 9 + 2 * 512 + 2 * 49 * 512) / (2039e9 * 0.5)
    lost = max(full / 0.25, memory) - max(full, memory)
    assert question.value("operator_tile_time")[conv] == pytest.approx(lost, rel=1e-2)


@pytest.mark.parametrize("batch", [1, 32, 1024])
def test_causes_add_up_and_the_label_is_the_largest_group(batch: int) -> None:
    profile = solve(batch_size=batch)
    causes = profile.causes
    assert sum(causes.values()) == pytest.approx(1, abs=1e-12)
    assert all(share >= -1e-12 for share in causes.values())
    groups: dict[str, float] = {}
    for cause, share in causes.items():
        groups[LABELS[cause]] = groups.get(LABELS[cause], 0.0) + share
    assert profile.bottleneck == max(groups, key=lambda label: groups[label])
    assert LABELS[profile.cause] == profile.bottleneck


def test_empty_tiles_are_no_arithmetic() -> None:
    """At batch 1 ResNet-50 is bound by launches and tiles, and not by arithmetic."""
    profile = Engine.solve(model="ResNet50", hardware="A100", estimate="calibrated")
    assert (profile.bottleneck, profile.cause) == (OVERHEAD_BOUND, "launches")
    assert profile.causes["tiles"] > profile.causes["arithmetic"]
    large = Engine.solve(model="VGG16", hardware="A100", estimate="calibrated", batch_size=256)
    assert large.bottleneck == COMPUTE_BOUND


def test_a_roofline_knows_arithmetic_and_memory_only() -> None:
    profile = Engine.solve(model="ResNet50", hardware="A100")
    assert profile.causes == {
        "arithmetic": pytest.approx(1 - profile.memory_bound_share),
        "memory": profile.memory_bound_share,
        "network": 0.0,
    }
    assert profile.cause == "memory"
    assert profile.explain("bottleneck").difference == ""


def test_points_have_labels_of_their_own_and_those_that_do_not_fit_none() -> None:
    points = solve(batch_size=[1, 64, 10**6])
    one, many = solve(batch_size=1), solve(batch_size=64)
    assert list(points.bottleneck) == [one.bottleneck, many.bottleneck, "Does Not Fit"]
    assert points.causes["tiles"][0] == pytest.approx(one.causes["tiles"])
    assert points[1].cause == many.cause
    with pytest.raises(InvalidValueError, match=r"profile\[0\].cause"):
        _ = points.cause
    with pytest.raises(InvalidValueError, match="explain"):
        points.explain("bottleneck")
    assert "causes" in points.to_dict()
    assert "cause" not in points.to_dict()


def test_why_labels_differ_is_explained() -> None:
    why = solve().explain("bottleneck")
    assert (why.label, why.roofline) == (OVERHEAD_BOUND, MEMORY_BOUND)
    assert "The roofline says Memory Bound" in str(why)
    lost = f"launches {why.shares['launches']:.0%}, tiles {why.shares['tiles']:.0%}"
    assert f"Here they take {lost} of the time." in why.difference
    told = json.loads(why.to_json())
    assert told["roofline_bottleneck"] == MEMORY_BOUND
    assert told["causes"]["tiles"] == pytest.approx(solve().causes["tiles"])
    assert "**" in why._repr_markdown_()


def test_a_step_of_a_service_has_causes_with_its_network() -> None:
    asked = {"model": "Llama3_8B", "hardware": "HGX_H100", "batch_size": 8}
    together = Engine.serve(**asked, tensor_parallel=8, estimate="calibrated")
    for step in (together.prefill, together.decode):
        assert sum(step.causes.values()) == pytest.approx(1, abs=1e-9)
        assert sum(step.shares.values()) == pytest.approx(1, abs=1e-9)
        lost = sum(step.causes[each] for each in ("tiles", "launches", "host"))
        assert step.shares[OVERHEAD_BOUND] == pytest.approx(lost)
        assert LABELS[step.cause] == step.bottleneck
    assert together.decode.cause == "launches"
    alone = Engine.serve(**{**asked, "hardware": "A100", "batch_size": 1}, estimate="calibrated")
    assert alone.decode.value("compute_bound_share") == 0  # what rounding leaves is no share
    assert "The roofline says" in str(together.decode.explain("bottleneck"))
    bound = Engine.serve(**asked, estimate="bound").decode
    assert bound.causes == {"arithmetic": 0.0, "memory": 1.0, "network": 0.0}
    assert bound.explain("bottleneck").roofline == ""
    with pytest.raises(InvalidValueError, match="pick one"):
        _ = Engine.serve(**{**asked, "batch_size": [1, 8]}, estimate="calibrated").decode.cause


def test_words_name_what_is_worth_a_word() -> None:
    assert written({"tiles": 0.6, "memory": 0.398, "launches": 0.002}) == "tiles 60%, memory 40%"
    assert cause_of({"launches": 0.3, "tiles": 0.2, "memory": 0.5}, OVERHEAD_BOUND) == "launches"


def test_a_step_of_training_has_a_bubble_and_its_roofline_no_tiles() -> None:
    asked: dict[str, Any] = {"model": "Llama3_8B", "hardware": "HGX_H100", "global_batch": 4}
    asked |= {"pipeline_parallel": 8, "sequence_tokens": 1024}
    ideal, measured = (Engine.train(**asked, estimate=each) for each in ("roofline", "calibrated"))
    for run in (ideal, measured):
        assert sum(run.causes.values()) == pytest.approx(1)
        assert run.causes["bubble"] == pytest.approx(run.shares["bubble"])
    assert set(measured.causes) - set(ideal.causes) == {"tiles", "launches"}
    assert measured.bottleneck == OVERHEAD_BOUND


def test_causes_are_told_largest_first_down_to_half_a_percent() -> None:
    shares = {"host": 0.0049, "launches": 0.005, "memory": 0.39, "tiles": 0.6}
    assert written(shares) == "tiles 60%, memory 39%, launches 0%"
    why = Causes("A", OVERHEAD_BOUND, "tiles", shares, MEMORY_BOUND)
    assert "Here they take tiles 60%, launches 0% of the time." in why.difference
    rows = why.report().rows
    assert [name for name, _ in rows] == ["tiles", "memory", "launches", "roofline"]
    assert rows[0][1].startswith("60.0%: products whose tiles")
    assert why.to_dict()["difference"] == why.difference
    for same in ("", OVERHEAD_BOUND):
        told = replace(why, roofline=same).to_dict()
        assert (told["difference"], told["roofline_bottleneck"]) == (None, same or None)
    assert "Here they" not in replace(why, shares={"tiles": 0.004, "memory": 0.9}).difference
    assert json.loads(why.to_json()) == why.to_dict()


def test_one_device_sends_nothing_and_several_add_up_what_they_send() -> None:
    asked = Question(Known(), (), {"model": "M"}, shape=(2,))
    sent = {"total_network_time", "network_share"}
    for calibrated, name in ((True, "arithmetic_share"), (False, "roofline_arithmetic_share")):
        several = with_causes(asked, calibrated=calibrated, alone=False)
        assert {each.yields for each in several.equations} >= sent
        assert not several.known
        alone = with_causes(asked, calibrated=calibrated, alone=True)
        assert not {each.yields for each in alone.equations} & sent
        assert alone.known == dict.fromkeys(sent, 0.0)
        assert [each.name for each in alone.equations if each.yields == "arithmetic_share"] == [
            name
        ]
        assert (alone.shape, alone.labels) == ((2,), {"model": "M"})
