"""Keys that Quarto honours and this builder doesn't: each is reported by name.

They are no mistakes, so they don't stop a strict build. Filters and themes below a path of
`mlsim-book: for-quarto: [...]` are meant for Quarto alone: only a missing one is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mlsim_book.errors import Problems
from mlsim_book.read.language import known_language
from mlsim_book.read.settings import named_paths
from mlsim_book.read.yamlfile import YamlFile

# The blocks of `_quarto.yml`, by path, with keys that change what a reader gets.
_KEYS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    (): (
        "filters", "shortcodes", "comments", "google-scholar", "reference-section-title",
        "suppress-bibliography", "number-offset", "knitr",
    ),
    ("project",): ("pre-render", "post-render"),
    ("book",): (
        "doi", "isbn", "edition", "cover-image", "issue-url", "navbar", "bread-crumbs",
        "body-header", "body-footer", "margin-header", "margin-footer", "reader-mode", "tools",
        "sharing", "open-graph", "twitter-card", "google-analytics", "plausible-analytics",
        "cookie-consent", "announcement", "comments", "other-links", "code-links",
    ),
    ("book", "sidebar"): (
        "logo", "logo-alt", "logo-href", "title", "subtitle", "style", "background", "foreground",
        "border", "alignment", "collapse-level", "pinned", "header", "footer", "tools",
    ),
    ("format", "html"): (
        "filters", "shortcodes", "comments", "grid", "page-layout",
        "code-link", "embed-resources", "toc-location", "link-external-newwindow",
        "link-external-icon", "mainfont", "monofont", "fontsize", "linestretch", "linkcolor",
        "template", "template-partials",
    ),
}  # fmt: skip
_WHY = {
    "number-offset": "a book counts its chapters itself, in Quarto too",
    "logo": "the picture of the book is its `favicon:`",
    "filters": "Lua filters are not run",
    "shortcodes": "shortcodes of extensions are not run",
    "pre-render": "run the script yourself before building",
    "post-render": "run the script yourself after building",
}


def advise_keys(source: YamlFile, root: Path, problems: Problems) -> None:
    """Tell of keys in `_quarto.yml` that have no effect here, and of files that are missing."""
    own = _OfQuarto(source, root, problems)
    for path, keys in _KEYS.items():
        block = _block(source.data, path)
        for key in keys:
            if block.get(key) in (None, False, []):
                continue
            if key == "filters" and own.have(block[key], *path, key):
                continue
            why = _WHY.get(key, "it is left out")
            problems.advise(
                f"`{': '.join((*path, key))}` has no effect here: {why}",
                file=source.file,
                line=source.line(*path, key),
            )
    html = _block(source.data, ("format", "html"))
    for theme in _themes(html.get("theme")):
        if theme.endswith(".scss") and not own.has(theme, "format", "html", "theme"):
            problems.advise(
                f"the theme '{theme}' has no effect here: Sass is not compiled",
                file=source.file,
                line=source.line("format", "html", "theme"),
                hint="Write plain CSS, and name it under `css:`.",
            )
    lang = source.data.get("lang")
    if isinstance(lang, str) and not known_language(lang):
        problems.advise(
            f"there are no words for the language '{lang}': Figure, Table and others stay English",
            file=source.file,
            line=source.line("lang"),
            hint="Give your own under `language:`, such as `crossref-fig-title: Figur`.",
        )
    kernel = source.data.get("jupyter")
    if isinstance(kernel, str) and kernel not in {"python3", "python"}:
        problems.advise(
            f"the kernel '{kernel}' is not used: chapters run in the Python that builds the book",
            file=source.file,
            line=source.line("jupyter"),
        )


class _OfQuarto:
    """Knows which files are meant for Quarto alone."""

    def __init__(self, source: YamlFile, root: Path, problems: Problems) -> None:
        hint = "Name the folders with what only Quarto reads."
        self._paths = [PurePosixPath(p) for p in named_paths(source.data, "for-quarto", hint)]
        self._source, self._root, self._problems = source, root, problems

    def have(self, names: Any, *key: str) -> bool:
        """Say whether all of a list are such files."""
        return isinstance(names, list) and all(self.has(each, *key) for each in names)

    def has(self, name: Any, *key: str) -> bool:
        """Say whether a file is one of them, and note it if there is no such file."""
        if not any(PurePosixPath(str(name)).is_relative_to(path) for path in self._paths):
            return False
        if not (self._root / name).is_file():
            self._problems.add(
                f"`{': '.join(key)}` names '{name}', and there is no such file",
                file=self._source.file,
                line=self._source.line(*key),
            )
        return True


def _block(data: Any, path: tuple[str, ...]) -> Mapping[str, Any]:
    for part in path:
        data = data.get(part) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def _themes(theme: Any) -> Iterator[str]:
    """Yield the names of a theme: one, a list, or one each for light and dark.

    >>> list(_themes({"light": ["cosmo", "a.scss"], "dark": "darkly"}))
    ['cosmo', 'a.scss', 'darkly']
    """
    if isinstance(theme, str):
        yield theme
    elif isinstance(theme, Mapping | list):
        for each in theme.values() if isinstance(theme, Mapping) else theme:
            yield from _themes(each)
