"""The menu of `code-tools`: show or hide all code of a page, and see the page's source."""

from __future__ import annotations

import html as htmllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_FOLDED = '<details class="code-fold"'


@dataclass(frozen=True)
class CodeTools:
    """What a page's menu offers."""

    caption: str
    toggle: bool
    source: str | bool  # an address, or whether to show the source here


def code_tools(given: Any, body: str, words: Mapping[str, str]) -> CodeTools | None:
    """Return what `code-tools:` asks for; None if that is nothing.

    >>> code_tools(True, "<p>no code that folds</p>", {"code-tools-menu-caption": "Code"})
    CodeTools(caption='Code', toggle=False, source=True)
    >>> code_tools(False, "", {}) is None
    True
    """
    if not given:
        return None
    asked = given if isinstance(given, Mapping) else {}
    caption = str(asked.get("caption") or words.get("code-tools-menu-caption", "Code"))
    toggle = asked.get("toggle") is not False and _FOLDED in body
    source = asked.get("source", True)
    if not toggle and source is False:
        return None
    return CodeTools(caption, toggle, source if isinstance(source, str) else bool(source))


def menu(tools: CodeTools, words: Mapping[str, str], *, repo_source: str) -> str:
    """Return the menu as HTML. `source: repo` leads to the page's file in the repository."""
    items = []
    if tools.toggle:
        items += [
            _button("quarto-show-all-code", words["code-tools-show-all-code"]),
            _button("quarto-hide-all-code", words["code-tools-hide-all-code"]),
        ]
    if tools.source:
        view = words["code-tools-view-source"]
        address = repo_source if tools.source == "repo" else tools.source
        if isinstance(address, str) and address:
            link = f'<a class="dropdown-item" href="{htmllib.escape(address)}">'
            items.append(link.replace("<a ", '<a id="quarto-view-source" ') + f"{view}</a>")
        else:
            items.append(_button("quarto-view-source", view))
    caption = "" if tools.caption == "none" else htmllib.escape(tools.caption)
    name = "" if caption else f' aria-label="{words["code-tools-menu-caption"]}"'
    listed = "".join(f"<li>{item}</li>" for item in items)
    return (
        '<details class="code-tools"><summary id="quarto-code-tools-menu" '
        f'class="btn code-tools-button dropdown-toggle"{name}>{caption}</summary>'
        f'<ul class="dropdown-menu">{listed}</ul></details>'
    )


def _button(name: str, text: str) -> str:
    return f'<button type="button" class="dropdown-item" id="{name}">{text}</button>'


def source_box(tools: CodeTools, words: Mapping[str, str], source: str) -> str:
    """Return the box that shows a page's source, for a page whose menu has no link to it."""
    if tools.source is not True:
        return ""
    title = words["code-tools-source-code"]
    return (
        f'<dialog id="quarto-embedded-source-code-modal" aria-label="{title}">'
        f'<form method="dialog"><strong>{title}</strong>'
        '<button class="tool" aria-label="Close">✕</button></form>'
        f'<pre tabindex="0"><code>{htmllib.escape(source)}</code></pre></dialog>'
    )
