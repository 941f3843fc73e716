"""Render executed pages with pandoc and the Lua filter, side by side, keeping results.

What comes out still has placeholders for references, citations and formulas,
because those need the whole book; `crossref`, `citations` and `katex` fill them.
So a page's HTML depends on the page alone, and only changed pages are rendered.
"""

from __future__ import annotations

import functools
import html as htmllib
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mlsim_book.caches import TextCache, content_hash
from mlsim_book.errors import ToolError
from mlsim_book.model import ExecutedPage, Project
from mlsim_book.read.labels import is_english, kind_words, own_words, words_of
from mlsim_book.read.lines import Reporter, text_pattern
from mlsim_book.read.qmd import merge
from mlsim_book.render.assets import Assets
from mlsim_book.render.pandoc import find_pandoc, pandoc_version, run_pandoc
from mlsim_book.render.postprocess import Opened, keep_opened

_SCRIPT = Path(__file__).parent / "node" / "render-math.js"
_FACTS = re.compile(r"<!--mlsim-book-facts (.*?)-->\n?", re.DOTALL)
_MATH = re.compile(r'<span class="math (inline|display)">(.*?)</span>', re.DOTALL)


@dataclass(frozen=True)
class Formula:
    """TeX, and whether it stands on a line of its own."""

    tex: str
    display: bool


@dataclass(frozen=True)
class Typeset:
    """What KaTeX made of a formula; `error` says why it could not."""

    html: str
    error: str | None = None


def formulas(html: str) -> list[Formula]:
    """Return the formulas of a page, as the filter left them.

    >>> formulas('<span class="math inline">a &lt; b</span>')
    [Formula(tex='a < b', display=False)]
    """
    return [Formula(htmllib.unescape(m[2]), m[1] == "display") for m in _MATH.finditer(html)]


def typeset(
    wanted: Iterable[Formula], assets: Assets, keep: TextCache, macros: Mapping[str, str]
) -> dict[Formula, Typeset]:
    """Typeset formulas, each once."""
    shared = content_hash(
        assets.key, _SCRIPT.read_bytes(), json.dumps(dict(macros), sort_keys=True)
    )
    done: dict[Formula, Typeset] = {}
    fresh: list[Formula] = []
    book_key = content_hash("math", shared)
    kept: dict[str, list[str | None]] = json.loads(keep.load(book_key) or "{}")
    for formula in dict.fromkeys(wanted):
        known = kept.get(_key(formula))
        if known is None:
            fresh.append(formula)
        else:
            done[formula] = Typeset(str(known[0]), known[1])
    if fresh:
        done.update(zip(fresh, _run(fresh, assets, macros), strict=True))
        kept.update({_key(each): [done[each].html, done[each].error] for each in fresh})
        keep.store(book_key, json.dumps(kept))
    return done


def _key(formula: Formula) -> str:
    return ("d:" if formula.display else "i:") + formula.tex


def _run(fresh: list[Formula], assets: Assets, macros: Mapping[str, str]) -> list[Typeset]:
    request = {
        "katex": str(assets.module("katex/dist/katex.js")),
        "macros": dict(macros),
        "formulas": [{"tex": each.tex, "display": each.display} for each in fresh],
    }
    run = subprocess.run(
        [assets.node, str(_SCRIPT)], input=json.dumps(request).encode(), capture_output=True,
        check=False,
    )  # fmt: skip
    if run.returncode:
        raise ToolError(f"KaTeX could not be run:\n{run.stderr.decode('utf-8', 'replace').strip()}")
    return [Typeset(each["html"], each.get("error")) for each in json.loads(run.stdout)]


def place_formulas(html: str, done: Mapping[Formula, Typeset]) -> str:
    """Put the typeset formulas into a page."""

    def fill(match: re.Match[str]) -> str:
        tex, display = htmllib.unescape(match[2]), match[1] == "display"
        made = done[Formula(tex, display)]
        if made.error:
            return f'<span class="math {match[1]} math-error">{htmllib.escape(tex)}</span>'
        return f'<span class="math {match[1]}">{made.html}</span>'

    return _MATH.sub(fill, html)


def note_broken(
    page: ExecutedPage,
    found: Iterable[Formula],
    done: Mapping[Formula, Typeset],
    reporter: Reporter,
    behind: Mapping[Formula, str] | None = None,
) -> None:
    """Tell of the formulas of a page that KaTeX refuses.

    `behind` names the number that opens to a formula: such a formula is computed,
    so it stands on no line of the source.
    """
    for formula in found:
        if error := done[formula].error:
            number = (behind or {}).get(formula)
            where = f" (in what '{number}' opens to)" if number else ""
            tex = " ".join(formula.tex.split())
            reporter.note(
                page,
                f"KaTeX can't typeset the formula  {tex}{where}\n  {error}",
                text_pattern(formula.tex),
                hint="See katex.org/docs/supported.html for what KaTeX knows, or define a macro"
                " under `mlsim-book: {macros: {...}}` in _quarto.yml.",
            )


LUA = Path(__file__).parent / "lua"
_ESCAPED_CELL = re.compile(
    r"^(`{3,})\s*\{\{([^{}\n]+)\}\}[ ]*\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL
)
_TITLES = ("title", "subtitle", "abstract", "description", "nocite")


@dataclass(frozen=True)
class Label:
    """Something that can be referred to."""

    id: str
    kind: str  # "fig", "tbl", "eq", "sec", ...
    number: str  # "" if it has none
    level: int = 0
    chapter: bool = False


@dataclass(frozen=True)
class Heading:
    """A heading for the table of contents."""

    level: int
    id: str
    number: str
    html: str
    text: str
    unlisted: bool = False


@dataclass(frozen=True)
class Title:
    """The chapter's own heading, which stands in the title block, not in the body."""

    html: str
    text: str
    id: str = ""
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RenderedPage:
    """A page's HTML with placeholders, and what the filter says about it."""

    page: ExecutedPage
    body: str
    title: Title | None
    labels: tuple[Label, ...]
    headings: tuple[Heading, ...]
    references: tuple[str, ...]
    citations: tuple[str, ...]  # pandoc JSON documents
    nocite: str | None
    has_bibliography: bool
    notes: tuple[tuple[str, str], ...]
    front: Mapping[str, str]  # subtitle, abstract, description as HTML
    opens: tuple[Opened, ...] = ()  # what its numbers open to
    words: Mapping[str, str] = field(default_factory=dict)  # of its language, by Quarto's keys
    numbered: bool = True  # its sections have numbers


def render_pages(
    project: Project,
    pages: Sequence[ExecutedPage],
    *,
    keep: TextCache,
    jobs: int = 2,
    form: str = "html",
) -> list[RenderedPage]:
    """Render the book's pages, `jobs` at a time; unchanged ones come from `keep`.

    `form` is the format whose conditional content they show ("html", "pdf", "epub").
    """
    version = ".".join(map(str, pandoc_version(find_pandoc())))

    def render(page: ExecutedPage) -> RenderedPage:
        shown = {**page_config(project, page), "format": form}
        facts = {"words": shown["language"], "numbered": shown["number_sections"] is not False}
        config = json.dumps(shown, sort_keys=True)
        front = {key: page.metadata[key] for key in _TITLES if page.metadata.get(key) is not None}
        head = f"---\n{json.dumps(front, ensure_ascii=False)}\n---\n\n" if front else ""
        key = content_hash(version, filter_hash(), config, head, page.markdown)
        name = page.chapter.source
        known = content_hash("opens", version, filter_hash(), config, name)
        html = keep.load(key)
        if html is None:
            body = show_escaped_cells(page.markdown)
            html = _pandoc(head + body, config, name, keep.folder / known)
            keep.store(key, html)
            keep_opened(_facts(html), keep, known)
        return replace(_read(page, html), **facts)

    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        return list(pool.map(render, pages))


@functools.cache
def filter_hash() -> str:
    """Return a hash of the Lua filter."""
    return content_hash(*(path.read_bytes() for path in sorted(LUA.glob("*.lua"))))


def page_config(project: Project, page: ExecutedPage) -> dict[str, Any]:
    """Return what the filter has to know of a page and its book."""
    html = html_options(project, page)
    chapter = page.chapter
    lang = str(page.metadata.get("lang") or project.lang)
    language = words_of(lang, own_words(project.metadata, project.root))
    config = {
        "language": {key: word for key, word in language.items() if word},
        "english": is_english(lang),
        "words": kind_words(language),
        "flags": _flags({**project.metadata, **page.metadata}),
        "profiles": active_profiles(),
        "first": chapter.number,
        "appendix": chapter.appendix,
        "index": is_index(page),
        "crossref": {
            **(project.metadata.get("crossref") or {}),
            **(page.metadata.get("crossref") or {}),
        },
        "number_sections": html.get("number-sections", True),
        "number_depth": html.get("number-depth", 6),
        "callout_appearance": html.get("callout-appearance"),
        "callout_icon": html.get("callout-icon"),
        "code_copy": html.get("code-copy"),
        "code_summary": html.get("code-summary"),
        "code_overflow": html.get("code-overflow"),
        "code_line_numbers": html.get("code-line-numbers", False),
        "fig_cap_location": html.get("fig-cap-location"),
        "tbl_cap_location": html.get("tbl-cap-location"),
        "cap_location": html.get("cap-location"),
        "column": html.get("column"),
        "fig_column": html.get("fig-column"),
        "tbl_column": html.get("tbl-column"),
        "tbl_colwidths": html.get("tbl-colwidths"),
        "notes": html.get("reference-location"),
        "lightbox": _lightbox(html.get("lightbox")),
    }
    # null would arrive in Lua as a value that counts as true
    return {key: value for key, value in config.items() if value is not None}


def _lightbox(given: Any) -> bool | None:
    """Say whether all figures open in full: `true`, `auto`, or a mapping that matches `auto`.

    >>> _lightbox("auto"), _lightbox({"match": "auto", "loop": False}), _lightbox(None)
    (True, True, None)
    """
    wanted = given.get("match") if isinstance(given, Mapping) else given
    return True if wanted in {True, "auto"} else None


def _flags(metadata: Mapping[str, Any], prefix: str = "") -> dict[str, bool]:
    """Return the metadata that says yes or no, by its dotted name, for conditional content.

    >>> _flags({"draft": {"notes": True}, "title": "T"})
    {'draft.notes': True}
    """
    found: dict[str, bool] = {}
    for key, value in metadata.items():
        if isinstance(value, bool):
            found[f"{prefix}{key}"] = value
        elif isinstance(value, Mapping):
            found.update(_flags(value, f"{prefix}{key}."))
    return found


def active_profiles() -> list[str]:
    """Return the profiles that QUARTO_PROFILE names, which conditional content may ask for."""
    given = os.environ.get("QUARTO_PROFILE", "").replace(",", " ")
    return given.split()


def html_options(project: Project, page: ExecutedPage) -> Mapping[str, Any]:
    """Return `format: html:` of the book, overlaid by the page's own options."""
    own = dict(page.metadata)
    form = own.pop("format", None)
    if isinstance(form, Mapping) and isinstance(form.get("html"), Mapping):
        own = merge(own, form["html"])
    top = {k: v for k, v in project.metadata.items() if k not in {"book", "project", "format"}}
    return merge(merge(top, dict(project.html)), own)


def is_index(page: ExecutedPage) -> bool:
    """Say whether a page is the book's front page."""
    return page.chapter.source in {"index.qmd", "index.md", "index.ipynb"}


def show_escaped_cells(markdown: str) -> str:
    r"""Make a fenced ```{{python}} a Markdown block that shows a cell, as Quarto does.

    >>> show_escaped_cells("```{{python}}\n1 + 1\n```")
    '````{.markdown}\n```{python}\n1 + 1\n```\n````'
    """
    return _ESCAPED_CELL.sub(r"\1`{.markdown}\n\1{\2}\n\3\1\n\1`", markdown)


def _pandoc(text: str, config: str, name: str, opened: Path) -> str:
    arguments = [
        "--from=markdown", "--to=html5", "--section-divs", "--wrap=none",
        f"--lua-filter={LUA / 'book.lua'}",
    ]  # fmt: skip
    if (where := json.loads(config).get("notes")) in {"block", "section"}:
        arguments.append(f"--reference-location={where}")
    environment = {"MLSIM_BOOK_PAGE": config, "MLSIM_BOOK_OPENS": str(opened)}
    html, _ = run_pandoc(arguments, text, environment=environment, file=name)
    return html


def _facts(html: str) -> dict[str, Any]:
    match = _FACTS.search(html)
    return json.loads(match.group(1)) if match else {}


def _read(page: ExecutedPage, html: str) -> RenderedPage:
    facts = _facts(html)
    # Lua can't tell an empty list from an empty table: both arrive as {}
    title = facts.get("title")
    return RenderedPage(
        page=page,
        body=_FACTS.sub("", html),
        title=title
        and Title(title["html"], title["text"], title["id"], tuple(title["classes"] or ())),
        labels=tuple(
            Label(
                each["id"], each["kind"], each["number"],
                int(each.get("level", 0)), bool(each.get("chapter")),
            )
            for each in facts.get("labels") or ()
        ),
        headings=tuple(
            Heading(
                int(each["level"]), each["id"], each["number"],
                each.get("html", ""), each.get("text", ""), bool(each["unlisted"]),
            )
            for each in facts.get("headings") or ()
        ),
        references=tuple(facts.get("refs") or ()),
        citations=tuple(facts.get("cites") or ()),
        nocite=facts.get("nocite"),
        has_bibliography=bool(facts.get("has_refs")),
        notes=tuple((note["message"], note["needle"]) for note in facts.get("notes") or ()),
        front=dict(facts.get("meta") or {}),
        opens=tuple(
            Opened(each["id"], each["text"], each["html"]) for each in facts.get("opens") or ()
        ),
    )  # fmt: skip
