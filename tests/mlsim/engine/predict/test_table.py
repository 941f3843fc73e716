"""A table of cases: every row is answered or refused with a reason, and nothing stops it."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path
from typing import Any

import kept
import pytest
from kept import cases

from mlsim import Engine, Models
from mlsim.engine.predict import (
    COLUMNS,
    QUESTIONS,
    UNANSWERED,
    Prediction,
    architectures,
    predict,
    read_cases,
    write,
)
from mlsim.engine.predict.case import READ
from mlsim.errors import InvalidValueError
from mlsim.zoo.spaces import plain

PRODUCT = {"case_id": "p", "kind": "gemm", "metric_kind": "kernel_time_s"}
PRODUCT |= {"device": "A100-80", "a_dtype": "fp16", "extra": '{"M": 4096, "N": 4096, "K": 4096}'}
DECODE = {"case_id": "d", "kind": "decode", "metric_kind": "decode_tokens_per_s_total"}
DECODE |= {"model": "llama3-8b", "device": "H100-SXM"}
DECODE |= {"batch": "8", "input_len": "128", "output_len": "128"}
DECODE |= {"w_dtype": "bf16", "a_dtype": "bf16", "kv_dtype": "bf16"}
TRAIN = {"case_id": "t", "kind": "train_lm", "metric_kind": "step_s", "model": "gpt3-175b"}
TRAIN |= {"device": "A100-80", "count": "64", "tp": "8", "pp": "8", "input_len": "2048"}
TRAIN |= {"a_dtype": "fp16", "extra": '{"gb": 64, "mb": 1, "recompute": "full", "v": 3}'}
NETWORK = {"case_id": "n", "kind": "train_cnn", "metric_kind": "throughput_items_per_s"}
NETWORK |= {"model": "resnet50", "device": "A100-80", "batch": "256"}
NETWORK |= {"a_dtype": "fp16", "count": "1", "extra": "{}"}
ROWS = {"product": PRODUCT, "decode": DECODE, "train": TRAIN, "network": NETWORK}


def one(row: dict[str, str], **other: str) -> Prediction:
    """Return the prediction of one row, some of it in other words."""
    return next(predict([{**row, **other}]))


def test_a_bad_row_is_empty_and_says_why() -> None:
    """A reason in words, and no trace of a slip of the program."""
    bad = [*cases("bad_rows.toml"), ("product", {"extra": "[" * 100_000}, "JSON")]
    for row, other, words in bad:
        found = one(ROWS[row], **other)
        assert found.predicted == found.low == found.high == found.bound == found.source == ""
        assert words in found.note, other
        assert "Error:" not in found.note, other
        assert found.note.count("Did you mean") < 2, other
    more = next(predict([{**PRODUCT, None: ["more"]}]))  # type: ignore[dict-item]
    assert (more.predicted, "more cells" in more.note) == ("", True)
    assert not QUESTIONS.keys() & UNANSWERED.keys()
    for kind, why in UNANSWERED.items():
        assert one(PRODUCT, kind=kind).note == f"{why}."
    # Without a constant the roofline answers, and says so.
    found = one(PRODUCT, device="Wafer.WSE3", a_dtype="fp16")
    assert (found.source, "not calibrated" in found.note) == ("roofline", True)
    # What was measured is not looked at.
    assert "measured" not in READ
    assert one(DECODE, measured="9e9").predicted == one(DECODE).predicted


def test_each_column_may_be_missing() -> None:
    """What it stands for then, or why it can't be missing."""
    for kind, usual, needed in cases("missing_columns.toml"):
        for name in ROWS[kind].keys() - {"case_id"}:
            row = {key: cell for key, cell in ROWS[kind].items() if key != name}
            found = next(predict([row]))
            if name in usual:
                assert found == one(ROWS[kind], **{name: usual[name]}), name
                assert found.source or "64" in found.note, name
            if name in needed:
                assert (found.predicted, found.source) == ("", ""), name
                assert found.note.startswith(needed[name]), name
        assert needed.keys() <= ROWS[kind].keys()


def test_a_row_is_rounded_to_six_digits_with_its_bound_and_its_notes() -> None:
    """2 x 4096^3 FLOP at 312 TFLOP/s are 0.000440509 s."""
    found = one(PRODUCT)
    assert found.bound == "0.000440509"
    assert (found.low, found.high, found.source) == ("", "", "calibrated")
    none = "no band: too few published rows of this kind, to which nothing is fitted"
    assert found.note.endswith(none)
    served = one(DECODE)
    asked = {"batch_size": 8, "prompt_tokens": 128, "output_tokens": 128, "precision": "bf16"}
    answers = [
        Engine.serve("Llama3_8B", "H100", **asked, estimate=each).value("decode_throughput")
        for each in ("calibrated", "bound")
    ]
    assert [served.predicted, served.bound] == [f"{each:.6g}" for each in answers]
    calibrated = Engine.serve("Llama3_8B", "H100", **asked, estimate="calibrated")
    band = calibrated.band("decode_throughput")
    assert [served.low, served.high] == [f"{each:.6g}" for each in (band.low, band.high)]
    assert served.as_dict()["from"] == "calibrated"
    assert one(NETWORK).source == one(TRAIN).source == "calibrated"
    energy = one(DECODE, kind="tok_energy", metric_kind="J_per_token")
    assert energy.bound == ""
    assert "no bound: a power has no bound" in energy.note
    memory = one(DECODE, kind="memory", metric_kind="fits_in_memory")
    assert (memory.source, memory.low, memory.bound) == ("memory", "", "")
    required = Engine.serve("Llama3_8B", "H100", **asked).value("memory_required")
    assert memory.predicted == f"{required / 1e9:.6g}"


def test_what_can_not_be_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibrated, the roofline's stands in; of all three nothing is left but the reason."""
    for answer in (0.0, -1.0, math.nan, math.inf):
        for both in (False, True):
            bad = lambda case, estimate: answer if both or estimate == "calibrated" else 2.0  # noqa: B023, E731
            monkeypatch.setitem(QUESTIONS["gemm"], "kernel_time_s", bad)  # type: ignore[index]
            found = one(PRODUCT)
            expected = ("", "", "") if both else ("2", "2", "roofline")
            assert (found.predicted, found.bound, found.source) == expected, answer
            words = "which can't be" if both else "not calibrated: the answer was no number"
            assert words in found.note


def test_many_rows_are_answered_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand rows of five questions are five questions; the order is that of the rows."""
    asked: list[object] = []
    plain = QUESTIONS["decode"]["decode_tokens_per_s_total"]

    def counted(case: object, estimate: str) -> object:
        asked.append(estimate)
        return plain(case, estimate)  # type: ignore[arg-type]

    monkeypatch.setitem(QUESTIONS["decode"], "decode_tokens_per_s_total", counted)  # type: ignore[index]
    cells = ["8", "x", "-1", "", "nan"]
    names = [str(number) for number in range(10_000)]
    rows = ({**DECODE, "case_id": each, "batch": cells[int(each) % 5]} for each in names)
    found = list(predict(rows))
    assert [each.case_id for each in found] == names
    assert [bool(each.predicted) for each in found] == [True, False, False, True, False] * 2000
    # Two are answered, calibrated and as a bound; three are refused twice, by the roofline too.
    assert Counter(asked) == {"calibrated": 5, "roofline": 3, "bound": 2}


def test_tables_are_read_and_written(tmp_path: Path) -> None:
    """A single case, and what is no table."""
    text = write(predict([PRODUCT])).splitlines()
    assert text[0] == ",".join(COLUMNS)
    assert math.isfinite(float(text[1].split(",")[1]))
    path = tmp_path / "cases.csv"
    for content, words in (
        (None, "can't be read"),
        (b"case_id,model\n1,caf\xe9\n", r"cases\.csv:2: .* Save the table as CSV in UTF-8"),
        (b"a,b\n1,2\n", "case_id"),
        (b"", "case_id"),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InvalidValueError, match=words):
            read_cases(path)
    path.write_text("case_id,kind\nx,gemm\n")
    assert read_cases(path) == [{"case_id": "x", "kind": "gemm"}]


# A table of models beside the cases.
HEAD = "model,layers,hidden,heads,kv_heads,head_dim,ffn,gated,vocab,tied_embeddings,moe\n"
LLAMA = "mine,32,4096,32,8,128,14336,1,128256,0,\n"


def test_models_are_described_beside_the_cases(tmp_path: Path) -> None:
    """The same as the zoo's; a row that can't be has its reason."""

    def read(*rows: str) -> Any:
        (tmp_path / "models.csv").write_text(HEAD + "".join(rows))
        return architectures(tmp_path / "models.csv")

    found = read(LLAMA)
    assert found["mine"].parameter_count == Models.Llama3_8B.parameter_count
    own = next(predict([{**DECODE, "model": "Mine"}], found))
    assert own.predicted == one(DECODE).predicted
    assert "table of models" in own.note
    # One of each is a model, and ten million at most.
    edge = "1,64,1,1,64,64,0"
    found = read(
        "a,0,1,1,1,1,1,0,1,0,\n", f"b,{edge},9,0,yes\n", f"c,{edge},10000000,0,\n",
        f"d,{edge},10000001,0,\n",
    )  # fmt: skip
    assert (found["c"].layers, found["c"].vocabulary) == (1, 10_000_000)
    for name, words in (("a", "layers"), ("b", "dense"), ("d", "vocab must be a whole number")):
        assert words in found[name]
        assert words in next(predict([{**DECODE, "model": name}], found)).note
    for rows in ((LLAMA, LLAMA), (LLAMA.replace("mine", ""),)):
        with pytest.raises(InvalidValueError):
            read(*rows)


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
    path = kept.FIXTURES / "measured" / "models.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    assert {name for name in rows if not Models.knows(name)} == UNKNOWN
    described = {f"the table's {name}": each for name, each in architectures(path).items()}
    own = {plain(name): each for name, each in described.items() if not isinstance(each, str)}
    asked = {**DECODE, "device": "MI300X", "input_len": "1024", "output_len": "64"}
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
