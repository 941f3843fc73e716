"""Memory of a device: what its maker prints, what a driver lists, and what fits."""

from __future__ import annotations

import pytest

from mlsim import Device, Engine, Hardware
from mlsim.zoo.resolve import device as find_device

MIB, GIB = 2**20, 2**30
H100 = Hardware.Cloud.H100


def as_printed(device: Device) -> Device:
    """Return the device as if nobody had read a driver: a GB is a billion bytes."""
    figures = dict(device.figures)
    figures["memory.capacity"] = figures.pop("memory.printed", figures["memory.capacity"])
    return Device.of_figures(
        device.key,
        device.name,
        vendor=device.vendor,
        architecture=device.architecture,
        form=device.form,
        figures=figures,
    )


def test_what_a_driver_lists_decides() -> None:
    """Modal prints the same bytes: "85520809984 bytes or 85.5 GB on H100"."""
    assert H100.memory.printed.to("GB").magnitude == 80
    assert H100.memory.capacity.to("MiB").magnitude == pytest.approx(81559)
    assert str(H100.memory.capacity.units) == "GiB"
    assert H100.capacity_si == 85_520_809_984


def test_without_a_listing_the_printed_size_decides() -> None:
    tpu = Hardware.Cloud.TPUv5p
    assert tpu.memory.printed == tpu.memory.capacity
    assert tpu.capacity_si == 95 * GIB
    mac = Hardware.Workstation.M4Max
    assert mac.capacity_si == 128e9


def test_what_a_user_gives_stays_what_was_given() -> None:
    own = Device(
        "Mine",
        peak_flops={"fp16": "100 TFLOP/s"},
        memory_bandwidth="1 TB/s",
        memory_capacity="80 GB",
    )
    assert own.capacity_si == 80e9
    profile = Engine.solve(model="ResNet50", hardware=own)
    assert profile.value("memory_capacity") == 80e9
    given = Engine.solve(model="ResNet50", hardware="A100", memory_capacity="80 GB")
    assert given.value("memory_capacity") == 80e9


@pytest.mark.parametrize(
    "result",
    [
        lambda: Engine.solve(model="ResNet50", hardware="H100"),
        lambda: Engine.serve(model="Llama3_8B", hardware="H100", prompt_tokens=64),
        lambda: Engine.train(model="GPT2", hardware="H100", global_batch=8),
    ],
    ids=["solve", "serve", "train"],
)
def test_an_explanation_names_the_listing(result) -> None:
    explained = " ".join(str(result().explain("memory_free")).split())
    assert "NVIDIA H100 SXM 80 GB: as a driver lists it (80 GB is printed): measured, " in explained
    assert "81559MiB" in explained


# Model, device, format: all fit in what a driver lists, none in the printed GB.
FLIPS = [
    ("Llama3_70B", "Cloud.H100", "fp8"),
    ("MPT_70B", "Cloud.H200", "bf16"),
    ("GPT_OSS_20B", "Workstation.RTX3090", "w8a8"),
    ("Gemma3_27B", "Workstation.RTX5090", "w8a16"),
    ("GPT3_175B", "Cloud.MI300X", "w8a8"),
    ("GPT_OSS_120B", "Cloud.Gaudi3", "fp8"),
    ("Mistral_7B", "Cloud.V100", "fp16"),
]


@pytest.mark.parametrize(("model", "key", "precision"), FLIPS)
def test_a_verdict_turns_with_the_listing(model: str, key: str, precision: str) -> None:
    device = find_device(key)
    asked = {"model": model, "precision": precision}
    assert Engine.fit(hardware=device, **asked).feasible.item()
    assert not Engine.fit(hardware=as_printed(device), **asked).feasible.item()


def test_llama_70b_in_fp8_on_one_h100_by_hand() -> None:
    """Its users run it so: --max-model-len 9000, and --gpu-memory-util 0.95.

    70,553,706,496 weights take a byte each; embedding, output layer and norms one more.
    A cached token has 2 x 80 layers x 1,024 elements of two bytes, and 9,000 tokens take
    563 blocks of 16. Weights and cache are 75.6 GB: less than 0.95 of the 85.5 GB that
    the driver lists, and more than vLLM's default of 0.9 of 80 GB.
    """
    asked = {
        "model": "Llama3_70B", "precision": "fp8", "kv_cache": "bf16",
        "prompt_tokens": 8_999, "output_tokens": 1, "batch_size": 1,
    }  # fmt: skip
    serving = Engine.serve(hardware="H100", reserve=0.05, **asked)
    wide = 2 * 128_256 * 8_192 + 161 * 8_192
    assert serving.value("weight_memory") == 70_553_706_496 + wide
    assert serving.value("cache_memory") == 563 * 16 * 2 * 80 * 1024 * 2
    assert serving.value("usable_memory") == pytest.approx(0.95 * 81559 * MIB)
    assert serving.feasible
    with_gb = Engine.serve(hardware=as_printed(H100), check_memory=False, **asked)
    assert not with_gb.feasible
