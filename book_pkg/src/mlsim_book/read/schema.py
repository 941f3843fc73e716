"""What an option may hold, and how a wrong value is refused.

A `Kind` is a predicate with words for it. Cell options and the options of
`execute:` and `format: html:` are tables of name -> Kind, checked the same way.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mlsim_book.errors import SourceError
from mlsim_book.read.yamlfile import YamlFile


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
        raise SourceError(
            f"'{name}' is {value!r}, which must be {kind.words}",
            file=source.file,
            line=source.line(*path, name),
            hint=hint,
        )


# The options of `execute:`, which are also cell options.
EXECUTE: Mapping[str, Kind] = {
    "echo": BOOL | choice("fenced"),
    "eval": BOOL,
    "output": BOOL | choice("asis"),
    "include": BOOL,
    "warning": BOOL,
    "error": BOOL,
    "keep-ipynb": BOOL,
    "keep-md": BOOL,
    "enabled": BOOL,
    "cache": BOOL | choice("refresh"),
    "freeze": BOOL | choice("auto"),
    "daemon": BOOL | NUMBER,
    "daemon-restart": BOOL,
    "debug": BOOL,
    "ipynb-shell-interactivity": ANY,
    "plotly-connected": BOOL,
}

FIGURE: Mapping[str, Kind] = {
    "fig-width": NUMBER,
    "fig-height": NUMBER,
    "fig-dpi": NUMBER,
    "fig-format": choice("retina", "png", "jpeg", "svg", "pdf"),
    "fig-align": choice("default", "left", "right", "center"),
    "fig-cap-location": choice("top", "bottom", "margin"),
    "tbl-cap-location": choice("top", "bottom", "margin"),
    "cap-location": choice("top", "bottom", "margin"),
}

CODE: Mapping[str, Kind] = {
    "code-fold": BOOL | choice("show", "none"),
    "code-summary": TEXT,
    "code-overflow": choice("scroll", "wrap"),
    "code-line-numbers": BOOL | TEXT,
}

# The options of `format: html:` whose wrong value would pass unnoticed.
HTML: Mapping[str, Kind] = {
    **FIGURE,
    **CODE,
    "toc": BOOL,
    "toc-depth": COUNT,
    "toc-title": TEXT,
    "toc-location": choice("body", "left", "right", "left-body", "right-body"),
    "number-sections": BOOL,
    "number-depth": COUNT,
    "code-copy": BOOL | choice("hover"),
    "code-tools": BOOL | Kind("a mapping", lambda v: isinstance(v, dict)),
    "code-link": BOOL,
    "anchor-sections": BOOL,
    "section-divs": BOOL,
    "smooth-scroll": BOOL,
    "embed-resources": BOOL,
    "callout-appearance": choice("default", "simple", "minimal"),
    "callout-icon": BOOL,
    "reference-location": choice("block", "section", "margin", "document"),
    "citation-location": choice("margin", "document"),
    "link-external-newwindow": BOOL,
    "link-external-icon": BOOL,
}
