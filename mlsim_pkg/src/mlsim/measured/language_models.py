"""Language models by month: what was published of each, every fact with its source.

Sizes are not here. Of a model of the zoo they follow from its architecture; of any other
they stand in `data/announced.toml`, and so do the tokens of training. This table adds
what neither has: the month, who made it, its structure, the precision and the machine of
its training, and whether one may have its weights.
"""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsim.equations.run import flops_per_parameter_token, training_flops
from mlsim.errors import DataFileError, need, unknown_name
from mlsim.measured import cells
from mlsim.precision import PRECISIONS
from mlsim.records import DATA, KINDS
from mlsim.records.tables import read
from mlsim.workloads import Transformer
from mlsim.workloads.announced_models import Announced, announced
from mlsim.workloads.model import Model
from mlsim.zoo import spaces

if TYPE_CHECKING:
    import pandas

FILE = DATA / "growth" / "language_models.csv"

STRUCTURES = ("encoder", "decoder", "both")
# Published for all, published under terms that restrict the use, or not published.
WEIGHTS = ("open", "limited", "closed")
FACTS = ("month", "maker", "structure", "precision", "weights", "accelerator")
# Published by the maker, by somebody else, or worked out: as figures of the zoo say it.
_KINDS = tuple(kind for kind in KINDS if kind != "given")
_QUOTED_WORDS = 15
# Operations of a multiply-add, and how many of them: one forward and two backward.
_OPERATIONS, _PASSES = 2.0, 3.0


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was published of a language model.

    Attributes
    ----------
    id, model
        A name of its own; a key of the zoo, or of an announced model.
    fact, value
        One of `FACTS`, and what it is: a month as 2024-07, a structure of `STRUCTURES`, a
        number format, weights of `WEIGHTS`, devices (keys of the zoo, or other names)
        with semicolons between them, or a maker in words.
    kind, source, where, quote, read, note
        Whose word it is, in which document, at which place, in which words, read when;
        anything else worth knowing.
    """

    id: str
    model: str
    fact: str
    value: str
    kind: str
    source: str
    where: str
    quote: str
    read: datetime.date
    note: str


def language_models() -> pandas.DataFrame:
    """Return language models in order of publication, a row for each.

    Returns
    -------
    pandas.DataFrame
        By key: `name`, `maker`, `month` (its first day), `form` ("dense" or "experts"),
        `structure` ("encoder", "decoder" or "both"), `parameters`, `active_parameters`
        (those that one token meets), `tokens` of training, `flops` (six for each active
        parameter and token), `precision` of training, `weights` ("open", "limited" or
        "closed"), `accelerator`, and `counted`: whether the size follows from the
        architecture, or was announced. What was not published is missing (NaN or None).

    Raises
    ------
    MissingLibraryError
        If pandas is not installed.

    >>> table = language_models()
    >>> row = table.loc["chinchilla"]
    >>> row["form"], f"{row['parameters']:.0e} parameters", f"{row['tokens']:.1e} tokens"
    ('dense', '7e+10 parameters', '1.4e+12 tokens')
    """
    library = need("pandas", "a table", "arrays")
    known: dict[str, dict[str, str]] = defaultdict(dict)
    for fact in load_facts(FILE):
        known[fact.model][fact.fact] = fact.value
    rows = [_row(key, facts) for key, facts in known.items()]
    table: pandas.DataFrame = library.DataFrame(rows).set_index("key")
    text = [fact for fact in FACTS if fact != "month"]
    table[text] = table[text].astype(object).where(table[text].notna(), None)
    table["month"] = library.to_datetime(table["month"], format="%Y-%m")
    return table.sort_values(["month", "parameters"], kind="stable")


def language_model_facts(model: str | None = None) -> list[Fact]:
    """Return what was published of language models, each fact with its source.

    Raises
    ------
    UnknownNameError
        If there is none of that key.

    >>> precision = {each.fact: each for each in language_model_facts("DeepSeek_V3")}["precision"]
    >>> precision.value, precision.quote
    ('fp8', 'We design an FP8 mixed precision training framework')
    """
    found = load_facts(FILE)
    if model is not None and model not in {each.model for each in found}:
        raise unknown_name("language model", model, {each.model for each in found})
    return [each for each in found if model in (None, each.model)]


@cache
def load_facts(path: Path) -> tuple[Fact, ...]:
    """Read a file of facts.

    Raises
    ------
    DataFileError
        If a column is missing or unknown, a cell can't be, a fact stands twice, or a
        model has no month; names file and line.
    """
    found = read(path, tuple(Fact.__dataclass_fields__), _fact)
    lines: dict[tuple[str, str], str] = {}
    for each in found:
        first = lines.setdefault((each.model, each.fact), each.id)
        if first != each.id:
            raise DataFileError(
                f"{path}: {each.id} says the {each.fact} of {each.model} again; {first} has it. "
                "Keep one."
            )
    zoo = _keys(spaces.Models)
    for model in {each.model: None for each in found}:
        for needed in ("month", "maker") if model in zoo else ("month",):
            if (model, needed) not in lines:
                raise DataFileError(f"{path}: {model} has no {needed}: add a row for it.")
    return found


def _fact(record: dict[str, str]) -> Fact:
    cells.choice(record, "fact", FACTS)
    cells.choice(record, "kind", _KINDS)
    _known(record)
    _VALUES[record["fact"]](record)
    for name in ("where", "quote"):
        if not record[name]:
            raise DataFileError(f"{name} is empty: fill it in.")
    words = len(record["quote"].split())
    if words > _QUOTED_WORDS:
        raise DataFileError(f"the quote has {words} words; {_QUOTED_WORDS} at most.")
    fields: dict[str, Any] = {**record, "read": datetime.date.fromisoformat(record["read"])}
    return Fact(**fields)


def _known(record: dict[str, str]) -> None:
    """Refuse a model of which nobody knows a size, and a fact that follows from elsewhere."""
    key, fact = record["model"], record["fact"]
    others = {each.key: each for each in announced()}
    if key in others:
        if fact == "maker":
            raise DataFileError(f"the maker of {key} stands in announced.toml: leave it out here.")
        return
    zoo = _keys(spaces.Models)
    if key not in zoo:
        raise unknown_name("language model", key, [*zoo, *others])
    if fact == "structure" and isinstance(spaces.Models.get(key), Transformer):
        raise DataFileError(f"the structure of {key} follows from its file: leave it out here.")


def _keys(space: spaces.Namespace) -> dict[str, None]:
    """Return the keys of a space, in their order, to look among."""
    return dict.fromkeys(space.keys())


def _month(record: dict[str, str]) -> None:
    if not re.fullmatch(r"(19|20)\d\d-(0[1-9]|1[0-2])", record["value"]):
        raise DataFileError(f"a month must be written as 2024-07, not {record['value']!r}.")


def _one_of(allowed: Collection[str]) -> Any:
    return lambda record: cells.choice(record, "value", allowed)


def _maker(record: dict[str, str]) -> None:
    if not record["value"].strip():
        raise DataFileError("value is empty: name the maker, or leave the row out.")


def _devices(record: dict[str, str]) -> None:
    """Refuse a name that begins like a key of the zoo and is none."""
    devices = _keys(spaces.Hardware)
    groups = {key.partition(".")[0] for key in devices}
    for name in record["value"].split("; "):
        if not name.strip():
            raise DataFileError("value is empty: name the accelerator, or leave the row out.")
        if name.partition(".")[0] in groups and name not in devices:
            raise unknown_name("device", name, devices)


_VALUES = {
    "month": _month,
    "maker": _maker,
    "structure": _one_of(STRUCTURES),
    "precision": _one_of(tuple(PRECISIONS)),
    "weights": _one_of(WEIGHTS),
    "accelerator": _devices,
}


def _row(key: str, facts: dict[str, str]) -> dict[str, Any]:
    """Return what is known of a model, from its facts and from where its size stands."""
    others = {each.key: each for each in announced()}
    sized = _of_announced(others[key]) if key in others else _of_zoo(spaces.Models.get(key))
    tokens, active = sized["tokens"], sized["active_parameters"]
    each = flops_per_parameter_token(_OPERATIONS, _PASSES)
    known = None not in (tokens, active)
    return {
        "key": key,
        **dict.fromkeys(FACTS),
        **sized,
        "flops": training_flops(each, active, tokens) if known else None,
        **facts,
        "accelerator": _named(facts.get("accelerator", "")) or None,
        "counted": key not in others,
    }


def _of_announced(model: Announced) -> dict[str, Any]:
    figures = {name: figure.si for name, figure in model.figures.items()}
    return {
        "name": model.name,
        "maker": model.maker,
        "form": model.form,
        "parameters": model.parameter_count,
        # A token meets all parameters of a dense model. Of experts one has to be told.
        "active_parameters": model.parameter_count
        if model.form == "dense"
        else figures.get("active_parameters"),
        "tokens": figures.get("training_tokens"),
    }


def _of_zoo(model: Model) -> dict[str, Any]:
    count = active = model.parameter_count
    structure = None  # of a network of one pass that reads text, its row of facts says it
    if isinstance(model, Transformer):
        active, structure = model.active_parameter_count, STRUCTURES[model.decoder]
    tokens = model.figures.get("training_tokens")
    return {
        "name": model.name,
        "form": "experts" if active < count else "dense",
        "structure": structure,
        "parameters": float(count),
        "active_parameters": float(active),
        "tokens": tokens.si if tokens else None,
    }


def _named(devices: str) -> str:
    """Return devices by their names, not their keys.

    >>> _named("Cloud.TPUv3; Huawei Ascend 910")
    'Google TPU v3, Huawei Ascend 910'
    """
    zoo = _keys(spaces.Hardware)
    return ", ".join(
        spaces.Hardware.get(each).name if each in zoo else each
        for each in devices.split("; ")
        if each
    )
