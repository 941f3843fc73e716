"""A table of cases: every row is answered or refused with a reason, and nothing stops it."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from kept import cases

from mlsim import Engine
from mlsim.engine.predict import COLUMNS, Prediction, predict, read_cases, write
from mlsim.engine.predict.case import READ
from mlsim.engine.predict.table import QUESTIONS, UNANSWERED
from mlsim.errors import InvalidValueError

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


def test_what_was_measured_is_not_looked_at() -> None:
    rows = [{**DECODE, "measured": "1"}, {**DECODE, "measured": "9e9"}, DECODE]
    assert len({each.predicted for each in predict(rows)}) == 1
    assert "measured" not in READ


def test_without_a_constant_the_roofline_answers_and_says_so() -> None:
    found = one(PRODUCT, device="Wafer.WSE3", a_dtype="fp16")
    assert found.source == "roofline"
    assert "not calibrated" in found.note


def test_a_bad_row_is_empty_and_says_why() -> None:
    """A reason in words, and no trace of a slip of the program."""
    bad = [*cases("bad_rows.toml"), ("product", {"extra": "[" * 100_000}, "JSON")]
    for row, other, words in bad:
        found = one(ROWS[row], **other)
        assert found.predicted == found.low == found.high == found.bound == found.source == ""
        assert words in found.note, other
        assert "Error:" not in found.note, other


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


@pytest.mark.parametrize("answer", [0.0, -1.0, float("nan"), float("inf")])
def test_what_can_not_be_is_no_answer(monkeypatch: pytest.MonkeyPatch, answer: float) -> None:
    """Calibrated, the roofline's stands in; of all three nothing is left but the reason."""
    bad = lambda case, estimate: answer if estimate == "calibrated" else 2.0  # noqa: E731
    monkeypatch.setitem(QUESTIONS["gemm"], "kernel_time_s", bad)  # type: ignore[index]
    found = one(PRODUCT)
    assert (found.predicted, found.bound, found.source) == ("2", "2", "roofline")
    assert found.note.startswith("not calibrated: the answer was no number")
    monkeypatch.setitem(QUESTIONS["gemm"], "kernel_time_s", lambda *_: answer)  # type: ignore[index]
    assert one(PRODUCT).predicted == ""
    assert "which can't be" in one(PRODUCT).note


def test_too_many_cells_are_refused() -> None:
    found = next(predict([{**PRODUCT, None: ["more"]}]))  # type: ignore[dict-item]
    assert found.predicted == ""
    assert "more cells" in found.note


def test_what_is_not_answered_says_why() -> None:
    for kind, why in UNANSWERED.items():
        assert one(PRODUCT, kind=kind).note == f"{why}."


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
