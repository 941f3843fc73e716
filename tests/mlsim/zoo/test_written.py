"""Names as people, drivers, shops, clouds and hubs write them: one meaning, or a refusal."""

from __future__ import annotations

import csv
import re

import pytest

from mlsim import Hardware
from mlsim.errors import UnknownNameError, WrongKindError
from mlsim.records import DATA
from mlsim.zoo import resolve
from mlsim.zoo.written import Board, board


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("Cloud.H100", "Nvidia H100|H100-80GB|H100 SXM5|H100 80G|NVIDIA H100 80GB HBM3|H100-SXM"),
        ("Cloud.H100_PCIe", "NVIDIA H100 PCIe|H100 PCI-E 80GB|h100-pcie"),
        ("Cloud.H100_NVL", "NVIDIA H100 NVL|H100 94GB"),
        ("Cloud.A100", "A100-SXM4-80GB|NVIDIA A100-SXM4-80GB|A100 80GB|nvidia a100"),
        ("Cloud.A100_40GB", "NVIDIA A100-SXM4-40GB|A100 40 GB|NVIDIA A100-PG509-200"),
        ("Cloud.A100_PCIe", "NVIDIA A100 80GB PCIe|A100-PCIe"),
        ("Cloud.V100", "Tesla V100-SXM2-16GB|V100 SXM2"),
        ("Cloud.V100_32GB", "Tesla V100-SXM2-32GB"),
        ("Cloud.V100_PCIe", "Tesla V100-PCIE-16GB"),
        ("Cloud.T4", "Tesla T4|NVIDIA T4 GPU"),
        ("Cloud.L40S", "NVIDIA L40S 48GB"),
        ("Cloud.H200", "NVIDIA H200|H200 141GB HBM3e"),
        ("Cloud.GH200", "NVIDIA GH200 480GB|GH200 96GB"),
        ("Cloud.GH200_144GB", "NVIDIA GH200 144G HBM3e"),
        ("Cloud.MI300X", "AMD Instinct MI300X OAM|AMD MI300X 192GB"),
        ("Cloud.TPUv5e", "TPU v5 lite|Google TPU v5e"),
        ("Cloud.Gaudi3", "Intel Gaudi 3|gaudi-3"),
        ("Workstation.RTX4090", "RTX4090|NVIDIA GeForce RTX 4090|GeForce RTX 4090|4090"),
        ("Workstation.RTX3090Ti", "3090 Ti"),
        ("Workstation.RTXA6000", "NVIDIA RTX A6000|A6000"),
        ("Workstation.RTX6000Ada", "NVIDIA RTX 6000 Ada Generation|RTX 6000 Ada"),
        ("Workstation.QuadroRTX6000", "Quadro RTX 6000"),
        ("Workstation.DGXSpark", "NVIDIA GB10"),
        ("Workstation.M2Max", "Apple M2 Max"),
    ],
)
def test_a_device_as_it_is_written(key: str, written: str) -> None:
    for name in written.split("|"):
        assert resolve.device(name).key == key, name
        assert resolve.cluster(name).key == key, name


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


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("8x H100", "HGX_H100"),
        ("8 x NVIDIA A100 SXM 80 GB", "HGX_A100"),
        ("8xA100-PCIe", "A100_PCIe_8"),
        ("DGX H100", "HGX_H100"),
        ("p5.48xlarge", "HGX_H100"),
        ("p4d.24xlarge", "HGX_A100_40GB"),
        ("trn1.32xlarge", "Trn1_32xlarge"),
    ],
)
def test_a_system_by_what_it_is_made_of_or_by_its_cloud(name: str, key: str) -> None:
    assert resolve.hardware(name).key == resolve.cluster(name).key == key


def test_a_cloud_s_machine_that_is_not_on_record_is_told_as_such() -> None:
    for name in ("p3.2xlarge", "a2-megagpu-16g", "Standard_ND96amsr_A100_v4"):
        for find in (resolve.device, resolve.hardware, resolve.cluster):
            with pytest.raises(UnknownNameError, match="a cloud's name of a machine") as e:
                find(name)
            assert "Trn2" not in str(e.value)
    with pytest.raises(WrongKindError, match=r"'p5\.48xlarge' is a system"):
        resolve.device("p5.48xlarge")


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("Qwen2_5_7B", "Qwen/Qwen2.5-7B-Instruct|Qwen2.5-7B"),
        ("Llama3_8B", "meta-llama/Meta-Llama-3.1-8B-Instruct|meta-llama/Llama-3.1-8B"),
        ("Llama2_7B", "meta-llama/Llama-2-7b-chat-hf"),
        ("Mistral_7B", "mistralai/Mistral-7B-Instruct-v0.1"),
        ("Mixtral_8x7B", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("BERT_Base", "google-bert/bert-base-uncased"),
        ("Whisper_LargeV2", "openai/whisper-large-v2"),
        ("GPT_OSS_20B", "openai/gpt-oss-20b"),
        ("Gemma2_9B", "google/gemma-2-9b-it"),
        ("Llama4_Scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct"),
    ],
)
def test_a_model_by_the_id_of_a_checkpoint(key: str, written: str) -> None:
    for name in written.split("|"):
        assert resolve.model(name).key == key, name


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
