"""The zoo: names, and the physics that every figure in it must obey."""

from __future__ import annotations

import pytest

from mlsim import Clusters, Device, Hardware, Models, System, Systems
from mlsim.errors import DataFileError, UnknownNameError, WrongKindError
from mlsim.records import DATA, KINDS, Figure
from mlsim.records.references import references
from mlsim.workloads.language import Transformer
from mlsim.workloads.model import Model
from mlsim.zoo import spaces
from mlsim.zoo.resolve import (
    cluster as find_cluster,
    device as find_device,
    hardware as find_hardware,
    model as find_model,
    network as find_network,
    transformer as find_transformer,
)
from mlsim.zoo.review.rules import (
    DEVICE_CHECKS,
    FIGURE_CHECKS,
    SYSTEM_CHECKS,
    counted_as_published,
    published as check_published,
)

DEVICES, SYSTEMS = list(Hardware), list(Systems)
TRANSFORMERS = [model for model in Models if isinstance(model, Transformer)]
FIGURES = [
    (owner.key, name, figure)
    for owner in (*DEVICES, *Models, *SYSTEMS)
    for name, figure in owner.figures.items()
]

each_device = pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.key)
each_model = pytest.mark.parametrize("model", list(Models), ids=lambda model: model.key)
each_transformer = pytest.mark.parametrize("model", TRANSFORMERS, ids=lambda model: model.key)
each_figure = pytest.mark.parametrize(
    ("name", "figure"),
    [(name, figure) for _, name, figure in FIGURES],
    ids=[f"{key}-{name}" for key, name, _ in FIGURES],
)


# Names.


def test_the_devices_that_were_promised_are_there() -> None:
    assert {device.key for device in DEVICES} >= {
        "Cloud.V100",
        "Cloud.V100_32GB",
        "Cloud.A100",
        "Cloud.A100_40GB",
        "Cloud.H100",
        "Cloud.H100_PCIe",
        "Cloud.T4",
        "Cloud.A100_PCIe",
        "Cloud.A40",
        "Cloud.B200",
        "Cloud.GB200",
        "Cloud.H200",
        "Cloud.L4",
        "Cloud.L40S",
        "Workstation.DGXSpark",
        "Workstation.RTX3090",
        "Workstation.RTX4090",
        "Workstation.RTX5090",
        "Workstation.RTX6000Ada",
    }


@pytest.mark.parametrize(
    ("key", "capacity"),
    [
        ("Cloud.V100", 16e9),
        ("Cloud.V100_32GB", 32e9),
        ("Cloud.A100", 80e9),
        ("Cloud.A100_40GB", 40e9),
        ("Cloud.H100", 80e9),
        ("Cloud.H100_PCIe", 80e9),
        ("Cloud.T4", 16e9),
        ("Cloud.A100_PCIe", 80e9),
        ("Cloud.A40", 48e9),
        ("Cloud.B200", 180e9),
        ("Cloud.GB200", 186e9),
        ("Cloud.H200", 141e9),
        ("Cloud.L4", 24e9),
        ("Cloud.L40S", 48e9),
        ("Workstation.RTX3090", 24e9),
        ("Workstation.RTX4090", 24e9),
        ("Workstation.RTX5090", 32e9),
        ("Workstation.RTX6000Ada", 48e9),
        ("Workstation.DGXSpark", 128e9),
    ],
)
def test_a_card_holds_what_its_name_says(key: str, capacity: float) -> None:
    """The printed figure; what a driver lists is another."""
    assert Hardware.get(key).memory.printed.to("B").magnitude == capacity


def test_dotted_names_lead_to_one_record() -> None:
    assert Hardware.Cloud.A100 is Hardware.get("Cloud.A100") is Hardware.Cloud.A100
    assert {"Cloud", "Workstation"} <= set(dir(Hardware))
    assert "A100" in dir(Hardware.Cloud)
    assert len(list(Hardware.Cloud)) == len(Hardware.Cloud.keys())
    assert repr(Hardware.Workstation).startswith("<Hardware.Workstation: ArcA770, ArcB580, ")
    listed = repr(Hardware.Workstation).strip("<>").partition(": ")[2].split(", ")
    assert [f"Workstation.{name}" for name in listed] == sorted(Hardware.Workstation.keys())


@pytest.mark.parametrize(
    "name", ["A100", "a100", "Cloud.A100", "cloud-a100", "NVIDIA A100 SXM 80 GB"]
)
def test_a_device_is_found_however_it_is_written(name: str) -> None:
    assert find_device(name) is Hardware.Cloud.A100


def test_a_name_is_told_from_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster, a system and a device are looked for in this order, and one file is read."""
    for space in (spaces.Clusters, spaces.Systems, spaces.Hardware):
        space.__dict__.pop("_named", None)
    monkeypatch.setattr(spaces.Namespace, "__iter__", lambda space: pytest.fail("all were read"))
    assert find_cluster("H100") is Hardware.Cloud.H100
    assert find_cluster("hgx-h100") is find_hardware("HGX H100") is Systems.HGX_H100
    assert find_cluster("Eos") is Clusters.Eos


def test_no_larger_machine_is_called_as_a_part_is_spelled() -> None:
    for larger, parts in ((Clusters, (Systems, Hardware)), (Systems, (Hardware,))):
        for record in larger:
            assert not any(space.has(record.name) for space in parts), record.name


def test_a_record_is_found_by_its_file() -> None:
    assert find_device(str(DATA / "hardware" / "t4.toml")).key == "Cloud.T4"
    assert find_model(str(DATA / "workloads" / "resnet50.toml")).parameter_count == 25_557_032


def test_an_unknown_device_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as e:
        Hardware.Cloud.H1000  # noqa: B018
    message = str(e.value)
    assert message.startswith("no device is called 'Hardware.Cloud.H1000'.")
    assert "Did you mean 'Hardware.Cloud.H100'?" in message
    assert message.endswith(
        "The nearest are: Hardware.Cloud.H100, Hardware.Cloud.V100, Hardware.Cloud.P100. "
        f"`mlsim zoo` lists all {len(Hardware.Cloud.keys())}."
    )
    with pytest.raises(UnknownNameError, match=r"Did you mean 'Hardware\.Cloud\.H100'"):
        Hardware.H100  # noqa: B018
    with pytest.raises(AttributeError):
        Hardware.Clod  # noqa: B018
    with pytest.raises(UnknownNameError, match=r"'Models.Resnet5'. Did you mean 'Models.ResNet50'"):
        Models.Resnet5  # noqa: B018
    with pytest.raises(
        UnknownNameError, match=r"no device is called 'H1000'\. Did you mean 'H100'"
    ):
        find_device("H1000")


def test_a_namespace_has_no_hidden_names() -> None:
    assert not hasattr(Hardware, "_repr_html_")
    assert not hasattr(Hardware.Cloud, "nothing")


@pytest.mark.parametrize("given", [None, 3, Hardware.Cloud, Device, Models.ResNet50])
def test_what_is_no_device_is_refused(given: object) -> None:
    with pytest.raises(WrongKindError, match=r"hardware must be a device such as Hardware\.") as e:
        find_device(given)  # type: ignore[arg-type]
    assert repr(given) in str(e.value)


@pytest.mark.parametrize("given", [None, 3, Hardware.Cloud.A100])
def test_what_is_no_model_is_refused(given: object) -> None:
    with pytest.raises(WrongKindError, match=r"such as Models\.ResNet50, not ") as e:
        find_model(given)  # type: ignore[arg-type]
    assert repr(given) in str(e.value)


@pytest.mark.parametrize("name", ["Llama3_8B", "llama3-8b", "Llama 3.1 8B"])
def test_a_model_is_found_however_it_is_written(name: str) -> None:
    assert find_transformer(name) is Models.Llama3_8B


def test_a_model_is_found_by_its_config(tmp_path, monkeypatch) -> None:
    config = (
        '{"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, '
        '"n_head": 12, "n_positions": 1024}'
    )
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(config, encoding="utf-8")
    for given in (folder, folder / "config.json"):
        assert find_transformer(str(given)).parameter_count == Models.GPT2.parameter_count
    # A name of the zoo comes before a folder that is called so.
    (folder / "GPT2_XL").mkdir()
    monkeypatch.chdir(folder)
    assert find_model("GPT2_XL") is Models.GPT2_XL
    with pytest.raises(DataFileError, match=r"has no config\.json"):
        find_model(str(folder / "GPT2_XL"))
    with pytest.raises(UnknownNameError, match=r"called 'no/where'\..*give its config\.json"):
        find_model("no/where")  # an owner and a model of a hub are written so
    for path, words in (("nowhere.json", "file"), ("./no", "folder"), ("no.toml", "file")):
        with pytest.raises(DataFileError, match=f"there is no {words} '{path}'"):
            find_model(path)


def test_one_kind_of_model_is_not_taken_for_another() -> None:
    assert find_network("ResNet50") is Models.ResNet50
    with pytest.raises(WrongKindError, match=r"use Engine\.serve"):
        find_network("Llama3_8B")
    with pytest.raises(WrongKindError, match=r"use Engine\.solve") as e:
        find_transformer("ResNet50")
    assert "Llama3_8B" in str(e.value)
    assert len(str(e.value)) < 200


def test_hardware_is_a_device_or_a_system() -> None:
    assert find_hardware("H100") is Hardware.Cloud.H100
    pair = System("Pair", Hardware.Cloud.H100, devices=2, link_bandwidth="450 GB/s")
    assert find_hardware(pair) is pair
    for system in SYSTEMS:
        assert find_hardware(system.key) is system
    with pytest.raises(
        UnknownNameError, match=r"no device or system is called 'H1000'\. Did you mean 'H100'"
    ):
        find_hardware("H1000")
    with pytest.raises(WrongKindError, match="'Llama3_8B' is a model"):
        find_hardware("Llama3_8B")


# Provenance.


@each_figure
def test_a_figure_has_its_source(name: str, figure: Figure) -> None:
    assert figure.source in references()
    assert figure.kind in KINDS
    assert figure.kind != "given"
    assert figure.where
    assert figure.read


@pytest.mark.parametrize("check", FIGURE_CHECKS, ids=lambda check: check.__name__)
def test_figures_are_quoted_and_their_origin_is_told(check) -> None:
    for record in (*DEVICES, *Models, *SYSTEMS):
        assert not list(check(record)), record


def test_models_have_a_source() -> None:
    for model in Models:
        assert model.source in references()


@each_model
def test_parameters_are_what_was_published(model: Model) -> None:
    """The count of the parts is the published one, to the digits in which that is printed."""
    # No document that was read prints those of this variant of LeNet-5, of AlexNet without
    # groups, or of MLPerf's DLRM.
    unknown = ("LeNet5_Variant", "AlexNet_Unsplit", "DLRM")
    assert ("published_parameters" in model.figures) == (model.key not in unknown)
    assert not [finding for finding in check_published(model) if finding.error]


def test_a_few_published_counts_are_made_another_way() -> None:
    others = {model.key for model in Models if counted_as_published(model) != model.parameter_count}
    assert others == {"GPT_J_6B", "GLM_4_5", "GLM_4_7", "Gemma3n_E2B", "Gemma3n_E4B", "LeNet5"}
    # GPT-J's README counts copies of norms and biases on each of 8 shards.
    copies = counted_as_published(Models.GPT_J_6B) - Models.GPT_J_6B.parameter_count
    assert copies == 610 * Models.GPT_J_6B.hidden
    # Ten vectors of 84 are fixed in LeNet-5.
    assert counted_as_published(Models.LeNet5) == 60_000 == Models.LeNet5.parameter_count - 840


def test_glm_s_report_counts_one_layer_more_and_no_tables() -> None:
    """By hand: 160 + 1 experts of three matrices, router, attention with biases, norms."""
    h, expert, heads, kv_heads = 5120, 1536, 96 * 128, 8 * 128
    moe = 161 * 3 * h * expert + 160 * h + 160
    attention = 2 * h * heads + 2 * h * kv_heads + heads + 2 * kv_heads + 2 * 128
    layer = moe + attention + 2 * h * h + 5 * h
    counted = counted_as_published(Models.GLM_4_5)
    assert counted - Models.GLM_4_5.parameter_count == layer - 2 * 151_552 * h
    # 355 billion, as printed.
    assert 354.5e9 < counted < 355.5e9


@each_transformer
def test_active_parameters_are_fewer_only_with_experts(model: Transformer) -> None:
    fewer = model.active_parameter_count < model.parameter_count
    assert fewer == (model.experts is not None)


def test_systems_are_of_devices_in_the_zoo() -> None:
    for system in SYSTEMS:
        assert system.device in DEVICES
        assert system.source in references()
        assert system.figure.direction in ("one-way", "both ways")
        assert 0 < system.device_bandwidth_si < system.device.bandwidth_si


# Physics.


@each_device
@pytest.mark.parametrize("check", DEVICE_CHECKS, ids=lambda check: check.__name__)
def test_a_device_obeys_the_physics(device: Device, check) -> None:
    assert not [finding for finding in check(device) if finding.error]


@pytest.mark.parametrize("check", SYSTEM_CHECKS, ids=lambda check: check.__name__)
def test_a_system_obeys_the_physics(check) -> None:
    assert not [finding for system in SYSTEMS for finding in check(system)]


@each_device
def test_every_peak_is_dense_and_every_link_says_its_direction(device: Device) -> None:
    for name, figure in device.figures.items():
        if name.startswith("compute."):
            assert figure.sparsity == "dense"
        if name.startswith("links."):
            assert figure.direction in ("one-way", "both ways")


def test_a_ridge_point_has_its_unit() -> None:
    assert f"{Hardware.Cloud.A100.ridge_point().units:~C}" == "FLOP/B"


# Devices of one's own.


def test_a_device_of_three_arguments(slow_chip: Device) -> None:
    assert slow_chip.ridge_point().magnitude == 2.5
    assert slow_chip.ridge_point("fp32").magnitude == 1.25
    assert slow_chip.compute.precisions == ("fp32", "fp16")
    assert slow_chip.compute.peak_flops.to("FLOP/s").magnitude == 100
    assert slow_chip.release_year is slow_chip.power.tdp is None


def test_peak_flops_is_that_of_fp16_where_there_is_one() -> None:
    assert f"{Hardware.Cloud.A100.compute.peak_flops:.0f}" == "312 TFLOP/s"
    only = Device(
        "Only FP8",
        peak_flops={"fp8": "8 TFLOP/s", "fp4": "16 TFLOP/s"},
        memory_bandwidth="1 TB/s",
        memory_capacity="1 GB",
    ).compute
    assert only.peak_flops == only.peak("fp8")
