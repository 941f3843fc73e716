"""The formats of a quantised checkpoint, from its configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from config_files import LLAMA, smallest, write
from real_configs import REAL
from told import rows

from mlsim import Engine, load_config
from mlsim.errors import DataFileError
from mlsim.precision import precision
from mlsim.workloads.huggingface.quantised import named
from mlsim.workloads.model import Released

LLAMA_70B = {
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "max_position_embeddings": 131072,
}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}


def released(folder: Path, told: Any, data: dict[str, Any] = LLAMA) -> Released:
    found = load_config(write(folder, data | {"quantization_config": told})).released
    assert found is not None
    return found


def weights(path: Path, hardware: str = "H200", **asked: Any) -> float:
    found = Engine.serve(model=load_config(path), hardware=hardware, check_memory=False, **asked)
    return float(found.value("weight_memory"))


def test_llama_70b_in_awq(tmp_path: Path) -> None:
    """Published checkpoints have about 39.8 GB: scales and zero points are 1.3 of them."""
    path = write(tmp_path, LLAMA_70B | {"quantization_config": AWQ})
    model = load_config(path)
    wide = 2 * 128_256 * 8_192 + 161 * 8_192
    expected = (model.parameter_count - wide) * (4 + 20 / 128) / 8 + 2 * wide
    assert weights(path) == expected == pytest.approx(39.8e9, rel=0.002)
    # The same as asking for four bits of a model in 16.
    alone = write(tmp_path, LLAMA_70B)
    assert weights(alone, precision="w4a16") == expected
    assert weights(alone) == 2 * model.parameter_count


def test_gpt_oss_120b_fits_one_h100() -> None:
    """OpenAI's README: "making gpt-oss-120b run on a single H100 GPU"."""
    path = Path(__file__).parents[3] / "fixtures" / "configs" / "gpt-oss-120b.json"
    model = load_config(path)
    assert str(model.released) == "mxfp4 in the experts, 16 bits elsewhere"
    serving = Engine.serve(model=model, hardware="H100")
    assert serving.feasible
    experts = 36 * 128 * 3 * 2880 * 2880
    # Biases of experts are bf16, as all else.
    expected = experts * 4.25 / 8 + (model.parameter_count - experts) * 2
    assert serving.value("weight_memory") == expected == pytest.approx(65.2e9, rel=0.001)
    assert not Engine.serve(model=model, hardware="H100", precision="bf16").feasible


def test_a_block_scaled_checkpoint_takes_half(tmp_path: Path) -> None:
    """DeepSeek-V3.2: all but embeddings, output, norms, routers and index weights in 8 bits."""
    data = REAL["DeepSeek-V3.2"][0] | {"quantization_config": FP8}
    found = weights(write(tmp_path, data))
    model = load_config(write(tmp_path, data))
    wide = sum(
        each.repeats * (each.parameters if each.unquantised else each.wide_parameters)
        for each in model.operators()
    )
    assert found == pytest.approx((model.parameter_count - wide) * (8 + 1 / 512) / 8 + 2 * wide)
    assert found == pytest.approx(674.6e9, rel=0.001)


# What is left alone, and what is in another format.


def test_a_list_names_modules() -> None:
    broken = []
    for pattern, path, meant in rows("module_patterns"):
        broken += [(pattern, path)] if named(pattern, path) != (meant == "yes") else []
    assert broken == []


def test_what_a_list_leaves_out_stays_wide(tmp_path: Path) -> None:
    told = NVFP4 | {"exclude_modules": ["lm_head", "*self_attn*", "model.layers.0.mlp.*"]}
    found = dict(released(tmp_path, told).operators)
    bf16 = precision("bf16")
    assert found["queries, keys, values"] is found["attention output"] is bf16
    # One network of six is left in 16 bits.
    for name in ("feed-forward, up", "feed-forward, down"):
        assert found[name].bits == pytest.approx((5 * 4.5 + 16) / 6)
        assert found[name].name == "nvfp4 in 5 of 6 layers, else bf16"
    path = write(tmp_path, LLAMA | {"quantization_config": told})
    matrices, attention = 6 * 3 * 64 * 128, 6 * 4 * 64 * 64
    rest = 2 * 6400 + 13 * 64 + attention
    assert weights(path) == pytest.approx(matrices * (5 * 4.5 + 16) / 6 / 8 + 2 * rest)


def test_layers_without_a_part_don_t_count(tmp_path: Path) -> None:
    """Of a DeepSeek the first layer has no experts: leaving it out leaves all experts in 4 bits."""
    told = NVFP4 | {"ignore": ["model.layers.0*", "*shared_experts*", "*self_attn*"]}
    found = released(tmp_path, told, smallest("deepseek_v3", num_attention_heads=16))
    operators = dict(found.operators)
    assert "experts, up" not in operators
    assert operators["feed-forward, up"] is precision("bf16")
    assert operators["shared expert, up"] is precision("bf16")


def test_an_operator_that_few_layers_have_is_counted_there(tmp_path: Path) -> None:
    """Indexers of two layers in FP8, of four that have one: the others don't come in."""
    names = [f"model.layers.{each}.self_attn.index_{x}_proj" for each in (2, 3) for x in "qk"]
    listed = {name: {"quant_algo": "MXFP8"} for name in names}
    told = {"quant_algo": "MIXED_PRECISION", "quantized_layers": listed}
    data = smallest("minimax_m3", num_attention_heads=16)
    found = dict(released(tmp_path, told, data).operators)
    assert found["index keys"].bits == (8.25 + 16) / 2
    assert found["experts, up"] is precision("bf16")


def test_modules_may_be_listed_with_the_format_of_each(tmp_path: Path) -> None:
    layers = [f"model.layers.{number}" for number in range(6)]
    listed = {f"{each}.mlp.experts": {"quant_algo": "W4A16_NVFP4"} for each in layers}
    listed |= {f"{each}.self_attn.{x}_proj": {"quant_algo": "FP8"} for each in layers for x in "qo"}
    told = {"quant_algo": "MIXED_PRECISION", "quantized_layers": listed}
    data = smallest("qwen3_moe", num_attention_heads=16)
    found = released(tmp_path, told, data)
    assert (found.weights.name, found.activations) == ("nvfp4", "")
    assert {name: each.name for name, each in found.operators} == {
        "queries, keys, values": "fp8",
        "attention output": "fp8",
    }
    assert str(found) == "weights in nvfp4; some in fp8"
    serving = Engine.serve(model=load_config(tmp_path), hardware="B200")
    assert serving.service.formats.name == (
        "weights nvfp4 (some fp8), activations bf16, KV cache bf16"
    )


def test_a_file_beside_it_tells_too(tmp_path: Path) -> None:
    write(tmp_path, LLAMA)
    inner = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    beside = tmp_path / "hf_quant_config.json"
    beside.write_text(json.dumps({"producer": {"name": "modelopt"}, "quantization": inner}))
    found = load_config(tmp_path).released
    assert found is not None
    assert (found.weights.name, found.kv_cache, found.where) == ("fp8", "fp8", beside.name)
    beside.write_text(json.dumps({"quantization": {"quant_algo": "FP7"}}))
    with pytest.raises(DataFileError, match=f'{beside}:1: quant_algo = "FP7" is not understood'):
        load_config(tmp_path)


# What an answer assumes.


def test_an_answer_says_what_it_assumes_and_why(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA | {"quantization_config": FP8})
    model = load_config(path)
    serving = Engine.serve(model=model, hardware="H100", prompt_tokens=64)
    assert serving.service.formats.activations.name == "fp8"
    why = (
        "weights in fp8 in blocks of 128 x 128, as it was released (quantization_config of "
        "config.json)"
    )
    assert why in str(serving)
    assert serving.to_dict()["formats_assumed"] == why
    # A device that can't compute in it brings weights to 16 bits first.
    older = Engine.serve(model=model, hardware="A100", prompt_tokens=64)
    assert older.service.formats.activations.name == "bf16"
    assert older.value("weight_memory") == serving.value("weight_memory")
    # One part may be set apart; what is asked for is not assumed.
    apart = Engine.serve(model=model, hardware="H100", prompt_tokens=64, kv_cache="fp8")
    assert apart.service.formats.kv_cache.name == "fp8"
    assert apart.value("weight_memory") == serving.value("weight_memory")
    asked = Engine.serve(model=model, hardware="H100", prompt_tokens=64, precision="bf16")
    assert asked.value("weight_memory") == 2 * model.parameter_count
    assert "formats_assumed" not in asked.to_dict()
    plain = Engine.serve(model="Llama3_8B", hardware="H100", prompt_tokens=64)
    assert plain.to_dict()["formats_assumed"] == "bf16, since no other was given"


def test_fit_begins_with_what_was_released(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA_70B | {"quantization_config": AWQ})
    table = Engine.fit(model=load_config(path), hardware="H100")
    assert table.precision[0] == "int4, as released"
    assert table.feasible[0]
    # Asked for as w4a16 it is the same, and so no row of its own.
    assert "w4a16" not in list(table.precision)
