"""A Hugging Face `config.json` that is not understood is warned of, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from config_files import LLAMA, USUAL, load, smallest, write
from faults import overlooked
from refusals import answered
from told import rows

from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads import huggingface
from mlsim.workloads.huggingface import load_config
from mlsim.workloads.huggingface.families import FILE, catalogue, load_catalogue
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


def refused(path: Path) -> str:
    with pytest.raises(DataFileError) as caught:
        load_config(path)
    return str(caught.value)


def test_configs_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "config.json"

    def ask(kind: str = "llama", without: Any = (), **given: Any) -> Any:
        told, content = given.pop("json", None), given.pop("raw", None)
        data = json.loads(told) if told else smallest(kind, **given)
        write(tmp_path, {key: each for key, each in data.items() if key not in without})
        if content is not None:
            path.write_text(content, encoding="utf-8")
        return load_config(path)

    assert answered(ask, "configs") == []


def test_an_unknown_key_may_be_left_out(tmp_path: Path) -> None:
    """What it changes is unknown, and so no count is given; who knows better may say so."""
    path = write(tmp_path, LLAMA | {"new_trick": 1, "other_trick": [2]})
    model = load_config(path, ignore=["new_trick", "other_trick"])
    assert model.parameter_count == load_config(write(tmp_path, LLAMA)).parameter_count
    path = write(tmp_path, {"model_type": "gemma3", "new_trick": 1, "text_config": {}})
    with pytest.warns(UserWarning, match="only the text part"):
        load_config(path, ignore=["new_trick"])


def test_a_type_that_can_not_be_told_says_why(tmp_path: Path) -> None:
    for kind, why in catalogue().refused.items():
        message = refused(path := write(tmp_path, USUAL | {"model_type": kind}))
        assert message.startswith(f'{path}:7: model_type "{kind}" can\'t be told here: ')
        assert why in message


def test_what_can_not_be_read_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == f"{tmp_path}: this folder has no config.json."
    path = tmp_path / "config.json"
    assert refused(path).startswith(f"{path}: there is no such file or folder.")
    path.write_bytes(b"\xff\xfe")
    assert refused(path).startswith(f"{path}: can't be read: ")
    for text in ("[" * 100_000, '{"vocab_size": ' + "9" * 5000 + "}"):
        path.write_text(text, encoding="utf-8")
        assert refused(path).startswith(f"{path}: can't be understood: ")


def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    known = catalogue()
    families = ", ".join(sorted((*known.families, *known.wrappers)))
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


def test_what_a_transformer_refuses_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**arguments: object) -> None:
        raise InvalidValueError("the parts don't fit.")

    monkeypatch.setattr(huggingface, "Transformer", refuse)
    path = write(tmp_path, LLAMA)
    assert refused(path) == f"{path}: the parts don't fit."


def test_a_file_of_families_is_read_strictly() -> None:
    assert overlooked(load_catalogue, FILE.read_text("utf-8"), "families") == []
