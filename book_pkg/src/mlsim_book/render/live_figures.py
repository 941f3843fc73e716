"""Figures that a reader moves: a script and its data, over a still figure.

An object may be shown as `application/vnd.mlsim-book.script+json` beside its image:

    {"modules": {"kettle.js": "<source>", ...}, "entry": "kettle.js", "data": {...},
     "styles": {"kettle.css": "<source>"}, "handles": ["cups"], "guess": "gss-cups"}

The modules are ECMAScript modules that import one another and nothing else. Their entry exports
`mount(element, data)`, which draws into an element; where it runs, the still figure is hidden. Its
stylesheets are linked in the page's head: one that a script adds has all of it styled anew. Its
handles, if it names some, are numbers that sentences may show: `[2]{.scrub handle="cups"}`. A guess
of the page, if it names one, opens it.

A page from disk may load no modules, so each becomes a plain script, written once for a site
under a name that holds the hash of its content. It reads and exports by a table of all modules:

    bookModules["kettle-1a2b3c4d"] = (() => { ...; return { mount }; })();
"""

from __future__ import annotations

import functools
import html as htmllib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mlsim_book.caches import content_hash
from mlsim_book.errors import SourceError
from mlsim_book.run.outputs import LIVE

_IMPORT = re.compile(
    r"^import\s*\{([^}]*)\}\s*from\s*[\"']\./([\w.-]+)[\"'];?[ \t]*$", re.MULTILINE
)
_EXPORT = re.compile(
    r"^export\s+((?:async\s+)?function\b\s*\*?|class\b|const\b|let\b)\s*([\w$]+)", re.MULTILINE
)
_LIST = re.compile(r"^export\s*\{([^}]*)\};?[ \t]*$", re.MULTILINE)
_LEFT = re.compile(r"^\s*(?:import\b|export\b).*|\bimport\s*\(.*|\bimport\.meta\b", re.MULTILINE)
_SPARE = re.compile(r"^\s*(?://.*\n|/\*\*.*\*/\n)|^\s+", re.MULTILINE)  # remarks and indents
_PLACE = re.compile(
    r'<span class="live-figure" data-modules="([^"]*)" data-styles="([^"]*)" data-handles="([^"]*)"'
)
_NUMBER = re.compile(r'<span class="(?:[^"]* )?scrub[ "][^>]*?\bdata-handle="([^"]*)"')
_HINT = 'Write `import { a, b } from "./other.js";` and `export function a`, one on a line.'


def scripts_of(bundle: Mapping[str, Any]) -> dict[str, str]:
    """Return the scripts of a figure by name, each after those that it imports, the entry last.

    Raises
    ------
    SourceError
        A module imports one that isn't there, or itself by way of others, or is written
        otherwise than a plain script can be made of.

    >>> found = scripts_of({"entry": "b.js", "modules": {
    ...     "a.js": "export const n = 1;", "b.js": 'import { n as one } from "./a.js";'}})
    >>> [name.split("-")[0] for name in found]
    ['a', 'b']
    """
    modules: Mapping[str, str] = bundle["modules"]
    done: dict[str, str] = {}  # the names with their hashes
    found: dict[str, str] = {}

    def add(module: str, path: tuple[str, ...]) -> str:
        if module in path:
            raise SourceError(f"modules import each other: {' -> '.join((*path, module))}")
        if module not in modules:
            who = path[-1] if path else "a figure"
            raise SourceError(
                f"{who} needs the module '{module}', which isn't there",
                hint=f"The figure has: {', '.join(modules)}.",
            )
        if module not in done:
            others = {
                each: add(each, (*path, module)) for _, each in _IMPORT.findall(modules[module])
            }
            script = _plain(module, modules[module], others)
            name = f"{module.removesuffix('.js')}-{content_hash(script)[:8]}"
            done[module] = name
            found[name] = f'(globalThis.bookModules ??= {{}})["{name}"] = {script};\n'
        return done[module]

    add(bundle["entry"], ())
    return found


def _plain(name: str, source: str, others: Mapping[str, str]) -> str:
    """Return a module as an expression whose value holds what it exports."""
    exported: list[str] = []

    def taken(match: re.Match[str]) -> str:
        given = _pairs(match[1], ": ")
        return f'const {{ {given} }} = bookModules["{others[match[2]]}"];'

    def declared(match: re.Match[str]) -> str:
        exported.append(match[2])
        return f"{match[1].rstrip()} {match[2]}"

    def listed(match: re.Match[str]) -> str:
        parts = (each.split(" as ") for each in match[1].split(",") if each.strip())
        exported.extend(": ".join(each.strip() for each in reversed(part)) for part in parts)
        return ""

    text = _LIST.sub(listed, _EXPORT.sub(declared, _IMPORT.sub(taken, source)))
    if left := _LEFT.search(text):
        raise SourceError(f"{name}: `{left[0].strip()[:80]}` can't be read from disk", hint=_HINT)
    text = _SPARE.sub("", text).strip()
    return f'(() => {{\n"use strict";\n{text}\nreturn {{ {", ".join(exported)} }};\n}})()'


def _pairs(names: str, between: str) -> str:
    """Return the names of an import as those of a pattern: `a as b` is `a: b`."""
    parts = ([each.strip() for each in name.split(" as ")] for name in names.split(","))
    return ", ".join(between.join(part) for part in parts if part[0])


@functools.lru_cache(maxsize=64)
def files_of(bundle: bytes) -> dict[str, str]:
    """Return the scripts and stylesheets of a figure as it is kept among the files of a page."""
    read = json.loads(bundle)
    styles = {
        f"{name.removesuffix('.css')}-{content_hash(text)[:8]}.css": text
        for name, text in read.get("styles", {}).items()
    }
    return {f"{name}.js": text for name, text in scripts_of(read).items()} | styles


def place(image: str, bundle: bytes) -> str:
    """Return an image with what draws over it."""
    read = json.loads(bundle)
    names, styles = (
        " ".join(name.removesuffix(kind) for name in files_of(bundle) if name.endswith(kind))
        for kind in (".js", ".css")
    )
    data = json.dumps(read.get("data", {}), ensure_ascii=False, separators=(",", ":"))
    data = data.replace("<", "\\u003c")  # so that nothing in it ends the element
    handles = htmllib.escape(" ".join(read.get("handles", ())))
    guess = f' data-opened-by="{htmllib.escape(read["guess"])}"' if read.get("guess") else ""
    return (
        f'<span class="live-figure" data-modules="{names}" data-styles="{styles}" '
        f'data-handles="{handles}"{guess}>'
        f'<span class="live-still">{image}</span>'
        f'<script type="application/json" data-search-ignore>{data}</script></span>'
    )


def names_on(body: str) -> list[str]:
    """Return the names of the scripts that a page needs, in order.

    >>> names_on('<span class="live-figure" data-modules="a-1 b-2" data-styles="" data-handles="">')
    ['a-1', 'b-2']
    """
    found = (name for names, _, _ in _PLACE.findall(body) for name in names.split())
    return list(dict.fromkeys(found))


def styles_on(body: str) -> list[str]:
    """Return the names of the stylesheets of a page's figures, in order."""
    found = (name for _, names, _ in _PLACE.findall(body) for name in names.split())
    return list(dict.fromkeys(found))


def unmoved(body: str) -> list[str]:
    """Return the handles that numbers in a page's sentences name, and no figure on it has.

    >>> unmoved('<span class="scrub" data-handle="cups">2</span>')
    ['cups']
    """
    moved = {name for _, _, names in _PLACE.findall(body) for name in names.split()}
    return [name for name in dict.fromkeys(_NUMBER.findall(body)) if name not in moved]


def bundles(files: Mapping[str, bytes]) -> Iterator[bytes]:
    """Yield the scripts and data among the files of a page."""
    return (data for name, data in files.items() if name.endswith(LIVE))
