"""The zoo as text and as data: what it says of each kind of record."""

from __future__ import annotations

import json

import pytest

from mlsim import Clusters, DataCentres, Grids, Hardware, Models, Regions, System, Systems
from mlsim.errors import UnknownNameError
from mlsim.workloads.language import Transformer
from mlsim.zoo.catalogue import all_as_dict, all_as_text, as_dict, as_text, find
from mlsim.zoo.spaces import SPACES

MODELS, DEVICES = list(Models), list(Hardware)
PLACES = [*Grids, *DataCentres, *Regions]


def test_a_name_is_looked_for_among_all() -> None:
    assert find("resnet50") is Models.ResNet50
    assert find("Llama 3.1 8B") is Models.Llama3_8B
    assert find("a100") is Hardware.Cloud.A100
    for system in Systems:
        assert find(system.key) is system
    with pytest.raises(UnknownNameError) as e:
        find("H1000")
    message = str(e.value)
    assert message.startswith("no model, device, system or place is called 'H1000'.")
    assert message.endswith(
        "Did you mean 'H100'? The nearest are: H100, V100, P100. `mlsim zoo` lists them all."
    )
    with pytest.raises(UnknownNameError, match="Did you mean 'Llama3_70B'"):
        find("Llama3_71B")


@pytest.mark.parametrize(
    "record", [*MODELS, *DEVICES, *Systems, *PLACES], ids=lambda each: each.key
)
def test_each_record_is_told_in_full(record) -> None:
    data = json.loads(json.dumps(as_dict(record)))
    printed = as_text(record)
    assert data["key"] == record.key
    assert record.name in printed
    assert set(data["figures"]) == set(record.figures)
    for name, figure in record.figures.items():
        assert data["figures"][name]["quote"] == figure.quote
        assert figure.text in printed
        assert figure.origin() in printed


@pytest.mark.parametrize(
    "model", [each for each in MODELS if isinstance(each, Transformer)], ids=lambda each: each.key
)
def test_a_language_model_tells_its_form(model: Transformer) -> None:
    data = as_dict(model)
    assert data["kind"] == "model"
    assert data["parameters"] == {"value": model.parameter_count, "unit": "parameter"}
    assert (data["layers"], data["hidden"]) == (model.layers, model.hidden)
    assert data["context"] == {"value": model.context, "unit": "token"}
    assert ("active_parameters" in data) == bool(model.experts)
    assert ("kv_heads" in data) == (not model.latent)
    cache = data.get("cache_bytes_per_token_bf16")
    assert cache == (
        {"value": 2 * model.model_cached_elements, "unit": "B/token"} if model.decoder else None
    )


def test_a_mixture_of_experts_tells_what_is_active() -> None:
    printed = as_text(Models.Mixtral_8x7B)
    assert "12,879,925,248 (met by one token)" in printed
    assert "active" not in as_text(Models.Llama3_8B)
    assert "128 tokens in 12 layers" in as_text(Models.GPT_OSS_20B)
    assert "which share one compressed vector" in as_text(Models.DeepSeek_V3)
    assert "KV cache" not in as_text(Models.BERT_Base)


def test_a_network_tells_its_work() -> None:
    data = as_dict(Models.ResNet50)
    assert data["inference_flops"] == {"value": 8_178_368_512, "unit": "FLOP"}
    assert data["operators"] == 56
    assert "56 operators" in as_text(Models.ResNet50)


def test_a_system_tells_its_link_one_way() -> None:
    pair = System("Pair", Hardware.Cloud.A100, devices=2, link_bandwidth="300 GB/s")
    data = as_dict(pair)
    assert data["kind"] == "system"
    assert (data["device"], data["devices"], data["topology"]) == ("Cloud.A100", 2, "switch")
    assert data["device_bandwidth_one_way"] == {"value": 300e9, "unit": "B/s"}
    printed = as_text(pair)
    assert "2 x NVIDIA A100 SXM 80 GB (Cloud.A100)" in printed
    assert "300 GB/s from each device, one way" in printed


def test_a_place_tells_what_is_around_a_machine() -> None:
    assert find("France") is Grids.France
    assert find("europe-west9") is Regions.Google.europe_west9
    assert as_dict(Grids.France)["basis"] == "life-cycle"
    assert as_dict(DataCentres.AWS) | {"figures": {}} == {
        "kind": "data centre",
        "scope": "fleet",
        "key": "AWS",
        "name": "Amazon Web Services",
        "figures": {},
    }
    paris = as_dict(Regions.Google.europe_west9)
    assert (paris["kind"], paris["grid"], paris["basis"]) == ("region", "France", "direct")
    printed = as_text(Regions.Google.europe_west9)
    assert "basis         direct, location-based" in printed
    assert "grid          France: 44.18 gCO2e/kWh" in printed
    assert "basis" not in as_text(Regions.AWS.us_east_1)
    listed = all_as_text()
    assert "PUE 1.14 (2025), WUE 0.12 L/kWh (2025)" in listed
    assert "Northern Virginia, United States" in listed


def test_a_model_from_a_file_names_it(tmp_path) -> None:
    config = {"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12}
    (tmp_path / "config.json").write_text(json.dumps({**config, "n_head": 12, "n_positions": 1024}))
    made = find(str(tmp_path / "config.json"))
    assert f"source        {tmp_path / 'config.json'}" in as_text(made)
    assert as_dict(made)["parameters"]["value"] == Models.GPT2.parameter_count


def test_all_are_listed_a_line_each() -> None:
    listed = all_as_text()
    assert "Cloud.A100 " in listed
    assert "25,557,032 parameters, 8.178 GFLOP/sample" in listed
    assert "46,702,792,704 parameters (12,879,925,248 active), context 32,768" in listed
    systems = list(Systems)
    clusters = list(Clusters)
    records = len(MODELS) + len(DEVICES) + len(systems) + len(clusters) + len(PLACES)
    assert len(listed.splitlines()) == len(SPACES) + records
    data = json.loads(json.dumps(all_as_dict()))
    counts = {name: len(each) for name, each in data.items()}
    assert counts == {
        "models": len(MODELS),
        "devices": len(DEVICES),
        "systems": len(systems),
        "clusters": len(clusters),
        "grids": len(list(Grids)),
        "data_centres": len(list(DataCentres)),
        "regions": len(list(Regions)),
    }
