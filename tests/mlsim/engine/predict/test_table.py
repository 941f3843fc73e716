"""A table of cases: every row is answered or refused with a reason, and nothing stops it."""

from __future__ import annotations

import json
import math
import time

import pytest

from mlsim import Engine
from mlsim.engine.predict import COLUMNS, Prediction, predict, read_cases, write
from mlsim.engine.predict.case import READ
from mlsim.engine.predict.table import QUESTIONS, UNANSWERED
from mlsim.errors import InvalidValueError

PRODUCT = {
    "case_id": "p",
    "kind": "gemm",
    "metric_kind": "kernel_time_s",
    "device": "A100-80",
    "a_dtype": "fp16",
    "extra": '{"M": 4096, "N": 4096, "K": 4096}',
}
DECODE = {
    "case_id": "d",
    "kind": "decode",
    "metric_kind": "decode_tokens_per_s_total",
    "model": "llama3-8b",
    "device": "H100-SXM",
    "batch": "8",
    "input_len": "128",
    "output_len": "128",
    "w_dtype": "bf16",
    "a_dtype": "bf16",
    "kv_dtype": "bf16",
}
TRAIN = {
    "case_id": "t",
    "kind": "train_lm",
    "metric_kind": "step_s",
    "model": "gpt3-175b",
    "device": "A100-80",
    "count": "64",
    "tp": "8",
    "pp": "8",
    "input_len": "2048",
    "a_dtype": "fp16",
    "extra": '{"gb": 64, "mb": 1, "recompute": "full", "v": 3}',
}
NETWORK = {
    "case_id": "n",
    "kind": "train_cnn",
    "metric_kind": "throughput_items_per_s",
    "model": "resnet50",
    "device": "A100-80",
    "batch": "256",
    "a_dtype": "fp16",
    "count": "1",
    "extra": "{}",
}


def one(row: dict[str, str], **other: str) -> Prediction:
    """Return the prediction of one row, some of it in other words."""
    return next(predict([{**row, **other}]))


def test_a_product_by_hand() -> None:
    # Two times 4096 cubed, at 312 TFLOP/s.
    found = one(PRODUCT)
    assert float(found.bound) == pytest.approx(2 * 4096**3 / 312e12, rel=1e-5)
    assert float(found.predicted) > float(found.bound)
    assert found.source == "calibrated"


def test_the_same_as_the_engine_says() -> None:
    asked = {
        "model": "Llama3_8B",
        "hardware": "H100",
        "batch_size": 8,
        "prompt_tokens": 128,
        "output_tokens": 128,
        "precision": "bf16",
    }
    found = one(DECODE)
    for column, estimate in ((found.predicted, "calibrated"), (found.bound, "bound")):
        expected = Engine.serve(**asked, estimate=estimate).value("decode_throughput")
        assert float(column) == pytest.approx(expected, rel=1e-5)


def test_what_was_measured_is_not_looked_at() -> None:
    rows = [{**DECODE, "measured": "1"}, {**DECODE, "measured": "9e9"}, DECODE]
    assert len({each.predicted for each in predict(rows)}) == 1
    assert "measured" not in READ


@pytest.mark.parametrize("row", [PRODUCT, DECODE, TRAIN, NETWORK], ids=lambda row: row["kind"])
def test_a_bound_is_beyond_the_prediction_and_the_band(row: dict[str, str]) -> None:
    found = one(row)
    better = float(found.bound) - float(found.predicted)
    assert better > 0 if row["metric_kind"].endswith("items_per_s") or row is DECODE else better < 0
    if found.low:
        low, high = float(found.low), float(found.high)
        assert low < high
        assert high <= float(found.bound) or low >= float(found.bound)


def test_training_of_a_network_is_calibrated() -> None:
    assert one(NETWORK).source == "calibrated"


def test_without_a_constant_the_roofline_answers_and_says_so() -> None:
    found = one(PRODUCT, device="Wafer.WSE3", a_dtype="fp16")
    assert found.source == "roofline"
    assert "not calibrated" in found.note


BAD = [
    (PRODUCT, {"device": "H1000-SXM"}, "H100"),
    (PRODUCT, {"device": ""}, "no device"),
    (PRODUCT, {"device": "../../etc/passwd"}, "not a path"),
    (PRODUCT, {"device": "mine.toml"}, "not a path"),
    (PRODUCT, {"a_dtype": "fp61"}, "no number format"),
    (PRODUCT, {"extra": "{"}, "JSON"),
    (PRODUCT, {"extra": "[1]"}, "JSON"),
    (PRODUCT, {"extra": "[" * 100_000}, "JSON"),
    (PRODUCT, {"extra": '{"M": 4096, "N": 4096}'}, "K"),
    (PRODUCT, {"extra": '{"M": 4096, "N": 4096, "K": -1}'}, "positive"),
    (PRODUCT, {"extra": '{"M": 4096, "N": 4096, "K": NaN}'}, "positive"),
    (PRODUCT, {"extra": '{"M": 1e300, "N": 4096, "K": 1}'}, "at most"),
    (PRODUCT, {"kind": "gem"}, "gemm"),
    (PRODUCT, {"kind": ""}, "unknown"),
    (PRODUCT, {"metric_kind": "x"}, "kernel_time_s"),
    (PRODUCT, {"sw_class": "magic"}, "software"),
    (DECODE, {"model": "llama9-8b"}, "llama9-8b"),
    (DECODE, {"model": ""}, "no model"),
    (DECODE, {"model": "resnet50"}, "no language model"),
    (DECODE, {"batch": "nan"}, "positive"),
    (DECODE, {"batch": "inf"}, "positive"),
    (DECODE, {"batch": "-8"}, "positive"),
    (DECODE, {"batch": "8 GB"}, "without a unit"),
    (DECODE, {"input_len": "1.5"}, "whole"),
    (DECODE, {"w_dtype": "bf17"}, "number format"),
    (DECODE, {"tp": "3"}, "tensor_parallel"),
    (TRAIN, {"extra": '{"gb": 64, "mb": 3}'}, "multiple"),
    (TRAIN, {"extra": '{"gb": 64, "mb": 1, "recompute": "some"}'}, "recompute"),
    (TRAIN, {"count": "63"}, "63"),
]


@pytest.mark.parametrize(("row", "other", "words"), BAD)
def test_a_bad_row_is_empty_and_says_why(
    row: dict[str, str], other: dict[str, str], words: str
) -> None:
    found = one(row, **other)
    assert found.predicted == found.low == found.high == found.bound == found.source == ""
    assert words in found.note
    # A reason in words, and no trace of a slip of the program.
    assert "Error:" not in found.note


def test_each_column_may_be_missing() -> None:
    for row in (PRODUCT, DECODE, TRAIN, NETWORK):
        for name in row:
            found = next(predict([{key: cell for key, cell in row.items() if key != name}]))
            assert found.note if not found.predicted else float(found.predicted) > 0


def test_too_many_cells_are_refused() -> None:
    found = next(predict([{**PRODUCT, None: ["more"]}]))  # type: ignore[dict-item]
    assert found.predicted == ""
    assert "more cells" in found.note


@pytest.mark.parametrize("kind", UNANSWERED)
def test_what_is_not_answered_says_why(kind: str) -> None:
    assert one(PRODUCT, kind=kind).note == f"{UNANSWERED[kind]}."


def test_ten_thousand_rows_take_seconds() -> None:
    rows = [
        {**DECODE, "case_id": str(number), "batch": cell}
        for number, cell in enumerate(["8", "x", "-1", "", "nan"] * 2000)
    ]
    begun = time.perf_counter()
    found = list(predict(rows))
    assert time.perf_counter() - begun < 20
    assert len(found) == len(rows)
    assert all(each.predicted or each.note for each in found)


def test_stages_of_unequal_layers_are_timed_as_the_fullest() -> None:
    extra = json.dumps({"gb": 64, "mb": 1, "recompute": "full"})
    found = one(TRAIN, model="llama3-405b", extra=extra)
    assert "16" in found.note
    even = one(TRAIN, model="llama3-405b", extra=extra, pp="7", count="56")
    assert float(found.predicted) > 0
    assert float(even.predicted) > 0


def test_beams_cost_tokens_that_nobody_counts() -> None:
    row = {**DECODE, "kind": "serve_offline"}
    alone, four = one(row), one(row, extra='{"beam": 4}')
    assert float(alone.predicted) / 4 < float(four.predicted) < float(alone.predicted)


def test_memory_is_a_verdict() -> None:
    row = {**DECODE, "kind": "memory", "metric_kind": "fits_in_memory"}
    assert one(row, batch="100000").predicted == "OOM"
    assert 16 < float(one(row).predicted) < 80
    assert one(row).source == "memory"
    # Bytes of a cached token: two of keys and values, 32 layers, 8 heads of 128, 2 bytes.
    most = one(row, metric_kind="max_concurrency_2048_tokens", input_len="2048")
    left = 0.9 * 80 * 2**30 - 16.06e9
    assert float(most.predicted) == pytest.approx(left / (2049 * 2 * 32 * 8 * 128 * 2), rel=0.1)


def test_energy_of_a_token_by_hand() -> None:
    row = {**DECODE, "kind": "tok_energy", "metric_kind": "J_per_token"}
    found = one(row)
    speed = float(one(DECODE, kind="static_gen").predicted)
    power = float(found.predicted) * speed
    # Between what an H100 draws idle and its limit of 700 W.
    assert 60 < power <= 700
    assert found.bound == ""


def test_written_and_read_again(tmp_path: object) -> None:
    text = write(predict([PRODUCT]))
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert math.isfinite(float(text.splitlines()[1].split(",")[1]))


def test_no_table_no_answer(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidValueError, match="can't be read"):
        read_cases(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"case_id,model\n1,caf\xe9\n")
    with pytest.raises(InvalidValueError, match=r"latin\.csv:2: .* Save the table as CSV in UTF-8"):
        read_cases(tmp_path / "latin.csv")
    (tmp_path / "cases.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidValueError, match="case_id"):
        read_cases(tmp_path / "cases.csv")


def test_every_kind_has_a_metric() -> None:
    assert not QUESTIONS.keys() & UNANSWERED.keys()
    assert all(QUESTIONS.values())


def attention(**other: object) -> float:
    """Return the FLOP/s of attention on an H100 by the roofline's bound or estimate."""
    extra = json.dumps({"hd": 128, "causal": 0, "alg": "fa2", "fwdbwd": 0, **other})
    row = {**PRODUCT, "kind": "attention", "metric_kind": "attention_flop_per_s"}
    return float(one(row, input_len="8192", extra=extra).predicted)


def test_standard_attention_computes_what_a_mask_hides() -> None:
    assert attention(alg="std") < attention()
    # The same time, and half of the work counts.
    assert attention(alg="std", causal=1) == pytest.approx(attention(alg="std") / 2, rel=1e-5)
    # A kernel that leaves it out is as fast per counted operation.
    assert attention(causal=1) == pytest.approx(attention(), rel=1e-5)


def test_a_stream_and_an_exchange_by_hand() -> None:
    row = {**PRODUCT, "kind": "membw", "metric_kind": "memcpy_B_per_s", "extra": '{"op": "copy"}'}
    assert float(one(row).bound) == pytest.approx(2039e9)
    row = {
        **PRODUCT,
        "kind": "allreduce",
        "metric_kind": "allreduce_time_s",
        "count": "8",
        "extra": '{"bytes": 268435456}',
    }
    found = one(row)
    # At most 300 GB/s one way; a ring passes each byte 14/8 times.
    assert float(found.bound) == pytest.approx(268435456 / 300e9, rel=1e-5)
    assert float(found.predicted) > 14 / 8 * 268435456 / 300e9
