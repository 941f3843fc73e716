"""Options of cells, pages and books: checked values, the cascade, hints for typing errors."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from kept import FIXTURES, untold

from mlsim_book.errors import Problems, SourceError
from mlsim_book.read.lines import attributes, fence_for, value_text
from mlsim_book.read.qmd import (
    CELL,
    check_metadata,
    merge,
    page_defaults,
    parse_options,
    read_document,
)
from mlsim_book.read.yamlfile import (
    book_package,
    book_settings,
    load_yaml,
    named_paths,
    read_yaml,
    web_address,
)

UNCHECKED = {"slideshow", "export"}  # they take anything


VALUES = FIXTURES / "option_values.csv"


def give(where: str, option: str, value: str) -> None:
    """Give an option a value, on line 2."""
    if where == "cell":
        parse_options(["flavour: mint", f"{option}: {value}"], file="a", line=1)
        return
    blocks = {"execute": "{execute: {%s}}", "html": "{format: {html: {%s}}}"}
    text = f"# options\n{blocks[where] % f'{option}: {value}'}"
    check_metadata(load_yaml(text, file="a"))


def test_options_take_what_quarto_s_take() -> None:
    rows = list(csv.DictReader(VALUES.read_text("utf-8").splitlines()[2:]))
    assert {row["option"] for row in rows if row["where"] == "cell"} >= {*CELL} - UNCHECKED
    odd = []
    for row in rows:
        where, option = row["where"], row["option"]
        for value in row["takes"].split(" | "):
            try:
                give(where, option, value)
            except SourceError as error:
                odd.append(str(error))
        for value in filter(None, row["refuses"].split(" | ")):
            try:
                give(where, option, value)
            except SourceError as error:
                odd += [] if error.line == 2 and f"'{option}' is " in str(error) else [str(error)]
            else:
                odd.append(f"{where}: {option}: {value} was taken")
    assert odd == []

    def below(option: str) -> None:
        parse_options(["error: false", option], file="a", line=4)

    assert untold(below, "wrong_options.toml") == []
    with pytest.raises(SourceError, match="must be `name: value`, got 'just words'"):
        parse_options(["just words"], file="a", line=4)
    lines = ["fig-cap: |", "  One", "  two", "label: fig-a"]
    assert parse_options(lines, file="a", line=1) == {"fig-cap": "One\ntwo\n", "label": "fig-a"}


def test_cascade() -> None:
    book = {"execute": {"echo": False, "warning": False}, "format": {"html": {"code-fold": True}}}
    folder = {"execute": {"echo": True}}
    page = {"execute": {"output": False}, "fig-width": 4}
    defaults = page_defaults(merge(merge(book, folder), page))
    assert defaults.of({}, "echo") is True
    assert defaults.of({}, "warning") is False
    assert defaults.of({}, "output") is False
    assert defaults.of({"output": True}, "output") is True
    assert defaults.of({}, "code-fold") is True
    assert (defaults.values["fig-width"], defaults.values["fig-height"]) == (4, 5)
    built_in = {
        name: value for name, value in page_defaults({}).values.items() if value is not None
    }
    assert built_in == {
        "echo": True, "eval": True, "output": True, "include": True, "warning": True, "error": False,
        "fig-width": 7, "fig-height": 5, "fig-dpi": 96, "fig-format": "svg",
        "figure-theme": False, "figure-data": False,
    }  # fmt: skip
    assert defaults.of({}, "flavour") is None
    data: dict[str, Any] = {"echo": False, "execute": {"echo": True}}
    assert page_defaults(data).of({}, "echo") is True  # `execute` beats the top
    data["format"] = {"html": {"echo": False}}
    assert page_defaults(data).of({}, "echo") is False  # and a format beats both


def test_mistyped_options_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.qmd"
    path.write_text(
        "```{python}\n#| fig-capt: A\n#| flavour: mint\n#| fig-cap: '`{python} n` cups'\n1\n#| echo: false\n```\n"
    )
    problems = Problems()
    read_document(path, root=tmp_path, problems=problems)
    below = problems.found.pop(0)
    assert (below.line, "below code" in below.message) == (6, True)
    assert [problem.line for problem in problems.found] == [2, 4]
    assert "'fig-cap'" in (problems.found[0].hint or "")
    assert "isn't run" in problems.found[1].message


# -------------------------------------------------------- YAML, and a book's settings
def test_scalars_are_those_of_json_and_lines_are_known(tmp_path: Path) -> None:
    text = "a: yes\nb: true\nc: 2024-05-06\nd: 1e3\ne: 010\nf: null\ng: on\nh: 12:30\ni: ~\nj: 0x1F\nk: 0o17\n"
    assert load_yaml(text, file="x.yml").data == {
        "a": "yes", "b": True, "c": "2024-05-06", "d": 1000.0, "e": 10, "f": None, "g": "on",
        "h": "12:30", "i": None, "j": 31, "k": 15,
    }  # fmt: skip
    source = load_yaml("book:\n  chapters:\n    - a.qmd\n    - b.qmd\n", file="x", first_line=10)
    assert source.line("book") == 10
    assert source.line("book", "chapters", 1) == 13
    assert source.line("book", "absent", "deeper") == 10
    assert load_yaml("", file="x").data == load_yaml("# only a comment\n", file="x").data == {}
    merged = load_yaml("base: &b {a: 1, c: 3}\nnew:\n  <<: *b\n  a: 2\n", file="x").data
    assert merged["new"] == {"a": 2, "c": 3}
    assert (
        untold(lambda text: load_yaml(text, file="a.qmd", first_line=11), "wrong_yaml.toml") == []
    )
    (tmp_path / "x.yml").write_bytes(b"title: \xff\n")
    with pytest.raises(SourceError, match="UTF-8"):
        read_yaml(tmp_path / "x.yml", name="x.yml")


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
