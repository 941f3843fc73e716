"""The zoo: names, and the physics that every figure in it must obey."""

from __future__ import annotations

import pytest
from faults import good
from told import rows
from zoo_rules import records

from mlsim import (
    CloudOperators,
    Clusters,
    DataCentres,
    Device,
    Embodied,
    Hardware,
    Models,
    Regions,
    System,
    Systems,
)
from mlsim.errors import DataFileError, InvalidValueError, UnknownNameError, WrongKindError
from mlsim.records import DATA, KINDS
from mlsim.records.references import references
from mlsim.zoo import spaces
from mlsim.zoo.resolve import (
    cluster as find_cluster,
    device as find_device,
    hardware as find_hardware,
    model as find_model,
    network as find_network,
    transformer as find_transformer,
)
from mlsim.zoo.review.rules import checks_of, counted_as_published

CHECKED = (Models, Hardware, Systems, Clusters, DataCentres, CloudOperators, Embodied)

# Names.


def test_a_card_holds_what_its_name_says() -> None:
    for capacity, keys in rows("printed_sizes"):
        for key in keys.split():
            assert Hardware.get(key).memory.printed.to("GB").magnitude == int(capacity), key


def test_dotted_names_lead_to_one_record() -> None:
    assert Hardware.Cloud.A100 is Hardware.get("Cloud.A100") is Hardware.Cloud.A100
    assert {"Cloud", "Workstation"} <= set(dir(Hardware))
    assert "A100" in dir(Hardware.Cloud)
    assert repr(Hardware.Workstation).startswith("<Hardware.Workstation: ArcA770, ArcB580, ")
    listed = repr(Hardware.Workstation).strip("<>").partition(": ")[2].split(", ")
    assert [f"Workstation.{name}" for name in listed] == sorted(Hardware.Workstation.keys())
    assert [each.key for each in Hardware.Workstation] == sorted(Hardware.Workstation.keys())
    assert not any(hasattr(Hardware, name) for name in ("_repr_html_", "nothing"))


def test_a_record_is_found_however_it_is_written() -> None:
    for name in ("A100", "a100", "Cloud.A100", "cloud-a100", "NVIDIA A100 SXM 80 GB"):
        assert find_device(name) is Hardware.Cloud.A100
    for name in ("Llama3_8B", "llama3-8b", "Llama 3.1 8B"):
        assert find_transformer(name) is Models.Llama3_8B
    assert find_device(str(DATA / "hardware" / "t4.toml")).key == "Cloud.T4"
    assert find_model(str(DATA / "workloads" / "resnet50.toml")).parameter_count == 25_557_032
    for file, key in {
        "hardware/t4.toml": "Cloud.T4",
        "systems/hgx_h100.toml": "HGX_H100",
        "clusters/selene.toml": "Selene",
    }.items():
        assert find_cluster(str(DATA / file)).key == key
        if key != "Selene":
            assert find_hardware(str(DATA / file)).key == key


def test_a_key_stands_in_each_file_and_in_no_other(tmp_path) -> None:
    text = good("device.toml")
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    (tmp_path / "other.toml").write_text('key = "Mine"\n[part]\nkey = "Part"\n', encoding="utf-8")
    assert list(spaces.index(tmp_path)) == ["Cloud.Mine", "Mine"]
    (tmp_path / "b.toml").write_text(f"# a copy\n\n{text}", encoding="utf-8")
    with pytest.raises(
        DataFileError, match=r"b\.toml:3: the key 'Cloud.Mine' is that of .*a\.toml"
    ):
        spaces.index(tmp_path)
    (tmp_path / "a.toml").write_text(text.replace("key =", "kye ="), encoding="utf-8")
    with pytest.raises(DataFileError, match=r'a\.toml:1: there is no line key = "\.\.\."'):
        spaces.index(tmp_path)


def test_a_name_is_told_from_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster, a system and a device are looked for in this order, and one file is read."""
    for space in (spaces.Clusters, spaces.Systems, spaces.Hardware):
        space.__dict__.pop("_named", None)
    monkeypatch.setattr(
        spaces.Namespace, "_named", property(lambda space: pytest.fail("all were read"))
    )
    assert find_cluster("H100") is Hardware.Cloud.H100
    assert find_cluster("hgx-h100") is find_hardware("HGX H100") is Systems.HGX_H100
    assert find_cluster("Eos") is Clusters.Eos


def test_no_larger_machine_is_called_as_a_part_is_spelled() -> None:
    for larger, parts in ((Clusters, (Systems, Hardware)), (Systems, (Hardware,))):
        for record in larger:
            assert not any(space.has(record.name) for space in parts), record.name


def test_an_unknown_device_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as e:
        Hardware.Cloud.H1000  # noqa: B018
    assert str(e.value) == (
        "no device is called 'Hardware.Cloud.H1000'. Did you mean 'Hardware.Cloud.H100'? The nearest "
        "are: Hardware.Cloud.H100, Hardware.Cloud.V100, Hardware.Cloud.P100. "
        f"`mlsim zoo` lists all {len(Hardware.Cloud.keys())}."
    )
    with pytest.raises(UnknownNameError, match=r"Did you mean 'Hardware\.Cloud\.H100'"):
        Hardware.H100  # noqa: B018
    with pytest.raises(AttributeError):
        Hardware.Clod  # noqa: B018
    with pytest.raises(UnknownNameError, match=r"'Models.Resnet5'. Did you mean 'Models.ResNet50'"):
        Models.Resnet5  # noqa: B018
    for find, kind in {find_device: "device", find_hardware: "device or system"}.items():
        with pytest.raises(UnknownNameError, match=rf"no {kind} .* 'H1000'\. Did you mean 'H100'"):
            find("H1000")
    kinds = ("model", "device", "system", "cluster", "grid", "region", "data center")
    for space, kind in zip(spaces.SPACES, kinds, strict=True):
        with pytest.raises(UnknownNameError, match=f"no {kind} is called 'Nothing'"):
            space.find("Nothing")


def test_what_is_neither_a_record_nor_a_name_is_refused() -> None:
    for find, others, words in (
        (find_device, [None, 3, Hardware.Cloud, Device, Models.ResNet50], "a device such as Hard"),
        (find_model, [None, 3, Hardware.Cloud.A100], "a model such as Models.ResNet50, not "),
    ):
        for given in others:
            with pytest.raises(WrongKindError, match=words) as e:
                find(given)
            assert repr(given) in str(e.value)


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
    for name, folder in (("no/where", True), ("no/where-AWQ", False), ("nowhere", False)):
        with pytest.raises(UnknownNameError) as e:
            find_model(name)
        assert str(e.value).endswith(f"Nor is there a folder '{name}'.") == folder
    for path, words in (("nowhere.json", "file"), ("./no", "folder"), ("no.toml", "file")):
        with pytest.raises(DataFileError, match=f"there is no {words} '{path}'"):
            find_model(path)
        for find in (find_device, find_hardware, find_cluster) if "json" not in path else ():
            with pytest.raises(DataFileError, match=f"there is no file '{path}' .*: hardware is a"):
                find(path)


def test_one_kind_of_model_is_not_taken_for_another() -> None:
    assert find_network("ResNet50") is Models.ResNet50
    with pytest.raises(WrongKindError, match=r"use Engine\.serve"):
        find_network("Llama3_8B")
    with pytest.raises(WrongKindError, match=r"use Engine\.solve") as e:
        find_transformer("ResNet50")
    assert "v1.5 is no language model: use" in str(e.value)
    assert "Llama3_8B" in str(e.value)
    assert len(str(e.value)) < 200
    with pytest.raises(WrongKindError, match=r"one pass over a sample \(13 numbers and 26"):
        find_transformer("DLRM")


def test_hardware_is_a_device_or_a_system() -> None:
    assert find_hardware("H100") is Hardware.Cloud.H100
    pair = System("Pair", Hardware.Cloud.H100, devices=2, link_bandwidth="450 GB/s")
    assert find_hardware(pair) is pair
    for find in (find_device, find_hardware, find_cluster):
        assert find(Hardware.Cloud.H100) is Hardware.Cloud.H100
    assert find_cluster(Clusters.Eos) is Clusters.Eos
    # Two regions that a dash tells apart, and a name without one.
    regions = [Regions.find(each).key for each in ("us-east-1", "us-east1")]
    assert regions == ["AWS.us_east_1", "Google.us_east1"]
    words = r"say Regions\.AWS\.us_east_1 or Regions\.Google\.us_east1\."
    with pytest.raises(InvalidValueError, match=words):
        Regions.find("useast1")
    for system in Systems:
        assert find_hardware(system.key) is system is Systems.get(system.key)
        assert system.device is Hardware.get(system.device.key)
    with pytest.raises(WrongKindError, match="'Llama3_8B' is a model"):
        find_hardware("Llama3_8B")


# Rules that all records follow.


def test_every_figure_has_its_source_and_says_what_it_counts() -> None:
    broken = [
        f"{file}: {name}: {why}"
        for file, record in records(Models, Hardware, Systems)
        for name, figure in record.figures.items()
        for why, wrong in {
            f"source {figure.source!r} is unknown": figure.source not in references(),
            f"kind {figure.kind!r}": figure.kind not in set(KINDS) - {"given"},
            "no place in its source": not figure.where,
            "no date of reading": not figure.read,
            "a peak is dense": name.startswith("compute.") and figure.sparsity != "dense",
            "a link is one-way or both ways": name.startswith(("link.", "links."))
            and figure.direction not in ("one-way", "both ways"),
        }.items()
        if wrong
    ]
    assert broken == []


def test_every_record_follows_the_rules_of_the_check() -> None:
    """Quotes, powers of ten, sources, the physics of each kind, and published counts."""
    broken = [
        f"{file}: {found.figure}: {found.message}"
        for file, record in records(*CHECKED)
        for check in checks_of(record)
        for found in check(record)
        if found.error or "references.bib" in found.message
    ]
    assert broken == []


def test_every_model_has_a_source_and_its_count() -> None:
    wrong = [file for file, each in records(Models, Systems) if each.source not in references()]
    # No document that was read prints those of this variant of LeNet-5, of AlexNet without
    # groups, or of MLPerf's DLRM.
    uncounted = {each.key for each in Models if "published_parameters" not in each.figures}
    assert (wrong, uncounted) == ([], {"LeNet5_Variant", "AlexNet_Unsplit", "DLRM"})


def test_a_few_published_counts_are_made_another_way() -> None:
    others = {model.key for model in Models if counted_as_published(model) != model.parameter_count}
    assert others == {"GPT_J_6B", "GLM_4_5", "GLM_4_7", "Gemma3n_E2B", "Gemma3n_E4B", "LeNet5"}
    # GPT-J's README counts copies of norms and biases on each of 8 shards.
    copies = counted_as_published(Models.GPT_J_6B) - Models.GPT_J_6B.parameter_count
    assert copies == 610 * Models.GPT_J_6B.hidden
    # Keys, values and a norm of 10 layers of Gemma 3n that read another's: two heads of 256.
    unread = counted_as_published(Models.Gemma3n_E2B) - Models.Gemma3n_E2B.parameter_count
    assert unread == 10 * (2 * 2048 * 2 * 256 + 256)
    # GLM's layer for a second token has 96 + 16 heads, a matrix for two vectors, five norms and
    # 161 experts with their router; two tables of words are left out.
    layer = 5120 * (112 + 96) * 128 + 112 * 128 + 2 * 128 + 2 * 5120**2 + 5 * 5120
    layer += 161 * 3 * 5120 * 1536 + 160 * 5121 - 2 * 151_552 * 5120
    assert counted_as_published(Models.GLM_4_5) - Models.GLM_4_5.parameter_count == layer
    assert 354.5e9 < counted_as_published(Models.GLM_4_5) < 355.5e9  # 355 billion, as printed
    # Ten vectors of 84 are fixed in LeNet-5.
    assert counted_as_published(Models.LeNet5) == 60_000 == Models.LeNet5.parameter_count - 840


# Devices of one's own.


def test_a_device_of_three_arguments(slow_chip: Device) -> None:
    assert slow_chip.ridge_point().magnitude == 2.5
    assert f"{slow_chip.ridge_point().units:~C}" == "FLOP/B"
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
