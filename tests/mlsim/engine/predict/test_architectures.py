"""Models described in a table beside the cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim import Models
from mlsim.engine.predict import architectures, predict
from mlsim.errors import InvalidValueError

HEAD = "model,layers,hidden,heads,kv_heads,head_dim,ffn,gated,vocab,tied_embeddings,moe\n"
LLAMA = "mine,32,4096,32,8,128,14336,1,128256,0,\n"


def read(tmp_path: Path, text: str):  # type: ignore[no-untyped-def]
    path = tmp_path / "models.csv"
    path.write_text(text)
    return architectures(path)


def test_the_same_as_the_zoo(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + LLAMA)["mine"]
    assert found.parameter_count == Models.Llama3_8B.parameter_count


def test_a_case_finds_it(tmp_path: Path) -> None:
    row = {
        "case_id": "x",
        "kind": "decode",
        "metric_kind": "decode_tokens_per_s_total",
        "model": "Mine",
        "device": "H100",
        "input_len": "64",
        "output_len": "64",
        "w_dtype": "bf16",
    }
    own = next(predict([row], read(tmp_path, HEAD + LLAMA)))
    zoo = next(predict([{**row, "model": "Llama3_8B"}]))
    assert own.predicted == zoo.predicted
    assert "table of models" in own.note


def test_a_row_that_cannot_be_has_its_reason(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + "a,0,1,1,1,1,1,0,1,0,\nb,1,64,1,1,64,64,0,9,0,yes\n")
    assert "layers" in found["a"]
    assert "dense" in found["b"]
    case = {"case_id": "x", "kind": "decode", "metric_kind": "decode_tokens_per_s_total"}
    refused = next(predict([{**case, "model": "a", "device": "H100"}], found))
    assert "layers" in refused.note


@pytest.mark.parametrize("text", [HEAD + LLAMA + LLAMA, HEAD + LLAMA.replace("mine", "")])
def test_a_table_that_contradicts_itself(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidValueError):
        read(tmp_path, text)
