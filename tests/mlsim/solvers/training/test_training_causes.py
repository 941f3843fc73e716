"""What limits a step of training: causes that add up to it, labels, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim import Engine
from mlsim.errors import DoesNotFitError, InvalidValueError
from mlsim.solvers.training.training import Training

ASKED: dict[str, Any] = {"model": "Llama3_8B", "hardware": "hgx_h100", "micro_batch": 1}
LAYOUTS: dict[str, dict[str, Any]] = {
    "sharded": {"global_batch": 8, "data_parallel": 8, "shard": "zero3"},
    "staged": {"global_batch": 4, "pipeline_parallel": 8, "sequence_tokens": 1024},
    "split": {"global_batch": 4, "tensor_parallel": 8, "sequence_parallel": True},
    "again": {"global_batch": 8, "data_parallel": 8, "shard": "zero3", "recompute": "full"},
    "hidden": {"global_batch": 8, "data_parallel": 8, "shard": "zero3", "overlap": 0.9},
}


def trained(layout: str, estimate: str = "calibrated") -> Training:
    found: Training = Engine.train(**ASKED, **LAYOUTS[layout], estimate=estimate)
    return found


@pytest.mark.parametrize("estimate", ["roofline", "calibrated"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_causes_add_up_to_the_step(layout: str, estimate: str) -> None:
    training = trained(layout, estimate)
    causes, shares = training.causes, training.shares
    assert sum(causes.values()) == pytest.approx(1)
    assert all(share >= 0 for share in causes.values())
    sent = shares["exchange"] + shares["pipeline"] + shares["gradients"]
    assert causes["network"] == pytest.approx(sent)
    assert causes["bubble"] == pytest.approx(shares["bubble"])
    assert causes["memory"] >= shares["optimizer"]
    assert ("tiles" in causes) == ("starts" in causes) == (estimate == "calibrated")


def test_starts_are_those_of_all_kernels_by_hand() -> None:
    training = trained("again")
    value, table = training.question.value, training.run.table
    starts = value("kernel_overhead")
    each = sum(start * row.all_repeats for start, row in zip(starts, table, strict=True))
    spent = value("micro_batches") * each / value("step_time")
    assert training.causes["starts"] == pytest.approx(spent)


def test_tiles_cost_what_full_ones_would_save() -> None:
    """With all tiles full, the kernels of a step take as much less as the tiles took."""
    training = trained("sharded")
    full = Engine.train(**ASKED, **LAYOUTS["sharded"], estimate="calibrated", filled_share=1.0)
    saved = training.value("kernel_step_time") - full.value("kernel_step_time")
    assert training.causes["tiles"] * training.value("step_time") == pytest.approx(saved)
    assert full.causes["tiles"] == pytest.approx(0, abs=1e-12)


def test_the_label_is_the_largest_and_says_why() -> None:
    training = trained("staged")
    assert (training.bottleneck, training.cause) == ("Overhead Bound", "bubble")
    why = training.explain("bottleneck")
    assert why.shares == training.causes
    assert "wait for the pipeline" in str(why)
    share = str(training.explain("bubble_share"))
    assert "bubble_share = bubble_time / latency" in share
    assert why.to_dict()["roofline_bottleneck"] == trained("staged", "roofline").bottleneck
    assert trained("sharded").bottleneck == "Compute Bound"
    # What is given holds for the roofline beside it too: 16 GB of weights at 1 GB/s.
    slow = Engine.train(
        **ASKED, **LAYOUTS["sharded"], estimate="calibrated", memory_bandwidth="1 GB/s"
    )
    assert slow.explain("bottleneck").to_dict()["roofline_bottleneck"] == "Memory Bound"


def test_a_network_of_layers_has_causes_too() -> None:
    training = Engine.train(
        model="ResNet50", hardware="A100", global_batch=64, estimate="calibrated"
    )
    assert sum(training.causes.values()) == pytest.approx(1)
    assert training.causes["tiles"] > 0.01
    found = training.to_dict()["inputs"] if "inputs" in training.to_dict() else training.to_dict()
    assert found["bottleneck"] == training.bottleneck
    assert found["causes"]["memory"] == pytest.approx(training.causes["memory"])


def test_the_bound_has_no_causes() -> None:
    training = trained("sharded", "bound")
    with pytest.raises(InvalidValueError, match="has no parts"):
        _ = training.causes
    with pytest.raises(InvalidValueError, match="has no parts"):
        _ = training.bottleneck


def test_what_does_not_fit_has_no_label() -> None:
    asked = {**ASKED, "hardware": "H100", "global_batch": 8}
    with pytest.raises(DoesNotFitError):
        _ = Engine.train(**asked).bottleneck
    assert Engine.train(**asked, check_memory=False).bottleneck == "Compute Bound"
