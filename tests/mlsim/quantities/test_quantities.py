"""The vocabulary: one name, one symbol, one unit, one sentence for each concept."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from mlsim import quantities
from mlsim.equations import EQUATIONS
from mlsim.errors import UnknownNameError
from mlsim.quantities import VOCABULARY, term
from mlsim.values import quantity
from mlsim.workloads.model import COLUMNS


def test_a_term_is_complete() -> None:
    """A name of words, a symbol, a definition of one sentence, a base unit of the registry."""
    broken = [
        each.name
        for each in VOCABULARY.values()
        if not (
            re.fullmatch(r"[a-z]+(_[a-z]+)*", each.name)
            and not re.match(r"$|[A-Za-z]{2}", each.symbol)  # a letter, or TeX
            and re.fullmatch(r"[A-Z].*\.", each.definition)
            and ". " not in each.definition.removesuffix(".")
            and quantity(1.0, each.unit).to_base_units().magnitude == 1.0
        )
    ]
    assert broken == []


def test_no_two_terms_share_a_symbol() -> None:
    symbols = [each.symbol for each in VOCABULARY.values()]
    assert len(symbols) == len(set(symbols))


def test_no_name_stands_in_two_topics() -> None:
    """A second definition would take the place of the first without a word."""
    names = [
        entry[0]
        for topic in quantities._TOPICS
        for entry in import_module(f"mlsim.quantities.{topic}").ENTRIES
    ]
    assert sorted(names) == sorted(set(names))


def test_every_term_is_used() -> None:
    used = {name for each in EQUATIONS.values() for name in (*each.inputs, each.yields)}
    assert set(VOCABULARY) - used == set()


def test_operators_have_columns_of_the_vocabulary() -> None:
    assert set(COLUMNS) <= set(VOCABULARY)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="no quantity is called 'memory_bandwith'") as e:
        term("memory_bandwith")
    assert "Did you mean 'memory_bandwidth'?" in str(e.value)
