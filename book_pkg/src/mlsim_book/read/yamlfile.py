"""Read YAML with the line of every key, so that an error can name file and line.

YAML as Quarto reads it (JSON-like scalars): only `true` and `false` are
booleans, so `yes`, `no` and `on` are words; dates and times are words too.
A key written twice is refused, where most readers silently keep the last.

The settings of this builder: `mlsim-book:` in `_quarto.yml` or in front matter.

What an option may hold, and how a wrong value is refused. A `Kind` is a predicate with words for
it. Cell options and the options of `execute:` and `format: html:` are tables of name -> Kind,
checked the same way.
"""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mlsim_book.errors import SourceError
from mlsim_exercises.data import Key, Places


@dataclass(frozen=True)
class YamlFile(Places):
    """The data of a YAML text, and the line on which each key or item stands."""

    data: Any

    def error(self, message: str, *path: str | int, hint: str | None = None) -> SourceError:
        """Return an error at the line of a key."""
        return SourceError(message, file=self.file, line=self.line(*path), hint=hint)


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalar types of YAML's JSON schema."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first
    )


_Loader.add_constructor(  # as YAML 1.2 reads it: 010 is ten
    "tag:yaml.org,2002:int",
    lambda _, node: int(node.value, 0 if node.value[1:2] in {"x", "o"} else 10),
)


def load_yaml(text: str, *, file: str | Path, first_line: int = 1) -> YamlFile:
    r"""Parse YAML text.

    Parameters
    ----------
    text
        The YAML; an empty one is an empty mapping.
    file, first_line
        Where the text stands, for the lines and for errors.

    >>> load_yaml("echo: yes\nn: 1e3", file="a.yml").data
    {'echo': 'yes', 'n': 1000.0}
    >>> load_yaml("a: 1\na: 2", file="a.yml")
    Traceback (most recent call last):
    mlsim_book.errors.SourceError: a.yml:2: the key 'a' is written twice (first on line 1)
      Keep one of them.
    """
    offset = first_line - 1
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        lines: dict[Key, int] = {(): first_line}
        builder = _Builder(loader, str(file), offset, lines)
        data = {} if node is None else builder.build(node, ())
    except yaml.YAMLError as error:
        raise _explained(error, str(file), offset) from None
    finally:
        loader.dispose()
    return YamlFile(str(file), lines, data)


def read_yaml(path: Path, *, name: str | None = None) -> YamlFile:
    """Parse a YAML file; `name` is what errors call it."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"not UTF-8 text ({error.reason})", file=name or path) from None
    return load_yaml(text, file=name or path)


@dataclass
class _Builder:
    """Turns nodes into plain data, noting the line of each key and item."""

    loader: _Loader
    file: str
    offset: int
    lines: dict[Key, int]

    def line(self, node: yaml.Node) -> int:
        return int(node.start_mark.line) + 1 + self.offset

    def build(self, node: yaml.Node, path: Key) -> Any:
        self.lines.setdefault(path, self.line(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return self.loader.construct_object(node)

    def _mapping(self, node: yaml.MappingNode, path: Key) -> dict[str, Any]:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                said = f"the key '{key}' is written twice (first on line {seen[key]})"
                line = self.line(key_node)
                raise SourceError(said, file=self.file, line=line, hint="Keep one of them.")
            seen[key] = self.line(key_node)
        self.loader.flatten_mapping(node)
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                said = "a key must be a word, not a list or a mapping"
                raise SourceError(said, file=self.file, line=self.line(key_node))
            key = str(key_node.value)
            self.lines[(*path, key)] = self.line(key_node)
            data[key] = self.build(value_node, (*path, key))
        return data


def _explained(error: yaml.YAMLError, file: str, offset: int) -> SourceError:
    """Say what the YAML parser found wrong, with the author's own line."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    start = getattr(error, "context_mark", None)
    what = str(getattr(error, "problem", None) or error)
    context = getattr(error, "context", None)
    line = mark.line + 1 + offset if mark is not None else None
    if "end of stream" in what and start is not None:
        line = start.line + 1 + offset  # where the open quote stands helps, the end doesn't
    if "constructor for the tag" in what:
        hint = "Tags such as !expr need R; write the value itself."
    elif "mapping values are not allowed" in what or "block mapping" in (context or ""):
        hint = 'Check the indentation, and put a value that contains ": " in quotes.'
    else:
        hint = "Check quotes and indentation around this line."
    message = f"invalid YAML: {what}" + (f" ({context})" if context else "")
    return SourceError(message, file=file, line=line, hint=hint)


def book_settings(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what stands under `mlsim-book:`, nothing if it is no mapping.

    >>> book_settings({"mlsim-book": {"terms": False}}), book_settings({})
    ({'terms': False}, {})
    """
    given = metadata.get("mlsim-book")
    return given if isinstance(given, Mapping) else {}


def named_paths(metadata: Mapping[str, Any], key: str, hint: str) -> list[str]:
    """Return a setting that is a list of paths.

    Raises
    ------
    SourceError
        It is anything else; `hint` says what to write.

    >>> named_paths({"mlsim-book": {"exercises": ["questions"]}}, "exercises", "")
    ['questions']
    """
    given = book_settings(metadata).get(key, [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise SourceError(
            f"`mlsim-book: {key}:` is {given!r}, which must be a list of paths",
            file="_quarto.yml",
            hint=hint,
        )
    return given


@dataclass(frozen=True)
class BookPackage:
    """The package that a book's code needs, as `_quarto.yml` names it.

        mlsim-book:
          package: kettle          # what is imported
          path: kettle_pkg         # where it is in the repository
          extras: [notebook]

    >>> BookPackage("kettle", "kettle_pkg", ("notebook",)).wanted
    'kettle[notebook]'
    """

    name: str
    path: str | None
    extras: tuple[str, ...]

    @property
    def wanted(self) -> str:
        """The package with its extras, as pip is asked for it."""
        return self.name + self.with_extras

    @property
    def with_extras(self) -> str:
        """The extras in brackets, "" if there are none."""
        return f"[{','.join(self.extras)}]" if self.extras else ""


def book_package(metadata: Mapping[str, Any]) -> BookPackage | None:
    """Return the package that a book names, if it names one.

    Raises
    ------
    SourceError
        Its name can't be imported.
    """
    settings = book_settings(metadata)
    name = settings.get("package")
    if name is None:
        return None
    if not re.fullmatch(r"[A-Za-z_]\w*", str(name)):
        raise SourceError(
            f"`mlsim-book: package:` is {name!r}, which must be an importable name",
            file="_quarto.yml",
        )
    path = settings.get("path")
    extras = tuple(str(each) for each in settings.get("extras") or ())
    return BookPackage(str(name), None if path is None else str(path), extras)


def web_address(given: str) -> str:
    """Return the address of a site or a repository, without a slash at its end.

    It goes into commands and code as it is, so it may hold nothing that ends a string there.

    >>> web_address("https://example.org/book/")
    'https://example.org/book'
    """
    if not re.fullmatch(r"[a-z]+://[^\s\"'`$\\<>{}]+", given):
        raise SourceError(
            f"{given!r} is no address of a site or a repository",
            hint="Write it whole, such as https://me.github.io/book, without quotes or spaces.",
        )
    return given.rstrip("/")


@dataclass(frozen=True)
class Kind:
    """What values an option takes, in words and as a test."""

    words: str
    allows: Callable[[Any], bool]

    def __or__(self, other: Kind) -> Kind:
        return Kind(f"{self.words} or {other.words}", lambda v: self.allows(v) or other.allows(v))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def choice(*names: str) -> Kind:
    """Return a kind that takes one of the given words.

    >>> choice("show", "hide").words
    '`show` or `hide`'
    """
    return Kind(" or ".join(f"`{name}`" for name in names), lambda v: v in names)


BOOL = Kind("`true` or `false`", lambda v: isinstance(v, bool))
TEXT = Kind("a text", lambda v: isinstance(v, str) or _is_number(v))
NUMBER = Kind("a number", _is_number)
COUNT = Kind("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool))
TEXTS = Kind(
    "a list of texts",
    lambda v: isinstance(v, list) and all(isinstance(i, str) or i is None for i in v),
)
ANY = Kind("anything", lambda _: True)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return a hint that names the nearest known word, if one is near.

    >>> did_you_mean("fig-capt", ["fig-cap", "echo"])
    "Did you mean 'fig-cap'?"
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"Did you mean '{near[0]}'?" if near else None


def check_values(
    values: Mapping[str, Any], kinds: Mapping[str, Kind], source: YamlFile, *path: str | int
) -> None:
    """Refuse a known option with a value it can't take.

    >>> from mlsim_book.read.yamlfile import load_yaml
    >>> text = load_yaml("echo: yes", file="a.qmd", first_line=7)
    >>> check_values(text.data, {"echo": BOOL}, text)
    Traceback (most recent call last):
    mlsim_book.errors.SourceError: a.qmd:7: 'echo' is 'yes', which must be `true` or `false`
      Write true or false; YAML as Quarto reads it has no yes, no, on or off.
    """
    for name, value in values.items():
        kind = kinds.get(name)
        if kind is None or kind.allows(value):
            continue
        hint = None
        if str(value).lower() in {"yes", "no", "on", "off"}:
            hint = "Write true or false; YAML as Quarto reads it has no yes, no, on or off."
        raise source.error(
            f"'{name}' is {value!r}, which must be {kind.words}", *path, name, hint=hint
        )


_KINDS = {
    "bool": BOOL, "text": TEXT, "number": NUMBER, "count": COUNT, "texts": TEXTS, "any": ANY,
    "mapping": Kind("a mapping", lambda v: isinstance(v, dict)),
}  # fmt: skip
OPTIONS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("options.toml").read_text(encoding="utf-8")
)


def _kinds(*tables: str) -> dict[str, Kind]:
    """Return the kinds of options as tables of `options.toml` have them."""
    rows = [row for name in tables for row in OPTIONS[name].items()]
    return {
        name: functools.reduce(
            Kind.__or__, (_KINDS.get(w) or choice(w) for w in said.split(" or "))
        )
        for name, said in rows
    }


EXECUTE = _kinds("execute")
HTML = _kinds("figure", "html")
_SHARED = ("echo", "eval", "output", "include", "warning", "error")
CELL = {name: EXECUTE[name] for name in _SHARED} | _kinds("figure", "cell")
