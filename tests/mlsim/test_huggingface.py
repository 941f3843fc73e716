"""A Hugging Face `config.json` makes the model whose parameters were published, or is refused."""

from __future__ import annotations

import dataclasses
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from mlsim import Models
from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads import Attention, Experts, FeedForward, Transformer
from mlsim.workloads.huggingface import load_config, reader
from mlsim.workloads.huggingface.families import FAMILIES

CONFIGS = Path(__file__).parents[1] / "fixtures" / "configs"

# As published, or as the transformers library counts the same file (4.57.1).
PUBLISHED = {
    "bert-base": 109_482_240,
    "bloom": 176_247_271_424,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_419_200,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "gemma-2b": 2_506_172_416,
    "gemma2-9b": 9_241_705_984,
    "gemma3-1b": 999_885_952,
    "gemma3-12b": 11_766_034_176,
    "gpt-j-6b": 6_050_882_784,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "gpt2": 124_439_808,
    "llama2-7b": 6_738_415_616,
    "llama3-8b": 8_030_261_248,
    "llama3.2-3b": 3_212_749_824,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "opt-125m": 125_239_296,
    "phi3-mini": 3_821_079_552,
    "pythia-6.9b": 6_857_302_016,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-8b": 8_190_735_360,
    "qwen3-30b-a3b": 30_532_122_624,
}
# What real files have that makes a warning.
WARNED = {
    "deepseek-v3": "quantization_config",
    "gemma3-12b": "vision_config",
    "gpt-oss-20b": "quantization_config",
    "gpt-oss-120b": "quantization_config",
}
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
    "qwen2.5-7b": "Qwen2_5_7B",
    "qwen3-8b": "Qwen3_8B",
    "qwen3-30b-a3b": "Qwen3_30B_A3B",
}

# Smallest files: all that a family needs.
USUAL = {
    "vocab_size": 100,
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
LLAMA = {"model_type": "llama", **USUAL}
EXPERTS = {"num_local_experts": 8, "num_experts_per_tok": 2}
QWEN = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LATENT = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 1,
}


def smallest(kind: str, **changes: Any) -> dict[str, Any]:
    """Return the smallest file of a family that has the usual names of keys."""
    more = {"mixtral": EXPERTS, "gpt_oss": EXPERTS, "qwen3_moe": QWEN}.get(kind, {})
    if kind == "qwen2_moe":
        more = QWEN | {"shared_expert_intermediate_size": 48}
    if kind.startswith("deepseek"):
        more = LATENT
    if kind == "opt":
        more = {"ffn_dim": 128}
    data = {"model_type": kind, **USUAL, **more}
    if kind in ("opt", "falcon"):
        del data["intermediate_size"]
    return data | changes


def write(folder: Path, data: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return path


def load(folder: Path, kind: str, **changes: Any) -> Transformer:
    return load_config(write(folder, smallest(kind, **changes)))


def attention(folder: Path, kind: str, **changes: Any) -> Attention:
    found = load(folder, kind, **changes).attention
    assert isinstance(found, Attention)
    return found


def fixture(name: str) -> Transformer:
    """Load a real file; it may warn of one key only."""
    expected = (
        pytest.warns(UserWarning, match=f"ignored: {WARNED[name]}; check that")
        if name in WARNED
        else nullcontext()
    )
    with expected:
        return load_config(CONFIGS / f"{name}.json")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_real_file_has_its_published_count(name: str) -> None:
    model = fixture(name)
    assert model.parameter_count == PUBLISHED[name]
    held = sum(each.parameters * each.resident_repeats for each in model.operators())
    assert held == model.parameter_count


def test_each_family_has_a_real_file() -> None:
    files = [json.loads(path.read_text()) for path in CONFIGS.glob("*.json")]
    assert {each["model_type"] for each in files} == set(FAMILIES)
    assert {path.stem for path in CONFIGS.glob("*.json")} == set(PUBLISHED)


@pytest.mark.parametrize("name", SAME)
def test_a_real_file_is_the_model_of_the_zoo(name: str) -> None:
    model, known = fixture(name), getattr(Models, SAME[name])
    # A file may allow longer sequences than the paper tells of.
    own = {"key", "name", "architecture", "source", "figures", "context"}
    for each in dataclasses.fields(model):
        if each.name not in own:
            assert getattr(model, each.name) == getattr(known, each.name), each.name


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


# Warnings.


def test_unknown_keys_are_named_in_one_warning(tmp_path: Path) -> None:
    data = LLAMA | {"new_trick": 1, "quantization_config": {"bits": 4}, "rope_theta": 1e4}
    path = write(tmp_path, data)
    with pytest.warns(UserWarning, match="not understood") as caught:
        load_config(path)
    (warning,) = caught
    assert str(warning.message) == (
        f"{path}: not understood and ignored: new_trick, quantization_config; check that the "
        "parameter count 259,392 is right."
    )
    assert warning.filename == __file__


def test_an_unknown_key_inside_another_is_named_with_it(tmp_path: Path) -> None:
    path = write(tmp_path, {"model_type": "gemma3", "text_config": {"new_trick": 1}})
    with pytest.warns(UserWarning, match=r"ignored: text_config\.new_trick; check that"):
        # All that it omits is the default of its class.
        assert load_config(path).layers == 26


def test_another_last_layer_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA | {"architectures": ["LlamaForSequenceClassification"]})
    with pytest.warns(UserWarning, match=r"architectures \(LlamaForSequenceClassification\);"):
        load_config(path)
    load(tmp_path, "llama", architectures=None)


# Refusals.


def refused(path: Path) -> str:
    with pytest.raises(DataFileError) as caught:
        load_config(path)
    return str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    message = refused(path)
    assert message.startswith(f"{path}: can't be read: ")
    assert "No such file" in message


def test_a_folder_without_the_file_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == f"{tmp_path}: this folder has no config.json."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: not JSON: Expecting value."),
        (
            '{\n "a": 1,\n "b" 2}',
            ":3: not JSON: Expecting ':' delimiter.",
        ),
        ("[1, 2]", ":1: a config.json is one object, not [1, 2]."),
        ('{"a": 1, "a": 2}', ": can't be understood: the key 'a' stands twice in one object."),
    ],
)
def test_what_is_no_json_object_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    assert refused(path) == f"{path}{message}"


def test_what_json_can_not_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe")
    assert refused(path).startswith(f"{path}: can't be read: ")
    for text in ("[" * 100_000, '{"vocab_size": ' + "9" * 5000 + "}"):
        path.write_text(text, encoding="utf-8")
        assert refused(path).startswith(f"{path}: can't be understood: ")


def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA | {"model_type": "lama", "new_trick": 1})
    families = ", ".join(FAMILIES)
    assert refused(path) == (
        f"{path}:2: model_type \"lama\" is not understood. Did you mean 'llama'? Understood are "
        f"{families}. Keys of this file that none of them has: new_trick."
    )
    path = write(tmp_path, USUAL)
    assert refused(path) == (
        f"{path}:1: model_type is missing. Understood are {families}. "
        "Keys of this file that none of them has: none."
    )
    for kind in (None, 7, ["llama"]):
        assert "model_type" in refused(write(tmp_path, LLAMA | {"model_type": kind}))


def test_a_missing_key_is_refused(tmp_path: Path) -> None:
    data = {key: value for key, value in LLAMA.items() if key != "hidden_size"}
    path = write(tmp_path, data | {"hiden_size": 64})
    assert refused(path) == f"{path}:1: hidden_size is missing. Not understood here: hiden_size."
    path = write(tmp_path, {"model_type": "gpt2", "vocab_size": 9})
    assert refused(path) == f"{path}:1: n_embd or hidden_size is missing."
    path = write(tmp_path, {"model_type": "gemma3"})
    assert refused(path) == f"{path}:1: text_config is missing."


@pytest.mark.parametrize("kind", ["mixtral", "gpt_oss", "qwen3_moe", "deepseek_v2", "deepseek_v3"])
def test_experts_are_never_guessed(tmp_path: Path, kind: str) -> None:
    data = smallest(kind)
    del data["num_experts_per_tok"]
    assert "num_experts_per_tok is missing." in refused(write(tmp_path, data))


# Family, key, value in JSON, message.
REFUSED = """
llama | hidden_size | 64.0 | hidden_size must be a whole number, not 64.0.
llama | hidden_size | "64" | hidden_size must be a whole number, not "64".
llama | hidden_size | true | hidden_size must be a whole number, not true.
llama | hidden_size | null | hidden_size must be a whole number, not null.
llama | hidden_size | 0 | hidden_size must be 1 or more, not 0.
llama | num_hidden_layers | -1 | num_hidden_layers must be 1 or more, not -1.
llama | vocab_size | [] | vocab_size must be a whole number, not [].
llama | tie_word_embeddings | 1 | tie_word_embeddings must be true or false, not 1.
llama | attention_bias | null | attention_bias must be true or false, not null.
llama | head_dim | 0 | head_dim must be 1 or more, not 0.
llama | num_key_value_heads | 3 | num_key_value_heads = 3 must divide num_attention_heads = 4.
llama | hidden_size | 66 | hidden_size = 66 must be a multiple of num_attention_heads = 4, or head_dim must be there.
gpt2 | n_embd | 66 | n_embd = 66 must be a multiple of num_attention_heads = 4.
gpt2 | n_head | 8 | n_head = 8 and num_attention_heads = 4 say the same thing differently.
llama | add_cross_attention | true | add_cross_attention = true is not understood, only false.
llama | pruned_heads | {"0": [1]} | pruned_heads = {"0": [1]} is not understood, only {}.
bert | is_decoder | true | is_decoder = true is not understood, only false.
bert | position_embedding_type | "relative_key" | position_embedding_type = "relative_key" is not understood, only "absolute".
deepseek_v3 | moe_layer_freq | 2 | moe_layer_freq = 2 is not understood, only 1.
deepseek_v3 | attention_bias | true | attention_bias = true is not understood, only false.
opt | layer_norm_elementwise_affine | false | layer_norm_elementwise_affine = false is not understood, only true.
opt | word_embed_proj_dim | 32 | word_embed_proj_dim = 32 is not hidden_size = 64: an embedding of another width than the layers can't be told here.
mixtral | num_experts_per_tok | 9 | num_experts_per_tok = 9 experts can't be chosen from num_local_experts = 8.
qwen3_moe | decoder_sparse_step | 2 | decoder_sparse_step = 2 gives experts to one layer in 2; here all layers but the first few have them.
qwen3_moe | mlp_only_layers | [0, 2] | mlp_only_layers must be the first layers, 0, 1, ..., since here only they can be without experts.
qwen3_moe | mlp_only_layers | [0.5] | mlp_only_layers must be a list of whole numbers, not [0.5].
qwen3_moe | mlp_only_layers | 3 | mlp_only_layers must be a list of whole numbers, not 3.
gemma2 | layer_types | [1] | layer_types must be a list of texts, not [1].
gemma2 | layer_types | ["full_attention"] | layer_types must have 6 entries, one for each layer, not 1.
gemma2 | layer_types | ["linear_attention", "linear_attention", "linear_attention", "linear_attention", "linear_attention", "linear_attention"] | layer_types may have full_attention and sliding_attention, not linear_attention.
gemma2 | layer_types | ["full_attention", "sliding_attention", "full_attention", "full_attention", "full_attention", "full_attention"] | layer_types must have full attention in the last of each few layers; here it is in layers 1, 3, 4, 5, 6.
gemma3_text | sliding_window_pattern | null | sliding_window_pattern must be a whole number, not null.
gemma3_text | use_bidirectional_attention | true | use_bidirectional_attention = true is not understood, only false.
"""


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_a_value_that_can_not_be_is_refused_with_its_line(tmp_path: Path, row: str) -> None:
    kind, key, value, message = row.split(" | ")
    # So many heads that the defaults of all families divide them.
    data = smallest(kind) | ({} if kind in ("llama", "gpt2") else {"num_attention_heads": 16})
    if key == "n_embd":
        del data["hidden_size"]
    data[key] = json.loads(value)
    path = write(tmp_path, data)
    assert refused(path) == f"{path}:{2 + list(data).index(key)}: {message}"


def test_windows_of_some_layers_are_refused(tmp_path: Path) -> None:
    changes = {"use_sliding_window": True, "max_window_layers": 4, "num_attention_heads": 32}
    path = write(tmp_path, smallest("qwen2", **changes))
    assert refused(path) == (
        f"{path}:9: max_window_layers = 4 gives the last 2 of 6 layers a window; only a window in "
        "all layers or in none can be told here."
    )
    types = ["sliding_attention", "full_attention"] * 3
    path = write(tmp_path, smallest("gemma2", sliding_window=None, layer_types=types))
    assert refused(path) == f"{path}:8: sliding_window must be a whole number, not null."


def test_a_falcons_groups_must_divide(tmp_path: Path) -> None:
    path = write(tmp_path, smallest("falcon", new_decoder_architecture=True, num_kv_heads=3))
    assert refused(path) == f"{path}:8: num_kv_heads = 3 must divide num_attention_heads = 4."


def test_a_shared_expert_is_told_as_several(tmp_path: Path) -> None:
    model = load(tmp_path, "qwen2_moe", num_attention_heads=16)
    gated = Experts(count=8, per_token=2, size=16, shared=3, shared_gate=True)
    assert model.experts == gated
    types = ["sliding_attention", "full_attention"] * 3
    changes = {"num_attention_heads": 16, "use_sliding_window": True}
    assert attention(tmp_path, "qwen2_moe", layer_types=types, **changes).full_every == 2
    path = write(tmp_path, smallest("qwen2_moe", **changes))
    assert refused(path) == (
        f"{path}:12: use_sliding_window is true, but no layer_types say in which layers."
    )
    changes = {"num_attention_heads": 16, "shared_expert_intermediate_size": 40}
    path = write(tmp_path, smallest("qwen2_moe", **changes))
    assert refused(path) == (
        f"{path}:11: shared_expert_intermediate_size = 40 must be a multiple of "
        "moe_intermediate_size = 16: it is told as so many experts here."
    )


def test_an_error_inside_another_object_has_its_line(tmp_path: Path) -> None:
    inner = {"model_type": "gemma3_text", "hidden_size": 0}
    around = {"vision_config": {"hidden_size": 7}, "model_type": "gemma3"}
    path = write(tmp_path, around | {"text_config": inner})
    assert refused(path) == f"{path}:8: hidden_size must be 1 or more, not 0."
    path = write(tmp_path, around | {"text_config": {"per_layer_config": {"0": {}}}})
    assert refused(path) == (
        f'{path}:7: per_layer_config = {{"0": {{}}}} is not understood, only null.'
    )
    for wrong in ("gemma3n_text", ["a"] * 30):
        path = write(tmp_path, around | {"text_config": {"model_type": wrong}})
        assert refused(path).startswith(
            f"{path}:6: text_config must be an object of model_type 'gemma3_text', not "
        )
    path = write(tmp_path, around | {"text_config": None})
    assert refused(path).endswith("not null.")


def test_lines_are_found_behind_lists_of_objects(tmp_path: Path) -> None:
    data = LLAMA | {"auto_map": [{"hidden_size": 1}, {"a": '}, "hidden_size":'}], "head_dim": 0}
    path = write(tmp_path, data)
    line = path.read_text(encoding="utf-8").splitlines().index(' "head_dim": 0') + 1
    assert refused(path) == f"{path}:{line}: head_dim must be 1 or more, not 0."


def test_what_a_transformer_refuses_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**arguments: object) -> None:
        raise InvalidValueError("the parts don't fit.")

    monkeypatch.setattr(reader, "Transformer", refuse)
    path = write(tmp_path, LLAMA)
    assert refused(path) == f"{path}: the parts don't fit."
