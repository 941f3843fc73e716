"""A Hugging Face `config.json` that is not understood is warned of, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from config_files import LLAMA, USUAL, attention, load, smallest, write
from told import rows

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads.blocks import Experts
from mlsim.workloads.huggingface import load_config, reader
from mlsim.workloads.huggingface.mixed_families import FAMILIES
from mlsim.workloads.huggingface.refused import REFUSED as REFUSED_TYPES
from mlsim.workloads.huggingface.wrappers import WRAPPERS
from mlsim.zoo.resolve import model as find_model

# Warnings.


def test_another_last_layer_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA | {"architectures": ["LlamaForSequenceClassification"]})
    with pytest.warns(UserWarning, match="the last layer of") as caught:
        load_config(path)
    (warning,) = caught
    assert str(warning.message) == (
        f"{path}: the last layer of LlamaForSequenceClassification is not counted, but one for the "
        "next token; the 259,392 parameters are those of the rest."
    )
    assert warning.filename == __file__
    load(tmp_path, "llama", architectures=None)


def test_what_is_no_text_is_left_out_and_named(tmp_path: Path) -> None:
    around = {"vision_config": {"depth": 7}, "image_token_id": 3}
    path = write(tmp_path, {"model_type": "gemma3", "text_config": {}, **around})
    with pytest.warns(UserWarning, match=r"the text part is counted \(vision_config left out\);"):
        # All that it omits is the default of its class.
        assert load_config(path).layers == 26


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


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    """What it changes is unknown, and so no count is given; who knows better may say so."""
    data = LLAMA | {"new_trick": 1, "rope_theta": 1e4, "other_trick": [2], "old_trick": None}
    path = write(tmp_path, data)
    assert refused(path) == (
        f"{path}:8: not understood: new_trick, other_trick. What they change is unknown, so "
        "nothing is counted. If they change no count, load_config(path, ignore=['new_trick', "
        "'other_trick']) leaves them out."
    )
    model = load_config(path, ignore=["new_trick", "other_trick"])
    assert model.parameter_count == load_config(write(tmp_path, LLAMA)).parameter_count


def test_an_unknown_key_inside_another_has_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, {"model_type": "gemma3", "text_config": {"new_trick": 1}})
    assert refused(path).startswith(f"{path}:4: not understood: new_trick.")
    path = write(tmp_path, {"model_type": "gemma3", "new_trick": 1, "text_config": {}})
    assert refused(path).startswith(f"{path}:3: not understood: new_trick.")
    with pytest.warns(UserWarning, match="only the text part"):
        load_config(path, ignore=["new_trick"])


@pytest.mark.parametrize("kind", REFUSED_TYPES)
def test_a_type_that_can_not_be_told_says_why(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, USUAL | {"model_type": kind})
    message = refused(path)
    assert message.startswith(f'{path}:7: model_type "{kind}" can\'t be told here: ')
    assert REFUSED_TYPES[kind] in message


def test_a_folder_without_the_file_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == f"{tmp_path}: this folder has no config.json."


def test_what_is_no_json_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for text, message in {
        "": ":1: not JSON: Expecting value.",
        '{\n "a": 1,\n "b" 2}': ":3: not JSON: Expecting ':' delimiter.",
        "[1, 2]": ":1: a config.json is one object, not [1, 2].",
        '{"a": 1, "a": 2}': ": can't be understood: the key 'a' stands twice in one object.",
    }.items():
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
    families = ", ".join(sorted((*FAMILIES, *WRAPPERS)))
    assert refused(path) == (f"{path}:2: model_type \"lama\" is no family. Did you mean 'llama'?")
    path = write(tmp_path, USUAL)
    assert refused(path) == (
        f"{path}:1: model_type is missing, which says how the keys are read. Those read are "
        f"{families}."
    )
    path = write(tmp_path, {"model_type": "jamba", "new_trick": 1})
    assert refused(path) == (
        f'{path}:2: model_type "jamba" is of a family that is not read. Those read are '
        f"{families}. Keys of this file that none of them has: new_trick."
    )
    for kind in (None, 7, ["llama"]):
        assert "model_type" in refused(write(tmp_path, LLAMA | {"model_type": kind}))


def test_a_family_that_is_not_read_is_told_as_such(tmp_path: Path) -> None:
    """Another family is no misspelling of one that is read; the zoo may have its models."""
    known = {
        "minimax_text_01": "minimax_m2",
        "whisper": "whisper_base, whisper_large_v2",
        "t5": "t5_11b, t5_3b, t5_base, t5_large, t5_small",
        "vit": "vit_b_16",
    }
    keys = {f"key{n}": n for n in range(40)}
    for kind in (*known, "mamba2", "jamba", "llama5", "cohere2_vision", "electra"):
        message, zoo = refused(write(tmp_path, {"model_type": kind, **keys})), known.get(kind, "")
        assert "is of a family that is not read." in message
        assert "Did you mean" not in message
        assert (f"The zoo has {zoo}" in message) if zoo else ("The zoo" not in message)
        assert "key5, and 34 more." in message
        assert len(message) < 1200
        assert all(find_model(name) for name in zoo.split(", ") if name)


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


def test_a_value_that_can_not_be_is_refused_with_its_line(tmp_path: Path) -> None:
    broken = []
    for kind, key, value, message in rows("refused_configs"):
        # So many heads that the defaults of all families divide them.
        data = smallest(kind) | ({} if kind in ("llama", "gpt2") else {"num_attention_heads": 64})
        if kind == "gpt2":
            del data["intermediate_size"]
        if key == "n_embd":
            del data["hidden_size"]
        data[key] = json.loads(value)
        path = write(tmp_path, data)
        said = refused(path)
        # On the line of the key, of another that it contradicts, or of one that is not there.
        named = tuple(f' "{name}":' for name in data if name == key or name in message)
        text = path.read_text(encoding="utf-8").splitlines()
        lines = [line for line, each in enumerate(text, 1) if each.startswith(named)]
        lines += [] if message.startswith(key) else [1]
        if not any(said.startswith(f"{path}:{line}: {message}") for line in lines):
            broken.append(f"{kind}: {key}: {said}")
    assert broken == []


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


def test_a_size_that_no_model_has_is_refused(tmp_path: Path) -> None:
    for value, words in (
        (float("nan"), "must be a whole number, not NaN"),
        (10**30, "must be at most 1,000,000,000,000, not 1e+30"),
    ):
        assert f"hidden_size {words}" in refused(write(tmp_path, LLAMA | {"hidden_size": value}))
    assert load(tmp_path, "llama", vocab_size=10**12).vocabulary == 10**12
