"""Configurations of models whose layers are of several kinds, or that look at chosen tokens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from config_files import FILE, MIXED, load, smallest, write
from pytorch_parts import torchvision_models
from real_configs import REAL

from mlsim import load_config
from mlsim.errors import DataFileError
from mlsim.workloads.blocks import Attention, Experts, FeedForward
from mlsim.workloads.huggingface.ignored import IGNORED
from mlsim.workloads.huggingface.mixed_families import FAMILIES
from mlsim.workloads.huggingface.values import NEEDED
from mlsim.workloads.huggingface.wrappers import WRAPPERS
from mlsim.workloads.indexer import Indexer
from mlsim.workloads.language import Transformer
from mlsim.workloads.recurrent import DeltaRule, StateSpace


def real(folder: Path, name: str) -> Transformer:
    return load_config(write(folder, REAL[name][0]))


def test_what_a_real_file_says_has_its_count(tmp_path: Path) -> None:
    broken = []
    for name, (_, count) in REAL.items():
        model = real(tmp_path, name)
        held = sum(each.parameters * each.resident_repeats for each in model.operators())
        if (model.parameter_count, held) != (count, count):
            broken.append((name, model.parameter_count, held, count))
    for kind in MIXED:
        # So many heads that the defaults of all families divide them.
        model = load(tmp_path, kind, num_attention_heads=64)
        held = sum(each.parameters * each.resident_repeats for each in model.operators())
        if held != model.parameter_count or model.hidden != 64:
            broken.append((kind, held, model.parameter_count, model.hidden))
    assert broken == []


def test_active_parameters_are_those_of_the_name(tmp_path: Path) -> None:
    """As the makers name them, in billions."""
    for name, active in {
        "Kimi-K2": 32,
        "Nemotron-3-Super-120B-A12B": 12,
        "Qwen3.5-35B-A3B": 3,
        "Qwen3-Next-80B-A3B": 3,
        "Llama-4-Scout": 17,
        "Llama-4-Maverick": 17,
    }.items():
        assert active <= real(tmp_path, name).active_parameter_count / 1e9 < active + 1, name


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


def test_an_omitted_key_has_the_value_of_the_librarys_class() -> None:
    """What can't be otherwise has it, too, and never the opposite."""
    told = json.loads((FILE.parent / "library_defaults.json").read_text("utf-8"))
    del told["about"]
    # Sinks stand only where a file says so, and every fourth layer of a hybrid sees all.
    told["mimo_v2_flash"] |= {f"add_{each}_attention_sink_bias": False for each in ("full", "swa")}
    for kind in ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"):
        told[kind] |= {"full_attention_interval": 4, "attn_output_gate": True}
    told["phi3"] |= {f"{each}_bias": False for each in ("lm_head", "attention", "mlp")}
    told["qwen3_moe"] |= {"qkv_bias": False, "use_qk_norm": True}
    told["minimax_m2"] |= {"use_qk_norm": True, "use_routing_bias": True}
    # Three differ: of MiMo's window nobody has read yet which is right; the text part of Qwen3-VL
    # is told within a file that says whether tables are tied, and no layer of it is dense.
    ours = {("mimo_v2_flash", "sliding_window")}
    ours |= {("qwen3_vl_moe_text", key) for key in ("tie_word_embeddings", "intermediate_size")}
    cells = [(kind, *each) for kind, values in told.items() for each in values.items()]
    broken = set()
    for kind, key, value in cells:
        fixed = FAMILIES[kind].fixed.get(key, ())
        as_told = value in fixed and (not isinstance(value, bool) or (not value) not in fixed)
        read = not fixed and FAMILIES[kind].keys[key] in (value, NEEDED)
        broken |= set() if as_told or read else {(kind, key)}
    assert broken == ours


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


def unrefused(file: Callable[..., Path], cases: list[tuple[Any, str]]) -> list[str]:
    """Return which files are read, or refused with other words."""
    wrong = []
    for told, message in cases:
        try:
            load_config(file(told))
        except DataFileError as error:
            wrong += [] if message in str(error) else [str(error)]
        else:
            wrong.append(f"{told} is read")
    return wrong


def test_blocks_that_can_not_be_told_are_refused(tmp_path: Path) -> None:
    def file(told: object) -> Path:
        return write(tmp_path, smallest("minimax_m3", sparse_attention_config=told))

    cases: list[tuple[Any, str]] = [
        (7, "sparse_attention_config must be an object, not 7."),
        (SPARSE | {"new": 1}, "sparse_attention_config.new is not understood."),
        (SPARSE | {"sparse_score_type": "sum"}, '= "sum" is not understood, only "max".'),
        (SPARSE | {"sparse_block_size": 0}, "sparse_block_size must be 1 or more, not 0."),
        (SPARSE | {"sparse_attention_freq": None}, "must say what each layer is"),
        (SPARSE | {"sparse_disable_index_value": [0] * 6}, "the same as the latter."),
    ]
    assert unrefused(file, cases) == []


def test_windows_have_heads_of_their_own(tmp_path: Path) -> None:
    near, far = (each for _, each in real(tmp_path, "Gemma-4-26B-A4B").mixers)
    told = [(x.head_size, x.kv_heads, x.window, x.values_from_keys) for x in (near, far)]
    assert told == [(256, 8, 1024, False), (512, 2, 0, True)]
    model = real(tmp_path, "MiMo-V2-Flash")
    assert [each for each, _ in model.mixers] == [39, 9]
    near, far = (each for _, each in model.mixers)
    assert (near.kv_heads, near.sinks, far.kv_heads, far.sinks) == (8, True, 4, False)
    # 192 numbers of a key and 128 of a value.
    assert far.cached_elements == 4 * (192 + 128)


def test_experts_stand_in_every_other_layer(tmp_path: Path) -> None:
    scout, maverick = (real(tmp_path, f"Llama-4-{name}") for name in ("Scout", "Maverick"))
    assert [each for each, _ in scout.feeds] == [48]
    kinds = [(each, type(one)) for each, one in maverick.feeds]
    assert kinds == [(24, FeedForward), (24, Experts)]
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


def test_a_searched_model_is_refused_where_it_differs(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
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
        ({"block_configs": [blocks()[1]] * 3}, "no layer has attention."),
        ({"intermediate_size": 5}, "intermediate_size = 5 is not understood, only null."),
    ]
    assert unrefused(lambda changes: nas(tmp_path, **changes), cases) == []


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
@pytest.mark.parametrize("kind", LIBRARY if os.environ.get("MLSIM_JUDGE") else ["olmo3", "roberta"])
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
