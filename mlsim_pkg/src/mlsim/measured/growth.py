"""How fast something grew: language models by month, a line through logarithms, and records.

What was published of each model stands here fact by fact, with its source: the month, who made it,
its structure, the precision and the machine of its training, whether one may have its weights.
Sizes don't. Of a model of the zoo they follow from its architecture; of any other they stand in
`data/announced.toml`, and so do the tokens of training.

A value that doubles in equal times is a straight line on a logarithmic axis. Its slope is
fitted by least squares, and so every point counts alike, the small ones too. Two questions
have two answers: how fast the usual one grew (all points), and how fast the largest did
(the records alone).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mlsim.equations.runs import flops_per_parameter_token, training_flops
from mlsim.errors import DataFileError, InvalidValueError, need, unknown_name
from mlsim.measured.tables import FILLED, TEXT, Located, Table, one_of
from mlsim.precision import PRECISIONS
from mlsim.records import DATA, KINDS
from mlsim.values import quantity
from mlsim.workloads import Transformer
from mlsim.workloads.announced_models import Announced, announced
from mlsim.workloads.model import Model
from mlsim.zoo import spaces

if TYPE_CHECKING:
    import pandas

    from mlsim.values.kinds import Plain


# Formats of 16 bits in which models are trained; a device may have a peak for one alone.
_SIXTEEN = ("bf16", "fp16")
_BANDWIDTH = "memory.bandwidth"
# Fewer points than these leave nothing by which to judge a line.
_FEWEST = 3
# A band of two standard errors on either side has the slope 19 times of 20, given many points.
_ERRORS = 2.0


@dataclass(frozen=True, slots=True)
class Growth:
    """An exponential through points, as fitted by least squares on logarithms.

    Attributes
    ----------
    slope, error
        Doublings in a year, and the standard error of that.
    middle, level
        The mean of the times, as a year, and the value of the fit there.
    spread
        By which factor a point usually lies above or below the fit: 2 to the standard
        deviation of what is left.
    points
        How many there were.
    what
        What grew, in words.
    """

    slope: float
    error: float
    middle: float
    level: float
    spread: float
    points: int
    what: str = "it"

    @property
    def factor(self) -> float:
        """By how much it grew in a year.

        >>> fit_growth([2020, 2021, 2022], [1, 4, 16]).factor
        4.0
        """
        return float(2.0**self.slope)

    @property
    def doubling_time(self) -> Plain:
        """Years in which it doubled, a value; below 0 if it halved, infinite if it stood still.

        >>> float(fit_growth([2020, 2021, 2022], [1, 4, 16]).doubling_time)
        0.5
        """
        years = 1.0 / self.slope if self.slope else math.inf
        turned = "halved" if years < 0 else "doubled"
        return self._as_value(years, f"years in which {self.what} {turned}")

    @property
    def doublings(self) -> Plain:
        """The slope as a value: how often it doubled in a year."""
        return self._as_value(self.slope, f"doublings of {self.what} in a year")

    def _as_value(self, number: float, words: str) -> Plain:
        made = quantity(number, "1")
        return cast("Plain", made.named(words, because=f"line fitted to {self.points} logarithms"))

    @property
    def doubling_band(self) -> tuple[float, float]:
        """Doubling times for a slope that is two standard errors more, and less.

        The second is infinite if the points don't show that it grew at all.
        """
        fast, slow = self.slope + _ERRORS * self.error, self.slope - _ERRORS * self.error
        return (1.0 / fast if fast > 0 else math.inf, 1.0 / slow if slow > 0 else math.inf)

    def at(self, year: float) -> float:
        """Return the value of the fit at a time; outside of the points it is a guess.

        >>> fit_growth([2020, 2021, 2022], [1, 4, 16]).at(2023)
        64.0
        """
        return float(self.level * 2.0 ** (self.slope * (year - self.middle)))


def fit_growth(years: Sequence[float], values: Sequence[float]) -> Growth:
    """Fit an exponential to values at times.

    Parameters
    ----------
    years
        Times as years, such as 2024.5 for the middle of 2024; at least three, not all the
        same.
    values
        As many positive numbers, in any unit.

    Raises
    ------
    InvalidValueError
        If there are too few points, not as many values as years, all at one time, or a
        number that is not finite or not above 0.

    >>> fit = fit_growth([2018, 2020, 2022], [1, 2, 4])
    >>> round(fit.doubling_time, 6), fit.points
    (2, 3)
    """
    times, logs = _checked(years, values)
    count = len(times)
    middle, mean = math.fsum(times) / count, math.fsum(logs) / count
    square = math.fsum((each - middle) ** 2 for each in times)
    if square == 0:
        raise InvalidValueError(
            f"all points are of one time, {times[0]:g}: give points of several years."
        )
    slope = math.fsum((t - middle) * (y - mean) for t, y in zip(times, logs, strict=True)) / square
    rest = math.fsum(
        (y - mean - slope * (t - middle)) ** 2 for t, y in zip(times, logs, strict=True)
    ) / (count - 2)
    return Growth(
        slope=slope,
        error=math.sqrt(rest / square),
        middle=middle,
        level=2.0**mean,
        spread=2.0 ** math.sqrt(rest),
        points=count,
    )


def _checked(years: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return times, and the logarithms of values to base 2."""
    times, numbers = [float(each) for each in years], [float(each) for each in values]
    if len(times) != len(numbers):
        raise InvalidValueError(
            f"there are {len(times)} years and {len(numbers)} values: give one value a year."
        )
    if len(times) < _FEWEST:
        raise InvalidValueError(
            f"{len(times)} points are too few for a growth: give {_FEWEST} or more."
        )
    for year, value in zip(times, numbers, strict=True):
        if not (math.isfinite(year) and math.isfinite(value) and value > 0):
            raise InvalidValueError(
                f"the value at {year:g} is {value:g}: a growth needs finite numbers above 0. "
                "Leave out what is not known."
            )
    return times, [math.log2(each) for each in numbers]


def growth_of(
    table: pandas.DataFrame, column: str, *, since: float = -math.inf, until: float = math.inf
) -> Growth:
    """Fit a column of a table that has times; rows without a value are left out.

    Parameters
    ----------
    table
        With a column "month" of dates (as of `language_models()`), or "year".
    column
        What grew.
    since, until
        Years between which to look, the first included.

    Raises
    ------
    UnknownNameError
        If the table has no such column.
    InvalidValueError
        If fewer than three points are left.

    >>> from mlsim.measured import language_models
    >>> growth_of(language_models(), "tokens").factor > 1
    True
    """
    _column(table, column)
    times = years(table)
    kept = table[column].notna() & (times >= since) & (times < until)
    fit = fit_growth(times[kept].to_list(), table.loc[kept, column].to_list())
    return replace(fit, what=column.replace("_", " "))


def records(table: pandas.DataFrame, column: str) -> pandas.DataFrame:
    """Return the rows that were the largest so far when they came out, in order of time.

    Of several at one time the largest counts.

    Raises
    ------
    UnknownNameError
        If the table has no such column.

    >>> from mlsim.measured import language_models
    >>> records(language_models(), "parameters")["name"].to_list()[:3]
    ['GPT-1', 'BERT-Large', 'GPT-2 XL (1.5B)']
    """
    _column(table, column)
    times = years(table)
    known = table[table[column].notna() & times.notna()].assign(_time=times)
    known = known.sort_values(["_time", column], ascending=[True, False], kind="stable")
    best = known[column].cummax()
    first = known[column].gt(best.shift(fill_value=-math.inf))
    return known[first].drop(columns="_time")


def years(table: pandas.DataFrame) -> pandas.Series[float]:
    """Return the times of a table as years: the middle of a month, or of a year.

    Raises
    ------
    UnknownNameError
        If it has neither a column "month" nor "year".

    >>> from mlsim.measured import language_models
    >>> float(round(years(language_models())["chinchilla"], 3))
    2022.208
    """
    if "month" in table:
        month: Any = table["month"].dt
        middle: pandas.Series[float] = month.year + (month.month - 0.5) / 12
        return middle
    if "year" in table:
        return table["year"] + 0.5
    raise unknown_name("column of times", "month", list(table.columns))


def _column(table: pandas.DataFrame, column: str) -> None:
    if column not in table:
        raise unknown_name("column", column, list(table.columns))


def accelerators(group: str = "Cloud") -> pandas.DataFrame:
    """Return the devices of a group of the zoo by year, with the three rates that count.

    Returns
    -------
    pandas.DataFrame
        By key: `name`, `year`, `peak` (FLOP/s, dense, in the better of BF16 and FP16),
        `capacity` (bytes) and `bandwidth` (B/s) of the main memory. What is not known is
        NaN. Chips without DRAM are left out: their memory is another kind of thing.

    Raises
    ------
    UnknownNameError
        If the zoo has no such group.
    MissingLibraryError
        If pandas is not installed.

    >>> table = accelerators()
    >>> f"{table.loc['Cloud.H100', 'peak']:.4g}"
    '9.89e+14'
    """
    keys: list[str] = spaces.Hardware.keys()
    groups = {key.partition(".")[0] for key in keys}
    if group not in groups:
        raise unknown_name("group of devices", group, groups)
    library = need("pandas", "a table", "arrays")
    found = [
        each
        for each in spaces.Hardware
        if each.key.startswith(f"{group}.") and "SRAM" not in each.figures[_BANDWIDTH].note
    ]
    rows = []
    for each in found:
        peaks = [each.figures.get(f"compute.{name}") for name in _SIXTEEN]
        rows.append(
            {
                "key": each.key,
                "name": each.name,
                "year": each.release_year,
                "peak": max((peak.si for peak in peaks if peak), default=math.nan),
                "capacity": each.memory.printed_figure.si,
                "bandwidth": each.bandwidth_si,
            }
        )
    table: pandas.DataFrame = library.DataFrame(rows).set_index("key")
    return table.sort_values(["year", "peak"], kind="stable")


FILE = DATA / "growth" / "language_models.csv"

STRUCTURES = ("encoder", "decoder", "both")
# Published for all, published under terms that restrict the use, or not published.
WEIGHTS = ("open", "limited", "closed")
FACTS = ("month", "maker", "structure", "precision", "weights", "accelerator")
_QUOTED_WORDS = 15
# Operations of a multiply-add, and how many of them: one forward and two backward.
_OPERATIONS, _PASSES = 2.0, 3.0


@dataclass(frozen=True, kw_only=True)
class Fact(Located):
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

    model: str
    fact: str
    value: str
    kind: str


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
    found = FACT_ROWS.load(path)
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


def _check_fact(row: Fact) -> None:
    """Refuse a model of which nobody knows a size, and a fact that follows from elsewhere."""
    words = len(row.quote.split())
    if words > _QUOTED_WORDS:
        raise DataFileError(f"the quote has {words} words; {_QUOTED_WORDS} at most.")
    others, zoo = [each.key for each in announced()], _keys(spaces.Models)
    if row.model not in others and row.model not in zoo:
        raise unknown_name("language model", row.model, [*zoo, *others])
    if row.model in others and row.fact == "maker":
        raise DataFileError(
            f"the maker of {row.model} stands in announced.toml: leave it out here."
        )
    network = row.model in others or not isinstance(spaces.Models.get(row.model), Transformer)
    if row.fact == "structure" and not network:
        raise DataFileError(
            f"the structure of {row.model} follows from its file: leave it out here."
        )
    if not all(each.strip() for each in row.value.split("; ")):
        raise DataFileError(f"value is empty: name the {row.fact}, or leave the row out.")
    if row.fact == "month" and not re.fullmatch(r"(19|20)\d\d-(0[1-9]|1[0-2])", row.value):
        raise DataFileError(f"a month must be written as 2024-07, not {row.value!r}.")
    if row.fact in _WORDS:
        one_of(_WORDS[row.fact]).read({"value": row.value}, "value")
    if row.fact == "accelerator":
        # A name that begins like a key of the zoo must be one.
        devices = _keys(spaces.Hardware)
        groups = {key.partition(".")[0] for key in devices}
        for name in row.value.split("; "):
            if name.partition(".")[0] in groups and name not in devices:
                raise unknown_name("device", name, devices)


def _keys(space: spaces.Namespace) -> dict[str, None]:
    """Return the keys of a space, in their order, to look among."""
    return dict.fromkeys(space.keys())


_WORDS = {"structure": STRUCTURES, "precision": tuple(PRECISIONS), "weights": WEIGHTS}
FACT_ROWS = Table(
    Fact,
    FILE,
    {
        "model": TEXT,
        "fact": one_of(FACTS),
        "kind": one_of([kind for kind in KINDS if kind != "given"]),
        **dict.fromkeys(("where", "quote"), FILLED),
    },
    check=_check_fact,
)


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
