"""What an answer was asked of, asked again of the bound."""

from __future__ import annotations

from mlsim import Engine
from mlsim.engine.bounds import bound_of, device_of, estimate_of


def test_a_pass_and_a_service_are_asked_again() -> None:
    for door, asked, name in (
        (Engine.solve, {"model": "ResNet50", "hardware": "A100"}, "latency"),
        (Engine.serve, {"model": "Llama3_8B", "hardware": "H100"}, "time_per_output_token"),
    ):
        answer = door(**asked, batch_size=8, estimate="calibrated")
        bound = door(**asked, batch_size=8, estimate="bound")
        assert bound_of(answer).value(name) == bound.value(name) < answer.value(name)
        assert device_of(answer).key.endswith(asked["hardware"])
        assert estimate_of(answer) == "calibrated"


def test_the_bound_of_a_step_leaves_out_scores_that_nobody_needs() -> None:
    asked = {"model": "Llama3_8B", "hardware": "HGX_H100", "devices": 8, "global_batch": 64}
    layout = {**asked, "shard": "zero3", "recompute": "full", "check_memory": False}
    flash, standard = (Engine.train(**layout, attention=name) for name in ("flash", "standard"))
    assert bound_of(standard) == bound_of(flash) == flash.value("ideal_step_time")
    assert bound_of(standard) < standard.value("ideal_step_time")
