"""Networks of the zoo that PyTorch runs: they are the networks that the zoo counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mlsim import Device, Engine, Hardware, Models, plot_roofline
from mlsim.errors import (
    DataFileError,
    InvalidValueError,
    MissingLibraryError,
    NotMeasuredError,
    UnknownNameError,
    UnsupportedLayerError,
    WrongKindError,
)
from mlsim.profiling import NetworkRun, one_core, sample_machine, sample_run, time_network
from mlsim.profiling.torch_networks import TorchNetwork
from mlsim.workloads.model import Network

torch = pytest.importorskip("torch")

RUNS = (
    *("AlexNet", "AlexNet_Torchvision", "AlexNet_Unsplit", "EfficientNet_B0", "LeNet5_Variant"),
    *("MNIST_Net", "MobileNetV2", "ResNet18", "ResNet50", "ResNet101", "ResNet152", "VGG16"),
    "ViT_B16",
)


@pytest.mark.parametrize("name", RUNS)
def test_what_runs_has_the_weights_and_the_work_of_the_zoo(name: str) -> None:
    """PyTorch counts the work; no number is computed."""
    from torch.utils.flop_counter import FlopCounterMode

    network = getattr(Models, name)
    built = TorchNetwork(torch, network, "meta", torch.float32)
    with FlopCounterMode(display=False) as counted:
        out = built.run(built.sample(2))
    assert sum(each.numel() for each in built.weights) == network.parameter_count
    assert counted.get_total_flops() == 2 * network.flop_count
    assert {each.name for each in network.operators} <= {step.name for step in built.steps}
    assert out.shape == (2, network.layers[-1].lower(network.input).output.channels)


def test_the_output_is_a_sane_number() -> None:
    """Neither infinities nor zeros, which some processors multiply faster or slower."""
    built = TorchNetwork(torch, Models.ResNet18, "cpu", torch.float32)
    with torch.inference_mode():
        out = built.run(built.sample(1))
    assert torch.isfinite(out).all()
    assert out.abs().max() > 1e-3


def test_a_timed_network_is_a_point_with_the_counts_of_the_solver() -> None:
    run = time_network("LeNet5_Variant", batch_size=4, repeat=3)
    device = Device(
        "Mine",
        peak_flops={"fp32": "100 GFLOP/s"},
        memory_bandwidth="10 GB/s",
        memory_capacity="8 GB",
    )
    solved = Engine.solve(model="LeNet5_Variant", hardware=device, batch_size=4, precision="fp32")
    assert run.flops == solved.total_flops.si == 4 * 557_040
    assert run.bytes_moved == pytest.approx(solved.total_bytes.si)
    assert run.seconds > 0
    assert [each.name for each in run.layers] == [
        each.name for each in Models.LeNet5_Variant.operators
    ]
    assert all(each.seconds > 0 for each in run.layers)
    assert run.to_dict()["layers"][0]["flops"] == run.layers[0].flops
    _, ax = plot_roofline(device, points=run, operators=True)  # in fp32, as it ran
    dots, mark = ax.collections
    assert len(dots.get_offsets()) == 5  # two convolutions and three linear layers
    assert list(mark.get_offsets()[0]) == pytest.approx([run.intensity, run.rate / 1e12])
    with pytest.raises(InvalidValueError, match=r"ran in fp32.*precision='fp32'"):
        plot_roofline("A100", points=run, precision="bf16")
    assert "LeNet-5, modern variant (28 pixels), batch 4, fp32: " in str(run)
    assert "by kind: " in str(run)


def test_raw_numbers_go_from_one_machine_to_another(tmp_path: Path) -> None:
    run = sample_run("LeNet5_Variant-2")
    assert NetworkRun.load(run.save(tmp_path / "run.json")) == run
    (tmp_path / "wrong.json").write_text('{"timing": 3}')
    for name in ("wrong.json", "none.json"):
        with pytest.raises(DataFileError, match=name):
            NetworkRun.load(tmp_path / name)
    with pytest.raises(UnknownNameError, match="ResNet50-2"):
        sample_run("ResNet50")


def test_one_core_has_its_own_roof() -> None:
    both, alone = sample_machine(), sample_machine(1)
    figures = both.figures
    assert alone.bandwidth_si == pytest.approx(figures["one_core.bandwidth"].si)
    assert alone.compute.peak("fp32").si == pytest.approx(figures["one_core.fp32"].si)
    assert alone.compute.peak("fp32") < both.compute.peak("fp32")
    with pytest.raises(InvalidValueError, match="1 or 2 cores"):
        sample_machine(3)
    with pytest.raises(NotMeasuredError, match=r"no fp32 and no memory bandwidth of one core"):
        one_core(Hardware.Cloud.A100)


def test_no_sample_point_lies_above_its_measured_roof() -> None:
    for name in ("ResNet50", "LeNet5_Variant", "LeNet5_Variant-batch64"):
        for cores in (1, 2):
            run, machine = sample_run(f"{name}-{cores}"), sample_machine(cores)
            roof = min(machine.compute.peak("fp32").si, run.intensity * machine.bandwidth_si)
            assert run.rate < roof


def test_what_it_can_not_run_is_refused_and_says_what_it_can() -> None:
    with pytest.raises(UnsupportedLayerError, match=r"DotInteraction.*ResNet18 to ResNet152"):
        time_network("DLRM")
    with pytest.raises(UnsupportedLayerError, match="c3"):
        time_network("LeNet5")
    with pytest.raises(WrongKindError, match="language model"):
        time_network("GPT2")
    with pytest.raises(UnknownNameError, match="There are: fp64, fp32"):
        time_network("ResNet50", precision="fp8")
    with pytest.raises(UnknownNameError, match="kind of device"):
        time_network("ResNet50", device="tpu")
    with pytest.raises(InvalidValueError, match="batch_size"):
        time_network("ResNet50", batch_size=0)
    if not torch.cuda.is_available() and not torch.backends.mps.is_available():
        with pytest.raises(NotMeasuredError, match="sees no GPU here"):
            time_network("ResNet50", device="gpu")


def test_without_pytorch_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingLibraryError, match=r"pip install torch.*time_function.*mlsim\.lab"):
        time_network("ResNet50")


def test_the_list_of_networks_in_this_test_is_whole() -> None:
    every = [name for name in dir(Models) if isinstance(getattr(Models, name), Network)]
    for name in set(every) - set(RUNS):
        with pytest.raises(UnsupportedLayerError):
            TorchNetwork(torch, getattr(Models, name), "meta", torch.float32)
