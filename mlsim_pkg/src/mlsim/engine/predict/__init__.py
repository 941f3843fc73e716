"""A table of cases in, a table of predictions out: each row answered, or refused with a reason.

What was measured is never read: the columns that a prediction may use are listed in `case`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from mlsim.engine.bands import SpeedBand, band
from mlsim.engine.predict import inference, training
from mlsim.engine.predict.case import READ, Case, reason
from mlsim.errors import InvalidValueError, MlsimError, NotMeasuredError, nearest
from mlsim.records.tables import given_text
from mlsim.workloads.blocks import Attention, FeedForward
from mlsim.workloads.language import Transformer
from mlsim.zoo import spaces
from mlsim.zoo.spaces import plain

NEEDED = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
# A table of architectures says nothing of the longest sequence; a case does.
_CONTEXT = 2048
# No dimension of a model is above this: a slip, which would take long to answer.
_MOST = 10_000_000


def architectures(path: Path | str) -> dict[str, Transformer | str]:
    """Read a table of decoders: what each row describes, by its plain name.

    Columns are `model`, those of `NEEDED`, and `gated` and `tied_embeddings` (0 or 1). A row
    that can't be read has its reason in place of a model.

    Raises
    ------
    InvalidValueError
        If the table can't be read, has no column of models, or names one twice.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(given_text(path), newline="")))
    except csv.Error as error:
        raise InvalidValueError(f"{path}: the table of models can't be read: {error}.") from None
    found: dict[str, Transformer | str] = {}
    for row in rows:
        name = (row.get("model") or "").strip()
        if not name:
            raise InvalidValueError(f"{path}: a row has no name in the column model.")
        if plain(name) in found:
            raise InvalidValueError(f"{path} has {name!r} twice: keep one of them.")
        found[plain(name)] = _model(name, row, str(path))
    return found


def _model(name: str, row: Mapping[str, str], source: str) -> Transformer | str:
    if (row.get("moe") or "").strip() or (row.get("mla") or "").strip():
        return "a table of models describes dense layers with plain attention only"
    try:
        size = {each: _count(row, each) for each in NEEDED}
        attention = Attention(
            heads=size["heads"], kv_heads=size["kv_heads"], head_size=size["head_dim"]
        )
        return Transformer(
            key=name,
            name=name,
            architecture="Transformer decoder",
            source=source,
            layers=size["layers"],
            hidden=size["hidden"],
            vocabulary=size["vocab"],
            context=_CONTEXT,
            attention=attention,
            feed_forward=FeedForward(size=size["ffn"], gated=_flag(row, "gated")),
            tied_embeddings=_flag(row, "tied_embeddings"),
        )
    except MlsimError as error:
        return f"the table of models: {error}"


def _count(row: Mapping[str, str], name: str) -> int:
    text = (row.get(name) or "").strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MOST):
        raise InvalidValueError(f"{name} must be a whole number from 1 up, not {text[:40]!r}.")
    return int(text)


def _flag(row: Mapping[str, str], name: str) -> bool:
    text = (row.get(name) or "0").strip()
    if text not in ("0", "1"):
        raise InvalidValueError(f"{name} must be 0 or 1, not {text[:40]!r}.")
    return text == "1"


COLUMNS = ("case_id", "predicted", "low", "high", "bound", "from", "note")
CALIBRATED, ROOFLINE, BOUND = "calibrated", "roofline", "bound"

Question = Callable[[Case, str], Any]
# What answers each kind of case, by its metric.
QUESTIONS: Mapping[str, Mapping[str, Question]] = {
    "gemm": {
        "gemm_flop_per_s": inference.product_rate,
        "kernel_time_s": inference.product_time,
    },
    "attention": {"attention_flop_per_s": inference.attention_rate},
    "membw": {"memcpy_B_per_s": inference.stream_rate},
    "linkbw": {"memcpy_B_per_s": inference.link_rate},
    "allreduce": {
        "allreduce_busbw_B_per_s": inference.all_reduce_rate,
        "allreduce_time_s": inference.all_reduce_time,
    },
    "cnn_infer": {
        "throughput_items_per_s": inference.network_rate,
        "latency_s": inference.network_time,
    },
    "enc_infer": {"throughput_items_per_s": inference.pass_rate, "latency_s": inference.pass_time},
    "prefill": {"prefill_tokens_per_s_total": inference.prefill_rate},
    "ttft": {"TTFT_s": inference.first_token_time},
    "decode": {"decode_tokens_per_s_total": inference.decode_rate},
    "gen_e2e": {"latency_s": inference.generation_time},
    "static_gen": {"decode_tokens_per_s_total": inference.static_rate},
    "serve_offline": {"decode_tokens_per_s_total": inference.offline_rate},
    "serve_steady": {"decode_tokens_per_s_total": inference.static_rate},
    "memory": {
        "fits_in_memory": inference.fits,
        "max_concurrency_2048_tokens": inference.concurrency,
    },
    "tok_energy": {"J_per_token": inference.token_energy},
    "train_cnn": {"throughput_items_per_s": training.samples_rate},
    "train_enc": {"throughput_items_per_s": training.samples_rate},
    "train_lm": {
        "step_s": training.step_time,
        "mfu_fraction": training.utilization,
        "model_flop_per_s_per_device": training.flops_rate,
        "tokens_per_s_per_device": training.device_tokens_rate,
        "tokens_per_s_total": training.tokens_rate,
    },
    "train_run": {"accelerator_hours": training.run_hours},
}
# What counts bytes, of which there are no three estimates.
MEMORY = (inference.fits, inference.concurrency)
# Kinds that are known and not answered, and why.
UNANSWERED = {
    "co2_arith": "carbon of a run needs the intensity of its electricity, which no column gives",
    "kwh_arith": "an identity of hours and watts, and no prediction",
    "energy": "energy of a whole run without its load is not predicted",
    "sys_energy": "energy of a machine at the wall needs its host, which no column describes",
    "sys_power": "power of a machine at the wall needs its host, which no column describes",
    "reference": "a fact about a device and no case of work",
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row of the answer, as text: `COLUMNS` in their order."""

    case_id: str
    predicted: str
    low: str
    high: str
    bound: str
    source: str
    note: str

    def as_dict(self) -> dict[str, str]:
        """Return it by the names of the columns."""
        return dict(zip(COLUMNS, astuple(self), strict=True))


def predict(
    rows: Iterable[Mapping[str, Any]], models: Mapping[str, Any] | None = None
) -> Iterator[Prediction]:
    """Predict each case of a table; what can't be is empty and has its reason in the note.

    Parameters
    ----------
    rows
        Cases by the names of their columns: those of `mlsim.engine.predict.case.READ`. A
        column of measured values may be there; it is dropped before anything is asked.
    models
        What `mlsim.engine.predict.architectures` reads: models beside those of the zoo.

    >>> found = next(predict([{"case_id": "x", "kind": "gemm", "metric_kind": "kernel_time_s",
    ...     "device": "A100-80", "a_dtype": "fp16",
    ...     "extra": '{"M": 4096, "N": 4096, "K": 4096}'}]))
    >>> found.source, 4e-4 < float(found.bound) < float(found.predicted) < 7e-4
    ('calibrated', True)
    """
    layouts: dict[Any, Any] = {}
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    for row in rows:
        first, *rest = ("" if row.get(name) is None else str(row[name]) for name in READ)
        if None in row:
            yield Prediction(first, "", "", "", "", "", "the row has more cells than columns")
            continue
        # Tables repeat themselves: many rows ask the same question under another name.
        cells = tuple(rest)
        if cells not in known:
            case = Case(dict(zip(READ[1:], cells, strict=True)), models or {}, layouts)
            known[cells] = _asked(case)
        yield Prediction(first, *known[cells])


def _asked(case: Case) -> tuple[str, str, str, str, str, str]:
    try:
        question = _question(case)
        if question in MEMORY:
            value = _checked(question(case, ROOFLINE))
            text = value if isinstance(value, str) else _text(value)
            return text, "", "", "", "memory", case.said
        if name := case.text("sw_class"):
            case.note(spaces.software(name).note)
        value, source = _best(case, question)
        bound = _bound(case, question)
        found = _banded(case, value, source, bound)
    except Exception as error:  # noqa: BLE001 - whatever a row contains, the table goes on
        return "", "", "", "", "", reason(error)
    low, high = found or (None, None)
    return _text(value), _text(low), _text(high), _text(bound), source, case.said


def _question(case: Case) -> Question:
    kind, metric = case.text("kind"), case.text("metric_kind")
    if kind in UNANSWERED:
        raise InvalidValueError(f"{UNANSWERED[kind]}.")
    if kind not in QUESTIONS:
        raise InvalidValueError(
            f"kind {kind[:40]!r} is unknown.{nearest(kind[:40], QUESTIONS)} There are: "
            f"{', '.join(QUESTIONS)}."
        )
    metrics = QUESTIONS[kind]
    if metric not in metrics:
        raise InvalidValueError(
            f"metric_kind {metric[:40]!r} is none of {kind}: {', '.join(metrics)}."
        )
    return metrics[metric]


def _best(case: Case, question: Question) -> tuple[Any, str]:
    """Return the calibrated answer, else the roofline's and why there is no better one."""
    try:
        return _checked(question(case, CALIBRATED)), CALIBRATED
    except NotMeasuredError as error:
        case.note(f"not calibrated: {str(error).partition('. ')[0]}")
    except ArithmeticError:
        case.note("not calibrated: the answer was no number")
    except MlsimError as error:
        # What can't be asked of a roofline either is refused by it, in its words.
        case.note(f"not calibrated: {reason(error)[:160]}")
    return _checked(question(case, ROOFLINE)), ROOFLINE


def _bound(case: Case, question: Question) -> Any:
    try:
        return _checked(question(case, BOUND))
    except MlsimError as error:
        case.note(f"no bound: {reason(error)[:160]}")
        return None


def _checked(value: Any) -> Any:
    """Refuse what is no positive, finite number."""
    if isinstance(value, str):
        return value
    if not (math.isfinite(value) and value > 0):
        raise ArithmeticError(f"the prediction came out as {value!r}, which can't be")
    return float(value)


def _banded(case: Case, value: Any, source: str, bound: float | None) -> tuple[float, float] | None:
    """Return the band around a prediction, none of it beyond the bound."""
    found: SpeedBand | None = band(case.text("kind"), case.text("metric_kind"), source)
    if found is None:
        case.note("no band: too few published rows of this kind, to which nothing is fitted")
        return None
    found = found.wider(case.text("kind"), case.lent)
    case.note(found.words)
    low, high = found.around(value)
    if bound is None:
        return low, high
    return (
        (max(low, bound), max(high, bound)) if found.times else (min(low, bound), min(high, bound))
    )


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def read_cases(path: Path | str) -> list[dict[str, Any]]:
    """Read a table of cases.

    Raises
    ------
    InvalidValueError
        If there is no such file, it is no text, or it has no row of names.
    """
    text = given_text(path)
    reader = csv.DictReader(io.StringIO(text.replace("\0", ""), newline=""))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InvalidValueError(f"{path}, line {reader.line_num}: {error}.") from None
    names = reader.fieldnames or ()
    if "case_id" not in names:
        raise InvalidValueError(
            f"{path} has no column case_id. The columns of cases are: {', '.join(READ)}."
        )
    return rows


def write(found: Iterable[Prediction]) -> str:
    """Return predictions as a table with commas.

    >>> print(write([Prediction("x", "1", "", "", "", "roofline", "why")]), end="")
    case_id,predicted,low,high,bound,from,note
    x,1,,,,roofline,why
    """
    made = io.StringIO(newline="")
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(each) for each in found)
    return made.getvalue()
