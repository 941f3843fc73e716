"""Other names for devices, models and software: each leads to something, none stands twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim.engine.predict.aliases import aliases, find, software
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.zoo import resolve
from mlsim.zoo.spaces import Hardware, Models


def test_each_alias_leads_to_the_zoo() -> None:
    found = aliases()
    assert all(Hardware.get(each.key) for each in found["devices"].values())
    assert all(Models.get(each.key) for each in found["models"].values())


def test_spelling_does_not_count() -> None:
    assert find("devices", "h100 sxm").key == find("devices", "H100-SXM").key == "Cloud.H100"


def test_a_name_without_an_alias_stands_for_itself() -> None:
    assert find("models", "Llama3_8B").key == "Llama3_8B"


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("RTX3070", "Workstation.RTX3070"),
        ("RTX-4000 Ada", "Workstation.RTX4000Ada"),
        ("A6000", "Workstation.RTXA6000"),
        ("RTX3080-10", "Workstation.RTX3080"),
        ("M1-Pro", "Workstation.M1Pro"),
        ("MI250", "Cloud.MI250"),
        ("L40", "Cloud.L40"),
    ],
)
def test_names_of_tables_lead_to_devices(said: str, key: str) -> None:
    assert resolve.device(find("devices", said).key).key == key


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
    with pytest.raises(DataFileError, match=words):
        aliases(path)
