"""Other names for devices, models and software: each leads to something, none stands twice."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import pytest

from mlsim import Engine
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.records import DATA
from mlsim.zoo import resolve
from mlsim.zoo.aliases import aliases, find, software
from mlsim.zoo.spaces import Hardware, Models, Systems
from mlsim.zoo.written import plain


def test_each_alias_leads_to_the_zoo() -> None:
    found = aliases()
    assert all(Hardware.get(each.key) for each in found["devices"].values())
    assert all(Systems.get(each.key) for each in found["systems"].values())
    assert all(Models.get(each.key) for each in found["models"].values())


@pytest.mark.parametrize(
    ("space", "group"), [(Hardware, "devices"), (Systems, "systems"), (Models, "models")]
)
def test_no_alias_says_what_is_understood_without_it(space, group: str, monkeypatch) -> None:
    """A line that the resolver does not need is one that nobody would keep up."""
    every = dict(aliases()[group])
    monkeypatch.setattr("mlsim.zoo.aliases.find", lambda *_: None)
    for name, alias in every.items():
        assert alias.note or not space.knows(name), name


def test_a_machine_of_a_cloud_has_the_devices_that_its_price_is_for() -> None:
    with (DATA / "prices.csv").open(encoding="utf-8", newline="") as file:
        priced = {
            plain(row["product"].partition(",")[0]): (row["device"], int(row["devices"]))
            for row in csv.DictReader(file)
        }
    rented = {
        name: (Systems.get(alias.key).device.key, Systems.get(alias.key).devices)
        for name, alias in aliases()["systems"].items()
        if "xlarge" in name
    }
    assert len(rented) == 7
    for name, found in rented.items():
        assert priced[name] == found, name
    assert priced["g6exlarge"] == (Hardware.find("g6e.xlarge").key, 1)


def test_spelling_does_not_count() -> None:
    assert find("devices", "mi250 gcd") == find("devices", "MI250-GCD")
    assert find("models", "Llama3_8B") is None


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[devices]\n"H100" = "a"\n"h-100" = "b"\n', "twice"),
        ('[devices]\n"H100" = "a"\n"H100" = "b"\n', "H100|overwrite"),
        ('[gpus]\n"H100" = "a"\n', "gpus"),
        ('[devices]\n"H100" = 3\n', "H100"),
        ('[devices]\n"H100" = { key = "a", why = "b" }\n', "key and a note"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "aliases.toml"
    path.write_text(text)
    with pytest.raises(DataFileError, match=words) as e:
        aliases(path)
    assert str(e.value).startswith(str(path))
