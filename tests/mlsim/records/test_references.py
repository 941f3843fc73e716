"""The bibliography, as the package reads it."""

from __future__ import annotations

import re
from datetime import date

import pytest

from mlsim.errors import UnknownNameError
from mlsim.records.references import PATH, Reference, reference, references

CONTENT = PATH.read_text(encoding="utf-8")


def test_every_entry_of_the_file_is_read() -> None:
    keys = re.findall(r"^@\w+\{([^,]+),", CONTENT, re.MULTILINE)
    assert len(keys) == len(set(keys)), "a key stands twice"
    assert list(references()) == keys
    assert keys == sorted(keys), "entries stand in the order of their keys"


def test_a_reference_is_complete_and_dated_as_biblatex_asks() -> None:
    """What is not a book is on the web; a date that is no number ends stricter readers (Typst's)."""
    wrong = [each.key for each in references().values() if not (complete(each) and dated(each))]
    assert wrong == []


def complete(each: Reference) -> bool:
    on_web = re.match("https?://", each.url) or each.kind in ("book", "unpublished")
    named = each.title and each.author and not set("{}") & set(each.title)
    return bool(on_web and named and each.title in each.text())


def dated(each: Reference) -> bool:
    if each.accessed and date.fromisoformat(each.accessed).isoformat() != each.accessed:
        return False
    if "year" in each.fields:
        return bool(re.fullmatch(r"(19|20)\d\d", each.year)) and "n.d." not in each.text()
    # lists then say "n.d." by themselves, and when it was read
    return bool(each.accessed) and f"n.d., {each.url}, accessed {each.accessed}" in each.text()


def test_text_of_a_reference() -> None:
    found = reference("williams2009roofline")
    assert (found.key, found.kind, found.year) == ("williams2009roofline", "article", "2009")
    assert found.text() == (
        "Williams, Samuel and Waterman, Andrew and Patterson, David, "
        "“Roofline: An Insightful Visual Performance Model for Multicore Architectures”, "
        "2009, https://doi.org/10.1145/1498765.1498785"
    )


def test_an_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'williams2009roofline'"):
        reference("williams2008roofline")
