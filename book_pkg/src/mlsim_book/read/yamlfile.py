"""Read YAML with the line of every key, so that an error can name file and line.

YAML as Quarto reads it (JSON-like scalars): only `true` and `false` are
booleans, so `yes`, `no` and `on` are words; dates and times are words too.
A key written twice is refused, where most readers silently keep the last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mlsim_book.errors import SourceError
from mlsim_exercises.places import Key, Places


@dataclass(frozen=True)
class YamlFile(Places):
    """The data of a YAML text, and the line on which each key or item stands."""

    data: Any


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


def _whole_number(loader: _Loader, node: yaml.ScalarNode) -> int:
    """Return an integer as YAML 1.2 reads it: 010 is ten."""
    text = str(node.value)
    return int(text, 0) if text[:2] in {"0x", "0o"} else int(text)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


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
        self._refuse_duplicates(node)
        self.loader.flatten_mapping(node)
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise SourceError(
                    "a key must be a word, not a list or a mapping",
                    file=self.file,
                    line=self.line(key_node),
                )
            key = str(key_node.value)
            self.lines[(*path, key)] = self.line(key_node)
            data[key] = self.build(value_node, (*path, key))
        return data

    def _refuse_duplicates(self, node: yaml.MappingNode) -> None:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                raise SourceError(
                    f"the key '{key}' is written twice (first on line {seen[key]})",
                    file=self.file,
                    line=self.line(key_node),
                    hint="Keep one of them.",
                )
            seen[key] = self.line(key_node)


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
