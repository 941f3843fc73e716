"""What stands under `mlsim-book:`, and the addresses that a book gives."""

from __future__ import annotations

from typing import Any

import pytest

from mlsim_book.errors import SourceError
from mlsim_book.read.attributes import attributes, fence_for, value_text
from mlsim_book.read.settings import book_package, book_settings, named_paths, web_address


def given(**settings: Any) -> dict[str, Any]:
    return {"mlsim-book": settings}


def test_the_package_of_a_book() -> None:
    assert book_package({}) is book_package(given(path="a")) is None
    plain = book_package(given(package="kettle"))
    assert plain is not None
    assert (plain.name, plain.path, plain.extras, plain.wanted) == ("kettle", None, (), "kettle")
    more = book_package(given(package="_k2", path="p", extras=["a", "b"]))
    assert more is not None
    assert (more.path, more.wanted, more.with_extras) == ("p", "_k2[a,b]", "[a,b]")
    for name in ("2k", "a-b", "a.b", "", 3):
        with pytest.raises(SourceError, match="which must be an importable name"):
            book_package(given(package=name))


def test_lists_of_paths() -> None:
    assert named_paths({}, "key", "so") == []
    assert named_paths(given(key=["a", "b"]), "key", "so") == ["a", "b"]
    for wrong in ("a", [1], {"a": 1}, None):
        with pytest.raises(SourceError, match=r"`mlsim-book: key:` is .* list of paths\n  so"):
            named_paths(given(key=wrong), "key", "so")
    assert book_settings({"mlsim-book": ["a"]}) == {}


def test_addresses() -> None:
    assert web_address("https://a.org/b/") == "https://a.org/b"
    for wrong in ("a.org", "https://a b", "https://a'", "HTTPS://a", "https://", "https://a<b>"):
        with pytest.raises(SourceError, match="is no address"):
            web_address(wrong)


def test_values_between_quotes() -> None:
    texts = {
        "a\\b": "a\\\\b", 'a "b"': 'a \\"b\\"', "a\nb": "a b", 2: "2", False: "false",
    }  # fmt: skip
    assert {value: value_text(value) for value in texts} == texts
    assert value_text({"a": [1, 2]}) == '{\\"a\\":[1,2]}'
    assert attributes(label="", classes=[".a", "b"], pairs={"c": 0, "d": None}) == '{.a .b c="0"}'
    assert attributes() == "{}"
    assert [fence_for(text) for text in ("", "`a``", "````")] == ["```", "```", "`````"]
    assert fence_for("`a``", least=1) == "```"
