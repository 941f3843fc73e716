"""The zoo as text and as data: what it says of each kind of record."""

from __future__ import annotations

import json
import re

import pytest
from zoo_rules import records

from mlsim import Clusters, DataCentres, Grids, Hardware, Models, Regions, System, Systems
from mlsim.errors import UnknownNameError
from mlsim.workloads.language import Transformer
from mlsim.zoo.catalogue import all_as_dict, all_as_text, as_dict, as_text, find
from mlsim.zoo.spaces import SPACES


def test_a_name_is_looked_for_among_all() -> None:
    meant = {"resnet50": Models.ResNet50, "Llama 3.1 8B": Models.Llama3_8B}
    meant |= {"a100": Hardware.Cloud.A100, **{each.key: each for each in Systems}}
    assert {name: find(name) for name in meant} == meant
    said = (
        "no model, device, system or place is called 'H1000'. Did you mean 'H100'? The nearest "
        "are: H100, V100, P100. `mlsim zoo` lists them all."
    )
    with pytest.raises(UnknownNameError, match=f"^{re.escape(said)}$"):
        find("H1000")
    with pytest.raises(UnknownNameError, match="Did you mean 'Llama3_70B'"):
        find("Llama3_71B")


def test_each_record_is_told_in_full() -> None:
    broken = []
    for file, record in records(*SPACES):
        data, printed = json.loads(json.dumps(as_dict(record))), as_text(record)
        told = {name: figure["quote"] for name, figure in data["figures"].items()}
        wrong = {
            "key and name": data["key"] != record.key or record.name not in printed,
            "its figures": told != {name: each.quote for name, each in record.figures.items()},
        }
        for name, figure in record.figures.items():
            wrong[name] = figure.text not in printed or figure.origin() not in printed
        broken += [f"{file}: {why} is not told" for why, is_wrong in wrong.items() if is_wrong]
    assert broken == []


def test_each_language_model_tells_its_form() -> None:
    broken = []
    for file, model in records(Models):
        if not isinstance(model, Transformer):
            continue
        cache = {"value": 2 * model.model_cached_elements, "unit": "B/token"}
        active = {"value": model.active_parameter_count, "unit": "parameter"}
        form = {
            "kind": "model",
            "parameters": {"value": model.parameter_count, "unit": "parameter"},
            "active_parameters": active if model.experts else None,
            "layers": model.layers,
            "hidden": model.hidden,
            "context": {"value": model.context, "unit": "token"},
            "kv_heads": None if model.latent else model.attention.kv_heads,
            "cache_bytes_per_token_bf16": cache if model.decoder else None,
        }
        data = as_dict(model)
        broken += [f"{file}: {name}" for name, told in form.items() if data.get(name) != told]
        if (model.active_parameter_count < model.parameter_count) != bool(model.experts):
            broken.append(f"{file}: fewer are active, but there are no experts")
    assert broken == []


def test_a_model_tells_what_it_has_and_nothing_else() -> None:
    """Windows, chosen tokens, states and released formats: who has them, and what is told."""
    told = {
        "GPT_OSS_20B": ("window", {"value": 128, "unit": "token"}),
        "DeepSeek_V3_2": ("chosen", {"value": 2048, "unit": "token"}),
        # 23 layers: 64 x 64 x 128 numbers of 4 bytes, and 3 inputs of 6,144 channels of 2 bytes.
        "Nemotron_3_Nano_30B_A3B": (
            "state_bytes_per_sequence",
            {"value": 23 * (64 * 64 * 128 * 4 + 3 * 6144 * 2), "unit": "B/sample"},
        ),
    }
    for key, (name, value) in told.items():
        data = as_dict(Models.get(key))
        others = {other for other, _ in told.values()} - {name}
        assert (data[name], others & set(data)) == (value, set())
        assert ("released" in data) == (key != "Nemotron_3_Nano_30B_A3B")
    words = {
        "Mixtral_8x7B": "12,879,925,248 (met by one token)",
        "GPT_OSS_20B": "128 tokens in 12 layers",
        "DeepSeek_V3": "which share one compressed vector",
        "DeepSeek_V3_2": "a query looks at 2,048 tokens, which are chosen",
        "Llama3_8B": "32, with 8 of keys and values",
        "Nemotron_3_Nano_30B_A3B": "49,082,368 B for each sequence",
    }
    for key, said in words.items():
        assert said in as_text(Models.get(key)), key
    plain = as_text(Models.Llama3_8B)
    for each in ("active", "window", "sparsity", "states", "released"):
        assert f"  {each} " not in plain
    assert "KV cache" not in as_text(Models.BERT_Base)


def test_a_network_tells_its_work() -> None:
    data = as_dict(Models.ResNet50)
    assert data["inference_flops"] == {"value": 8_178_368_512, "unit": "FLOP"}
    assert (data["operators"], "sample" in data) == (56, False)
    visitor = "13 numbers and 26 categories of a visitor"
    assert as_dict(Models.DLRM)["sample"] == visitor
    assert f"  one sample    {visitor}\n" in as_text(Models.DLRM)
    assert "one sample" not in as_text(Models.ResNet50)
    assert "56 operators" in as_text(Models.ResNet50)


def test_a_system_tells_its_link_one_way() -> None:
    pair = System("Pair", Hardware.Cloud.A100, devices=2, link_bandwidth="300 GB/s")
    data = as_dict(pair)
    assert data["kind"] == "system"
    assert (data["device"], data["devices"], data["topology"]) == ("Cloud.A100", 2, "switch")
    assert data["device_bandwidth_one_way"] == {"value": 300e9, "unit": "B/s"}
    assert "shape" not in data
    assert as_dict(Systems.TPUv4_64)["shape"] == [4, 4, 4]
    assert "topology      torus 4 x 4 x 4" in as_text(Systems.TPUv4_64)
    selene = as_dict(Clusters.Selene)
    assert (selene["kind"], selene["node"], selene["nodes"]) == ("cluster", "HGX_A100", 560)
    # 200 Gb/s for each of eight devices.
    assert (selene["devices"], selene["fabric_bandwidth_one_way"]["value"]) == (560 * 8, 25e9)
    assert "up to 4,480 x NVIDIA A100 SXM 80 GB" in as_text(Clusters.Selene)
    printed = as_text(pair)
    assert "2 x NVIDIA A100 SXM 80 GB (Cloud.A100)" in printed
    assert "300 GB/s from each device, one way" in printed


def test_a_place_tells_what_is_around_a_machine() -> None:
    assert find("France") is Grids.France
    assert find("europe-west9") is Regions.Google.europe_west9
    assert as_dict(Grids.France)["basis"] == "life-cycle"
    assert as_dict(DataCentres.AWS) | {"figures": {}} == {
        "kind": "data center",
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
    counts = [len(space.keys()) for space in SPACES]
    assert len(listed.splitlines()) == len(SPACES) + sum(counts)
    data = json.loads(json.dumps(all_as_dict()))
    assert {name: len(each) for name, each in data.items()} == {
        "models": len(Models.keys()),
        "devices": len(Hardware.keys()),
        "systems": len(Systems.keys()),
        "clusters": len(Clusters.keys()),
        "grids": len(Grids.keys()),
        "data_centres": len(DataCentres.keys()),
        "regions": len(Regions.keys()),
    }
