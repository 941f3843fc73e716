"""An anatomy holds what was counted by hand, in figures and views, and times that `Engine.solve` gives too."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import kept
import pytest
from refusals import answered

from mlsim import Device, Engine, Models, anatomy
from mlsim.cli.command import main
from mlsim.engine import (
    estimate_training_for,
    largest_batch,
    over_memory,
    profile_layer_mem,
    profile_mem,
    profile_ops,
    summary,
)
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError, WrongKindError
from mlsim.plots import plot_anatomy
from mlsim.solvers.anatomy.layers import View
from mlsim.workloads.model import Network

PRINTED = kept.blocks("anatomies.txt")
SEED_TABLE = dict(kept.cases("lecture_operations.toml"))


def lines(shown: object) -> list[str]:
    """Return the lines of a text, words with one space between them."""
    return [" ".join(line.split()) for line in str(shown).splitlines()]


def test_a_step_of_two_layers_by_hand(tiny: Network, slow_chip: Device) -> None:
    """Batch 2 in fp16 on 100 FLOP/s and 40 B/s; what is counted is beside the fixture.

    Forward, conv computes 1,152 operations for 11.52 s; fc moves 2 x (99 + 2 x 35) = 338 B, in
    8.45 s. Back, fc does twice its 384 operations, reads the error for either, inputs and
    weights, and writes an error and gradients: 2 x (2 x 99 + 2 x (2 x 3 + 32 + 32)) = 676 B or
    16.9 s; conv has no error to pass on, and does once its work: 11.52 s. Momentum reads weights,
    gradients and states, and writes weights and states: 5 x 117 x 2 = 1,170 B, 29.25 s. In all
    77.64 s.

    Most is held while fc goes back: 234 B of weights and as much of states, gradients of fc 198,
    of outputs image, conv and fc, 2 x 2 x (16 + 32 + 3) = 204, errors of fc and of what it read,
    2 x 2 x (3 + 32) = 140: 1,010 B, ten too many.
    """
    asked: dict[str, Any] = {"hardware": slow_chip, "precision": "fp16", "training": True}
    step = anatomy(tiny, batch_size=2, **asked)
    assert lines(step) == PRINTED["step"]
    assert step.time.si == pytest.approx(11.52 + 8.45 + 16.9 + 11.52 + 29.25)
    held = {"weights": 198, "gradients": 198, "states": 198, "outputs": 12, "errors": 12}
    rest = {"shape_in": (2, 4, 4), "bytes_in": 128, "bytes_out": 12, "bytes_weights": 198}
    assert step["fc"].items() >= {**held, **rest, "operations_backward": 768}.items()
    assert step["conv"].items() >= {"bytes_in": 64, "bytes_out": 128, "states": 36}.items()
    assert step.moments.notes == ("peak: 1,010 B, backward fc",)
    assert lines(step.moments)[1:8] == PRINTED["moments"]
    data = json.loads(json.dumps(step.to_dict()))
    assert (data["hardware"], data["batch_size"], data["count"]) == ("Slow chip", 2, "flop")
    peak = {"phase": "backward", "layer": "fc", "total": 1010, "outputs": 204, "errors": 140}
    assert data["peak"].items() >= peak.items()
    assert data["totals"].items() >= {"operations_backward": 1920, "working_set": 566}.items()
    assert (step.memory_required.si, step.memory_free.si) == (1010, -10)
    for optimizer, kept_states in (("sgd", 0), ("momentum", 1), ("adam", 2)):
        held_by = anatomy(tiny, training=True, optimizer=optimizer, precision="fp32")
        assert held_by.total("states") == kept_states * 4 * 117
    assert step.memory_required.name == "memory required"
    assert "By the peak of a step at the worst moment." in step.memory_required.origin.how
    assert repr(step) == f"<Anatomy {step.about}: 2 layers, 117 parameter>"
    # A batch of one holds 838 B, of three 1,182: 182 too many go out and come back, at 10 B/s.
    assert largest_batch(tiny, **asked) == 1
    rows = over_memory(tiny, [1, 2, 3], disk_bandwidth="10 B/s", **asked)
    assert rows.title == "Tiny on Slow chip where memory ends, fp16"
    assert lines(rows)[1:] == PRINTED["over memory"]
    assert [row.excess.si for row in rows] == [0, 10, 182]
    # Seven samples are four steps; three epochs twelve, of 79.64 s.
    told = estimate_training_for(tiny, 3, samples=7, batch_size=2, disk_bandwidth="10 B/s", **asked)
    assert lines(told) == [f"{step.about}, 3 epochs", *PRINTED["epochs"]]
    assert [told.total.si, told.epoch_time.si] == pytest.approx([12 * 79.64, 4 * 79.64])
    # In 32 bits all is twice as much, and one sample is too large.
    words = r"batch 1, fp32.* needs 1\.637 KiB, even with one sample; Slow chip has 1,000 B"
    with pytest.raises(DoesNotFitError, match=words):
        largest_batch(tiny, **{**asked, "precision": "fp32"})


def test_a_pass_of_two_layers_by_hand(tiny: Network, slow_chip: Device) -> None:
    found = anatomy(tiny, batch_size=2, count="mac")
    assert lines(found)[-1] == "117 parameters, 468 B of weights, 768 operations (mac)"
    assert found.operations.name == "operations (mac) of Tiny"
    assert found.parameters.name == "parameters of Tiny"
    assert found.operations.base == "MAC"
    assert "one for each multiply-add of products and" in found.operations.origin.how
    assert found.operations.origin.how.endswith("2 layers added up.")
    assert found.memory_required.si == 4 * (117 + 2 * 48)
    assert "By weights, and the activations alive" in found.memory_required.origin.how
    assert found.to_dict()["hardware"] is None
    ways = found.counts("fc")
    assert ways.title == "fc, batch 2, by ways of counting"
    counted = {"flop": 384, "mac": 192, "seed003": 192, "pytorch": 384}
    assert dict(zip(ways["count"], ways["operations"], strict=True)) == counted
    shares = profile_mem(tiny, batch_size=2, precision="fp16")
    assert lines(shares)[2:] == ["inputs 192 33.9%", "weights 234 41.3%", "outputs 140 24.7%"]
    sets = profile_layer_mem(tiny, batch_size=2, precision="fp16")
    assert lines(sets) == PRINTED["working sets"]
    assert lines(summary(tiny, batch_size=2))[:4] == PRINTED["summary"]
    # 234 B of weights leave 766 for 192 B a pair: seven samples, 96 B each.
    assert largest_batch(tiny, hardware=slow_chip, precision="fp16") == 7


def test_lenet_has_the_rows_of_the_lecture() -> None:
    view = profile_ops("LeNet5_Variant", count="seed003")
    assert dict(zip(view["layer"], view["operations"], strict=True)) == SEED_TABLE
    assert view.title.endswith(", batch 1, count='seed003'")
    usual = profile_ops("LeNet5_Variant")
    assert (usual.title[-15:], usual["operations"][-1]) == (", batch 1, FLOP", 557_040)
    assert anatomy("LeNet5_Variant").total("parameters") == 41_282
    assert anatomy("ViT_B16").counts()["count"] == ["flop", "mac", "pytorch"]


def test_the_lecture_s_way_on_a_residual_network() -> None:
    """By hand: a window without a bias, two for a batch norm, one for a sum, a mean's window."""
    found = anatomy("ResNet18", count="seed003")
    assert found["conv1"]["operations"] == 64 * 112 * 112 * (3 * 49)
    assert found["conv1_bn"]["operations"] == found["conv1_relu"]["operations"] == 2 * 64 * 112**2
    assert found["conv2.1.b_add"]["operations"] == 64 * 56 * 56
    assert found["maxpool"]["operations"] == 64 * 56 * 56 * 8
    assert found["avgpool"]["operations"] == 512 * 49


def test_alexnet_of_two_cards_and_of_one() -> None:
    """Two groups see half the channels each: fewer weights and fewer products."""
    grouped = anatomy("AlexNet", batch_size=128, training=True)
    whole = anatomy("AlexNet_Unsplit")
    assert whole.total("parameters") == 62_378_344
    assert whole.total("operations") / 2 == pytest.approx(1.135e9, rel=1e-3)
    assert grouped.total("parameters") == 60_965_224
    assert grouped.total("operations") / 2 / 128 == pytest.approx(0.724e9, rel=1e-3)
    held = grouped.total("weights") + grouped.total("gradients") + grouped.total("states")
    assert held == 3 * 4 * 60_965_224
    moved = grouped.total("outputs") + grouped.total("errors")
    assert moved / 1e9 == pytest.approx(1.96, abs=0.005)


def test_times_and_memory_are_what_a_solve_says() -> None:
    for name in ("ResNet50", "T5_Small", "DLRM"):
        found = anatomy(name, hardware="A100", precision="fp16", batch_size=16)
        solved = Engine.solve(model=name, hardware="A100", batch_size=16, check_memory=False)
        latency = solved.value("latency")
        for part in (found.layers["time"], found.operators["time"], [found.time.si]):
            assert sum(part) == pytest.approx(latency, rel=1e-12)
    vgg = anatomy("VGG16", precision="fp16", batch_size=4, hardware="A100")
    solved = Engine.solve(model="VGG16", hardware="A100", batch_size=4)
    assert vgg.memory_required.si == pytest.approx(solved.value("memory_required"), rel=1e-12)


def test_the_summary_of_the_lecture() -> None:
    view = summary("MNIST_Net")
    assert view["parameters"] == [260, 5020, 0, 16050, 510]
    assert view["output_shape"][0] == (-1, 10, 24, 24)
    assert list(view.notes) == PRINTED["lecture"]
    assert summary("VGG16").notes[-1] == "Estimated total size (MB): 746.96"


def test_the_table_goes_to_a_file_and_back(tmp_path: Path) -> None:
    found = anatomy("AlexNet", hardware="A100")
    path = tmp_path / "layers.csv"
    path.write_text("old", encoding="utf-8")
    text = found.to_csv(path)
    assert path.read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(found)
    assert rows[0]["shape_in"] == "3x227x227"
    assert sum(int(row["parameters"]) for row in rows) == 60_965_224
    assert list(tmp_path.iterdir()) == [path]
    assert found.frame.parameters.sum() == 60_965_224
    with pytest.raises(InvalidValueError, match="no folder"):
        found.to_csv("/no/such/folder/rows.csv")


def test_of_a_deep_network_the_ends_are_printed_and_the_others_counted() -> None:
    found = anatomy("ResNet50")
    shown = str(found).splitlines()
    assert len(shown) == 1 + 1 + 20 + 1 + 20 + 2
    for all_of_them in (0, len(found)):
        assert "..." not in str(found.overview(most=all_of_them))
    assert f"{len(found)} layers, of which the ends are shown" in shown[-1]
    names = [row["layer"] for row in found.layers]
    assert [line.split()[0] for line in shown[2:22]] == names[:20]
    assert [line.split()[0] for line in shown[23:43]] == names[-20:]
    assert shown[22].split()[:3] == ["...", str(len(found) - 40), "more"]


def test_the_largest_batch_fits_and_the_next_does_not() -> None:
    asked: dict[str, Any] = {"hardware": "GTX580", "training": True}
    most = largest_batch("AlexNet", **asked)
    assert anatomy("AlexNet", **asked, batch_size=most).memory_free.si >= 0
    assert anatomy("AlexNet", **asked, batch_size=most + 1).memory_free.si < 0


def test_epochs_measured_and_predicted() -> None:
    """The lecture's line: 2.42 s an epoch are 2,423.7 s for 1,000 of them."""
    found = estimate_training_for("LeNet5_Variant", 1000, epoch_time="2.4237449169158936 s")
    assert found.total.to("s").magnitude == pytest.approx(2423.7449169158936)
    assert lines(found)[1:] == ["epochs 1,000", "one epoch 2.424 s", "all epochs 2,424 s"]


def test_what_can_not_be_asked_is_refused() -> None:
    def ask(
        model: str = "LeNet5_Variant", *, figure: str = "", total: str = "", layer: str = "",
        kind: str = "", inside: str = "", **asked: Any,
    ) -> Any:  # fmt: skip
        found: Any = anatomy(model, **asked)
        if total:
            return found.total(total)
        if kind or inside:
            return found.part(kind=kind, inside=inside)
        found = found[layer] if layer else found
        return getattr(found, figure) if figure else found

    def over(**asked: Any) -> Any:
        return over_memory("AlexNet", hardware="T4", disk_bandwidth="3 GB/s", **asked)

    def epochs(model: str = "LeNet5_Variant", **asked: Any) -> Any:
        return estimate_training_for(model, **asked)

    assert answered(ask, "anatomy") == []
    assert answered(partial(largest_batch, "ResNet50"), "anatomy", "largest") == []
    assert answered(over, "anatomy", "over") == []
    assert answered(epochs, "anatomy", "epochs") == []
    with pytest.raises(WrongKindError, match="what anatomy"):
        plot_anatomy("LeNet5_Variant")  # type: ignore[arg-type]


def test_a_language_model_takes_about_what_its_prefill_takes() -> None:
    """A service also writes its cache; what is tied to the embedding is read all the same."""
    for name, tokens, near in (("GPT2", 512, 0.06), ("Mixtral_8x7B", 1, 0.03)):
        asked: dict[str, Any] = {"hardware": "H200", "precision": "bf16"}
        found = anatomy(name, tokens=tokens, **asked)
        service = Engine.serve(model=name, prompt_tokens=tokens, output_tokens=1, **asked)
        assert found.time.si == pytest.approx(service.value("time_to_first_token"), rel=near)
        assert found.total("parameters") == getattr(Models, name).parameter_count
    # Two of eight: a quarter of the experts' weights, so that reading them takes a quarter.
    up = next(row for row in found.operators if row["kind"] == "experts")
    assert up["bytes_weights"] == pytest.approx(2 * up["parameters"] / 4)
    one, trained = (anatomy("GPT2", tokens=8, training=each) for each in (False, True))
    assert trained["output"]["shape_out"] == (8, 50257)
    assert one["output"]["shape_out"] == (50257,)


def test_names_of_layers_are_no_markup() -> None:
    view = View("<script>", ("layer",), [{"layer": "<img src=x>"}], ("a < b & c",))
    assert view._repr_markdown_().count("&lt;") == 3
    assert "<" not in view._repr_markdown_()
    assert "<img src=x>" in str(view)
    table = View("T", ("kind", "share"), [{"kind": "a|b", "share": 0.25}, {"kind": None}])
    assert table._repr_markdown_().splitlines() == [
        *("**T**", "", "| kind | share |", "|---|---:|", "| a b | 25.0% |", "|  |  |")
    ]


def test_a_layer_has_its_figures_as_values_that_say_how_they_were_counted() -> None:
    conv1 = anatomy("LeNet5_Variant")["conv1"]
    # Six windows of 5 x 5 with a bias each; 24 x 24 places; 28 x 28 pixels of four bytes.
    assert conv1.parameters == conv1["parameters"] == 6 * 26
    assert conv1.multiply_adds == 6 * 24**2 * 25
    assert conv1.operations.si == 2 * conv1.multiply_adds
    brief = (
        "parameters of conv1 = 156 (LeNet-5, modern variant (28 pixels), batch 1, fp32, inference)"
    )
    assert conv1.parameters.origin.brief == brief
    assert "conv1 = 172.8 kFLOP (" in conv1.operations.origin.brief
    assert "one for each multiply-add of" in conv1.multiply_adds.origin.how
    assert (conv1.bytes_in.si, conv1.bytes_weights.si) == (4 * 28**2, 4 * 156)
    assert conv1.working_set.si == conv1["working_set"]
    assert conv1.intensity.si == pytest.approx(conv1["intensity"], rel=1e-12)
    assert conv1.working_set.name == "working set of conv1"
    assert "bytes read and written" in conv1.working_set.origin.how


def test_a_part_and_a_network_add_their_layers_up() -> None:
    lenet = anatomy("LeNet5_Variant", batch_size=3)
    linear = lenet.part(kind="linear")
    assert [row["layer"] for row in linear] == ["fc1", "fc2", "fc3"]
    assert linear.parameters == 257 * 120 + 121 * 60 + 61 * 10
    assert lenet.operations.si == lenet.total("operations")
    assert lenet.operations.base == "FLOP"
    assert linear.parameters.name == "parameters of 3 linear layers"
    assert (linear.working_set / lenet.working_set).origin.how.count("\n- ") == 2
    block = anatomy("ViT_B16").part(inside="encoder.1", kind="linear")
    assert block.bytes_weights.name == "bytes of weights of 4 linear layers of encoder.1"


def test_what_a_step_holds_is_a_value_and_its_kinds_add_up_at_the_peak() -> None:
    step = anatomy("AlexNet", batch_size=8, training=True, hardware="A100")
    peak = step.peak
    kinds = (peak.weights, peak.gradients, peak.states, peak.outputs, peak.errors)
    assert sum(kinds).si == pytest.approx(peak.total.si)
    assert (peak.phase, peak.layer) == (step.step.peak.phase, step.step.peak.layer)
    assert peak.total == step.memory_required
    assert (step.memory_required + step.memory_free).si == pytest.approx(80 * 2**30)
    assert step.outputs.si == step.total("outputs")
    assert f"{peak.phase} {peak.layer}" in peak.total.origin.how


def test_times_have_the_derivation_of_what_they_follow_from() -> None:
    found = anatomy("AlexNet", batch_size=8, training=True, hardware="A100")
    assert found.time.si == found.training_profile.value("latency")
    forward = anatomy("AlexNet", hardware="A100")
    assert sum(row.time for row in forward.operators).si == pytest.approx(forward.time.si)
    days = estimate_training_for("AlexNet", 90, samples=1_200_000, hardware="A100", batch_size=128)
    assert "dataset samples" in days.total.origin.how
    (row,) = over_memory("AlexNet", [4096], hardware="GTX580", training=True,
                         disk_bandwidth="1 GB/s")  # fmt: skip
    assert row.step_time.si == row["step_time"]
    assert "disk bandwidth" in row.paging_time.origin.how


def test_a_row_for_each_stage_adds_up_to_the_whole() -> None:
    found = anatomy("ResNet50")
    by_stage, by_layer = found.profile_ops(depth=1), found.profile_ops()
    assert by_stage["operations"][-1] == by_layer["operations"][-1] == found.total("operations")
    assert sum(by_stage["operations"][:-1]) == by_stage["operations"][-1]
    stages = "conv1 conv1_bn conv1_relu maxpool conv2 conv3 conv4 conv5 avgpool fc total"
    assert by_stage["layer"] == stages.split()
    sets = found.profile_layer_mem(depth=1)
    assert sum(sets["working_set"]) == found.total("working_set")
    assert sets.notes == found.profile_layer_mem().notes  # the largest layer, not the largest row


def test_a_block_of_a_transformer_has_the_parameters_counted_by_hand() -> None:
    """Twelve squares of the width, and thirteen times the width in biases and norms."""
    view = summary("ViT_B16", inside="encoder.1")
    assert sum(view["parameters"]) == 12 * 768**2 + 13 * 768
    assert view["layer"][0] == "self.norm"
    assert view["output_shape"][-1] == (-1, 197, 768)
    # What enters is one array of 197 x 768 numbers, though two layers read it.
    assert view.notes[1] == f"Input size (MB): {197 * 768 * 4 / 2**20:.2f}"


def test_a_folded_row_says_how_many_layers_it_has_and_ends_with_the_last_shape() -> None:
    rows = list(summary("ResNet18", depth=1))
    conv2 = next(row for row in rows if row["layer"] == "conv2")
    # Two blocks of two convolutions, each with a norm; a ReLU after each; two additions.
    assert conv2["type"] == "14 layers"
    assert conv2["output_shape"] == (-1, 64, 56, 56)
    assert conv2["parameters"] == 4 * (64 * 64 * 9 + 2 * 64)
    alone = next(row for row in rows if row["layer"] == "fc")
    assert alone["type"].startswith("linear-")


def test_a_part_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"conv2\.1"):
        profile_ops("ResNet18", inside="conv2.")
    with pytest.raises(UnknownNameError):
        profile_layer_mem("ResNet18", inside="conv")  # conv1 begins so, and is no part of it
    for depth in (-1, 1.5, True, "1"):
        with pytest.raises(InvalidValueError, match="whole number from 0"):
            profile_ops("ResNet18", depth=depth)
    with pytest.raises(InvalidValueError, match=r"encoder\.1"):
        profile_ops("ResNet18", inside=2)


def test_the_command_shows_a_part(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["anatomy", "ViT_B16", "--view", "ops", "--inside", "encoder.1", "--depth", "1"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2:]] == ["self", "feed", "total"]
    assert main(["anatomy", "ViT_B16", "--view", "mem", "--depth", "1"]) != 0
    assert "--view ops, layer-mem, summary" in capsys.readouterr().err
