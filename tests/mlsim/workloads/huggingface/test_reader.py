"""A Hugging Face `config.json` makes the model whose parameters were published."""

from __future__ import annotations

import dataclasses
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from config_files import LLAMA, USUAL, attention, load, write

from mlsim import Models
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.huggingface import load_config, reader
from mlsim.workloads.huggingface.families import FAMILIES
from mlsim.workloads.language import Transformer

CONFIGS = Path(__file__).parents[3] / "fixtures" / "configs"

# As published, or as the transformers library counts the same file (4.57.1). The others are
# models of the zoo, below.
PUBLISHED = {
    "deepseek-v2-lite": 15_706_484_224,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "gemma-2b": 2_506_172_416,
    "gemma3-1b": 999_885_952,
    "gemma3-12b": 11_766_034_176,
    "llama3.2-3b": 3_212_749_824,
    "opt-125m": 125_239_296,
    "phi3-mini": 3_821_079_552,
    "pythia-6.9b": 6_857_302_016,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
}
# What of a real file is left out, which is said.
WARNED = {"gemma3-12b": r"only the text part is counted \(vision_config left out\); the"}
SAME = {
    "bert-base": "BERT_Base",
    "bloom": "BLOOM_176B",
    "deepseek-v3": "DeepSeek_V3",
    "gemma2-9b": "Gemma2_9B",
    "gpt-j-6b": "GPT_J_6B",
    "gpt-oss-20b": "GPT_OSS_20B",
    "gpt-oss-120b": "GPT_OSS_120B",
    "gpt2": "GPT2",
    "llama2-7b": "Llama2_7B",
    "llama3-8b": "Llama3_8B",
    "mistral-7b": "Mistral_7B",
    "mixtral-8x7b": "Mixtral_8x7B",
    "olmo-7b": "OLMo_7B",
    "qwen2.5-7b": "Qwen2_5_7B",
    "qwen3-8b": "Qwen3_8B",
    "qwen3-30b-a3b": "Qwen3_30B_A3B",
}


def fixture(name: str) -> Transformer:
    """Load a real file, which may warn of what is left out."""
    expected = pytest.warns(UserWarning, match=WARNED[name]) if name in WARNED else nullcontext()
    with expected:
        return load_config(CONFIGS / f"{name}.json")


# What a file of the zoo says of itself; a config may allow longer sequences than the paper tells.
OWN = {"key", "name", "architecture", "source", "figures", "context", "released", "stated_format"}


def test_real_files_have_their_published_counts_or_are_models_of_the_zoo() -> None:
    files = {path.stem: json.loads(path.read_text("utf-8")) for path in CONFIGS.glob("*.json")}
    assert {each["model_type"] for each in files.values()} == {*FAMILIES, "gemma3"}
    assert set(files) == {*PUBLISHED, *SAME}
    broken = []
    for name in files:
        model = fixture(name)
        held = sum(each.parameters * each.resident_repeats for each in model.operators())
        if held != model.parameter_count:
            broken.append(f"{name}: operators hold {held}")
        if name in PUBLISHED:
            if model.parameter_count != PUBLISHED[name]:
                broken.append(f"{name}: {model.parameter_count}")
            continue
        known = getattr(Models, SAME[name])
        broken += [
            f"{name}: {each.name}"
            for each in dataclasses.fields(model)
            if each.name not in OWN and getattr(model, each.name) != getattr(known, each.name)
        ]
        # In the same formats, as the file says or as the makers do.
        if known.released or model.released:
            told = dataclasses.replace(model.released, where=known.released.where)
            if told != known.released:
                broken.append(f"{name}: released {told}")
    assert broken == []


def test_a_folder_is_as_good_as_its_file(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA)
    for given in (path, tmp_path, str(tmp_path)):
        model = load_config(given)
        assert model.source == str(path)
        assert model.architecture == "llama, from config.json"
        # 100*64 for each of two tables; a layer has 4*64^2 + 3*64*128 + 2*64; a norm.
        assert model.parameter_count == 2 * 6400 + 6 * (16384 + 24576 + 128) + 64


# Names.


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("meta-llama/Llama-2-7b-hf", "Llama-2-7b-hf"),
        ("./out/", "out"),
        ("C:\\models\\mine", "mine"),
        ("", "somewhere"),
        ("./..", "somewhere"),
        (None, "somewhere"),
        (7, "somewhere"),
    ],
)
def test_a_name_is_the_files_own_or_its_folders(tmp_path: Path, given: object, name: str) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    model = load_config(write(folder, LLAMA | {"_name_or_path": given}))
    assert model.key == model.name == name


def test_a_name_in_the_librarys_cache_is_the_repositorys(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--openai--gpt-oss-20b" / "snapshots" / "0123abcd"
    blobs = tmp_path / "models--openai--gpt-oss-20b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    blob = write(blobs, LLAMA).rename(blobs / "fedc")
    (snapshot / "config.json").symlink_to(blob)
    assert load_config(snapshot).name == "gpt-oss-20b"


def test_a_name_is_the_families_where_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_name", lambda source: "")
    assert load_config(write(tmp_path, LLAMA)).name == "llama"


# Defaults: keys that a file may omit.


def test_omitted_keys_are_the_defaults_of_the_class(tmp_path: Path) -> None:
    for kind, tied, kv_heads, context in (
        ("llama", False, 4, 2048),
        ("gemma", True, 16, 8192),
        ("mistral", False, 8, 131072),
        ("qwen2", False, 32, 32768),
        ("phi3", False, 4, 4096),
    ):
        model = load(tmp_path, kind, num_attention_heads=kv_heads)
        assert (model.tied_embeddings, model.context) == (tied, context)
        assert model.attention.kv_heads == kv_heads
    assert attention(tmp_path, "gemma", num_attention_heads=16).head_size == 256
    assert attention(tmp_path, "llama").head_size == 16
    assert attention(tmp_path, "llama", head_dim=None, num_key_value_heads=None).kv_heads == 4


def test_spellings_are_read_alike(tmp_path: Path) -> None:
    usual = {"model_type": "gpt2", **USUAL}
    del usual["intermediate_size"]
    short = {"model_type": "gpt2", "vocab_size": 100, "n_embd": 64, "n_layer": 6, "n_head": 4}
    counts = [load_config(write(tmp_path, each)).parameter_count for each in (usual, short)]
    assert counts[0] == counts[1]
    wide = load_config(write(tmp_path, short | {"n_inner": 96, "n_positions": 32}))
    assert wide.feed_forward == FeedForward(size=96, bias=True)
    assert wide.positions == wide.context == 32
    both = load(tmp_path, "gpt_oss", experts_per_token=2, num_attention_heads=8)
    assert both.experts == Experts(count=8, per_token=2, size=128, bias=True, router_bias=True)


def test_biases_are_read(tmp_path: Path) -> None:
    found = load(tmp_path, "llama", attention_bias=True, mlp_bias=True)
    assert isinstance(found.attention, Attention)
    assert (found.attention.bias, found.attention.output_bias) == (True, True)
    assert found.feed_forward == FeedForward(size=128, gated=True, bias=True)
    assert load(tmp_path, "opt", enable_bias=False).feed_forward == FeedForward(size=128)


def test_an_opt_may_have_its_norms_behind(tmp_path: Path) -> None:
    assert load(tmp_path, "opt").final_norm
    assert not load(tmp_path, "opt", do_layer_norm_before=False).final_norm
    assert not load(tmp_path, "opt", _remove_final_layer_norm=True).final_norm
    assert load(tmp_path, "opt").positions == 2050


@pytest.mark.parametrize(
    ("changes", "kv_heads", "norms"),
    [
        ({}, 1, 1),
        ({"multi_query": False}, 4, 1),
        ({"parallel_attn": False}, 1, 2),
        ({"new_decoder_architecture": True, "num_kv_heads": 2}, 2, 2),
        ({"new_decoder_architecture": True}, 4, 2),
        ({"new_decoder_architecture": True, "num_ln_in_parallel_attn": 1}, 4, 1),
        ({"num_kv_heads": 2}, 1, 1),
    ],
)
def test_a_falcon_has_one_kv_head_or_groups(
    tmp_path: Path, changes: dict[str, Any], kv_heads: int, norms: int
) -> None:
    model = load(tmp_path, "falcon", ffn_hidden_size=96, **changes)
    assert (model.attention.kv_heads, model.norms) == (kv_heads, norms)
    assert model.feed_forward == FeedForward(size=96)


# Windows.


@pytest.mark.parametrize(
    ("kind", "changes", "window", "full_every"),
    [
        ("mistral", {}, 4096, 0),
        ("mistral", {"sliding_window": None}, 0, 0),
        ("mixtral", {}, 0, 0),
        ("phi3", {"sliding_window": 16}, 16, 0),
        ("gemma2", {}, 4096, 2),
        ("gemma2", {"sliding_window": None}, 0, 0),
        ("gemma3_text", {}, 4096, 6),
        ("gemma3_text", {"sliding_window_pattern": 3}, 4096, 3),
        ("gemma3_text", {"_sliding_window_pattern": 3}, 4096, 3),
        ("gemma3_text", {"layer_types": ["sliding_attention", "full_attention"] * 3}, 4096, 2),
        ("gpt_oss", {"layer_types": ["sliding_attention"] * 6}, 128, 0),
        ("gpt_oss", {"layer_types": ["full_attention"] * 6}, 0, 0),
        ("qwen2", {"use_sliding_window": False, "sliding_window": 16}, 0, 0),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 16}, 0, 0),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 0}, 4096, 0),
        ("qwen3", {"use_sliding_window": True, "layer_types": ["sliding_attention"] * 6}, 4096, 0),
        ("qwen3_moe", {"sliding_window": 16}, 0, 0),
        ("qwen3_moe", {"use_sliding_window": True, "sliding_window": 16}, 16, 0),
    ],
)
def test_windows_are_read(
    tmp_path: Path, kind: str, changes: dict[str, Any], window: int, full_every: int
) -> None:
    found = attention(tmp_path, kind, num_attention_heads=32, **changes)
    assert (found.window, found.full_every) == (window, full_every)


# Experts.


def test_experts_may_begin_behind_some_layers(tmp_path: Path) -> None:
    model = load(tmp_path, "qwen3_moe", mlp_only_layers=[1, 0])
    assert model.experts == Experts(count=8, per_token=2, size=16, dense_layers=2)
    assert model.feed_forward == FeedForward(size=128, gated=True)
    for changes in ({"mlp_only_layers": list(range(6))}, {"decoder_sparse_step": 7}):
        model = load(tmp_path, "qwen3_moe", **changes)
        assert (model.experts, model.dense_layers) == (None, 6)
    assert load(tmp_path, "qwen3_moe").feed_forward is None


def test_a_deepseek_may_have_no_experts_and_no_rank(tmp_path: Path) -> None:
    model = load(tmp_path, "deepseek_v2", first_k_dense_replace=6, q_lora_rank=None)
    assert (model.experts, model.attention.query_rank) == (None, 0)
    model = load(tmp_path, "deepseek_v3", n_shared_experts=None, first_k_dense_replace=0)
    assert model.experts == Experts(count=8, per_token=2, size=16, router_bias=True)
