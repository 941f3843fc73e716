"""Training of networks of layers: worked by hand, held against anatomy, refused where it can't be."""

from __future__ import annotations

import json
from operator import mul
from typing import Any

import pytest
from refusals import answered
from sampled import sampled

from mlsim import Engine, Models, anatomy
from mlsim.cli import main
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError
from mlsim.software import software
from mlsim.solvers.training.network import NetworkTraining
from mlsim.workloads.model import Network
from mlsim.zoo import spaces

NETWORKS = [each for each in spaces.Models if isinstance(each, Network)]
RESNET: dict[str, Any] = {"model": "ResNet50", "hardware": "A100", "global_batch": 64}


def train(**changes: Any) -> NetworkTraining:
    found: NetworkTraining = Engine.train(**{**RESNET, **changes})
    return found


def test_a_step_is_that_of_the_anatomy_of_the_network() -> None:
    """One configuration, one answer: plain FP32 on one device, through both doors."""
    for optimizer in ("sgd", "momentum", "adam"):
        step = train(precision="fp32", optimizer=optimizer)
        asked = {"batch_size": 64, "precision": "fp32", "hardware": "A100"}
        apart = anatomy("ResNet50", training=True, optimizer=optimizer, **asked)
        assert step.value("step_time") == pytest.approx(apart.time.si, rel=1e-9)
        assert step.value("memory_required") == pytest.approx(apart.memory_required.si, rel=1e-9)


def test_a_network_of_one_matrix_is_worked_by_hand() -> None:
    """ResNet-18's last layer stands for any: 512 inputs, 1,000 outputs, a bias."""
    step = train(model="ResNet18", precision="fp32", global_batch=8)
    rows = {row.name: index for index, row in enumerate(step.run.table)}
    moved = step.value("bytes_moved")
    flops = step.value("flops")
    parameters = 512 * 1000 + 1000
    forward, back = rows["fc"], rows["fc: backward"]
    assert flops[forward] == 2 * 512 * 1000 * 8
    assert moved[forward] == 4 * (parameters + 8 * (512 + 1000))
    # The error is read for either product, the input for the weights' gradient; what is
    # written is the error of the input; weights are read and their gradient is written.
    assert flops[back] == 2 * flops[forward]
    assert moved[back] == 4 * (2 * parameters + 8 * (2 * 1000 + 512 + 512))


def test_a_batch_norm_reads_its_batch_twice() -> None:
    """In training it is a kernel of its own: its mean must be known before it is used."""
    step = train(precision="fp32", global_batch=8)
    rows = {row.name: index for index, row in enumerate(step.run.table)}
    maps = 64 * 112 * 112
    # Two reads, one write; its scale and shift are read.
    assert step.value("bytes_moved")[rows["conv1_bn"]] == 4 * (8 * 3 * maps + 2 * 64)
    # Back: errors, inputs and what ReLU put out twice each, and the error that is written.
    assert step.value("bytes_moved")[rows["conv1_bn: backward"]] == 4 * (8 * 7 * maps + 4 * 64)


def test_devices_share_the_batch_and_agree_on_gradients() -> None:
    alone = train(global_batch=32, precision="fp16")
    asked = {"global_batch": 256, "precision": "fp16", "hardware": "HGX_A100", "devices": 8}
    eight = train(**asked)
    assert eight.value("forward_time") == alone.value("forward_time")
    parameters, link = Models.ResNet50.parameter_count, 300e9
    assert eight.value("gradient_time") == pytest.approx(2 * 7 / 8 * 2 * parameters / link)
    hidden = train(**asked, overlap={"gradient": 1})
    assert hidden.value("step_time") == pytest.approx(
        eight.value("step_time") - eight.value("gradient_time")
    )
    assert [eight.value(f"{name}_parallel") for name in ("tensor", "pipeline", "data")] == [1, 1, 8]
    assert eight.throughput == pytest.approx(256 / eight.value("step_time"))


def test_micro_batches_take_longer_and_hold_less_and_shared_state_takes_its_part() -> None:
    whole, parts = train(), train(micro_batch=16)
    assert parts.value("micro_batches") == 4
    assert parts.value("step_time") > whole.value("step_time")
    assert parts.value("activation_memory") < whole.value("activation_memory")
    # Gradients are added up, so all of them are there all the time.
    assert parts.value("gradient_memory") == 2 * Models.ResNet50.parameter_count
    asked = {"hardware": "HGX_A100", "devices": 8, "optimizer": "adam"}
    plain, shared = train(**asked), train(**asked, shard="zero1")
    for name in ("optimizer_memory", "optimizer_time"):
        assert shared.value(name) == plain.value(name) / 8


def test_it_fits_to_the_last_byte() -> None:
    needed = train().value("memory_required")
    for less, fits in ((0, True), (1, False)):
        found = train(memory_capacity=f"{needed - less} B", reserve=0)
        assert (found.value("memory_free"), found.feasible) == (-less, fits)
    capacity = train().value("memory_capacity")
    assert train().value("usable_memory") == pytest.approx(0.9 * capacity, rel=1e-12)


def test_what_is_given_stands_in_place_of_what_leads_to_it() -> None:
    """Six bytes of state for each parameter, whatever the optimizer keeps."""
    eight = {"hardware": "HGX_A100", "devices": 8, "estimate": "calibrated"}
    for asked, given, gone in (
        ({}, {"state_bytes": "6 B/parameter"}, "optimizer_moments moment_bytes master_bytes"),
        (eight, {"hop_latency": "7 us"}, "link_latency measured_devices"),
    ):
        usual, found = train(**asked), train(**asked, **given)
        assert {name in usual.question.known for name in gone.split()} == {True}
        assert {name in found.question.known for name in gone.split()} == {False}
    assert found.value("hop_latency") == 7e-6
    held = train(state_bytes="6 B/parameter").value("optimizer_memory")
    assert held == 6 * Models.ResNet50.parameter_count


def test_a_whole_run_has_days_and_a_price_and_a_footprint() -> None:
    run = train(samples=90 * 1281167, price="2 USD/h")
    seconds = 90 * 1281167 / run.value("throughput")
    assert run.value("training_time") == pytest.approx(seconds)
    assert run.value("training_cost") == pytest.approx(2 * seconds / 3600)
    assert (run.load().time, train().load().time) == (seconds, train().value("step_time"))
    found = Engine.footprint(run, host=False, pue=1.2, carbon_intensity="100 gCO2e/kWh")
    assert found.value("facility_energy") > 0
    assert "115,305,030 samples" in str(run)


def test_memory_is_used_for_the_bytes_of_all_kernels_or_of_the_bound() -> None:
    """Over 2,039 GB/s and the time of the step; four micro-batches move four times theirs."""
    step, least = train(micro_batch=16), train(estimate="bound")
    repeats = step.run.table.columns["all_repeats"]
    moved = 4 * sum(map(mul, step.value("bytes_moved"), repeats))
    used = moved / 2039e9 / step.value("step_time")
    assert step.value("memory_utilisation") == pytest.approx(used)
    used = least.value("compulsory_time") / least.value("step_time")
    assert least.value("memory_utilisation") == pytest.approx(used)


def test_a_report_says_what_was_asked_and_what_it_takes() -> None:
    """2,048 / 8 samples; of 25,557,032 parameters 2 B of gradients, and 12 B of state by 8."""
    asked: dict[str, Any] = {"hardware": "HGX_A100", "devices": 8, "global_batch": 2048}
    run = train(**asked, optimizer="adam", shard="zero1", overlap={"gradient": 0.5})
    shown = " ".join(str(run).split())
    for words in (
        "8 x NVIDIA A100 SXM 80 GB of NVIDIA HGX A100, 8 GPUs step 2,048 samples: one batch of 256",
        "optimizer adam, state shared by all devices formats",
        "gradients in bf16 48.75 MiB, optimizer 36.56 MiB",
        "overlap gradient 50%",
    ):
        assert words in shown
    assert "optimizer momentum formats" in " ".join(str(train(**asked)).split())
    assert "overlap none: sending waits for computing" in " ".join(str(train(**asked)).split())


def test_a_class_of_software_takes_its_part_of_the_rate() -> None:
    eager, own = (train(estimate="calibrated", software=name) for name in ("eager", "kernels"))
    last = [row.name for row in own.run.table].index("fc")
    reached = [run.run.table.extra["compute_fraction"][last] for run in (eager, own)]
    assert reached[0] == pytest.approx(reached[1] * software("eager").value("product_share"))
    assert eager.run.made_by.key == "eager"


def test_every_network_of_the_zoo_can_be_trained() -> None:
    """The bound is the least, the roofline is next; memory is known, or said not to be."""
    for model in sampled(NETWORKS, 8):
        found = [
            train(model=model, hardware="H100", global_batch=4, estimate=estimate,
                  check_memory=False)
            for estimate in ("bound", "roofline", "calibrated")
        ]  # fmt: skip
        times = [each.value("step_time") for each in found]
        assert 0 < times[0] < times[1] < times[2], model.key
        if found[1].run.graph.notes:
            with pytest.raises(InvalidValueError, match="is not known"):
                found[1].value("memory_required")
        else:
            parts = ("weight", "gradient", "optimizer", "activation")
            held = sum(found[1].value(f"{part}_memory") for part in parts)
            assert found[1].value("memory_required") == pytest.approx(held)
        assert model.name in str(found[2])
        assert json.dumps(found[2].to_dict())


def test_what_can_not_be_is_refused() -> None:
    assert answered(train, "training", "network") == []
    step = train()
    with pytest.raises(InvalidValueError, match="ask for throughput"):
        _ = step.token_rate
    with pytest.raises(InvalidValueError, match="not tokens"):
        _ = step.run_tokens_per_parameter
    with pytest.raises(UnknownNameError, match="step_time"):
        step.value("step_tim")
    with pytest.raises(InvalidValueError, match=r"samples=90"):
        step.value("training_time")
    with pytest.raises(InvalidValueError, match="training_cost needs device_price"):
        train(samples=100).value("training_cost")
    for name in ("global_batch", "micro_batch"):
        with pytest.raises(InvalidValueError, match=f"{name} must be a whole number"):
            train(**{name: 2.5})
    with pytest.raises(InvalidValueError, match="give the tokens"):
        Engine.train(model="Llama3_8B", hardware="H100", global_batch=8, samples=10)
    with pytest.raises(InvalidValueError, match="Adam"):
        Engine.train(model="Llama3_8B", hardware="H100", global_batch=8, optimizer="sgd")
    asked = {"hardware": "T4", "precision": "fp16", "global_batch": 1024}
    with pytest.raises(DoesNotFitError, match="smaller micro_batch"):
        _ = train(**asked).step_time
    with pytest.raises(DoesNotFitError):
        _ = NetworkTraining(train(**asked, check_memory=False).run).step_time
    assert train(**asked, check_memory=False).value("step_time") > 0


def test_given_rates_take_the_place_of_measured_ones() -> None:
    given = {"compute_fraction": 0.5, "memory_fraction": 0.5, "kernel_overhead": "1 ms"}
    found = train(estimate="calibrated", **given)
    kernels = sum(found.run.table.columns["all_repeats"])
    rest = train(estimate="calibrated", **{**given, "kernel_overhead": "1 us"})
    assert found.value("kernel_step_time") - rest.value("kernel_step_time") == pytest.approx(
        kernels * 999e-6
    )


def test_the_command_line_trains_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["train", "resnet50", "HGX_A100", "--devices", "8", "--global-batch", "2048"]
    assert main([*asked, "--optimizer", "sgd", "--samples", "1281167"]) == 0
    out = capsys.readouterr().out
    assert "one batch of 256 on each device" in out
    assert "1,281,167 samples" in out
    assert main([*asked, "--estimate", "bound", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["breakdown"] is None
