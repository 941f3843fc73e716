"""Names as people, drivers, shops, clouds and hubs write them: one meaning, or a refusal."""

from __future__ import annotations

import csv
import re

import pytest
from told import rows

from mlsim import Hardware
from mlsim.errors import UnknownNameError, WrongKindError
from mlsim.records import DATA
from mlsim.zoo import resolve
from mlsim.zoo.written import Board, board


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
    with (DATA / "prices.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            (row["product"].partition(",")[0].removeprefix("8x "), row["device"])
            for row in csv.DictReader(file)
            if row["provider"] == "RunPod" or row["product"].startswith("8x ")
        ]
    assert len(rows) > 15
    for name, key in rows:
        assert resolve.device(name).key == key, name


@pytest.mark.parametrize(
    ("name", "near"),
    [
        # An A100 with 40 GB on PCIe, and an H100 of 96 GB, exist and are not on record.
        ("NVIDIA A100-PCIE-40GB", "A100, A100_PCIe, A100_40GB"),
        ("H100-96GB", "H100, H100_NVL, H100_PCIe"),
        ("Nvidia H1000", "H100, "),
        ("RTX 4060 Ti 8GB", "RTX4060Ti, "),
        ("Tesla P100-PCIE-16GB", "P100, "),
    ],
)
def test_what_is_not_on_record_is_not_guessed(name: str, near: str) -> None:
    for find in (resolve.device, resolve.hardware, resolve.cluster):
        with pytest.raises(UnknownNameError) as e:
            find(name)
        assert f"The nearest are: {near}" in str(e.value)
        assert len(str(e.value)) < 250


def test_a_cloud_s_machine_that_is_not_on_record_is_told_as_such() -> None:
    for name in ("p3.2xlarge", "a2-megagpu-16g", "Standard_ND96amsr_A100_v4"):
        for find in (resolve.device, resolve.hardware, resolve.cluster):
            with pytest.raises(UnknownNameError, match="a cloud's name of a machine") as e:
                find(name)
            assert "Trn2" not in str(e.value)
    with pytest.raises(WrongKindError, match=r"'p5\.48xlarge' is a system"):
        resolve.device("p5.48xlarge")


def test_a_model_with_the_layers_of_another_is_told_as_such() -> None:
    for name in ("Llama-3.3-70B", "meta-llama/Llama-3.3-70B-Instruct"):
        with pytest.warns(UserWarning, match=r"taken as Llama 3\.1 70B: layers as in Llama 3\.1"):
            assert resolve.model(name).key == "Llama3_70B"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        # Another vocabulary, other sizes, other formats.
        ("mistralai/Mistral-7B-Instruct-v0.3", "no model is called"),
        ("meta-llama/Llama-3.2-1B", r"no model .* give its config\.json"),
        ("Qwen/Qwen2.5-72B-Instruct", "no model is called"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "quantized checkpoint of Qwen2_5_7B: .* a precision"),
        ("Qwen/Qwen3-32B-FP8", "quantized checkpoint of Qwen3_32B"),
        ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w8a8", "checkpoint of Llama3_70B"),
    ],
)
@pytest.mark.filterwarnings("ignore:.* is taken as")
def test_a_checkpoint_that_differs_is_refused(name: str, words: str) -> None:
    with pytest.raises(UnknownNameError, match=words) as e:
        resolve.model(name)
    assert len(str(e.value)) < 280


def test_a_device_that_is_given_as_a_model_is_told_as_such() -> None:
    with pytest.raises(WrongKindError, match="'Nvidia H100' is a device"):
        resolve.model("Nvidia H100")


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
