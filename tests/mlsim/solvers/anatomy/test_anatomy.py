"""An anatomy holds what was counted by hand, and times that `Engine.solve` gives too."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from mlsim import (
    Engine,
    Models,
    anatomy,
    estimate_training_for,
    largest_batch,
    over_memory,
    plot_anatomy,
    profile_layer_mem,
    profile_mem,
    profile_ops,
    summary,
)
from mlsim.errors import DoesNotFitError, InvalidValueError, UnknownNameError, WrongKindError
from mlsim.solvers.anatomy.view import View

SEED_TABLE = {
    "conv1": 89856,
    "conv1_relu": 6912,
    "pool1": 2592,
    "conv2": 154624,
    "conv2_relu": 2048,
    "pool2": 768,
    "fc1": 30720,
    "fc1_relu": 240,
    "fc2": 7200,
    "fc2_relu": 120,
    "fc3": 600,
    "fc3_relu": 20,
    "total": 295700,
}


def test_lenet_has_the_rows_of_the_lecture() -> None:
    view = profile_ops("LeNet5_Variant", count="seed003")
    assert dict(zip(view["layer"], view["operations"], strict=True)) == SEED_TABLE
    assert profile_ops("LeNet5_Variant")["operations"][-1] == 557_040
    assert anatomy("LeNet5_Variant").total("parameters") == 41_282


def test_a_way_of_counting_without_a_rule_is_refused_and_named() -> None:
    with pytest.raises(InvalidValueError, match=r"no rule for patches_positions, which is"):
        profile_ops("ViT_B16", count="seed003")
    with pytest.raises(UnknownNameError, match="seed003"):
        profile_ops("ResNet18", count="seed03")
    ways = anatomy("ViT_B16").counts()["count"]
    assert ways == ["flop", "mac", "pytorch"]


def test_the_lecture_s_way_on_a_residual_network() -> None:
    """By hand: a window without a bias, two for a batch norm, one for a sum, a mean's window."""
    found = anatomy("ResNet18", count="seed003")
    assert found["conv1"]["operations"] == 64 * 112 * 112 * (3 * 49)
    assert found["conv1_bn"]["operations"] == found["conv1_relu"]["operations"] == 2 * 64 * 112**2
    assert found["conv2.1.b_add"]["operations"] == 64 * 56 * 56
    assert found["maxpool"]["operations"] == 64 * 56 * 56 * 8
    assert found["avgpool"]["operations"] == 512 * 49


def test_operations_grow_with_the_batch_and_weights_do_not() -> None:
    one, many = anatomy("ResNet18"), anatomy("ResNet18", batch_size=8)
    assert many.total("operations") == 8 * one.total("operations")
    assert many.total("bytes_weights") == one.total("bytes_weights")
    assert many.total("bytes_out") == 8 * one.total("bytes_out")


def test_alexnet_of_two_cards_and_of_one() -> None:
    """Two groups see half the channels each: fewer weights and fewer products."""
    grouped = anatomy("AlexNet", batch_size=128, training=True)
    whole = anatomy("AlexNet_Unsplit")
    assert whole.total("parameters") == 62_378_344
    assert whole.total("operations") / 2 == pytest.approx(1.135e9, rel=1e-3)
    assert anatomy("AlexNet_Torchvision").total("parameters") == 61_100_840
    assert grouped.total("parameters") == 60_965_224
    assert grouped.total("operations") / 2 / 128 == pytest.approx(0.724e9, rel=1e-3)
    held = grouped.total("weights") + grouped.total("gradients") + grouped.total("states")
    assert held == 3 * 4 * 60_965_224
    moved = grouped.total("outputs") + grouped.total("errors")
    assert moved / 1e9 == pytest.approx(1.96, abs=0.005)


@pytest.mark.parametrize("name", ["LeNet5_Variant", "ResNet50", "ViT_B16", "T5_Small", "DLRM"])
@pytest.mark.parametrize("batch", [1, 16])
def test_times_add_up_to_what_a_solve_says(name: str, batch: int) -> None:
    found = anatomy(name, hardware="A100", precision="fp16", batch_size=batch)
    latency = Engine.solve(model=name, hardware="A100", batch_size=batch, check_memory=False).value(
        "latency"
    )
    assert sum(found.layers["time"]) == pytest.approx(latency, rel=1e-12)
    assert sum(found.operators["time"]) == pytest.approx(latency, rel=1e-12)
    assert found.time.si == pytest.approx(latency, rel=1e-12)


def test_memory_is_what_a_solve_says() -> None:
    found = anatomy("VGG16", precision="fp16", batch_size=4, hardware="A100")
    required = Engine.solve(model="VGG16", hardware="A100", batch_size=4).value("memory_required")
    assert found.memory_required.si == pytest.approx(required, rel=1e-12)


def test_training_does_three_times_the_work_but_for_the_first_layer() -> None:
    found = anatomy("LeNet5_Variant", training=True)
    back = dict(zip(found.layers["layer"], found.layers["operations_backward"], strict=True))
    forward = dict(zip(found.layers["layer"], found.layers["operations"], strict=True))
    assert back["conv1"] == forward["conv1"]
    assert {name for name in back if back[name] == 2 * forward[name] and back[name]} == {
        "conv2",
        "fc1",
        "fc2",
        "fc3",
    }


def test_a_step_has_a_time_in_every_estimate() -> None:
    times = {
        estimate: anatomy(
            "ResNet50",
            training=True,
            hardware="A100",
            precision="fp16",
            batch_size=64,
            estimate=estimate,
        ).time.si
        for estimate in ("roofline", "calibrated")
    }
    forward = anatomy("ResNet50", hardware="A100", precision="fp16", batch_size=64).time.si
    assert 2 * forward < times["roofline"] < times["calibrated"] < 10 * times["roofline"]


def test_what_training_holds_of_a_layer() -> None:
    row = anatomy("LeNet5_Variant", training=True, optimizer="adam", batch_size=2)["fc1"]
    assert row["weights"] == row["gradients"] == 4 * 30_840
    assert row["states"] == 2 * 4 * 30_840
    assert row["outputs"] == row["errors"] == 2 * 120 * 4


def test_working_sets_by_hand() -> None:
    view = profile_layer_mem("LeNet5_Variant")
    assert view.rows[0] == {
        "layer": "conv1",
        "inputs": 784 * 4,
        "weights": 156 * 4,
        "outputs": 3456 * 4,
        "working_set": (784 + 156 + 3456) * 4,
    }
    shares = profile_mem("LeNet5_Variant")
    assert sum(shares["share"]) == pytest.approx(1)
    assert sum(shares["bytes"]) == sum(view["working_set"])


def test_a_summary_has_the_sizes_in_mebibytes() -> None:
    view = summary("LeNet5_Variant")
    outputs = sum(anatomy("LeNet5_Variant").layers["bytes_out"])
    assert f"Forward/backward pass size (MB): {2 * outputs / 2**20:.2f}" in view.notes
    assert f"Params size (MB): {41_282 * 4 / 2**20:.2f}" in view.notes
    assert "Total params: 41,282" in view.notes


def test_the_summary_of_the_lecture() -> None:
    view = summary("MNIST_Net")
    assert view["parameters"] == [260, 5020, 0, 16050, 510]
    assert view["output_shape"][0] == (-1, 10, 24, 24)
    assert view.notes == (
        "Total params: 21,840",
        "Input size (MB): 0.00",
        "Forward/backward pass size (MB): 0.06",
        "Params size (MB): 0.08",
        "Estimated total size (MB): 0.15",
    )
    assert summary("VGG16").notes[-1] == "Estimated total size (MB): 746.96"


def test_the_table_goes_to_a_file_and_back(tmp_path: Path) -> None:
    found = anatomy("AlexNet", hardware="A100")
    path = tmp_path / "layers.csv"
    path.write_text("old", encoding="utf-8")
    text = found.to_csv(path)
    assert path.read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(found)
    assert sum(int(row["parameters"]) for row in rows) == 60_965_224
    assert list(tmp_path.iterdir()) == [path]
    assert list(found.frame.columns) == list(found.layers.columns)
    assert json.loads(json.dumps(found.to_dict()))["totals"]["parameters"] == 60_965_224


def test_of_a_deep_network_the_ends_are_printed() -> None:
    found = anatomy("ResNet50")
    lines = str(found).splitlines()
    assert len(lines) < 50 < len(str(found.overview(most=0)).splitlines())
    assert f"{len(found)} layers, of which the ends are shown" in lines[-1]
    assert "conv1_bn" in lines[3]
    assert lines[-3].split()[0] == "fc"


def test_the_largest_batch_fits_and_the_next_does_not() -> None:
    most = largest_batch("AlexNet", hardware="GTX580", training=True)
    at = {
        batch: anatomy("AlexNet", hardware="GTX580", training=True, batch_size=batch).memory_free.si
        for batch in (most, most + 1)
    }
    assert at[most] >= 0 > at[most + 1]
    with pytest.raises(DoesNotFitError, match="even with one sample"):
        largest_batch("T5_11B", hardware="GTX580")


def test_beyond_memory_a_disk_decides() -> None:
    rows = over_memory(
        "AlexNet",
        [128, 512],
        hardware="GTX580",
        training=True,
        disk_bandwidth="1 GB/s",
    ).rows
    assert rows[0]["excess"] == rows[0]["paging_time"] == 0
    assert rows[1]["paging_time"] == pytest.approx(2 * rows[1]["excess"] / 1e9)
    assert rows[1]["throughput"] < rows[0]["throughput"]
    with pytest.raises(InvalidValueError, match="at least one batch"):
        over_memory("AlexNet", [], hardware="GTX580", disk_bandwidth="1 GB/s")


def test_epochs_measured_and_predicted() -> None:
    """The lecture's line: 2.42 s an epoch are 2,423.7 s for 1,000 of them."""
    found = estimate_training_for("LeNet5_Variant", 1000, epoch_time="2.4237449169158936 s")
    assert found.total.to("s").magnitude == pytest.approx(2423.7449169158936)
    told = {"samples": 60_000, "hardware": "T4", "batch_size": 512}
    predicted = estimate_training_for("LeNet5_Variant", 2, **told)
    assert predicted.steps == 118
    step = anatomy("LeNet5_Variant", hardware="T4", batch_size=512, training=True).time.si
    assert predicted.total.to("s").magnitude == pytest.approx(2 * 118 * step)
    assert "all epochs" in str(predicted)


def test_epochs_need_one_way_to_know_their_time() -> None:
    for told in ({}, {"samples": 10}, {"samples": 10, "hardware": "T4", "epoch_time": "1 s"}):
        with pytest.raises(InvalidValueError, match="one of the two"):
            estimate_training_for("LeNet5_Variant", 1, **told)
    with pytest.raises(DoesNotFitError, match="disk_bandwidth="):
        estimate_training_for("VGG16", 1, samples=10_000, hardware="GTX580", batch_size=512)


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="adam"):
        anatomy("LeNet5_Variant", training=True, optimizer="adm")
    with pytest.raises(InvalidValueError, match="hardware="):
        _ = anatomy("LeNet5_Variant").time
    with pytest.raises(InvalidValueError, match="batch_size"):
        anatomy("LeNet5_Variant", batch_size=0)
    with pytest.raises(WrongKindError, match="doesn't add up"):
        anatomy("LeNet5_Variant").total("kind")
    with pytest.raises(UnknownNameError, match="conv1"):
        anatomy("LeNet5_Variant")["conv"]
    with pytest.raises(InvalidValueError, match="what training holds is not known"):
        _ = anatomy("DLRM", training=True).peak
    with pytest.raises(InvalidValueError, match="leave shape= out"):
        anatomy("LeNet5_Variant", shape=(1, 28, 28))
    with pytest.raises(UnknownNameError, match="adam"):
        anatomy("LeNet5_Variant", training=True, optimizer=["adam"])  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="one batch_size"):
        anatomy("LeNet5_Variant", batch_size=[1, 2])
    with pytest.raises(InvalidValueError, match="training=True"):
        _ = anatomy("LeNet5_Variant").moments
    with pytest.raises(InvalidValueError, match="no folder"):
        anatomy("LeNet5_Variant").to_csv("/no/such/folder/rows.csv")
    with pytest.raises(WrongKindError, match="what anatomy"):
        plot_anatomy("LeNet5_Variant")  # type: ignore[arg-type]
    assert Models.LeNet5_Variant.parameter_count == 41_282


def test_a_largest_batch_is_asked_without_one() -> None:
    with pytest.raises(InvalidValueError, match="leave it out"):
        largest_batch("ResNet50", hardware="T4", batch_size=4)
    with pytest.raises(InvalidValueError, match="must be several"):
        over_memory("ResNet50", 5, hardware="T4", disk_bandwidth="3 GB/s")  # type: ignore[arg-type]


def test_a_language_model_takes_about_what_its_prefill_takes() -> None:
    """A service also writes its cache; what is tied to the embedding is read all the same."""
    for name in ("GPT2", "Llama3_8B", "Gemma2_9B"):
        found = anatomy(name, tokens=512, hardware="H100", precision="bf16")
        service = Engine.serve(
            model=name, hardware="H100", prompt_tokens=512, output_tokens=1, precision="bf16"
        )
        assert found.time.si == pytest.approx(service.value("time_to_first_token"), rel=0.06)
        assert found.total("parameters") == getattr(Models, name).parameter_count
        assert found.profile.model.parameter_count == getattr(Models, name).parameter_count


def test_one_token_reads_its_own_experts_only() -> None:
    """Two of eight: a quarter of the experts' weights, so that reading them takes a quarter."""
    one = anatomy("Mixtral_8x7B", tokens=1, hardware="H100", precision="bf16")
    up = next(row for row in one.operators if row["kind"] == "experts")
    assert up["bytes_weights"] == pytest.approx(2 * up["parameters"] / 4)
    step = Engine.serve(
        model="Mixtral_8x7B", hardware="H200", prompt_tokens=1, output_tokens=1, precision="bf16"
    )
    alone = anatomy("Mixtral_8x7B", tokens=1, hardware="H200", precision="bf16")
    assert alone.time.si == pytest.approx(step.value("time_to_first_token"), rel=0.03)


def test_a_language_model_needs_its_tokens() -> None:
    with pytest.raises(InvalidValueError, match="whole number"):
        anatomy("GPT2", tokens=[512])
    with pytest.raises(InvalidValueError, match="tokens=512"):
        anatomy("GPT2")
    with pytest.raises(InvalidValueError, match="Leave it out"):
        anatomy("ResNet18", tokens=5)
    one, trained = (anatomy("GPT2", tokens=8, training=each) for each in (False, True))
    assert trained["output"]["shape_out"] == (8, 50257)
    assert one["output"]["shape_out"] == (50257,)


def test_training_has_calibrated_times() -> None:
    # A first layer's way back writes no map, and the update of weights is no product.
    asked = {"batch_size": 64, "precision": "fp16", "hardware": "A100", "training": True}
    roofline, calibrated = (
        anatomy("ResNet50", **asked, estimate=each).time.si for each in ("roofline", "calibrated")
    )
    assert roofline < calibrated < 3 * roofline


def test_names_of_layers_are_no_markup() -> None:
    view = View("<script>", ("layer",), [{"layer": "<img src=x>"}], ("a < b & c",))
    assert view._repr_markdown_().count("&lt;") == 3
    assert "<" not in view._repr_markdown_()
    assert "<img src=x>" in str(view)
