"""Configurations of models whose layers are of several kinds, or that look at chosen tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from config_files import MIXED, load, smallest, write
from pytorch_parts import torchvision_models
from real_configs import REAL

from mlsim import load_config
from mlsim.errors import DataFileError
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.huggingface.ignored import IGNORED
from mlsim.workloads.huggingface.mixed_families import FAMILIES
from mlsim.workloads.huggingface.wrappers import WRAPPERS
from mlsim.workloads.indexer import Indexer
from mlsim.workloads.language import Transformer
from mlsim.workloads.latent import LatentAttention
from mlsim.workloads.recurrent import DeltaRule, StateSpace


def real(folder: Path, name: str) -> Transformer:
    return load_config(write(folder, REAL[name][0]))


@pytest.mark.parametrize("name", REAL)
def test_what_a_real_file_says_has_its_count(tmp_path: Path, name: str) -> None:
    model = real(tmp_path, name)
    assert model.parameter_count == REAL[name][1]
    held = sum(each.parameters * each.resident_repeats for each in model.operators())
    assert held == model.parameter_count


@pytest.mark.parametrize(
    ("name", "active"),
    [
        # As the makers name them, in billions.
        ("Kimi-K2", 32),
        ("Nemotron-3-Super-120B-A12B", 12),
        ("Qwen3.5-35B-A3B", 3),
        ("Qwen3-Next-80B-A3B", 3),
        ("Llama-4-Scout", 17),
        ("Llama-4-Maverick", 17),
    ],
)
def test_active_parameters_are_those_of_the_name(tmp_path: Path, name: str, active: int) -> None:
    assert active <= real(tmp_path, name).active_parameter_count / 1e9 < active + 1


@pytest.mark.parametrize("kind", MIXED)
def test_each_new_family_loads_from_little(tmp_path: Path, kind: str) -> None:
    # So many heads that the defaults of all families divide them.
    model = load(tmp_path, kind, num_attention_heads=64)
    held = sum(each.parameters * each.resident_repeats for each in model.operators())
    assert held == model.parameter_count > 0
    assert model.hidden == 64


def test_each_family_is_tested() -> None:
    tested = {data["model_type"] for data, _ in REAL.values()} | set(MIXED)
    plain = Path(__file__).parents[3] / "fixtures" / "configs"
    tested |= {json.loads(path.read_text())["model_type"] for path in plain.glob("*.json")}
    # Their own tests stand below.
    tested |= {"nemotron-nas", *(kind for kinds in WRAPPERS.values() for kind in kinds)}
    assert set(FAMILIES) <= tested


def test_each_key_without_effect_has_a_reason() -> None:
    for family in FAMILIES.values():
        for key, reason in (IGNORED | dict(family.without_effect)).items():
            assert key == key.strip()
            assert len(reason.split()) > 3, key
            # What is read has an effect.
            if key not in IGNORED:
                names = {name for names in family.spellings.values() for name in names}
                assert key not in {*family.keys, *family.fixed, *names}, key


# Layers.


def test_a_hybrid_has_states_in_most_layers(tmp_path: Path) -> None:
    model = real(tmp_path, "Qwen3.5-35B-A3B")
    (linear, delta), (full, attention) = model.mixers
    assert (linear, full) == (30, 10)
    assert delta == DeltaRule(key_heads=16, heads=32, key_size=128, value_size=128)
    assert attention == Attention(
        heads=16, kv_heads=2, head_size=256, qk_norm=True, output_gate=True
    )
    assert model.experts == Experts(count=256, per_token=8, size=512, shared=1, shared_gate=True)
    # Only 10 layers cache: 2 x 2 heads x 256 elements each.
    assert model.model_cached_elements == 10 * 1024


def test_a_layer_of_a_nemotron_is_one_thing(tmp_path: Path) -> None:
    model = real(tmp_path, "Nemotron-3-Nano-30B-A3B")
    assert [each for each, _ in model.mixers] == [23, 6]
    assert model.mixers[0][1] == StateSpace(heads=64, head_size=64, state_size=128, groups=8)
    ((layers, experts),) = model.feeds
    assert layers == 23
    assert experts == Experts(
        count=128, per_token=6, size=1856, gated=False, router_bias=True, shared=2
    )
    assert (model.norms, model.norm_count) == (1, 53)
    words = [
        "mamba" if each == "M" else "moe" if each == "E" else "attention"
        for each in (REAL["Nemotron-3-Nano-30B-A3B"][0]["hybrid_override_pattern"])
    ]
    data = {**REAL["Nemotron-3-Nano-30B-A3B"][0], "layers_block_type": words}
    del data["hybrid_override_pattern"], data["num_hidden_layers"]
    assert load_config(write(tmp_path, data)).parameter_count == model.parameter_count


def test_an_indexer_chooses_and_may_be_shared(tmp_path: Path) -> None:
    model = real(tmp_path, "GLM-5.2")
    (own, far), (shared, near) = model.mixers
    assert (own, shared) == (21, 57)
    assert isinstance(far, LatentAttention)
    assert isinstance(near, LatentAttention)
    assert (far.indexer, near.indexer) == (Indexer(heads=32, size=128), None)
    assert far.chosen == near.chosen == model.window == 2048
    # The cache keeps 576 elements of each token, and a key of 128 where there is an indexer.
    assert model.model_cached_elements == 78 * 576 + 21 * 128
    kinds = ["full", *["shared"] * 77]
    listed = {**REAL["GLM-5"][0], "indexer_types": kinds}
    assert load_config(write(tmp_path, listed)).mixers[0][0] == 1


def test_blocks_are_chosen_in_grouped_query_attention(tmp_path: Path) -> None:
    model = real(tmp_path, "MiniMax-M3")
    (chosen, near), (full, far) = model.mixers
    assert (chosen, full) == (57, 3)
    assert near.indexer == Indexer(heads=4, size=128, weighted=False)
    assert (near.chosen, far.chosen, model.window) == (16 * 128, 0, 2048)
    # 4 heads of 128 twice in each layer, and an index key where there is an indexer.
    assert model.model_cached_elements == 60 * 1024 + 57 * 128


SPARSE = MIXED["minimax_m3"]["sparse_attention_config"]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (7, "sparse_attention_config must be an object, not 7."),
        (SPARSE | {"new": 1}, "sparse_attention_config.new is not understood."),
        (SPARSE | {"sparse_score_type": "sum"}, '= "sum" is not understood, only "max".'),
        (SPARSE | {"sparse_block_size": 0}, "sparse_block_size must be 1 or more, not 0."),
        (SPARSE | {"sparse_attention_freq": None}, "must say what each layer is"),
        (SPARSE | {"sparse_disable_index_value": [0] * 6}, "the same as the latter."),
    ],
)
def test_blocks_that_can_not_be_told_are_refused(
    tmp_path: Path, told: object, message: str
) -> None:
    path = write(tmp_path, smallest("minimax_m3", sparse_attention_config=told))
    with pytest.raises(DataFileError) as caught:
        load_config(path)
    assert message in str(caught.value)


def test_windows_have_heads_of_their_own(tmp_path: Path) -> None:
    near, far = (each for _, each in real(tmp_path, "Gemma-4-26B-A4B").mixers)
    assert isinstance(near, Attention)
    assert isinstance(far, Attention)
    assert (near.head_size, near.kv_heads, near.window, near.values_from_keys) == (
        256,
        8,
        1024,
        False,
    )
    assert (far.head_size, far.kv_heads, far.window, far.values_from_keys) == (512, 2, 0, True)
    model = real(tmp_path, "MiMo-V2-Flash")
    assert [each for each, _ in model.mixers] == [39, 9]
    near, far = (each for _, each in model.mixers)
    assert isinstance(near, Attention)
    assert isinstance(far, Attention)
    assert (near.kv_heads, near.sinks, far.kv_heads, far.sinks) == (8, True, 4, False)
    # 192 numbers of a key and 128 of a value.
    assert far.cached_elements == 4 * (192 + 128)


def test_experts_stand_in_every_other_layer(tmp_path: Path) -> None:
    scout, maverick = (real(tmp_path, f"Llama-4-{name}") for name in ("Scout", "Maverick"))
    assert [each for each, _ in scout.feeds] == [48]
    assert [(each, type(one)) for each, one in maverick.feeds] == [
        (24, FeedForward),
        (24, Experts),
    ]
    # Of each four layers three see a chunk only.
    assert [(each, one.window) for each, one in scout.mixers] == [(36, 8192), (12, 0)]
    listed = load(tmp_path, "llama4_text", num_attention_heads=8, moe_layers=[1, 3])
    assert [each for each, _ in listed.feeds] == [4, 2]


def test_another_name_is_the_same_family(tmp_path: Path) -> None:
    one, other = (
        load(tmp_path, kind, num_attention_heads=16) for kind in ("kimi_k2", "deepseek_v3")
    )
    assert one.parameter_count == other.parameter_count
    assert one.attention == other.attention


# Models whose layers were searched.


def blocks(**changes: Any) -> list[dict[str, Any]]:
    """Return three layers: whole, without attention, and with a network half as wide."""
    whole = {"n_heads_in_group": 2, "no_op": False, "replace_with_linear": False}
    none = {"n_heads_in_group": None, "no_op": True}
    return [
        {"attention": {**whole, **changes}, "ffn": {"ffn_mult": 6.0, "no_op": False}},
        {"attention": none, "ffn": {"ffn_mult": 6.0, "no_op": False}},
        {"attention": whole, "ffn": {"ffn_mult": 3.0, "no_op": False}},
    ]


def nas(folder: Path, **changes: Any) -> Path:
    data = {
        "model_type": "nemotron-nas",
        "vocab_size": 100,
        "hidden_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "block_configs": blocks(),
    }
    return write(folder, data | changes)


def test_a_searched_model_by_hand(tmp_path: Path) -> None:
    """2/3 x 6 x 128 = 512 wide, twice; 2/3 x 3 x 128 = 256 wide, once; 2 of 3 have attention."""
    model = load_config(nas(tmp_path))
    attention = 128 * (4 + 2 * 2) * 32 + 128 * 128
    networks = 3 * 128 * (512 + 512 + 256)
    assert model.parameter_count == 2 * 100 * 128 + 2 * attention + networks + (2 + 3 + 1) * 128
    assert model.model_cached_elements == 2 * 2 * 2 * 32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block_configs": 7}, "block_configs must be a list of objects, not 7."),
        ({"block_configs": blocks()[:2]}, "must have 3 entries, one for each layer, not 2."),
        (
            {"block_configs": blocks(n_heads_in_group=3)},
            "block_configs[0]: n_heads_in_group = 3 must be a whole number that divides",
        ),
        (
            {"block_configs": blocks(replace_with_linear=True)},
            "block_configs[0].attention.replace_with_linear = true is not understood, only false.",
        ),
        ({"block_configs": blocks(new=1)}, "block_configs[0].attention.new is not understood."),
        ({"block_configs": [{}, {}, {}]}, "block_configs[0].attention must be an object."),
        (
            {"block_configs": [blocks()[1]] * 3},
            "no layer has attention.",
        ),
        ({"intermediate_size": 5}, "intermediate_size = 5 is not understood, only null."),
    ],
)
def test_a_searched_model_is_refused_where_it_differs(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataFileError) as caught:
        load_config(nas(tmp_path, **changes))
    assert message in str(caught.value)


# Text within other modalities.


@pytest.mark.parametrize("kind", sorted(set(WRAPPERS) - {"gemma3"}))
def test_the_text_part_is_loaded_and_said_so(tmp_path: Path, kind: str) -> None:
    inner_kind = WRAPPERS[kind][0]
    inner = smallest(inner_kind, num_attention_heads=64)
    if inner_kind == "mistral":
        inner = inner | {"sliding_window": None}
    alone = load_config(write(tmp_path, inner))
    around = {"model_type": kind, "text_config": inner, "vision_config": {"depth": 3}}
    path = write(tmp_path, around)
    with pytest.warns(UserWarning, match="only the text part is counted") as caught:
        found = load_config(path)
    assert str(caught[0].message) == (
        f"{path}: only the text part is counted (vision_config left out); the "
        f"{alone.parameter_count:,} parameters are those of the rest."
    )
    assert found.parameter_count == alone.parameter_count
    assert found.architecture == f"{kind}, its text part, from config.json"


def test_a_type_within_is_the_first_unless_it_says(tmp_path: Path) -> None:
    inner = smallest("deepseek_v3", num_attention_heads=16)
    around = {"model_type": "kimi_k25", "text_config": inner}
    with pytest.warns(UserWarning, match="only the text part is counted;"):
        load_config(write(tmp_path, around))
    path = write(tmp_path, {**around, "text_config": {**inner, "model_type": "llama"}})
    with pytest.raises(DataFileError, match="model_type 'kimi_k2' or 'deepseek_v3', not"):
        load_config(path)


def test_ties_may_be_told_around_the_text(tmp_path: Path) -> None:
    inner = smallest("qwen3_vl_text", num_attention_heads=32)
    around = {"model_type": "qwen3_vl", "text_config": inner, "tie_word_embeddings": True}
    with pytest.warns(UserWarning, match="only the text part"):
        assert load_config(write(tmp_path, around)).tied_embeddings
    path = write(tmp_path, {**around, "text_config": inner | {"tie_word_embeddings": False}})
    with pytest.raises(DataFileError, match="tie_word_embeddings is told differently in text_con"):
        load_config(path)


# Refusals. Family, key, value in JSON, what is said.
REFUSED = """
qwen3_5_text | layer_types | ["full_attention"] | layer_types must have 6 entries, one for each layer, not 1 entries.
qwen3_5_text | layer_types | 3 | layer_types must have 6 entries, one for each layer, not 3.
qwen3_5_text | layer_types | ["a", "a", "a", "a", "a", "a"] | layer_types may have linear_attention and full_attention, not "a".
qwen3_5_text | linear_num_value_heads | 3 | linear_num_key_heads = 16 must divide linear_num_value_heads = 3.
qwen3_5_text | mamba_ssm_dtype | "float8" | mamba_ssm_dtype must be one of float32, bfloat16, float16, not "float8".
qwen3_5_moe_text | shared_expert_intermediate_size | 40 | shared_expert_intermediate_size = 40 must be a multiple of moe_intermediate_size = 16
nemotron_h | hybrid_override_pattern | "MMXMMM" | hybrid_override_pattern may have *, -, E, M, not X.
nemotron_h | hybrid_override_pattern | "M*" | hybrid_override_pattern has 2 layers, num_hidden_layers = 6.
nemotron_h | hybrid_override_pattern | "MMMMMM" | no layer has attention; only models with some can be told here.
nemotron_h | layers_block_type | ["mamba"] | one of hybrid_override_pattern and layers_block_type must say what each layer is.
nemotron_h | mamba_proj_bias | true | mamba_proj_bias = true is not understood, only false.
gemma3n_text | altup_num_inputs | 0 | altup_num_inputs must be 1 or more, not 0.
gemma3n_text | altup_correct_scale | false | altup_correct_scale = false is not understood, only true.
gemma3n_text | laurel_rank | null | laurel_rank must be a whole number, not null.
gemma3n_text | intermediate_size | [128, 128] | intermediate_size must have 6 entries, one for each layer, not 2.
gemma3n_text | intermediate_size | [1, 1, 1, 0, 1, 1] | intermediate_size must be 1 or more in each layer, not 0.
gemma3n_text | intermediate_size | [1, 1, 1, 1.5, 1, 1] | intermediate_size must be a list of whole numbers, not [1, 1, 1, 1.5, 1, 1].
gemma3n_text | activation_sparsity_pattern | [0.95] | activation_sparsity_pattern must have 6 entries, one for each layer, not 1.
gemma3n_text | activation_sparsity_pattern | 1.5 | activation_sparsity_pattern must be a share from 0 to below 1, not 1.5.
gemma3n_text | activation_sparsity_pattern | [0, 0, true, 0, 0, 0] | activation_sparsity_pattern must be a share from 0 to below 1, not true.
gemma3n_text | num_kv_shared_layers | 6 | num_kv_shared_layers = 6 of 6 leaves no layer of each kind that caches what they read.
gemma3n_text | layer_types | ["full"] | layer_types must have 6 entries, one for each layer, not 1 entries.
gemma4_text | hidden_size_per_layer_input | -1 | hidden_size_per_layer_input must be 0 or more, not -1.
gemma4_text | num_kv_shared_layers | 1 | num_kv_shared_layers = 1 of 6 leaves no layer of each kind that caches what they read.
gemma4_text | layer_types | ["full_attention", "full_attention", "full_attention", "full_attention", "full_attention", "sliding_attention"] | layer_types must end with full_attention.
gemma4_text | enable_moe_block | true | num_experts must be a whole number, not null.
llama4_text | moe_layers | [6] | moe_layers must be among the 6 layers.
llama4_text | no_rope_layers | [1, 1, 1, 2, 1, 1] | no_rope_layers may have 0 and 1, not 2.
mimo_v2_flash | hybrid_layer_pattern | null | hybrid_layer_pattern must say what each layer is.
mimo_v2_flash | moe_layer_freq | [true, 1, 1, 1, 1, 1] | moe_layer_freq may have 0 and 1, not true.
minimax_m2 | attn_type_list | [1, 0] | attn_type_list may have 1 only, which is full attention.
minimax_m2 | shared_intermediate_size | 8 | shared_intermediate_size = 8 is not understood, only 0.
deepseek_v32 | mlp_layer_types | ["sparse", "sparse", "sparse", "sparse", "sparse", "sparse"] | mlp_layer_types has 0 dense layers, first_k_dense_replace = 1.
glm_moe_dsa | indexer_types | ["shared", "full", "full", "full", "full", "full"] | the first layer must have an indexer of its own.
glm_moe_dsa | num_experts | 9 | num_experts = 9 and n_routed_experts = 8 say the same thing differently.
"""


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_what_can_not_be_is_refused(tmp_path: Path, row: str) -> None:
    kind, key, value, message = row.split(" | ")
    data = smallest(kind, num_attention_heads=64) | {key: json.loads(value)}
    path = write(tmp_path, data)
    with pytest.raises(DataFileError) as caught:
        load_config(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")


# Families that the library builds as written here: of each one shape with what it may switch on.
LIBRARY: dict[str, tuple[str, str, dict[str, Any]]] = {
    "granite": ("Granite", "GraniteForCausalLM", {"attention_bias": True, "mlp_bias": True}),
    "olmo2": ("Olmo2", "Olmo2ForCausalLM", {"num_key_value_heads": 2}),
    "olmo3": ("Olmo3", "Olmo3ForCausalLM", {"num_hidden_layers": 8, "attention_bias": True}),
    "roberta": ("Roberta", "RobertaModel", {"type_vocab_size": 1}),
    "smollm3": ("SmolLM3", "SmolLM3ForCausalLM", {"attention_bias": True}),
    "xlm-roberta": ("XLMRoberta", "XLMRobertaModel", {"max_position_embeddings": 514}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LIBRARY)
def test_a_family_counts_what_the_library_builds(tmp_path: Path, kind: str) -> None:
    torch = pytest.importorskip("torch")
    torchvision_models()
    transformers = pytest.importorskip("transformers")
    name, head, changes = LIBRARY[kind]
    sizes = smallest(kind, **changes)
    told = {key: value for key, value in sizes.items() if key != "model_type"}
    own = {f"{each}_token_id": 0 for each in ("bos", "eos", "pad")}
    config = getattr(transformers, f"{name}Config")(**told, **own)
    with torch.device("meta"):
        module = getattr(transformers, head)(config)
    held = sum(each.numel() for each in {id(each): each for each in module.parameters()}.values())
    # As the library writes such a file, with all keys that it has.
    config.architectures = [head]
    config.save_pretrained(tmp_path)
    found = load_config(tmp_path)
    assert found.parameter_count == held
    assert found.layers == sizes["num_hidden_layers"]
    if kind == "olmo3":
        assert (found.window, found.windowed_layers) == (4096, 6)
