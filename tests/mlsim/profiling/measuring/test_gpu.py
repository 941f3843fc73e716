"""A GPU through a stand-in for PyTorch: rates that are known, and work that is waited for."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_gpu import CACHE, CACHED, LAUNCH, LINK, MEMORY, PRODUCTS, RATE, MadeTorch

from mlsim.errors import NotMeasuredError
from mlsim.hardware.device import load_device
from mlsim.profiling.measuring.gpu import find_gpu, makers, measure_gpu
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
    assert found.figures["memory.l2"].how.startswith("Working sets from small to large")
    assert ", 512 MiB together" in found.figures["memory.bandwidth"].how
    # From 2 MiB to a quarter of the memory, by a quarter of a doubling each.
    sizes, rates = found.curves["GPU"]
    assert len(sizes) == len(rates) == 4 * 8 + 1
    assert (sizes[0], sizes[-1]) == (2 * 2**20 // 12 * 12, MEMORY // 4 // 12 * 12)
    assert all(b / a == pytest.approx(2**0.25, rel=1e-4) for a, b in pairwise(sizes))
    assert (found.kind, found.rounds, found.versions) == ("gpu", 18, {"PyTorch": "9.9, cuda"})


def test_calls_are_doubled_until_a_sample_is_long_enough() -> None:
    """Of 1 ms each sixteen calls take 10 ms or more; then three samples of as many are taken."""
    torch, calls = MadeTorch(noise=0.0), 0

    def call() -> None:
        nonlocal calls
        calls += 1
        torch.work(1e-3)

    gpu = find_gpu(torch, torch.clock)
    assert gpu.seconds("one", call) == pytest.approx(1e-3)
    # One warms up, 1 + 2 + 4 + 8 + 16 find out.
    assert (calls, gpu.calls) == (1 + 31 + 3 * 16, {"one": 16})
    assert gpu.seconds("one", call, 2) == pytest.approx(1e-3)
    assert calls == 80 + 2 * 16
    # A driver that says nothing of a cache has none.
    facts = SimpleNamespace(total_memory=MEMORY)
    torch.cuda.get_device_properties = lambda _: facts
    assert (gpu.cache, gpu.capacity) == (0, MEMORY)


def test_what_the_device_can_t_is_said_in_its_words(found: Measurement) -> None:
    assert found.refused["compute.int8"] == "not there: int8 products need another GPU"
    assert found.refused["compute.fp8"].startswith("not there: ")


def test_the_file_is_one_of_the_zoo(found: Measurement, tmp_path: Path) -> None:
    device = load_device(found.save(tmp_path / "gpu.toml"))
    assert device.key == "Local.GPU"
    assert device.name == "Made GPU"
    assert device.capacity_si == MEMORY
    assert device.figures["links.pcie"].direction == "one-way"


def test_products_in_eight_bits_take_the_second_matrix_by_columns() -> None:
    torch = MadeTorch()
    matrix = SimpleNamespace(t=lambda: "columns", to=lambda _: matrix)
    torch.float8_e4m3fn = "fp8"
    torch.ones = lambda *shape, device: matrix if shape == (64, 64) else f"{device} scale"
    torch._scaled_mm = lambda *matrices, **given: (*matrices, given)
    first, second, given = makers(find_gpu(torch))["fp8"](64)()
    assert (first, second) == (matrix, "columns")
    assert given == {"scale_a": "cuda scale", "scale_b": "cuda scale", "out_dtype": "bfloat16"}


def test_an_apple_gpu_has_fewer_formats() -> None:
    found = measured(MadeTorch(backend="mps"))
    assert found.name.endswith(" GPU")
    torch = MadeTorch(backend="mps")
    assert find_gpu(torch, torch.clock).cache == 0
    assert "compute.tf32" not in found.figures
    assert "links.pcie" not in found.figures
    assert found.figures["compute.fp16"].value == pytest.approx(PRODUCTS["float16"], rel=0.02)


def test_a_noisy_gpu_has_no_roof() -> None:
    with pytest.raises(NotMeasuredError, match="Made GPU has no roof"):
        measured(MadeTorch(noise=200.0)).require_roof()


def test_no_gpu() -> None:
    with pytest.raises(NotMeasuredError, match=r"PyTorch 9\.9 sees no GPU here"):
        measured(MadeTorch(there=False))
