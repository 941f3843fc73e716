"""The verdict on an answer: right, or which mistake was made.

An answer is judged against the computed one, then against each known wrong path, then
for a slip of the unit, then for its order of magnitude. Units that measure the same are taken.
Where percent is asked, a number without a unit may be a share, too: 0.4 is right for 40 %, and
so is 0.4 for 0.4 %, but "0.4 %" is 0.4 % and nothing else. `verdicts.js` of `mlsim_book`
judges the same way in a reader's browser: it gets the factors and the words from `rules`, and a
test sees that the two agree. Standard library only.

Units as people write them after a number: the factor between two that measure the same.
`verdicts.js` of `mlsim_book` reads units in the same way, from the tables that `rules` returns.
Standard library only.
"""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsim_exercises.data import Exercise
from mlsim_exercises.evaluation import (
    EARNS,
    Evaluation,
    earns,
    is_quantity,
    plain_number,
    same_answer,
)

# Units as people write them, and what is said of an answer.
_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_UNITS: Mapping[str, str] = _FILE["units"]
_PREFIXED: Mapping[str, str] = _FILE["prefixed"]
_PREFIXES: Mapping[str, float] = _FILE["prefixes"]
_SLIPS: Sequence[tuple[float, str]] = _FILE["tables"]["slips"]
_ASKED: Sequence[tuple[str, str]] = _FILE["tables"]["asked"]
_SAYINGS: Mapping[str, str] = {**_FILE["says"], "earns": EARNS}

_BINARY = "[KMGT]i"  # in the unit that is asked for: a K before bytes is then 1,024
_PLURAL = r"([A-Za-z]{3,})s"
_OVER = r" */ *|(?:^| +)per +"

Measure = tuple[float, Mapping[str, int]]


def unit_factor(written: str, unit: str) -> float | None:
    """Return what a number in one unit is multiplied by to be in another one.

    None if they don't measure the same. A capital K before bytes is 1,024 where the other
    unit is binary, and 1,000 elsewhere.

    >>> unit_factor("FLOP/B", "FLOP/byte"), unit_factor("KB", "KiB"), unit_factor("min", "s")
    (1.0, 1.0, 60.0)
    >>> unit_factor("GPUs", "GPU"), unit_factor("requests per minute", "requests/s") == 1 / 60
    (1.0, True)
    >>> unit_factor("ms", "GB"), unit_factor("kB", "KiB"), unit_factor("%", "times")
    (None, 0.9765625, 0.01)
    """
    binary = re.search(_BINARY, unit) is not None
    (given, what), (wanted, asked) = _measure(written, binary), _measure(unit, binary)
    return given / wanted if what == asked else None


@functools.lru_cache(maxsize=2**16)
def _measure(text: str, binary: bool) -> Measure:
    """Return a unit as a factor, and the power of each thing that it measures."""
    total, powers = 1.0, dict[str, int]()
    plain = re.sub("[µμ]", "u", text.strip())
    parts = [plain] if plain in _UNITS else re.split(_OVER, plain)
    for place, part in enumerate(parts):
        for word in [part] if part in _UNITS else re.split(r"[ ·*]+", part):
            value, what = _word(word, binary)
            total = total / value if place else total * value
            for name, power in what.items():
                powers[name] = powers.get(name, 0) + (-power if place else power)
    return total, {name: power for name, power in powers.items() if power}


def _word(word: str, binary: bool) -> Measure:
    if word == "":
        return 1.0, {}
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?", word) and float(word):
        return float(word), {}
    plural = re.fullmatch(_PLURAL, word)
    for known in (word, plural[1] if plural else word):
        if known in _UNITS:
            return _measure(_UNITS[known], binary)
        for end, meaning in _PREFIXED.items():
            prefix = known.removesuffix(end)
            if prefix != known and prefix in _PREFIXES:
                value, what = _measure(meaning, binary) if meaning else (1.0, {end: 1})
                scale = 1024.0 if binary and prefix == "K" else _PREFIXES[prefix]
                return scale * value, what
    return 1.0, {plural[1] if plural else word: 1}


_NEAR = (3, 0.1)  # tolerances, or this part of the answer
_LONGEST = 60  # characters of an answer that is a text

# 1,234.5 or 1.2e3 or 1.2 x 10^3 or 1/12, then maybe a unit. Python and JavaScript both read it.
_DIGITS = (
    r"([-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]*)?|[-+]?\.[0-9]+)"
    r"(?:[eE]([-+]?[0-9]+)(?![0-9.])| ?[x×*·] ?10(?:\^|\*\*)([-+]?[0-9]+))?"
)
_NUMBER = rf"{_DIGITS}(?: ?/ ?{_DIGITS})? *([A-Za-zµμ%×°$€].*)?"
_GAP = r"([0-9])(?:[\u00a0\u2009\u202f ](?=[0-9]{3}(?![0-9]))|_(?=[0-9]))"


@dataclass(frozen=True)
class Verdict:
    """What an answer is, and the message for the person who gave it.

    `kind` is "not attempted", "no answer" (of a form that can't be one), "wrong unit",
    "wrong path", "order of magnitude", "wrong" or "right", or "unmarked" if a person is to read
    it; `score` a share of the points: 1, 0, or what the exercise gives for a mistake; `path`
    which wrong path was taken, from 1.
    """

    kind: str
    message: str
    score: float = 0.0
    path: int | None = None

    def __str__(self) -> str:
        return self.message


def judge(evaluation: Evaluation, given: Any) -> Verdict:
    """Judge an answer: a number, a quantity with a unit, a choice, or a list of choices.

    >>> from mlsim_exercises.evaluation import evaluate
    >>> from mlsim_exercises.data import WrongPath
    >>> paths = (WrongPath("21", "That is half of it."),)
    >>> task = evaluate(Exercise("e", "T", "number", "?", "42", "", unit="ms", wrong=paths))
    >>> for given in (None, 42.1, 21, 0.042, 100, 9e9):
    ...     print(judge(task, given).kind)
    not attempted
    right
    wrong path
    wrong unit
    order of magnitude
    wrong
    """
    exercise = evaluation.exercise
    if _is_blank(given):
        return Verdict("not attempted", _SAYINGS["blank"])
    if exercise.kind == "text":
        if not isinstance(given, str):
            return Verdict("no answer", _SAYINGS["no text"])
        return Verdict("unmarked", _SAYINGS["unmarked"])
    if exercise.kind == "number":
        values = _read_number(exercise, given)
    else:
        values = _read_choices(exercise, given)
    if isinstance(values, Verdict):
        return values
    if any(same_answer(exercise, value, evaluation.answer) for value in values):
        return Verdict("right", f"{_SAYINGS['right']} {evaluation.why}".strip(), score=1.0)
    for number, (wrong, because) in enumerate(
        zip(evaluation.wrong, evaluation.because, strict=True), start=1
    ):
        if any(same_answer(exercise, value, wrong) for value in values):
            score = evaluation.credit(number)
            return Verdict("wrong path", because.strip(), score=score, path=number)
    if exercise.kind == "number":
        return _how_far(exercise, values[0], evaluation.answer)
    return Verdict("wrong", _SAYINGS[exercise.kind])


def asked_for(unit: str) -> str:
    """Say how an answer is given: in which unit, or what it counts.

    >>> asked_for("ms"), asked_for("times"), asked_for("users"), asked_for("billion")
    ('in ms', 'a factor', 'a number of users', 'in billions')
    """
    words = next(words for pattern, words in _ASKED if re.fullmatch(pattern, unit))
    return words.format(unit=unit)


def wanted_as(unit: str) -> str:
    """Say what an answer is.

    >>> wanted_as("ms"), wanted_as("times"), wanted_as("")
    ('a number in ms', 'a factor', 'a plain number')
    """
    asked = asked_for(unit)
    return _SAYINGS["wanted"].format(asked=asked) if asked.startswith("in ") else asked


def rules() -> dict[str, Any]:
    """Return what the script of a page needs to judge as this module does."""
    return {
        "slips": _SLIPS,
        "says": _SAYINGS,
        "asked": _ASKED,
        "near": _NEAR,
        "longest": _LONGEST,
        "number": _NUMBER,
        "gap": _GAP,
        "units": _UNITS,
        "prefixes": _PREFIXES,
        "prefixed": _PREFIXED,
        "binary": _BINARY,
        "plural": _PLURAL,
        "over": _OVER,
    }


def _is_blank(given: Any) -> bool:
    if given is None or given is Ellipsis:
        return True
    if isinstance(given, str):
        return given.strip() in {"", "..."}
    return isinstance(given, list | tuple) and not given


def _read_number(exercise: Exercise, given: Any) -> list[float] | Verdict:
    """Return what an answer may mean in the exercise's unit, or what is wrong with it."""
    wanted = wanted_as(exercise.unit)
    if isinstance(given, str):
        return read_number(given, exercise.unit)
    if isinstance(given, bool | complex | bytes):
        return Verdict("no answer", f"{given!r} is no number: the answer is {wanted}.")
    try:
        value = plain_number(given, exercise.unit)
    except Exception as error:  # noqa: BLE001 - a student's object may raise anything
        return _no_number(given, wanted, str(error))
    return [value] if is_quantity(given) else _readings(value, exercise.unit)


def read_number(given: str, unit: str) -> list[float] | Verdict:
    """Return what a number written as a text may mean in a unit, or what is wrong with it.

    >>> read_number("1,500 µs", "ms"), read_number("0.4", "%"), read_number("2 GB", "ms").message
    ([1.5], [0.4, 40.0], 'That is in GB: the answer is a number in ms.')
    """
    wanted = wanted_as(unit)
    text = re.sub(_GAP, r"\1", given.strip()[: _LONGEST + 1].replace("\u2212", "-"))
    found = re.fullmatch(_NUMBER, text) if len(text) <= _LONGEST else None
    value = _value(*found.groups()[:6]) if found else math.nan
    if found is None or not math.isfinite(value):
        said = _SAYINGS["comma" if re.match("[0-9]+,[0-9]", text) else "no number"]
        return Verdict("no answer", said.format(wanted=wanted))
    if not found[7]:
        return _readings(value, unit)
    times = _fits(found[7], unit)
    if times is None:
        said = _SAYINGS["other unit"].format(unit=found[7].strip(), wanted=wanted)
        return Verdict("wrong unit", said)
    if not math.isfinite(value * times):
        return Verdict("no answer", _SAYINGS["no number"].format(wanted=wanted))
    return [value * times]


def _value(*parts: str | None) -> float:
    """Return a number, or one over another, of the parts that `_NUMBER` finds."""
    above, below = (
        float(f"{digits.replace(',', '')}e{plain or power or 0}") if digits else 1.0
        for digits, plain, power in (parts[:3], parts[3:])
    )
    return above / below if below else math.nan


def _readings(value: float, unit: str) -> list[float]:
    """Return what a number without a unit may mean: where percent is asked, a share, too."""
    return [value, 100 * value] if unit == "%" else [value]


def _fits(written: str, unit: str) -> float | None:
    """Return the factor from what stands after a number to its unit, None if they don't fit.

    What is counted may be described.

    >>> _fits("times as long", "times"), _fits("users per GPU", "users"), _fits("s each", "s")
    (1.0, None, None)
    """
    times = unit_factor(written, unit)
    first, _, more = written.strip().partition(" ")
    if times is None and asked_for(unit) != f"in {unit}" and not re.search(r"/|\bper\b", more):
        return unit_factor(first, unit)
    return times


def _no_number(given: Any, wanted: str, said: str) -> Verdict:
    """Say why something can't be the answer of a numeric exercise."""
    if is_quantity(given) and not _several(said):
        unit = str(getattr(given, "units", "")) or "no unit"
        return Verdict("wrong unit", f"That is in {unit}: the answer is {wanted}.")
    what = str(given) if isinstance(given, int | float) else f"a {type(given).__name__}"
    if isinstance(given, list | tuple | dict | set) or _several(said):
        what = "more than one value"
    return Verdict("no answer", f"That is {what}: the answer is {wanted}.")


def _several(said: str) -> bool:
    """Say whether an error complains of an array, as NumPy's do."""
    return "length-1" in said or "0-dimensional" in said or "only one element" in said


def _read_choices(exercise: Exercise, given: Any) -> list[Any] | Verdict:
    """Return an answer as its exercise writes it, alone in a list, or what is wrong with it.

    Case and surrounding blanks don't count.
    """
    known = {each.strip().casefold(): each for each in exercise.choices}
    allowed = ", ".join(exercise.choices)
    if exercise.kind == "choice":
        found = known.get(str(given).strip().casefold())
        if found is None:
            return Verdict("no answer", f"{given!s:.40} is none of the choices: {allowed}.")
        return [found]
    try:
        items = [known.get(str(each).strip().casefold()) for each in given]
    except TypeError:
        items = []
    if None in items or sorted(map(str, items)) != sorted(exercise.choices):
        return Verdict("no answer", f"The answer is a list with each of these once: {allowed}.")
    return [tuple(items)]


def _how_far(exercise: Exercise, value: float, answer: float) -> Verdict:
    """Judge a number that is neither right nor a known mistake."""
    if answer == 0 or value == 0 or (value < 0) != (answer < 0):
        return Verdict("wrong", _SAYINGS["sign"])
    ratio = value / answer
    for factor, words in _SLIPS:
        for slip in (factor, 1 / factor):
            if same_answer(exercise, value, answer * slip):
                said = [_SAYINGS["slip"].format(by=words)]
                unit = _SAYINGS["unit"].format(asked=asked_for(exercise.unit))
                said += [unit] if exercise.unit else []
                said += [earns(exercise.unit_credit)] if exercise.unit_credit else []
                return Verdict("wrong unit", " ".join(said), score=exercise.unit_credit)
    if not asked_for(exercise.unit).startswith("in ") and same_answer(exercise, 1 / value, answer):
        return Verdict("wrong", _SAYINGS["reciprocal"])
    way = "high" if ratio > 1 else "low"
    if 0.1 < ratio < 10:
        near = abs(ratio - 1) <= max(_NEAR[0] * exercise.tolerance, _NEAR[1])
        far = "twice" if 0.5 < ratio < 2 else "magnitude"
        percent = max(1, int(abs(ratio - 1) * 100 + 0.5))
        words = _SAYINGS["near" if near else far].format(way=way, by=percent)
        return Verdict("order of magnitude", words)
    tens = round(abs(math.log10(ratio)))
    by = _SAYINGS["ten" if tens == 1 else "tens"].format(tens=tens)
    return Verdict("wrong", _SAYINGS["far"].format(way=way, by=by))
