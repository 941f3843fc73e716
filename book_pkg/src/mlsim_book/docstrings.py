"""A reference page from docstrings: objects go in, Quarto Markdown comes out.

In a chapter:

    ```{python}
    #| echo: false
    #| output: asis
    import kettle
    from mlsim_book.docstrings import reference
    print(reference("Pot", kettle.Pot))
    ```

Docstrings are numpydoc's, with the examples where this project writes them: as
doctests, also below the last section. Standard library only: this runs in the
chapters' own kernel.
"""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import FunctionType
from typing import Any

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises")

# What Markdown would take for markup; straight quotes stay straight.
_SPECIAL = re.compile(r'[\\*_<>$"\[\]@|~^{}#]')
_CODE = re.compile(r"(`[^`]*`)")
_DIRECTIVE = re.compile(r"\s*#\s*doctest:.*$", re.MULTILINE)
_METHODS = (staticmethod, classmethod)
_PROPERTIES = (property, cached_property)
_WIDTH = 60  # longer signatures have a line per parameter


@dataclass(frozen=True)
class Item:
    """An entry of a section: the names on its first line, and what is said of them."""

    names: str
    text: str


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring. `body` and `rest` may hold examples."""

    summary: str = ""
    body: str = ""
    sections: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    rest: str = ""


def parse(text: str) -> Docstring:
    """Take a docstring apart.

    >>> found = parse('''Fill the pot.
    ...
    ... Raises
    ... ------
    ... ValueError
    ...     If it is full.
    ...
    ... >>> fill(1)
    ... ''')
    >>> found.summary, found.sections["Raises"], found.rest
    ('Fill the pot.', (Item(names='ValueError', text='If it is full.'),), '>>> fill(1)')
    """
    lines = inspect.cleandoc(text).splitlines()
    starts = [number for number in range(len(lines)) if _is_header(lines, number)]
    head = lines[: starts[0]] if starts else lines
    summary, _, body = "\n".join(head).strip().partition("\n\n")
    sections: dict[str, tuple[Item, ...]] = {}
    rest: list[str] = []
    for start, stop in pairwise([*starts, len(lines)]):
        inside = lines[start + 2 : stop]
        at = next((n for n, line in enumerate(inside) if line.startswith(">>>")), len(inside))
        sections[lines[start].strip()] = tuple(_items(inside[:at]))
        rest += inside[at:]
    return Docstring(summary.replace("\n", " "), body.strip(), sections, "\n".join(rest).strip())


def _is_header(lines: list[str], number: int) -> bool:
    below = lines[number + 1].strip() if number + 1 < len(lines) else ""
    return lines[number].strip() in SECTIONS and bool(below) and set(below) == {"-"}


def _items(lines: list[str]) -> Iterator[Item]:
    """Yield the entries of a section: names at the margin, text below them, indented.

    >>> [each.names for each in _items(["milk,", "sugar", "    What goes in.", "cup"])]
    ['milk, sugar', 'cup']
    """
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.strip() and not line.startswith(" "):
            # A list of names that ends with a comma goes on in the next line.
            goes_on = entries and entries[-1][0].endswith(",") and not entries[-1][1]
            before = f"{entries.pop()[0]} " if goes_on else ""
            entries.append((before + line.strip(), []))
        elif entries:
            entries[-1][1].append(line)
    for names, text in entries:
        yield Item(names, inspect.cleandoc("\n".join(text)))


def prose(text: str) -> str:
    r"""Return words of a docstring as Markdown; code in backticks stays code.

    >>> print(prose('`a_b` is "x", not *args'))
    `a_b` is \"x\", not \*args
    """
    parts = _CODE.split(text)
    parts[::2] = [_SPECIAL.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def markdown(text: str) -> str:
    r"""Return a docstring's text with its examples as blocks of code and output.

    >>> print(markdown(">>> 6 * 7\n42"))
    ```python
    6 * 7
    ```
    <BLANKLINE>
    ::: {.cell-output .cell-output-stdout}
    ```
    42
    ```
    :::
    """
    pieces: list[str] = []
    code = ""
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, str):
            if part.strip():
                pieces += _code(code)
                pieces += [_block(block) for block in re.split(r"\n\s*\n", part.strip("\n"))]
                code = ""
            continue
        code += _DIRECTIVE.sub("", part.source)
        if part.want:
            output = part.want.replace("<BLANKLINE>", "").rstrip()
            pieces += _code(code)
            pieces.append(f"::: {{.cell-output .cell-output-stdout}}\n```\n{output}\n```\n:::")
            code = ""
    return "\n\n".join([*pieces, *_code(code)])


def _code(source: str) -> list[str]:
    return [f"```python\n{source.rstrip()}\n```"] if source else []


def _block(block: str) -> str:
    """Return a paragraph; an indented one is code."""
    if all(line.startswith("    ") for line in block.splitlines()):
        return f"```\n{inspect.cleandoc(block)}\n```"
    return prose(block)


def signature(name: str, function: Any) -> str:
    """Return how something is called, a long one with a line per parameter.

    >>> def fill(pot: str, *, cups: int = 2) -> bool: ...
    >>> signature("fill", fill)
    'fill(pot: str, *, cups: int = 2) -> bool'
    """
    found = inspect.signature(function)
    shown: list[str] = []
    keyword_only = False
    for each in found.parameters.values():
        if not shown and each.name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not keyword_only:
            shown.append("*")
        keyword_only = keyword_only or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        shown.append(_parameter(each))
    answer = found.return_annotation
    unsaid = answer is found.empty or inspect.isclass(function)
    arrow = "" if unsaid else f" -> {_type(answer)}"
    line = f"{name}({', '.join(shown)}){arrow}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in shown), f"){arrow}"])


def _parameter(each: inspect.Parameter) -> str:
    typed = each.annotation is not each.empty
    text = str(each.replace(annotation=each.empty, default=each.empty))
    text += f": {_type(each.annotation)}" if typed else ""
    if each.default is each.empty:
        return text
    default = json.dumps(each.default) if isinstance(each.default, str) else repr(each.default)
    return f"{text} = {default}" if typed else f"{text}={default}"


def _type(annotation: Any) -> str:
    """Return an annotation as it was written, less what says nothing."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return "None" if text == "NoneType" else text.replace("[Any]", "")


def summary(thing: Any) -> str:
    """Return the first sentence of a docstring as Markdown; of an instance, its class's."""
    return prose(parse(inspect.getdoc(_documented(thing)) or "").summary)


def _documented(thing: Any) -> Any:
    return thing if inspect.isclass(thing) or inspect.isroutine(thing) else type(thing)


def anchor(name: str, prefix: str = "api") -> str:
    """Return the id of a name on the page.

    >>> anchor("Pot.fill_up")
    'api-pot-fill-up'
    """
    return "-".join([prefix, *re.split(r"[._]+", name.lower().strip("_"))])


def reference(name: str, thing: Any, *, level: int = 2, prefix: str = "api") -> str:
    """Return the reference of a class with its members, of a function, or of an instance.

    Parameters
    ----------
    name
        What the heading says; the anchor is made of it.
    thing
        A class or a function; of an instance, its class is described.
    level
        Level of the heading; methods stand one below.
    prefix
        What the anchors begin with.
    """
    heading = f"{'#' * level} {name} {{#{anchor(name, prefix)}}}"
    if inspect.isroutine(thing):
        return "\n\n".join([heading, *_function(name, thing)])
    documented = _documented(thing)
    parsed = parse(inspect.getdoc(documented) or "")
    parts = [heading, prose(parsed.summary)]
    if inspect.isclass(thing) and _is_made_by_users(thing):
        parts.append(f"```python\n{signature(name, thing)}\n```")
    parts += _after_summary(parsed, skip=("Attributes",))
    parts += _attributes(name, documented, parsed, prefix)
    parts += [_inherited(base, documented, prefix) for base in _bases(documented)]
    for member, function in _members(documented, (*_METHODS, FunctionType)):
        own = function.__func__ if isinstance(function, _METHODS) else function
        below = f"{name}.{member}"
        parts.append(f"{'#' * (level + 1)} {below} {{#{anchor(below, prefix)}}}")
        parts += _function(below, own)
    return "\n\n".join(part for part in parts if part)


def _is_made_by_users(cls: type) -> bool:
    """Say whether the docstring of a class shows one being made."""
    return f"{cls.__name__}(" in (inspect.getdoc(cls) or "")


def _function(name: str, function: Any) -> list[str]:
    parsed = parse(inspect.getdoc(function) or "")
    code = f"```python\n{signature(name, function)}\n```"
    return [code, prose(parsed.summary), *_after_summary(parsed)]


def _after_summary(parsed: Docstring, skip: Iterable[str] = ()) -> list[str]:
    """Return what follows the summary: text, sections, examples."""
    parts = [markdown(parsed.body)] if parsed.body else []
    for title, items in parsed.sections.items():
        if title not in skip and items:
            parts += [f"**{title}**", "\n\n".join(map(_entry, items))]
    return parts + ([markdown(parsed.rest)] if parsed.rest else [])


def _entry(item: Item) -> str:
    """Return an entry as a term and its definition."""
    names = ", ".join(f"`{each.strip()}`" for each in item.names.split(","))
    return _definition(names, item.text)


def _definition(term: str, text: str) -> str:
    shown = prose(" ".join(text.split()))
    return f"{term}\n:   {shown}" if shown else term


def _attributes(name: str, cls: type, parsed: Docstring, prefix: str) -> list[str]:
    """Return the fields and properties of a class as a list of definitions."""
    items = parsed.sections.get("Attributes", ())
    said = [[each.strip() for each in item.names.split(",")] for item in items]
    known = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    fields = {each.name: _type(each.type) for each in known if each.name[0] != "_"}
    silent = [f"`{each}`" for each in fields if not any(each in names for names in said)]
    entries = []
    for names, item in zip(said, items, strict=True):
        terms = [_term(name, each, fields.get(each, ""), prefix) for each in names]
        entries.append(_definition(", ".join(terms), item.text))
    for each, found in _members(cls, _PROPERTIES):
        function = found.func if isinstance(found, cached_property) else found.fget
        own = parse(inspect.getdoc(function) or "")
        annotation = inspect.signature(function).return_annotation
        kind = "" if annotation is inspect.Signature.empty else _type(annotation)
        text = f"{own.summary} {_first_paragraph(own.body)}".strip()
        for item in own.sections.get("Raises", ()):
            text += f" Raises `{item.names}` {item.text[:1].lower()}{item.text[1:]}"
        entries.append(_definition(_term(name, each, kind, prefix), text))
    fields_line = [f"Fields: {', '.join(silent)}."] if silent else []
    return fields_line + (["**Attributes**", "\n\n".join(entries)] if entries else [])


def _term(owner: str, name: str, kind: str, prefix: str) -> str:
    term = f"[`{name}`]{{#{anchor(f'{owner}.{name}', prefix)}}}"
    return f"{term}: `{kind}`" if kind not in ("", "Any") else term


def _first_paragraph(body: str) -> str:
    first = body.partition("\n\n")[0]
    return "" if first.startswith(">>>") else first


def _bases(cls: type) -> list[type]:
    """Return the classes of the same package that a class builds on, but for errors."""
    package = cls.__module__.partition(".")[0]
    return [
        base
        for base in cls.__mro__[1:]
        if base.__module__.partition(".")[0] == package and not issubclass(base, Exception)
    ]


def _inherited(base: type, cls: type, prefix: str) -> str:
    """Say what a class has of another; the reference of that one describes it."""
    names = [name for name, _ in _members(base, (property, cached_property, FunctionType))]
    kept = [f"`{name}`" for name in names if name not in vars(cls)]
    title = f"[`{base.__name__}`](#{anchor(base.__name__, prefix)})"
    return f"As any {title}, it also has {', '.join(kept)}." if kept else ""


def _members(cls: type, kinds: tuple[type, ...]) -> list[tuple[str, Any]]:
    """Return the public members of some kinds that a class itself defines, in order."""
    return [
        (name, member)
        for name, member in vars(cls).items()
        if not name.startswith("_") and isinstance(member, kinds)
    ]
