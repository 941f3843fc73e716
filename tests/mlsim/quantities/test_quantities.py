"""The vocabulary: one name, one symbol, one unit, one sentence for each concept."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from mlsim import quantities
from mlsim.equations import EQUATIONS
from mlsim.errors import UnknownNameError
from mlsim.quantities import VOCABULARY, Term, term
from mlsim.values import quantity
from mlsim.workloads.operators import COLUMNS

each_term = pytest.mark.parametrize("each", VOCABULARY.values(), ids=lambda entry: entry.name)


@each_term
def test_a_term_is_complete(each: Term) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", each.name)
    assert each.symbol
    assert re.fullmatch(r"[A-Z].*\.", each.definition), "a definition is one sentence"
    assert ". " not in each.definition.removesuffix(".")
    # A unit is one that the registry knows, and a base unit.
    assert quantity(1.0, each.unit).to_base_units().magnitude == 1.0


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
