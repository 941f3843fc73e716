"""Models described in a table beside the cases."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mlsim import Models
from mlsim.engine.predict import architectures, predict
from mlsim.errors import InvalidValueError
from mlsim.zoo.written import plain

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
    # One of each is a model, and ten million at most.
    edges = read(
        tmp_path, HEAD + "a,1,64,1,1,64,64,0,10000000,0,\nb,1,64,1,1,64,64,0,10000001,0,\n"
    )
    assert (edges["a"].layers, edges["a"].vocabulary) == (1, 10_000_000)
    assert "vocab must be a whole number" in edges["b"]
    assert "dense" in found["b"]
    case = {"case_id": "x", "kind": "decode", "metric_kind": "decode_tokens_per_s_total"}
    refused = next(predict([{**case, "model": "a", "device": "H100"}], found))
    assert "layers" in refused.note


@pytest.mark.parametrize("text", [HEAD + LLAMA + LLAMA, HEAD + LLAMA.replace("mine", "")])
def test_a_table_that_contradicts_itself(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidValueError):
        read(tmp_path, text)


# Models of the open table of cases that the zoo does not have: their documents could not be
# read, or they have a size and no name.
UNKNOWN = {
    *("gopher-280b", "glm-130b", "bloomberg-50b", "dense-16b", "dense-22b", "dense-32b"),
    *("dense-52b", "dense-128b", "dense-256b"),
}
# Counted otherwise by the table: one whose context is 512 tokens, and shapes of pictures.
ELSEWHERE = {"bert-base", "bert-large", "resnet50"}


def test_models_of_the_zoo_need_no_table() -> None:
    """By the names that tables use; and the answer is that of the table, as far as that can tell.

    It can't say that parts stand beside one another after one norm, as in GPT-J.
    """
    path = Path(__file__).parents[3] / "fixtures" / "measured" / "models.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    assert {name for name in rows if not Models.knows(name)} == UNKNOWN
    described = {f"the table's {name}": each for name, each in architectures(path).items()}
    own = {plain(name): each for name, each in described.items() if not isinstance(each, str)}
    asked = {
        "kind": "decode",
        "metric_kind": "decode_tokens_per_s_total",
        "device": "MI300X",
        "input_len": "1024",
        "output_len": "64",
        "w_dtype": "bf16",
    }
    compared = 0
    for name in rows.keys() - UNKNOWN - ELSEWHERE:
        (told,) = predict([{**asked, "case_id": name, "model": name}])
        assert told.predicted, (name, told.note)
        if plain(f"the table's {plain(name)}") in own:
            given = {**asked, "case_id": name, "model": f"the table's {plain(name)}"}
            (described_as,) = predict([given], own)
            rates = [float(each.predicted) for each in (told, described_as)]
            assert rates[0] == pytest.approx(rates[1], rel=0.05), name
            compared += 1
    assert compared > 35
