"""A Hugging Face `config.json` makes the model whose parameters were published."""

from __future__ import annotations

import dataclasses
import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from config_files import LLAMA, USUAL, smallest, write
from real_configs import REAL
from told import rows

from mlsim import Engine, Models
from mlsim.errors import InvalidValueError
from mlsim.workloads import huggingface
from mlsim.workloads.blocks import FeedForward
from mlsim.workloads.huggingface import load_config

CONFIGS = Path(__file__).parents[3] / "fixtures" / "configs"
# What a file of the zoo says of itself; a config may allow longer sequences than the paper tells.
OWN = {"key", "name", "architecture", "source", "figures", "context", "released", "stated_format"}


@pytest.mark.filterwarnings(
    r"ignore:.*only the text part is counted \(vision_config left out\); the"
)
def test_real_files_have_their_published_counts_or_are_models_of_the_zoo() -> None:
    files = {path.stem: json.loads(path.read_text("utf-8")) for path in CONFIGS.glob("*.json")}
    broken, told = [], dict(rows("known_configs"))
    assert set(files) == set(told)
    for name, known in told.items():
        model = load_config(CONFIGS / f"{name}.json")
        held = sum(each.parameters * each.resident_repeats for each in model.operators())
        if held != model.parameter_count:
            broken.append(f"{name}: operators hold {held}")
        if known.isdigit():
            broken += [name] if model.parameter_count != int(known) else []
            continue
        same = getattr(Models, known)
        broken += [
            f"{name}: {each.name}"
            for each in dataclasses.fields(model)
            if each.name not in OWN and getattr(model, each.name) != getattr(same, each.name)
        ]
        # In the same formats, as the file says or as the makers do.
        if same.released or model.released:
            released = dataclasses.replace(model.released, where=same.released.where)
            broken += [f"{name}: {released}"] if released != same.released else []
    assert broken == []


def plain(thing: Any) -> Any:
    """Return a part as the table has it: its class, and all that is not as it is by default."""
    if dataclasses.is_dataclass(thing):
        told = {each: getattr(thing, each.name) for each in dataclasses.fields(thing)}
        own = {each.name: plain(value) for each, value in told.items() if value != each.default}
        return {type(thing).__name__: own}
    return [plain(each) for each in thing] if isinstance(thing, tuple) else thing


def test_what_a_config_says_is_read(tmp_path: Path) -> None:
    def at(thing: Any, name: str) -> Any:
        return thing[int(name)] if name.isdigit() else getattr(thing, name)

    broken = []
    for kind, changes, wanted in rows("configs_as_read"):
        data = REAL[kind][0] if kind in REAL else smallest(kind)
        model = load_config(write(tmp_path, data | json.loads(changes)))
        for path, value in json.loads(wanted).items():
            found = plain(reduce(at, path.split("."), model))
            if found != value:
                broken.append(f"{kind} with {changes}: {path} is {found}, not {value}")
    assert broken == []


def test_a_folder_is_as_good_as_its_file(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA)
    for given in (path, tmp_path, str(tmp_path)):
        model = load_config(given)
        assert (model.source, model.architecture) == (str(path), "llama, from config.json")
        # 100*64 for each of two tables; a layer has 4*64^2 + 3*64*128 + 2*64; a norm.
        assert model.parameter_count == 2 * 6400 + 6 * (16384 + 24576 + 128) + 64


def test_spellings_are_read_alike(tmp_path: Path) -> None:
    usual = {key: value for key, value in USUAL.items() if key != "intermediate_size"}
    short = {"model_type": "gpt2", "vocab_size": 100, "n_embd": 64, "n_layer": 6, "n_head": 4}
    one, other = (
        load_config(write(tmp_path, each)) for each in ({"model_type": "gpt2", **usual}, short)
    )
    assert one.operators() == other.operators()
    wide = load_config(write(tmp_path, short | {"n_inner": 96, "n_positions": 32}))
    assert wide.feed_forward == FeedForward(size=96, bias=True)
    assert wide.positions == wide.context == 32


def test_a_name_is_the_files_own_or_its_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    for given, name in {
        "meta-llama/Llama-2-7b-hf": "Llama-2-7b-hf",
        "./out/": "out",
        "C:\\models\\mine": "mine",
        **dict.fromkeys(("", "./..", None, 7), "somewhere"),
    }.items():
        model = load_config(write(folder, LLAMA | {"_name_or_path": given}))
        assert model.key == model.name == name
    # In the library's cache it is the repository's.
    snapshot = tmp_path / "models--openai--gpt-oss-20b" / "snapshots" / "0123abcd"
    blobs = tmp_path / "models--openai--gpt-oss-20b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (snapshot / "config.json").symlink_to(write(blobs, LLAMA).rename(blobs / "fedc"))
    assert load_config(snapshot).name == "gpt-oss-20b"
    # Where there is no other it is the family's.
    monkeypatch.setattr(huggingface, "_name", lambda source: "")
    assert load_config(write(tmp_path, LLAMA)).name == "llama"


def test_an_answer_says_from_where_on_it_takes_yarn(tmp_path: Path) -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    changes: dict[str, Any] = {"num_key_value_heads": 2, "max_position_embeddings": 40960}
    changes["rope_scaling"] = yarn
    model = load_config(write(tmp_path, smallest("qwen3", **changes)))
    words = "beyond 40,960 tokens {} needs YaRN, which its config.json states; with it 131,072"
    said = words.format(model.name)
    assert said in str(Engine.serve(model=model, hardware="H100", prompt_tokens=100_000))
    assert "YaRN" not in str(Engine.serve(model=model, hardware="H100", prompt_tokens=1000))
    with pytest.raises(InvalidValueError, match="longer than the context"):
        Engine.serve(model=model, hardware="H100", prompt_tokens=131_072)


def test_a_format_that_the_file_states_is_told(tmp_path: Path) -> None:
    silent, says = (
        "bf16, since no other was given",
        "its config.json says {}: ask for {} to count that",
    )
    for data, said in (
        ({}, silent),
        ({"torch_dtype": "bfloat16"}, silent),
        ({"dtype": "auto"}, silent),
        ({"torch_dtype": "float32"}, says.format("float32", "fp32")),
        ({"dtype": "torch.float16"}, says.format("float16", "fp16")),
    ):
        model = load_config(write(tmp_path, LLAMA | data))
        served = Engine.serve(model=model, hardware="H100", prompt_tokens=64)
        assert served.to_dict()["formats_assumed"].endswith(said)
        assert served.service.formats.name == "bf16"
        trained = Engine.train(model=model, hardware="H100", global_batch=1, sequence_tokens=64)
        assert trained.to_dict()["formats_assumed"].endswith(said)
    asked = Engine.serve(model=model, hardware="H100", prompt_tokens=64, precision="fp32")
    assert "formats_assumed" not in asked.to_dict()
