"""YAML: lines, refused duplicates, and scalars as Quarto reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsim_book.errors import SourceError
from mlsim_book.read.yamlfile import load_yaml, read_yaml


def test_scalars_are_those_of_json() -> None:
    text = "a: yes\nb: true\nc: 2024-05-06\nd: 1e3\ne: 010\nf: null\ng: on\nh: 12:30\ni: ~\nj: 0x1F\nk: 0o17\n"
    assert load_yaml(text, file="x.yml").data == {
        "a": "yes",
        "b": True,
        "c": "2024-05-06",
        "d": 1000.0,
        "e": 10,
        "f": None,
        "g": "on",
        "h": "12:30",
        "i": None,
        "j": 31,
        "k": 15,
    }


def test_lines_of_keys_and_items() -> None:
    source = load_yaml("book:\n  chapters:\n    - a.qmd\n    - b.qmd\n", file="x", first_line=10)
    assert source.line("book") == 10
    assert source.line("book", "chapters", 1) == 13
    assert source.line("book", "absent", "deeper") == 10


def test_empty_text_is_an_empty_mapping() -> None:
    assert load_yaml("", file="x").data == {}
    assert load_yaml("# only a comment\n", file="x").data == {}


def test_anchors_and_merge_keys() -> None:
    text = "base: &b {a: 1, c: 3}\nnew:\n  <<: *b\n  a: 2\n"
    assert load_yaml(text, file="x").data["new"] == {"a": 2, "c": 3}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('ok: 1\ntitle: "unclosed\ntoc: true\n', 12, "Check quotes and indentation"),
        ("a: 1\nb: c: d\n", 12, "a value that contains"),
        ("a: 1\n\na: 2\n", 13, "twice"),
        ("x: !expr 1 + 1\n", 11, "Tags such as !expr need R"),
        ("? [a, b]\n: c\n", 11, "a key must be a word"),
    ],
)
def test_errors_name_the_line(text: str, line: int, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        load_yaml(text, file="a.qmd", first_line=11)
    assert (caught.value.file, caught.value.line) == ("a.qmd", line)
    assert words in str(caught.value)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_bytes(b"title: \xff\n")
    with pytest.raises(SourceError, match="UTF-8"):
        read_yaml(path, name="x.yml")
