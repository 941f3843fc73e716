"""What a `config.json` states beside sizes: YaRN makes a context longer, a format is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_files import LLAMA, USUAL, write

from mlsim import Engine
from mlsim.errors import DataFileError, InvalidValueError
from mlsim.workloads.huggingface import load_config

QWEN3 = {"model_type": "qwen3", **USUAL, "num_key_value_heads": 2, "max_position_embeddings": 40960}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
OLD = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


@pytest.mark.parametrize(
    ("data", "context"),
    [
        (QWEN3, 40960),
        (QWEN3 | {"rope_scaling": YARN}, 4 * 32768),
        (QWEN3 | {"rope_parameters": {"rope_theta": 1e6, **YARN}}, 4 * 32768),
        (QWEN3 | {"rope_parameters": {"full_attention": YARN}}, 4 * 32768),
        (QWEN3 | {"model_type": "qwen2", "rope_scaling": OLD}, 4 * 32768),
        # Without the length of training it is that of the file.
        (QWEN3 | {"rope_scaling": {"type": "yarn", "factor": 2.5}}, 102400),
        # Stretched by the file already, or by another way.
        (QWEN3 | {"max_position_embeddings": 131072, "rope_scaling": YARN}, 131072),
        (QWEN3 | {"max_position_embeddings": 163840, "rope_scaling": YARN}, 163840),
        (QWEN3 | {"rope_scaling": YARN | {"rope_type": "llama3"}}, 40960),
        (QWEN3 | {"rope_scaling": None}, 40960),
    ],
)
def test_yarn_makes_the_context_longer(tmp_path: Path, data, context: int) -> None:
    assert load_config(write(tmp_path, data)).context == context


def test_an_answer_says_from_where_on_it_takes_yarn(tmp_path: Path) -> None:
    model = load_config(write(tmp_path, QWEN3 | {"rope_scaling": YARN}))
    words = "beyond 40,960 tokens {} needs YaRN, which its config.json states; with it 131,072"
    said = words.format(model.name)
    assert said in str(Engine.serve(model=model, hardware="H100", prompt_tokens=100_000))
    assert "YaRN" not in str(Engine.serve(model=model, hardware="H100", prompt_tokens=1000))
    with pytest.raises(InvalidValueError, match="longer than the context"):
        Engine.serve(model=model, hardware="H100", prompt_tokens=131_072)


@pytest.mark.parametrize(
    ("rotation", "words"),
    [
        ({"factor": None}, "factor of YaRN must be 1 or more, not null"),
        ({"factor": True}, "factor of YaRN must be 1 or more, not true"),
        ({"factor": "4"}, "factor of YaRN must be 1 or more"),
        ({"factor": 0.5}, "factor of YaRN must be 1 or more, not 0.5"),
        ({"factor": float("nan")}, "factor of YaRN must be 1 or more, not NaN"),
        ({"original_max_position_embeddings": 1.5}, "must be a whole number, not 1.5"),
        ({"original_max_position_embeddings": 0}, "must be a whole number, not 0"),
    ],
)
def test_what_can_not_be_is_refused_with_its_line(tmp_path: Path, rotation, words: str) -> None:
    with pytest.raises(DataFileError, match=rf":\d+: .*{words}"):
        load_config(write(tmp_path, QWEN3 | {"rope_scaling": YARN | rotation}))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "bf16, since no other was given"),
        ({"torch_dtype": "bfloat16"}, "bf16, since no other was given"),
        ({"dtype": "auto"}, "bf16, since no other was given"),
        ({"torch_dtype": "float32"}, "its config.json says float32: ask for fp32 to count that"),
        ({"dtype": "torch.float16"}, "its config.json says float16: ask for fp16 to count that"),
    ],
)
def test_a_format_that_the_file_states_is_told(tmp_path: Path, data, said: str) -> None:
    model = load_config(write(tmp_path, LLAMA | data))
    served = Engine.serve(model=model, hardware="H100", prompt_tokens=64)
    assert served.to_dict()["formats_assumed"].endswith(said)
    assert served.service.formats.name == "bf16"
    asked = Engine.serve(model=model, hardware="H100", prompt_tokens=64, precision="fp32")
    assert "formats_assumed" not in asked.to_dict()
    trained = Engine.train(model=model, hardware="H100", global_batch=1, sequence_tokens=64)
    assert trained.to_dict()["formats_assumed"].endswith(said)
