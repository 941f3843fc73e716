"""Put a page's margin content where it belongs: beside the block that it comments on.

Pandoc leaves notes, asides and captions where they were written. As in Quarto, each
goes into a container (`.column-margin`) right behind its block, several of one block
share a container, and a block that can't hold one is wrapped. This looks across
elements, so it works on a parsed page, and only on pages that need it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_NEEDED = re.compile(r'\bclass="[^"]*\b(?:column-(?!container)|margin-(?:caption|ref))')
_MARGIN, _CAPTION = "column-margin", "margin-caption"
_CONTAINER = ("no-row-height", _MARGIN, "column-container")
_LAYOUTS = ("body-outset", "page-inset", "page", "screen-inset", "screen")
_SIDES = ("", "-left", "-right")
_COLUMNS = frozenset(
    [_MARGIN, *(f"column-{name}{side}" for name in _LAYOUTS for side in _SIDES)]
)  # fmt: skip
# A caption beside these has no room: they reach into the right margin themselves.
_TO_THE_RIGHT = frozenset(name for name in _COLUMNS if not name.endswith("-left"))
_LAID_OUT = ", ".join(f".{name}" for name in sorted(_COLUMNS))
_MARGINAL = f".{_MARGIN}, aside:not(.footnotes):not(.sidebar), .aside:not(.footnotes)"
_PHRASING = {"span", "em", "strong", "del", "h1", "h2", "h3", "h4", "h5", "h6"}


def place_margins(
    html: str, *, notes: bool = False, references: Mapping[str, str] | None = None
) -> str:
    """Return a page's body with its margin content in containers.

    Parameters
    ----------
    notes
        Put footnotes into the margin, too.
    references
        Entries of the bibliography by id, to stand beside the text that cites them.

    >>> print(place_margins('<p>Tea<span class="column-margin margin-aside">Hot.</span></p>'))
    ... # doctest: +ELLIPSIS
    <div class="page-columns page-full"><p>Tea</p><div class="no-row-height ...
    """
    wanted = _NEEDED.search(html) or (notes and "footnote-ref" in html)
    if not wanted and not (references and "doc-biblioref" in html):
        return html
    from selectolax.lexbor import LexborHTMLParser  # only now: most pages need it never

    tree = LexborHTMLParser(f"<main>{html}</main>", is_fragment=True)
    page = _Page(tree, notes, references or {})
    page.place()
    main = tree.css_first("main")
    return (main.inner_html if main is not None else None) or html


class _Page:
    """One parsed page."""

    def __init__(self, tree: LexborHTMLParser, notes: bool, references: Mapping[str, str]) -> None:
        self.tree, self.notes, self.references = tree, notes, references

    def place(self) -> None:
        self._forget_nested()
        self._captions()
        self._out_of_callouts()
        self._out_of_tabs()
        self._wide_figures()
        self._contents()
        self._make_room()

    def new(self, tag: str, *names: str) -> LexborNode:
        node = self.tree.create_node(tag)
        if names:
            _set_classes(node, names)
        return node

    # ------------------------------------------------------------ what counts
    def _forget_nested(self) -> None:
        """Of columns within columns the outer one holds; wide things have no margin."""
        for node in self.tree.css(f"{_LAID_OUT}, .{_CAPTION}"):
            above = {name for each in _parents(node) for name in _classes(each)}
            if above & (_COLUMNS - {"column-screen"}):
                _drop(node, *_COLUMNS)
            if above & _TO_THE_RIGHT:
                _drop(node, _CAPTION)

    def _captions(self) -> None:
        """Take the class of a figure or table to its caption, which then moves by itself."""
        for node in self.tree.css(f".{_CAPTION}"):
            _drop(node, _CAPTION)
            figure = next(
                (each for each in (node, *_parents(node)) if "quarto-figure" in _classes(each)
                 or "quarto-layout-panel" in _classes(each)), node,
            )  # fmt: skip
            panel = "quarto-layout-panel" in _classes(figure)
            captions = figure.css("figure > figcaption, div.panel-caption")
            caption = captions[-1 if panel else 0] if captions else None
            if caption is not None:
                _add(caption, _CAPTION)
            elif (found := figure.css_first("table > caption")) is not None:
                self._table_caption(found)

    def _table_caption(self, caption: LexborNode) -> None:
        table = caption.parent
        beside = self.new("div", "quarto-table-caption", _CAPTION)
        for child in list(caption.iter(include_text=True)):
            beside.insert_child(child, move=True)
        caption.decompose()
        if table is not None:
            table.insert_after(beside, move=True)

    # --------------------------------------------- callouts, tabs, wide figures
    def _out_of_callouts(self) -> None:
        for callout in self.tree.css("div.callout"):
            bodies = callout.css(".callout-body-container")
            found = [node for body in bodies for node in body.css(_MARGINAL)]
            folds = callout.css_first(".callout-collapse")
            simple = "callout-style-simple" in _classes(callout)
            for node in reversed(_outermost(found)):
                _add(node, *(_classes(folds) if folds is not None else ()))
                _add(node, "callout-margin-content", *(["callout-margin-content-simple"] * simple))
                callout.insert_after(node, move=True)

    def _out_of_tabs(self) -> None:
        for tabs in self.tree.css("div.panel-tabset"):
            beside = self.new("div", "tabset-margin-container")
            for pane in tabs.css("div.tab-pane"):
                for node in _outermost(pane.css(_MARGINAL)):
                    _add(node, "tabset-margin-content", f"{pane.id}-tab-margin-content")
                    if "active" not in _classes(pane):
                        _add(node, "collapse")
                    beside.insert_child(node, move=True)
            if beside.child is not None:
                tabs.insert_before(beside, move=True)

    def _wide_figures(self) -> None:
        """Of a wide figure only the image is wide; its caption stays with the text."""
        for node in self.tree.css(_LAID_OUT):
            if _MARGIN in _classes(node) or node.css_first(".grid") is not None:
                continue
            inner = node.css("figure img.figure-img")
            if len(inner) != 1:
                inner = node.css(".quarto-layout-panel > figure .quarto-layout-row")
            if len(inner) == 1:
                columns = [name for name in _classes(node) if name.startswith("column-")]
                _drop(node, *columns)
                _add(inner[0], *columns)

    # ---------------------------------------------------------- into containers
    def _contents(self) -> None:
        selectors = [f".{_MARGIN}:not(.column-container)"]
        selectors += ["a.footnote-ref"] * self.notes
        selectors += ["a[role='doc-biblioref']"] * bool(self.references)
        cited: set[str] = set()
        for node in self.tree.css(", ".join(selectors)):
            if _MARGIN in _classes(node):
                self._simple(node)
            elif "footnote-ref" in _classes(node):
                self._footnote(node)
            else:
                self._reference(node, cited)
        if self.notes:
            for end in self.tree.css("section.footnotes, aside.footnotes"):
                end.decompose()

    def _simple(self, node: LexborNode) -> None:
        _drop(node, _MARGIN)
        parent = node.parent
        if parent is not None and parent.tag == "dd":
            parent.insert_after(beside := self.new("div"), move=True)
            beside.insert_child(node, move=True)
            node = beside
        self._container(node).insert_child(node, move=True)

    def _footnote(self, mark: LexborNode) -> None:
        name = (mark.attributes.get("href") or "#").rpartition("#")[2]
        note = next(
            (each for each in self.tree.css("section.footnotes li") if each.id == name), None
        )
        if note is None or mark.parent is None:
            return
        for back in note.css(".footnote-back"):
            back.decompose()
        beside = self.new("div")
        beside.attrs["id"] = name
        first = next((each for each in note.iter() if each.tag == "p"), None)
        sup = mark.css_first("sup")
        if first is not None and first.child is not None and sup is not None:
            first.child.insert_before(sup)
            first.child.insert_after("\u00a0")
        for child in list(note.iter(include_text=True)):
            beside.insert_child(child, move=True)
        block = next((each for each in _parents(mark) if each.tag not in _PHRASING), mark.parent)
        self._container(block).insert_child(beside, move=True)

    def _reference(self, link: LexborNode, cited: set[str]) -> None:
        name = (link.attributes.get("href") or "#").rpartition("#")[2]
        if name not in self.references or name in cited:
            return
        cited.add(name)
        parsed = type(self.tree)(self.references[name], is_fragment=True).css_first("div.csl-entry")
        block = next((each for each in _parents(link) if each.tag not in _PHRASING), None)
        if parsed is None or block is None:
            return
        marginal = _CAPTION in _classes(block)
        (block if marginal else self._container(block)).insert_child(parsed)

    def _container(self, node: LexborNode) -> LexborNode:
        """Return the container for what stands beside a node: one that is near, or a new one."""
        parent = node.parent
        around = {name for each in _parents(node) for name in _classes(each)}
        if parent is not None and around & {_MARGIN, _CAPTION}:
            return parent
        for near in (_beside(node, "next"), _beside(node, "prev")):
            if near is not None and _is_container(near):
                return near
        above = list(_parents(node))
        callout = next((each for each in above if "callout" in _classes(each)), None)
        lists = [each for each in above if each.tag in {"ol", "ul", "table"}]
        if callout is not None:
            return self._behind(callout)
        if lists:
            return self._behind(lists[-1])
        if parent is not None and parent.tag in {"p", "blockquote"}:
            return self._wrapped(parent)
        return self._behind(node)

    def _behind(self, node: LexborNode) -> LexborNode:
        if node.parent is not None and "table-scroll" in _classes(node.parent):
            node = node.parent  # what stands in a box that scrolls would be cut off
        near = _beside(node, "next")
        if near is not None and _is_container(near):
            return near
        made = self.new("div", *_CONTAINER)
        node.insert_after(made, move=True)
        return made

    def _wrapped(self, block: LexborNode) -> LexborNode:
        near = _beside(block, "next")
        if near is not None and _is_container(near):
            return near
        wrapper, made = self.new("div"), self.new("div", *_CONTAINER)
        block.insert_before(wrapper, move=True)
        wrapper.insert_child(block, move=True)
        wrapper.insert_child(made, move=True)
        return made

    def _make_room(self) -> None:
        """Mark what is around columns: there the grid of the page holds, as in Quarto."""
        for node in self.tree.css(f"{_LAID_OUT}, .{_CAPTION}, aside:not(.footnotes)"):
            for parent in _parents(node):
                if "quarto-layout-row" not in _classes(parent):
                    _add(parent, "page-columns")
                _add(parent, "page-full")


def _classes(node: LexborNode) -> Sequence[str]:
    return (node.attributes.get("class") or "").split()


def _set_classes(node: LexborNode, names: Iterable[str]) -> None:
    node.attrs["class"] = " ".join(dict.fromkeys(names))


def _add(node: LexborNode, *names: str) -> None:
    _set_classes(node, [*_classes(node), *names])


def _drop(node: LexborNode, *names: str) -> None:
    left = [name for name in _classes(node) if name not in names]
    if len(left) != len(_classes(node)):
        _set_classes(node, left)


def _parents(node: LexborNode) -> Iterable[LexborNode]:
    """Yield the elements around a node, the nearest first, up to the page."""
    parent = node.parent
    while parent is not None and parent.tag != "main":
        yield parent
        parent = parent.parent


def _outermost(nodes: Sequence[LexborNode]) -> list[LexborNode]:
    ids = {each.mem_id for each in nodes}
    unique = {each.mem_id: each for each in nodes}
    return [
        each for each in unique.values() if not any(one.mem_id in ids for one in _parents(each))
    ]


def _beside(node: LexborNode, way: str) -> LexborNode | None:
    """Return the next or previous element of a node."""
    found: LexborNode | None = getattr(node, way)
    while found is not None and not found.is_element_node:
        found = getattr(found, way)
    return found


def _is_container(node: LexborNode) -> bool:
    return node.tag == "div" and {_MARGIN, "column-container"} <= set(_classes(node))
