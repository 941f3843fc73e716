"""Verdicts: what is said to each kind of answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pint
import pytest
from kept import cases

from mlsim_exercises.data import Exercise, WrongPath
from mlsim_exercises.evaluation import Evaluation, evaluate
from mlsim_exercises.verdicts import judge, unit_factor

PATHS = (
    WrongPath("50", "That is sparse."),
    WrongPath("-100", "The sign."),
    WrongPath("250", "One way for {n} ways."),
)


def number(answer: str = "100.0", solution: str = "", **given: Any) -> Evaluation:
    """A question whose answer is 100 ms."""
    fields = {"unit": "ms", "tolerance": 0.01, "wrong": PATHS, "given": {"n": (2,)}, **given}
    return evaluate(Exercise("e", "T", "number", "?", answer, solution, **fields))


# What no file of cases can hold: what is blank, numbers of NumPy and Python, and no numbers at all.
ODD: list[tuple[Any, str, str]] = [
    (None, "not attempted", "Not attempted"), (..., "not attempted", "Not attempted"),
    (np.float32(100), "right", "Right."), (np.array([100.0])[0], "right", "Right."),
    (np.array([100.0, 1.0]), "no answer", "more than one value"),
    (10**400, "no answer", "a number in ms"), (1j, "no answer", "no number"),
    (object(), "no answer", "a object"),
]  # fmt: skip


def test_a_number() -> None:
    for given, kind, words in [*ODD, *cases("verdicts_of_numbers.toml")]:
        verdict = judge(number(), given)
        assert (verdict.kind, words in verdict.message) == (kind, True), (given, verdict)
        assert verdict.score == (1.0 if kind == "right" else 0.0)
        assert (verdict.path is not None) == (kind == "wrong path")


def test_a_quantity() -> None:
    units = pint.UnitRegistry()
    assert judge(number(), units.Quantity(0.1, "s")).kind == "right"
    assert judge(number(), units.Quantity(100, "ms")).kind == "right"
    assert judge(number(), units.Quantity(100, "s")).kind == "wrong unit"
    assert "off by a factor of 1,000" in judge(number(), units.Quantity(100, "s")).message
    wrong = judge(number(), units.Quantity(100, "m"))
    assert wrong.kind == "wrong unit"
    assert "That is in meter: the answer is a number in ms" in wrong.message
    bare = units.Quantity(100, "dimensionless")
    assert judge(number(unit="times"), bare).kind == judge(number(unit=""), bare).kind == "right"
    assert judge(number(unit="%"), units.Quantity(1.0, "")).kind == "right"
    assert judge(number(), bare).kind == "wrong unit"
    assert judge(number(), units.Quantity(np.array([1.0, 2.0]), "s")).kind == "no answer"


def test_a_count_that_is_missed_by_one_is_nearly_right() -> None:
    """Of 40 for 41, nobody says that the order of magnitude is right."""
    count = number("41", unit="GPUs", tolerance=0.005)
    for given, words in {40: "Too low by 2 %.", 30: "less than a factor of two"}.items():
        message = judge(count, given).message
        assert words in message
        assert "order of magnitude" not in message


def test_one_over_the_answer_is_named() -> None:
    assert "one over the answer" in judge(number("1.53", unit="times", wrong=()), 0.65).message
    assert "one over the answer" not in judge(number(wrong=()), 0.01).message


def test_a_share_where_per_cent_is_asked() -> None:
    for given, answer, kind in [
        (0.4, "40", "right"), ("0.4", "40", "right"), ("2/5", "40", "right"),  # a share
        ("0.4 %", "40", "wrong unit"),  # whoever writes the sign means per cent
        (40, "40", "right"), ("40 %", "40", "right"),
        (0.4, "0.4", "right"), ("0.4 %", "0.4", "right"), (40, "0.4", "wrong unit"),  # 0.4 %
        (0.2, "40", "wrong path"),  # the same mistake, as a share
        (0.004, "40", "wrong"),
    ]:  # fmt: skip
        task = number(answer, unit="%", wrong=(WrongPath(f"{answer} / 2", "Half."),))
        assert judge(task, given).kind == kind, (given, answer)


def test_whoever_is_right_is_told_why() -> None:
    solution = "{answer:g} s. [Each *liter* takes [its own]{{.given}}\nenergy.]{{.why}} And more."
    task = number("42", unit="", solution=solution)
    assert task.why == "Each *liter* takes [its own]{.given} energy."
    assert judge(task, 42).message == f"Right. {task.why}"
    assert judge(task, 41).message == "Too low by 2 %. What did you round, or leave out?"


def test_an_answer_of_zero_and_a_text() -> None:
    zero = number("0", unit="")
    assert judge(zero, 0).kind == "right"
    assert judge(zero, 0.001).kind == "wrong"
    assert str(judge(zero, 0)) == "Right."


def test_choices_and_orders() -> None:
    path = (WrongPath("'b'", "No: b is c."),)
    asked = Exercise("e", "T", "choice", "?", "'A b'", "", choices=("A b", "b", "c"), wrong=path)
    choice = evaluate(asked)
    for given, kind in {
        "A b": "right", " a B ": "right", "b": "wrong path", "c": "wrong", "z": "no answer",
        "": "not attempted",
    }.items():  # fmt: skip
        assert judge(choice, given).kind == kind, given
    assert "A b, b, c" in judge(choice, "z").message
    assert judge(choice, 3).kind == "no answer"
    back = (WrongPath("['c', 'b', 'a']", "Highest first."),)
    letters = "['a', 'b', 'c']"
    order = evaluate(
        Exercise("e", "T", "order", "?", letters, "", choices=("c", "a", "b"), wrong=back)
    )
    assert judge(order, ["a", "B", "c"]).kind == "right"
    assert judge(order, ("c", "b", "a")).message == "Highest first."
    assert judge(order, ["b", "a", "c"]).kind == "wrong"
    for given in (["a", "b"], ["a", "a", "b"], 7, "abc, d", ["a", "b", "c", "d"], {"a": 1}):
        assert judge(order, given).kind == "no answer"
    assert judge(order, "abc").kind == "right"  # a text is a list of letters


def test_a_factor_and_a_count_are_asked_for_as_such() -> None:
    factor, count = number(unit="times"), number(unit="users")
    for given in ("100", "100 times", "100x", "100 times as long", "100 times faster"):
        assert judge(factor, given).kind == "right", given
    for given in ("100 users", "100 user", "100 users at most"):
        assert judge(count, given).kind == "right", given
    for given in ("100 users per GPU", "100 users/s", "100 kettles"):
        assert judge(count, given).message.endswith("the answer is a number of users."), given
    assert judge(number(unit="billion"), "100 billion grains").kind == "right"
    assert judge(number(unit="billion"), "fast").message.endswith("is a number in billions.")
    assert judge(number(), "100 ms each").kind == "wrong unit"
    assert judge(factor, 1.0).message.endswith("The answer is a factor.")
    assert judge(number(unit="Gbps"), "fast").message.endswith("is a number in Gbps.")


def test_what_stands_above_and_below_a_line_and_how_long_a_number_is() -> None:
    for unit, given, kind in [
        ("B s", "100 B/s", "wrong unit"), ("B/s", "100 s/B", "wrong unit"), ("B/s", "100 B/s", "right"),
        ("B/s", "6000 B/min", "right"), ("s", "0" * 57 + "100", "right"), ("s", "0" * 58 + "100", "no answer"),
        ("B", "100 B / 0", "wrong unit"),
    ]:  # fmt: skip
        assert judge(number(unit=unit, wrong=()), given).kind == kind, given


def test_each_unit_by_its_definition() -> None:
    """Prefixes by their powers, SI's and IEC's; units by what they stand for."""
    powers = {"n": -9, "u": -6, "m": -3, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
    words = {"nano": -9, "micro": -6, "milli": -3, "kilo": 3, "mega": 6, "giga": 9, "tera": 12}
    for prefix, power in {**powers, **words}.items():
        name = f"{prefix}second" if len(prefix) > 1 else f"{prefix}s"
        assert unit_factor(name, "s") == pytest.approx(10**power), name
    for power, prefix in enumerate(("Ki", "Mi", "Gi", "Ti"), 1):
        assert unit_factor(f"{prefix}B", "B") == 2 ** (10 * power)
    assert unit_factor("KB", "MiB") == 2**-10
    for given, unit, times in cases("units.toml"):
        assert unit_factor(given, unit) == pytest.approx(times), (given, unit)


def test_each_slip_of_a_unit_is_named_both_ways() -> None:
    """A seventh of a prime, so that no slip looks like another."""
    task = number("1373 / 7", unit="J", tolerance=1e-4, wrong=())
    for factor, words in {
        24: "24, as between hours and days", 60: "60, as between seconds and minutes",
        100: "100, as between a share and percent", 1000: "1,000", 1024: "1,024",
        3600: "3,600, as between seconds and hours", 10**6: "1,000,000", 10**9: "1,000,000,000",
        10**12: "1,000,000,000,000",
    }.items():  # fmt: skip
        for given in (1373 / 7 * factor, 1373 / 7 / factor):
            said = judge(task, given)
            assert said.kind == "wrong unit"
            assert f"you are off by a factor of {words}. The answer is in J." in said.message
