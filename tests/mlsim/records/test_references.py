"""The bibliography, as the package reads it."""

from __future__ import annotations

import re
from datetime import date

import pytest

from mlsim.errors import UnknownNameError
from mlsim.records.references import PATH, Reference, reference, references

CONTENT = PATH.read_text(encoding="utf-8")

each_reference = pytest.mark.parametrize("each", references().values(), ids=lambda entry: entry.key)


def test_every_entry_of_the_file_is_read() -> None:
    keys = re.findall(r"^@\w+\{([^,]+),", CONTENT, re.MULTILINE)
    assert len(keys) == len(set(keys)), "a key stands twice"
    assert list(references()) == keys
    assert keys == sorted(keys), "entries stand in the order of their keys"


@each_reference
def test_a_reference_is_complete(each: Reference) -> None:
    assert each.title
    assert each.author
    assert not set("{}") & set(each.title)
    # What is not a book can be looked up on the web.
    assert re.match("https?://", each.url) or each.kind in ("book", "unpublished")
    assert each.title in each.text()


@each_reference
def test_dates_are_those_of_biblatex(each: Reference) -> None:
    """Readers stricter than pandoc (Typst's) refuse the file for one date that is no number."""
    if "year" in each.fields:
        assert re.fullmatch(r"(19|20)\d\d", each.year)
    else:  # lists then say "n.d." by themselves, and when it was read
        assert each.accessed
        assert f"n.d., {each.url}, accessed {each.accessed}" in each.text()
    if each.accessed:
        assert date.fromisoformat(each.accessed).isoformat() == each.accessed


def test_text_of_a_reference() -> None:
    assert reference("williams2009roofline").text() == (
        "Williams, Samuel and Waterman, Andrew and Patterson, David, "
        "“Roofline: An Insightful Visual Performance Model for Multicore Architectures”, "
        "2009, https://doi.org/10.1145/1498765.1498785"
    )


def test_an_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'williams2009roofline'"):
        reference("williams2008roofline")
