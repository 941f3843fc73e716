"""A GPU through a stand-in for PyTorch: rates that are known, and work that is waited for."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_gpu import CACHE, CACHED, LAUNCH, LINK, MEMORY, PRODUCTS, RATE, MadeTorch

from mlsim.errors import NotMeasuredError
from mlsim.hardware.device_files import load_device
from mlsim.profiling.measuring.gpu import measure_gpu
from mlsim.profiling.measuring.measurement import Measurement


def measured(torch: MadeTorch) -> Measurement:
    return measure_gpu(torch, seconds=1e4, say=lambda _: None, clock=torch.clock, now=torch.clock)


@pytest.fixture(scope="module")
def found() -> Measurement:
    return measured(MadeTorch())


def test_rates_are_of_finished_work(found: Measurement) -> None:
    """Nothing is known of work that was not waited for: the host's clock stands still."""
    values = {name: each.value for name, each in found.figures.items()}
    assert values["memory.bandwidth"] == pytest.approx(RATE, rel=0.02)
    assert values["memory.l2_bandwidth"] == pytest.approx(CACHED, rel=0.1)
    assert values["memory.l2"] == pytest.approx(CACHE, rel=0.2)
    assert values["starts.kernel"] == pytest.approx(LAUNCH, rel=0.02)
    assert values["links.pcie"] == pytest.approx(LINK, rel=0.02)
    assert values["compute.fp32"] == pytest.approx(PRODUCTS["float32"], rel=0.02)
    assert values["compute.tf32"] == pytest.approx(PRODUCTS["tf32"], rel=0.02)
    assert values["compute.bf16"] == pytest.approx(PRODUCTS["bfloat16"], rel=0.02)


def test_what_the_device_can_t_is_said_in_its_words(found: Measurement) -> None:
    assert found.refused["compute.int8"] == "not there: int8 products need another GPU"
    assert found.refused["compute.fp8"].startswith("not there: ")


def test_the_file_is_one_of_the_zoo(found: Measurement, tmp_path: Path) -> None:
    device = load_device(found.save(tmp_path / "gpu.toml"))
    assert device.key == "Local.GPU"
    assert device.name == "Made GPU"
    assert device.capacity_si == MEMORY
    assert device.figures["links.pcie"].direction == "one-way"


def test_an_apple_gpu_has_fewer_formats() -> None:
    found = measured(MadeTorch(backend="mps"))
    assert found.name.endswith(" GPU")
    assert "compute.tf32" not in found.figures
    assert "links.pcie" not in found.figures
    assert found.figures["compute.fp16"].value == pytest.approx(PRODUCTS["float16"], rel=0.02)


def test_a_noisy_gpu_has_no_roof() -> None:
    with pytest.raises(NotMeasuredError, match="Made GPU has no roof"):
        measured(MadeTorch(noise=200.0)).require_roof()


def test_no_gpu() -> None:
    with pytest.raises(NotMeasuredError, match=r"PyTorch 9\.9 sees no GPU here"):
        measured(MadeTorch(there=False))
