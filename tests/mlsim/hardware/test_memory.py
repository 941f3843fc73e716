"""Memory of a device: what its maker prints, what a driver lists, and what fits."""

from __future__ import annotations

import re

import pytest

from mlsim import Device, Engine, Hardware, Systems, show
from mlsim.quantities import term
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


@pytest.mark.parametrize(
    ("key", "mib"),
    [
        ("Cloud.A100", 81920),
        ("Cloud.A100_40GB", 40960),
        ("Cloud.B200", 183359),
        ("Cloud.H200", 143771),
        ("Cloud.MI300X", 192 * 1024 - 16),
        ("Cloud.L4", 23034),
        ("Cloud.T4", 15109),
        ("Cloud.Gaudi3", 128 * 1024),
    ],
)
def test_listings(key: str, mib: int) -> None:
    assert find_device(key).capacity_si == mib * MIB


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
    ("Llama3_70B", "Cloud.H100_PCIe", "fp8"),
    ("Llama3_70B", "Cloud.A100", "w8a8"),
    ("Llama3_70B", "Cloud.A100_PCIe", "w8a16"),
    ("MPT_70B", "Cloud.H200", "bf16"),
    ("GPT_OSS_20B", "Workstation.RTX4090", "fp8"),
    ("GPT_OSS_20B", "Workstation.RTX3090", "w8a8"),
    ("Gemma3_27B", "Workstation.RTX5090", "w8a16"),
    ("Megatron_22B", "Workstation.RTX6000Ada", "bf16"),
    ("GPT3_175B", "Cloud.MI300X", "w8a8"),
    ("BLOOM_176B", "Cloud.MI300X", "w8a8"),
    ("OPT_175B", "Cloud.MI300X", "w8a8"),
    ("OPT_175B", "Cloud.GB200", "fp8"),
    ("GPT_OSS_120B", "Cloud.Gaudi3", "fp8"),
    ("GPT_OSS_120B", "Cloud.MI325X", "bf16"),
    ("Mistral_7B", "Cloud.V100", "fp16"),
    ("MPT_30B", "Cloud.MI250X", "bf16"),
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


def test_systems_and_clusters_hold_what_their_devices_list() -> None:
    run = {"model": "Llama3_8B", "global_batch": 64, "tensor_parallel": 8}
    training = Engine.train(hardware=Systems.HGX_H100, **run)
    assert training.value("memory_capacity") == 81559 * MIB


def test_answers_print_memory_in_gib_and_traffic_in_gb() -> None:
    """A driver's GiB and a maker's GB never stand in one answer: 80 GB, and 85.9 GB of it."""
    service = Engine.serve(model="Llama3_8B", hardware="A100", prompt_tokens=2048)
    for answer in (service, Engine.solve(model="ResNet50", hardware="A100", batch_size=32)):
        body = str(answer).partition("\n")[2]
        assert "of 80 GiB" in body
        assert " GB" not in body
    # 1.5 GiB of memory is free; the same number of bytes that move are 1.611 GB.
    assert str(term("memory_free").scaled(1.5 * GIB)) == "1.50 GiB"
    assert term("bytes_moved").text(1.5 * GIB) == "1.611 GB"
    weights = service.weight_memory
    assert str(weights.units) == "GiB"
    assert weights.to("B").magnitude == pytest.approx(service.value("weight_memory"))
    assert show(service, "memory_free").text == f"{service.memory_free.magnitude:.3g} GiB"
    both = show(service, "weight_memory") + show(service, "cache_memory")
    assert both.text.endswith(" GiB")
    assert service.to_dict()["memory_capacity"] == {"value": 80.0 * GIB, "unit": "B"}


def test_an_estimated_memory_is_said_where_it_is_used() -> None:
    said = "the device's memory is an estimate"
    card = find_device("Workstation.RTX4080")
    answers = [
        Engine.solve(model="ResNet50", hardware=card),
        Engine.serve(model="Llama3_8B", hardware=card, precision="fp8"),
        Engine.train(model="GPT2", hardware=card, global_batch=8),
        Engine.gemm(512, 512, 512, hardware=card),
    ]
    for answer in answers:
        assert said in " ".join(str(answer).split())
    assert answers[0].to_dict()["memory_capacity"]["kind"] == "estimate"
    given = Engine.solve(model="ResNet50", hardware=card, memory_capacity="16 GiB")
    assert said not in str(given)
    assert said not in str(Engine.solve(model="ResNet50", hardware="H100"))


def test_every_estimated_list_is_of_kind_estimate_or_derived() -> None:
    """No other kind may hold a size that nobody read: a measured one quotes a driver's MiB."""
    wrong = [
        device.key
        for device in Hardware
        if "memory.printed" in device.figures
        and device.figures["memory.capacity"].kind == "measured"
        and not re.search(r"\d", device.figures["memory.capacity"].quote)
    ]
    assert wrong == []
    assert find_device("Cloud.A2").capacity_si == 15_356 * MIB
    assert find_device("Workstation.TitanV").capacity_si == 12_066 * MIB
