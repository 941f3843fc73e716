"""Models that the zoo does not have, described in a table that comes with the cases."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from mlsim.errors import InvalidValueError, MlsimError
from mlsim.records.tables import given_text
from mlsim.workloads.blocks import Attention, FeedForward
from mlsim.workloads.language import Transformer
from mlsim.zoo.written import plain

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
