"""The label index of a book: what a reference reads as, and where it leads."""

from __future__ import annotations

import html as htmllib
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlsim_book.model import Project
from mlsim_book.read.labels import kind_words, nearest_label, own_words, words_of
from mlsim_book.read.lines import Reporter, find_lines, label_patterns, reference_patterns
from mlsim_book.render.to_html import Label, RenderedPage

_REFERENCE = re.compile(r"<x-ref ([^>]*)>(.*?)</x-ref>", re.DOTALL)
_MARK = re.compile("\u27e6([\\w-]+)\u27e7")
_ATTRIBUTE = re.compile(r'data-(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Target:
    """A label of the book, with the page it stands on."""

    label: Label
    href: str  # of its page, from the book's root
    appendix: bool = False
    title: str = ""  # HTML; what an unnumbered section is called by


Index = Mapping[str, Target]


def build_index(pages: Sequence[RenderedPage], reporter: Reporter) -> dict[str, Target]:
    """Collect the labels of all pages; a label given twice is a problem.

    The last one wins, as in Quarto.
    """
    index: dict[str, Target] = {}
    given: dict[str, RenderedPage] = {}
    for page in pages:
        chapter = page.page.chapter
        titles = {heading.id: heading.html for heading in page.headings}
        for label in page.labels:
            if label.id in index:
                _note_duplicate(label.id, given[label.id], page, reporter)
            title = titles.get(label.id, page.title.html if page.title and label.chapter else "")
            index[label.id] = Target(label, chapter.href, chapter.appendix, title)
            given[label.id] = page
    return index


def _note_duplicate(
    label: str, first: RenderedPage, second: RenderedPage, reporter: Reporter
) -> None:
    root = reporter.root
    places = find_lines(first.page, root, *label_patterns(label))
    if first is not second:
        places = places[:1] + find_lines(second.page, root, *label_patterns(label))
    file, line = places[-1] if places else (second.page.chapter.source, None)
    before = f"{places[0][0]}:{places[0][1]}" if places else first.page.chapter.source
    reporter.problems.add(
        f"the label '{label}' is used twice, first at {before}",
        file=file,
        line=line,
        hint="Give one of them another label; references lead to the last.",
    )


def label_texts(index: Index, project: Project) -> dict[str, str]:
    """Return each label's text, as `notebooks` wants it: fig-x -> Figure 1.1."""
    words = Words(project)
    texts = {key: f"{words.word(each)} {each.label.number}".strip() for key, each in index.items()}
    unnumbered = (key for key, each in index.items() if not each.label.number)
    return texts | {key: re.sub(r"<[^>]*>", "", index[key].title) or key for key in unnumbered}


class Words:
    """The word before a number, as `crossref:` in `_quarto.yml` may change it."""

    def __init__(self, project: Project) -> None:
        given = project.metadata.get("crossref") or {}
        self.language = words_of(project.lang, own_words(project.metadata, project.root))
        words = kind_words(self.language)
        self.prefixes = {kind: str(given.get(f"{kind}-prefix", words[kind])) for kind in words}
        self.links = given.get("ref-hyperlink") is not False
        self.glued: set[str] = set()  # kinds whose word and number have no space between
        own = given.get("custom")
        for each in own if isinstance(own, list) else []:
            if isinstance(each, Mapping) and each.get("key"):
                key = str(each["key"])
                self.prefixes[key] = str(each.get("reference-prefix") or key)
                if each.get("space-before-numbering") is False:
                    self.glued.add(key)

    def word(self, target: Target) -> str:
        """Return the word for a target, which says Chapter or Appendix of a chapter."""
        label = target.label
        if label.kind == "sec" and label.chapter:
            return self.language[f"crossref-{'apx' if target.appendix else 'ch'}-prefix"]
        if label.kind == "sec" and target.appendix and self.prefixes["sec"] == "Section":
            return "Section"
        return self.prefixes[label.kind]


def resolve(html: str, page: RenderedPage, index: Index, words: Words, reporter: Reporter) -> str:
    """Fill in the references of a page (in its body, or any HTML that came from it)."""

    def fill(match: re.Match[str]) -> str:
        data = {k: htmllib.unescape(v) for k, v in _ATTRIBUTE.findall(match.group(1))}
        target = index.get(data["key"])
        if target is None:
            _note_unresolved(data["key"], page, index, reporter)
            return f'<span class="quarto-unresolved-ref">?{htmllib.escape(data["key"])}</span>'
        if not target.label.number:
            return _by_title(target, page, data, match.group(2))
        text = _text(target, words, data, match.group(2))
        after = data.get("suffix", "")
        if data.get("plain") or not words.links:
            return f'<span class="quarto-xref">{text}</span>{after}'
        return f'<a href="{_href(target, page)}" class="quarto-xref">{text}</a>{after}'

    def mark(match: re.Match[str]) -> str:
        target = index.get(match.group(1))
        if target is None:
            return "?" + match.group(1)
        return f"{words.word(target)} {target.label.number}".strip()

    return _MARK.sub(mark, _REFERENCE.sub(fill, html))


def _text(target: Target, words: Words, data: Mapping[str, str], prefix: str) -> str:
    """Return what a reference reads as, in HTML."""
    label = target.label
    if data.get("mode") == "bare":
        return f"<span>{label.number}</span>"
    word = prefix or htmllib.escape(words.word(target))
    if data.get("capital") and word and not prefix:
        word = word[0].upper() + word[1:]
    if prefix and data.get("suffix"):
        # "[see @fig-x, left]": the prefix introduces the reference, it doesn't rename it
        word = f"{prefix} {htmllib.escape(words.word(target))}"
    if label.kind == "sec" and not prefix:
        return f"<span>{word} {label.number}</span>"
    space = "" if label.kind in words.glued else "&nbsp;"
    return f"{word}{space}<span>{label.number}</span>" if word else f"<span>{label.number}</span>"


def _by_title(target: Target, page: RenderedPage, data: Mapping[str, str], prefix: str) -> str:
    """Return a reference to something without a number: a link that reads as its title.

    Quarto leaves such a reference unresolved; its class stays, so that both
    renderings can be styled and tested alike.
    """
    text = (f"{prefix}&nbsp;" if prefix else "") + (target.title or target.label.id)
    if not page.numbered and not data.get("plain"):  # here every section goes by its title
        return f'<a href="{_href(target, page)}" class="quarto-xref"><span>{text}</span></a>'
    if not data.get("plain"):
        text = f'<a href="{_href(target, page)}">{text}</a>'
    return f'<span class="quarto-unresolved-ref">{text}</span>'


def _href(target: Target, page: RenderedPage) -> str:
    here = page.page.chapter.href
    anchor = "#" + htmllib.escape(target.label.id)
    if target.href == here:
        return anchor
    path = posixpath.relpath(target.href, posixpath.dirname(here) or ".")
    return path if target.label.chapter else path + anchor


def _note_unresolved(key: str, page: RenderedPage, index: Index, reporter: Reporter) -> None:
    near = nearest_label(key, index)
    otherwise = f"Give the target the label {{#{key}}}; if it was taken out, reword the sentence."
    reporter.note(
        page.page,
        f"Unable to resolve crossref @{key}: nothing in the book has this label",
        *reference_patterns(key),
        hint=f"Did you mean @{near}?" if near else otherwise,
    )
