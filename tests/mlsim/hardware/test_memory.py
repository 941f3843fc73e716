"""Memory: what a maker prints and a driver lists, what fits, and levels with their orders."""

from __future__ import annotations

from itertools import pairwise

import pytest
from faults import overlooked
from kept import FIXTURES
from own_chips import chip

from mlsim import Device, Engine, Hardware
from mlsim.errors import UnknownNameError
from mlsim.hardware.memory_levels import FOLDER, energy, level, levels, load, past
from mlsim.records.references import references
from mlsim.zoo.resolve import device as find_device

MIB, GIB = 2**20, 2**30
H100 = Hardware.Cloud.H100


def as_printed(device: Device) -> Device:
    """Return the device as if nobody had read a driver: a GB is a billion bytes."""
    figures = dict(device.figures)
    figures["memory.capacity"] = figures.pop("memory.printed", figures["memory.capacity"])
    about = {name: getattr(device, name) for name in ("vendor", "architecture", "form")}
    return Device.of_figures(device.key, device.name, **about, figures=figures)


def test_what_a_driver_lists_decides_and_else_the_printed_size() -> None:
    """Modal prints the same bytes: "85520809984 bytes or 85.5 GB on H100"."""
    assert H100.memory.printed.to("GB").magnitude == 80
    assert H100.memory.capacity.to("MiB").magnitude == pytest.approx(81559)
    assert str(H100.memory.capacity.units) == "GiB"
    assert H100.capacity_si == 85_520_809_984
    tpu = Hardware.Cloud.TPUv5p
    assert tpu.memory.printed == tpu.memory.capacity
    assert (tpu.capacity_si, Hardware.Workstation.M4Max.capacity_si) == (95 * GIB, 128e9)
    # What a user gives stays what was given.
    own = chip(capacity="80 GB", fp16="100 TFLOP/s")
    given = Engine.solve(model="ResNet50", hardware="A100", memory_capacity="80 GB")
    profile = Engine.solve(model="ResNet50", hardware=own)
    assert {own.capacity_si, *(each.value("memory_capacity") for each in (profile, given))} == {
        80e9
    }
    served = Engine.serve(model="Llama3_8B", hardware="H100", prompt_tokens=64)
    explained = " ".join(str(served.explain("memory_free")).split())
    assert "NVIDIA H100 SXM 80 GB: as a driver lists it (80 GB is printed): measured, " in explained
    assert "81559MiB" in explained


def test_a_verdict_turns_with_the_listing() -> None:
    """All fit in what a driver lists, none in the printed GB."""
    for model, key, precision in (
        ("Llama3_70B", "Cloud.H100", "fp8"),
        ("MPT_70B", "Cloud.H200", "bf16"),
        ("GPT_OSS_20B", "Workstation.RTX3090", "w8a8"),
        ("Gemma3_27B", "Workstation.RTX5090", "w8a16"),
        ("GPT3_175B", "Cloud.MI300X", "w8a8"),
        ("GPT_OSS_120B", "Cloud.Gaudi3", "fp8"),
        ("Mistral_7B", "Cloud.V100", "fp16"),
    ):
        device, asked = find_device(key), {"model": model, "precision": precision}
        assert Engine.fit(hardware=device, **asked).feasible.item(), key
        assert not Engine.fit(hardware=as_printed(device), **asked).feasible.item(), key


def test_llama_70b_in_fp8_on_one_h100_by_hand() -> None:
    """Its users run it so: --max-model-len 9000, and --gpu-memory-util 0.95.

    70,553,706,496 weights take a byte each; embedding, output layer and norms one more.
    A cached token has 2 x 80 layers x 1,024 elements of two bytes, and 9,000 tokens take
    563 blocks of 16. Weights and cache are 75.6 GB: less than 0.95 of the 85.5 GB that
    the driver lists, and more than vLLM's default of 0.9 of 80 GB.
    """
    asked = {"model": "Llama3_70B", "precision": "fp8", "kv_cache": "bf16"}
    asked |= {"prompt_tokens": 8_999, "output_tokens": 1, "batch_size": 1}
    serving = Engine.serve(hardware="H100", reserve=0.05, **asked)
    wide = 2 * 128_256 * 8_192 + 161 * 8_192
    assert serving.value("weight_memory") == 70_553_706_496 + wide
    assert serving.value("cache_memory") == 563 * 16 * 2 * 80 * 1024 * 2
    assert serving.value("usable_memory") == pytest.approx(0.95 * 81559 * MIB)
    assert serving.feasible
    assert not Engine.serve(hardware=as_printed(H100), check_memory=False, **asked).feasible


# ---- levels ----


def of(name: str, figure: str) -> float:
    return level(name)[figure].si


def test_latency_grows_with_the_distance() -> None:
    for path in (
        ("h100_shared", "h100_l1", "h100_l2", "h100_hbm"),
        ("cpu_l1", "cpu_l2", "cpu_l3", "cpu_dram", "cpu_ssd", "cpu_disk"),
    ):
        for near, far in pairwise(path):
            assert of(near, "latency") < of(far, "latency"), (near, far)
    # An H100 waits 38 cycles of 1,980 MHz for its L1.
    assert of("h100_l1", "latency") == pytest.approx(38 / 1.98e9, rel=1e-3)
    assert of("h100_hbm", "latency") == pytest.approx(834.476 / 1.98e9, rel=1e-3)


def test_a_gpu_has_more_registers_than_cache_and_a_cpu_fewer() -> None:
    """65,536 registers of 4 B on each of 82 multiprocessors are 20.5 MiB; L2 has 6."""
    assert of("rtx3090_registers", "capacity") == 82 * 65536 * 4 > of("rtx3090_l2", "capacity")
    for card in ("rtx3090", "h100"):
        assert of(f"{card}_registers", "capacity") > of(f"{card}_shared", "capacity")
    sizes = [entry["capacity"].si for entry in levels(machine="AMD Ryzen 9 5950X")]
    assert sizes == sorted(sizes)
    # Levels agree with the zoo: of the L2 that a lecture takes for 24 GB, and of datasheets.
    for key in ("rtx3090_l2", "h100_l2"):
        assert of(key, "capacity") == Hardware.get(level(key).device).figures["memory.l2"].si
    bandwidth = of("h100_hbm", "bandwidth")
    assert 0.7 < bandwidth / Hardware.get(level("h100_hbm").device).bandwidth_si < 1
    assert bandwidth < of("h100_l2", "bandwidth")


def test_every_figure_is_quoted_and_sourced() -> None:
    odd = [
        (entry.key, name)
        for path in FOLDER.glob("*.toml")
        for entry in load(path).values()
        for name, figure in entry.figures.items()
        if figure.source not in references()
        or not 0 < len(figure.quote.split()) <= 15
        or (figure.kind == "estimate" and not figure.note.startswith("An estimate"))
    ]
    assert odd == []
    machines = {
        "eniac": {"add_rate": 5000, "power": 160e3},
        "ibm704": {"add_time": 84e-6, "multiply_time": 204e-6},
        "mark1": {"image_time": 3, "images": 10_000, "neurons": 500},
    }
    for key, figures in machines.items():
        found = {name: figure.si for name, figure in past(key).figures.items()}
        assert found == pytest.approx(figures)


def test_a_peak_without_a_name_is_that_of_fp16_or_else_the_first() -> None:
    for peaks, usual, first in (
        ({"fp32": 2, "fp16": 7, "bf16": 5}, "fp16", 7),
        ({"fp64": 2, "fp32": 3, "bf16": 5}, "bf16", 2),
        ({"fp64": 2, "fp32": 3}, "fp32", 2),
    ):
        units = chip(**{name: f"{rate} FLOP/s" for name, rate in peaks.items()}).compute
        assert (units.usual_precision, units.peak_flops.si) == (usual, first)


def test_what_is_not_on_record_is_named() -> None:
    assert ("latency" in level("h100_l2"), "latency" in level("h100_registers")) == (True, False)
    for ask, name, words in (
        (level, "h100_l3", "Did you mean 'h100_l2'"),
        (level("h100_registers").__getitem__, "latency", "latency"),
        (lambda name: levels(machine=name), "NVIDIA H1000", "NVIDIA H100"),
        (energy, "multiply_fp3", "multiply_fp32"),
        (past, "enaic", "eniac"),
    ):
        with pytest.raises(UnknownNameError, match=words):
            ask(name)
    good = FIXTURES / "texts" / "level.toml"
    assert load(good)["x"]["latency"].si == pytest.approx(1.5e-9)
    assert overlooked(load, good.read_text("utf-8"), "level_faults") == []
