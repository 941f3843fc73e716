"""Names as people, drivers, shops, clouds and hubs write them: one meaning, or a refusal."""

from __future__ import annotations

import csv
import re
import warnings
from pathlib import Path

import pytest
from told import rows

from mlsim import Engine
from mlsim.errors import DataFileError, UnknownNameError, WrongKindError
from mlsim.records import DATA
from mlsim.zoo import resolve
from mlsim.zoo.spaces import Board, Hardware, Models, Systems, aliases, board, plain, software

FINDERS = (resolve.device, resolve.hardware, resolve.cluster)


def priced() -> list[dict[str, str]]:
    """Return the rows of what providers ask, with the name of the product alone."""
    with (DATA / "prices.csv").open(encoding="utf-8", newline="") as file:
        return [
            {**row, "product": row["product"].partition(",")[0]} for row in csv.DictReader(file)
        ]


def test_a_name_as_it_is_written() -> None:
    finders = {
        "device": (resolve.device, resolve.cluster),
        "system": (resolve.hardware, resolve.cluster),
        "model": (resolve.model,),
    }
    broken = [
        f"{name} is no {key}"
        for kind, key, written in rows("written_names")
        for name in written.split("; ")
        for find in finders[kind]
        if find(name).key != key
    ]
    assert broken == []


def test_providers_names_lead_to_the_devices_that_they_rent() -> None:
    """RunPod lists what the driver prints, Lambda so many of a device."""
    found = [
        (row["product"].removeprefix("8x "), row["device"])
        for row in priced()
        if row["provider"] == "RunPod" or row["product"].startswith("8x ")
    ]
    assert len(found) > 15
    assert [name for name, key in found if resolve.device(name).key != key] == []


def test_what_is_not_on_record_is_not_guessed() -> None:
    for name, near in {
        # An A100 with 40 GB on PCIe, and an H100 of 96 GB, exist and are not on record.
        "NVIDIA A100-PCIE-40GB": "The nearest are: A100, A100_PCIe, A100_40GB",
        "H100-96GB": "The nearest are: H100, H100_NVL, H100_PCIe",
        "Nvidia H1000": "The nearest are: H100, ",
        "RTX 4060 Ti 8GB": "The nearest are: RTX4060Ti, ",
        "Tesla P100-PCIE-16GB": "The nearest are: P100, ",
        "p3.2xlarge": "a cloud's name of a machine",
        "a2-megagpu-16g": "a cloud's name of a machine",
        "Standard_ND96amsr_A100_v4": "a cloud's name of a machine",
    }.items():
        for finds in FINDERS:
            with pytest.raises(UnknownNameError, match=near) as e:
                finds(name)
            assert len(str(e.value)) < 250
    with pytest.raises(WrongKindError, match=r"'p5\.48xlarge' is a system"):
        resolve.device("p5.48xlarge")
    with pytest.raises(WrongKindError, match="'Nvidia H100' is a device"):
        resolve.model("Nvidia H100")


def test_a_model_with_the_layers_of_another_is_told_as_such() -> None:
    for name in ("Llama-3.3-70B", "meta-llama/Llama-3.3-70B-Instruct"):
        with pytest.warns(UserWarning, match=r"taken as Llama 3\.1 70B: layers as in Llama 3\.1"):
            assert resolve.model(name).key == "Llama3_70B"


@pytest.mark.filterwarnings("ignore:.* is taken as")
def test_a_checkpoint_that_differs_is_refused() -> None:
    for name, words in {
        # Another vocabulary, other sizes, other formats.
        "mistralai/Mistral-7B-Instruct-v0.3": "no model is called",
        "meta-llama/Llama-3.2-1B": r"no model .* give its config\.json",
        "Qwen/Qwen2.5-72B-Instruct": "no model is called",
        "Qwen/Qwen2.5-7B-Instruct-AWQ": "quantized checkpoint of Qwen2_5_7B: .* a precision",
        "Qwen/Qwen3-32B-FP8": "quantized checkpoint of Qwen3_32B",
        "RedHatAI/Llama-3.3-70B-Instruct-quantized.w8a8": "checkpoint of Llama3_70B",
    }.items():
        with pytest.raises(UnknownNameError, match=words) as e:
            resolve.model(name)
        assert len(str(e.value)) < 280


def test_no_device_is_taken_for_another() -> None:
    """Each leads to itself by its name and its key, and by what stands before a comma."""
    for device in Hardware:
        for name in (device.key, device.name, re.split(r"[(,]", device.name)[0].strip()):
            assert resolve.device(name) is device, name


def test_a_name_says_its_chip_form_and_memory() -> None:
    assert board("Intel(R) Data Center GPU Max 1550") == board("data center max 1550")
    assert board("NVIDIA RTX 4000 SFF Ada Generation").chip == "rtx4000sffada"
    assert board("RTX 3080 10 GB") == Board("rtx3080", "", 10)
    assert board("A10G").memory == 0


# Other names, each of which leads to something.


def test_each_alias_leads_to_the_zoo_which_does_not_understand_it_without(monkeypatch) -> None:
    """A line that the resolver does not need is one that nobody would keep up."""
    every = dict(aliases())
    monkeypatch.setattr("mlsim.zoo.spaces.find", lambda *_: None)
    for group, space in {"devices": Hardware, "systems": Systems, "models": Models}.items():
        for name, alias in every[group].items():
            assert space.get(alias.key), name
            assert alias.note or not space.knows(name), name


def test_a_machine_of_a_cloud_has_the_devices_that_its_price_is_for() -> None:
    prices = {plain(row["product"]): (row["device"], int(row["devices"])) for row in priced()}
    rented = {
        name: (Systems.get(alias.key).device.key, Systems.get(alias.key).devices)
        for name, alias in aliases()["systems"].items()
        if "xlarge" in name
    }
    assert len(rented) == 7
    assert {name: prices[name] for name in rented} == rented
    assert prices["g6exlarge"] == (Hardware.find("g6e.xlarge").key, 1)


def test_a_comma_adds_to_a_device_and_does_not_hide_another() -> None:
    """What was cut at the comma was answered for the first of two devices."""
    for said, key in {
        "H100 SXM, 80GB": "Cloud.H100",
        "H100 NVL, one board": "Cloud.H100_NVL",
        "MI250X (one GCD, 64 GB)": "Cloud.MI250X",
    }.items():
        assert resolve.device(said).key == key
    for said in ("H100,A100", "A100, SXM4, banana", "H100,"):
        assert Hardware.knows(said) == (said == "H100,"), said
    with pytest.raises(UnknownNameError, match=r"reads as 2 names: give one.*in Python as a list"):
        Engine.plan(model="Llama3_8B", rate=5, hardware="H100,A100")
    several = Engine.plan(model="Llama3_8B", rate=5, hardware=["H100", "A100"])
    assert {each.service.device.name[:11] for each in several.options} == {
        "NVIDIA H100",
        "NVIDIA A100",
    }


@pytest.mark.parametrize("size", ["8B", "70B"])
@pytest.mark.parametrize("further", ["", "-Instruct"])
def test_the_first_llama_3_is_taken_as_the_next_with_a_note(size: str, further: str) -> None:
    with pytest.warns(UserWarning, match=r"taken as Llama 3.1 .*: .* a context of 8,192 tokens"):
        assert resolve.model(f"meta-llama/Meta-Llama-3-{size}{further}").key == f"Llama3_{size}"
    with pytest.warns(UserWarning, match="a context") as caught:
        Models.find(f"Meta-Llama-3-{size}")
    assert caught[0].filename == __file__  # it warns of the line that asked
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve.model(f"meta-llama/Llama-3.1-{size}{further}").key == f"Llama3_{size}"


def test_the_nearest_models_are_of_the_family_that_was_asked_for() -> None:
    """By its letters alone Llama 3.2 1B is a Llama 2 13B, and Mamba2 2.7B a Llama 2 7B."""
    for said, near in {
        "Llama-3.2-1B": ["Llama3_8B", "Llama3_70B", "Llama3_405B"],
        "Qwen3-14B": ["Qwen3_4B", "Qwen3_8B", "Qwen3_32B"],
        "mistralai/Mixtral-8x22B-v0.1": ["Mixtral_8x7B"],
        "Lama3": ["Llama3_8B", "Llama3_70B", "Llama3_405B"],
        "gtp2": ["GPT2"],
        "state-spaces/mamba2-2.7b": [],
        "yolov8": [],
    }.items():
        assert Models.near(said) == near, said
    with pytest.raises(UnknownNameError, match=r"'Llama-3.2-1B'. Did you mean 'Llama3_8B'\?"):
        Models.find("Llama-3.2-1B")
    with pytest.raises(UnknownNameError, match=r"'mamba2-2.7b'. `mlsim zoo` lists all"):
        Models.find("mamba2-2.7b")


def test_software_must_be_known() -> None:
    assert software("vllm").key == "vllm"
    with pytest.raises(UnknownNameError, match="eager"):
        software("eagr")


def test_a_bad_file_is_refused(tmp_path: Path) -> None:
    for n, (text, words) in enumerate(
        {
            '[devices]\n"H100" = "a"\n"h-100" = "b"\n': "has 'h-100' twice, first as 'H100'",
            '[devices]\n"H100" = "a"\n"H100" = "b"\n': "H100|overwrite",
            '[gpus]\n"H100" = "a"\n': "gpus",
            '[devices]\n"H100" = 3\n': "H100",
            '[devices]\n"H100" = { key = "a", why = "b" }\n': "key and a note",
        }.items()
    ):
        path = tmp_path / f"{n}.toml"
        path.write_text(text)
        with pytest.raises(DataFileError, match=words) as e:
            aliases(path)
        assert str(e.value).startswith(str(path))
