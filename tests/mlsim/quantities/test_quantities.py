"""The vocabulary: one name, one symbol, one unit, one sentence for each concept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlsim.equations import EQUATIONS
from mlsim.errors import DataFileError, UnknownNameError
from mlsim.quantities import VOCABULARY, Vocabulary, term
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


WRONG = {
    "a line that is none": (
        'length = ["l", "s", "A length."]\nheight ["h", "s", "A height."]',
        ":2: ",
    ),
    "a name that is none": ('Length = ["l", "s", "A length."]', ":1: a term is one line"),
    "a name of another topic": ('batch_size = ["B", "1", "A batch."]', ":1: batch_size stands in"),
    "no TOML": ('length = ["l", "s", "A length."', ":1: length: "),
    "two texts": ('length = ["l", "s"]', ":1: length needs [symbol, unit, definition]"),
    "a number": ('length = ["l", 1, "A length."]', ":1: length needs"),
    "no base unit": ('length = ["l", "GB/s", "A length."]', ":1: length: 'GB/s' is no base unit"),
    "no unit": ('length = ["l", "", "A length."]', ":1: length: '' is no base unit"),
}


@pytest.mark.parametrize(("lines", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_line_is_refused_with_its_file_and_line(
    tmp_path: Path, lines: str, words: str
) -> None:
    """A second definition, too, which would take the place of the first without a word."""
    (tmp_path / "first.toml").write_text('# First.\n\nbatch_size = ["B", "sample", "A batch."]\n')
    (tmp_path / "second.toml").write_text(lines)
    with pytest.raises(DataFileError, match=re.escape(f"second.toml{words}")):
        list(Vocabulary(tmp_path, ("first", "second")).values())


def test_every_term_is_used() -> None:
    used = {name for each in EQUATIONS.values() for name in (*each.inputs, each.yields)}
    assert set(VOCABULARY) - used == set()


def test_operators_have_columns_of_the_vocabulary() -> None:
    assert set(COLUMNS) <= set(VOCABULARY)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="no quantity is called 'memory_bandwith'") as e:
        term("memory_bandwith")
    assert "Did you mean 'memory_bandwidth'?" in str(e.value)
